//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A space that has gone missing is lost state, not a new space.
func TestASpaceThatIsGoneStartsLaterThanItCanHaveReserved(t *testing.T) {
	for _, gone := range []string{"ns-orders", "ns-orders/dc-0"} {
		for _, guard := range []leasestore.Millis{0, 9_000} {
			now := time.UnixMilli(1_800_000_000_000)
			log, text := logged()
			dir := t.TempDir()
			config := Config{Now: func() time.Time { return now }, Logger: log}
			s := newStore(t, dir, config)
			claim := func() leasestore.Claim {
				c := newClaim(2)
				c.Now, c.Window, c.Skew, c.Guard = leasestore.MillisOf(now), 60_000, 5_000, guard
				return c
			}
			c := claim()
			if got := mustClaim(t, s, c); got.Before != 0 || text.Len() > 0 {
				t.Fatalf("first Claim = %+v, log %q; want one that begins at once", got, text)
			}
			if err := os.RemoveAll(filepath.Join(dir, gone)); err != nil {
				t.Fatal(err)
			}
			s = newStore(t, dir, config) // what was known in memory is gone as well
			limit := leasestore.MillisOf(now) + 60_000 + max(5_000, guard)
			// Under the guard rows are free earlier, but IDs begin later anyway.
			if _, err := s.Claim(t.Context(), claim()); guard == 0 {
				var full *leasestore.NoFreeWorkerError
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
	for _, sp := range []leasestore.Space{
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

// The note that a row was claimed is on disk before the claim is, and not before the row, so
// that a maker which is stopped has not used up the quick start.
func TestANoteIsYoungerThanItsRowAndOlderThanItsClaim(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	steps := events(s)
	c := newClaim(1024)
	c.Only = []int64{7}
	mustClaim(t, s, c)
	want := []string{
		"write meta", "fsync meta", "sync dc-0.making", // then the space is renamed
		"write 7.making", "fsync 7.making", // and the slot
		"make 7.claimed", "sync dc-0", "sync ns-orders",
		"make made-ns-orders-dc-0", "sync " + filepath.Base(s.dir),
		"make 7.held", "fsync 7", "write 7", "fsync 7",
		"make 7.past", "write 7.past", // which is not worth a sync
	}
	if !slices.Equal(*steps, want) {
		t.Errorf("steps of a first claim = %q; want %q", *steps, want)
	}
}

// A first claim makes one slot and not 1,024, for which a disk that takes 50 ms per sync would
// need longer than the quarter of a window that a claim may take.
func TestAFirstClaimOnASlowDiskIsDoneAtTheFirstTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, t.TempDir(), Config{})
		slow(s, 50*time.Millisecond)
		for _, only := range [][]int64{{7}, nil} { // in the opposite order, nil might yield 7
			c := newClaim(1024)
			c.Window, c.Skew, c.Only = 4_000, 5_000, only
			ctx, cancel := context.WithTimeout(t.Context(), c.Window.Duration()/4)
			defer cancel()
			if reply, err := s.Claim(ctx, c); err != nil {
				t.Errorf("Claim(Only %v) with 50 ms for each sync = %+v, error %v; want a row", only, reply, err)
			}
		}
	})
}

// slow makes each sync of s take d.
func slow(s *Store, d time.Duration) {
	sync, open := s.sync, s.open
	s.sync = func(dir string) error {
		time.Sleep(d)
		return sync(dir)
	}
	s.open = func(path string, create bool) (file, error) {
		f, err := open(path, create)
		return slowFile{f, d}, err
	}
}

type slowFile struct {
	file
	d time.Duration
}

func (f slowFile) Sync() error {
	time.Sleep(f.d)
	return f.file.Sync()
}

// The next attempt continues from what an abandoned one has left.
func TestClaimsOnADiskTooSlowForOneComeToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, t.TempDir(), Config{})
		slow(s, 150*time.Millisecond)
		var err error
		for range 3 {
			c := newClaim(1024)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err = s.Claim(ctx, c); err == nil {
				return
			}
		}
		t.Errorf("third Claim of 1 s with 150 ms for each sync = error %v; want a row", err)
	})
}

// TestAKillInAFirstClaimLeavesNothingInTheWay looks at the directory as each step of a first
// claim leaves it. The next process can claim any row there at once.
func TestAKillInAFirstClaimLeavesNothingInTheWay(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	var left []string
	onStep(s, func(string) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
			t.Fatal(err)
		}
		left = append(left, dir)
	})
	c := newClaim(2)
	c.Only = []int64{1}
	mustClaim(t, s, c)
	if len(left) != 16 {
		t.Errorf("steps of a first claim = %d; want 16", len(left))
	}
	for i, dir := range left[:len(left)-3] { // the last sync, and the record, come after the write
		log, text := logged()
		next := newStore(t, dir, Config{Logger: log})
		for range 2 {
			if got := mustClaim(t, next, newClaim(2)); got.Before != 0 {
				t.Errorf("Claim after a kill before step %d: %+v; want a row that begins at once", i, got)
			}
		}
		if text.Len() > 0 {
			t.Errorf("Claim after a kill before step %d logs %q; want nothing", i, text)
		}
	}
}

// events makes s record what it makes, writes and syncs, by the names of the files.
func events(s *Store) *[]string {
	var list []string
	onStep(s, func(step string) { list = append(list, step) })
	return &list
}

// onStep calls f before each step of an operation that changes something.
func onStep(s *Store, f func(step string)) {
	sync, open := s.sync, s.open
	s.sync = func(dir string) error {
		f("sync " + filepath.Base(dir))
		return sync(dir)
	}
	s.open = func(path string, create bool) (file, error) {
		name := filepath.Base(path)
		if _, err := os.Lstat(path); create && err != nil && name != metaName && filepath.Ext(name) != making {
			f("make " + name)
		}
		opened, err := open(path, create)
		return noting{opened, f, name}, err
	}
}

type noting struct {
	file
	step func(string)
	name string
}

func (n noting) WriteAt(b []byte, at int64) (int, error) {
	n.step("write " + n.name)
	return n.file.WriteAt(b, at)
}

func (n noting) Sync() error {
	n.step("fsync " + n.name)
	return n.file.Sync()
}

// The process that made a space or a slot may have been killed before it synced the name, and
// what others acknowledge there must not be lost with it.
func TestNothingIsAcknowledgedInAFileThatMayVanish(t *testing.T) {
	dir := t.TempDir()
	maker := newStore(t, dir, Config{AllowFreshState: true})
	maker.sync = func(dir string) error {
		if filepath.Base(dir) == "dc-0" {
			return errDisk
		}
		return syncDir(dir)
	}
	c := newClaim(1)
	if _, err := maker.Claim(t.Context(), c); !errors.Is(err, errDisk) {
		t.Fatalf("Claim = error %v; want %v", err, errDisk)
	}
	root := "sync " + filepath.Base(dir)
	expect := func(what string, got *[]string, want ...string) {
		t.Helper()
		if !slices.Equal(*got, want) {
			t.Errorf("%s: steps = %q; want %q", what, *got, want)
		}
		*got = nil
	}

	s := newStore(t, dir, Config{AllowFreshState: true})
	steps := events(s)
	reply := mustClaim(t, s, c)
	expect("Claim in a space that was found", steps,
		"sync dc-0", "sync ns-orders", "make made-ns-orders-dc-0", root, "make 0.held", "fsync 0", "write 0", "fsync 0", "make 0.past", "write 0.past")
	if err := s.Release(t.Context(), releaseOf(c, reply)); err != nil {
		t.Fatal(err)
	}
	mustClaim(t, s, newClaim(1))
	expect("Release, and a second Claim of the row", steps, "fsync 0", "write 0", "fsync 0", "fsync 0", "write 0", "fsync 0", "write 0.past")

	// The slot goes missing, and the process that makes it again is stopped.
	if err := os.Remove(slotFile(s, 0)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := maker.Claim(t.Context(), newClaim(1)); !errors.Is(err, errDisk) {
			t.Fatalf("Claim of a missing row = error %v; want %v", err, errDisk)
		}
	}
	mustClaim(t, s, newClaim(1))
	expect("Claim of a row that another has made again", steps,
		"sync dc-0", "sync ns-orders", root, "fsync 0", "write 0", "fsync 0", "write 0.past")
}

func TestAFirstClaimOfNoWorkerMakesNothing(t *testing.T) {
	for _, only := range [][]int64{{}, {2}, {-1, 99}} {
		s := newStore(t, t.TempDir(), Config{})
		c := newClaim(2)
		c.Only = only
		var full *leasestore.NoFreeWorkerError
		if _, err := s.Claim(t.Context(), c); !errors.As(err, &full) || full.Rows != 0 {
			t.Errorf("Claim(Only %v) = error %v; want a *lease.NoFreeWorkerError about 0 rows", only, err)
		}
		if files, err := os.ReadDir(s.dir); len(files) != 0 || err != nil {
			t.Errorf("files after Claim(Only %v) = %v, error %v; want none", only, files, err)
		}
	}
}

// A space that is copied to get another one like it takes its identity along. Even if its meta
// file is edited to fit, the slots still say where they belong.
func TestASpaceThatWasCopiedIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		to   leasestore.Space
		edit *strings.Replacer
	}{
		{"to another namespace", leasestore.Space{Namespace: "shop"}, strings.NewReplacer()},
		{"to another datacenter", leasestore.Space{Namespace: "orders", Datacenter: 1}, strings.NewReplacer()},
		{"to another namespace, its meta file edited", leasestore.Space{Namespace: "shop"}, strings.NewReplacer(`"orders"`, `"shop"`)},
		{"to another datacenter, its meta file edited", leasestore.Space{Namespace: "orders", Datacenter: 1}, strings.NewReplacer(`"datacenter": 0`, `"datacenter": 1`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t, t.TempDir(), Config{})
			from, c := newClaim(2), newClaim(2)
			mustClaim(t, s, from)
			mustClaim(t, s, newClaim(2)) // so that both rows have a slot
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

// The remains of a space that could not be made would block everyone on a full disk.
func TestASpaceThatCannotBeMadeLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // on a busy machine the grace would end in real time
		s := newStore(t, t.TempDir(), Config{})
		c := newClaim(64)
		ctx, cancel := context.WithCancel(t.Context())
		onStep(s, func(step string) {
			if step == "sync dc-0"+making {
				cancel()
			}
		})
		_, err := s.Claim(ctx, c)
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
	})
}

// A space that another process is making at this moment either does not exist yet or is
// complete.
func TestASpaceThatAppearsIsNotTakenForADamagedOne(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(1)
	mustClaim(t, s, c)
	dir := s.spaceDir(c.Space)
	for range 200 {
		if err := os.Rename(dir, dir+making); err != nil {
			t.Fatal(err)
		}
		appears := make(chan error, 1)
		go func() { appears <- os.Rename(dir+making, dir) }()
		_, err := s.space(c.Space)
		for errors.Is(err, fs.ErrNotExist) {
			_, err = s.space(c.Space)
		}
		if err != nil {
			t.Errorf("space that appears = error %v; want it, or %v", err, fs.ErrNotExist)
		}
		if err := <-appears; err != nil {
			t.Fatal(err)
		}
	}
}
