package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// A readiness probe: no traffic for a process that may soon have no IDs.
func ExampleLease_Check() {
	ctx := context.Background()
	l, err := lease.Acquire(ctx, leasetest.NewMemory(nil), lease.Config{
		Namespace: "shop",
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: l})
	if err != nil {
		log.Fatal(err)
	}
	ready := func(w http.ResponseWriter, r *http.Request) {
		if err := l.Check(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
	probe := func() int {
		answer := httptest.NewRecorder()
		ready(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code
	}

	fmt.Println(probe())
	if err := gen.Close(ctx); err != nil {
		log.Print(err)
	}
	fmt.Println(probe())
	// Output:
	// 200
	// 503
}

// What to watch: whether a number is held, for how long IDs last, and what has failed.
func ExampleLease_Status() {
	ctx := context.Background()
	l, err := lease.Acquire(ctx, leasetest.NewMemory(nil), lease.Config{
		Namespace: "shop",
		Workers:   []int64{7},
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close(ctx)
	if _, err := core.New(core.Config{Worker: l}); err != nil {
		log.Fatal(err)
	}

	s := l.Status()
	fmt.Println("worker", s.Worker, "held", s.Held)
	fmt.Println("half a minute is reserved:", time.Until(s.Limit) > 30*time.Second)
	fmt.Println("losses", s.Losses, "failures", s.Failures, s.Err)
	// Output:
	// worker 7 held true
	// half a minute is reserved: true
	// losses 0 failures 0 <nil>
}

// All numbers are taken. The error says when the first of them is free.
func ExampleNoFreeWorkerError() {
	ctx := context.Background()
	store := leasetest.NewMemory(nil)
	config := lease.Config{
		Namespace: "shop",
		Workers:   []int64{7}, // the only one, for the example
		Logger:    slog.New(slog.DiscardHandler),
	}
	first, err := lease.Acquire(ctx, store, config)
	if err != nil {
		log.Fatal(err)
	}
	defer first.Close(ctx)

	_, err = lease.Acquire(ctx, store, config)
	if full := (*lease.NoFreeWorkerError)(nil); errors.As(err, &full) {
		fmt.Println(full.Rows, "number, free within a minute:", full.Wait <= time.Minute)
	}
	// Output: 1 number, free within a minute: true
}

// Two regions with a store each have their datacenter numbers from a store that both reach.
func ExampleRegion() {
	ctx := context.Background()
	layout := core.Layout{
		Epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC), Unit: time.Millisecond,
		TimeBits: 41, DatacenterBits: 3, WorkerBits: 7, SequenceBits: 12,
	}
	common := leasetest.NewMemory(nil)
	for _, name := range []string{"eu-west-1", "us-east-1"} {
		own := leasetest.NewMemory(nil) // that of the region
		l, err := lease.Acquire(ctx, own, lease.Config{
			Namespace: "shop", Layout: layout, Logger: slog.New(slog.DiscardHandler),
			Region: &lease.Region{Name: name, Store: common},
		})
		if err != nil {
			log.Fatal(err)
		}
		gen, err := core.New(core.Config{Layout: layout, Datacenter: l.Status().Datacenter, Worker: l})
		if err != nil {
			log.Fatal(err)
		}
		id, err := gen.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(name, layout.Parts(id).Datacenter)
		_ = gen.Close(ctx)
	}
	// Output:
	// eu-west-1 0
	// us-east-1 1
}

// The keys of rows that exist already get a number of their own before the first program takes
// a lease.
func ExampleRetire() {
	ctx := context.Background()
	store := leasetest.NewMemory(nil)
	config := lease.Config{Namespace: "shop", Workers: []int64{7}, Logger: slog.New(slog.DiscardHandler)}
	for range 2 { // as a program may do whenever it starts
		if err := lease.Retire(ctx, store, config, 7, "orders before snowkey"); err != nil {
			log.Fatal(err)
		}
	}
	_, err := lease.Acquire(ctx, store, config)
	fmt.Println(errors.Is(err, lease.ErrNoFreeWorker))
	// Output: true
}
