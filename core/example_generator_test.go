package core_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

func ExampleNew() {
	// One generator per process, shared by all goroutines.
	gen, err := core.New(core.Config{Worker: core.StaticWorker(7)})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer gen.Close(ctx)

	order, err := gen.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	items := make([]types.Snowflake, 3)
	if err := gen.Fill(ctx, items); err != nil {
		log.Fatal(err)
	}
	fmt.Println(gen.Layout().Parts(order).Worker)
	fmt.Println(order < items[0], items[0] < items[1], items[1] < items[2])
	// Output:
	// 7
	// true true true
}

func ExampleNew_layout() {
	// A layout of one's own: seconds, for a key that lasts a thousand years.
	gen, err := core.New(core.Config{
		Layout: core.Layout{
			Epoch:    time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
			Unit:     time.Second,
			TimeBits: 35, WorkerBits: 8, SequenceBits: 20,
		},
		Worker: core.StaticWorker(255),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())
	fmt.Println(gen.Stats().Exhausted.Year())
	// Output: 3113
}

// Keys for many rows cost one atomic operation. On an error there is none.
func ExampleGenerator_Fill() {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(11)})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer gen.Close(ctx)

	ids := make([]types.Snowflake, 1000)
	if err := gen.Fill(ctx, ids); err != nil {
		log.Fatal(err)
	}
	fmt.Println(slices.IsSorted(ids), len(slices.Compact(ids)))
	// Output: true 1000
}

// What to watch: how far the last ID is from the clock, and the end of the layout.
func ExampleGenerator_Stats() {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(12)})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())

	s := gen.Stats()
	fmt.Println("worker", s.Worker)
	fmt.Println("ahead by 100 ms or more:", s.Ahead >= 100*time.Millisecond)
	fmt.Println("ends on", s.Exhausted.Format(time.DateOnly), "which is soon:", s.ExhaustedSoon)
	// Output:
	// worker 12
	// ahead by 100 ms or more: false
	// ends on 2094-09-07 which is soon: false
}
