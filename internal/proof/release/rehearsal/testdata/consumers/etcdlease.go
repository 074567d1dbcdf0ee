// Program consumer uses etcdlease as a user's program does.
package main

import (
	"fmt"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
)

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"localhost:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	store, err := etcdlease.New(client, etcdlease.Config{Prefix: "orders"})
	if err != nil {
		log.Fatal(err)
	}
	var _ lease.Store = store
	fmt.Println("a store on etcd")
}
