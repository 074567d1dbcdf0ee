package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
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

// A fixed number from the deployment. The pods of a StatefulSet are numbered from
// 0, and Kubernetes tells each its number when the manifest asks for it:
//
//	env:
//	- name: SNOWKEY_WORKER
//	  valueFrom:
//	    fieldRef:
//	      fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
//
// A missing or empty variable stops the program: number 0 belongs to a pod.
func ExampleWorkerFromEnv() {
	_ = os.Setenv("SNOWKEY_WORKER", "3") // what Kubernetes does

	worker, err := core.WorkerFromEnv("SNOWKEY_WORKER")
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: core.StaticWorker(worker)})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())
	fmt.Println(gen.Stats().Worker)

	_ = os.Setenv("SNOWKEY_WORKER", "")
	_, err = core.WorkerFromEnv("SNOWKEY_WORKER")
	fmt.Println(err)
	// Output:
	// 3
	// core: environment variable SNOWKEY_WORKER is "": want a worker number in decimal digits, such as 0 or 12, at most 2147483647
}

// Two regions that share no store. Each has its datacenter, and worker numbers of its
// own.
func ExampleDatacenterFromEnv() {
	_ = os.Setenv("SNOWKEY_DATACENTER", "2") // what the region's deployment does

	datacenter, err := core.DatacenterFromEnv("SNOWKEY_DATACENTER")
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{
		Layout:     core.Twitter(), // it has 5 bits for the datacenter
		Datacenter: datacenter,
		Worker:     core.StaticWorker(3),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())
	fmt.Println(gen.Stats().Datacenter, gen.Stats().Worker)
	// Output: 2 3
}

// The same without a variable: the ordinal is the end of the pod's host name.
func ExampleWorkerFromHostname() {
	worker, err := core.WorkerFromHostname("orders-3") // from os.Hostname
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(worker)
	// Output: 3
}

// An error comes without an ID. errors.Is says what to do.
func ExampleGenerator_Next() {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(13)})
	if err != nil {
		log.Fatal(err)
	}
	next := func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		id, err := gen.Next(ctx)
		switch {
		case errors.Is(err, core.ErrReservationExhausted):
			fmt.Println("the store of the leases is away: try again later")
		case errors.Is(err, core.ErrClosed):
			fmt.Println("the program is ending:", id)
		case errors.Is(err, context.Canceled):
			fmt.Println("the request is over:", id)
		case err != nil:
			log.Fatal(err)
		default:
			fmt.Println("an ID:", id > 0)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	next(ctx)
	cancel()
	next(ctx)
	if err := gen.Close(context.Background()); err != nil {
		log.Print(err)
	}
	next(context.Background())
	// Output:
	// an ID: true
	// the request is over: 0
	// the program is ending: 0
}

// One process may not use a worker number twice at the same time.
func ExampleNew_workerInUse() {
	config := core.Config{Worker: core.StaticWorker(14)}
	gen, err := core.New(config)
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())
	_, err = core.New(config)
	fmt.Println(errors.Is(err, core.ErrWorkerInUse))
	// Output: true
}

// A program whose IDs must not be ahead of the wall clock waits for short steps back, and stops
// taking orders during long ones.
func ExampleRollback() {
	gen, err := core.New(core.Config{
		Worker:       core.StaticWorker(9),
		Rollback:     core.Wait,
		RollbackWait: 50 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())

	_, err = gen.Next(context.Background())
	if back := (*core.ClockBackError)(nil); errors.As(err, &back) {
		fmt.Println("the clock is behind by", back.Behind)
	}
	fmt.Println(err)
	// Output: <nil>
}

// Rows that are sharded by id % 16 arrive one by one. Random starts spread them over all shards,
// and so do rotating ones, by turns.
func ExampleSequenceStart() {
	for i, start := range []core.SequenceStart{core.Random, core.Rotating} {
		gen, err := core.New(core.Config{
			Worker:        core.StaticWorker(10 + int64(i)),
			SequenceStart: start,
		})
		if err != nil {
			log.Fatal(err)
		}
		defer gen.Close(context.Background())

		rows := map[int64]int{} // of each shard
		id, err := gen.Next(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		rows[id.Int64()%16]++
		fmt.Println(start, len(rows))
	}
	// Output:
	// Random 1
	// Rotating 1
}

// A signal has ended the context of the program. Close needs one that is still live, to
// give a leased worker number back.
func Example_shutdown() {
	ctx, stop := context.WithCancel(context.Background()) // mostly signal.NotifyContext
	gen, err := core.New(core.Config{Worker: core.StaticWorker(15)})
	if err != nil {
		log.Fatal(err)
	}

	stop()
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := gen.Close(closing); err != nil {
		log.Print(err)
	}

	_, err = gen.Next(closing)
	fmt.Println("closed:", errors.Is(err, core.ErrClosed))
	// Output: closed: true
}
