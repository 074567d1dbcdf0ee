package zklease_test

import (
	"context"
	"log"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/zklease"
)

// A worker number from ZooKeeper.
func Example() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	conn, _, err := zk.Connect([]string{"zk-0:2181", "zk-1:2181", "zk-2:2181"}, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close() // after the lease
	store, err := zklease.New(conn, zklease.Config{})
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

// Only one user may read and write the rows.
func Example_acl() { //nolint:testableexamples // it needs a server
	conn, _, err := zk.Connect([]string{"zk-0:2181"}, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if err := conn.AddAuth("digest", []byte("orders:secret")); err != nil {
		log.Fatal(err)
	}
	config := zklease.Config{Prefix: "/orders/workers", ACL: zk.AuthACL(zk.PermAll)}
	if _, err := zklease.New(conn, config); err != nil {
		log.Fatal(err)
	}
}
