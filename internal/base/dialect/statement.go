package dialect

import (
	"database/sql/driver"
	"errors"
	"strings"
)

// DuplicateKey reports whether a row has the same value as another row in the primary key or in
// a unique index.
func DuplicateKey(err error) bool {
	return said(err, func(a Answer) bool {
		return a.State == "23505" || // unique_violation
			a.Number == duplicateEntry || a.Number == duplicateEntryIn ||
			a.Code == sqliteDuplicateKey || a.Code == sqliteDuplicateInIndex
	})
}

// Exists reports whether a table or schema could not be created because it exists.
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

// NoTable reports whether a statement names a table or schema that does not exist.
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

// NoIndex reports whether MySQL or MariaDB was told to use an index that does not exist or that
// the optimizer may not use.
func NoIndex(err error) bool {
	for e := range Tree(err) {
		if Of(e).Number == noSuchIndex {
			return true
		}
	}
	return false
}

// NoColumn reports whether a statement names a column that does not exist.
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

// containsAny searches the text of an error of SQLite, where one result code stands for many
// mistakes. The texts are SQLite's own and the same from every driver.
func containsAny(err error, parts ...string) bool {
	text := err.Error()
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// ReadOnly reports whether the server, the database or the transaction refuses writes.
func ReadOnly(err error) bool {
	return said(err, func(a Answer) bool {
		switch {
		// A read-only transaction; 0A000 if lib/pq asks for another kind in recovery.
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

// Unread reports whether a driver may have refused a statement because the rows of another
// statement on the same connection were not read to their end. Drivers of PostgreSQL and MySQL
// send one statement at a time. pgx reports only that the connection is bad.
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
func NoFunction(err error) bool {
	return said(err, func(a Answer) bool { return a.State == "42883" || a.State == "0A000" }) // undefined_function, feature_not_supported
}

// StalePlan reports whether a SELECT may have failed because the type of a column was changed
// after the driver had prepared the statement: "cached plan must not change result type". Any
// feature_not_supported counts, because the message may be in any language. pgx prepares the
// statement again when it is next sent on the same connection.
func StalePlan(err error) bool {
	return said(err, func(a Answer) bool { return a.State == "0A000" })
}

// OutOfRange reports whether MySQL has computed a number that its type cannot hold.
func OutOfRange(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == outOfRange })
}

// UnknownVariable reports whether a statement names a variable that exists only in the other of
// MySQL and MariaDB.
func UnknownVariable(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == unknownVariable })
}

// InTransaction reports whether MySQL refuses to change the characteristics of the next
// transaction because one is open.
func InTransaction(err error) bool {
	return said(err, func(a Answer) bool { return a.Number == inTransaction })
}
