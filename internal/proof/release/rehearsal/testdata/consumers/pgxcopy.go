// Program consumer uses pgxcopy as a user's program does.
package main

import (
	"fmt"
	"log"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
)

func main() {
	keys, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		log.Fatal(err)
	}
	_ = sqlxhelper.New(keys, sqlxhelper.WithCopy(pgxcopy.Copier{}, 0))
	fmt.Println("a helper that copies")
}
