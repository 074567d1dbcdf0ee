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

// A write-ahead log and its index, file-wal and file-shm, may be removed or moved while
// connections have them open: it is what people do to a database that is locked. Those
// connections go on in them, and all that are opened later make new ones. SQLite does not
// notice. So each connection remembers which of them it has opened, and a transaction is
// good only while these are at their paths.
//
// There is no other reason for them to go. SQLite removes them when the last connection is
// closed, and when the journal mode changes, for which there must be no other connection.
// A connection that has changed it to another and back, with no transaction of this
// package in between, is refused without need: nothing tells.
//
// Nor may the removal take away what was acknowledged. After each commit the log is
// copied into the file (see commitSQLite), unless a reader is in the way.
//
// The connection itself is where its mark is kept, as the application_id of its database
// of temporary tables, which has no other use. It is gone when the connection is, and can
// be read in the transaction of a caller. database/sql tells neither when a connection is
// closed nor which one a transaction has, so a map would grow for ever, and not serve
// NextIn.
//
// On Windows there is no mark, and no need: a file that is open cannot be removed.
const markPragma = "temp.application_id"

// A mark is 12 bits for the path of a database and 20 for its log and index. 0 is none. The
// path is for connections that have several files attached: what marks another file
// counts as none.
type mark int32

const identityBits = 20

// seed makes the marks of this process.
var seed = maphash.MakeSeed()

// A writeAhead is the identities of a log and its index, which a process that has the
// file for itself may do without.
type writeAhead struct{ log, index filesystem.Identity }

// markOf returns the mark of a log.
func markOf(path string, w writeAhead) mark {
	high := uint32(maphash.String(seed, path)) | 1
	return mark(high<<identityBits | uint32(maphash.Comparable(seed, w))&(1<<identityBits-1))
}

// samePath reports whether two marks are of one path.
func (m mark) samePath(as mark) bool { return m>>identityBits == as>>identityBits }

// markAt returns the mark of the log that the database at a path has now, and whether
// there is one. The mark is 0 where files have no identity.
func markAt(path string) (m mark, found bool, err error) {
	var w writeAhead
	found, known, err := identify(path+"-wal", &w.log)
	if err != nil || !found || !known {
		return 0, found, err
	}
	if _, _, err := identify(path+"-shm", &w.index); err != nil {
		return 0, false, err
	}
	return markOf(path, w), true, nil
}

// identify finds the identity of the file at a path. It reports whether there is a file,
// and whether that has one.
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

// markLog returns the mark of the log that the connection has open, if it has one open. It
// gives it the mark of what is at the path unless it has one already.
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
		if now, _, err = markAt(path); err != nil {
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

// checkLog returns an error that matches ErrReplaced unless the log of the database is the
// one that a connection has open, of which m is the mark.
func (f *databaseFile) checkLog(path string, m mark) error {
	now, found, err := markAt(path)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil && (!found || m != 0 && m != now) {
		f.err = fmt.Errorf("%w: %s-wal or %[2]s-shm; restart the process", ErrReplaced, path)
	}
	return f.err
}
