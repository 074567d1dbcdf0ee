//go:build cgo

package sqllease

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/filesystem"
)

// A fileStore is a Store on a file that has a row, with several connections open.
type fileStore struct {
	*Store
	db    *sql.DB
	path  string
	claim lease.Claim
	reply lease.Reply
}

func newFileStore(t *testing.T, path, options string) *fileStore {
	t.Helper()
	db := openSQLite(t, path, options)
	f := &fileStore{Store: newStore(t, db, Config{Logger: slog.New(slog.DiscardHandler)}), db: db, path: path, claim: testClaim(time.Now())}
	f.claim.Only = []int64{0}
	var err error
	if f.reply, err = f.Claim(t.Context(), f.claim); err != nil {
		t.Fatalf("Claim() = %v", err)
	}
	db.SetMaxIdleConns(3)
	var conns []*sql.Conn
	for range 3 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil { // gives it back, open
			t.Fatal(err)
		}
	}
	return f
}

// copyTo makes a copy of the database, as a backup does.
func (f *fileStore) copyTo(t *testing.T, path string) {
	t.Helper()
	execAll(t, f.db, "VACUUM INTO '"+path+"'")
}

// away moves the database away, with its log.
func (f *fileStore) away(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(f.path + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("files = %q, error %v", files, err)
	}
	for _, file := range files {
		if err := os.Rename(file, filepath.Join(t.TempDir(), filepath.Base(file))); err != nil {
			t.Fatal(err)
		}
	}
}

// A connection writes into the file that it has opened, wherever that is now. Others
// read what is at the path.
func TestAFileThatWasReplacedEndsTheLease(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, f *fileStore){
		"removed": func(t *testing.T, f *fileStore) { f.away(t) },
		"replaced by a copy": func(t *testing.T, f *fileStore) {
			backup := filepath.Join(t.TempDir(), "backup.db")
			f.copyTo(t, backup)
			f.away(t)
			if err := os.Rename(backup, f.path); err != nil {
				t.Fatal(err)
			}
		},
		"in a folder that was replaced": func(t *testing.T, f *fileStore) {
			dir := filepath.Dir(f.path)
			backup := filepath.Join(t.TempDir(), "backup.db")
			f.copyTo(t, backup)
			if err := errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o777), os.Rename(backup, f.path)); err != nil {
				t.Fatal(err)
			}
		},
		"replaced, and put back": func(t *testing.T, f *fileStore) { // connections may have opened the other
			if err := os.Rename(f.path, f.path+".old"); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Renew(t.Context(), testRenewal(f.claim, f.reply)); err == nil {
				t.Error("Renew() without the file = nil; want an error")
			}
			if err := os.Rename(f.path+".old", f.path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, mode := range []string{"WAL", "DELETE"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "state")
				if err := os.Mkdir(dir, 0o777); err != nil {
					t.Fatal(err)
				}
				f := newFileStore(t, filepath.Join(dir, "leases.db"), "_journal_mode="+mode)
				replace(t, f)

				var lost *lease.LostError
				for range 4 { // on each of the connections
					_, err := f.Renew(t.Context(), testRenewal(f.claim, f.reply))
					if !errors.As(err, &lost) || lost.Reason != replaced || !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), f.path) {
						t.Errorf("Renew() = %v; want it lost, because the file was replaced", err)
					}
				}
				release := lease.Release{Space: f.claim.Space, Worker: 0, Epoch: 1, Owner: f.claim.Owner, Known: []string{f.claim.Nonce}, Nonce: "n"}
				if err := f.Release(t.Context(), release); !errors.As(err, &lost) || !errors.Is(err, ErrReplaced) {
					t.Errorf("Release() = %v; want it lost, because the file was replaced", err)
				}
				if _, err := f.Claim(t.Context(), testClaim(time.Now())); !errors.Is(err, ErrReplaced) || definiteError(err) {
					t.Errorf("Claim() = %v; want ErrReplaced", err)
				}
				if _, _, err := f.Rows(t.Context(), f.claim.Space); !errors.Is(err, ErrReplaced) {
					t.Errorf("Rows() = %v; want ErrReplaced", err)
				}
			})
		}
	}
}

// TestARestoredFileRepeatsNoTimesForEver: what the backup has forgotten, up to 75 s,
// repeats. What the process reserves afterwards does not.
func TestARestoredFileRepeatsNoTimesForEver(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	clock := func() time.Time { return now }
	f := newFileStore(t, filepath.Join(t.TempDir(), "leases.db"), "_journal_mode=WAL")
	f.now = clock
	execAll(t, f.db, "UPDATE snowkey_leases SET owner = '', reserved_until = 0")
	f.claim.Now = lease.MillisOf(now)
	reply, err := f.Claim(t.Context(), f.claim)
	if err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	f.copyTo(t, backup)
	renewal := testRenewal(f.claim, reply)
	renew := func() error {
		renewal.Now, renewal.Next = lease.MillisOf(now), lease.MillisOf(now)
		renewal.Nonce = strings.Repeat("a", len(renewal.Known)) + now.Format("150405")
		r, err := f.Renew(t.Context(), renewal)
		if err == nil {
			renewal.Known, renewal.Until = []string{renewal.Nonce}, r.Row.Until
		}
		return err
	}
	now = now.Add(15 * time.Second)
	if err := renew(); err != nil {
		t.Fatal(err)
	}
	limit := renewal.Until
	f.away(t)
	if err := os.Rename(backup, f.path); err != nil {
		t.Fatal(err)
	}

	now = now.Add(46 * time.Second)
	other := newStore(t, openSQLite(t, f.path, "_journal_mode=WAL"), Config{Logger: slog.New(slog.DiscardHandler)})
	other.now = clock
	c := f.claim
	c.Owner, c.Now = "another", lease.MillisOf(now)
	second, err := other.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim() in the restored file = %v; want the row", err)
	}
	for range 4 {
		if err := renew(); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Renew() after the file was restored = %v, to %d; want it lost: another reserves from %d", err, renewal.Until, c.From(second))
		}
		now = now.Add(15 * time.Second)
	}
	if renewal.Until != limit {
		t.Errorf("limit after the file was restored = %d; want %d, as before", renewal.Until, limit)
	}
}

// A file that was replaced in the middle of an operation has not kept its write.
func TestAFileReplacedDuringTheCommitIsUnknown(t *testing.T) {
	s, h := newHooked(t, "_journal_mode=WAL")
	c := testClaim(time.Now())
	r, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	h.after = func(query string) error {
		if query == "COMMIT" {
			return os.Remove(s.file.path)
		}
		return nil
	}
	if _, err := s.Renew(t.Context(), testRenewal(c, r)); !errors.Is(err, ErrReplaced) || definiteError(err) {
		t.Errorf("Renew() during which the file was removed = %v; want ErrReplaced, and nothing about the outcome", err)
	}
}

// A restore in place leaves the file what it is. But the row goes back with it, to a
// nonce that its holder does not have any more.
func TestARestoreInPlaceEndsTheLease(t *testing.T) {
	f := newFileStore(t, filepath.Join(t.TempDir(), "leases.db"), "_journal_mode=DELETE")
	backup := filepath.Join(t.TempDir(), "backup.db")
	f.copyTo(t, backup)
	renewal := testRenewal(f.claim, f.reply)
	if _, err := f.Renew(t.Context(), renewal); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	renewal.Known = []string{renewal.Nonce}
	if _, err := f.Renew(t.Context(), renewal); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Renew() after a restore in place = %v; want it lost", err)
	}
}

// SQLite knows its file by its absolute path, links followed.
func TestAFileIsKnownByItsPathAndNotByTheFolderOfTheProcess(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Symlink("real.db", "link.db"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	var f *fileStore
	for _, name := range []string{"relative.db", "link.db"} {
		f = newFileStore(t, name, "_journal_mode=WAL")
		t.Chdir(t.TempDir())
		if _, err := f.Renew(t.Context(), testRenewal(f.claim, f.reply)); err != nil {
			t.Errorf("%s: Renew() from another folder = %v; want it renewed", name, err)
		}
		t.Chdir(dir)
	}
	// A link that leads elsewhere is noticed as soon as a connection is opened.
	if err := errors.Join(os.Remove("link.db"), os.Symlink("other.db", "link.db")); err != nil {
		t.Fatal(err)
	}
	f.db.SetMaxIdleConns(0)
	if _, err := f.Renew(t.Context(), testRenewal(f.claim, f.reply)); !errors.Is(err, lease.ErrLost) || !errors.Is(err, ErrReplaced) {
		t.Errorf("Renew() through a link that leads elsewhere = %v; want it lost", err)
	}
}

// What is no file of the operating system cannot be told from another.
func TestADatabaseWithoutAFileIsRefused(t *testing.T) {
	var f databaseFile
	if err := f.check(filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNotDurable) {
		t.Errorf("check of a path without a file = %v; want ErrNotDurable", err)
	}
}

// SQLite's locks do not work between hosts.
func TestAFileOnASharedFileSystemIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	s, err := New(openSQLite(t, path, "_journal_mode=WAL"), Config{Dialect: SQLite})
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	s.file.suits = func(path string) (string, error) {
		asked = path
		return "", errors.New("it is on NFS")
	}
	for range 2 {
		if err := s.CreateTables(t.Context()); !errors.Is(err, ErrNotDurable) || !strings.Contains(err.Error(), path+": it is on NFS") || asked != path {
			t.Errorf("CreateTables() on NFS = %v, asked about %q; want ErrNotDurable, and the file", err, asked)
		}
		if _, err := s.Claim(t.Context(), testClaim(time.Now())); !errors.Is(err, ErrNotDurable) || definiteError(err) {
			t.Errorf("Claim() on NFS = %v; want ErrNotDurable", err)
		}
	}
}

// The file systems that package filesystem knows are asked for. Of those that it warns
// of, this one can be had everywhere on Linux.
func TestAFileOnTmpfsIsWarnedOfOnce(t *testing.T) {
	const shm = "/dev/shm"
	if warning, err := filesystem.Check(shm, false); err != nil || !strings.Contains(warning, "tmpfs") {
		t.Skipf("SKIPPED: %s is not a tmpfs", shm)
	}
	dir, err := os.MkdirTemp(shm, "sqllease-*") //nolint:usetesting // a directory there is the point
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var log bytes.Buffer
	s := newStore(t, openSQLite(t, filepath.Join(dir, "leases.db"), "_journal_mode=WAL"), Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := s.Claim(t.Context(), testClaim(time.Now())); err != nil || strings.Count(log.String(), "it is on tmpfs") != 1 {
		t.Errorf("Claim() in a file on a tmpfs = %v, log %q; want one warning", err, log.String())
	}
}
