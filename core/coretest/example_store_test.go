package coretest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/core/lease"
)

// The store is away when the process ends.
func ExampleStore() {
	ctx := context.Background()
	store := coretest.NewStore(nil)
	worker, err := lease.Acquire(ctx, store, lease.Config{
		Namespace: "shop",
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: worker})
	if err != nil {
		log.Fatal(err)
	}

	away := errors.New("connection refused")
	store.Fail(away)
	_, err = gen.Next(ctx)
	fmt.Println("a key:", err == nil)
	err = gen.Close(ctx)
	fmt.Println("given back:", !errors.Is(err, away))
	// Output:
	// a key: true
	// given back: false
}
