package segment_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/types"
)

// oneRow returns a store in memory with one row. It stands for a table; see package
// sqlsegment.
func oneRow(row segment.Row) *segmenttest.Memory {
	store := new(segmenttest.Memory)
	if err := store.Create(context.Background(), row); err != nil {
		log.Fatal(err)
	}
	return store
}

// One Allocator per sequence and process, shared by all goroutines.
func Example() {
	ctx := context.Background()
	store := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})
	orders, err := segment.New(store, segment.Config{Tag: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close(ctx) // gives back what is left

	for range 3 {
		id, err := orders.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
	}
	// Output:
	// 1
	// 2
	// 3
}

// Numbers for many rows. On an error there is none.
func ExampleAllocator_Fill() {
	ctx := context.Background()
	store := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})
	orders, err := segment.New(store, segment.Config{Tag: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close(ctx)

	ids := make([]types.Snowflake, 250)
	if err := orders.Fill(ctx, ids); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ids[0], "to", ids[249])
	// Output: 1 to 250
}

// What to watch: how long the numbers last, and what a crash would lose.
func ExampleAllocator_Stats() {
	ctx := context.Background()
	store := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})
	orders, err := segment.New(store, segment.Config{
		Tag:  "orders",
		Hold: -1,        // no prefetch, so that the figures are the same in each run
		Last: 1<<31 - 1, // the column is an INT
	})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close(ctx)
	if _, err := orders.Next(ctx); err != nil {
		log.Fatal(err)
	}

	s := orders.Stats()
	fmt.Println("held", s.Held, "left", s.Left, "low", s.Low)
	fmt.Println("fetches", s.Fetches, "failures", s.Failures, s.Err)
	// Output:
	// held 99 left 2147483547 low false
	// fetches 1 failures 0 <nil>
}

// Metrics of each fetch: how many numbers it brought, or why it failed.
func ExampleRefill() {
	ctx := context.Background()
	store := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})
	orders, err := segment.New(store, segment.Config{
		Tag:  "orders",
		Hold: -1,
		OnRefill: func(r segment.Refill) {
			fmt.Println(r.Tag, "count", r.Count, "held", r.Held, "error", r.Err)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := orders.Next(ctx); err != nil {
		log.Fatal(err)
	}
	if err := orders.Close(ctx); err != nil { // which ends the goroutine that prints
		log.Fatal(err)
	}
	// Output: orders count 100 held 100 error <nil>
}

// A sequence for each table. The Allocator of a tag is made at its first use.
func ExampleSet() {
	ctx := context.Background()
	store := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})
	if err := store.Create(ctx, segment.Row{Tag: "invoices", Next: 5000, Step: 100, Stride: 1}); err != nil {
		log.Fatal(err)
	}
	numbers, err := segment.NewSet(store, segment.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer numbers.Close(ctx)

	for _, tag := range []string{"orders", "invoices"} {
		id, err := numbers.Next(ctx, tag)
		fmt.Println(tag, id, err)
	}
	// Output:
	// orders 1 <nil>
	// invoices 5000 <nil>
}

// Two databases share a sequence, by a stride of 2 and the offsets 0 and 1.
func ExampleSpread() {
	ctx := context.Background()
	even := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 2, Offset: 0})
	odd := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 2, Offset: 1})
	store, err := segment.Spread(even, odd)
	if err != nil {
		log.Fatal(err)
	}
	orders, err := segment.New(store, segment.Config{Tag: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close(ctx)

	first, err := orders.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	second, err := orders.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(second - first)
	// Output: 2
}

// A database is added to one that is there. Programs may run meanwhile.
func ExampleRestride() {
	ctx := context.Background()
	old := oneRow(segment.Row{Tag: "orders", Next: 1000, Step: 100, Stride: 1})
	added := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})
	if err := segment.Restride(ctx, "orders", 2, old, added); err != nil {
		log.Fatal(err)
	}
	for _, store := range []segment.Lister{old, added} {
		rows, err := store.Rows(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("stride", rows[0].Stride, "offset", rows[0].Offset)
	}
	// Output:
	// stride 2 offset 0
	// stride 2 offset 1
}

// A backup was restored: the row is behind the keys in the table. Floor notices.
func Example_restoredBackup() {
	ctx := context.Background()
	store := oneRow(segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1})
	start := func() error {
		orders, err := segment.New(store, segment.Config{
			Tag:   "orders",
			Floor: func(context.Context) (int64, error) { return 700, nil }, // SELECT max(id) FROM orders
		})
		if err != nil {
			return err
		}
		defer orders.Close(ctx)
		id, err := orders.Next(ctx)
		fmt.Println(id)
		return err
	}
	fmt.Println(errors.Is(start(), segment.ErrWentBack))

	if _, err := store.Raise(ctx, "orders", 701); err != nil {
		log.Fatal(err)
	}
	fmt.Println(start())
	// Output:
	// 0
	// true
	// 701
	// <nil>
}
