//go:build unix

package chaos

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

var (
	invoices = serial.Series{Name: "chaos", Prefix: "INV", Period: serial.Yearly, Digits: 9}
	at       = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
)

// A serialWork is to store invoices.
type serialWork struct {
	Level sql.IsolationLevel
	Torn  bool
}

func (w serialWork) work(asked context.Context, own files, d SerialDatabase) error {
	store, err := sqlserial.New(d.DB, sqlstore.Config{Dialect: d.Dialect, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if w.Torn {
		ctx, cancel := context.WithTimeout(asked, time.Minute)
		defer cancel()
		if err := store.Define(ctx, invoices); err != nil && asked.Err() == nil {
			return err
		}
	}
	var wg sync.WaitGroup
	for n := range uint64(4) {
		c := clerk{serialWork: w, SerialDatabase: d, store: store, random: own.random(n)}
		wg.Go(func() {
			for asked.Err() == nil {
				// An error means that the transaction did not come through, or that its
				// outcome is unknown. The table says whether that was right.
				_ = c.invoice(asked)
				// Without a rest SQLite does thousands of transactions a second, which say
				// no more than hundreds.
				time.Sleep(between(c.random, 0, 20*time.Millisecond))
			}
		})
	}
	wg.Wait()
	return nil
}

// A clerk is a goroutine that stores invoices.
type clerk struct {
	serialWork
	SerialDatabase
	store  *sqlserial.Store
	random *rand.Rand
}

var errUndone = errors.New("chaos: rolled back")

func (c *clerk) invoice(ctx context.Context) error {
	next := func(tx *sql.Tx) (serial.Number, error) { return c.store.NextIn(ctx, tx, invoices, at) }
	if c.Torn {
		first, err := c.store.Take(ctx, invoices.Name, "2026", at, 1)
		if err != nil {
			return err
		}
		next = func(*sql.Tx) (serial.Number, error) { return invoices.Number(at, first) }
	}
	tx, err := c.DB.BeginTx(ctx, &sql.TxOptions{Isolation: c.Level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	end := c.random.IntN(8)
	if end == 0 { // an invoice that a savepoint takes back, and another in its place
		if err := c.exec(ctx, tx, "SAVEPOINT here"); err != nil {
			return err
		}
		if err := c.insert(ctx, tx, next); err != nil {
			return err
		}
		if err := c.exec(ctx, tx, "ROLLBACK TO SAVEPOINT here"); err != nil {
			return err
		}
	}
	if err := c.insert(ctx, tx, next); err != nil {
		return err
	}
	switch end {
	case 1:
		return errUndone
	case 2: // the connection ends
		switch c.Dialect {
		case sqlstore.PostgreSQL:
			return c.exec(ctx, tx, "SELECT pg_terminate_backend(pg_backend_pid())")
		case sqlstore.MySQL:
			return errors.Join(errUndone, c.exec(ctx, tx, "KILL CONNECTION_ID()"))
		}
		return errUndone
	case 3: // ctx ends, perhaps in the COMMIT
		ctx, cancel := context.WithTimeout(ctx, between(c.random, 0, 2*time.Millisecond))
		defer cancel()
		if err := c.exec(ctx, tx, "SELECT 1"); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (c *clerk) exec(ctx context.Context, tx *sql.Tx, text string) error {
	_, err := tx.ExecContext(ctx, text)
	return err
}

func (c *clerk) insert(ctx context.Context, tx *sql.Tx, next func(*sql.Tx) (serial.Number, error)) error {
	n, err := next(tx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, c.Dialect.Bind("INSERT INTO invoices (number, text) VALUES (?, ?)"), n.N, n.Text)
	return err
}
