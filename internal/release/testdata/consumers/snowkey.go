// Program consumer uses the root module as a user's program does.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/filelease"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

func main() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "consumer-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	store, err := filelease.New(folder, filelease.Config{})
	if err != nil {
		log.Fatal(err)
	}
	worker, err := lease.Acquire(ctx, store, lease.Config{Namespace: "shop"})
	if err != nil {
		log.Fatal(err)
	}
	keys, err := core.New(core.Config{Worker: worker})
	if err != nil {
		log.Fatal(err)
	}
	_, _ = gormplugin.New(keys), sqlxhelper.New(keys)
	var ids [100]types.Snowflake
	if err := keys.Fill(ctx, ids[:]); err != nil {
		log.Fatal(err)
	}
	if err := keys.Close(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(ids), "keys with a leased worker number")
}
