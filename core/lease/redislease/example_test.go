package redislease_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/redislease"
)

// A worker number from Redis.
func Example() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close() // after the lease
	store, err := redislease.New(client, redislease.Config{})
	if err != nil {
		log.Fatal(err)
	}
	l, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: l})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(ctx)
}

// With Sentinel, the client finds the primary.
func Example_sentinel() { //nolint:testableexamples // it needs a server
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName:    "shop",
		SentinelAddrs: []string{"sentinel-0:26379", "sentinel-1:26379", "sentinel-2:26379"},
	})
	defer client.Close()
	if _, err := redislease.New(client, redislease.Config{}); err != nil {
		log.Fatal(err)
	}
}
