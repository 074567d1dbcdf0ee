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

// refused fails the test for a transaction that was refused at a level where none may be.
func (b *bench) refused(t *testing.T, level sql.IsolationLevel) func(error) {
	return func(err error) {
		if !b.Refuses || level <= sql.LevelReadCommitted {
			t.Errorf("%v: %v; want no transaction refused", level, err)
		}
	}
}

// next is invoice at the default level, where the invoice is stored.
func (b *bench) next(t *testing.T, s serial.Series, table string, at time.Time) (serial.Number, error) {
	return b.invoice(t.Context(), s, sql.LevelDefault, table, at, (*sql.Tx).Commit, func(error) {})
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
					n, err := process.invoice(t.Context(), s, level, table, at, end, b.refused(t, level))
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
		b.wantAll(t, 64, func(table string, random *rand.Rand) (stored int, err error) {
			for range 5 {
				commits, works := random.IntN(3) > 0, random.IntN(2)
				_, err = b.invoice(t.Context(), s, level, table, noon, func(tx *sql.Tx) error {
					if !commits {
						return tx.Rollback()
					}
					time.Sleep(time.Duration(works) * time.Millisecond) // other work, then the end
					stored++
					return tx.Commit()
				}, b.refused(t, level))
				if err != nil {
					return stored, fmt.Errorf("%v: %w", level, err)
				}
			}
			return stored, nil
		})
	}
}

// inTx leaves the errors of serialization to sqlxhelper.
func (b *bench) inTx(t *testing.T) {
	for _, level := range b.Levels {
		s := b.define(t, serial.Series{Name: fmt.Sprintf("intx-%d", level), Digits: 6})
		b.wantAll(t, 4, func(table string, _ *rand.Rand) (int, error) {
			for range 10 {
				err := sqlxhelper.InTx(t.Context(), sqlx.NewDb(b.db, b.Driver), &sql.TxOptions{Isolation: level}, func(tx *sqlx.Tx) error {
					n, err := b.store.NextIn(t.Context(), tx, s, noon)
					if err != nil {
						return err
					}
					return b.insert(t.Context(), tx, table, n)
				})
				if err != nil {
					return 0, fmt.Errorf("%v: InTx = %w", level, err)
				}
			}
			return 10, nil
		})
	}
}

// wantAll runs writers of a table at once, and fails the test unless its numbers are as many as
// they say that they have stored, from 1 on.
func (b *bench) wantAll(t *testing.T, writers int, write func(table string, random *rand.Rand) (stored int, err error)) {
	t.Helper()
	table := b.invoices(t)
	var want atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			stored, err := write(table, rand.New(rand.NewPCG(8, uint64(w))))
			if err != nil {
				t.Error(err)
			}
			want.Add(int64(stored))
		})
	}
	wg.Wait()
	all := Numbers(t, b.db, table)
	for i, got := range all {
		if got != int64(i+1) {
			t.Fatalf("numbers[%d] = %d; want %d, of %d without a gap", i, got, i+1, want.Load())
		}
	}
	if int64(len(all)) != want.Load() {
		t.Fatalf("%d numbers; want %d", len(all), want.Load())
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
