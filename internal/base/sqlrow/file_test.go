//go:build cgo

package sqlrow

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/filesystem"
)

// counterIn returns a DB on a file that has a counter of 7.
func counterIn(t *testing.T, path string, warnings *[]string) *DB {
	t.Helper()
	pool := openSQLite(t, "file:"+path+"?_journal_mode=WAL")
	makeCounter(t, pool)
	return newDB(pool, dialect.SQLite, warnings)
}

// makeFile makes a file with a counter of 7, and closes it.
func makeFile(t *testing.T, path, mode string) {
	t.Helper()
	pool := openSQLite(t, "file:"+path+"?_journal_mode="+mode)
	makeCounter(t, pool)
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

// openCounter returns a DB on a file that has a counter.
func openCounter(t *testing.T, path string) *DB {
	t.Helper()
	return newDB(openSQLite(t, "file:"+path), dialect.SQLite, nil)
}

// Connections that are open write into the old file, and only those opened later into
// the new one. Nothing tells which is which.
func TestAFileThatWasReplacedIsNotTrustedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter.db")
	d := counterIn(t, path, nil)
	if _, err := bump(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func() error{
		func() error { return os.Rename(path, path+".old") },
		func() error { return os.WriteFile(path, nil, 0o666) },
		func() error { return os.Rename(path+".old", path) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrReplaced) || errors.Is(err, ErrCommit) || !strings.Contains(err.Error(), path) {
			t.Errorf("Do() = %d, %v; want ErrReplaced, and the file", n, err)
		}
	}
}

// A file that was replaced in the middle of a transaction has not kept its write.
func TestAFileReplacedDuringTheCommitIsUnknown(t *testing.T) {
	d, c := watched(t, "_journal_mode=WAL")
	if _, err := bump(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	c.After = func(query string) error {
		if query == "COMMIT" {
			return os.Remove(d.file.path)
		}
		return nil
	}
	if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrReplaced) || !errors.Is(err, ErrCommit) {
		t.Errorf("Do() during which the file was removed = %d, %v; want ErrReplaced and ErrCommit", n, err)
	}
}

// SQLite knows its file by its absolute path, links followed.
func TestAFileIsKnownByItsPathAndNotByTheFolderOfTheProcess(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Symlink("real.db", "link.db"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	var d *DB
	for _, name := range []string{"relative.db", "link.db"} {
		d = counterIn(t, name, nil)
		_, first := bump(t.Context(), d)
		t.Chdir(t.TempDir())
		if _, err := bump(t.Context(), d); first != nil || err != nil {
			t.Errorf("%s: Do() = %v, and from another folder %v; want nil", name, first, err)
		}
		t.Chdir(dir)
	}
	// A link that leads elsewhere is noticed as soon as a connection is opened.
	if err := errors.Join(os.Remove("link.db"), os.Symlink("other.db", "link.db")); err != nil {
		t.Fatal(err)
	}
	d.pool.SetMaxIdleConns(0)
	if _, err := bump(t.Context(), d); !errors.Is(err, ErrReplaced) {
		t.Errorf("Do() through a link that leads elsewhere = %v; want ErrReplaced", err)
	}
}

// What is no file of the operating system cannot be told from another.
func TestADatabaseWithoutAFileIsRefused(t *testing.T) {
	var f databaseFile
	if err := f.check(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNotDurable) {
		t.Errorf("check of a path without a file = %v; want ErrNotDurable", err)
	}
}

// SQLite has a log, or a rollback journal, beside each path of a file. Two processes would
// not see each other's writes.
func TestAFileWithTwoPathsIsRefused(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE", "TRUNCATE", "PERSIST"} {
		dir := t.TempDir()
		path, second := filepath.Join(dir, "counter.db"), filepath.Join(dir, "second.db")
		makeFile(t, path, mode)
		if err := os.Link(path, second); err != nil {
			t.Skipf("SKIPPED: %v", err)
		}
		for _, name := range []string{path, second} {
			// Two processes may have both open. In one, SQLite has the same log for both.
			d := openCounter(t, name)
			n, err := bump(t.Context(), d)
			if n != 0 || !errors.Is(err, ErrNotDurable) || !strings.Contains(err.Error(), name+": it has 2 names") || !strings.Contains(err.Error(), "mount the folder") {
				t.Errorf("%s: Do() in %s = %d, %v; want ErrNotDurable, the file and the way out", mode, name, n, err)
			}
			if err := d.pool.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(second); err != nil {
			t.Fatal(err)
		}
		d := openCounter(t, path)
		if n, err := bump(t.Context(), d); n != 8 || err != nil {
			t.Errorf("%s: Do() when the second name is gone = %d, %v; want 8", mode, n, err)
		}
		if err := os.Link(path, second); err != nil {
			t.Fatal(err)
		}
		if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrNotDurable) {
			t.Errorf("%s: Do() once there is a second name again = %d, %v; want ErrNotDurable", mode, n, err)
		}
	}
}

// Connections that were open keep the log beside the old path. Later ones follow the link.
func TestAFileThatALinkHasReplacedIsNotTrustedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter.db")
	d := counterIn(t, path, nil)
	if _, err := bump(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved.db")
	if err := errors.Join(os.Rename(path, moved), os.Symlink(moved, path)); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrReplaced) {
		t.Errorf("Do() once a link is at the path = %d, %v; want ErrReplaced", n, err)
	}
}

// SQLite follows links before it names its log. A driver with a file system of its own
// might not.
func TestALinkThatTheDriverHasNotFollowedIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter.db")
	if err := errors.Join(os.WriteFile(path, nil, 0o666), os.Symlink(path, path+".link")); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	var f databaseFile
	if err := f.check(t.Context(), path+".link"); !errors.Is(err, ErrNotDurable) || !strings.Contains(err.Error(), path+".link: it is a symbolic link") {
		t.Errorf("check of a link = %v; want ErrNotDurable", err)
	}
}

// SQLite's locks do not work between hosts.
func TestAFileOnASharedFileSystemIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter.db")
	d := counterIn(t, path, nil)
	asked := ""
	d.file.suits = func(path string) (string, error) {
		asked = path
		return "", errors.New("it is on NFS")
	}
	for range 2 {
		if _, err := bump(t.Context(), d); !errors.Is(err, ErrNotDurable) || !strings.Contains(err.Error(), path+": it is on NFS") || asked != path {
			t.Errorf("Do() on NFS = %v, asked about %q; want ErrNotDurable, and the file", err, asked)
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
	dir, err := os.MkdirTemp(shm, "sqlrow-*") //nolint:usetesting // a directory there is the point
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var warnings []string
	d := counterIn(t, filepath.Join(dir, "counter.db"), &warnings)
	for range 2 {
		if _, err := bump(t.Context(), d); err != nil {
			t.Errorf("Do() in a file on a tmpfs = %v; want nil", err)
		}
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "it is on tmpfs") {
		t.Errorf("warnings = %q; want one of tmpfs", warnings)
	}
}
