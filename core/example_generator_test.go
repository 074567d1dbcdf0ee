package core_test

import (
	"context"
	"fmt"
	"log"
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
