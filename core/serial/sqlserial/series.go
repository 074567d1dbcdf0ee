package sqlserial

import (
	"context"
	"errors"
	"fmt"

	"github.com/snowkey/snowkey/core/internal/tables"
	"github.com/snowkey/snowkey/core/serial"
)

// A validSeries is a series that Validate has accepted, with what every call derives from it. It is
// immutable, so that calls may share it.
type validSeries struct {
	serial.Series
	definition  string
	first, last int64 // numbers of each period
}

func validate(s serial.Series) (*validSeries, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	first, last := s.Bounds()
	return &validSeries{s, s.Definition(), first, last}, nil
}

// validate is the function, and returns what the Store knows if this is the same series.
func (s *Store) validate(series serial.Series) (*validSeries, error) {
	if found, ok := s.known.Load(series.Name); ok && found.(*validSeries).Series == series {
		return found.(*validSeries), nil
	}
	return validate(series)
}

// knows reports whether this Store has verified the definition of the series.
func (s *Store) knows(series *validSeries) bool {
	found, ok := s.known.Load(series.Name)
	return ok && found.(*validSeries).definition == series.definition
}

// Define implements [serial.Store]. It runs in a transaction of its own. Call it when the program
// starts.
func (s *Store) Define(ctx context.Context, series serial.Series) error {
	of, err := validate(series)
	if err != nil {
		return err
	}
	_, err = tables.Do(ctx, s.db, func(t *tx) (done struct{}, err error) {
		return done, s.verify(ctx, t, t.Text.definition, of)
	})
	if errors.Is(err, serial.ErrNoSeries) {
		_, err = tables.Do(ctx, s.db, func(t *tx) (done struct{}, err error) { return done, s.add(ctx, t, of) })
	}
	if err == nil {
		s.known.Store(series.Name, of)
	}
	return s.explain("define", series.Name, err)
}

// Lookup returns a series as the table has it, for programs that do not define it. The Store knows
// it from then on, as after Define.
func (s *Store) Lookup(ctx context.Context, name string) (serial.Series, error) {
	of, err := tables.Do(ctx, s.db, func(t *tx) (*validSeries, error) {
		stored, err := s.definition(ctx, t, t.Text.definition, name)
		if err != nil {
			return nil, err
		}
		series, err := serial.ParseDefinition(name, stored)
		if err != nil {
			return nil, err
		}
		return validate(series)
	})
	if err != nil {
		return serial.Series{}, s.explain("lookup", name, err)
	}
	s.known.Store(name, of)
	return of.Series, nil
}

// A Row is a series and the counter of one of its periods, for operators.
type Row struct {
	Series, Definition string
	Counted            bool // some period has a counter; if not, the rest is zero
	Period             string
	Last               int64 // the last number that was given out
	Closed             bool
}

// Rows lists the series, each with its periods, in their order.
func (s *Store) Rows(ctx context.Context) ([]Row, error) {
	rows, err := tables.Do(ctx, s.db, func(t *tx) (rows []Row, err error) {
		err = t.Each(ctx, func(scan func(...any) error) error {
			var r Row
			var period *string
			var last *int64
			var closed *bool
			if err := scan(&r.Series, &r.Definition, &period, &last, &closed); err != nil {
				return err
			}
			if r.Counted = period != nil; r.Counted {
				r.Period, r.Last, r.Closed = *period, *last, *closed
			}
			rows = append(rows, r)
			return nil
		}, t.Text.rows)
		return rows, err
	})
	return rows, s.explain("rows", "", err)
}

// add adds a series unless one of its texts can belong to another series. Its first statement
// locks the guard, so that of two programs which add series that meet, the second sees what the
// first has added. On MySQL a read before the lock would show the second the rows of before the
// wait.
func (s *Store) add(ctx context.Context, t *tx, series *validSeries) error {
	result, err := t.Exec(ctx, t.Text.guard)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil {
		return err
	} else if n == 0 { // if another process inserts the row first, Do begins anew
		if _, err := t.Exec(ctx, t.Text.addGuard); err != nil {
			return err
		}
	}
	if err := s.verify(ctx, t, t.Text.definition, series); !errors.Is(err, serial.ErrNoSeries) {
		return err
	}
	var met error
	err = t.Each(ctx, func(scan func(...any) error) error {
		var name, definition string
		if err := scan(&name, &definition); err != nil {
			return err
		}
		if met == nil && meet(series.Series, definition) {
			met = fmt.Errorf("%w: here %s; series %s has %s. Want another prefix, or another scope if the texts are those of another company",
				serial.ErrMeets, series.definition, name, definition)
		}
		return nil
	}, t.Text.all)
	if err = errors.Join(err, met); err != nil {
		return err
	}
	_, err = t.Exec(ctx, t.Text.define, series.Name, series.definition)
	return err
}

// verify compares the definition of a series with the stored one.
func (s *Store) verify(ctx context.Context, t *tx, text string, series *validSeries) error {
	stored, err := s.definition(ctx, t, text, series.Name)
	if err == nil && stored != series.definition {
		err = fmt.Errorf("%w: here %s; in table %s %s", serial.ErrDefinition, series.definition, t.Names[1], stored)
	}
	return err
}

// definition reads the definition of a series by text, which is texts.definition or texts.lock.
func (s *Store) definition(ctx context.Context, t *tx, text, name string) (stored string, err error) {
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

// hold locks the row of a series that this Store has verified before. If the stored definition has
// been changed since, the program continues with its own, because the numbers depend on the
// counter and not on the text. A program that starts is refused.
func (s *Store) hold(ctx context.Context, t *tx, series *validSeries) error {
	stored, err := s.definition(ctx, t, t.Text.lock, series.Name)
	if err != nil || stored == series.definition {
		return err
	}
	if _, again := s.warned.LoadOrStore(series.Name, true); !again {
		s.db.Log.WarnContext(ctx, "sqlserial: the definition of the series was changed in the table. The program continues with its own; the next one that starts is refused.",
			"series", series.Name, "here", series.definition, "table", stored)
	}
	return nil
}

// defined returns the series of this name whose definition this Store has verified.
func (s *Store) defined(name string) (*validSeries, error) {
	if found, ok := s.known.Load(name); ok {
		return found.(*validSeries), nil
	}
	return nil, fmt.Errorf("%w: call Define before", serial.ErrNoSeries)
}
