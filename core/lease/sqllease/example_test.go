//go:build cgo

package sqllease_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// A worker number from the database of the program. SQLite stands for any of them.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "leases")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite3", filepath.Join(dir, "leases.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite})
	if err != nil {
		log.Fatal(err)
	}
	if err := store.CreateTables(ctx); err != nil {
		log.Fatal(err)
	}
	l, err := lease.Acquire(ctx, store, lease.Config{
		Namespace: "shop",
		Workers:   []int64{7}, // for the example; mostly all may be claimed
		Logger:    slog.New(slog.DiscardHandler),
	})
	if err != nil {
		log.Fatal(err)
	}
	gen, err := core.New(core.Config{Worker: l})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("worker", gen.Stats().Worker)
	if err := gen.Close(ctx); err != nil {
		log.Print(err)
	}
	// Output: worker 7
}

// Statements for those who run their migrations themselves.
func ExampleStore_Statements() {
	db, err := sql.Open("sqlite3", ":memory:") // nothing is sent to it
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL})
	if err != nil {
		log.Fatal(err)
	}
	for _, statement := range store.Statements() {
		first, _, _ := strings.Cut(statement, "(")
		fmt.Println(strings.TrimSpace(first))
	}
	// Output:
	// CREATE TABLE IF NOT EXISTS "snowkey_leases_meta"
	// CREATE TABLE IF NOT EXISTS "snowkey_leases"
	// CREATE TABLE IF NOT EXISTS "snowkey_leases_past"
}
