package sqllease

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
)

// A fault is what an error of the database means for a transaction that has not
// begun to commit. Whatever it is, the transaction is undone.
type fault int

const (
	other     fault = iota
	busy            // somebody else was in the way: again, until ctx ends
	duplicate       // somebody else has made it first: look again
	broken          // the connection is of no use: again, on another one
	readOnly
	noTable
	noColumn
	denied // the user lacks a right
)

// faultOf asks the drivers in the ways that need no import of them: PostgreSQL's
// have a method SQLState, MySQL's a field Number. Those of SQLite agree on the
// text only, which SQLite fixes.
func faultOf(d Dialect, err error) fault {
	switch {
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return broken
	case errors.As(err, new(*net.OpError)):
		return broken
	}
	switch d {
	case PostgreSQL:
		var state interface{ SQLState() string }
		if errors.As(err, &state) {
			return faultOfState(state.SQLState())
		}
	case MySQL:
		if f := faultOfNumber(mysqlNumber(err)); f != other {
			return f
		}
		if strings.Contains(err.Error(), "invalid connection") { // mysql.ErrInvalidConn
			return broken
		}
	case SQLite:
		return faultOfText(err.Error())
	}
	return other
}

func faultOfState(state string) fault {
	switch state {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return busy
	case "23505", "42P07", "42710", "42P06": // unique violation; table, its row type, or schema exists
		return duplicate
	case "57P01", "57P02", "57P03", "25P03": // shutdown, crash, starting up, idle in transaction for too long
		return broken
	case "25006", "0A000": // in a read-only transaction; asking for another in recovery, as lib/pq does
		return readOnly
	case "42P01", "3F000": // no such table, no such schema
		return noTable
	case "42703":
		return noColumn
	case "42501":
		return denied
	}
	if strings.HasPrefix(state, "08") { // connection exception
		return broken
	}
	return other
}

func faultOfNumber(number uint64) fault {
	switch number {
	case 1213, 1205, 1020: // deadlock, lock wait timeout, record has changed since last read
		return busy
	case 1062, 1050: // duplicate entry, table exists
		return duplicate
	case 1053, 1927: // shutdown, connection was killed
		return broken
	case 1290, 1792, 1836: // --read-only, READ ONLY transaction, read only mode
		return readOnly
	case 1146:
		return noTable
	case 1054:
		return noColumn
	case 1044, 1142, 1143: // access denied to a database, a table, a column
		return denied
	}
	return other
}

// mysqlNumber returns the number of an error like mysql.MySQLError, or 0.
func mysqlNumber(err error) uint64 {
	for ; err != nil; err = errors.Unwrap(err) {
		if v := reflect.Indirect(reflect.ValueOf(err)); v.Kind() == reflect.Struct {
			if number := v.FieldByName("Number"); number.Kind() == reflect.Uint16 {
				return number.Uint()
			}
		}
	}
	return 0
}

func faultOfText(text string) fault {
	for _, known := range []struct {
		part string
		f    fault
	}{
		{"database is locked", busy},
		{"database table is locked", busy},
		{"database schema is locked", busy},
		{"UNIQUE constraint failed", duplicate},
		{"readonly database", readOnly},
		{"no such table", noTable},
		{"unknown database", noTable},
		{"no such column", noColumn},
		{"has no column named", noColumn},
	} {
		if strings.Contains(text, known.part) {
			return known.f
		}
	}
	return other
}

// withCause adds the context's error where the driver has reported the end of
// ctx in words of its own.
func withCause(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return &caused{err, cause}
	}
	return err
}

type caused struct{ err, cause error }

func (e *caused) Error() string   { return e.cause.Error() + ": " + e.err.Error() }
func (e *caused) Unwrap() []error { return []error{e.cause, e.err} }
