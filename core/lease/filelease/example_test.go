//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package filelease_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/filelease"
	"github.com/snowkey/snowkey/types"
)

// The processes of a host share a directory, and each gets a different number.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "worker-numbers") // one that lasts, such as /var/lib/orders
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// Each process:
	start := func() (*lease.Lease, error) {
		store, err := filelease.New(dir, filelease.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		return lease.Acquire(ctx, store, lease.Config{
			Namespace: "orders",
			Logger:    slog.New(slog.DiscardHandler),
		})
	}
	first, err := start()
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close(ctx)
	second, err := start()
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close(ctx)
	fmt.Println("the same number:", first.Status().Worker == second.Status().Worker)
	// Output: the same number: false
}

// A fixed worker number that an operator assigns is safe on its own only as long as the clock
// does not step back across a restart. With its limit in a file it is safe whatever the clock
// does, and if two processes are given the number by mistake, the second one does not start.
//
// The window is shorter than the permitted clock skew (5 s by default), so a process that has
// crashed can start again at once.
func Example_staticWorker() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "worker-state") // one that lasts, such as /var/lib/orders
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	// Each run of the program:
	run := func() types.Snowflake {
		store, err := filelease.New(dir, filelease.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			log.Fatal(err)
		}
		defer store.Close()
		l, err := lease.Acquire(ctx, store, lease.Config{
			Namespace: "orders",
			Workers:   []int64{7},
			Window:    4 * time.Second,
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
		if err := gen.Close(ctx); err != nil { // which gives the number back
			log.Print(err)
		}
		return id
	}
	first, second := run(), run()
	fmt.Println("worker", core.Default().Parts(second).Worker)
	fmt.Println("later:", second > first)
	// Output:
	// worker 7
	// later: true
}
