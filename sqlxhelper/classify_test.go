package sqlxhelper

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/snowkey/snowkey/internal/sqlxcases/sqlite"
)

// postgresError has what the errors of pgx and lib/pq have in common.
type postgresError struct{ state string }

func (e *postgresError) Error() string    { return "SQLSTATE " + e.state }
func (e *postgresError) SQLState() string { return e.state }

func postgres(state string) error { return &postgresError{state} }

// MySQLError is what go-sql-driver/mysql calls its errors, and what tells them.
type MySQLError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *MySQLError) Error() string { return fmt.Sprintf("Error %d: %s", e.Number, e.Message) }

func mysql(number uint16) error { return &MySQLError{Number: number} }

func mattn(extended sqlite3.ErrNoExtended) error {
	return sqlite3.Error{Code: sqlite3.ErrNo(extended & 0xff), ExtendedCode: extended}
}

// coded is an error of a program, whose numbers mean something else.
type coded struct{ Number uint16 }

func (coded) Error() string { return "busy" }
func (coded) Code() int     { return 5 }

func TestErrorsOfDriversAreRecognised(t *testing.T) {
	var noPostgres *postgresError
	for _, c := range []struct {
		err                                error
		retryable, duplicate, notCommitted bool
	}{
		{err: nil},
		{err: io.ErrUnexpectedEOF},
		{err: driver.ErrBadConn},
		{err: context.Canceled},
		{err: noPostgres},
		{err: coded{1213}},

		{err: postgres("40001"), retryable: true, notCommitted: true},
		{err: postgres("40P01"), retryable: true, notCommitted: true},
		{err: postgres("23505"), duplicate: true, notCommitted: true},
		{err: postgres("23503"), notCommitted: true},
		{err: postgres("57014"), notCommitted: true}, // a deferred trigger was cancelled
		{err: postgres("P0001"), notCommitted: true},
		{err: postgres("40003")}, // CockroachDB: the result is ambiguous
		{err: postgres("08006")},
		{err: postgres("53100")},
		{err: postgres("57P01")},
		{err: postgres("57P02")},
		{err: postgres("57P03")},
		{err: postgres("58000")},
		{err: postgres("XX000")},
		{err: postgres("")},
		{err: postgres("4")},
		{err: postgres("23")},
		{err: errors.New("commit unexpectedly resulted in rollback"), notCommitted: true},
		{err: errors.New("pq: could not complete operation in a failed transaction"), notCommitted: true},
		{err: errors.New("pq: Could not complete operation in a failed transaction"), notCommitted: true},

		{err: mysql(1213), retryable: true, notCommitted: true},
		{err: mysql(1205), retryable: true, notCommitted: true},
		{err: mysql(1020), retryable: true, notCommitted: true},
		{err: mysql(1062), duplicate: true},
		{err: mysql(1586), duplicate: true},
		{err: mysql(1290), notCommitted: true},
		{err: mysql(1792), notCommitted: true},
		{err: mysql(1836), notCommitted: true},
		{err: mysql(3100), notCommitted: true},
		{err: mysql(3101), notCommitted: true},
		{err: mysql(1053)},
		{err: mysql(1180)},
		{err: mysql(1927)},

		{err: mattn(5), retryable: true, notCommitted: true},
		{err: mattn(sqlite3.ErrBusySnapshot), retryable: true, notCommitted: true},
		{err: mattn(sqlite3.ErrLockedSharedCache), retryable: true, notCommitted: true},
		{err: mattn(1), notCommitted: true}, // no transaction is active
		{err: mattn(6)},
		{err: mattn(sqlite3.ErrConstraintPrimaryKey), duplicate: true, notCommitted: true},
		{err: mattn(sqlite3.ErrConstraintUnique), duplicate: true, notCommitted: true},
		{err: mattn(sqlite3.ErrConstraintForeignKey), notCommitted: true},
		{err: sqlite3.Error{Code: sqlite3.ErrBusy}, retryable: true, notCommitted: true},
		{err: mattn(sqlite3.ErrIoErrFsync)},
		{err: &sqlite.Error{Result: 517}, retryable: true, notCommitted: true},
		{err: &sqlite.Error{Result: 2067}, duplicate: true, notCommitted: true},
		{err: &sqlite.Error{Result: 13}, notCommitted: true},
	} {
		wrapped := fmt.Errorf("insert: %w; then %w: %w", fmt.Errorf("rows 1 to 2: %w", c.err), ErrTxBroken, errors.New("x"))
		if c.err == nil {
			wrapped = nil
		}
		for _, err := range []error{c.err, wrapped, errors.Join(errors.New("before"), wrapped)} {
			if got := retryable(err); got != c.retryable {
				t.Errorf("retryable(%v) = %v; want %v", err, got, c.retryable)
			}
			if got := duplicateKey(err); got != c.duplicate {
				t.Errorf("duplicateKey(%v) = %v; want %v", err, got, c.duplicate)
			}
			if got := notCommitted(err); got != c.notCommitted {
				t.Errorf("notCommitted(%v) = %v; want %v", err, got, c.notCommitted)
			}
		}
	}
}

// The errors of drivers are told by names, and programs have some that are alike.
func TestErrorsThatLookLikeThoseOfDriversAreNotTaken(t *testing.T) {
	type MySQLError struct {
		error
		Number string
	}
	type Error struct{ coded }
	for _, err := range []error{MySQLError{errors.New("1213"), "1213"}, Error{coded{1213}}, sqlite.RefusedError(5), coded{1213}} {
		if got := answerOf(err); got != (answer{}) {
			t.Errorf("answerOf(%#v) = %+v; want none", err, got)
		}
	}
	if f := field(reflect.ValueOf(1213), "Number"); f.IsValid() {
		t.Errorf("field(1213) = %v; want none", f)
	}
}
