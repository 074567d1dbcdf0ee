//go:build unix

package chaos

import (
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/cases/serialcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// Serials are chaos for series of invoices, in an empty database.
type Serials struct {
	Name string // in the map of Main
	DSN  string // for the function of that map; in no error and no log
	SerialDatabase
	Level sql.IsolationLevel

	// Torn makes the processes take numbers in transactions of their own. Then numbers must
	// be missing.
	Torn bool
}

// Run makes the tables, runs the processes and checks the numbers.
func (c Serials) Run(t *testing.T) {
	t.Helper()
	config := sqlstore.Config{Dialect: c.Dialect, Logger: slog.New(slog.DiscardHandler)}
	var err error
	if c.Dialect != sqlstore.SQLite {
		if config.Table, err = servertest.Table(c.DB, sqlserial.DefaultTable); err != nil {
			t.Fatal(err)
		}
	}
	store, err := sqlserial.New(c.DB, config)
	if err == nil {
		err = store.CreateTables(t.Context())
	}
	if err == nil {
		err = store.Define(t.Context(), invoices)
	}
	if err == nil {
		_, err = c.DB.ExecContext(t.Context(), "CREATE TABLE invoices (number BIGINT NOT NULL, text VARCHAR(64) NOT NULL)")
	}
	must(t, err)
	g := newGroup(t, c.Name, invoicing, order[any]{Store: c.Name, DSN: c.DSN, Work: serialWork{c.Level, c.Torn}})
	g.stop, g.patience = time.Second/2, 2*time.Second
	g.conduct(script{processes: 4, lasts: *lasts, enough: func() bool {
		return g.restarts >= 4 && g.stops >= 4 && len(c.numbers(t)) >= 200
	}})
	var numbers []int64
	found, err := store.Gaps(t.Context(), invoices.Name, "2026", func(yield func(int64) bool) {
		numbers = c.numbers(t) // not before: a server may still end what a process has begun
		for _, n := range numbers {
			if !yield(n) {
				return
			}
		}
	})
	t.Logf("%s, %v, torn %t: %d invoices, %d gaps; %s", c.Name, c.Level, c.Torn, len(numbers), len(found), g.sum())
	if c.Torn {
		if len(found) == 0 {
			t.Error("no number is missing; want some, or the chaos proves nothing")
		}
		return
	}
	if err != nil || len(found) > 0 {
		t.Errorf("Gaps = %+v, %v; want none", found, err)
	}
	// Without the help of Gaps, and of the counter.
	for i, n := range numbers {
		if n != int64(1+i) {
			t.Fatalf("numbers[%d] = %d; want %d", i, n, 1+i)
		}
	}
}

// numbers returns the numbers of the invoices in ascending order.
func (c Serials) numbers(t *testing.T) []int64 {
	t.Helper()
	return serialcases.Numbers(t, c.DB, "invoices")
}
