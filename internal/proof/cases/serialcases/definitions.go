package serialcases

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
)

func (b *bench) definitions(t *testing.T) {
	s := b.define(t, serial.Series{Name: "definitions", Prefix: "A-", Period: serial.Monthly, Digits: 4, Check: serial.Luhn})
	must(t, b.store.Define(t.Context(), s)) // once more
	berlin, err := time.LoadLocation("Europe/Berlin")
	must(t, err)
	for name, change := range map[string]func(*serial.Series){
		"prefix": func(s *serial.Series) { s.Prefix = "B-" }, "period": func(s *serial.Series) { s.Period = serial.Daily },
		"zone": func(s *serial.Series) { s.Zone = berlin }, "digits": func(s *serial.Series) { s.Digits = 5 },
		"first": func(s *serial.Series) { s.First = 2 }, "check": func(s *serial.Series) { s.Check = serial.NoCheck },
		"chronological": func(s *serial.Series) { s.Chronological = true },
	} {
		other := s
		change(&other)
		fresh := b.open(t, b.db)
		tx := b.begin(t)
		_, in := b.store.NextIn(t.Context(), tx, other, noon)
		_, inFresh := fresh.NextIn(t.Context(), tx, other, noon)
		must(t, tx.Rollback())
		for call, err := range map[string]error{"Define": fresh.Define(t.Context(), other), "NextIn": in, "NextIn of another Store": inFresh} {
			if !errors.Is(err, serial.ErrDefinition) || !strings.Contains(err.Error(), s.Definition()) || !strings.Contains(err.Error(), other.Definition()) {
				t.Errorf("%s with another %s = %v; want %v with both definitions", call, name, err, serial.ErrDefinition)
			}
		}
	}
	for _, deleted := range []serial.Series{{Name: "deleted-1", Digits: 3, Chronological: true}, {Name: "deleted-2", Digits: 1, First: 9}} {
		deleted = b.define(t, deleted)
		_, err := b.store.Take(t.Context(), deleted.Name, "", noon, 1)
		must(t, err)
		_, err = b.db.ExecContext(t.Context(), "DELETE FROM snowkey_series WHERE series = '"+deleted.Name+"'")
		must(t, err)
		if _, err := b.next(t, deleted, "none", noon); !errors.Is(err, serial.ErrNoSeries) {
			t.Errorf("NextIn of a series that was deleted = %v; want %v", err, serial.ErrNoSeries)
		}
	}
}

// changedDefinition changes the text that the table has of a series. A program compares it
// when it starts. Its numbers rest on the counter, so one that runs goes on, and warns.
func (b *bench) changedDefinition(t *testing.T) {
	s := serial.Series{Name: "changed", Prefix: "CHG", Period: serial.Yearly, Digits: 4, Chronological: true}
	var log strings.Builder
	var err error
	running := *b
	running.store, err = sqlserial.New(b.db, b.config(t, slog.NewTextHandler(&log, nil)))
	must(t, err)
	s = running.define(t, s)
	table := b.invoices(t)
	counter, err := serial.NewCounter(running.store, s, 1)
	must(t, err)
	for round := range int64(2) {
		if n, err := running.next(t, s, table, noon); err != nil || n.N != 2*round+1 {
			t.Errorf("NextIn = %v, %v; want %d", n, err, 2*round+1)
		}
		if n, err := counter.Next(t.Context(), noon); err != nil || n.N != 2*round+2 {
			t.Errorf("Counter.Next = %v, %v; want %d", n, err, 2*round+2)
		}
		if round == 0 {
			if strings.Contains(log.String(), "definition") {
				t.Errorf("the log says %s before the definition was changed; want nothing of it", log.String())
			}
			_, err := b.db.ExecContext(t.Context(), "UPDATE snowkey_series SET definition = 'another one' WHERE series = 'changed'")
			must(t, err)
		}
	}
	must(t, running.store.ClosePeriod(t.Context(), s.Name, noon))
	if _, err := running.next(t, s, table, noon); !errors.Is(err, serial.ErrPeriodClosed) {
		t.Errorf("NextIn in a closed period = %v; want %v", err, serial.ErrPeriodClosed)
	}
	if n := strings.Count(log.String(), "another one"); n != 1 || !strings.Contains(log.String(), "changed") {
		t.Errorf("the log says %d times that the definition is another one; want once: %s", n, log.String())
	}
	if err := b.open(t, b.db).Define(t.Context(), s); !errors.Is(err, serial.ErrDefinition) || !strings.Contains(err.Error(), "another one") {
		t.Errorf("Define by a program that starts = %v; want %v with both", err, serial.ErrDefinition)
	}
}

func (b *bench) meeting(t *testing.T) {
	years := serial.Series{Name: "meeting-years", Prefix: "A", Scope: "meeting", Period: serial.Yearly, Digits: 4}
	eight := serial.Series{Name: "meeting-eight", Prefix: "A", Scope: "meeting", Digits: 8} // A20260001 both ways
	must(t, b.store.Define(t.Context(), years))
	for range 2 {
		err := b.store.Define(t.Context(), eight)
		if !errors.Is(err, serial.ErrMeets) || !strings.Contains(err.Error(), eight.Definition()) || !strings.Contains(err.Error(), years.Name) || !strings.Contains(err.Error(), years.Definition()) {
			t.Errorf("Define of a series that meets another one = %v; want %v with both", err, serial.ErrMeets)
		}
	}
	if _, err := b.store.Take(t.Context(), eight.Name, "", noon, 1); !errors.Is(err, serial.ErrNoSeries) {
		t.Errorf("Take of a series that was refused = %v; want %v", err, serial.ErrNoSeries)
	}
	c, err := serial.NewCounter(b.open(t, b.db), eight, 1)
	must(t, err)
	if n, err := c.Next(t.Context(), noon); !errors.Is(err, serial.ErrMeets) {
		t.Errorf("Counter.Next of a series that meets another one = %v, %v; want %v", n, err, serial.ErrMeets)
	}
	other := eight
	other.Scope = "meeting-2"                                                                    // the texts of another company
	must(t, errors.Join(b.store.Define(t.Context(), years), b.store.Define(t.Context(), other))) // once more, and in another scope
	// Of two that are defined at once one is refused, whichever.
	for try := range 30 {
		var failures [2]error
		var wg sync.WaitGroup
		for i := range failures {
			process := b.fresh(t)
			s := years
			if i == 1 {
				s = eight
			}
			s.Name, s.Scope = fmt.Sprintf("%s-%d", s.Name, try), fmt.Sprintf("meeting/%d", try)
			wg.Go(func() { failures[i] = process.store.Define(t.Context(), s) })
		}
		wg.Wait()
		if (failures[0] == nil) == (failures[1] == nil) || !errors.Is(errors.Join(failures[:]...), serial.ErrMeets) {
			t.Fatalf("Define of two series that meet, at once = %v and %v; want one of them %v", failures[0], failures[1], serial.ErrMeets)
		}
	}
}

// listed has a Store that has defined no series.
func (b *bench) listed(t *testing.T) {
	s := b.define(t, serial.Series{Name: "listed", Prefix: "LIST", Period: serial.Yearly, Digits: 5, Zone: time.FixedZone("here (there)", -3661), Chronological: true})
	unused := b.define(t, serial.Series{Name: "listed-unused", Prefix: "UNUSED", Digits: 3})
	_, err := b.store.Take(t.Context(), s.Name, "2026", noon, 7)
	must(t, errors.Join(err, b.store.ClosePeriod(t.Context(), s.Name, noon.AddDate(1, 0, 0))))
	other := b.open(t, b.db)
	rows, err := other.Rows(t.Context())
	rows = slices.DeleteFunc(rows, func(r sqlserial.Row) bool { return !strings.HasPrefix(r.Series, "listed") })
	want := []sqlserial.Row{
		{Series: s.Name, Definition: s.Definition(), Counted: true, Period: "2026", Last: 7},
		{Series: s.Name, Definition: s.Definition(), Counted: true, Period: "2027", Closed: true},
		{Series: unused.Name, Definition: unused.Definition()},
	}
	if err != nil || !slices.Equal(rows, want) {
		t.Errorf("Rows() = %+v, %v; want %+v", rows, err, want)
	}
	if err := other.MoveIn(t.Context(), unused.Name, "", 1); !errors.Is(err, serial.ErrNoSeries) {
		t.Errorf("MoveIn before Lookup = %v; want %v", err, serial.ErrNoSeries)
	}
	if got, err := other.Lookup(t.Context(), unused.Name); err != nil || got.Definition() != unused.Definition() || got.Name != unused.Name {
		t.Errorf("Lookup() = %+v, %v; want %+v", got, err, unused)
	}
	must(t, other.MoveIn(t.Context(), unused.Name, "", 1)) // after Lookup
}
