package filelease

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

func retire(t *testing.T, s *Store, worker int64) error {
	t.Helper()
	c := newClaim(8)
	c.Only, c.Retire = []int64{worker}, true
	_, err := s.Claim(t.Context(), c)
	return err
}

// What was lost may have been used.
func TestNumbersWhoseFilesAreGoneAreNotRetired(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(s *Store) error{
		"slot":  func(s *Store) error { return os.Remove(slotFile(s, 7)) },
		"space": func(s *Store) error { return os.RemoveAll(filepath.Join(s.dir, "ns-orders")) },
	} {
		s := newStore(t, t.TempDir(), Config{})
		c := newClaim(8)
		c.Only = []int64{7}
		mustClaim(t, s, c)
		if err := remove(s); err != nil {
			t.Fatal(err)
		}
		if err := retire(t, s, 7); !errors.Is(err, leasestore.ErrNoFreeWorker) {
			t.Errorf("Claim with Retire when the %s is gone = error %v; want none free", name, err)
		}
	}
}

// A program that retires numbers each time it starts must not keep a file open for each.
func TestRetiredNumberHasNoHolder(t *testing.T) {
	t.Parallel()
	s := newStore(t, t.TempDir(), Config{})
	if err := retire(t, s, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lockPath(slotFile(s, 7))); !errors.Is(err, fs.ErrNotExist) || len(s.held) > 0 {
		t.Errorf("holder's lock of a retired row: Stat() = %v, %d held; want none", err, len(s.held))
	}
	// Not even a later process takes it for the row of a dead one.
	c := newClaim(8)
	c.Only = []int64{7}
	again := newStore(t, s.dir, Config{})
	if r, err := again.Claim(t.Context(), c); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim of a retired row = %+v, error %v; want none free", r, err)
	}
}
