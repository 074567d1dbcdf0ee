package dialect

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
)

// Retryable reports whether a transaction has lost against another one, so that it may
// succeed if all of it is run again.
//
// A lock that was not granted in time counts on MySQL and SQLite, which detect some
// deadlocks in no other way. SQLITE_LOCKED does not, except where a connection with a
// shared cache holds the lock. Otherwise it is an unfinished query of the same
// connection, and waiting ends nothing.
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

// LockNotAvailable reports whether PostgreSQL gave up waiting for a lock, because
// of lock_timeout or NOWAIT. It is not [Retryable]: the caller has asked for it.
func LockNotAvailable(err error) bool {
	return said(err, func(a Answer) bool { return a.State == "55P03" })
}

// DuplicateKey reports whether a row has the key of another one, or its value in
// another unique index.
func DuplicateKey(err error) bool {
	return said(err, func(a Answer) bool {
		return a.State == "23505" || // unique_violation
			a.Number == duplicateEntry || a.Number == duplicateEntryIn ||
			a.Code == sqliteDuplicateKey || a.Code == sqliteDuplicateInIndex
	})
}

// Exists reports whether a table or schema that was to be made is there already.
func Exists(err error) bool {
	for e := range Tree(err) {
		switch a := Of(e); a.State {
		case "42P07", "42710", "42P06": // the table, its row type, the schema
			return true
		case "":
			if a.Number == tableExists || a.Code == sqliteError && strings.Contains(e.Error(), "already exists") {
				return true
			}
		}
	}
	return false
}

// NoTable reports whether a statement names a table or schema that is not there.
func NoTable(err error) bool {
	for e := range Tree(err) {
		switch a := Of(e); a.State {
		case "42P01", "3F000":
			return true
		case "":
			if a.Number == noSuchTable || a.Code == sqliteError && containsAny(e, "no such table", "unknown database") {
				return true
			}
		}
	}
	return false
}

// NoIndex reports whether MySQL or MariaDB was told to use an index that is not there,
// or that the optimizer may not use.
func NoIndex(err error) bool {
	for e := range Tree(err) {
		if Of(e).Number == noSuchIndex {
			return true
		}
	}
	return false
}

// NoColumn reports whether a statement names a column that is not there.
func NoColumn(err error) bool {
	for e := range Tree(err) {
		a := Of(e)
		if a.State == "42703" || a.Number == noSuchColumn ||
			a.Code == sqliteError && containsAny(e, "no such column", "has no column named") {
			return true
		}
	}
	return false
}

// containsAny looks into the text of an error of SQLite. One result code stands for
// many mistakes. The texts are SQLite's own, the same from every driver.
func containsAny(err error, parts ...string) bool {
	text := err.Error()
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// ReadOnly reports whether the server, the database or the transaction takes no
// writes.
func ReadOnly(err error) bool {
	return said(err, func(a Answer) bool {
		switch {
		// In a read-only transaction; asking for another in recovery, as lib/pq does.
		case a.State == "25006", a.State == "0A000":
			return true
		case a.Number == serverReadOnly, a.Number == transactionReadOnly, a.Number == readOnlyMode:
			return true
		}
		return a.primary() == sqliteReadOnly
	})
}

// Denied reports whether the user lacks a right to a database, table or column.
func Denied(err error) bool {
	return said(err, func(a Answer) bool {
		return a.State == "42501" || a.Number == noDatabaseRight || a.Number == noTableRight || a.Number == noColumnRight
	})
}

// BadConnection reports whether the connection is of no use any more. It may be broken,
// or the server is about to end or not up yet. Another connection may be of use.
func BadConnection(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, new(*net.OpError)) {
		return true
	}
	for e := range Tree(err) {
		switch a := Of(e); {
		case strings.HasPrefix(a.State, "08"): // connection exception
			return true
		case a.State == "57P01", a.State == "57P02", a.State == "57P03", a.State == "25P03":
			return true // shutdown, crash, starting up, idle in transaction for too long
		case a.Number == serverShutdown, a.Number == connectionKilled:
			return true
		case e.Error() == "invalid connection", e.Error() == "conn closed": // mysql.ErrInvalidConn; pgconn.ErrConnClosed
			return true
		}
	}
	return false
}

// NotPrepared reports whether a Galera node serves nobody for now. It is cut off from its
// cluster, or has yet to catch up. Another node may serve.
func NotPrepared(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == notPrepared })
}

// Unread reports whether a driver may have refused a statement because the rows of another
// one on the same connection are not read to their end. On PostgreSQL and MySQL it sends
// one statement at a time. pgx says no more than that the connection is bad.
func Unread(err error) bool {
	if errors.Is(err, driver.ErrBadConn) {
		return true
	}
	for e := range Tree(err) {
		if containsAny(e, "already a query being processed", "busy buffer", "commands out of sync", "conn busy") { // lib/pq, MySQL, pgx
			return true
		}
	}
	return false
}

// Interrupted reports whether a statement or its connection has ended before the
// statement was done. That is what drivers say, in many words, if a context ends.
func Interrupted(err error) bool {
	return BadConnection(err) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) ||
		said(err, func(a Answer) bool {
			return a.State == "57014" || a.Number == queryInterrupted || a.primary() == sqliteInterrupt
		})
}

// RowFault reports whether a database says that a row cannot be stored. The
// statement is undone then. On SQLite and MySQL its transaction goes on, on
// PostgreSQL it is lost.
func RowFault(err error) bool {
	return said(err, func(a Answer) bool {
		switch a.primary() {
		case sqliteConstraint, sqliteMismatch, sqliteTooBig:
			return true
		}
		switch {
		case a.State == "P0001", a.State == "54000": // RAISE in a trigger; too large for an index
			return true
		case len(a.State) == 5 && (a.State[:2] == "22" || a.State[:2] == "23" || a.State[:2] == "44"):
			return true // data exception, integrity constraint, CHECK OPTION of a view
		}
		switch a.Number {
		case columnCannotBeNull, noDefault,
			duplicateEntry, duplicateEntryIn,
			1264, 1265, 1292, 1366, 1367, 1406, 1411, outOfRange, // out of range, truncated, incorrect, too long
			noParentRow, noParentRowIn,
			1369, 1526, 1644, // CHECK OPTION of a view, no partition, SIGNAL in a trigger
			3140, checkViolatedMySQL, checkViolatedMariaDB: // the first: no JSON
			return true
		}
		return false
	})
}

// NoFunction reports whether a statement calls a function that the server does not have,
// though PostgreSQL does.
func NoFunction(err error) bool {
	return said(err, func(a Answer) bool { return a.State == "42883" || a.State == "0A000" }) // undefined_function, feature_not_supported
}

// StalePlan reports whether a SELECT may have failed because a column has got another
// type since the driver prepared it: "cached plan must not change result type". The
// message may be in any language, so any feature_not_supported counts. pgx prepares the
// statement again when it is sent the next time on the same connection.
func StalePlan(err error) bool {
	return said(err, func(a Answer) bool { return a.State == "0A000" })
}

// Refused reports whether the database has answered and means it. Then its answer is
// not that it is busy or about to end, so asking again is of no use.
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

// OutOfRange reports whether MySQL has computed a number that its type cannot
// hold.
func OutOfRange(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == outOfRange })
}

// UnknownVariable reports whether MySQL does not have a variable, as MariaDB may.
func UnknownVariable(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == unknownVariable })
}

// InTransaction reports whether MySQL refuses to set how the next transaction begins,
// because one is open.
func InTransaction(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == inTransaction })
}
