package ncruces

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// A disk knows what a power cut would leave of its files at worst: each as it was when it was last
// synced, and those whose removal was not synced with the folder.
type disk struct {
	vfs.VFS
	mu     sync.Mutex
	synced map[string][]byte // by path
}

// newDisk returns a disk, and the DSN of a file on it.
func newDisk(t *testing.T, pragmas string) (d *disk, dsn string) {
	t.Helper()
	d = &disk{VFS: vfs.Find("os"), synced: map[string][]byte{}}
	vfs.Register(t.Name(), d)
	t.Cleanup(func() { vfs.Unregister(t.Name()) })
	return d, "file:" + filepath.Join(t.TempDir(), "test.db") + "?vfs=" + t.Name() + pragmas
}

// OpenFilename implements [vfs.VFSFilename].
func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := vfsutil.WrapOpenFilename(d.VFS, name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &diskFile{f, d, name.String()}, flags, nil
}

// Delete implements [vfs.VFS].
func (d *disk) Delete(name string, syncFolder bool) error {
	err := d.VFS.Delete(name, syncFolder)
	if err == nil && syncFolder {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.synced, name)
	}
	return err
}

// cutPower returns the DSN of what a power cut would leave now.
func (d *disk) cutPower(t *testing.T) (dsn string) {
	t.Helper()
	dir := t.TempDir()
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, content := range d.synced {
		must(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), content, 0o600))
	}
	return "file:" + filepath.Join(dir, "test.db")
}

type diskFile struct {
	vfs.File
	disk *disk
	name string
}

// SharedMemory implements [vfs.FileSharedMemory], which the mode WAL needs.
func (f *diskFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }

// Sync implements [vfs.File].
func (f *diskFile) Sync(flags vfs.SyncFlag) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	content := make([]byte, size)
	if _, err := f.ReadAt(content, 0); err != nil {
		return err
	}
	f.disk.mu.Lock()
	f.disk.synced[f.name] = content
	f.disk.mu.Unlock()
	return f.File.Sync(flags)
}

// Each level that keeps less than the store needs loses the update here, or the disk proves nothing.
func TestAPowerCutLosesWhatTheLevelOfSyncsDoesNotKeep(t *testing.T) {
	for _, test := range []struct {
		mode, level string
		keeps       bool
	}{
		{"WAL", "OFF", false},
		{"WAL", "NORMAL", false},
		{"WAL", "FULL", true},
		{"DELETE", "OFF", false},
		{"DELETE", "FULL", false}, // the journal, whose removal is the commit, comes back
		{"DELETE", "EXTRA", true},
	} {
		t.Run(test.mode+"-"+test.level, func(t *testing.T) {
			d, dsn := newDisk(t, "&_pragma=synchronous(EXTRA)&_pragma=journal_mode("+test.mode+")")
			db := open(t, dsn)
			db.SetMaxOpenConns(1)
			db.MustExec("CREATE TABLE t AS SELECT 0 AS n")
			db.MustExec("PRAGMA synchronous = " + test.level)
			db.MustExec("UPDATE t SET n = 1")
			var kept bool
			must(t, open(t, d.cutPower(t)).Get(&kept, "SELECT n FROM t"))
			if kept != test.keeps {
				t.Errorf("after a power cut the update is there: %t; want %t", kept, test.keeps)
			}
		})
	}
}

func TestWhatAStoreHasAcknowledgedSurvivesAPowerCut(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE", "TRUNCATE", "PERSIST"} {
		t.Run(mode, func(t *testing.T) {
			d, dsn := newDisk(t, "&_pragma=synchronous(OFF)&_pragma=journal_mode("+mode+")") // which the store does not leave so
			store := func(dsn string) *sqllease.Store {
				s, err := sqllease.New(open(t, dsn).DB, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: quiet})
				must(t, err)
				return s
			}
			s, space := store(dsn), leasestore.Space{Namespace: "n", Workers: 2, Layout: "l"}
			must(t, s.CreateTables(t.Context()))
			survives := func(what string) {
				t.Helper()
				want, _, err := s.Rows(t.Context(), space)
				must(t, err)
				if got, _, err := store(d.cutPower(t)).Rows(t.Context(), space); err != nil || !slices.Equal(got, want) {
					t.Errorf("after %s and a power cut Rows() = %+v, %v; want %+v", what, got, err, want)
				}
			}
			for _, owner := range []string{"a", "b", "c"} {
				now := leasestore.MillisOf(time.Now())
				r, err := s.Claim(t.Context(), leasestore.Claim{Space: space, Owner: owner, Nonce: "1", Window: 60_000, Now: now, Skew: 5000})
				must(t, err)
				survives("a claim")
				r, err = s.Renew(t.Context(), leasestore.Renewal{Space: space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: owner,
					Known: []string{"1"}, Nonce: "2", Next: now, Until: r.Row.Until, Window: 70_000, Now: now, Skew: 5000})
				must(t, err)
				survives("a renewal")
				must(t, s.Release(t.Context(), leasestore.Release{Space: space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: owner,
					Known: []string{"2"}, Nonce: "3", End: now}))
				survives("a release")
			}
		})
	}
}
