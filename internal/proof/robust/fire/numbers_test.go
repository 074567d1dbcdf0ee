//go:build linux

package fire

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/types"
)

// A numberTaker returns numbers, or an error and none.
type numberTaker func(ctx context.Context) ([]types.Snowflake, error)

// numbers takes numbers on all nodes of a cluster that is struck again and again. Each taker of
// newTaker has a pool of its own, and the first comes before any other.
func numbers(t *testing.T, c *cluster, strike func(ctx context.Context, strike int) error, newTaker func(t *testing.T, db *sql.DB, first bool) numberTaker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), *lasts)
	defer cancel()
	var mu sync.Mutex // guards what follows
	var all []types.Snowflake
	failures := map[string]int{}
	var takers sync.WaitGroup
	for i := range Holders {
		db := openInTurn(c.dsn, "fire", nil)
		t.Cleanup(func() { _ = db.Close() })
		take := newTaker(t, db, i == 0)
		takers.Go(func() {
			var own []types.Snowflake
			for ctx.Err() == nil {
				taken, err := take(ctx)
				own = append(own, taken...)
				if err != nil {
					mu.Lock()
					failures[err.Error()]++
					mu.Unlock()
				}
				Rest(ctx, 0, 10*time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	for i := 0; Rest(ctx, time.Second, 3*time.Second); i++ {
		if err := strike(ctx, i); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	takers.Wait()
	if repeated := chaos.Repeated(all); len(repeated) > 0 || len(all) < 1000 {
		t.Errorf("of %d numbers %d were repeated, the first of them %v; want none, of 1,000 or more", len(all), len(repeated), repeated[:min(len(repeated), 10)])
	}
	t.Logf("%d numbers; failures: %v", len(all), failures)
}

// ofSegments takes from allocators that hold few numbers, so that they are mostly at the row, and
// often lose against each other when they commit.
func ofSegments(t *testing.T, db *sql.DB, first bool) numberTaker {
	s, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.MySQL, Logger: quiet})
	must(t, err)
	if first {
		must(t, errors.Join(s.CreateTables(t.Context()), s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})))
	}
	a, err := segment.New(s, segment.Config{Tag: "orders", Hold: 20 * time.Millisecond, MaxStep: 1000, MaxWait: time.Second, Logger: quiet})
	must(t, err)
	t.Cleanup(func() { _ = a.Close(context.WithoutCancel(t.Context())) }) // gives back, if it can
	return func(ctx context.Context) ([]types.Snowflake, error) {
		taken := make([]types.Snowflake, 100)
		err := a.Fill(ctx, taken)
		if errors.Is(err, segment.ErrWentBack) {
			t.Error(err)
		}
		if err != nil {
			return nil, err
		}
		return taken, nil
	}
}

// ofSerials takes a number of a series in a transaction that also writes, and one of another by
// blocks. A number of a transaction that did not commit is none.
func ofSerials(t *testing.T, db *sql.DB, first bool) numberTaker {
	s, err := sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.MySQL, Logger: quiet})
	must(t, err)
	inTx, byBlocks := serial.Series{Name: "invoices", Prefix: "I", Digits: 9}, serial.Series{Name: "orders", Prefix: "O", Digits: 9}
	if first {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE invoices (id BIGINT PRIMARY KEY AUTO_INCREMENT, number BIGINT NOT NULL)")
		must(t, errors.Join(err, s.CreateTables(t.Context())))
	}
	must(t, errors.Join(s.Define(t.Context(), inTx), s.Define(t.Context(), byBlocks)))
	c, err := serial.NewCounter(s, byBlocks, 1)
	must(t, err)
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return func(ctx context.Context) (taken []types.Snowflake, err error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		n, err := c.Next(ctx, time.Now())
		if err == nil {
			taken = append(taken, types.Snowflake(2*n.N))
		}
		n, failed := invoice(ctx, db, s, inTx)
		if failed == nil {
			taken = append(taken, types.Snowflake(2*n.N+1))
		}
		return taken, errors.Join(err, failed)
	}
}

func invoice(ctx context.Context, db *sql.DB, s *sqlserial.Store, series serial.Series) (n serial.Number, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return n, err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if n, err = s.NextIn(ctx, tx, series, time.Now()); err != nil {
		return n, err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO invoices (number) VALUES (?)", n.N); err != nil {
		return n, err
	}
	return n, tx.Commit()
}
