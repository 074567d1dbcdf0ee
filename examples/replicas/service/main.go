// Command service is the program of docs/workers.md: a service of several processes, each with
// a worker number of its own, that loses no request while its processes are replaced one after
// the other. Its table of leases is on PostgreSQL, at DATABASE_URL.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
)

func main() {
	if err := start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context) (err error) {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.PostgreSQL})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":8080")
	if err != nil {
		return err
	}
	return run(ctx, listener, store, 10*time.Second)
}
