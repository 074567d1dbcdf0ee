// Command twoflat inserts two rows without relations, for package functions.
package main

import (
	"context"
	"log"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/proof/functions"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type row struct {
	types.Model
	N int `db:"n"`
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
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
	return functions.Write(func() error { return h.InsertMany(ctx, db, "t", []row{{N: 1}, {N: 2}}) })
}
