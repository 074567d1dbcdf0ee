package filelease

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A file that is missing when Fence runs must not begin before Fence's limit, even if a claim
// comes first, because the holder of the lost file may continue up to that limit.
func TestFenceRaisesRowsWhoseFilesAreGone(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(s *Store) error{
		"slot":  func(s *Store) error { return os.Remove(slotFile(s, 7)) },
		"space": func(s *Store) error { return os.RemoveAll(filepath.Join(s.dir, "ns-orders")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, t.TempDir(), Config{})
			c := newClaim(8)
			c.Only = []int64{7}
			mustClaim(t, s, c)
			if err := remove(s); err != nil {
				t.Fatal(err)
			}
			f := leasestore.Fencing{Space: c.Space, Nonce: token(), Until: leasestore.MillisOf(time.Now().Add(time.Hour))}
			sp, err := s.spaceOf(t.Context(), s.maker(f))
			if err != nil {
				t.Fatal(err)
			}
			if name == "space" && sp.meta.Until < f.Until {
				t.Errorf("rows that are made meanwhile begin at %v; want %v or later", sp.meta.Until.Time(), f.Until.Time())
			}
			if err := s.Fence(t.Context(), f); err != nil {
				t.Fatalf("Fence() = %v; want no error", err)
			}
			rows, _, err := s.Rows(t.Context(), c.Space)
			if err != nil || len(rows) != 8 {
				t.Fatalf("Rows() = %d rows, %v; want 8", len(rows), err)
			}
			for _, row := range rows {
				if row.Until < f.Until || row.Owner != "" {
					t.Errorf("after Fence row %d has the limit %v and owner %q; want %v or later, and none", row.Worker, row.Until.Time(), row.Owner, f.Until.Time())
				}
			}
		})
	}
}
