package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// sizes are how many rows the loads have.
type sizes struct{ lines, orders int }

var fullSizes = sizes{lines: 20_000, orders: 1_000}

// A measurement is what one run took.
type measurement struct {
	rows    int
	elapsed time.Duration
	mallocs uint64
	client  time.Duration // CPU of this program
	server  time.Duration // CPU of the server's task for the connection; 0: not known
	others  time.Duration // CPU of its other tasks
	grown   int64         // by how many bytes this program grew, at most; 0: not measured
}

// rate returns the rows per second.
func (m measurement) rate() float64 { return float64(m.rows) / m.elapsed.Seconds() }

// run runs a variant once, and reads back what it has stored.
func (p *place) run(ctx context.Context, v variant, n sizes) (m measurement, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s, %s, %s: %w", p.name, v.load, v.name, err)
		}
	}()
	db, dsn, err := p.open(ctx, v.load == graph)
	if err != nil {
		return measurement{}, err
	}
	defer func() { err = errors.Join(err, db.Close(), p.remove()) }()
	j := newJob(p, v.load, n)
	j.db, j.dsn = db, dsn
	l, err := v.prepare(ctx, j)
	if err != nil {
		return measurement{}, err
	}
	m.rows = len(j.orders) + len(j.items)
	if err := m.measure(l.run, p.serverOf(ctx, db)); err != nil {
		return measurement{}, err
	}
	return m, j.verify(ctx, l, n)
}

// newJob makes the rows.
func newJob(p *place, load string, n sizes) *job {
	if load == graph {
		orders := newOrders(n.orders)
		return &job{place: p, orders: orders, items: allItems(orders)}
	}
	return &job{place: p, items: newItems(n.lines)}
}

// measure runs what is to be measured, on a heap without the garbage of the run
// before.
func (m *measurement) measure(run func() error, served server) error {
	var before, after runtime.MemStats
	then := served.cpu() // first and last, because it allocates
	runtime.GC()
	runtime.ReadMemStats(&before)
	client := benchmark.OwnCPU()
	start := time.Now()
	err := run()
	m.elapsed = time.Since(start)
	m.client = benchmark.OwnCPU() - client
	runtime.ReadMemStats(&after)
	m.server, m.others = served.since(then)
	m.mallocs = after.Mallocs - before.Mallocs
	return err
}

// verify reads all rows back. They must be what the variant says it stored, and that
// must be the rows of the job.
func (j *job) verify(ctx context.Context, l load, n sizes) error {
	orders, items := j.orders, j.items
	if l.stored != nil {
		orders, items = l.stored()
		given := newJob(j.place, map[bool]string{true: graph, false: lines}[j.orders != nil], n)
		if err := sameButKeys(orders, given.orders, items, given.items); err != nil {
			return err
		}
	}
	var gotOrders []order
	var gotItems []item
	if err := selectAll(ctx, j.db, &gotOrders, "SELECT id, number, total, created_at FROM orders"); err != nil {
		return err
	}
	if err := selectAll(ctx, j.db, &gotItems, "SELECT id, order_id, sku, quantity, price, created_at FROM order_items"); err != nil {
		return err
	}
	for i := range gotOrders {
		gotOrders[i].CreatedAt = gotOrders[i].CreatedAt.UTC()
	}
	for i := range gotItems {
		gotItems[i].CreatedAt = gotItems[i].CreatedAt.UTC()
	}
	return errors.Join(
		sameRows("orders", gotOrders, orders, func(o order) int64 { return o.ID }, sameOrder),
		sameRows("order_items", gotItems, items, func(it item) int64 { return it.ID }, func(a, b item) bool { return a == b }),
	)
}

// sameOrder compares all but the items, which are rows by themselves.
func sameOrder(a, b order) bool {
	return a.ID == b.ID && a.Number == b.Number && a.Total == b.Total && a.CreatedAt.Equal(b.CreatedAt)
}

func selectAll[T any](ctx context.Context, db *sqlx.DB, rows *[]T, query string) error {
	if err := db.SelectContext(ctx, rows, query); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// sameRows compares the rows of a table with those that were given, in any order.
func sameRows[T any](table string, got, want []T, key func(T) int64, same func(a, b T) bool) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d rows, want %d", table, len(got), len(want))
	}
	byKey := func(a, b T) int {
		switch x, y := key(a), key(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	got, want = slices.SortedFunc(slices.Values(got), byKey), slices.SortedFunc(slices.Values(want), byKey)
	for i := range got {
		if !same(got[i], want[i]) {
			return fmt.Errorf("%s has the row %+v, want %+v", table, got[i], want[i])
		}
	}
	return nil
}

// sameButKeys compares rows that were given keys with the rows of the job. All values
// must be the same, keys set, and children under the keys of their parents.
func sameButKeys(gotOrders, wantOrders []order, gotItems, wantItems []item) error {
	if len(gotOrders) != len(wantOrders) || len(gotItems) != len(wantItems) {
		return fmt.Errorf("%d orders and %d items, want %d and %d", len(gotOrders), len(gotItems), len(wantOrders), len(wantItems))
	}
	for i, got := range gotOrders {
		want := wantOrders[i]
		if want.ID = got.ID; got.ID == 0 || !sameOrder(got, want) {
			return fmt.Errorf("order %d is %+v, want %+v with a key", i, got, want)
		}
	}
	for i, got := range gotItems {
		want := wantItems[i]
		if wantOrders != nil {
			want.OrderID = gotOrders[i/itemsPerOrder].ID
		}
		if want.ID = got.ID; got.ID == 0 || got != want {
			return fmt.Errorf("item %d is %+v, want %+v with a key", i, got, want)
		}
	}
	return nil
}
