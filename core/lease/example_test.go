package lease_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// A process claims a worker number when it starts, and gives it back when it ends.
// The store in memory stands for one that all processes share.
func Example() {
	ctx := context.Background()
	store := leasetest.NewMemory(nil)

	l, err := lease.Acquire(ctx, store, lease.Config{
		Namespace: "shop",
		Workers:   []int64{7}, // for the example; mostly all may be claimed
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: l})
	if err != nil {
		log.Fatal(err)
	}

	id, err := gen.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("worker", gen.Layout().Parts(id).Worker)

	if err := gen.Close(ctx); err != nil { // which closes the lease
		log.Print(err)
	}
	fmt.Println("held", l.Status().Held)
	// Output:
	// worker 7
	// held false
}
