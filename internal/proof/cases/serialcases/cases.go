package serialcases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// A Target is a database.
type Target struct {
	Dialect sqlstore.Dialect
	Driver  string // its name, for sqlx

	// Open returns a pool on an empty database, the same in each call of one Run. It is
	// closed at the end of the test.
	Open func(t *testing.T) *sql.DB

	// Levels are the levels of isolation.
	Levels []sql.IsolationLevel

	// Refuses says that levels above READ COMMITTED refuse one of two transactions that
	// take a number of one series. Otherwise none is refused at any level.
	Refuses bool
}

// Run runs all cases.
func Run(t *testing.T, target Target) {
	t.Helper()
	b := &bench{Target: target, db: target.Open(t)}
	b.db.SetMaxOpenConns(10)
	b.db.SetMaxIdleConns(10)
	b.store = b.open(t, b.db)
	if err := b.store.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		run  func(*bench, *testing.T)
	}{
		{"NumbersAreThereIfAndOnlyIfTheRowsAre", (*bench).rollbacks},
		{"ASecondCreateTablesDoesNothing", (*bench).createAgain},
		{"OutsideOfATransactionIsRefused", (*bench).outside},
		{"AnotherDefinitionIsRefusedWithBoth", (*bench).definitions},
		{"ADefinitionChangedInTheTableStopsNoProgramThatRuns", (*bench).changedDefinition},
		{"SeriesWhoseTextsMeetAreRefused", (*bench).meeting},
		{"TheFirstTwoOfAPeriodAreOneAndTwo", (*bench).firstTwo},
		{"CommittedNumbersHaveNoGap", (*bench).manyWriters},
		{"InTxRunsAgainAfterErrorsOfSerialization", (*bench).inTx},
		{"DatesDoNotGoBackInAChronologicalSeries", (*bench).chronological},
		{"AClosedPeriodTakesNoNumber", (*bench).closed},
		{"APeriodIsOpenedAgainWithAReasonOnRecord", (*bench).reopened},
		{"ThisYearGoesOnAfterTheInvoicesThatExist", (*bench).moveIn},
		{"ACounterIsRaisedWithAReasonOnRecord", (*bench).raised},
		{"ASeriesIsLookedUpAndListedAsItIsStored", (*bench).listed},
		{"AFullPeriodTakesNoNumber", (*bench).full},
		{"CountersRepeatNothingAndLoseABlockAtMost", (*bench).counters},
		{"ThePeriodFollowsFromTheMomentAndTheZone", (*bench).zones},
		{"GapsAreFound", (*bench).gaps},
		{"OneNumberIsOneStatement", (*bench).oneStatement},
		{"NextInChangesLastInsertIDOnMySQLAlone", (*bench).lastInsertID},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(b, t) })
	}
}

// A bench is a target with its store.
type bench struct {
	Target
	db     *sql.DB
	store  *sqlserial.Store
	tables int
}

func (b *bench) open(t *testing.T, db *sql.DB) *sqlserial.Store {
	t.Helper()
	s, err := sqlserial.New(db, b.config(t, slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *bench) config(t *testing.T, log slog.Handler) sqlstore.Config {
	t.Helper()
	c := sqlstore.Config{Dialect: b.Dialect, Logger: slog.New(log)}
	if b.Dialect != sqlstore.SQLite {
		var err error
		if c.Table, err = servertest.Table(b.db, sqlserial.DefaultTable); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// define defines a series, and returns it with a scope of its own: most series of the cases
// would meet.
func (b *bench) define(t *testing.T, s serial.Series) serial.Series {
	t.Helper()
	s.Scope = s.Name
	if err := b.store.Define(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// invoices makes a table of invoices, and returns its name.
func (b *bench) invoices(t *testing.T) string {
	t.Helper()
	b.tables++
	table := fmt.Sprintf("invoices_%d", b.tables)
	text := "CREATE TABLE " + table + " (number BIGINT NOT NULL, text VARCHAR(64) NOT NULL)"
	if b.Dialect == sqlstore.MySQL {
		text += " ENGINE=InnoDB"
	}
	if _, err := b.db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	return table
}

// insert stores an invoice.
func (b *bench) insert(ctx context.Context, tx sqlserial.Tx, table string, n serial.Number) error {
	_, err := tx.ExecContext(ctx, b.Dialect.Bind("INSERT INTO "+table+" (number, text) VALUES (?, ?)"), n.N, n.Text)
	return err
}

// numbers is Numbers of a table of invoices.
func (b *bench) numbers(t *testing.T, table string) []int64 {
	t.Helper()
	return Numbers(t, b.db, table)
}

// Numbers returns the column number of a table in ascending order.
func Numbers(t *testing.T, db *sql.DB, table string) (all []int64) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT number FROM "+table+" ORDER BY number")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// wantAll fails the test unless the numbers of a table are first..first+n-1.
func (b *bench) wantAll(t *testing.T, table string, first int64, n int) {
	t.Helper()
	all := b.numbers(t, table)
	for i, got := range all {
		if got != first+int64(i) {
			t.Fatalf("numbers[%d] = %d; want %d, of %d without a gap", i, got, first+int64(i), n)
		}
	}
	if len(all) != n {
		t.Fatalf("%d numbers; want %d", len(all), n)
	}
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (b *bench) rollbacks(t *testing.T) {
	s := b.define(t, serial.Series{Name: "rollbacks", Prefix: "INV", Period: serial.Yearly, Digits: 6, First: 7})
	table := b.invoices(t)
	undone := errors.New("undone")
	stored := 0
	for i, fail := range []bool{true, false, false, true, true, false} {
		err := sqlxhelper.InTx(t.Context(), sqlx.NewDb(b.db, b.Driver), nil, func(tx *sqlx.Tx) error {
			n, err := b.store.NextIn(t.Context(), tx, s, noon)
			if want := fmt.Sprintf("INV2026%06d", 7+stored); err != nil || n.Text != want || n.Period != "2026" || n.Series != s.Name || !n.At.Equal(noon) {
				t.Errorf("NextIn %d = %+v, %v; want %s", i, n, err, want)
			}
			if err := b.insert(t.Context(), tx, table, n); err != nil {
				return err
			}
			if fail {
				return undone
			}
			return nil
		})
		if fail != errors.Is(err, undone) || !fail && err != nil {
			t.Fatalf("transaction %d = %v; want undone: %t", i, err, fail)
		}
		if !fail {
			stored++
		}
	}
	// A savepoint gives its number back, and the transaction goes on.
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var got []int64
	for _, text := range []string{"", "SAVEPOINT here", "", "ROLLBACK TO SAVEPOINT here", "", ""} {
		if text != "" {
			if _, err := tx.ExecContext(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			continue
		}
		n, err := b.store.NextIn(t.Context(), tx, s, noon)
		if err == nil {
			err = b.insert(t.Context(), tx, table, n)
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n.N)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if want := []int64{10, 11, 11, 12}; !slices.Equal(got, want) {
		t.Errorf("numbers with a savepoint = %v; want %v", got, want)
	}
	b.wantAll(t, table, 7, stored+3)
}

func (b *bench) createAgain(t *testing.T) {
	s := b.define(t, serial.Series{Name: "again", Digits: 3})
	if _, err := b.store.Take(t.Context(), s.Name, "", noon, 5); err != nil {
		t.Fatal(err)
	}
	if err := b.store.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first, err := b.store.Take(t.Context(), s.Name, "", noon, 5); first != 6 || err != nil {
		t.Errorf("Take after a second CreateTables = %d, %v; want 6", first, err)
	}
}

func (b *bench) outside(t *testing.T) {
	s := b.define(t, serial.Series{Name: "outside", Digits: 3})
	conn, err := b.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, tx := range []sqlserial.Tx{b.db, conn, sqlx.NewDb(b.db, b.Driver), nil, (*sql.Tx)(nil), (*sqlx.Tx)(nil)} {
		if n, err := b.store.NextIn(t.Context(), tx, s, noon); !errors.Is(err, serial.ErrNotInTransaction) || n != (serial.Number{}) {
			t.Errorf("NextIn(%T) = %+v, %v; want %v", tx, n, err, serial.ErrNotInTransaction)
		}
	}
}

func (b *bench) definitions(t *testing.T) {
	s := b.define(t, serial.Series{Name: "definitions", Prefix: "A-", Period: serial.Monthly, Digits: 4, Check: serial.Luhn})
	if err := b.store.Define(t.Context(), s); err != nil {
		t.Errorf("Define once more = %v; want no error", err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*serial.Series){
		"prefix": func(s *serial.Series) { s.Prefix = "B-" }, "period": func(s *serial.Series) { s.Period = serial.Daily },
		"zone": func(s *serial.Series) { s.Zone = berlin }, "digits": func(s *serial.Series) { s.Digits = 5 },
		"first": func(s *serial.Series) { s.First = 2 }, "check": func(s *serial.Series) { s.Check = serial.NoCheck },
		"chronological": func(s *serial.Series) { s.Chronological = true },
	} {
		other := s
		change(&other)
		fresh := b.open(t, b.db)
		tx, err := b.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, in := b.store.NextIn(t.Context(), tx, other, noon)
		_, inFresh := fresh.NextIn(t.Context(), tx, other, noon)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		for call, err := range map[string]error{"Define": fresh.Define(t.Context(), other), "NextIn": in, "NextIn of another Store": inFresh} {
			if !errors.Is(err, serial.ErrDefinition) || !strings.Contains(err.Error(), s.Definition()) || !strings.Contains(err.Error(), other.Definition()) {
				t.Errorf("%s with another %s = %v; want %v with both definitions", call, name, err, serial.ErrDefinition)
			}
		}
	}
	for _, deleted := range []serial.Series{{Name: "deleted-1", Digits: 3, Chronological: true}, {Name: "deleted-2", Digits: 1, First: 9}} {
		deleted = b.define(t, deleted)
		if _, err := b.store.Take(t.Context(), deleted.Name, "", noon, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := b.db.ExecContext(t.Context(), "DELETE FROM snowkey_series WHERE series = '"+deleted.Name+"'"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.invoice(t.Context(), deleted, sql.LevelDefault, "none", noon, (*sql.Tx).Commit, func(error) {}); !errors.Is(err, serial.ErrNoSeries) {
			t.Errorf("NextIn of a series that was deleted = %v; want %v", err, serial.ErrNoSeries)
		}
	}

	unknown := serial.Series{Name: "unknown", Digits: 3}
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, in := b.store.NextIn(t.Context(), tx, unknown, noon)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	_, take := b.store.Take(t.Context(), unknown.Name, "", noon, 1)
	_, gaps := b.store.Gaps(t.Context(), unknown.Name, "", func(func(int64) bool) {})
	for call, err := range map[string]error{"NextIn": in, "Take": take, "Gaps": gaps, "ClosePeriod": b.store.ClosePeriod(t.Context(), unknown.Name, noon)} {
		if !errors.Is(err, serial.ErrNoSeries) {
			t.Errorf("%s of a series that nobody has defined = %v; want %v", call, err, serial.ErrNoSeries)
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
	if err != nil {
		t.Fatal(err)
	}
	s = running.define(t, s)
	table := b.invoices(t)
	counter, err := serial.NewCounter(running.store, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	for round := range int64(2) {
		if n, err := running.invoice(t.Context(), s, sql.LevelDefault, table, noon, (*sql.Tx).Commit, func(error) {}); err != nil || n.N != 2*round+1 {
			t.Errorf("NextIn = %v, %v; want %d", n, err, 2*round+1)
		}
		if n, err := counter.Next(t.Context(), noon); err != nil || n.N != 2*round+2 {
			t.Errorf("Counter.Next = %v, %v; want %d", n, err, 2*round+2)
		}
		if round == 0 {
			if strings.Contains(log.String(), "definition") {
				t.Errorf("the log says %s before the definition was changed; want nothing of it", log.String())
			}
			if _, err := b.db.ExecContext(t.Context(), "UPDATE snowkey_series SET definition = 'another one' WHERE series = 'changed'"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := running.store.ClosePeriod(t.Context(), s.Name, noon); err != nil {
		t.Errorf("ClosePeriod = %v; want nil", err)
	}
	if _, err := running.invoice(t.Context(), s, sql.LevelDefault, table, noon, (*sql.Tx).Commit, func(error) {}); !errors.Is(err, serial.ErrPeriodClosed) {
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
	if err := b.store.Define(t.Context(), years); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Next(t.Context(), noon); !errors.Is(err, serial.ErrMeets) {
		t.Errorf("Counter.Next of a series that meets another one = %v, %v; want %v", n, err, serial.ErrMeets)
	}
	other := eight
	other.Scope = "meeting-2" // the texts of another company
	if err := errors.Join(b.store.Define(t.Context(), years), b.store.Define(t.Context(), other)); err != nil {
		t.Errorf("Define once more, and in another scope = %v; want nil", err)
	}
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

// fresh returns a Store that knows no series yet, as that of a process that has just begun.
func (b *bench) fresh(t *testing.T) *bench {
	t.Helper()
	other := *b
	other.store = b.open(t, b.db)
	return &other
}

// invoice takes a number and stores it with its invoice. It begins anew after an error of
// serialization, as InTx does, and tells refused of other errors of that kind.
func (b *bench) invoice(ctx context.Context, s serial.Series, level sql.IsolationLevel, table string, at time.Time, end func(*sql.Tx) error, refused func(error)) (n serial.Number, err error) {
	for {
		n, err = b.tryInvoice(ctx, s, level, table, at, end)
		if err == nil || !dialect.Retryable(err) {
			return n, err
		}
		refused(err)
	}
}

func (b *bench) tryInvoice(ctx context.Context, s serial.Series, level sql.IsolationLevel, table string, at time.Time, end func(*sql.Tx) error) (serial.Number, error) {
	tx, err := b.db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return serial.Number{}, err
	}
	defer func() { _ = tx.Rollback() }()
	n, err := b.store.NextIn(ctx, tx, s, at)
	if err != nil {
		return serial.Number{}, err
	}
	if err := b.insert(ctx, tx, table, n); err != nil {
		return serial.Number{}, err
	}
	return n, end(tx)
}

// allowed reports whether a level may refuse one of two transactions.
func (b *bench) allowed(level sql.IsolationLevel) bool {
	return b.Refuses && (level == sql.LevelDefault && b.Dialect == sqlstore.SQLite || level > sql.LevelReadCommitted)
}

// firstTwo has the two first invoices of a period come at once, and two more that are
// rolled back. Odoo gave the first two one number.
func (b *bench) firstTwo(t *testing.T) {
	s := b.define(t, serial.Series{Name: "first-two", Period: serial.Daily, Digits: 3})
	table := b.invoices(t)
	const tries = 300
	for i, level := range b.Levels {
		for try := range tries {
			at := noon.AddDate(i, 0, try)
			var both [2]serial.Number
			var wg sync.WaitGroup
			for k := range 4 {
				process := b.fresh(t)
				wg.Go(func() {
					end := (*sql.Tx).Commit
					if k >= len(both) {
						end = (*sql.Tx).Rollback
					}
					n, err := process.invoice(t.Context(), s, level, table, at, end, func(err error) {
						if !b.allowed(level) {
							t.Errorf("%v: %v; want no transaction refused", level, err)
						}
					})
					if err != nil {
						t.Errorf("%v: %v", level, err)
					}
					if k < len(both) {
						both[k] = n
					}
				})
			}
			wg.Wait()
			if min(both[0].N, both[1].N) != 1 || max(both[0].N, both[1].N) != 2 {
				t.Fatalf("%v: the first two of %s = %d and %d; want 1 and 2", level, both[0].Period, both[0].N, both[1].N)
			}
		}
	}
}

// manyWriters takes numbers in 64 goroutines. Some of them commit, and the others do not.
func (b *bench) manyWriters(t *testing.T) {
	for _, level := range b.Levels {
		s := b.define(t, serial.Series{Name: fmt.Sprintf("writers-%d", level), Period: serial.Yearly, Digits: 6})
		table := b.invoices(t)
		var mu sync.Mutex
		stored := 0
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(uint64(level), uint64(g)))
				for range 5 {
					end, commits := b.ending(t, random)
					_, err := b.invoice(t.Context(), s, level, table, noon, end, func(err error) {
						if !b.allowed(level) {
							t.Errorf("%v: %v; want no transaction refused", level, err)
						}
					})
					if err != nil {
						t.Errorf("%v: %v", level, err)
						return
					}
					if commits {
						mu.Lock()
						stored++
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		b.wantAll(t, table, 1, stored)
	}
}

// inTx leaves the errors of serialization to sqlxhelper.
func (b *bench) inTx(t *testing.T) {
	for _, level := range b.Levels {
		s := b.define(t, serial.Series{Name: fmt.Sprintf("intx-%d", level), Digits: 6})
		table := b.invoices(t)
		const writers, each = 4, 10
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for range each {
					err := sqlxhelper.InTx(t.Context(), sqlx.NewDb(b.db, b.Driver), &sql.TxOptions{Isolation: level}, func(tx *sqlx.Tx) error {
						n, err := b.store.NextIn(t.Context(), tx, s, noon)
						if err != nil {
							return err
						}
						return b.insert(t.Context(), tx, table, n)
					})
					if err != nil {
						t.Errorf("%v: InTx = %v; want no error", level, err)
					}
				}
			})
		}
		wg.Wait()
		b.wantAll(t, table, 1, writers*each)
	}
}

// ending returns a way to end a transaction, and whether it stores the rows.
func (b *bench) ending(t *testing.T, random *rand.Rand) (end func(*sql.Tx) error, commits bool) {
	t.Helper()
	switch random.IntN(3) {
	case 0:
		return (*sql.Tx).Rollback, false
	case 1: // other work, then the end
		return func(tx *sql.Tx) error {
			time.Sleep(time.Duration(random.IntN(2)) * time.Millisecond)
			return tx.Commit()
		}, true
	default:
		return (*sql.Tx).Commit, true
	}
}

func (b *bench) chronological(t *testing.T) {
	s := b.define(t, serial.Series{Name: "chronological", Period: serial.Monthly, Digits: 3, Chronological: true})
	table := b.invoices(t)
	next := func(at time.Time) (serial.Number, error) {
		return b.invoice(t.Context(), s, sql.LevelDefault, table, at, (*sql.Tx).Commit, func(error) {})
	}
	for _, step := range []struct {
		at   time.Time
		want string // the text, or what the error shows
		bad  bool
	}{
		{noon, "202611001", false},
		{noon.Add(-3 * time.Hour), "202611002", false}, // the same day
		{noon.AddDate(0, 0, -1), "2026-11-21, the last number 2026-11-22", true},
		{noon.AddDate(0, 1, 0), "202612001", false},
		{noon, "2026-11-22, the last number 2026-12-22", true}, // of another period
		{noon.AddDate(0, 1, 0), "202612002", false},
	} {
		n, err := next(step.at)
		if step.bad {
			if !errors.Is(err, serial.ErrBackdated) || !strings.Contains(err.Error(), step.want) {
				t.Errorf("NextIn(%v) = %v, %v; want %v with %q", step.at, n, err, serial.ErrBackdated, step.want)
			}
		} else if err != nil || n.Text != step.want {
			t.Errorf("NextIn(%v) = %v, %v; want %s", step.at, n.Text, err, step.want)
		}
	}
	if _, err := b.store.Take(t.Context(), s.Name, "202611", noon, 1); !errors.Is(err, serial.ErrBackdated) {
		t.Errorf("Take of an earlier date = %v; want %v", err, serial.ErrBackdated)
	}
	// A date that was not committed is no date.
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.NextIn(t.Context(), tx, s, noon.AddDate(1, 0, 0)); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n, err := next(noon.AddDate(0, 1, 0)); err != nil || n.N != 3 {
		t.Errorf("NextIn after a rollback of a later date = %v, %v; want 3", n, err)
	}
}

func (b *bench) closed(t *testing.T) {
	waits := b.define(t, serial.Series{Name: "closed-late", Digits: 3})
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := b.store.NextIn(t.Context(), tx, waits, noon); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.store.ClosePeriod(ctx, waits.Name, noon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ClosePeriod while a transaction has a number = %v; want it to wait for the end of ctx", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}

	s := b.define(t, serial.Series{Name: "closed", Period: serial.Yearly, Digits: 3})
	table := b.invoices(t)
	for year, before := range map[int]int64{0: 0, 1: 2} { // numbers before it is closed
		at := noon.AddDate(year, 0, 0)
		for range before {
			if _, err := b.invoice(t.Context(), s, sql.LevelDefault, table, at, (*sql.Tx).Commit, func(error) {}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // twice
			if err := b.store.ClosePeriod(t.Context(), s.Name, at); err != nil {
				t.Fatal(err)
			}
		}
		_, in := b.invoice(t.Context(), s, sql.LevelDefault, table, at, (*sql.Tx).Commit, func(error) {})
		period, _ := s.PeriodOf(at)
		_, take := b.store.Take(t.Context(), s.Name, period, at, 1)
		for call, err := range map[string]error{"NextIn": in, "Take": take} {
			if !errors.Is(err, serial.ErrPeriodClosed) {
				t.Errorf("%s in a closed period = %v; want %v", call, err, serial.ErrPeriodClosed)
			}
		}
		if found, err := b.store.Gaps(t.Context(), s.Name, period, slices.Values(b.numbers(t, table)[:before])); err != nil || len(found) > 0 {
			t.Errorf("Gaps of a closed period = %v, %v; want none", found, err)
		}
	}
	if n, err := b.invoice(t.Context(), s, sql.LevelDefault, table, noon.AddDate(2, 0, 0), (*sql.Tx).Commit, func(error) {}); err != nil || n.N != 1 {
		t.Errorf("NextIn of the next year = %v, %v; want 1", n, err)
	}
}

func (b *bench) reopened(t *testing.T) {
	s := b.define(t, serial.Series{Name: "reopened", Prefix: "REO", Period: serial.Yearly, Digits: 3})
	table := b.invoices(t)
	next := func() (serial.Number, error) {
		return b.invoice(t.Context(), s, sql.LevelDefault, table, noon, (*sql.Tx).Commit, func(error) {})
	}
	const reason = "Rechnung von Müller & Söhne vergessen, siehe Vermerk 日本 🧾"
	if err := b.store.ReopenPeriod(t.Context(), s.Name, noon, reason); !errors.Is(err, serial.ErrPeriodOpen) {
		t.Errorf("ReopenPeriod before the first number = %v; want %v", err, serial.ErrPeriodOpen)
	}
	began := time.Now()
	if _, err := next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.store.ClosePeriod(t.Context(), s.Name, noon); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "   ", "a\nb", "\x00", "\xff", strings.Repeat("ü", 256)} {
		if err := b.store.ReopenPeriod(t.Context(), s.Name, noon, bad); !errors.As(err, new(*core.ValueError)) {
			t.Errorf("ReopenPeriod with the reason %q = %v; want a ValueError", bad, err)
		}
	}
	if _, err := next(); !errors.Is(err, serial.ErrPeriodClosed) {
		t.Errorf("NextIn of a closed period = %v; want %v", err, serial.ErrPeriodClosed)
	}
	if err := b.store.ReopenPeriod(t.Context(), s.Name, noon, reason); err != nil {
		t.Fatal(err)
	}
	if n, err := next(); err != nil || n.N != 2 {
		t.Errorf("NextIn of a period that was opened again = %v, %v; want 2", n, err)
	}
	if n, err := b.store.Take(t.Context(), s.Name, "2026", noon, 1); err != nil || n != 3 {
		t.Errorf("Take of a period that was opened again = %v, %v; want 3", n, err)
	}
	long := strings.Repeat("ü", 255)
	if err := b.store.ReopenPeriod(t.Context(), s.Name, noon, reason); !errors.Is(err, serial.ErrPeriodOpen) {
		t.Errorf("ReopenPeriod of an open period = %v; want %v", err, serial.ErrPeriodOpen)
	}
	if err := errors.Join(b.store.ClosePeriod(t.Context(), s.Name, noon), b.store.ReopenPeriod(t.Context(), s.Name, noon, long)); err != nil {
		t.Fatal(err)
	}
	events, err := b.store.Events(t.Context(), s.Name, "2026")
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if at := events[i].At; at.Before(began.Add(-time.Minute)) || at.After(time.Now().Add(time.Minute)) {
			t.Errorf("the event %+v is of another time; want about %v", events[i], began)
		}
		events[i].At = time.Time{}
	}
	want := []sqlserial.Event{
		{What: sqlserial.Closed, Last: 1}, {What: sqlserial.Reopened, Last: 1, Reason: reason},
		{What: sqlserial.Closed, Last: 3}, {What: sqlserial.Reopened, Last: 3, Reason: long},
	}
	if !slices.Equal(events, want) {
		t.Errorf("Events = %+v; want %+v", events, want)
	}
	if events, err := b.store.Events(t.Context(), s.Name, "2027"); err != nil || len(events) != 0 {
		t.Errorf("Events of another period = %+v, %v; want none", events, err)
	}
	if events, err := b.store.Events(t.Context(), s.Name, "x"); events != nil || !errors.As(err, new(*core.ValueError)) {
		t.Errorf("Events of no period = %+v, %v; want a ValueError", events, err)
	}
}

// moveIn goes on with numbers that another program has given.
func (b *bench) moveIn(t *testing.T) {
	s := b.define(t, serial.Series{Name: "movein", Prefix: "MOV-", Period: serial.Yearly, Separator: "-", Digits: 5, Chronological: true})
	table := b.invoices(t)
	for i := range int64(417) {
		n, err := s.Number(noon, i+1)
		if err == nil && n.N%100 != 0 { // the other program has left gaps
			err = b.insert(t.Context(), b.db, table, n)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	next := func(at time.Time) (serial.Number, error) {
		return b.invoice(t.Context(), s, sql.LevelDefault, table, at, (*sql.Tx).Commit, func(error) {})
	}
	move := func(period string, last int64) error { return b.store.MoveIn(t.Context(), s.Name, period, last) }
	for _, step := range []struct {
		period string
		last   int64
	}{{"2026", 0}, {"2026", 400}, {"2026", 417}, {"2026", 417}, {"2026", 3}} { // none of them lowers
		if err := move(step.period, step.last); err != nil {
			t.Errorf("MoveIn(%s, %d) = %v; want nil", step.period, step.last, err)
		}
	}
	if n, err := next(noon.AddDate(-1, 0, 0)); !errors.Is(err, serial.ErrBackdated) {
		t.Errorf("NextIn of the year before = %v, %v; want %v: the other program has numbered this one", n, err, serial.ErrBackdated)
	}
	for _, want := range []string{"MOV-2026-00418", "MOV-2026-00419"} {
		if n, err := next(noon); err != nil || n.Text != want {
			t.Errorf("NextIn = %s, %v; want %s", n.Text, err, want)
		}
	}
	if err := move("2026", 417); err != nil { // as a program does each time it starts
		t.Errorf("MoveIn once more = %v; want nil", err)
	}
	if err := move("2026", 418); !errors.Is(err, serial.ErrCounted) || !strings.Contains(err.Error(), "418 to 419") {
		t.Errorf("MoveIn above numbers that were given here = %v; want %v, and which", err, serial.ErrCounted)
	}
	found, err := b.store.Gaps(t.Context(), s.Name, "2026", slices.Values(b.numbers(t, table)))
	if err != nil || len(found) != 0 {
		t.Errorf("Gaps = %v, %v; want none: what the other program left out is none of this counter's", found, err)
	}
	found, err = b.store.Gaps(t.Context(), s.Name, "2026", slices.Values([]int64{0, 5, 5, 417, 419, 421}))
	want := []sqlserial.Gap{
		{Kind: sqlserial.Foreign, First: 0, Last: 0}, {Kind: sqlserial.Repeated, First: 5, Last: 5},
		{Kind: sqlserial.Missing, First: 418, Last: 418}, {Kind: sqlserial.Foreign, First: 421, Last: 421},
	}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("Gaps = %v, %v; want %v", found, err, want)
	}
	if n, err := next(noon.AddDate(1, 0, 0)); err != nil || n.Text != "MOV-2027-00001" {
		t.Errorf("NextIn of the next year = %s, %v; want MOV-2027-00001", n.Text, err)
	}
	if err := move("2028", 99999); err != nil {
		t.Errorf("MoveIn up to the last number = %v; want nil", err)
	}
	if n, err := next(noon.AddDate(2, 0, 0)); !errors.Is(err, serial.ErrSeriesFull) {
		t.Errorf("NextIn of a period whose last number has moved in = %v, %v; want %v", n, err, serial.ErrSeriesFull)
	}
	if err := b.store.ClosePeriod(t.Context(), s.Name, noon.AddDate(3, 0, 0)); err != nil {
		t.Fatal(err)
	}
	if err := move("2029", 5); !errors.Is(err, serial.ErrPeriodClosed) {
		t.Errorf("MoveIn to a closed period = %v; want %v", err, serial.ErrPeriodClosed)
	}
	for period, last := range map[string]int64{"2030": -1, "2031": 100000, "x": 1, "202611": 1, "": 1} {
		if err := move(period, last); !errors.As(err, new(*core.ValueError)) {
			t.Errorf("MoveIn(%q, %d) = %v; want a ValueError", period, last, err)
		}
	}
	if err := b.store.MoveIn(t.Context(), "nobody", "2026", 1); !errors.Is(err, serial.ErrNoSeries) {
		t.Errorf("MoveIn of a series without definition = %v; want %v", err, serial.ErrNoSeries)
	}
	events, err := b.store.Events(t.Context(), s.Name, "2026")
	if err != nil || len(events) != 2 || events[0].What != sqlserial.MovedIn || events[0].Last != 400 || events[1].Last != 417 {
		t.Errorf("Events = %+v, %v; want that 400 and then 417 has moved in", events, err)
	}
	b.moveInWhileNumbersAreTaken(t)
}

// moveInWhileNumbersAreTaken has MoveIn and the first number of a period come at once. Either
// the number is above those that moved in, or MoveIn is refused.
func (b *bench) moveInWhileNumbersAreTaken(t *testing.T) {
	s := b.define(t, serial.Series{Name: "movein-race", Prefix: "RACE", Period: serial.Daily, Digits: 3})
	table := b.invoices(t)
	for try := range 30 {
		at := noon.AddDate(0, 0, try)
		period, _ := s.PeriodOf(at)
		var n serial.Number
		var taken, moved error
		var wg sync.WaitGroup
		wg.Go(func() {
			n, taken = b.invoice(t.Context(), s, sql.LevelDefault, table, at, (*sql.Tx).Commit, func(error) {})
		})
		wg.Go(func() { moved = b.store.MoveIn(t.Context(), s.Name, period, 50) })
		wg.Wait()
		if taken != nil || !(n.N == 51 && moved == nil || n.N == 1 && errors.Is(moved, serial.ErrCounted)) {
			t.Errorf("NextIn = %d, %v beside MoveIn(50) = %v; want 51 and nil, or 1 and %v", n.N, taken, moved, serial.ErrCounted)
		}
	}
}

// raised leaves out numbers that are on paper, while others are taken.
func (b *bench) raised(t *testing.T) {
	s := b.define(t, serial.Series{Name: "raised", Prefix: "RAISED", Period: serial.Yearly, Digits: 5})
	table := b.invoices(t)
	raise := func(last int64) error { return b.store.Raise(t.Context(), s.Name, "2026", last, "restored") }
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if _, err := b.invoice(t.Context(), s, sql.LevelDefault, table, noon, (*sql.Tx).Commit, func(error) {}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, last := range []int64{100, 300, 200} {
		if err := raise(last); err != nil {
			t.Errorf("Raise(%d) = %v; want nil", last, err)
		}
	}
	wg.Wait()
	n, err := b.invoice(t.Context(), s, sql.LevelDefault, table, noon, (*sql.Tx).Commit, func(error) {})
	if err != nil || n.N <= 300 || n.N > 341 {
		t.Errorf("NextIn after Raise(300) = %d, %v; want one of 301 to 341", n.N, err)
	}
	all := b.numbers(t, table)
	if len(slices.Compact(slices.Clone(all))) != 41 {
		t.Errorf("41 numbers beside Raise are %v; want each once", all)
	}
	gaps, err := b.store.Gaps(t.Context(), s.Name, "2026", slices.Values(all))
	if missing := n.N - 41; err != nil || len(gaps) == 0 || gaps[len(gaps)-1].Last > 300 || length(gaps) != missing {
		t.Errorf("Gaps = %v, %v; want the %d numbers that were left out", gaps, err, missing)
	}
	events, err := b.store.Events(t.Context(), s.Name, "2026")
	if err != nil || len(events) != 2 || events[1].What != sqlserial.Raised || events[1].Last != 300 || events[1].Reason != "restored" {
		t.Errorf("Events = %+v, %v; want that it was raised to 100 and to 300", events, err)
	}
	if err := b.store.MoveIn(t.Context(), s.Name, "2026", 400); !errors.Is(err, serial.ErrCounted) {
		t.Errorf("MoveIn after Raise = %v; want %v", err, serial.ErrCounted)
	}
	for last, reason := range map[int64]string{-1: "x", 100000: "x", 400: "", 401: "a\nb"} {
		if err := b.store.Raise(t.Context(), s.Name, "2026", last, reason); !errors.As(err, new(*core.ValueError)) {
			t.Errorf("Raise(%d, %q) = %v; want a ValueError", last, reason, err)
		}
	}
	if err := b.store.Raise(t.Context(), "nobody", "2026", 1, "x"); !errors.Is(err, serial.ErrNoSeries) {
		t.Errorf("Raise of a series without definition = %v; want %v", err, serial.ErrNoSeries)
	}
	if err := b.store.ClosePeriod(t.Context(), s.Name, noon); err != nil {
		t.Fatal(err)
	}
	if err := raise(500); !errors.Is(err, serial.ErrPeriodClosed) {
		t.Errorf("Raise of a closed period = %v; want %v", err, serial.ErrPeriodClosed)
	}
}

// length returns how many numbers are in gaps.
func length(gaps []sqlserial.Gap) (n int64) {
	for _, g := range gaps {
		n += g.Last - g.First + 1
	}
	return n
}

// listed has a Store that has defined no series.
func (b *bench) listed(t *testing.T) {
	s := b.define(t, serial.Series{Name: "listed", Prefix: "LIST", Period: serial.Yearly, Digits: 5, Zone: time.FixedZone("here (there)", -3661), Chronological: true})
	unused := b.define(t, serial.Series{Name: "listed-unused", Prefix: "UNUSED", Digits: 3})
	if _, err := b.store.Take(t.Context(), s.Name, "2026", noon, 7); err != nil {
		t.Fatal(err)
	}
	if err := b.store.ClosePeriod(t.Context(), s.Name, noon.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
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
	if err := other.MoveIn(t.Context(), unused.Name, "", 1); err != nil {
		t.Errorf("MoveIn after Lookup = %v", err)
	}
	if _, err := other.Lookup(t.Context(), "nobody"); !errors.Is(err, serial.ErrNoSeries) {
		t.Errorf("Lookup of no series = %v; want %v", err, serial.ErrNoSeries)
	}
}

func (b *bench) full(t *testing.T) {
	s := b.define(t, serial.Series{Name: "full", Digits: 1, First: 5})
	table := b.invoices(t)
	for want := int64(5); want <= 7; want++ {
		if n, err := b.invoice(t.Context(), s, sql.LevelDefault, table, noon, (*sql.Tx).Commit, func(error) {}); err != nil || n.N != want {
			t.Fatalf("NextIn = %v, %v; want %d", n, err, want)
		}
	}
	if first, err := b.store.Take(t.Context(), s.Name, "", noon, 10); first != 8 || err != nil {
		t.Errorf("Take of 10, 2 are left = %d, %v; want 8", first, err)
	}
	if found, err := b.store.Gaps(t.Context(), s.Name, "", slices.Values([]int64{5, 6, 7, 8, 9})); err != nil || len(found) > 0 {
		t.Errorf("Gaps of a full period = %v, %v; want none", found, err)
	}
	_, take := b.store.Take(t.Context(), s.Name, "", noon, 1)
	_, in := b.invoice(t.Context(), s, sql.LevelDefault, table, noon, (*sql.Tx).Commit, func(error) {})
	for call, err := range map[string]error{"NextIn": in, "Take": take} {
		if !errors.Is(err, serial.ErrSeriesFull) || !strings.Contains(err.Error(), "up to 9") {
			t.Errorf("%s after the last number = %v; want %v, with the limit", call, err, serial.ErrSeriesFull)
		}
	}
}

// counters has several counters of one series, as processes have them. Each is left with
// what it holds, as by a crash. What the next Take returns says how much that was.
func (b *bench) counters(t *testing.T) {
	s := b.define(t, serial.Series{Name: "counters", Period: serial.Yearly, Digits: 9})
	const processes, block = 4, 50
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for p := range processes {
		c, err := serial.NewCounter(b.open(t, b.db), s, block)
		if err != nil {
			t.Fatal(err)
		}
		for g := range 4 {
			wg.Go(func() {
				last := map[string]int64{}
				for i := range 120 + 7*p {
					n, err := c.Next(t.Context(), noon.AddDate((i+g)%2, 0, 0))
					if err != nil {
						t.Error(err)
						return
					}
					if n.N <= last[n.Period] {
						t.Errorf("Next = %d after %d; want a larger one", n.N, last[n.Period])
					}
					last[n.Period] = n.N
					mu.Lock()
					seen[n.Text]++
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	given := map[string]int64{}
	for text, times := range seen {
		n, err := s.Parse(text)
		if err != nil || times != 1 {
			t.Errorf("%s was given %d times (%v); want once", text, times, err)
		}
		given[n.Period]++
	}
	for period, n := range given {
		at, err := time.Parse("2006", period)
		if err != nil {
			t.Fatal(err)
		}
		next, err := b.store.Take(t.Context(), s.Name, period, at, 1)
		if err != nil {
			t.Fatal(err)
		}
		if lost := next - 1 - n; lost < 0 || lost > processes*block {
			t.Errorf("%d numbers of %s are lost; want %d at most, a block per process", lost, period, processes*block)
		}
	}
}

// zones has moments around midnight, and around the ends of summer time. Two programs whose
// clocks differ, or whose machines are in other zones, agree.
func (b *bench) zones(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Havana", "Asia/Beirut", "Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		s := b.define(t, serial.Series{Name: "zones/" + name, Period: serial.Daily, Zone: zone, Digits: 4})
		table := b.invoices(t)
		seen := map[string]string{}
		for _, day := range []time.Time{
			time.Date(2026, 10, 24, 0, 0, 0, 0, zone), // Berlin's and Beirut's clocks go back in the following nights
			time.Date(2026, 11, 1, 0, 0, 0, 0, zone),  // Havana's
			time.Date(2026, 3, 29, 0, 0, 0, 0, zone),
		} {
			for minutes := -40; minutes <= 30*60; minutes += 97 {
				at := day.Add(time.Duration(minutes) * time.Minute)
				for _, skew := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} { // of another process
					n, err := b.invoice(t.Context(), s, sql.LevelDefault, table, at.Add(skew).UTC(), (*sql.Tx).Commit, func(error) {})
					if err != nil {
						t.Fatal(err)
					}
					if want := at.Add(skew).In(zone).Format("20060102"); n.Period != want {
						t.Errorf("%s: the period of %v = %s; want %s", name, at, n.Period, want)
					}
					if before, again := seen[n.Text]; again {
						t.Errorf("%s: %s for %v and %s", name, n.Text, at, before)
					}
					seen[n.Text] = at.String()
				}
			}
		}
	}
}

func (b *bench) gaps(t *testing.T) {
	s := b.define(t, serial.Series{Name: "gaps", Digits: 4, First: 10})
	empty, err := b.store.Gaps(t.Context(), s.Name, "", slices.Values([]int64(nil)))
	if err != nil || len(empty) != 0 {
		t.Errorf("Gaps before the first number = %v, %v; want none", empty, err)
	}
	early := b.define(t, serial.Series{Name: "early", Digits: 4, First: 10})
	meanwhile, err := b.store.Gaps(t.Context(), early.Name, "", func(yield func(int64) bool) {
		if _, err := b.store.Take(t.Context(), early.Name, "", noon, 2); err != nil {
			t.Error(err)
		}
		_ = yield(9) && yield(10) && yield(11)
	})
	if want := []sqlserial.Gap{{Kind: sqlserial.Foreign, First: 9, Last: 9}}; err != nil || !slices.Equal(meanwhile, want) {
		t.Errorf("Gaps while the first numbers are taken = %v, %v; want %v", meanwhile, err, want)
	}
	if _, err := b.store.Take(t.Context(), s.Name, "", noon, 20); err != nil { // 10..29
		t.Fatal(err)
	}
	found, err := b.store.Gaps(t.Context(), s.Name, "", slices.Values([]int64{3, 4, 10, 11, 11, 11, 14, 16, 17, 18, 19, 20, 21, 22, 23, 24, 31, 32}))
	want := []sqlserial.Gap{
		{Kind: sqlserial.Foreign, First: 3, Last: 4}, {Kind: sqlserial.Repeated, First: 11, Last: 11}, {Kind: sqlserial.Missing, First: 12, Last: 13},
		{Kind: sqlserial.Missing, First: 15, Last: 15}, {Kind: sqlserial.Missing, First: 25, Last: 29}, {Kind: sqlserial.Foreign, First: 31, Last: 32},
	}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("Gaps = %v, %v; want %v", found, err, want)
	}
	for _, period := range []string{"2026", " ", "x"} {
		if found, err := b.store.Gaps(t.Context(), s.Name, period, slices.Values([]int64(nil))); found != nil || !errors.As(err, new(*core.ValueError)) {
			t.Errorf("Gaps of period %q = %v, %v; want a ValueError", period, found, err)
		}
	}
	found, err = b.store.Gaps(t.Context(), s.Name, "", slices.Values([]int64{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, math.MaxInt64}))
	if want := []sqlserial.Gap{{Kind: sqlserial.Foreign, First: math.MaxInt64, Last: math.MaxInt64}}; err != nil || !slices.Equal(found, want) {
		t.Errorf("Gaps with the greatest number = %v, %v; want %v", found, err, want)
	}
	found, err = b.store.Gaps(t.Context(), s.Name, "", slices.Values([]int64{10, 11, 12}))
	if want := []sqlserial.Gap{{Kind: sqlserial.Missing, First: 13, Last: 29}}; err != nil || !slices.Equal(found, want) {
		t.Errorf("Gaps without the last rows = %v, %v; want %v", found, err, want)
	}
	// Numbers that are taken while the rows are read are not foreign.
	found, err = b.store.Gaps(t.Context(), s.Name, "", func(yield func(int64) bool) {
		for n := int64(10); n <= 29; n++ {
			yield(n)
		}
		if _, err := b.store.Take(t.Context(), s.Name, "", noon, 2); err != nil {
			t.Error(err)
		}
		yield(30)
		yield(31)
		yield(32)
	})
	if want := []sqlserial.Gap{{Kind: sqlserial.Foreign, First: 32, Last: 32}}; err != nil || !slices.Equal(found, want) {
		t.Errorf("Gaps while numbers are taken = %v, %v; want %v", found, err, want)
	}
	if found, err := b.store.Gaps(t.Context(), s.Name, "", slices.Values([]int64{11, 10})); found != nil || !errors.As(err, new(*core.ValueError)) {
		t.Errorf("Gaps of numbers out of order = %v, %v; want a ValueError", found, err)
	}
	if _, err := b.store.Take(t.Context(), s.Name, "", noon, 9000); err != nil {
		t.Fatal(err)
	}
	found, err = b.store.Gaps(t.Context(), s.Name, "", func(yield func(int64) bool) {
		for n := int64(10); n < 9000 && yield(n); n += 2 {
		}
	})
	if !errors.Is(err, sqlserial.ErrManyGaps) || len(found) != 1000 {
		t.Errorf("Gaps with 4,495 of them = %d, %v; want %d and %v", len(found), err, 1000, sqlserial.ErrManyGaps)
	}
}

// A counting is a transaction that counts its round trips. SQLite, in the process, has
// none, and there NextIn also asks it for its file.
type counting struct {
	*sql.Tx
	n int
}

func (c *counting) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c.n++
	return c.Tx.ExecContext(ctx, query, args...)
}

func (c *counting) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if !strings.HasPrefix(query, "PRAGMA ") {
		c.n++
	}
	return c.Tx.QueryContext(ctx, query, args...)
}

func (b *bench) oneStatement(t *testing.T) {
	for _, chronological := range []bool{false, true} {
		s := b.define(t, serial.Series{Name: fmt.Sprintf("statements-%t", chronological), Digits: 3, Chronological: chronological})
		tx, err := b.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &counting{Tx: tx}
		for range 5 {
			if _, err := b.store.NextIn(t.Context(), c, s, noon); err != nil {
				t.Error(err)
			}
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 5, true: 10}[chronological]; c.n != want {
			t.Errorf("chronological %t: 5 numbers took %d statements; want %d", chronological, c.n, want)
		}
	}
}

// lastInsertID shows what the comment of NextIn says. To keep LAST_INSERT_ID() would take two
// statements more: one that reads it, and one that sets it back.
func (b *bench) lastInsertID(t *testing.T) {
	var text, last string
	switch b.Dialect {
	case sqlstore.MySQL:
		text, last = "CREATE TABLE counted (id BIGINT PRIMARY KEY AUTO_INCREMENT, x INT) AUTO_INCREMENT = 500", "SELECT LAST_INSERT_ID()"
	case sqlstore.PostgreSQL:
		text, last = "CREATE TABLE counted (id BIGSERIAL PRIMARY KEY, x INT)", "SELECT lastval()"
	default:
		text, last = "CREATE TABLE counted (id INTEGER PRIMARY KEY AUTOINCREMENT, x INT)", "SELECT last_insert_rowid()"
	}
	if _, err := b.db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	s := b.define(t, serial.Series{Name: "last-insert-id", Digits: 3})
	if _, err := b.store.Take(t.Context(), s.Name, "", noon, 41); err != nil { // the row of the counter is there
		t.Fatal(err)
	}
	tx, err := b.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var before, after int64
	if _, err := tx.ExecContext(t.Context(), "INSERT INTO counted (x) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRowContext(t.Context(), last).Scan(&before); err != nil {
		t.Fatal(err)
	}
	n, err := b.store.NextIn(t.Context(), tx, s, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRowContext(t.Context(), last).Scan(&after); err != nil {
		t.Fatal(err)
	}
	want := before
	if b.Dialect == sqlstore.MySQL {
		want = n.N
	}
	if after != want {
		t.Errorf("%s after NextIn = %d, before %d, the number is %d; want %d", last, after, before, n.N, want)
	}
}
