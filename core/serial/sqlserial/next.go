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
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Tx is a transaction: *sql.Tx, *sqlx.Tx, or GORM's tx.Statement.ConnPool inside of
// db.Transaction. A pool and a *sql.Conn are refused, though they have these methods.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// NextIn returns the next number of the period of a moment, in the caller's transaction, which is
// in the database of the Store and may have any search_path. It runs one statement, and a second one
// if the series is Chronological. The first call for a series also reads its definition, that of a
// Store that no other method has used finds the tables, and on SQLite each call also looks at the
// file.
//
// The row of the counter, and on MySQL and MariaDB the whole series, is locked until the
// transaction ends, so take the number last.
//
// If the outcome of COMMIT is unknown, the number is unknown too, because the COMMIT may still
// arrive and a second transaction gets the next number. Look for the row that has it, or use
// sqlxhelper.InTx, which begins anew only when the first transaction is over; after it has
// returned nil, the number in memory is the stored one.
//
// NextIn returns when ctx ends, even if the driver waits for a server that does not answer.
//
// After an error the number is the zero value; roll back. Errors of the database are wrapped with
// the name of the series. Others match [serial.ErrNotInTransaction], [serial.ErrNoSeries],
// [serial.ErrDefinition], [serial.ErrSeriesFull], [serial.ErrPeriodClosed], [serial.ErrBackdated],
// and for the SQLite file [sqlstore.ErrNotDurable] and [sqlstore.ErrReplaced], or are a
// [*core.ValueError]. [sqlstore.ErrOtherSchema] means that two schemas have the tables, between which
// the transaction does not choose; call Define or Lookup before.
func (s *Store) NextIn(ctx context.Context, tx Tx, series serial.Series, at time.Time) (serial.Number, error) {
	of, err := s.validate(series)
	if err != nil {
		return serial.Number{}, err
	}
	// lib/pq waits for ever. The caller, whose transaction it is, waits for its end in any case,
	// so a limit to the number of calls that hang would gain nothing.
	n, err := wait.Call(ctx, &wait.Calls{Max: 1}, func() (int64, error) { return s.nextIn(ctx, tx, of, at) }, nil)
	if err != nil {
		return serial.Number{}, s.explain("next", series.Name, s.db.Explain(err))
	}
	return series.Number(at, n)
}

func (s *Store) nextIn(ctx context.Context, tx Tx, series *validSeries, at time.Time) (int64, error) {
	if !isTransaction(tx) {
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
	if err := s.verifyFirst(ctx, t, series); err != nil {
		return 0, err
	}
	if err := s.raiseDate(ctx, t, series, at); err != nil {
		return 0, err
	}
	n, err := s.increment(ctx, t, series, period)
	if err != nil || n > 0 {
		return n, err
	}
	return 0, s.noNumber(ctx, t, series, period)
}

// isTransaction reports whether tx is a transaction. Of the types that have its methods, those are
// transactions that can be committed; this package imports neither sqlx nor GORM.
func isTransaction(tx Tx) bool {
	_, ok := tx.(interface {
		Commit() error
		Rollback() error
	})
	v := reflect.ValueOf(tx)
	return ok && (v.Kind() != reflect.Pointer || !v.IsNil())
}

// verifyFirst verifies the definition of a series that this Store has not verified before.
func (s *Store) verifyFirst(ctx context.Context, t *tx, series *validSeries) error {
	if s.knows(series) {
		return nil
	}
	text := t.Text.definition
	if s.db.Dialect == dialect.MySQL {
		if err := t.RefuseDolt(ctx); err != nil {
			return err
		}
		text = t.Text.lock // next locks the row, and a shared lock before that may deadlock
	}
	if err := s.verify(ctx, t, text, series); err != nil {
		return err
	}
	s.known.Store(series.Name, series)
	return nil
}

// noNumber returns why a period gives no number.
func (s *Store) noNumber(ctx context.Context, t *tx, series *validSeries, period string) error {
	if err := s.hold(ctx, t, series); err != nil {
		return err // the row was deleted, which MySQL needs
	}
	c, err := s.row(ctx, t, t.Text.look, series, period)
	if err != nil {
		return err
	}
	return refusal(c, series, period)
}

// increment takes a number and returns it, or 0 if the period gives none.
func (s *Store) increment(ctx context.Context, t *tx, series *validSeries, period string) (int64, error) {
	args := []any{period, series.first, series.Name, series.last}
	if s.db.Dialect != dialect.MySQL {
		return s.number(ctx, t, t.Text.next, args...)
	}
	result, err := t.Exec(ctx, t.Text.next, args...)
	if err != nil {
		return 0, err
	}
	n, err := result.LastInsertId()
	if err != nil || n == 0 {
		return 0, err
	}
	// MySQL counts 1 row for the first number of a period and 2 for a later one. 0 rows, or 1 if
	// the driver asks for rows that were found, mean an unchanged row: the column is too small for
	// n, which the next caller would get again.
	rows, err := result.RowsAffected()
	if err == nil && (rows == 0 || rows == 1 && n != series.first) {
		return 0, notKept(n)
	}
	return n, err
}

// number runs a statement that writes and returns a number, or 0 for none.
func (s *Store) number(ctx context.Context, t *tx, text string, args ...any) (n int64, err error) {
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
