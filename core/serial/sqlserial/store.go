package sqlserial

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// DefaultTable is the table if Config.Table is empty.
const DefaultTable = "snowkey_counters"

// A Store keeps the counters. New makes it; the zero value has no database. It is safe for
// concurrent use and must not be copied.
type Store struct {
	db     *tables.DB
	text   texts
	known  sync.Map // name to known: the series whose definition was that of the table
	warned sync.Map // name to true: of a definition that is another one since
}

var _ serial.Store = (*Store)(nil)

// A known is a series with its definition.
type known struct {
	series     serial.Series
	definition string
}

// New returns a Store on db. It does no I/O and does not take db over. If an argument is
// wrong the error is a [*core.ValueError].
//
// Config.Table has one row per series and period. Two more tables have one row per series, and
// what was done to periods by hand, see [Event]. If Config.Table is empty they are
// snowkey_counters, snowkey_series and snowkey_counter_events. Beside a table of another name
// they have that name and _series and _events behind it.
func New(db *sql.DB, c sqlstore.Config) (*Store, error) {
	d, err := tables.Open(db, c, tables.Kind{
		Package:  "sqlserial",
		Names:    []string{DefaultTable, "snowkey_series", "snowkey_counter_events"},
		Suffixes: []string{"_series", "_events"},
		Create:   create,
		Definite: definite,
	})
	if err != nil {
		return nil, err
	}
	return &Store{db: d, text: textsOf(d.Dialect, d.Names)}, nil
}

func invalid(name, value, want string) error {
	return &core.ValueError{Package: "sqlserial", Name: name, Value: value, Want: want}
}

// definite reports whether err was decided from what was read, and not by the database.
func definite(err error) bool {
	for _, kind := range []error{
		serial.ErrNoSeries, serial.ErrDefinition, serial.ErrSeriesFull, serial.ErrPeriodClosed, serial.ErrPeriodOpen, serial.ErrCounted, serial.ErrBackdated, serial.ErrMeets, sqlstore.ErrSchema,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return errors.As(err, new(*core.ValueError))
}

// explain returns the error of an operation on a series.
func (s *Store) explain(name, series string, err error) error {
	if err == nil {
		return nil
	}
	if series != "" {
		series = " series " + series + ":"
	}
	return fmt.Errorf("sqlserial: %s:%s %w", name, series, err)
}

// Statements returns the statements that create the tables, for those who run their
// migrations themselves. None ends in a semicolon.
func (s *Store) Statements() []string { return s.db.Statements() }

// CreateTables creates the tables, unless they are there. Any number of processes may do so
// at the same time.
func (s *Store) CreateTables(ctx context.Context) error {
	return s.explain("create tables", "", s.db.CreateTables(ctx, func(ctx context.Context, t *sqlrow.Tx) error {
		for i, columns := range []string{"series, period, last, closed", "series, definition, last_date", "series, period, position, what, happened, last, reason"} {
			if err := tables.Columns(ctx, t, s.db.Dialect, s.db.Names[i], columns); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Define implements [serial.Store]. It runs outside of the caller's transactions. Call it
// when the program starts.
func (s *Store) Define(ctx context.Context, series serial.Series) error {
	if err := series.Validate(); err != nil {
		return err
	}
	_, err := tables.Do(ctx, s.db, func(t *sqlrow.Tx) (done struct{}, err error) {
		return done, s.verify(ctx, t, s.text.definition, series)
	})
	if errors.Is(err, serial.ErrNoSeries) {
		_, err = tables.Do(ctx, s.db, func(t *sqlrow.Tx) (done struct{}, err error) { return done, s.add(ctx, t, series) })
	}
	if err == nil {
		s.known.Store(series.Name, known{series, series.Definition()})
	}
	return s.explain("define", series.Name, err)
}

// add adds a series whose texts no other one writes. The first statement locks the guard: of
// two programs that add series which meet, the second one sees what the first has added.
// Behind a read, MySQL would show it the rows of before the wait.
func (s *Store) add(ctx context.Context, t *sqlrow.Tx, series serial.Series) error {
	result, err := t.Exec(ctx, s.text.guard)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil {
		return err
	} else if n == 0 { // if somebody else is first, Do begins anew
		if _, err := t.Exec(ctx, s.text.addGuard); err != nil {
			return err
		}
	}
	if err := s.verify(ctx, t, s.text.definition, series); !errors.Is(err, serial.ErrNoSeries) {
		return err
	}
	var met error
	err = t.Each(ctx, func(scan func(...any) error) error {
		var name, definition string
		if err := scan(&name, &definition); err != nil {
			return err
		}
		if met == nil && meet(series, definition) {
			met = fmt.Errorf("%w: here %s; series %s has %s. Want another prefix, or another scope if the texts are those of another company",
				serial.ErrMeets, series.Definition(), name, definition)
		}
		return nil
	}, s.text.all)
	if err = errors.Join(err, met); err != nil {
		return err
	}
	_, err = t.Exec(ctx, s.text.define, series.Name, series.Definition())
	return err
}

// verify compares the definition of a series with the one in the table.
func (s *Store) verify(ctx context.Context, t *sqlrow.Tx, text string, series serial.Series) error {
	stored, err := s.definition(ctx, t, text, series.Name)
	switch want := series.Definition(); {
	case err != nil:
		return err
	case stored != want:
		return fmt.Errorf("%w: here %s; in table %s %s", serial.ErrDefinition, want, s.db.Names[1], stored)
	}
	return nil
}

// definition reads the definition of a series by one of two texts, of which the other also
// locks the row.
func (s *Store) definition(ctx context.Context, t *sqlrow.Tx, text, name string) (stored string, err error) {
	found := false
	err = t.Each(ctx, func(scan func(...any) error) error {
		found = true
		return scan(&stored)
	}, text, name)
	if err == nil && !found {
		err = fmt.Errorf("%w: call Define when the program starts", serial.ErrNoSeries)
	}
	return stored, err
}

// hold locks the row of a series that was verified when the program began. Somebody may have
// changed the definition there since. The numbers rest on the counter, and not on the text,
// so the program goes on with the series that it has; one that starts is refused.
func (s *Store) hold(ctx context.Context, t *sqlrow.Tx, series serial.Series) error {
	stored, err := s.definition(ctx, t, s.text.lock, series.Name)
	if err != nil || stored == series.Definition() {
		return err
	}
	if _, again := s.warned.LoadOrStore(series.Name, true); !again {
		s.db.Log.WarnContext(ctx, "sqlserial: the definition of the series was changed in the table. The program goes on with its own; the next one that starts is refused.",
			"series", series.Name, "here", series.Definition(), "table", stored)
	}
	return nil
}

// defined returns the series of a name that this Store has seen in the table.
func (s *Store) defined(name string) (serial.Series, error) {
	if found, ok := s.known.Load(name); ok {
		return found.(known).series, nil
	}
	return serial.Series{}, fmt.Errorf("%w: call Define before", serial.ErrNoSeries)
}

// A counter is a row of the table.
type counter struct {
	last   int64
	closed bool
	found  bool
}

// row reads the counter of a period.
func (s *Store) row(ctx context.Context, t *sqlrow.Tx, text, series, period string) (c counter, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		c.found = true
		return scan(&c.last, &c.closed)
	}, text, series, period)
	return c, err
}

// write stores a counter that row has read.
func (s *Store) write(ctx context.Context, t *sqlrow.Tx, before, after counter, series, period string) error {
	closed := 0
	if after.closed {
		closed = 1
	}
	var err error
	if before.found {
		_, err = t.Exec(ctx, s.text.update, after.last, closed, series, period)
	} else { // somebody else may be first: then Do begins anew
		_, err = t.Exec(ctx, s.text.insert, series, period, after.last, closed)
	}
	if err != nil || s.db.Dialect != dialect.MySQL {
		return err // the others refuse a number that is too large
	}
	stored, err := s.row(ctx, t, s.text.look, series, period)
	if err == nil && stored.last != after.last {
		err = notKept(after.last)
	}
	return err
}

// notKept is the error of a number that the column last does not hold.
func notKept(n int64) error {
	return fmt.Errorf("%w: the column last did not keep %d: make it a BIGINT, and set a strict sql_mode", sqlstore.ErrSchema, n)
}

// Take implements [serial.Store], for a series that was defined by this Store. It runs in a
// transaction of its own. What is acknowledged is on disk, as far as one connection can see
// to that.
func (s *Store) Take(ctx context.Context, name, period string, at time.Time, count int64) (int64, error) {
	series, err := s.defined(name)
	if err != nil {
		return 0, s.explain("take", name, err)
	}
	if count < 1 {
		return 0, invalid("count", strconv.FormatInt(count, 10), "1 or more")
	}
	switch want, err := series.PeriodOf(at); {
	case err != nil:
		return 0, err
	case period != want:
		return 0, invalid("period", fmt.Sprintf("%.20q", period), strconv.Quote(want)+", that of at")
	}
	first, err := tables.Do(ctx, s.db, func(t *sqlrow.Tx) (int64, error) {
		// In the order of NextIn: the series, then the counter.
		if err := s.hold(ctx, t, series); err != nil {
			return 0, err
		}
		if err := s.raiseDate(ctx, t, series, at); err != nil {
			return 0, err
		}
		before, err := s.row(ctx, t, s.text.look, name, period)
		if err != nil {
			return 0, err
		}
		first, last := series.Bounds()
		if !before.found {
			before.last = first - 1
		}
		if before.closed || before.last >= last {
			return 0, refusal(before, period, last)
		}
		after := before
		after.last += min(count, last-before.last)
		return before.last + 1, s.write(ctx, t, before, after, name, period)
	})
	return first, s.explain("take", name, err)
}

// refusal is the error of a period that takes no number.
func refusal(c counter, period string, last int64) error {
	if c.closed {
		return fmt.Errorf("%w: period %q", serial.ErrPeriodClosed, period)
	}
	return fmt.Errorf("%w: period %q: want numbers up to %d", serial.ErrSeriesFull, period, last)
}

// dateOf returns the civil date of a moment in the zone of the series, as the number 20261122.
func dateOf(series serial.Series, at time.Time) (int64, error) {
	day, err := serial.Series{Period: serial.Daily, Zone: series.Zone}.PeriodOf(at)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(day, 10, 64)
}

// raiseDate refuses a date before the last one of a chronological series, and makes it the
// last one. It locks the row of the series until the transaction ends: without that, one
// of two dates could pass while the other is not yet committed.
func (s *Store) raiseDate(ctx context.Context, t *sqlrow.Tx, series serial.Series, at time.Time) error {
	if !series.Chronological {
		return nil
	}
	date, err := dateOf(series, at)
	if err != nil {
		return err
	}
	last, err := s.number(ctx, t, s.text.date, date, series.Name)
	switch {
	case err != nil:
		return err
	case last == 0:
		return serial.ErrNoSeries // somebody has deleted the row
	case last > date:
		return fmt.Errorf("%w: at has the date %s, the last number %s", serial.ErrBackdated, dateText(date), dateText(last))
	}
	return nil
}

func dateText(date int64) string {
	return fmt.Sprintf("%04d-%02d-%02d", date/10000, date/100%100, date%100)
}
