package serialcases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// invoice takes a number and stores it with its invoice, or rolls both back. sqlxhelper.InTx begins
// anew after an error of serialization, which none may be where Refuses does not say so.
func (b *bench) invoice(ctx context.Context, s serial.Series, level sql.IsolationLevel, table string, at time.Time, commits bool) (n serial.Number, err error) {
	runs, rolledBack := 0, errors.New("rolled back")
	for again := true; again; again = dialect.Retryable(err) { // after ten attempts of InTx
		err = sqlxhelper.InTx(ctx, sqlx.NewDb(b.db, b.Driver), &sql.TxOptions{Isolation: level}, func(tx *sqlx.Tx) (err error) {
			if runs++; runs > 1 && (!b.Refuses || level <= sql.LevelReadCommitted) {
				return fmt.Errorf("%v: a transaction was refused; want none", level)
			}
			if n, err = b.store.NextIn(ctx, tx, s, at); err == nil {
				err = b.insert(ctx, tx, table, n)
			}
			if err == nil && !commits {
				err = rolledBack
			}
			return err
		})
	}
	if err == rolledBack {
		err = nil
	}
	return n, err
}

// next is invoice at the default level, where the invoice is stored.
func (b *bench) next(t *testing.T, s serial.Series, table string, at time.Time) (serial.Number, error) {
	return b.invoice(t.Context(), s, sql.LevelDefault, table, at, true)
}

// atOnce has the first invoices of a period come at once, beside another call that changes the
// counter. Half of them are rolled back. Odoo gave the first two one number. All numbers have to be
// there, except those that the call left out. There are no more connections than transactions, so
// none may need a second one.
func (b *bench) atOnce(t *testing.T) {
	const writers, moved, raised = 4, 50, 100
	b.db.SetMaxOpenConns(writers)
	defer b.db.SetMaxOpenConns(connections)
	for i, level := range b.Levels {
		s := b.define(t, serial.Series{Name: fmt.Sprint("at-once-", i), Period: serial.Daily, Digits: 4})
		table := b.invoices(t)
		var stored []int64
		for try := range 300 {
			at := noon.AddDate(0, 0, try)
			period, err := s.PeriodOf(at)
			must(t, err)
			var mu sync.Mutex
			var taken []int64
			var wg sync.WaitGroup
			for k := range writers {
				process, commits := b.fresh(t), k < 2
				wg.Go(func() {
					n, err := process.invoice(t.Context(), s, level, table, at, commits)
					if err != nil {
						t.Errorf("%v: %v", level, err)
					} else if commits {
						mu.Lock()
						defer mu.Unlock()
						taken = append(taken, n.N)
					}
				})
			}
			var last, jump, block int64 // the last number before the first, and one after which they may go on
			call := []string{"nothing", "Take", "MoveIn", "Raise"}[try%4]
			switch call {
			case "Take":
				block, err = b.store.Take(t.Context(), s.Name, period, at, 2)
			case "MoveIn":
				if err = b.store.MoveIn(t.Context(), s.Name, period, moved); err == nil {
					last = moved
				} else if errors.Is(err, serial.ErrCounted) {
					err = nil
				}
			case "Raise":
				jump, err = raised, b.store.Raise(t.Context(), s.Name, period, raised, "on paper")
			}
			wg.Wait()
			must(t, err)
			n, err := b.next(t, s, table, at)
			must(t, err)
			taken = append(taken, n.N)
			stored = append(stored, taken...)
			if block > 0 {
				taken = append(taken, block, block+1)
			}
			slices.Sort(taken)
			for _, n := range taken {
				if n != last+1 && (last >= jump || n != jump+1) {
					t.Fatalf("%v: the numbers of %s beside %s are %d; want each once, and none left out", level, period, call, taken)
				}
				last = n
			}
			if last <= jump {
				t.Fatalf("%v: the numbers of %s are %d after Raise(%d); want the last one above it", level, period, taken, raised)
			}
		}
		slices.Sort(stored)
		if got := Numbers(t, b.db, table); !slices.Equal(got, stored) {
			t.Errorf("%v: stored are the numbers %d; want %d", level, got, stored)
		}
	}
}

// closed has a transaction that holds a number, and one that comes later.
func (b *bench) closed(t *testing.T) {
	s := b.define(t, serial.Series{Name: "closed-late", Digits: 3})
	tx := b.begin(t)
	_, err := b.store.NextIn(t.Context(), tx, s, noon)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.store.ClosePeriod(ctx, s.Name, noon); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ClosePeriod while a transaction has a number = %v; want it to wait for the end of ctx", err)
	}
	must(t, tx.Commit())
}
