package sqlrow

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// A databaseFile is the SQLite file that a DB has used since its first transaction.
//
// SQLite itself notices a file that was replaced with a rollback journal, but not with
// a write-ahead log. SQL cannot ask which file a connection has open. So the file at
// the path is compared with the one that was there at first. Once they differ no
// connection of the pool is trusted: nothing tells which of them are old.
type databaseFile struct {
	suits func(path string) (warning string, err error) // see filesystem.Check
	warn  func(ctx context.Context, risk string, args ...any)

	mu   sync.Mutex // guards what follows
	path string
	info fs.FileInfo // nil: no transaction yet
	err  error       // that matches ErrReplaced: it was
}

// check returns an error that matches ErrReplaced unless path leads to the same file
// as in the first call. SQLite has made it absolute and has followed links.
//
// The file is never opened here: to close it again would drop the locks that SQLite
// has on it in this process.
func (f *databaseFile) check(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
	case f.info == nil && err != nil:
		return fmt.Errorf("%w: %w; use a file of the operating system", ErrNotDurable, err)
	case f.info == nil:
		warning, err := f.suits(path)
		if err != nil {
			return fmt.Errorf("%w: unusable file %s: %w", ErrNotDurable, path, err)
		}
		if warning != "" {
			f.warn(ctx, "the SQLite file may be lost: "+warning, "file", path)
		}
		f.path, f.info = path, info
	case err != nil || path != f.path || !os.SameFile(info, f.info):
		f.err = fmt.Errorf("%w: %s; restart the process", ErrReplaced, f.path)
	}
	return f.err
}
