package leasestore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// A fullRegister refuses to swap with a record, and counts how often it is asked to.
type fullRegister struct {
	*leasetest.Memory
	refusal error
	asked   int
}

func (r *fullRegister) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	if from.Record != "" {
		r.asked++
		return false, r.refusal
	}
	return r.Memory.Swap(ctx, s, from, to)
}

func TestAClaimGoesOnWithoutItsRecord(t *testing.T) {
	refusal := errors.New("no table")
	for name, test := range map[string]struct {
		refusal error
		asked   int // by two claims
	}{
		"for now":  {refusal, 2},
		"for good": {leasestore.Permanent(refusal), 1},
	} {
		r := &fullRegister{&leasetest.Memory{}, test.refusal, 0}
		s := leasestore.FromRegister(r)
		c := leasestore.Claim{Space: leasestore.Space{Namespace: "n", Workers: 1}, Window: 1000, Now: leasestore.MillisOf(time.Now()), Skew: 60_000, Holder: "web"}
		for _, c.Owner = range []string{"a", "b"} {
			c.Nonce = c.Owner
			reply, err := s.Claim(t.Context(), c)
			if err != nil {
				t.Fatalf("%s: Claim() = %v; want the row", name, err)
			}
			want := []leasestore.Holder{{Epoch: reply.Row.Epoch, Holder: "web", Until: reply.Row.Until}}
			if got, err := s.History(t.Context(), c.Space, 0); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: History() = %+v, %v; want what the row tells, %+v", name, got, err, want)
			}
			if err := s.Release(t.Context(), leasestore.Release{Space: c.Space, Epoch: reply.Row.Epoch, Owner: c.Owner, Known: []string{c.Nonce}, Nonce: c.Nonce + "2", End: reply.Now}); err != nil {
				t.Fatal(err)
			}
		}
		if r.asked != test.asked {
			t.Errorf("%s: two claims have tried %d times to record themselves; want %d", name, r.asked, test.asked)
		}
	}
}

func TestARegisterWithoutRecordsSaysSo(t *testing.T) {
	space := leasestore.Space{Namespace: "n", Workers: 1}
	s := leasestore.FromRegister(struct{ leasestore.Register }{&leasetest.Memory{}})
	if _, err := s.History(t.Context(), space, 0); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("History() = %v; want it to match errors.ErrUnsupported", err)
	}
}

func TestHoldersOfADeletedRowAreAnError(t *testing.T) {
	m := &leasetest.Memory{}
	space := leasestore.Space{Namespace: "n", Workers: 2}
	m.Set(space, leasestore.Row{})
	m.Delete(space, 0)
	if all, err := m.History(t.Context(), space, 0); err == nil {
		t.Errorf("History() of a row that was deleted = %+v; want an error", all)
	}
}

// While History reads, another process claims, and both what was read before and after would name it
// alone, or not at all.
type busyRegister struct {
	*leasetest.Memory
	claim func()
}

func (r *busyRegister) Records(ctx context.Context, s leasestore.Space, worker int64) ([]string, error) {
	all, err := r.Memory.Records(ctx, s, worker)
	if r.claim != nil {
		r.claim()
		r.claim = nil
	}
	return all, err
}

func TestHoldersAreThoseOfOneMoment(t *testing.T) {
	m := &leasetest.Memory{}
	c := leasestore.Claim{Space: leasestore.Space{Namespace: "n", Workers: 1}, Owner: "a", Nonce: "a", Window: 1000, Now: leasestore.MillisOf(time.Now()), Skew: 60_000}
	first, err := m.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var second leasestore.Reply
	s := leasestore.FromRegister(&busyRegister{m, func() {
		c.Owner, c.Nonce, c.Holder = "b", "b", "web"
		row := first.Row
		row.Until = 0
		m.Set(c.Space, row)
		if second, err = m.Claim(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}})
	got, err := s.History(t.Context(), c.Space, 0)
	want := []leasestore.Holder{{Epoch: 1, From: first.Now}, {Epoch: 2, Holder: "web", From: second.Now, Until: second.Row.Until}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("History() = %+v, %v; want %+v", got, err, want)
	}
}

func TestHoldersOfRecordsThatDoNotFit(t *testing.T) {
	type all = []leasestore.Holder
	for name, test := range map[string]struct {
		row     leasestore.Row
		records []string
		want    all
	}{
		"the row has the epoch of another holder": {
			leasestore.Row{Epoch: 5, Owner: "x", Holder: "b", Until: 70}, []string{"5\t50\t40\ta"},
			all{{Until: 40}, {Epoch: 5, Holder: "a", From: 50, Until: 70}, {Epoch: 5, Holder: "b", From: 50, Until: 70}},
		},
		"the row was given back by another holder": {
			leasestore.Row{Epoch: 8, Until: 70}, []string{"5\t50\t40\ta"},
			all{{Until: 40}, {Epoch: 5, Holder: "a", From: 50, Until: 70}, {From: 50, Until: 70}},
		},
		"the row was taken back to an earlier epoch": {
			leasestore.Row{Epoch: 3, Owner: "x", Holder: "c", Until: 30}, []string{"3\t20\t20\tc", "5\t50\t40\ta\tc", "4\t30\t20\tc"},
			all{{Until: 20}, {Epoch: 4, Holder: "c", From: 30, Until: 40}, {Epoch: 5, Holder: "a", From: 50, Until: 20}, {From: 50, Until: 20}, {Epoch: 3, Holder: "c", From: 20, Until: 30}},
		},
		"one is of a later version": {
			leasestore.Row{Epoch: 2, Until: 30}, []string{"", "x", "1\t20", "1\tx\t0\ta", "1\t1\tx\ta"},
			all{{Until: 30}},
		},
	} {
		if got := leasestore.HistoryOf(test.row, test.records); !slices.Equal(got, test.want) {
			t.Errorf("%s: HistoryOf() = %+v; want %+v", name, got, test.want)
		}
	}
	var records []string
	for epoch := int64(2 * leasestore.HistoryLength); epoch > 0; epoch-- {
		records = append(records, fmt.Sprintf("%d\t%d\t%d\ta\ta", epoch, epoch, epoch))
	}
	got := leasestore.HistoryOf(leasestore.Row{Epoch: 2 * leasestore.HistoryLength, Owner: "x", Holder: "a", Until: 1000}, records)
	if want := (leasestore.Holder{Epoch: leasestore.HistoryLength, Holder: "a", Until: leasestore.HistoryLength + 1}); len(got) != leasestore.HistoryLength+1 || got[0] != want {
		t.Errorf("HistoryOf() of %d records = %d entries, first %+v; want %d, first what is before them, %+v", len(records), len(got), got[0], leasestore.HistoryLength+1, want)
	}
}

// Whatever the records hold, the time that a row has reserved is in an entry, and so is all that a
// record says.
func FuzzHistoryOf(f *testing.F) {
	f.Add("3\t20\t10\tweb\n1\t1\t0\tweb", int64(4), int64(30), "")
	f.Add("9\t20\t10\tweb\told\nx\t1\t0\tweb\n7", int64(12), int64(30), "me")
	f.Add("1\t99999999999999999999\t0\t", int64(0), int64(0), "")
	f.Add("-9223372036854775808\t0\t0\t", int64(0), int64(7), "")
	f.Fuzz(func(t *testing.T, records string, epoch, until int64, owner string) {
		lines := strings.Split(records, "\n")
		all := leasestore.HistoryOf(leasestore.Row{Worker: 7, Epoch: epoch, Until: leasestore.Millis(until), Owner: owner}, lines)
		if len(all) > 2*leasestore.HistoryLength+1 {
			t.Errorf("HistoryOf() has %d entries", len(all))
		}
		for _, h := range all {
			if h.Worker != 7 {
				t.Errorf("HistoryOf() has %+v; want worker 7", h)
			}
		}
		if (epoch != 0 || until != 0) && (len(all) == 0 || all[len(all)-1].Until != leasestore.Millis(until)) {
			t.Errorf("HistoryOf(until %d) = %+v; want that at the end", until, all)
		}
	})
}
