package dialect

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
)

// Retryable reports whether a transaction was rolled back, or has to be, because of another
// one, so that it may succeed if all of it is run again.
//
// A lock that was not granted in time counts on MySQL and SQLite, which detect some deadlocks in
// no other way. SQLITE_LOCKED does not count, because it is an unfinished query of the same
// connection and waiting does not end that, unless a connection with a shared cache holds the
// lock.
func Retryable(err error) bool {
	return said(err, func(a Answer) bool {
		switch {
		case a.State == "40001", a.State == "40P01": // serialization_failure, deadlock_detected
			return true
		case a.Number == deadlock, a.Number == lockWaitTimeout, a.Number == recordHasChanged, a.lost():
			return true
		}
		return a.primary() == sqliteBusy || a.Code == sqliteLockedShared
	})
}

// LostAtCommit reports whether a COMMIT was rolled back because of a transaction of another node,
// which Galera and MySQL's group replication detect only then. It may succeed if all of it is
// run again.
//
// A Galera node that loses its cluster during a COMMIT returns 1180 instead; the other nodes may
// then have the transaction or not.
func LostAtCommit(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == deadlock || a.lost() })
}

// lost reports whether MySQL's group replication or TiDB has rolled a transaction back because of
// another one.
func (a Answer) lost() bool {
	switch a.Number {
	case transactionRollback, tidbForUpdateConflict, tidbCommitFailed, tidbSchemaChanged, tidbWriteConflict:
		return true
	}
	return false
}

// LockNotAvailable reports whether PostgreSQL gave up waiting for a lock because of lock_timeout
// or NOWAIT. It is not [Retryable], because the caller has asked for it.
func LockNotAvailable(err error) bool { return stated(err, "55P03") }

// BadConnection reports whether the connection has become useless, because it is broken or the
// server is shutting down or still starting up. Another connection may work.
func BadConnection(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, new(*net.OpError)) {
		return true
	}
	return saidIn(err, func(a Answer, e error) bool {
		switch {
		case strings.HasPrefix(a.State, "08"): // connection exception
			return true
		case a.State == "57P01", a.State == "57P02", a.State == "57P03", a.State == "25P03":
			return true // shutdown, crash, starting up, idle in transaction for too long
		case a.Number == serverShutdown, a.Number == connectionKilled:
			return true
		}
		return e.Error() == "invalid connection" || e.Error() == "conn closed" // mysql.ErrInvalidConn; pgconn.ErrConnClosed
	})
}

// NotPrepared reports whether a Galera node refuses all statements, because it is cut off from
// its cluster or has yet to catch up. Another node may work.
func NotPrepared(err error) bool { return Numbered(err, notPrepared) }

// closedTexts are the texts of database/sql for a prepared statement and for the rows of a
// transaction that it has rolled back because a context has ended.
var closedTexts = []string{"sql: statement is closed", "sql: Rows are closed"}

// Interrupted reports whether a statement was cancelled or its connection ended before the
// statement was done. Drivers return such errors, of many kinds, when a context ends.
func Interrupted(err error) bool {
	return BadConnection(err) || saidIn(err, func(_ Answer, e error) bool { return slices.Contains(closedTexts, e.Error()) }) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) ||
		said(err, func(a Answer) bool {
			return a.State == "57014" || a.Number == queryInterrupted || a.primary() == sqliteInterrupt
		})
}

// Refused reports whether the database has given a final answer, rather than one that it is busy
// or shutting down, so that asking again is useless.
func Refused(err error) bool {
	if Retryable(err) {
		return false
	}
	for a := range Answers(err) {
		switch {
		case a.State != "":
			return a.postgresRolledBack()
		case a.Number == tooManyConnections, a.Number == notPrepared, a.Number == serverShutdown, a.Number == connectionKilled:
			return false
		}
		return true
	}
	return false
}
