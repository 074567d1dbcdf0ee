//go:build unix

package serialchaos

import (
	"database/sql"
	"flag"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/chaos"
	"github.com/snowkey/snowkey/internal/conformance/serialcases"
)

const (
	processes = 4
	stop      = time.Second / 2 // processes are stopped for so long at most
	patience  = 2 * time.Second // a process that was asked to end is killed after this time
)

// lasts is how long a run takes at least. It goes on, up to three minutes, until it has
// seen enough.
var lasts = flag.Duration("serialchaos.for", time.Second, "how long each run of serialchaos takes at least")

// longest is how long a run may go on.
const longest = 3 * time.Minute

// A Chaos is an empty database.
type Chaos struct {
	Name    string // in the map of Main
	DSN     string // for the Open of that map; in no error and no log
	DB      *sql.DB
	Dialect sqlstore.Dialect
	Level   sql.IsolationLevel

	// Torn makes the processes take numbers in transactions of their own. Then numbers must
	// be missing.
	Torn bool
}

// Run makes the tables, runs the processes and checks the numbers.
func (c Chaos) Run(t *testing.T) {
	t.Helper()
	store, err := sqlserial.New(c.DB, sqlstore.Config{Dialect: c.Dialect, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = store.CreateTables(t.Context())
	}
	if err == nil {
		err = store.Define(t.Context(), series)
	}
	if err == nil {
		_, err = c.DB.ExecContext(t.Context(), "CREATE TABLE invoices (number BIGINT NOT NULL, text VARCHAR(64) NOT NULL)")
	}
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 0)) // the same in every run: a release must not depend on luck
	g := &chaos.Group{
		T: t, Name: c.Name, Variable: variable, Dir: t.TempDir(), Random: random, Stop: stop, Patience: patience,
		Order: func(string) any {
			return order{Database: c.Name, DSN: c.DSN, Level: c.Level, Torn: c.Torn, Seed: random.Uint64()}
		},
	}
	c.conduct(t, g)
	var numbers []int64
	found, err := store.Gaps(t.Context(), series.Name, "2026", func(yield func(int64) bool) {
		numbers = c.numbers(t) // not before: a server may still end what a process has begun
		for _, n := range numbers {
			if !yield(n) {
				return
			}
		}
	})
	t.Logf("%s, %v, torn %t: %d invoices, %d gaps; %d restarts, %d stops", c.Name, c.Level, c.Torn, len(numbers), len(found), g.Restarts, g.Stops)
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

// conduct starts the processes, does things to them for as long as the run lasts, and
// ends them.
func (c Chaos) conduct(t *testing.T, g *chaos.Group) {
	t.Helper()
	g.Start(processes)
	defer g.End()
	began := time.Now()
	for !t.Failed() {
		g.Wait()
		if lasted := time.Since(began); lasted > *lasts {
			if g.Restarts >= 4 && g.Stops >= 4 && len(c.numbers(t)) >= 200 {
				break
			}
			if lasted > longest+*lasts {
				t.Errorf("not enough has happened in %v for the run to mean anything: %d restarts, %d stops", longest, g.Restarts, g.Stops)
				break
			}
		}
		g.Look()
		g.Strike()
	}
}

// numbers returns the numbers of the invoices in ascending order.
func (c Chaos) numbers(t *testing.T) []int64 {
	t.Helper()
	return serialcases.Numbers(t, c.DB, "invoices")
}
