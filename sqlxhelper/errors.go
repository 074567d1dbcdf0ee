package sqlxhelper

import (
	"errors"
	"fmt"
	"reflect"
)

// What the errors of this package match, for errors.Is. Errors of the database,
// of the source and of the context are wrapped and match as themselves.
var (
	// ErrArgument means that the rows of a call are not of a form that the
	// method takes, for instance a struct that is not behind a pointer.
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
	// ErrForeignKey means a foreign key that contradicts the parent, or that
	// would be sent as zero. The error is a [*RowError].
	ErrForeignKey = errors.New("sqlxhelper: foreign key not usable")
	// ErrTxBroken means that the savepoint of a failed call could not be rolled
	// back, because the transaction has ended or its connection is gone. Roll
	// the transaction back: on MySQL and SQLite a server that has ended it by
	// itself would commit whatever is sent on it next.
	ErrTxBroken = errors.New("sqlxhelper: transaction no longer usable, roll it back")
)

// A PlanError says why no row of a struct type can be inserted. It depends on
// the type alone, so the first call with that type finds it, even for an empty
// slice, and nothing was assigned or sent.
type PlanError struct {
	Type    reflect.Type // the struct type at fault: that of the rows or of their children
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

// A RowError says which row of a call cannot be inserted. It is found before
// keys are assigned and before any SQL: all rows are as they were.
type RowError struct {
	Path    string // the row, by type, index and field: "shop.Order[3].Items[0]"
	Problem string // what is wrong
	Err     error  // ErrForeignKey where it is one, else nil
}

func (e *RowError) Error() string { return "sqlxhelper: " + e.Path + ": " + e.Problem }

// Unwrap returns e.Err.
func (e *RowError) Unwrap() error { return e.Err }

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
