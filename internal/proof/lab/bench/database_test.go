package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers pgx
	_ "github.com/lib/pq"              // registers postgres
	_ "github.com/mattn/go-sqlite3"    // registers sqlite3

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A database is one by one driver, on the servers that CONTRIBUTING.md names.
type database struct {
	name    string // in the results
	driver  string
	dialect string // as GORM calls it
	address func(testing.TB) string
}

var (
	sqlite        = database{"SQLite", "sqlite3", "sqlite", nil}
	postgres      = database{"PostgreSQL", "pgx", "postgres", servertest.PostgreSQL}
	postgresByPgx = database{"PostgreSQL-pgx", "pgx", "postgres", servertest.PostgreSQL}
	postgresByPq  = database{"PostgreSQL-pq", "postgres", "postgres", servertest.PostgreSQL}
	mariaDB       = database{"MariaDB", "mysql", "mysql", servertest.MariaDB}
	mySQL         = database{"MySQL", "mysql", "mysql", servertest.MySQL}
)

// space makes a file, a schema or a database that t removes, and returns its DSN.
func (d database) space(t testing.TB) string {
	t.Helper()
	name := "bench_" + strings.ToLower(rand.Text())
	switch d.dialect {
	case "sqlite":
		return "file:" + filepath.Join(t.TempDir(), name+".db") + "?_journal_mode=WAL&_synchronous=NORMAL&_foreign_keys=on&_txlock=immediate&_busy_timeout=60000"
	case "postgres":
		address := d.address(t)
		d.execute(t, address, "CREATE SCHEMA "+name, "DROP SCHEMA "+name+" CASCADE")
		dsn, err := url.Parse(address)
		must(t, err)
		query := dsn.Query()
		query.Set("search_path", name)
		dsn.RawQuery = query.Encode()
		return dsn.String()
	}
	address := d.address(t)
	d.execute(t, address, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4", "DROP DATABASE "+name)
	config, err := mysql.ParseDSN(address)
	must(t, err)
	config.DBName, config.ParseTime = name, true
	return config.FormatDSN()
}

// execute runs create now, and remove when t ends.
func (d database) execute(t testing.TB, dsn, create, remove string) {
	t.Helper()
	db, err := sql.Open(d.driver, dsn)
	must(t, err)
	if _, err := db.ExecContext(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := db.ExecContext(context.Background(), remove); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	})
}

// printVersion prints a line for the header of the results.
func (d database) printVersion(t testing.TB, db *sql.DB) {
	t.Helper()
	query := "SELECT version()"
	if d.dialect == "sqlite" {
		query = "SELECT sqlite_version()"
	}
	var version string
	must(t, db.QueryRowContext(t.Context(), query).Scan(&version))
	version, _, _ = strings.Cut(version, " on ")
	name, _, _ := strings.Cut(d.name, "-")
	fmt.Printf("%s: %s\n", name, version)
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
