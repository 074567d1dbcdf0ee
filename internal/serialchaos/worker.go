//go:build unix

package serialchaos

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/chaos"
)

// An Open opens a database. It is called in a process of its own, which never closes it: it
// is mostly killed.
type Open func(dsn string) (*sql.DB, sqlstore.Dialect, error)

// variable is an environment variable that holds an order. A test binary that finds it set
// is a process of a run.
const variable = "SNOWKEY_SERIALCHAOS_ORDER"

// An order says what a process is to do.
type order struct {
	Database string // in the map of Main
	DSN      string
	Level    sql.IsolationLevel
	Torn     bool
	Seed     uint64
}

// Main returns at once in a test binary that was started to run tests. In a process of a
// run it does what that is there for, and does not return. Call it in an init function.
func Main(databases map[string]Open) {
	chaos.Main(variable, func(text []byte) error {
		var o order
		if err := json.Unmarshal(text, &o); err != nil {
			return err
		}
		return work(o, databases[o.Database])
	})
}

var (
	series = serial.Series{Name: "chaos", Prefix: "INV", Period: serial.Yearly, Digits: 9}
	at     = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
)

// writers is how many goroutines a process has.
const writers = 4

// work stores invoices until the process is killed. SIGTERM asks it to end.
func work(o order, open Open) error {
	if open == nil {
		return fmt.Errorf("serialchaos: no database %q in the map of Main", o.Database)
	}
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	db, dialect, err := open(o.DSN)
	if err != nil {
		return err
	}
	store, err := sqlserial.New(db, sqlstore.Config{Dialect: dialect, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if o.Torn {
		ctx, cancel := context.WithTimeout(asked, time.Minute)
		defer cancel()
		if err := store.Define(ctx, series); err != nil && asked.Err() == nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for n := range writers {
		w := writer{order: o, db: db, dialect: dialect, store: store, random: rand.New(rand.NewPCG(o.Seed, uint64(n)))}
		wg.Go(func() {
			for asked.Err() == nil {
				// An error is that of a transaction that did not come through, or of which
				// nobody knows. The table says whether that was right.
				if err := w.invoice(asked); err != nil {
					time.Sleep(chaos.Between(w.random, 0, 5*time.Millisecond))
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// A writer is a goroutine that stores invoices.
type writer struct {
	order
	db      *sql.DB
	dialect sqlstore.Dialect
	store   *sqlserial.Store
	random  *rand.Rand
}

var errUndone = errors.New("serialchaos: rolled back")

func (w *writer) invoice(ctx context.Context) error {
	next := func(tx *sql.Tx) (serial.Number, error) { return w.store.NextIn(ctx, tx, series, at) }
	if w.Torn {
		first, err := w.store.Take(ctx, series.Name, "2026", at, 1)
		if err != nil {
			return err
		}
		next = func(*sql.Tx) (serial.Number, error) { return series.Number(at, first) }
	}
	tx, err := w.db.BeginTx(ctx, &sql.TxOptions{Isolation: w.Level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	end := w.random.IntN(8)
	if end == 0 { // an invoice that a savepoint takes back, and another in its place
		if err := w.exec(ctx, tx, "SAVEPOINT here"); err != nil {
			return err
		}
		if err := w.insert(ctx, tx, next); err != nil {
			return err
		}
		if err := w.exec(ctx, tx, "ROLLBACK TO SAVEPOINT here"); err != nil {
			return err
		}
	}
	if err := w.insert(ctx, tx, next); err != nil {
		return err
	}
	switch end {
	case 1:
		return errUndone
	case 2: // the connection ends
		switch w.dialect {
		case sqlstore.PostgreSQL:
			return w.exec(ctx, tx, "SELECT pg_terminate_backend(pg_backend_pid())")
		case sqlstore.MySQL:
			return errors.Join(errUndone, w.exec(ctx, tx, "KILL CONNECTION_ID()"))
		}
		return errUndone
	case 3: // ctx ends, perhaps in the COMMIT
		ctx, cancel := context.WithTimeout(ctx, chaos.Between(w.random, 0, 2*time.Millisecond))
		defer cancel()
		if err := w.exec(ctx, tx, "SELECT 1"); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (w *writer) exec(ctx context.Context, tx *sql.Tx, text string) error {
	_, err := tx.ExecContext(ctx, text)
	return err
}

func (w *writer) insert(ctx context.Context, tx *sql.Tx, next func(*sql.Tx) (serial.Number, error)) error {
	n, err := next(tx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, w.dialect.Bind("INSERT INTO invoices (number, text) VALUES (?, ?)"), n.N, n.Text)
	return err
}
