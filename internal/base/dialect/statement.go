package dialect

import (
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
)

// DuplicateKey reports whether a row has the same value as another row in the primary key or in
// a unique index.
func DuplicateKey(err error) bool {
	return stated(err, "23505") || Numbered(err, duplicateEntry, duplicateEntryIn) || resulted(err, sqliteDuplicateKey, sqliteDuplicateInIndex)
}

// NoParent reports whether SQLite says that a row refers to one that is not there.
func NoParent(err error) bool { return resulted(err, sqliteNoParent) }

// Exists reports whether a table or schema could not be created because it exists.
func Exists(err error) bool {
	return saidIn(err, func(a Answer, e error) bool {
		return a.State == "42P07" || a.State == "42710" || a.State == "42P06" || // the table, its row type, the schema
			a.Number == tableExists || a.Code == sqliteError && containsAny(e, "already exists")
	})
}

// NoTable reports whether a statement names a table or schema that does not exist.
func NoTable(err error) bool {
	return saidIn(err, func(a Answer, e error) bool {
		return a.State == "42P01" || a.State == "3F000" || a.Number == noSuchTable || a.Number == noSuchDatabase ||
			a.Code == sqliteError && containsAny(e, "no such table", "unknown database")
	})
}

// NoIndex reports whether MySQL or MariaDB was told to use an index that does not exist or that
// the optimizer may not use.
func NoIndex(err error) bool { return Numbered(err, noSuchIndex) }

// NoTarget reports whether an INSERT names columns after ON CONFLICT that no unique index has.
func NoTarget(err error) bool {
	return saidIn(err, func(a Answer, e error) bool {
		return a.State == "42P10" || // invalid_column_reference
			a.Code == sqliteError && containsAny(e, "ON CONFLICT clause does not match")
	})
}

// NoColumn reports whether a statement names a column that does not exist.
func NoColumn(err error) bool {
	return saidIn(err, func(a Answer, e error) bool {
		return a.State == "42703" || a.Number == noSuchColumn ||
			a.Code == sqliteError && containsAny(e, "no such column", "has no column named")
	})
}

// containsAny searches the text of an error of SQLite, where one result code stands for many
// mistakes. The texts are SQLite's own and the same from every driver.
func containsAny(err error, parts ...string) bool {
	text := err.Error()
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// ReadOnly reports whether the server, the database or the transaction refuses writes.
func ReadOnly(err error) bool {
	// 25006: a read-only transaction; 0A000: lib/pq asks for another kind in recovery.
	return stated(err, "25006", "0A000") || Numbered(err, serverReadOnly, transactionReadOnly, readOnlyMode) ||
		said(err, func(a Answer) bool { return a.primary() == sqliteReadOnly })
}

// RowLogging reports whether MySQL refuses a statement because its binary log is of statements,
// which takes REPEATABLE READ.
func RowLogging(err error) bool { return Numbered(err, rowLoggingOnly) }

// Denied reports whether the user lacks a right to a database, table or column.
func Denied(err error) bool {
	return stated(err, "42501") || Numbered(err, noDatabaseRight, noTableRight, noColumnRight)
}

// Unread reports whether a driver may have refused a statement because the rows of another
// statement on the same connection were not read to their end. Drivers of PostgreSQL and MySQL
// send one statement at a time. pgx reports only that the connection is bad.
func Unread(err error) bool {
	return errors.Is(err, driver.ErrBadConn) || saidIn(err, func(_ Answer, e error) bool {
		return containsAny(e, "already a query being processed", "busy buffer", "commands out of sync", "conn busy") // lib/pq, MySQL, pgx
	})
}

// RowFault reports whether the database refused to store a row. It has then undone the statement.
// The transaction goes on on SQLite and MySQL, and is lost on PostgreSQL.
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

// NoFunction reports whether a statement calls a function of PostgreSQL that this server, which
// only speaks its protocol, does not have.
func NoFunction(err error) bool { return stated(err, "42883", "0A000") } // undefined_function, feature_not_supported

// StalePlan reports whether a SELECT may have failed because the type of a column was changed
// after the driver had prepared the statement: "cached plan must not change result type". Any
// feature_not_supported counts, because the message may be in any language. pgx prepares the
// statement again when it is next sent on the same connection.
func StalePlan(err error) bool { return stated(err, "0A000") }

// OutOfRange reports whether MySQL has computed a number that its type cannot hold.
func OutOfRange(err error) bool { return Numbered(err, outOfRange) }

// Unsupported reports whether the server has no such feature, as TiDB has no shared locks on rows.
func Unsupported(err error) bool { return Numbered(err, notSupportedYet) }

// UnknownVariable reports whether a statement names a variable that exists only in the other of
// MySQL and MariaDB.
func UnknownVariable(err error) bool { return Numbered(err, unknownVariable) }

// InTransaction reports whether a transaction is open, for which MySQL refuses to change the
// characteristics of the next one, and SQLite a BEGIN.
func InTransaction(err error) bool {
	return saidIn(err, func(a Answer, e error) bool {
		return a.Number == inTransaction || containsAny(e, "cannot start a transaction within a transaction")
	})
}
