//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// A space that is gone is lost state, not a new one.
func TestASpaceThatIsGoneStartsLaterThanItCanHaveReserved(t *testing.T) {
	for _, gone := range []string{"ns-orders", "ns-orders/dc-0"} {
		for _, guard := range []lease.Millis{0, 9_000} {
			now := time.UnixMilli(1_800_000_000_000)
			log, text := logged()
			dir := t.TempDir()
			config := Config{Now: func() time.Time { return now }, Logger: log}
			s := newStore(t, dir, config)
			claim := func() lease.Claim {
				c := newClaim(2)
				c.Now, c.Window, c.Skew, c.Guard, c.Longest = lease.MillisOf(now), 60_000, 5_000, guard, 60_000
				return c
			}
			c := claim()
			if got := mustClaim(t, s, c); got.Before != 0 || text.Len() > 0 {
				t.Fatalf("first Claim = %+v, log %q; want one that begins at once", got, text)
			}
			if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
				t.Fatal(err)
			}
			s = newStore(t, dir, config) // all that was known in memory is gone, too
			limit := lease.MillisOf(now) + 60_000 + max(5_000, guard)
			// Under the guard rows are free earlier, and IDs begin later anyway.
			if _, err := s.Claim(t.Context(), claim()); guard == 0 {
				var full *lease.NoFreeWorkerError
				if !errors.As(err, &full) || full.Earliest != limit.Time() {
					t.Fatalf("Claim when %s is gone = error %v; want none free before %s", gone, err, limit.Time())
				}
			}
			rows, _, err := s.Rows(t.Context(), c.Space)
			if err != nil || len(rows) != 2 || rows[0].Until < limit || rows[1].Until < limit {
				t.Errorf("Rows when %s was gone = %+v, error %v; want limits of %d", gone, rows, err, limit)
			}
			if !strings.Contains(text.String(), "missing") {
				t.Errorf("log = %q; want a warning", text)
			}
			now = now.Add(time.Minute)
			again := claim()
			if got := mustClaim(t, s, again); again.From(got) < limit {
				t.Errorf("first moment after %s was gone = %d; want %d or later", gone, again.From(got), limit)
			}
		}
	}
}

func TestASpaceThatIsNewStartsAtOnceBesideOthers(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	for _, sp := range []lease.Space{
		{Namespace: "orders"}, {Namespace: "orders", Datacenter: 1}, {Namespace: "other"},
		{Namespace: "orders-dc-1"}, {Namespace: "Orders"}, {Namespace: "orders-dc-0", Datacenter: 1},
	} {
		c := newClaim(2)
		c.Space.Namespace, c.Space.Datacenter = sp.Namespace, sp.Datacenter
		if got := mustClaim(t, s, c); got.Before != 0 {
			t.Errorf("first Claim in %q, datacenter %d: Before = %d; want 0", sp.Namespace, sp.Datacenter, got.Before)
		}
	}
}

func TestAllowFreshStateMakesASpaceThatIsGoneAtOnce(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{AllowFreshState: true})
	mustClaim(t, s, newClaim(1))
	if err := os.RemoveAll(filepath.Join(s.dir, "ns-orders")); err != nil {
		t.Fatal(err)
	}
	if got := mustClaim(t, s, newClaim(1)); got.Before != 0 {
		t.Errorf("Claim in a space that is gone, with AllowFreshState: Before = %d; want 0", got.Before)
	}
}

// The note that a space was made is on the disk before the space appears; and a
// maker that is stopped before that has not used up the quick start.
func TestTheNoteOfASpaceIsOlderThanTheSpace(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(2)
	draft := s.spaceDir(c.Space) + making
	drafted := false
	s.sync = func(dir string) error {
		_, noteErr := os.Stat(s.madePath(c.Space))
		_, spaceErr := os.Stat(s.spaceDir(c.Space))
		if !drafted { // or a power failure could leave the space without its slots
			drafted = true
			files, err := os.ReadDir(draft)
			if dir != draft || len(files) != 3 || noteErr == nil || spaceErr == nil {
				t.Errorf("first sync is of %s with %v, %v, note: %v, space: %v; want one of %s, with its slots and its meta file, and without note and space",
					dir, files, err, noteErr, spaceErr, draft)
			}
			return syncDir(dir)
		}
		if dir != s.dir || noteErr != nil || spaceErr == nil {
			t.Errorf("second sync is of %s, note: %v, space: %v; want one of %s, with the note and without the space", dir, noteErr, spaceErr, s.dir)
		}
		return errDisk
	}
	if _, err := s.Claim(t.Context(), c); !errors.Is(err, errDisk) {
		t.Errorf("Claim = error %v; want %v", err, errDisk)
	}
	if _, err := os.Stat(s.spaceDir(c.Space)); err == nil {
		t.Error("the space was made though its note is not durable")
	}

	stopped := newStore(t, t.TempDir(), Config{})
	draft = stopped.spaceDir(c.Space) + making
	if err := os.MkdirAll(draft, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := mustClaim(t, stopped, c); got.Before != 0 {
		t.Errorf("Claim after a maker was stopped: Before = %d; want 0", got.Before)
	}
}

// events makes s note what it syncs and writes, by the names of the files.
func events(s *Store) *[]string {
	var list []string
	s.sync = func(dir string) error {
		list = append(list, "sync "+filepath.Base(dir))
		return syncDir(dir)
	}
	open := s.open
	s.open = func(path string, create bool) (file, error) {
		f, err := open(path, create)
		return &noting{f, &list, filepath.Base(path)}, err
	}
	return &list
}

type noting struct {
	file
	list *[]string
	name string
}

func (n *noting) WriteAt(b []byte, at int64) (int, error) {
	*n.list = append(*n.list, "write "+n.name)
	return n.file.WriteAt(b, at)
}

// Whoever made a space, or a slot again, may not have come to sync its name. What
// others acknowledge there must not be lost with it.
func TestNothingIsAcknowledgedInAFileThatMayVanish(t *testing.T) {
	dir := t.TempDir()
	maker := newStore(t, dir, Config{AllowFreshState: true})
	fail := "ns-orders"
	maker.sync = func(dir string) error {
		if filepath.Base(dir) == fail {
			return errDisk
		}
		return syncDir(dir)
	}
	c := newClaim(1)
	if _, err := maker.Claim(t.Context(), c); !errors.Is(err, errDisk) {
		t.Fatalf("Claim = error %v; want %v", err, errDisk)
	}
	root := "sync " + filepath.Base(dir)
	settled := []string{"sync dc-0", "sync ns-orders", root, "write 0"}
	expect := func(what string, got *[]string, want []string) {
		t.Helper()
		if !slices.Equal(*got, want) {
			t.Errorf("%s: steps = %q; want %q", what, *got, want)
		}
		*got = nil
	}

	s := newStore(t, dir, Config{AllowFreshState: true})
	steps := events(s)
	reply := mustClaim(t, s, c)
	expect("Claim in a space that was found", steps, settled)
	if err := s.Release(t.Context(), releaseOf(c, reply)); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, newClaim(1))
	expect("Release, and a second Claim of the row", steps, []string{"write 0", "write 0"})

	// The slot goes missing; the maker makes it again and is stopped.
	if err := os.Remove(slotFile(s, 0)); err != nil {
		t.Fatal(err)
	}
	fail = "dc-0"
	if _, err := maker.Claim(t.Context(), newClaim(1)); !errors.Is(err, errDisk) {
		t.Fatalf("Claim of a missing row = error %v; want %v", err, errDisk)
	}
	if _, err := maker.Claim(t.Context(), newClaim(1)); !errors.Is(err, errDisk) {
		t.Fatalf("Claim of a row that was made again = error %v; want %v", err, errDisk)
	}
	mustClaim(t, s, newClaim(1))
	expect("Claim of a row that another has made again", steps, settled)
}

func TestAFirstClaimOfNoWorkerMakesNothing(t *testing.T) {
	for _, only := range [][]int64{{}, {2}, {-1, 99}} {
		s := newStore(t, t.TempDir(), Config{})
		c := newClaim(2)
		c.Only = only
		var full *lease.NoFreeWorkerError
		if _, err := s.Claim(t.Context(), c); !errors.As(err, &full) || full.Rows != 0 {
			t.Errorf("Claim(Only %v) = error %v; want a *lease.NoFreeWorkerError about 0 rows", only, err)
		}
		if files, err := os.ReadDir(s.dir); len(files) != 0 || err != nil {
			t.Errorf("files after Claim(Only %v) = %v, error %v; want none", only, files, err)
		}
	}
}

// Someone who copies a space to have another one like it also copies what names it;
// and if he edits its meta file so that it fits, the slots still say where they
// belong.
func TestASpaceThatWasCopiedIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		to   lease.Space
		edit *strings.Replacer
	}{
		{"to another namespace", lease.Space{Namespace: "shop"}, strings.NewReplacer()},
		{"to another datacenter", lease.Space{Namespace: "orders", Datacenter: 1}, strings.NewReplacer()},
		{"to another namespace, its meta file edited", lease.Space{Namespace: "shop"}, strings.NewReplacer(`"orders"`, `"shop"`)},
		{"to another datacenter, its meta file edited", lease.Space{Namespace: "orders", Datacenter: 1}, strings.NewReplacer(`"datacenter": 0`, `"datacenter": 1`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t, t.TempDir(), Config{})
			from, c := newClaim(2), newClaim(2)
			mustClaim(t, s, from)
			c.Space.Namespace, c.Space.Datacenter = tt.to.Namespace, tt.to.Datacenter
			dir := s.spaceDir(c.Space)
			if err := os.CopyFS(dir, os.DirFS(s.spaceDir(from.Space))); err != nil {
				t.Fatal(err)
			}
			meta, err := os.ReadFile(filepath.Join(dir, metaName))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, metaName), []byte(tt.edit.Replace(string(meta))), 0o666); err != nil {
				t.Fatal(err)
			}
			if reply, err := s.Claim(t.Context(), c); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "was copied there") {
				t.Errorf("Claim in a space that was copied = %+v, error %v; want %v, that it was copied there", reply, err, ErrDamaged)
			}
		})
	}
}

// What was made of a space in vain would be in everybody's way on a disk that is full.
func TestASpaceThatCannotBeMadeLeavesNothing(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(64)
	_, err := s.Claim(&ending{Context: t.Context(), after: 30}, c)
	if !errors.Is(err, context.Canceled) || definite(err) || !strings.Contains(err.Error(), "make the rows") || strings.Contains(err.Error(), "\n") {
		t.Errorf("Claim = error %v; want %v, in one line", err, context.Canceled)
	}
	left, err := os.ReadDir(filepath.Dir(s.spaceDir(c.Space)))
	if err != nil || len(left) > 0 {
		t.Errorf("left in the directory of the namespace: %v, error %v; want nothing", left, err)
	}
	if got := mustClaim(t, s, c); got.Before != 0 {
		t.Errorf("Claim afterwards: Before = %d; want 0, as in a new space", got.Before)
	}
}

// An ending context has ended when it has been asked so many times.
type ending struct {
	context.Context
	after int64
	asked atomic.Int64
}

func (e *ending) Err() error {
	if e.asked.Add(1) > e.after {
		return context.Canceled
	}
	return nil
}
