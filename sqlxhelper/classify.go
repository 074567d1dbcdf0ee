package sqlxhelper

import (
	"iter"
	"reflect"
	"strings"
)

// What a database has said is read off the errors of its driver without
// importing one: a requirement in go.mod would be everybody's, and the same
// driver comes in several packages.

// An answer is an error that the database itself has reported. One of its
// fields is set.
type answer struct {
	state  string // SQLSTATE, of PostgreSQL
	number uint16 // of MySQL and MariaDB
	code   int    // extended result code, of SQLite
}

// answers returns what the database has said in err and in all that it wraps,
// in the order in which the texts of the errors stand in the text of err.
func answers(err error) iter.Seq[answer] {
	return func(yield func(answer) bool) {
		for e := range tree(err) {
			if a := answerOf(e); a != (answer{}) && !yield(a) {
				return
			}
		}
	}
}

// tree returns err and what it wraps, as errors.Is walks it. errors.As needs
// the type that it looks for, and the types are the drivers'.
func tree(err error) iter.Seq[error] {
	return func(yield func(error) bool) { visit(err, yield) }
}

// visit is the recursion of tree; it returns false to end it.
func visit(err error, yield func(error) bool) bool {
	if v := reflect.ValueOf(err); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return true // a nil pointer says nothing, and its methods may panic
	}
	if !yield(err) {
		return false
	}
	if e, ok := err.(interface{ Unwrap() error }); ok {
		return visit(e.Unwrap(), yield)
	}
	if e, ok := err.(interface{ Unwrap() []error }); ok {
		for _, wrapped := range e.Unwrap() {
			if !visit(wrapped, yield) {
				return false
			}
		}
	}
	return true
}

// answerOf looks at one error, not at what it wraps. A method or a field alone
// decides nothing: programs have errors with a Code of their own.
func answerOf(err error) answer {
	// *pgconn.PgError of pgx since 4, and *pq.Error of lib/pq since 1.10.6. Both
	// call the method so for the sake of code like this.
	if e, ok := err.(interface{ SQLState() string }); ok {
		return answer{state: e.SQLState()}
	}
	v := reflect.Indirect(reflect.ValueOf(err))
	switch t := v.Type(); {
	case t.Name() == "MySQLError":
		if f := field(v, "Number"); f.IsValid() && f.Kind() == reflect.Uint16 {
			return answer{number: uint16(f.Uint())}
		}
	case t.Name() == "Error" && strings.Contains(t.PkgPath(), "sqlite"):
		// modernc.org/sqlite and its relatives: the code is the extended one.
		if e, ok := err.(interface{ Code() int }); ok {
			return answer{code: e.Code()}
		}
		// mattn/go-sqlite3: the extended code is the code where there is none.
		for _, name := range []string{"ExtendedCode", "Code"} {
			if f := field(v, name); f.IsValid() && f.CanInt() && f.Int() != 0 {
				return answer{code: int(f.Int())}
			}
		}
	}
	return answer{}
}

// field returns a field of a struct, or the zero Value.
func field(v reflect.Value, name string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.FieldByName(name)
}

// primary returns the result code without what the extended one adds to it.
func (a answer) primary() int { return a.code & 0xff }

// The result codes of SQLite that decide something here.
const (
	sqliteError            = 1
	sqliteBusy             = 5
	sqliteFull             = 13
	sqliteConstraint       = 19
	sqliteMismatch         = 20
	sqliteLockedShared     = 6 | 1<<8  // SQLITE_LOCKED_SHAREDCACHE
	sqliteDuplicateKey     = 19 | 6<<8 // SQLITE_CONSTRAINT_PRIMARYKEY
	sqliteDuplicateInIndex = 19 | 8<<8 // SQLITE_CONSTRAINT_UNIQUE
	sqliteForeignKey       = 19 | 3<<8 // SQLITE_CONSTRAINT_FOREIGNKEY
)

// retryable tells whether err says that the transaction has lost against
// another one, so that it may succeed if all of it is run again.
//
// A lock that was not granted in time is among them on MySQL and SQLite, which
// detect some deadlocks in no other way. SQLITE_LOCKED is not, except where a
// connection with a shared cache holds the lock: otherwise it is an unfinished
// query of the same connection, and waiting ends nothing.
func retryable(err error) bool {
	for a := range answers(err) {
		switch {
		case a.state == "40001", a.state == "40P01": // serialization_failure, deadlock_detected
			return true
		case a.number == 1213, a.number == 1205, a.number == 1020:
			// Deadlock; lock wait timeout; and, where MariaDB has
			// innodb_snapshot_isolation, "Record has changed since last read".
			return true
		case a.primary() == sqliteBusy, a.code == sqliteLockedShared:
			return true
		}
	}
	return false
}

// duplicateKey tells whether err says that a row has the key of another one, or
// its value in another unique index.
func duplicateKey(err error) bool {
	for a := range answers(err) {
		switch {
		case a.state == "23505": // unique_violation
			return true
		case a.number == 1062, a.number == 1586: // the latter names the index
			return true
		case a.code == sqliteDuplicateKey, a.code == sqliteDuplicateInIndex:
			return true
		}
	}
	return false
}

// rowFault tells whether err is what a database says of a row, after which the
// statement is undone and its transaction goes on: that of SQLite and MySQL.
func rowFault(err error) bool {
	for a := range answers(err) {
		switch a.primary() {
		case sqliteConstraint, sqliteMismatch:
			return true
		}
		switch a.number {
		case 1048, 1364, // NULL, no default
			1062, 1586, // duplicate key
			1264, 1265, 1292, 1366, 1367, 1406, 1411, 1690, // out of range, truncated, incorrect, too long
			1216, 1452, // no parent row
			1369, 1526, 1644, // CHECK OPTION of a view, no partition, SIGNAL in a trigger
			3140, 3819, 4025: // JSON, CHECK of MySQL and of MariaDB
			return true
		}
	}
	return false
}

// notCommitted tells whether err, of a commit that was sent, says that the
// transaction is rolled back. Anything that it does not know is no proof, and
// false: the connection broke, it was closed because ctx ended, or the server
// said something that it can also say after the commit record was written.
func notCommitted(err error) bool {
	for e := range tree(err) {
		// pgx and lib/pq have errors of their own for a COMMIT that the server
		// answered with ROLLBACK, because a statement before it had failed and
		// nobody looked. Their values are out of reach, and their texts are as old
		// as the drivers; a text that is changed one day makes the outcome
		// unknown, which is the careful error.
		switch e.Error() {
		case "commit unexpectedly resulted in rollback",
			"pq: could not complete operation in a failed transaction",
			"pq: Could not complete operation in a failed transaction":
			return true
		}
		if answerOf(e).notCommitted() {
			return true
		}
	}
	return false
}

// notCommitted tells whether a, said to a COMMIT, means that it was rolled back.
func (a answer) notCommitted() bool {
	switch {
	case a.state != "":
		return a.postgresRolledBack()
	case a.number != 0:
		// MySQL writes the binary log before the engine commits, and has errors
		// from in between: nothing can be said about errors in general, as
		// 1180 (error during commit), 1317 (interrupted), 1053 and 1927
		// (shutdown, killed). These are said after a rollback: deadlock, which is
		// how Galera reports a lost certification too; lock wait timeout, on the
		// global read lock of a backup; 1020 as above; a hook or the group
		// replication refused; the server or the transaction is read only.
		switch a.number {
		case 1213, 1205, 1020, 3100, 3101, 1290, 1792, 1836:
			return true
		}
		return false
	default:
		// A COMMIT that is busy or violates a deferred constraint leaves the
		// transaction open. mattn/go-sqlite3 and modernc.org/sqlite send ROLLBACK
		// after it, since database/sql will not. Older versions of the latter leave
		// their connection inside the transaction; that one is not committed later
		// either, for database/sql sends COMMIT only after a BEGIN, and BEGIN fails
		// there. A full disk is found before the commit point, and code 1 is "no
		// transaction is active". An I/O error is not here: it may have hit the
		// very write that commits.
		switch a.primary() {
		case sqliteError, sqliteBusy, sqliteFull, sqliteConstraint:
			return true
		}
		return a.code == sqliteLockedShared
	}
}

// postgresRolledBack is notCommitted for SQLSTATEs. An ERROR of PostgreSQL at
// COMMIT comes from before the commit record; what can be said after it is that
// the connection or the server ends (FATAL, PANIC), and the classes for that
// are left out, though some of them have other uses. So is 40003 in the class of
// rollbacks, "statement completion unknown", which CockroachDB means literally.
func (a answer) postgresRolledBack() bool {
	if len(a.state) != 5 || a.state == "40003" {
		return false
	}
	switch a.state[:2] {
	case "08", // connection exception, also of poolers whose server is gone
		"53", // insufficient resources: no space for the log is a PANIC
		"58", // system error, of poolers as well
		"XX": // internal error
		return false
	}
	// 57P01 to 57P05: the server shuts down, has crashed, does not accept
	// connections yet, or has ended an idle session. The first is also said to
	// those who wait for a synchronous standby, when all is committed here.
	return !strings.HasPrefix(a.state, "57P")
}
