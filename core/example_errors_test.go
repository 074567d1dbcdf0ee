package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/snowkey/snowkey/core"
)

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
