package lease_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// A process claims a worker number when it starts, and gives it back when it ends. The
// store in memory stands for one that all processes share.
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

// A backup was restored, and all processes are stopped. The greatest key in the tables
// has the time of the latest ID. The next lease must begin after it.
func ExampleFence() {
	ctx := context.Background()
	store := leasetest.NewMemory(nil)
	config := lease.Config{Namespace: "shop", Logger: slog.New(slog.DiscardHandler)}

	layout := core.Default()
	greatest := layout.Min(time.Now().Add(2 * time.Second)) // SELECT max(id) of every table
	until := layout.Parts(greatest).Time.Add(time.Second)
	if err := lease.Fence(ctx, store, config, until); err != nil {
		log.Fatal(err)
	}

	l, err := lease.Acquire(ctx, store, config)
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
	fmt.Println("after the greatest:", id > greatest)
	if err := gen.Close(ctx); err != nil {
		log.Print(err)
	}
	// Output:
	// after the greatest: true
}
