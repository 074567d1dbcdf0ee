package ncruces

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ncruces/go-sqlite3"
	sqlitedriver "github.com/ncruces/go-sqlite3/driver"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/snowkey/snowkey"
)

// A windows is a file system that behaves as that of Windows: its paths have a drive letter and
// backslashes, and a file that is open can be neither removed nor replaced. Here such a path is the
// name of a file in the working directory.
type windows struct {
	vfs.VFS
	mu   sync.Mutex
	open map[string]int
	seen []string
}

func (w *windows) FullPathname(path string) (string, error) {
	if !strings.HasPrefix(path, `C:\`) || strings.ContainsAny(path[3:], `/:*?"<>|`) {
		return "", sqlite3.CANTOPEN_FULLPATH
	}
	return path, nil
}

func (w *windows) OpenFilename(path *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := w.VFS.(vfs.VFSFilename).OpenFilename(path, flags)
	if err != nil {
		return f, flags, err
	}
	name := path.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[name]++
	w.seen = append(w.seen, name)
	return &windowsFile{f, name, w}, flags, nil
}

func (w *windows) Delete(name string, sync bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[name] > 0 {
		return sqlite3.IOERR_DELETE // ERROR_SHARING_VIOLATION
	}
	return w.VFS.Delete(name, sync)
}

type windowsFile struct {
	vfs.File
	name string
	w    *windows
}

func (f *windowsFile) Close() error {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.w.open[f.name]--
	return f.File.Close()
}

// A windowsDriver opens every name on that file system.
type windowsDriver struct{ *sqlitedriver.SQLite }

func (d windowsDriver) OpenConnector(name string) (driver.Connector, error) {
	if !strings.HasPrefix(name, "file:") {
		name = "file:" + name
	}
	c, err := d.SQLite.OpenConnector(name + "?vfs=windows")
	return windowsConnector{c}, err
}

type windowsConnector struct{ driver.Connector }

func (windowsConnector) Driver() driver.Driver { return windowsDriver{&sqlitedriver.SQLite{}} }

func TestOpenKeepsItsLeasesOnAFileSystemLikeThatOfWindows(t *testing.T) {
	w := &windows{VFS: vfs.Find(""), open: map[string]int{}}
	vfs.Register("windows", w)
	defer vfs.Unregister("windows")
	dir := t.TempDir()
	t.Chdir(dir)
	for _, file := range []string{`C:\shop\orders.db`, `C:\Program Files\100% (x86)\orders #1.db`} {
		escaped := strings.NewReplacer("%", "%25", "#", "%23", " ", "%20").Replace(file)
		connector, err := windowsDriver{&sqlitedriver.SQLite{}}.OpenConnector(escaped)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		if _, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		workers := map[int64]bool{}
		for range 3 {
			gen, err := snowkey.Open(t.Context(), db, snowkey.Config{})
			if err != nil {
				t.Fatal(err)
			}
			id, err := gen.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			workers[gen.Layout().Parts(id).Worker] = true
			defer func() { _ = gen.Close(context.Background()) }()
		}
		if len(workers) != 3 {
			t.Errorf("three generators have the worker numbers %v", workers)
		}
		w.mu.Lock()
		if !slices.Contains(w.seen, file+"-leases") {
			t.Errorf("files that were opened = %q; want %q among them", w.seen, file+"-leases")
		}
		w.mu.Unlock()
		if _, err := os.Stat(filepath.Join(dir, file+"-leases")); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	}
}
