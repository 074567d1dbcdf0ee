package filelease

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func past(t *testing.T, s *Store, space leasestore.Space) []leasestore.Holder {
	t.Helper()
	all, err := s.Holders(t.Context(), space, 0)
	if err != nil {
		t.Fatalf("Holders() = %v; want them", err)
	}
	return all
}

// held makes n claims of one row, each given back but the last, and returns the entry of that one.
func held(t *testing.T, s *Store, n int) (space leasestore.Space, last leasestore.Holder) {
	t.Helper()
	for i := range n {
		c := newClaim(1)
		c.Holder = strings.Repeat("w", 1+i%64)
		r := mustClaim(t, s, c)
		space, last = c.Space, leasestore.Holder{Epoch: r.Row.Epoch, Holder: c.Holder, From: c.From(r), Until: r.Row.Until}
		if i < n-1 {
			back := releaseOf(c, r)
			back.End = c.From(r) + 1
			if err := s.Release(t.Context(), back); err != nil {
				t.Fatal(err)
			}
		}
	}
	return space, last
}

// A power failure may take the last record, or spoil what was being written. The slot tells who had
// the row, as it does if the claim was of an older version.
func TestAHolderWhoseRecordIsLostIsSeenInItsSlot(t *testing.T) {
	for name, spoil := range map[string]func(b []byte) []byte{
		"is cut off":             func(b []byte) []byte { return b[:2*pastWidth] },
		"has lost its end":       func(b []byte) []byte { return b[:len(b)-1] },
		"was not written":        func(b []byte) []byte { return append(b[:2*pastWidth], make([]byte, pastWidth)...) },
		"is of something else":   func(b []byte) []byte { return append(b[:2*pastWidth], bytes.Repeat([]byte("7\n"), pastWidth/2)...) },
		"has a negative number":  func(b []byte) []byte { return bytes.Replace(b, []byte(" 2\t"), []byte("-2\t"), 1) },
		"is there, without text": func(b []byte) []byte { return bytes.Replace(b, []byte(" 2\t5"), []byte(" 2\tx"), 1) },
	} {
		s := newStore(t, t.TempDir(), Config{})
		space, last := held(t, s, 3)
		all := past(t, s, space)
		if len(all) != 3 || all[2] != last {
			t.Fatalf("Holders() = %+v; want three, at the end %+v", all, last)
		}
		file := pastPath(slotFile(s, 0))
		b, err := os.ReadFile(file)
		if err != nil || len(b) != 3*pastWidth {
			t.Fatalf("%d bytes, %v; want a line for each", len(b), err)
		}
		if err := os.WriteFile(file, spoil(b), 0o666); err != nil {
			t.Fatal(err)
		}
		want := slices.Clone(all)
		want[2].From, want[1].Until = want[1].From, want[2].Until
		if got := past(t, s, space); !slices.Equal(got, want) {
			t.Errorf("a record that %s: Holders() = %+v; want %+v", name, got, want)
		}
	}
}

// A claim that finds no room for its record, or no file to write it to, is granted.
func TestAClaimGoesOnWithoutItsRecord(t *testing.T) {
	for name, open := range map[string]func(path string) (file, error){
		"no room": func(path string) (file, error) { f, err := openFile(path, true); return fullFile{f}, err },
		"no file": func(string) (file, error) { return nil, errDisk },
	} {
		log, text := logged()
		s := newStore(t, t.TempDir(), Config{Logger: log})
		s.open = func(path string, create bool) (file, error) {
			if create && strings.HasSuffix(path, ".past") {
				return open(path)
			}
			return openFile(path, create)
		}
		space, last := held(t, s, 1)
		last.From = 0 // unknown
		if all := past(t, s, space); !slices.Equal(all, []leasestore.Holder{last}) {
			t.Errorf("%s: Holders() = %+v; want what the slot tells, %+v", name, all, last)
		}
		if text.Len() > 0 {
			t.Errorf("%s: the log has %q; want nothing, or at level debug", name, text)
		}
	}
}

type fullFile struct{ file }

func (fullFile) WriteAt([]byte, int64) (int, error) { return 0, errDisk }

func TestTheFileOfRecordsDoesNotGrow(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	held(t, s, leasestore.Kept+3)
	info, err := os.Stat(pastPath(slotFile(s, 0)))
	if err != nil || info.Size() != leasestore.Kept*pastWidth {
		t.Errorf("Stat() after %d claims = %d bytes, %v; want %d", leasestore.Kept+3, info.Size(), err, leasestore.Kept*pastWidth)
	}
}

func TestHoldersOfAMissingSlotAreAnError(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	space, _ := held(t, s, 2)
	if err := os.Remove(slotFile(s, 0)); err != nil {
		t.Fatal(err)
	}
	if all, err := s.Holders(t.Context(), space, 0); err == nil {
		t.Errorf("Holders() of a missing slot = %+v; want an error", all)
	}
	space.Workers = 2
	if all, err := s.Holders(t.Context(), space, 2); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("Holders(worker 2) of 2 = %+v, %v; want an error about the number", all, err)
	}
}
