// Program consumer uses zklease as a user's program does.
package main

import (
	"fmt"
	"log"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/zklease"
)

func main() {
	store, err := zklease.New(&zk.Conn{}, zklease.Config{Prefix: "/snowkey"})
	if err != nil {
		log.Fatal(err)
	}
	var _ lease.Store = store
	fmt.Println("a store on ZooKeeper")
}
