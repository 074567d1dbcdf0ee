package sqlrow

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"strconv"

	"github.com/snowkey/snowkey/internal/base/filesystem"
)

// A write-ahead log and its index, file-wal and file-shm, may be removed while connections have them
// open, as people do when a database is locked. Those connections continue in the old files, and
// later ones create new files, which SQLite does not notice. Each connection is therefore marked with
// the files that it has opened, and a transaction is accepted only while these are at their paths.
//
// The files disappear for no other reason, because SQLite removes them only when the last connection
// is closed, or when the journal mode changes, which needs the only connection. A connection that has
// changed the mode to another one and back, without a transaction of this package in between, is
// refused needlessly, since it cannot be recognized.
//
// The mark alone would not do for the index, which a process opens once for all of its connections: a
// connection opened after the removal has the old index, and another one, or none yet, at its path. Two
// processes with an index each do not even learn that their cached pages are old. So the process must
// have the index at the path open, which the kernel knows.
//
// Nor do checks before and after a transaction suffice. SQLite's locks are on the index, so whoever has
// a new one does not wait for a transaction in the old one. What that still writes, into the log or by
// copying the log into the file, would overwrite what others have acknowledged since. A transaction
// therefore locks the folder until it has ended. A lock file would be removed along with the log.
//
// A removal must not lose what was acknowledged either, so after each commit the log is copied into
// the file (see commitSQLite), unless a reader is in the way.
//
// The mark is stored in the connection itself, as the application_id of its database of temporary
// tables, which has no other use. It ends with the connection, and can be read in a caller's
// transaction. A map would grow for ever and could not serve NextIn, because database/sql reports
// neither the end of a connection nor the connection of a transaction.
//
// On Windows there is neither mark nor lock, and none is needed, because an open file cannot be removed.
const markPragma = "temp.application_id"

// A mark has 12 bits for the path of a database and 20 for its log and index; 0 is none. The path is
// for connections with several attached files: the mark of another file counts as none.
type mark int32

const identityBits = 20

// seed is the seed of the marks, which are compared only within this process.
var seed = maphash.MakeSeed()

// A writeAhead is the identities of a log and its index. A connection that has the file for itself has
// its index in memory.
type writeAhead struct{ log, index filesystem.Identity }

// markOf returns the mark of a log.
func markOf(path string, w writeAhead) mark {
	high := uint32(maphash.String(seed, path)) | 1
	return mark(high<<identityBits | uint32(maphash.Comparable(seed, w))&(1<<identityBits-1))
}

// samePath reports whether two marks have the same path.
func (m mark) samePath(as mark) bool { return m>>identityBits == as>>identityBits }

// markAt returns the mark of the current log of the database at a path, and whether it is one that this
// process has open, with its index. The mark is 0 where files have no identity.
func markAt(path string, unshared bool) (m mark, ours bool, err error) {
	var w writeAhead
	found, known, err := identify(path+"-wal", &w.log)
	if err != nil || !found || !known {
		return 0, found, err
	}
	indexed, _, err := identify(path+"-shm", &w.index)
	if err != nil {
		return 0, false, err
	}
	if indexed {
		ours = filesystem.IsOpen(w.index)
	} else {
		ours = unshared
	}
	return markOf(path, w), ours && filesystem.IsOpen(w.log), nil
}

// identify sets id to the identity of the file at a path. It reports whether there is a file, and
// whether it has an identity.
func identify(path string, id *filesystem.Identity) (found, known bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	*id, known = filesystem.IdentityOf(info)
	return true, known, nil
}

// markLog returns the mark of the connection's log. If open is set and the connection has no mark for
// the path, it gets the mark of the log at the path. If open is not set, its mark is removed.
func (t *Tx) markLog(ctx context.Context, path string, open bool) (mark, error) {
	var n int64
	if err := t.pragma(ctx, markPragma, &n); err != nil {
		return 0, err
	}
	before, now := mark(n), mark(0)
	if open {
		if before.samePath(markOf(path, writeAhead{})) {
			return before, nil
		}
		var err error
		if now, _, err = markAt(path, false); err != nil {
			return 0, err
		}
	}
	if now == before {
		return now, nil
	}
	if _, err := t.executor.ExecContext(ctx, "PRAGMA "+markPragma+" = "+strconv.FormatInt(int64(now), 10)); err != nil {
		return 0, fmt.Errorf("PRAGMA %s: %w", markPragma, err)
	}
	return now, nil
}

// checkLog returns an error that matches ErrReplaced unless o has the current log of its database.
func (f *databaseFile) checkLog(o openFile) error {
	now, ours, err := markAt(o.path, o.unshared)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && (!ours || o.mark != 0 && o.mark != now) {
		f.err = fmt.Errorf("%w: %s-wal or %[2]s-shm; restart the process", ErrReplaced, o.path)
	}
	return f.err
}
