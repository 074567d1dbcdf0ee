package sqlxhelper

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/snowkey/snowkey/types"
)

// What the errors of this package match, for errors.Is. Errors of the database,
// of the source and of the context are wrapped and match as themselves.
var (
	// ErrArgument means that the rows of a call are not of a form that the
	// method takes, for instance a struct that is not behind a pointer, or that
	// an option names what the rows do not have.
	ErrArgument = errors.New("sqlxhelper: argument not usable")
	// ErrDB means that a [DB] is nil, or that it cannot be told whether it is a
	// pool or a transaction.
	ErrDB = errors.New("sqlxhelper: database handle not usable")
	// ErrDriver means that nobody has said which SQL the driver name stands for;
	// [RegisterDriver] and [WithDialect] do.
	ErrDriver = errors.New("sqlxhelper: dialect not known")
	// ErrName means a table or column name that is not sent to a database.
	ErrName = errors.New("sqlxhelper: name not usable")
	// ErrSource means that a key was missing and the source gave none: there is
	// no source, or it returned a number below 1 without an error.
	ErrSource = errors.New("sqlxhelper: no key from the source")
	// ErrForeignKey means a foreign key that contradicts the row that it refers
	// to, which is the parent that holds the row or the one that a belongs_to
	// field holds; that is shared with a row for which it would be another one; or
	// that would be sent as zero. The error is a [*RowError].
	ErrForeignKey = errors.New("sqlxhelper: foreign key not usable")
	// ErrDuplicateKey means that the database has refused a row because another
	// one has its key, or its value in another unique index. The error is an
	// [*InsertError].
	ErrDuplicateKey = errors.New("sqlxhelper: duplicate key")
	// ErrUnresolved means that a row of an upsert was not inserted and the row
	// that is stored instead cannot be told, or that a row is not there to be read
	// back. The error is an [*InsertError], as a rule.
	ErrUnresolved = errors.New("sqlxhelper: stored row not found")
	// ErrTxBroken means that the transaction in which a call was made cannot go on:
	// it has ended, or its connection is gone, as after a context that has ended
	// during a statement. Roll the transaction back: on MySQL and SQLite a server
	// that has ended it by itself would commit whatever is sent on it next. The
	// error of the context is wrapped too, if it has ended.
	ErrTxBroken = errors.New("sqlxhelper: transaction no longer usable, roll it back")
	// ErrCommitUnknown means that [InTx] cannot tell whether its transaction is
	// committed: the connection broke while the commit was on its way, and the
	// rows that could tell were not there, or there were none. What the commit
	// said is wrapped. Look for the rows by the keys in the structs before
	// anything is done again with new ones.
	ErrCommitUnknown = errors.New("sqlxhelper: not known whether the transaction is committed")
)

// A PlanError says why no row of a struct type can be inserted. It depends on
// the type and the mapper of sqlx alone, so the first call with that type finds
// it, even for an empty slice, and nothing was assigned or sent. The types to
// which relations lead are looked at too, also by calls that do not follow them.
type PlanError struct {
	Type    reflect.Type // the struct type at fault: that of the rows, or one to which their relations lead
	Field   string       // the field, with the embedded structs that lead to it: "Base.ID"; "" if it is the type as a whole
	Problem string       // what is wrong, and what to write instead
}

func (e *PlanError) Error() string {
	name := e.Type.String()
	if e.Field != "" {
		name += "." + e.Field
	}
	return "sqlxhelper: " + name + ": " + e.Problem
}

// A RowError says which row of a call cannot be inserted, as far as that can be
// seen without a database: it is found before keys are assigned and before any
// SQL, and all rows are as they were. What the database or the Value method of a
// field refuses later is an [InsertError].
type RowError struct {
	Path    string // the row, by type, index and field: "shop.Order[3].Items[0]"
	Problem string // what is wrong
	Err     error  // ErrForeignKey where it is one, else nil
}

func (e *RowError) Error() string { return "sqlxhelper: " + e.Path + ": " + e.Problem }

// Unwrap returns e.Err.
func (e *RowError) Unwrap() error { return e.Err }

// An InsertError says which rows a statement had that failed, and which of them
// it failed for, as far as that is known. Keys and foreign keys are assigned by
// then and stay, and the rows are not stored. Err is what the database, its
// driver, the context or the Value method of a field said.
//
// The row is known if the statement had no other, or if it is proved: parts of
// the statement are sent again, in what is rolled back, and that row is refused
// by itself; or PostgreSQL says the line of a COPY, or which value could not be
// bound. Otherwise none is named.
type InsertError struct {
	Table       string          // the table, as it was named in the call or in the tag
	First, Last int             // the rows of the statement, counted from 0 among those of the table
	Rows        int             // how many rows of the call go into the table
	Row         int             // the row that is to blame, counted as First, or -1 if it is not known
	Path        string          // the same row by type, index and field: "shop.Order[3].Items[0]", or ""
	Field       string          // its field, if Err is about one value, or ""
	Key         types.Snowflake // its primary key, or 0
	Err         error
}

func (e *InsertError) Error() string {
	at := fmt.Sprintf("rows %d to %d of %d", e.First+1, e.Last+1, e.Rows)
	if e.Row >= 0 {
		at = e.Path
		if e.Field != "" {
			at += "." + e.Field
		}
		at += fmt.Sprintf(" (id %d)", e.Key)
	}
	return fmt.Sprintf("sqlxhelper: insert into %s, %s: %v", e.Table, at, e.Err)
}

// Unwrap returns e.Err.
func (e *InsertError) Unwrap() error { return e.Err }

// Is matches [ErrDuplicateKey].
func (e *InsertError) Is(target error) bool {
	return target == ErrDuplicateKey && duplicateKey(e.Err)
}

// A CountError says that a statement succeeded and yet did not insert the rows
// that it was given, as when a trigger suppresses some. The call is undone like
// after any other error, with one exception: several rows that went to a pool
// as a single statement, on PostgreSQL and MySQL, had no transaction around
// them, and the rows that were counted are stored.
type CountError struct {
	Table    string // the table, as it was named in the call or in the tag
	Rows     int64  // how many rows the statement was given
	Affected int64  // how many the database says it has inserted
}

func (e *CountError) Error() string {
	return fmt.Sprintf("sqlxhelper: insert into %s: %d rows affected, %d rows given", e.Table, e.Affected, e.Rows)
}
