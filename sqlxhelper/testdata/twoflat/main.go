// Command twoflat inserts two rows without relations a second time, when all that is kept between
// calls is there, and writes what was run then into the folder that it is given.
package main

import (
	"context"
	"log"
	"os"
	"runtime/coverage"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type row struct {
	types.Model
	N int `db:"n"`
}

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) error {
	generator, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		return err
	}
	db, err := sqlx.Open("sqlite3", ":memory:")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"); err != nil {
		return err
	}
	h := sqlxhelper.New(generator)
	for range 2 {
		if err := coverage.ClearCounters(); err != nil {
			return err
		}
		if err := h.InsertMany(ctx, db, "t", []row{{N: 1}, {N: 2}}); err != nil {
			return err
		}
	}
	if err := coverage.WriteMetaDir(dir); err != nil {
		return err
	}
	return coverage.WriteCountersDir(dir)
}
