package etcdlease_test

import (
	"context"
	"crypto/tls"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
)

// A worker number from etcd.
func Example() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"etcd-0:2379", "etcd-1:2379", "etcd-2:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close() // after the lease
	store, err := etcdlease.New(client, etcdlease.Config{})
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

// With certificates, the store uses the client's to ask for the time.
func Example_tls() { //nolint:testableexamples // it needs a server
	certificate, err := tls.LoadX509KeyPair("client.pem", "client-key.pem")
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{"https://etcd-0:2379"},
		DialTimeout: 5 * time.Second,
		TLS:         config,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	if _, err := etcdlease.New(client, etcdlease.Config{Prefix: "orders/workers", TLS: config}); err != nil {
		log.Fatal(err)
	}
}
