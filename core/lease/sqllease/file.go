package sqllease

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/snowkey/snowkey/core/lease"
)

// ErrReplaced means that the SQLite file is no longer that of the first operation: it
// was removed or moved, or another was put in its place. Connections that were open
// before still write into the old file, which no other process reads. So the Store
// refuses every operation from then on. A renewal or release gets a [*lease.LostError]
// as well. Restart the process.
var ErrReplaced = errors.New("the database file was removed or replaced while the process ran")

// replaced is the reason of a lease that is lost by that.
const replaced lease.Reason = "the database file was removed or replaced while the process ran"

// A databaseFile is the SQLite file that a Store has used since its first operation.
//
// SQLite itself notices a file that was replaced with a rollback journal, but not with
// a write-ahead log. SQL cannot ask which file a connection has open. So the file at
// the path is compared with the one that was there at first. Once they differ no
// connection of the pool is trusted: nothing tells which of them are old.
type databaseFile struct {
	suits func(path string) (warning string, err error) // see filesystem.Check
	log   *slog.Logger

	mu   sync.Mutex // guards what follows
	path string
	info fs.FileInfo // nil: no operation yet
	err  error       // that matches ErrReplaced: it was
}

// check returns an error that matches ErrReplaced unless path leads to the same file
// as in the first call. SQLite has made it absolute and has followed links.
//
// The file is never opened here: to close it again would drop the locks that SQLite
// has on it in this process.
func (f *databaseFile) check(path string) error {
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
			f.log.Warn("sqllease: the SQLite file may lose leases: "+warning, "file", path)
		}
		f.path, f.info = path, info
	case err != nil || path != f.path || !os.SameFile(info, f.info):
		f.err = fmt.Errorf("%w: %s; restart the process", ErrReplaced, f.path)
	}
	return f.err
}

// ifReplaced returns err, and that the row is lost if err says that the file was
// replaced before anything was written.
func ifReplaced(err error, lost *lease.LostError) error {
	if errors.Is(err, ErrReplaced) && !errors.As(err, new(*commitError)) {
		return fmt.Errorf("%w: %w", lost, err)
	}
	return err
}
