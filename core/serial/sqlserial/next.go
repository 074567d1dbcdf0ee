package sqlserial

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Tx is a transaction: *sql.Tx, *sqlx.Tx, or GORM's tx.Statement.ConnPool inside of
// db.Transaction. A pool and a *sql.Conn are refused, though they have these methods.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// NextIn returns the next number of the period of a moment, in the transaction of the
// caller. It is one statement, and one more if the series is Chronological. The first call
// for a series also reads its definition. On SQLite each call also looks at the file.
//
// tx is in the database and schema of the Store. The row of the counter is locked until it
// ends, so take the number last. On MySQL and MariaDB the whole series is.
//
// If the outcome of COMMIT is unknown, so is the number: the COMMIT may still arrive, and a
// second transaction has the next number. Look for the row that has it, or use
// sqlxhelper.InTx. That one begins anew only when the first transaction is over, and after
// nil the number in memory is the one stored.
//
// NextIn returns when ctx ends, even if the driver waits for a server that does not answer.
//
// After an error roll back. Errors of the database come as they are, in one that names the
// series. Those of package serial are ErrNotInTransaction, ErrNoSeries, ErrDefinition,
// ErrSeriesFull, ErrPeriodClosed, ErrBackdated and a *core.ValueError. A SQLite file that
// processes may have under two paths is ErrNotDurable, and one that was replaced is
// ErrReplaced. The number is then the zero value.
func (s *Store) NextIn(ctx context.Context, tx Tx, series serial.Series, at time.Time) (serial.Number, error) {
	if err := series.Validate(); err != nil {
		return serial.Number{}, err
	}
	// lib/pq waits for ever. The transaction is the caller's, who waits for it to end in
	// any case; so nothing is gained by a limit to how many hang.
	n, err := wait.Call(ctx, &wait.Calls{Max: 1}, func() (int64, error) { return s.nextIn(ctx, tx, series, at) }, nil)
	if err != nil {
		return serial.Number{}, s.explain("next", series.Name, s.db.Explain(err))
	}
	return series.Number(at, n)
}

func (s *Store) nextIn(ctx context.Context, tx Tx, series serial.Series, at time.Time) (int64, error) {
	// Of the types that fit, those that can be committed are transactions. This package
	// knows neither sqlx nor GORM.
	_, ok := tx.(interface {
		Commit() error
		Rollback() error
	})
	if v := reflect.ValueOf(tx); !ok || v.Kind() == reflect.Pointer && v.IsNil() {
		return 0, fmt.Errorf("%w: %T", serial.ErrNotInTransaction, tx)
	}
	period, err := series.PeriodOf(at)
	if err != nil {
		return 0, err
	}
	t, err := s.db.Within(ctx, tx)
	if err != nil {
		return 0, err
	}
	definition := series.Definition()
	if found, ok := s.known.Load(series.Name); !ok || found.(known).definition != definition {
		text := s.text.definition
		if s.db.Dialect == dialect.MySQL {
			if err := t.RefuseDolt(ctx); err != nil {
				return 0, err
			}
			text = s.text.lock // next locks the row; a shared lock before that may deadlock
		}
		if err := s.verify(ctx, t, text, series); err != nil {
			return 0, err
		}
		s.known.Store(series.Name, known{series, definition})
	}
	if err := s.raiseDate(ctx, t, series, at); err != nil {
		return 0, err
	}
	first, last := series.Bounds()
	n, err := s.increment(ctx, t, period, series.Name, first, last)
	if err != nil || n > 0 {
		return n, err
	}
	if err := s.hold(ctx, t, series); err != nil {
		return 0, err // somebody has deleted the row, which MySQL needs
	}
	c, err := s.row(ctx, t, s.text.look, series.Name, period)
	if err != nil {
		return 0, err
	}
	return 0, refusal(c, period, last)
}

// increment runs the statement that takes a number, and returns it, or 0 for none.
func (s *Store) increment(ctx context.Context, t *sqlrow.Tx, period, name string, first, last int64) (int64, error) {
	if s.db.Dialect != dialect.MySQL {
		return s.number(ctx, t, s.text.next, period, first, name, last)
	}
	result, err := t.Exec(ctx, s.text.next, period, first, name, last)
	if err != nil {
		return 0, err
	}
	n, err := result.LastInsertId()
	if err != nil || n == 0 {
		return 0, err
	}
	// 1 row for the first number of a period, 2 for a later one. If the row stays as it is, it
	// is 0, or 1 if the driver asks for rows that were found: the column is too small for n,
	// which the next caller would get again.
	rows, err := result.RowsAffected()
	if err == nil && (rows == 0 || rows == 1 && n != first) {
		return 0, notKept(n)
	}
	return n, err
}

// number runs a statement that writes and returns a number, or 0 for none.
func (s *Store) number(ctx context.Context, t *sqlrow.Tx, text string, args ...any) (n int64, err error) {
	if s.db.Dialect == dialect.MySQL {
		result, err := t.Exec(ctx, text, args...)
		if err != nil {
			return 0, err
		}
		return result.LastInsertId()
	}
	err = t.Returning(ctx, []any{&n}, text, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}
