package sqlrow

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/snowkey/snowkey/internal/base/filesystem"
)

// A databaseFile is the SQLite file that a DB has used since its first transaction.
//
// SQLite itself notices that its file was replaced if it has a rollback journal, but not if it has a
// write-ahead log, and SQL cannot tell which file a connection has open. The file at the path is
// therefore compared with the first one. Once they differ, no connection of the pool is trusted,
// because the old ones cannot be told from the new.
//
// SQLite keeps the log, or the rollback journal, beside the path that it was given after following
// links, so a file with two paths has two logs. Two processes then share the locks but not the log,
// and each writes what the other never reads.
type databaseFile struct {
	suits func(path string) (warning string, err error) // suitableFile, except in tests
	warn  func(ctx context.Context, risk string, args ...any)

	mu   sync.Mutex // guards what follows
	path string
	info fs.FileInfo // nil: no transaction yet
	err  error       // matches ErrReplaced once the file was replaced
}

// check returns an error that matches ErrReplaced unless path leads to the same file as in the first
// call. SQLite has made the path absolute and has followed links.
//
// The file is never opened here, because closing it would drop the locks that SQLite holds on it in
// this process.
func (f *databaseFile) check(ctx context.Context, path string) error {
	// Lstat, because once the file was moved and a symbolic link put in its place, new connections
	// have another log than open ones.
	info, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
	case f.info == nil && err != nil:
		return fmt.Errorf("%w: %w; use a file of the operating system", ErrNotDurable, err)
	case f.info != nil && (err != nil || path != f.path || !os.SameFile(info, f.info)):
		f.err = fmt.Errorf("%w: %s; restart the process", ErrReplaced, f.path)
	default:
		if err := singleName(info); err != nil { // checked in every call, because any program may use the other name
			return unusable(path, err)
		}
		if f.info != nil {
			return nil
		}
		warning, err := f.suits(path)
		if err != nil {
			return unusable(path, err)
		}
		if warning != "" {
			f.warn(ctx, "the SQLite file may be lost: "+warning, "file", path)
		}
		f.path, f.info = path, info
	}
	return f.err
}

// An openFile is the file that a connection has open.
type openFile struct {
	path     string
	wal      bool // it has a write-ahead log
	unshared bool // the log has its index in memory
	mark     mark // of the log; 0: not known
}

// still returns nil if the file and its log are the ones that a connection has open.
func (f *databaseFile) still(ctx context.Context, o openFile) error {
	if err := f.check(ctx, o.path); err != nil || !o.wal {
		return err
	}
	return f.checkLog(o)
}

// CheckFile returns an error that matches [ErrNotDurable] if the SQLite file at path may have another
// path, or be on a file system that other hosts share. It is what a transaction checks of its file, for
// a file that only tells where the rows are.
func CheckFile(path string, allowFUSE bool) error {
	info, err := os.Lstat(path)
	if err == nil {
		err = singleName(info)
	}
	if err == nil {
		_, err = suitableFile(path, allowFUSE)
	}
	if err != nil {
		return unusable(path, err)
	}
	return nil
}

func unusable(path string, reason error) error {
	return fmt.Errorf("%w: unusable file %s: %w", ErrNotDurable, path, reason)
}

// singleName returns an error if a SQLite file has several names.
func singleName(info fs.FileInfo) error {
	switch names := filesystem.Names(info); {
	case names > 1:
		return fmt.Errorf("it has %d names, and SQLite keeps a log beside each: remove the other hard links, and link or mount the folder", names)
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link that the driver has not followed, and SQLite keeps a log beside each path: open the file itself")
	}
	return nil
}

// suitableFile is filesystem.Check for a SQLite file, which must not be mounted itself.
func suitableFile(path string, allowFUSE bool) (warning string, err error) {
	switch mounted, err := filesystem.IsMountPoint(path); {
	case err != nil:
		return "", err
	case mounted:
		return "", errors.New("the file itself is mounted, and SQLite keeps a log beside each of its paths: mount the folder")
	}
	return filesystem.Check(path, allowFUSE)
}
