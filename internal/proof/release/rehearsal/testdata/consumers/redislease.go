// Program consumer uses redislease as a user's program does.
package main

import (
	"fmt"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/redislease"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}) // connects when first used
	defer client.Close()
	store, err := redislease.New(client, redislease.Config{})
	if err != nil {
		log.Fatal(err)
	}
	var _ lease.Store = store
	fmt.Println("a store on Redis")
}
