package sqlxhelper

import (
	"context"
	"testing"

	"github.com/snowkey/snowkey/types"
)

type benchOrder struct {
	types.Model
	Number string      `db:"number"`
	Items  []benchItem `db:"-" snowkey:"order_items,fk=order_id"`
}

type benchItem struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
	SKU     string          `db:"sku"`
}

// ascending is a source that costs nothing.
type ascending struct{ last types.Snowflake }

func (a *ascending) Next(context.Context) (types.Snowflake, error) { a.last++; return a.last, nil }

func (a *ascending) Fill(_ context.Context, ids []types.Snowflake) error {
	for i := range ids {
		a.last++
		ids[i] = a.last
	}
	return nil
}

// onShards is ascending with 64 shards.
type onShards struct{ ascending }

func (o *onShards) Fill(ctx context.Context, ids []types.Snowflake) error {
	err := o.ascending.Fill(ctx, ids)
	for i, id := range ids {
		ids[i] = id<<6 | id&63
	}
	return err
}

func (*onShards) ShardBits() int { return 6 }

func (*onShards) ShardFrom(context.Context) (int64, bool, error) { return 0, false, nil }

// BenchmarkGraphAssign measures what InsertGraph does before it writes. It finds
// and checks the rows, sets their keys and foreign keys, and sorts them by table.
func BenchmarkGraphAssign(b *testing.B) { benchmarkGraphAssign(b, &ascending{}) }

// BenchmarkGraphAssignOnShards is the same, and puts the children on the shards of their parents.
func BenchmarkGraphAssignOnShards(b *testing.B) { benchmarkGraphAssign(b, &onShards{}) }

func benchmarkGraphAssign(b *testing.B, src Source) {
	const parents, children = 1000, 5
	schema := schemaOf[benchOrder](b, SQLite, "orders", true)
	orders := make([]benchOrder, parents)
	for i := range orders {
		orders[i].Items = make([]benchItem, children)
	}
	roots, err := manyRows("InsertGraph", orders)
	if err != nil {
		b.Fatal(err)
	}
	keys := New(src).keys
	b.ReportAllocs()
	for b.Loop() {
		for i := range orders {
			orders[i].ID = 0
			for j := range orders[i].Items {
				orders[i].Items[j].ID, orders[i].Items[j].OrderID = 0, 0
			}
		}
		w, err := newRows(roots, schema)
		if err != nil {
			b.Fatal(err)
		}
		if loads, err := w.loads(); err != nil || len(loads) != 2 {
			b.Fatalf("loads() = %d of them, %v; want 2", len(loads), err)
		}
		if err := w.assign(b.Context(), keys); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(parents*(1+children)), "ns/row")
}

// BenchmarkManyAssign is what InsertMany does before it writes.
func BenchmarkManyAssign(b *testing.B) {
	schema := schemaOf[benchItem](b, SQLite, "order_items", false)
	src := &ascending{}
	items := make([]benchItem, 5000)
	rows, err := manyRows("InsertMany", items)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range items {
			items[i].ID = 0
		}
		w, err := newRows(rows, schema)
		if err != nil {
			b.Fatal(err)
		}
		if loads, err := w.loads(); err != nil || len(loads) != 1 {
			b.Fatalf("loads() = %d of them, %v; want 1", len(loads), err)
		}
		if err := w.assign(b.Context(), New(src).keys); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(items)), "ns/row")
}
