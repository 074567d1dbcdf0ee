package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

// sqlxTargets are the databases of BenchmarkSQLX.
var sqlxTargets = []database{sqlite, postgresByPgx, postgresByPq, mariaDB}

// A job is the rows that a variant has to store, and where.
type job struct {
	database
	db     *sqlx.DB
	orders []order // with their items; nil in lines
	items  []item  // all
}

// A load is a job that a variant has made ready.
type load struct {
	run   func() error // in one transaction, the only part that is measured
	keyed bool         // run gives the rows of the job other keys
}

// A variant is a way to store the rows of a load.
type variant struct {
	name    string // lines or graph, and the way
	only    *database
	prepare func(context.Context, *job) (load, error)
}

func (v variant) graph() bool { return strings.HasPrefix(v.name, "graph/") }

// variants returns those of a database.
func variants(d database) []variant {
	copying := sqlxhelper.WithCopy(pgxcopy.Copier{}, 0)
	list := []variant{
		{"lines/snowkey", nil, helperLines()},
		{"lines/snowkey-copy", &postgresByPgx, helperLines(copying)},
		{"graph/snowkey", nil, helperGraph()},
		{"graph/snowkey-two", nil, helperTwo()},
		{"graph/snowkey-copy", &postgresByPgx, helperGraph(copying)},
		{"graph/snowkey-two-copy", &postgresByPgx, helperTwo(copying)},
	}
	for _, load := range []string{"lines/", "graph/"} {
		list = append(list,
			variant{load + "limit=50", &sqlite, sqliteLimit(50)},
			variant{load + "limit=binary", &postgresByPgx, binaryCopyLimit},
			variant{load + "limit", &postgresByPq, copyInLimit},
			variant{load + "limit", &mariaDB, preparedLimit(500)})
	}
	return slices.DeleteFunc(list, func(v variant) bool { return v.only != nil && v.only.name != d.name })
}

// BenchmarkSQLX inserts 20,000 rows into one table ("lines"), or 1,000 rows with five
// children each under a foreign key ("graph"), in one transaction, begin and commit
// included. Every run has empty tables and a pool of its own with one open connection, and
// its rows are read back and compared. Rows have their keys before the clock starts, except
// those of sqlxhelper, whose source only counts: a core.Generator gives at most 4,096 keys
// per millisecond, and that rate would be measured instead.
func BenchmarkSQLX(b *testing.B) {
	sizes := sizes{lines: 20_000, orders: 1_000}
	if testing.Short() {
		sizes = fewRows
	}
	for _, d := range sqlxTargets {
		b.Run(d.name, func(b *testing.B) {
			dsn := d.space(b)
			d.printVersion(b, d.open(b, dsn, false).DB)
			for _, graph := range []bool{false, true} {
				list := variants(d)
				for _, i := range rand.Perm(len(list)) {
					if v := list[i]; v.graph() == graph {
						b.Run(v.name, func(b *testing.B) { benchmarkVariant(b, d, dsn, v, sizes) })
					}
				}
			}
		})
	}
}

func benchmarkVariant(b *testing.B, d database, dsn string, v variant, n sizes) {
	b.ReportAllocs()
	b.StopTimer()
	rows := 0
	for i := range b.N + 1 {
		err := storeOnce(b, d, dsn, v, n, func(j *job, run func() error) error {
			if i == 0 { // what a program does once, such as parsing struct tags, is done before
				return run()
			}
			rows = len(j.orders) + len(j.items)
			runtime.GC()
			b.StartTimer()
			defer b.StopTimer()
			return run()
		})
		must(b, err)
	}
	b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
}

// storeOnce runs a variant on empty tables, and reads back what it has stored.
func storeOnce(t testing.TB, d database, dsn string, v variant, n sizes, measure func(*job, func() error) error) error {
	if d.dialect == "sqlite" {
		dsn = d.space(t) // DROP TABLE would leave pages that need no growing of the file
	}
	j := newJob(d, v.graph(), n)
	j.db = d.open(t, dsn, v.graph())
	defer func() { _ = j.db.Close() }()
	l, err := v.prepare(t.Context(), j)
	if err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	if err := measure(j, l.run); err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	if err := j.verify(t.Context(), l, newJob(d, v.graph(), n)); err != nil {
		return fmt.Errorf("%s: %w", v.name, err)
	}
	return nil
}

func newJob(d database, graph bool, n sizes) *job {
	if graph {
		orders := newOrders(n.orders)
		return &job{database: d, orders: orders, items: allItems(orders)}
	}
	return &job{database: d, items: newItems(n.lines)}
}

// open returns a pool of one open connection, to empty tables. In a graph the items refer
// to orders; otherwise they have the column alone.
func (d database) open(t testing.TB, dsn string, graph bool) *sqlx.DB {
	t.Helper()
	db, err := sqlx.ConnectContext(t.Context(), d.driver, dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	// A variant that asks for a second one inside its transaction hangs here.
	db.SetMaxOpenConns(1)
	key, moment := "BIGINT PRIMARY KEY", "DATETIME(6)"
	switch d.dialect {
	case "sqlite":
		key, moment = "INTEGER PRIMARY KEY", "TIMESTAMP" // the one spelling that makes it the rowid
	case "postgres":
		moment = "TIMESTAMPTZ"
	}
	reference := ""
	if graph {
		reference = ", FOREIGN KEY (order_id) REFERENCES orders (id)"
	}
	for _, text := range []string{
		"DROP TABLE IF EXISTS order_items",
		"DROP TABLE IF EXISTS orders",
		"CREATE TABLE orders (id " + key + ", number VARCHAR(40) NOT NULL, total BIGINT NOT NULL, created_at " + moment + " NOT NULL)",
		"CREATE TABLE order_items (id " + key + ", order_id BIGINT NOT NULL, sku VARCHAR(40) NOT NULL, quantity INTEGER NOT NULL, " +
			"price BIGINT NOT NULL, created_at " + moment + " NOT NULL" + reference + ")",
		"CREATE INDEX order_items_order ON order_items (order_id)",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(text, err)
		}
	}
	return db
}

// inTx runs store in a transaction of the job's pool.
func (j *job) inTx(ctx context.Context, store func(*sqlx.Tx) error) error {
	tx, err := j.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := store(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// helperLines inserts rows without keys. As in a program, one Helper serves all rounds.
func helperLines(options ...sqlxhelper.Option) func(context.Context, *job) (load, error) {
	keys := new(counter)
	h := sqlxhelper.New(keys, options...)
	return func(ctx context.Context, j *job) (load, error) {
		for i := range j.items {
			j.items[i].ID = 0
		}
		keys.last = firstItem
		return load{run: func() error {
			return j.inTx(ctx, func(tx *sqlx.Tx) error { return h.InsertMany(ctx, tx, "order_items", j.items) })
		}, keyed: true}, nil
	}
}

// helperGraph inserts orders and items that have neither keys nor foreign keys.
func helperGraph(options ...sqlxhelper.Option) func(context.Context, *job) (load, error) {
	keys := new(counter)
	h := sqlxhelper.New(keys, options...)
	return func(ctx context.Context, j *job) (load, error) {
		for i := range j.orders {
			j.orders[i].ID = 0
			for k := range j.orders[i].Items {
				j.orders[i].Items[k].ID, j.orders[i].Items[k].OrderID = 0, 0
			}
		}
		keys.last = firstOrder
		return load{run: func() error {
			return j.inTx(ctx, func(tx *sqlx.Tx) error { return h.InsertGraph(ctx, tx, "orders", j.orders) })
		}, keyed: true}, nil
	}
}

// helperTwo is what InsertGraph is compared with: the same rows, with all keys set and the
// items in one slice before the clock starts.
func helperTwo(options ...sqlxhelper.Option) func(context.Context, *job) (load, error) {
	h := sqlxhelper.New(nil, options...)
	return func(ctx context.Context, j *job) (load, error) {
		return load{run: func() error {
			return j.inTx(ctx, func(tx *sqlx.Tx) error {
				if err := h.InsertMany(ctx, tx, "orders", j.orders); err != nil {
					return err
				}
				return h.InsertMany(ctx, tx, "order_items", j.items)
			})
		}}, nil
	}
}

// BenchmarkStream inserts b.N rows of a sequence with InsertSeq, in one transaction. It
// reports by how much the memory of the process grew, so run each in a process of its own.
func BenchmarkStream(b *testing.B) {
	for _, d := range sqlxTargets {
		b.Run(d.name, func(b *testing.B) {
			b.Run("snowkey", func(b *testing.B) { benchmarkStream(b, d) })
			if d.name == postgresByPgx.name {
				b.Run("snowkey-copy", func(b *testing.B) { benchmarkStream(b, d, sqlxhelper.WithCopy(pgxcopy.Copier{}, 0)) })
			}
		})
	}
}

func benchmarkStream(b *testing.B, d database, options ...sqlxhelper.Option) {
	db := d.open(b, d.space(b), false)
	h := sqlxhelper.New(&counter{last: firstItem}, options...)
	debug.FreeOSMemory() // what the program has needed to get here is not to be reused
	before := memory("VmRSS")
	b.ResetTimer()
	if _, err := sqlxhelper.InsertSeq(b.Context(), h, db, "order_items", sequence(b.N)); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(memory("VmHWM")-before)/(1<<10), "grown-MiB")
	var rows, keys, prices int
	err := db.QueryRowContext(b.Context(), fmt.Sprintf("SELECT count(*), sum(id - %d), sum(price) FROM order_items", firstItem)).Scan(&rows, &keys, &prices)
	// The keys are 1 to n above firstItem, and the prices are 1 to n.
	if sum := b.N * (b.N + 1) / 2; err != nil || rows != b.N || keys != sum || prices != sum {
		b.Fatalf("the table has %d rows, sums of keys and prices %d and %d (error %v); want %d, %d and %d", rows, keys, prices, err, b.N, sum, sum)
	}
}

// memory returns a field of /proc/self/status in KiB, or 0.
func memory(field string) int {
	text, _ := os.ReadFile("/proc/self/status") // there is none on other systems
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n, _ := strconv.Atoi(strings.Trim(value, " \tkB\n"))
			return n
		}
	}
	return 0
}

// sequence returns n rows without keys. Making them takes next to no time.
func sequence(n int) iter.Seq2[item, error] {
	var skus [1000]string
	for i := range skus {
		skus[i] = fmt.Sprintf("SKU-%06d", i)
	}
	return func(yield func(item, error) bool) {
		for i := range n {
			row := item{
				OrderID: firstOrder + types.Snowflake(i/itemsPerOrder), SKU: skus[i%len(skus)], Quantity: i%7 - 1, Price: int64(i) + 1,
				CreatedAt: epoch.Add(time.Duration(i) * time.Microsecond),
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// verify reads all rows back. They must be those that the variant was given, with the keys that
// they had, or that it has given them.
func (j *job) verify(ctx context.Context, l load, given *job) error {
	if j.orders != nil {
		j.items = allItems(j.orders)
	}
	if l.keyed {
		for i := range j.orders {
			given.orders[i].ID = j.orders[i].ID
		}
		for i, it := range j.items {
			if given.items[i].ID = it.ID; j.orders != nil {
				given.items[i].OrderID = j.orders[i/itemsPerOrder].ID
			}
		}
	}
	var orders []order
	var items []item
	if err := errors.Join(
		j.db.SelectContext(ctx, &orders, "SELECT id, number, total, created_at FROM orders"),
		j.db.SelectContext(ctx, &items, "SELECT id, order_id, sku, quantity, price, created_at FROM order_items"),
	); err != nil {
		return err
	}
	for i := range items {
		items[i].CreatedAt = items[i].CreatedAt.UTC()
	}
	return errors.Join(
		sameRows("orders", orders, given.orders, func(o order) types.Snowflake { return o.ID }, func(a, b order) bool {
			return a.Number == b.Number && a.Total == b.Total && a.CreatedAt.Equal(b.CreatedAt) // the items are rows by themselves
		}),
		sameRows("order_items", items, given.items, func(it item) types.Snowflake { return it.ID }, func(a, b item) bool { return a == b }),
	)
}

// sameRows compares the rows of a table with those that were given, in any order.
func sameRows[T any](table string, got, want []T, key func(T) types.Snowflake, same func(a, b T) bool) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d rows, want %d", table, len(got), len(want))
	}
	byKey := func(a, b T) int { return key(a).Compare(key(b)) }
	got, want = slices.SortedFunc(slices.Values(got), byKey), slices.SortedFunc(slices.Values(want), byKey)
	for i := range got {
		if key(got[i]) != key(want[i]) || key(got[i]) == 0 || !same(got[i], want[i]) {
			return fmt.Errorf("%s has the row %+v, want %+v", table, got[i], want[i])
		}
	}
	return nil
}

// The rows that are read back after each run are compared with those that were given, so
// all variants store the same, whatever quotes and escapes they use.
func TestEveryVariantStoresTheSameRows(t *testing.T) {
	for _, d := range sqlxTargets {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.space(t)
			for _, v := range variants(d) {
				if err := storeOnce(t, d, dsn, v, fewRows, func(_ *job, run func() error) error { return run() }); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
