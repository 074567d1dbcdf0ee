//go:build cgo

package sqllease

import (
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// A fileStore is a Store on a file that has a row, with several connections open.
type fileStore struct {
	*Store
	db    *sql.DB
	path  string
	claim leasestore.Claim
	reply leasestore.Reply
}

func newFileStore(t *testing.T, path, options string) *fileStore {
	t.Helper()
	db := openSQLite(t, path, options)
	f := &fileStore{Store: newStore(t, db, sqlstore.Config{Logger: slog.New(slog.DiscardHandler)}), db: db, path: path, claim: testClaim(time.Now())}
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

// A connection writes into the file that it has opened, wherever that is now, while others read
// the file at the path.
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
		"its log removed": func(t *testing.T, f *fileStore) {
			if err := errors.Join(os.Remove(f.path+"-wal"), os.Remove(f.path+"-shm")); err != nil {
				t.Skipf("SKIPPED: %v", err)
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
		"replaced, and put back": func(t *testing.T, f *fileStore) { // connections may have opened the other file
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
			if name == "its log removed" && mode != "WAL" {
				continue
			}
			t.Run(name+" "+mode, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "state")
				if err := os.Mkdir(dir, 0o777); err != nil {
					t.Fatal(err)
				}
				f := newFileStore(t, filepath.Join(dir, "leases.db"), "_journal_mode="+mode)
				replace(t, f)

				if _, _, err := f.Rows(t.Context(), f.claim.Space); !errors.Is(err, sqlstore.ErrReplaced) {
					t.Errorf("Rows() before anything else = %v; want sqlstore.ErrReplaced", err)
				}
				var lost *leasestore.LostError
				for range 4 { // on each of the connections
					_, err := f.Renew(t.Context(), testRenewal(f.claim, f.reply))
					if !errors.As(err, &lost) || lost.Reason != replaced || !errors.Is(err, sqlstore.ErrReplaced) || !strings.Contains(err.Error(), f.path) {
						t.Errorf("Renew() = %v; want it lost, because the file was replaced", err)
					}
				}
				release := leasestore.Release{Space: f.claim.Space, Worker: 0, Epoch: 1, Owner: f.claim.Owner, Known: []string{f.claim.Nonce}, Nonce: "n"}
				if err := f.Release(t.Context(), release); !errors.As(err, &lost) || !errors.Is(err, sqlstore.ErrReplaced) {
					t.Errorf("Release() = %v; want it lost, because the file was replaced", err)
				}
				if _, err := f.Claim(t.Context(), testClaim(time.Now())); !errors.Is(err, sqlstore.ErrReplaced) || definiteError(err) {
					t.Errorf("Claim() = %v; want sqlstore.ErrReplaced", err)
				}
				if _, _, err := f.Rows(t.Context(), f.claim.Space); !errors.Is(err, sqlstore.ErrReplaced) {
					t.Errorf("Rows() = %v; want sqlstore.ErrReplaced", err)
				}
			})
		}
	}
}

// TestARestoredFileRepeatsNoTimesForEver: what the backup has forgotten, up to 75 s, repeats,
// but not what the process reserves afterwards.
func TestARestoredFileRepeatsNoTimesForEver(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	clock := func() time.Time { return now }
	f := newFileStore(t, filepath.Join(t.TempDir(), "leases.db"), "_journal_mode=WAL")
	f.register.now = clock
	execAll(t, f.db, "UPDATE snowkey_leases SET owner = '', reserved_until = 0")
	f.claim.Now = leasestore.MillisOf(now)
	reply, err := f.Claim(t.Context(), f.claim)
	if err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	f.copyTo(t, backup)
	renewal := testRenewal(f.claim, reply)
	renew := func() error {
		renewal.Now, renewal.Next = leasestore.MillisOf(now), leasestore.MillisOf(now)
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
	other := newStore(t, openSQLite(t, f.path, "_journal_mode=WAL"), sqlstore.Config{Logger: slog.New(slog.DiscardHandler)})
	other.register.now = clock
	c := f.claim
	c.Owner, c.Now = "another", leasestore.MillisOf(now)
	second, err := other.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim() in the restored file = %v; want the row", err)
	}
	for range 4 {
		if err := renew(); !errors.Is(err, leasestore.ErrLost) {
			t.Errorf("Renew() after the file was restored = %v, to %d; want it lost: another reserves from %d", err, renewal.Until, c.From(second))
		}
		now = now.Add(15 * time.Second)
	}
	if renewal.Until != limit {
		t.Errorf("limit after the file was restored = %d; want %d, as before", renewal.Until, limit)
	}
}

// A file that was replaced in the middle of an operation has not kept its write, and it is
// unknown whether the lease is lost.
func TestAFileReplacedDuringTheCommitIsUnknown(t *testing.T) {
	s, w := newWatched(t)
	c := testClaim(time.Now())
	r, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	w.After = func(query string) error {
		if query == "COMMIT" {
			path, _, _ := strings.Cut(strings.TrimPrefix(w.DSN, "file:"), "?")
			return os.Remove(path)
		}
		return nil
	}
	if _, err := s.Renew(t.Context(), testRenewal(c, r)); !errors.Is(err, sqlstore.ErrReplaced) || definiteError(err) {
		t.Errorf("Renew() during which the file was removed = %v; want sqlstore.ErrReplaced, and nothing about the outcome", err)
	}
}

// A restore in place leaves the file the same, but takes the row back to a nonce that its
// holder no longer has.
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
	if _, err := f.Renew(t.Context(), renewal); !errors.Is(err, leasestore.ErrLost) {
		t.Errorf("Renew() after a restore in place = %v; want it lost", err)
	}
}
