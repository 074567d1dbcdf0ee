//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/filesystem"
)

func token() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// newClaim returns a claim in a space of a few workers, whose window is within the skew, so
// that a restart is possible at once, and longer than any test takes, even on a slow disk.
func newClaim(workers int64) leasestore.Claim {
	return leasestore.Claim{
		Space: leasestore.Space{Namespace: "orders", Workers: workers, Layout: "bits 41/5/5/12"},
		Owner: token(), Nonce: token(),
		Window: 600_000, Skew: 700_000, Now: leasestore.MillisOf(time.Now()),
	}
}

func newStore(t *testing.T, dir string, c Config) *Store {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := New(dir, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClaim(t *testing.T, s *Store, c leasestore.Claim) leasestore.Reply {
	t.Helper()
	reply, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim(%+v) = error %v; want a row", c, err)
	}
	return reply
}

func renewalOf(c leasestore.Claim, r leasestore.Reply) leasestore.Renewal {
	return leasestore.Renewal{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner, Known: []string{r.Row.Nonce}, Nonce: token(),
		Until: r.Row.Until, Window: c.Window, Skew: c.Skew, Now: leasestore.MillisOf(time.Now()),
	}
}

func releaseOf(c leasestore.Claim, r leasestore.Reply) leasestore.Release {
	return leasestore.Release{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner, Known: []string{r.Row.Nonce}, Nonce: token(),
		End: r.Row.Until,
	}
}

func slotFile(s *Store, worker int64) string {
	return filepath.Join(s.dir, "ns-orders", "dc-0", strconv.FormatInt(worker, 10))
}

// logged returns a logger and the buffer that it writes to.
func logged() (*slog.Logger, *bytes.Buffer) {
	var b bytes.Buffer
	return slog.New(slog.NewTextHandler(&b, nil)), &b
}

func TestNewRefusesWhatIsNoDirectory(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, dir, want string
	}{
		{"no name", "", "want a directory"},
		{"missing", filepath.Join(dir, "missing"), "make the directory first"},
		{"a file", file, "want a directory"},
		{"below a file", filepath.Join(file, "x"), "not a directory"},
	} {
		if s, err := New(tt.dir, Config{}); s != nil || err == nil || !strings.HasPrefix(err.Error(), "filelease: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: New(%q) = %v, error %v; want one that contains %q", tt.name, tt.dir, s, err, tt.want)
		}
	}
}

func TestNewRefusesADirectoryThatIsNotWritable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED: root may write everywhere")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if _, err := New(dir, Config{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("New of a directory of mode 0555 = error %v; want %v", err, fs.ErrPermission)
	}
}

func TestASlotThatMayNotBeOpenedIsAnErrorThatSaysNothing(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(1)
	reply := mustClaim(t, s, c)
	s.open = func(path string, _ bool) (file, error) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
	}
	if _, err := s.Renew(t.Context(), renewalOf(c, reply)); !errors.Is(err, fs.ErrPermission) || definite(err) {
		t.Errorf("Renew = error %v; want %v", err, fs.ErrPermission)
	}
	if _, err := s.Claim(t.Context(), newClaim(1)); !errors.Is(err, fs.ErrPermission) || definite(err) {
		t.Errorf("Claim = error %v; want %v", err, fs.ErrPermission)
	}
}

func TestTmpfsIsWarnedOf(t *testing.T) {
	const shm = "/dev/shm"
	if warning, err := filesystem.Check(shm, false); err != nil || !strings.Contains(warning, "tmpfs") {
		t.Skipf("SKIPPED: %s is not a tmpfs", shm)
	}
	dir, err := os.MkdirTemp(shm, "filelease-*") //nolint:usetesting // the directory has to be there
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	log, text := logged()
	newStore(t, dir, Config{Logger: log})
	if !strings.Contains(text.String(), "tmpfs") {
		t.Errorf("New on a tmpfs logged %q; want a warning", text)
	}
}

func TestDirectoryNamesAreSafeAndDistinct(t *testing.T) {
	seen := map[string]string{}
	for _, namespace := range []string{".", "..", "a", "A", "+a", "aA", "Aa", "a.", "a..", "con", "CON", "nul.txt", "-", "_", "-rf", strings.Repeat("Z", 64)} {
		name := namespaceDir(namespace)
		if filepath.Base(name) != name || !filepath.IsLocal(name) || strings.HasSuffix(name, ".") || len(name) > 200 || name != strings.ToLower(name) {
			t.Errorf("namespaceDir(%q) = %q; want a plain name", namespace, name)
		}
		if other, ok := seen[name]; ok && namespace != "+a" && other != "+a" { // no namespace contains +
			t.Errorf("namespaceDir(%q) = namespaceDir(%q) = %q; want two", namespace, other, name)
		}
		seen[name] = namespace
	}
}

func TestANumberOfWorkersThatDiffersIsRefused(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	mustClaim(t, s, newClaim(2))
	if _, err := s.Claim(t.Context(), newClaim(4)); err == nil || !strings.Contains(err.Error(), "Space.Workers is 4: want 2") {
		t.Errorf("Claim in a space of 2 workers that asks for 4 = error %v; want one that says so", err)
	}
}

func TestASpaceIsMadeWholeAfterItsMakerWasKilled(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	draft := filepath.Join(s.dir, "ns-orders", "dc-0"+making)
	if err := os.MkdirAll(draft, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(draft, metaName), []byte("half"), 0o666); err != nil {
		t.Fatal(err)
	}
	if rows, _, err := s.Rows(t.Context(), newClaim(2).Space); len(rows) != 0 || err != nil {
		t.Errorf("Rows of a space that is being made = %v, error %v; want none", rows, err)
	}
	mustClaim(t, s, newClaim(2))
	if rows, _, err := s.Rows(t.Context(), newClaim(2).Space); len(rows) != 2 || err != nil {
		t.Errorf("Rows = %v, error %v; want 2", rows, err)
	}
}

// TestDamageIsRefused: every way in which a slot can be wrong is an error, and no operation
// changes the file.
func TestDamageIsRefused(t *testing.T) {
	t.Parallel()
	overwrite := func(path string, at int64, b []byte) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt(b, at)
		return err
	}
	copyFile := func(to, from string) error {
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return overwrite(to, 0, b)
	}
	for _, tt := range []struct {
		name   string
		damage func(s *Store, path string) error
	}{
		{"empty", func(_ *Store, path string) error { return os.Truncate(path, 0) }},
		{"cut in the second place", func(_ *Store, path string) error { return os.Truncate(path, placeSize+recordSize) }},
		{"cut by one byte", func(_ *Store, path string) error { return os.Truncate(path, slotSize-1) }},
		{"longer", func(_ *Store, path string) error { return os.Truncate(path, slotSize+1) }},
		{"both records bad", func(_ *Store, path string) error {
			return errors.Join(overwrite(path, 100, []byte("x")), overwrite(path, placeSize+100, []byte("x")))
		}},
		{"all zero", func(_ *Store, path string) error { return overwrite(path, 0, make([]byte, slotSize)) }},
		{"copied from another slot", func(s *Store, path string) error {
			c := newClaim(2)
			c.Only = []int64{1}
			reply, err := s.Claim(context.Background(), c)
			return errors.Join(err, copyFile(path, slotFile(s, 1)), s.Release(context.Background(), releaseOf(c, reply)))
		}},
		{"copied from another datacenter", func(s *Store, path string) error {
			c := newClaim(2)
			c.Space.Datacenter = 1
			c.Only = []int64{0}
			_, err := s.Claim(context.Background(), c)
			return errors.Join(err, copyFile(path, filepath.Join(s.dir, "ns-orders", "dc-1", "0")))
		}},
		{"copied from another directory", func(_ *Store, path string) error {
			other := newStore(t, t.TempDir(), Config{})
			c := newClaim(2)
			c.Only = []int64{0}
			mustClaim(t, other, c)
			return copyFile(path, slotFile(other, 0))
		}},
		{"a meta file that is missing", func(_ *Store, path string) error { return os.Remove(filepath.Join(filepath.Dir(path), metaName)) }},
		{"a meta file of no workers", func(_ *Store, path string) error {
			name := filepath.Join(filepath.Dir(path), metaName)
			b, err := os.ReadFile(name)
			return errors.Join(err, os.WriteFile(name, bytes.Replace(b, []byte(`"workers": 2`), []byte(`"workers": 0`), 1), 0o666))
		}},
		{"a meta file that was cut off", func(_ *Store, path string) error {
			return os.Truncate(filepath.Join(filepath.Dir(path), metaName), 20)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t, t.TempDir(), Config{})
			c := newClaim(2)
			c.Only = []int64{0}
			reply := mustClaim(t, s, c)
			if err := tt.damage(s, slotFile(s, 0)); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(slotFile(s, 0))
			if err != nil {
				t.Fatal(err)
			}
			again := newClaim(2)
			again.Only = []int64{0}
			_, claimErr := s.Claim(t.Context(), again)
			_, renewErr := s.Renew(t.Context(), renewalOf(c, reply))
			_, _, rowsErr := s.Rows(t.Context(), c.Space)
			for name, err := range map[string]error{
				"Claim": claimErr, "Renew": renewErr, "Release": s.Release(t.Context(), releaseOf(c, reply)), "Rows": rowsErr,
			} {
				// A renewal is told to claim another row, if there are others.
				lost := name == "Renew" && !strings.Contains(tt.name, "meta")
				if !errors.Is(err, ErrDamaged) || errors.Is(err, leasestore.ErrLost) != lost {
					t.Errorf("%s = error %v; want %v, lost: %v", name, err, ErrDamaged, lost)
				}
			}
			if after, _ := os.ReadFile(slotFile(s, 0)); !bytes.Equal(before, after) {
				t.Error("the damaged file was changed; want it left as it is")
			}
			if !strings.Contains(tt.name, "meta") {
				if got, err := s.Claim(t.Context(), newClaim(2)); err != nil || got.Row.Worker != 1 {
					t.Errorf("Claim of any row = worker %d, error %v; want 1, which is in order", got.Row.Worker, err)
				}
			}
		})
	}
}

func TestASchemaOfAnotherVersionIsRefused(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	mustClaim(t, s, newClaim(2))
	path := filepath.Join(s.dir, "ns-orders", "dc-0", metaName)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(b, []byte(`"schema": 2`), []byte(`"schema": 3`), 1), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), newClaim(2)); err == nil || !strings.Contains(err.Error(), "schema version 3: want 2") {
		t.Errorf("Claim = error %v; want one that names version 3", err)
	}
}

func TestADirectoryPutInThePlaceOfTheStoresEndsTheLease(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s := newStore(t, dir, Config{})
	c := newClaim(2)
	reply := mustClaim(t, s, c)
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), newClaim(2)); !errors.Is(err, ErrReplaced) || definite(err) {
		t.Errorf("Claim = error %v; want %v: the rows are elsewhere", err, ErrReplaced)
	}
	var lost *leasestore.LostError
	if _, err := s.Renew(t.Context(), renewalOf(c, reply)); !errors.Is(err, ErrReplaced) || !errors.As(err, &lost) || lost.Reason != replaced {
		t.Errorf("Renew = error %v; want it lost, because of %v", err, ErrReplaced)
	}
	if len(s.held) != 0 {
		t.Errorf("holder's locks after that = %d; want 0", len(s.held))
	}
	if err := s.Release(t.Context(), releaseOf(c, reply)); !errors.Is(err, ErrReplaced) || !errors.Is(err, leasestore.ErrLost) {
		t.Errorf("Release = error %v; want it lost, because of %v", err, ErrReplaced)
	}
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".old")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context(), renewalOf(c, reply)); !errors.Is(err, ErrReplaced) {
		t.Errorf("Renew without a directory = error %v; want %v", err, ErrReplaced)
	}
}

func TestAMissingSlotStartsLaterThanItCanHaveReserved(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	log, text := logged()
	s := newStore(t, t.TempDir(), Config{Now: func() time.Time { return now }, Logger: log})
	claim := func() leasestore.Claim {
		c := newClaim(2)
		c.Only, c.Now, c.Window, c.Skew = []int64{0}, leasestore.MillisOf(now), 60_000, 5_000
		return c
	}
	c := claim()
	reply := mustClaim(t, s, c)
	if err := os.Remove(slotFile(s, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context(), renewalOf(c, reply)); !errors.Is(err, leasestore.ErrLost) {
		t.Errorf("Renew of a missing row = error %v; want %v", err, leasestore.ErrLost)
	}
	limit := leasestore.MillisOf(now) + 60_000 + 5_000
	_, err := s.Claim(t.Context(), claim())
	var full *leasestore.NoFreeWorkerError
	if !errors.As(err, &full) || full.Earliest != limit.Time() {
		t.Fatalf("Claim of a missing row = error %v; want none free before %s", err, limit.Time())
	}
	if !strings.Contains(text.String(), "missing") {
		t.Errorf("log = %q; want a warning", text)
	}
	now = now.Add(30 * time.Second)
	if _, err := s.Claim(t.Context(), claim()); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim half a window later = error %v; want %v: the limit stays", err, leasestore.ErrNoFreeWorker)
	}
	now = now.Add(30 * time.Second)
	again := claim()
	if got := mustClaim(t, s, again); again.From(got) != limit {
		t.Errorf("first moment of the row = %d; want %d", again.From(got), limit)
	}
}

func TestAllowFreshStateMakesAMissingSlotAtOnce(t *testing.T) {
	dir := t.TempDir()
	mustClaim(t, newStore(t, dir, Config{}), newClaim(1))
	s := newStore(t, dir, Config{AllowFreshState: true})
	if err := os.Remove(slotFile(s, 0)); err != nil {
		t.Fatal(err)
	}
	if got := mustClaim(t, s, newClaim(1)); got.Before != 0 {
		t.Errorf("Claim of a missing row with AllowFreshState: Before = %d; want 0", got.Before)
	}
}

// A row that was never claimed has no file either, and is not lost.
func TestARowWithoutAFileIsMissingOnlyIfItWasClaimed(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(2)
	c.Only = []int64{1}
	mustClaim(t, s, c)
	want := func(workers ...int64) {
		t.Helper()
		rows, _, err := s.Rows(t.Context(), c.Space)
		var got []int64
		for _, row := range rows {
			got = append(got, row.Worker)
		}
		if err != nil || !slices.Equal(got, workers) {
			t.Errorf("Rows = workers %d, error %v; want %d", got, err, workers)
		}
	}
	want(0, 1)
	if err := os.Remove(slotFile(s, 1)); err != nil {
		t.Fatal(err)
	}
	want(0)
	if got := mustClaim(t, s, newClaim(2)); got.Row.Worker != 0 || got.Before != 0 {
		t.Errorf("Claim beside a missing row = %+v; want worker 0, at once", got)
	}
}

// An existing slot needs no further room.
func TestARowThatHasItsFileWillDoOnAFullDisk(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(64)
	first := mustClaim(t, s, c)
	if err := s.Release(t.Context(), releaseOf(c, first)); err != nil {
		t.Fatal(err)
	}
	open := s.open
	s.open = func(path string, create bool) (file, error) {
		if filepath.Ext(path) == making {
			f, err := open(path, create)
			return &fault{file: f, write: syscall.ENOSPC}, err
		}
		return open(path, create)
	}
	if got := mustClaim(t, s, newClaim(64)); got.Row.Worker != first.Row.Worker {
		t.Errorf("Claim on a full disk = worker %d; want %d, whose slot is there", got.Row.Worker, first.Row.Worker)
	}
	if _, err := s.Claim(t.Context(), newClaim(64)); !errors.Is(err, syscall.ENOSPC) || definite(err) {
		t.Errorf("Claim of a further row on a full disk = error %v; want %v", err, syscall.ENOSPC)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, "ns-orders", "dc-0", "*"+making)); len(left) > 0 || err != nil {
		t.Errorf("left after that: %q, error %v; want nothing", left, err)
	}
	s.open = open
	mustClaim(t, s, newClaim(64))
}

func TestAMissingSlotIsNamedWhenAnyWouldDo(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	mustClaim(t, s, newClaim(1))
	if err := os.Remove(slotFile(s, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), newClaim(1)); !errors.Is(err, ErrMissing) || !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim = error %v; want %v", err, ErrMissing)
	}
}

func TestAWriteIntoASlotThatWasDeletedMeanwhileIsAnError(t *testing.T) {
	for name, away := range map[string]func(path string) error{
		"deleted": os.Remove,
		"replaced by a copy": func(path string) error {
			b, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".copy", b, 0o666), os.Rename(path+".copy", path))
		},
	} {
		s := newStore(t, t.TempDir(), Config{})
		c := newClaim(1)
		reply := mustClaim(t, s, c)
		open := s.open
		s.open = func(path string, create bool) (file, error) {
			f, err := open(path, create)
			if err == nil && path == slotFile(s, 0) {
				err = away(path)
			}
			return f, err
		}
		if _, err := s.Renew(t.Context(), renewalOf(c, reply)); err == nil || definite(err) {
			t.Errorf("Renew in a slot that was %s = error %v; want one that says nothing", name, err)
		}
	}
}

func TestALiveHoldersRowIsNotTakenBeforeItsLimit(t *testing.T) {
	dir := t.TempDir()
	a, b := newStore(t, dir, Config{}), newStore(t, dir, Config{})
	c := newClaim(1)
	reply := mustClaim(t, a, c)
	for name, s := range map[string]*Store{"the same": a, "another": b} {
		if _, err := s.Claim(t.Context(), newClaim(1)); !errors.Is(err, leasestore.ErrNoFreeWorker) {
			t.Errorf("Claim by %s process = error %v; want %v", name, err, leasestore.ErrNoFreeWorker)
		}
	}
	// The same holds after a request of the holder that was overtaken is refused.
	first := renewalOf(c, reply)
	next, err := a.Renew(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Renew(t.Context(), first); !errors.Is(err, leasestore.ErrLost) {
		t.Fatalf("Renew with an old nonce = error %v; want %v", err, leasestore.ErrLost)
	}
	if err := a.Release(t.Context(), releaseOf(c, reply)); !errors.Is(err, leasestore.ErrLost) {
		t.Fatalf("Release with an old nonce = error %v; want %v", err, leasestore.ErrLost)
	}
	if _, err := b.Claim(t.Context(), newClaim(1)); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim after refused requests of the holder = error %v; want %v", err, leasestore.ErrNoFreeWorker)
	}
	_ = next
}

func TestADeadHoldersRowIsTakenAtOnceAndBeginsAtItsLimit(t *testing.T) {
	dir := t.TempDir()
	a, b := newStore(t, dir, Config{}), newStore(t, dir, Config{})
	before := mustClaim(t, a, newClaim(1))
	if err := a.Close(); err != nil { // as when the process ends
		t.Fatal(err)
	}
	c := newClaim(1)
	got := mustClaim(t, b, c)
	if c.From(got) != before.Row.Until || got.Row.Until < before.Row.Until || got.Row.Epoch != before.Row.Epoch+1 {
		t.Errorf("Claim after %+v = %+v; want it to begin at the limit before", before.Row, got)
	}

	// But only if the limit is no further ahead than the skew.
	far := newClaim(1)
	far.Window, far.Skew, far.Space.Datacenter = 600_000, 500_000, 1
	a = newStore(t, dir, Config{})
	mustClaim(t, a, far)
	_ = a.Close()
	far.Owner = token()
	if _, err := b.Claim(t.Context(), far); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim of a dead holder's row, further ahead than the skew = error %v; want %v", err, leasestore.ErrNoFreeWorker)
	}
}

func TestATakerOfAStoppedHoldersRowIsNotTakenForDead(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	clock := Config{Now: func() time.Time { return now }}
	dir := t.TempDir()
	a, b, third := newStore(t, dir, clock), newStore(t, dir, clock), newStore(t, dir, clock)
	claim := func() leasestore.Claim {
		c := newClaim(1)
		c.Now = leasestore.MillisOf(now)
		return c
	}
	stopped := claim()
	old := mustClaim(t, a, stopped)
	now = old.Row.Until.Time() // a is idle and still has its lock
	taker := claim()
	mine := mustClaim(t, b, taker)
	_, err := a.Renew(t.Context(), renewalOf(stopped, old)) // and lets go
	if !errors.Is(err, leasestore.ErrLost) {
		t.Fatalf("Renew of the row that was taken = error %v; want %v", err, leasestore.ErrLost)
	}
	if _, err := third.Claim(t.Context(), claim()); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim of the taker's row = error %v; want %v: it lives", err, leasestore.ErrNoFreeWorker)
	}
	// A renewal gets the lock, so the taker's death is noticed.
	r := renewalOf(taker, mine)
	r.Now = leasestore.MillisOf(now)
	if _, err := b.Renew(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	mustClaim(t, third, claim())
}

// Its lock would block whoever has the slot after it was made again.
func TestALeaseThatIsOverHoldsNoLock(t *testing.T) {
	renew := func(s *Store, c leasestore.Claim, r leasestore.Reply) error {
		_, err := s.Renew(t.Context(), renewalOf(c, r))
		return err
	}
	release := func(s *Store, c leasestore.Claim, r leasestore.Reply) error {
		return s.Release(t.Context(), releaseOf(c, r))
	}
	remove := func(s *Store) error { return os.Remove(slotFile(s, 0)) }
	removeAll := func(s *Store) error { return os.RemoveAll(filepath.Join(s.dir, "ns-orders")) }
	mark := func(s *Store) error { return os.WriteFile(poisonPath(slotFile(s, 0)), nil, 0o666) }
	cut := func(s *Store) error { return os.Truncate(slotFile(s, 0), 0) }
	for _, tt := range []struct {
		name   string
		damage func(*Store) error
		call   func(*Store, leasestore.Claim, leasestore.Reply) error
		want   error
	}{
		{"renewal without its slot", remove, renew, leasestore.ErrLost},
		{"renewal without its space", removeAll, renew, leasestore.ErrLost},
		{"renewal in a poisoned slot", mark, renew, leasestore.ErrLost},
		{"renewal in a damaged slot", cut, renew, leasestore.ErrLost},
		{"release without its slot", remove, release, leasestore.ErrLost},
		{"release in a poisoned slot", mark, release, ErrPoisoned},
		{"release in a damaged slot", cut, release, ErrDamaged},
	} {
		s := newStore(t, t.TempDir(), Config{})
		c := newClaim(1)
		reply := mustClaim(t, s, c)
		if err := tt.damage(s); err != nil {
			t.Fatal(err)
		}
		if err := tt.call(s, c, reply); !errors.Is(err, tt.want) {
			t.Errorf("%s = error %v; want %v", tt.name, err, tt.want)
		}
		if len(s.held) != 0 {
			t.Errorf("after a %s the store holds %d locks; want none", tt.name, len(s.held))
		}
	}
}

// A file system, above all a network one, may refuse the holder's lock although it granted the
// slot's. The holder then goes without, and must not be taken for dead.
func TestAHolderWithoutALockIsNotTakenForDead(t *testing.T) {
	dir := t.TempDir()
	a, b := newStore(t, dir, Config{}), newStore(t, dir, Config{})
	refuseHolders(a)
	c := newClaim(1)
	reply := mustClaim(t, a, c)
	if len(a.held) != 0 {
		t.Errorf("a store that was refused the lock holds %d; want none", len(a.held))
	}
	if got, err := b.Claim(t.Context(), newClaim(1)); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim of the row of %+v = %+v, error %v; want %v", reply.Row, got.Row, err, leasestore.ErrNoFreeWorker)
	}
	if _, err := a.Renew(t.Context(), renewalOf(c, reply)); err != nil {
		t.Errorf("Renew by the holder = error %v; want none", err)
	}
}

// The same holds for a holder that has its lock, if another process is refused the attempt.
func TestAHolderIsNotTakenForDeadIfItsLockCannotBeTried(t *testing.T) {
	dir := t.TempDir()
	a, b := newStore(t, dir, Config{}), newStore(t, dir, Config{})
	reply := mustClaim(t, a, newClaim(1))
	refuseHolders(b)
	if got, err := b.Claim(t.Context(), newClaim(1)); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim of the row of %+v = %+v, error %v; want %v", reply.Row, got.Row, err, leasestore.ErrNoFreeWorker)
	}
}

// An unlockable file is on a file system that has run out of locks.
type unlockable struct{ file }

func (unlockable) tryLock() (bool, error) { return false, syscall.ENOLCK }

// refuseHolders makes s fail to get holders' locks.
func refuseHolders(s *Store) {
	open := s.open
	s.open = func(path string, create bool) (file, error) {
		f, err := open(path, create)
		if err == nil && path == lockPath(slotFile(s, 0)) {
			f = unlockable{f}
		}
		return f, err
	}
}

func TestReleaseLetsGo(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(1)
	reply := mustClaim(t, s, c)
	if err := s.Release(t.Context(), releaseOf(c, reply)); err != nil {
		t.Fatal(err)
	}
	if len(s.held) != 0 {
		t.Errorf("holder's locks after Release = %d; want 0", len(s.held))
	}
}

func TestCloseEndsTheStore(t *testing.T) {
	s := newStore(t, t.TempDir(), Config{})
	c := newClaim(1)
	reply := mustClaim(t, s, c)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close() = error %v; want nil", err)
		}
	}
	_, claimErr := s.Claim(t.Context(), c)
	_, renewErr := s.Renew(t.Context(), renewalOf(c, reply))
	_, _, rowsErr := s.Rows(t.Context(), c.Space)
	for _, err := range []error{claimErr, renewErr, s.Release(t.Context(), releaseOf(c, reply)), rowsErr} {
		if !errors.Is(err, ErrClosed) || !errors.Is(err, leasestore.ErrPermanent) {
			t.Errorf("operation after Close = error %v; want %v", err, ErrClosed)
		}
	}
}
