package sqlserial

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// Take implements [serial.Store], for a series that this Store has defined. It runs in a
// transaction of its own. What it acknowledges is on disk, as far as one connection can ensure
// that.
func (s *Store) Take(ctx context.Context, series, period string, at time.Time, count int64) (int64, error) {
	known, err := s.defined(series)
	if err != nil {
		return 0, s.explain("take", series, err)
	}
	if count < 1 {
		return 0, invalid("count", strconv.FormatInt(count, 10), "1 or more")
	}
	switch want, err := known.PeriodOf(at); {
	case err != nil:
		return 0, err
	case period != want:
		return 0, invalid("period", fmt.Sprintf("%.20q", period), strconv.Quote(want)+", the period of at")
	}
	first, err := tables.Do(ctx, s.db, func(t *tx) (int64, error) {
		// The series before the counter, as NextIn locks them.
		if err := s.hold(ctx, t, known); err != nil {
			return 0, err
		}
		if err := s.raiseDate(ctx, t, known, at); err != nil {
			return 0, err
		}
		before, err := s.row(ctx, t, t.Text.look, known, period)
		if err != nil {
			return 0, err
		}
		if before.closed || before.last >= known.last {
			return 0, refusal(before, known, period)
		}
		after := before
		after.last += min(count, known.last-before.last)
		return before.last + 1, s.write(ctx, t, before, after, known, period)
	})
	return first, s.explain("take", series, err)
}

// A counter is the row of a period.
type counter struct {
	last   int64 // the last number that was given out; the first one less 1 if there is none
	closed bool
	found  bool // there is a row
}

// row reads the counter of a period by text.
func (s *Store) row(ctx context.Context, t *tx, text string, series *validSeries, period string) (c counter, err error) {
	c.last = series.first - 1
	err = t.Each(ctx, func(scan func(...any) error) error {
		c.found = true
		return scan(&c.last, &c.closed)
	}, text, series.Name, period)
	return c, err
}

// write stores a counter that row has read. It compares what was read, because the lock may have
// ended, see [sqlrow.Tx.Reread].
func (s *Store) write(ctx context.Context, t *tx, before, after counter, series *validSeries, period string) error {
	changed := int64(1)
	var err error
	if before.found {
		var result sql.Result
		if result, err = t.Exec(ctx, t.Text.update, after.last, boolean(after.closed), series.Name, period, before.last, boolean(before.closed)); err == nil {
			changed, err = result.RowsAffected()
		}
	} else { // if another process inserts it first, Do begins anew
		_, err = t.Exec(ctx, t.Text.insert, series.Name, period, after.last, boolean(after.closed))
	}
	if err == nil && s.db.Dialect == dialect.MySQL {
		// Without strict mode MySQL stores the greatest number that the column holds in place of a greater
		// one, and counts no row if that was there before. The other databases refuse it.
		err = t.Reread(ctx, func() error {
			stored, err := s.row(ctx, t, t.Text.look, series, period)
			if err == nil && stored.last != after.last {
				err = notKept(after.last)
			}
			return err
		})
	}
	if err == nil && changed == 0 {
		err = sqlrow.ErrConflict
	}
	return err
}

// boolean returns the value of the column closed.
func boolean(closed bool) int {
	if closed {
		return 1
	}
	return 0
}

// notKept returns the error of a number that the column last does not hold.
func notKept(n int64) error {
	return fmt.Errorf("%w: the column last did not keep %d: make it a BIGINT, and set a strict sql_mode", sqlstore.ErrSchema, n)
}

// refusal returns the error of a period that gives no number.
func refusal(c counter, series *validSeries, period string) error {
	if c.closed {
		return fmt.Errorf("%w: period %q", serial.ErrPeriodClosed, period)
	}
	return fmt.Errorf("%w: period %q: want numbers up to %d", serial.ErrSeriesFull, period, series.last)
}

// raiseDate refuses a date before the last one of a chronological series, and makes it the last
// one. It locks the row of the series until the transaction ends; without the lock, the earlier
// of two dates could pass while the later one is not committed yet.
func (s *Store) raiseDate(ctx context.Context, t *tx, series *validSeries, at time.Time) error {
	if !series.Chronological {
		return nil
	}
	day, err := serial.Series{Period: serial.Daily, Zone: series.Zone}.PeriodOf(at)
	if err != nil {
		return err
	}
	date, err := strconv.ParseInt(day, 10, 64)
	if err != nil {
		return err
	}
	last, err := s.number(ctx, t, t.Text.date, date, series.Name)
	switch {
	case err != nil:
		return err
	case last == 0:
		return serial.ErrNoSeries // its row was deleted
	case last > date:
		return fmt.Errorf("%w: at has the date %s, the last number %s", serial.ErrBackdated, dateText(date), dateText(last))
	}
	return nil
}

func dateText(date int64) string {
	return fmt.Sprintf("%04d-%02d-%02d", date/10000, date/100%100, date%100)
}
