package serialcases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
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

// connections is how many the pool has at most.
const connections = 10

// Run runs all cases.
func Run(t *testing.T, target Target) {
	t.Helper()
	b := &bench{Target: target, db: target.Open(t)}
	b.db.SetMaxOpenConns(connections)
	b.db.SetMaxIdleConns(connections)
	b.store = b.open(t, b.db)
	must(t, b.store.CreateTables(t.Context()))
	for _, c := range []struct {
		name string
		run  func(*bench, *testing.T)
	}{
		{"NumbersTakenAtOnceAreAllThere", (*bench).atOnce}, // first: its processes miss a series that was not stored
		{"RandomCallsDoWhatTheBooksSay", (*bench).books},
		{"ArgumentsOutOfRangeAreRefused", (*bench).arguments},
		{"OutsideOfATransactionIsRefused", (*bench).outside},
		{"AnotherDefinitionIsRefusedWithBoth", (*bench).definitions},
		{"ADefinitionChangedInTheTableStopsNoProgramThatRuns", (*bench).changedDefinition},
		{"SeriesWhoseTextsMeetAreRefused", (*bench).meeting},
		{"ClosePeriodWaitsForNumbersThatAreTaken", (*bench).closed},
		{"ASeriesIsLookedUpAndListedAsItIsStored", (*bench).listed},
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
	must(t, err)
	return s
}

func (b *bench) config(t *testing.T, log slog.Handler) sqlstore.Config {
	t.Helper()
	c := sqlstore.Config{Dialect: b.Dialect, Logger: slog.New(log)}
	if b.Dialect != sqlstore.SQLite {
		var err error
		c.Table, err = servertest.Table(b.db, sqlserial.DefaultTable)
		must(t, err)
	}
	return c
}

// define defines a series, and returns it with a scope of its own: most series of the cases
// would meet.
func (b *bench) define(t *testing.T, s serial.Series) serial.Series {
	t.Helper()
	s.Scope = s.Name
	must(t, b.store.Define(t.Context(), s))
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
	_, err := b.db.ExecContext(t.Context(), text)
	must(t, err)
	return table
}

func (b *bench) begin(t *testing.T) *sql.Tx {
	t.Helper()
	tx, err := b.db.BeginTx(t.Context(), nil)
	must(t, err)
	return tx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// insert stores an invoice.
func (b *bench) insert(ctx context.Context, tx sqlserial.Tx, table string, n serial.Number) error {
	_, err := tx.ExecContext(ctx, b.Dialect.Bind("INSERT INTO "+table+" (number, text) VALUES (?, ?)"), n.N, n.Text)
	return err
}

// Numbers returns the column number of a table in ascending order.
func Numbers(t *testing.T, db *sql.DB, table string) (all []int64) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT number FROM "+table+" ORDER BY number")
	must(t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var n int64
		must(t, rows.Scan(&n))
		all = append(all, n)
	}
	must(t, rows.Err())
	return all
}

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func (b *bench) outside(t *testing.T) {
	s := b.define(t, serial.Series{Name: "outside", Digits: 3})
	conn, err := b.db.Conn(t.Context())
	must(t, err)
	defer func() { _ = conn.Close() }()
	for _, tx := range []sqlserial.Tx{b.db, conn, sqlx.NewDb(b.db, b.Driver), nil, (*sql.Tx)(nil), (*sqlx.Tx)(nil)} {
		if n, err := b.store.NextIn(t.Context(), tx, s, noon); !errors.Is(err, serial.ErrNotInTransaction) || n != (serial.Number{}) {
			t.Errorf("NextIn(%T) = %+v, %v; want %v", tx, n, err, serial.ErrNotInTransaction)
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
		c := &counting{Tx: b.begin(t)}
		for range 5 {
			_, err := b.store.NextIn(t.Context(), c, s, noon)
			must(t, err)
		}
		must(t, c.Commit())
		if want := map[bool]int{false: 5, true: 10}[chronological]; c.n != want {
			t.Errorf("chronological %t: 5 numbers took %d statements; want %d", chronological, c.n, want)
		}
	}
}

// lastInsertID shows what the comment of NextIn says. To keep LAST_INSERT_ID() would take two
// statements more: one that reads it, and one that sets it back.
func (b *bench) lastInsertID(t *testing.T) {
	id, last := "INTEGER PRIMARY KEY AUTOINCREMENT", "SELECT last_insert_rowid()"
	switch b.Dialect {
	case sqlstore.MySQL:
		id, last = "BIGINT PRIMARY KEY AUTO_INCREMENT", "SELECT LAST_INSERT_ID()"
	case sqlstore.PostgreSQL:
		id, last = "BIGSERIAL PRIMARY KEY", "SELECT lastval()"
	}
	s := b.define(t, serial.Series{Name: "last-insert-id", Digits: 3})
	_, err := b.db.ExecContext(t.Context(), "CREATE TABLE counted (id "+id+", x INT)")
	must(t, err)
	_, err = b.store.Take(t.Context(), s.Name, "", noon, 41) // the row of the counter is there
	must(t, err)
	tx := b.begin(t)
	defer func() { _ = tx.Rollback() }()
	_, err = tx.ExecContext(t.Context(), "INSERT INTO counted (x) VALUES (1)")
	must(t, err)
	n, err := b.store.NextIn(t.Context(), tx, s, noon)
	must(t, err)
	var got int64
	must(t, tx.QueryRowContext(t.Context(), last).Scan(&got))
	want := int64(1)
	if b.Dialect == sqlstore.MySQL {
		want = 42
	}
	if got != want || n.N != 42 {
		t.Errorf("%s after NextIn = %d, the number is %d; want %d and 42", last, got, n.N, want)
	}
}
