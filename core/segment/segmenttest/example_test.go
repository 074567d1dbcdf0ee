package segmenttest_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
)

// The test of a store of your own.
func ExampleRun() { //nolint:testableexamples // Run needs the T of a test
	TestStoreConforms := func(t *testing.T) {
		table := new(segmenttest.Memory) // where the rows are
		segmenttest.Run(t, segmenttest.Harness{Open: func(*testing.T) segmenttest.Store {
			return table // a new handle, as another process would have it
		}})
	}
	_ = TestStoreConforms
}

// A test of a program needs no database for its numbers.
func ExampleMemory() {
	ctx := context.Background()
	store := new(segmenttest.Memory)
	if err := store.Create(ctx, segment.Row{Tag: "orders", Next: 1, Step: 100, Stride: 1}); err != nil {
		log.Fatal(err)
	}
	orders, err := segment.New(store, segment.Config{Tag: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close(ctx)
	id, err := orders.Next(ctx)
	fmt.Println(id, err)
	// Output: 1 <nil>
}
