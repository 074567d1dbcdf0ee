package serialcases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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
					n, err := process.invoice(t.Context(), s, level, table, at, k < len(both))
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
		var stored atomic.Int64
		var wg sync.WaitGroup
		for w := range uint64(64) {
			wg.Go(func() {
				random := rand.New(rand.NewPCG(8, w))
				for range 5 {
					commits := random.IntN(3) > 0
					if _, err := b.invoice(t.Context(), s, level, table, noon, commits); err != nil {
						t.Errorf("%v: %v", level, err)
					} else if commits {
						stored.Add(1)
					}
				}
			})
		}
		wg.Wait()
		all := Numbers(t, b.db, table)
		for i, got := range all {
			if got != int64(i+1) {
				t.Fatalf("%v: numbers[%d] = %d; want %d, of %d without a gap", level, i, got, i+1, stored.Load())
			}
		}
		if int64(len(all)) != stored.Load() {
			t.Fatalf("%v: %d numbers; want %d", level, len(all), stored.Load())
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

// moveIn has MoveIn and the first number of a period come at once. Either the number is above
// those that moved in, or MoveIn is refused.
func (b *bench) moveIn(t *testing.T) {
	s := b.define(t, serial.Series{Name: "movein-race", Prefix: "RACE", Period: serial.Daily, Digits: 3})
	table := b.invoices(t)
	for try := range 30 {
		at := noon.AddDate(0, 0, try)
		period, _ := s.PeriodOf(at)
		var n serial.Number
		var taken, moved error
		var wg sync.WaitGroup
		wg.Go(func() { n, taken = b.next(t, s, table, at) })
		wg.Go(func() { moved = b.store.MoveIn(t.Context(), s.Name, period, 50) })
		wg.Wait()
		if taken != nil || !(n.N == 51 && moved == nil || n.N == 1 && errors.Is(moved, serial.ErrCounted)) {
			t.Errorf("NextIn = %d, %v beside MoveIn(50) = %v; want 51 and nil, or 1 and %v", n.N, taken, moved, serial.ErrCounted)
		}
	}
}

// raised leaves out numbers that are on paper, while others are taken.
func (b *bench) raised(t *testing.T) {
	s := b.define(t, serial.Series{Name: "raised", Prefix: "RAISED", Digits: 5})
	table := b.invoices(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if _, err := b.next(t, s, table, noon); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, last := range []int64{100, 300, 200} {
		if err := b.store.Raise(t.Context(), s.Name, "", last, "restored"); err != nil {
			t.Errorf("Raise(%d) = %v; want nil", last, err)
		}
	}
	wg.Wait()
	n, err := b.next(t, s, table, noon)
	if err != nil || n.N <= 300 || n.N > 341 {
		t.Errorf("NextIn after Raise(300) = %d, %v; want one of 301 to 341", n.N, err)
	}
	if all := slices.Compact(Numbers(t, b.db, table)); len(all) != 41 {
		t.Errorf("41 numbers beside Raise are %v; want each once", all)
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
		must(t, err)
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
		must(t, err)
		next, err := b.store.Take(t.Context(), s.Name, period, at, 1)
		must(t, err)
		if lost := next - 1 - n; lost < 0 || lost > processes*block {
			t.Errorf("%d numbers of %s are lost; want %d at most, a block per process", lost, period, processes*block)
		}
	}
}
