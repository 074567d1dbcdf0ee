package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers pgx
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"           // registers postgres
	_ "github.com/mattn/go-sqlite3" // registers sqlite3
)

// A family is a kind of database.
type family int

const (
	sqlite family = iota + 1
	postgres
	mariaDB
)

// A target is a database by one driver.
type target struct {
	name   string // in the results
	title  string // on the page
	family family
	driver string // of database/sql
}

var targets = []target{
	{"SQLite", "SQLite, mattn", sqlite, "sqlite3"},
	{"PostgreSQL-pgx", "PostgreSQL, pgx", postgres, "pgx"},
	{"PostgreSQL-pq", "PostgreSQL, lib/pq", postgres, "postgres"},
	{"MariaDB", "MariaDB", mariaDB, "mysql"},
}

// addresses are the DSNs of the servers.
type addresses struct{ postgres, mariaDB string }

// defaultAddresses follows CONTRIBUTING.md. Only tests can ask package servertest, and
// a test compares the two.
func defaultAddresses() addresses {
	a := addresses{os.Getenv("SNOWKEY_POSTGRES_DSN"), os.Getenv("SNOWKEY_MARIADB_DSN")}
	if a.postgres == "" {
		a.postgres = "postgres://root@127.0.0.1:5432/test?sslmode=disable"
	}
	if a.mariaDB == "" {
		a.mariaDB = "root@tcp(127.0.0.1:3306)/test?parseTime=true"
	}
	return a
}

// A place is where the tables of one run of the program are: a folder, a schema
// or a database of its own.
type place struct {
	target
	folder string // of SQLite's files
	files  int
	dsn    string // of the servers
	close  func(context.Context) error
}

// newPlace makes the place of a target. Its close removes all that was made.
func newPlace(ctx context.Context, t target, where addresses) (*place, error) {
	p := &place{target: t}
	name := "sqlxbench_" + strings.ToLower(rand.Text())
	switch t.family {
	case sqlite:
		dir, err := os.MkdirTemp("", "sqlxbench")
		if err != nil {
			return nil, err
		}
		p.folder, p.close = dir, func(context.Context) error { return os.RemoveAll(dir) }
		return p, nil
	case postgres:
		u, err := url.Parse(where.postgres)
		if err != nil {
			return nil, errors.New("the URL of PostgreSQL cannot be parsed") // the error of url repeats it, password included
		}
		query := u.Query()
		query.Set("search_path", name)
		u.RawQuery = query.Encode()
		p.dsn = u.String()
		return p, p.make(ctx, where.postgres, "CREATE SCHEMA "+name, "DROP SCHEMA "+name+" CASCADE")
	default:
		config, err := mysql.ParseDSN(where.mariaDB)
		if err != nil {
			return nil, errors.New("the DSN of MariaDB cannot be parsed")
		}
		config.DBName, config.ParseTime = name, true
		p.dsn = config.FormatDSN()
		return p, p.makeMariaDB(ctx, where.mariaDB, name)
	}
}

// make creates the place on a server, and sets close so that it is removed.
func (p *place) make(ctx context.Context, dsn, create string, remove ...string) error {
	admin, err := sql.Open(p.driver, dsn)
	if err != nil {
		return err
	}
	p.close = func(ctx context.Context) error {
		var errs []error
		for _, text := range remove {
			_, err := admin.ExecContext(ctx, text)
			errs = append(errs, err)
		}
		return errors.Join(append(errs, admin.Close())...)
	}
	if _, err := admin.ExecContext(ctx, create); err != nil {
		_ = admin.Close()
		return fmt.Errorf("%s: %w", p.title, err)
	}
	return nil
}

// makeMariaDB also allows LOAD DATA LOCAL until the place is closed, if it is not
// allowed.
func (p *place) makeMariaDB(ctx context.Context, dsn, name string) error {
	admin, err := sql.Open(p.driver, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = admin.Close() }() // nothing is open on it
	remove := []string{"DROP DATABASE " + name}
	var allowed bool
	if err := admin.QueryRowContext(ctx, "SELECT @@GLOBAL.local_infile").Scan(&allowed); err != nil {
		return fmt.Errorf("%s: %w", p.title, err)
	}
	if !allowed {
		if _, err := admin.ExecContext(ctx, "SET GLOBAL local_infile = ON"); err != nil {
			return fmt.Errorf("%s does not allow LOAD DATA LOCAL, nor to allow it: %w", p.title, err)
		}
		remove = append(remove, "SET GLOBAL local_infile = OFF")
	}
	return p.make(ctx, dsn, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4", remove...)
}

// open returns a pool of one open connection, to empty tables. In a graph the
// items refer to orders; else they have the column alone.
func (p *place) open(ctx context.Context, graph bool) (*sqlx.DB, string, error) {
	dsn := p.dsn
	if p.family == sqlite {
		p.files++
		dsn = fmt.Sprintf("file:%s?_journal_mode=WAL&_synchronous=NORMAL&_foreign_keys=on&_txlock=immediate",
			filepath.Join(p.folder, fmt.Sprintf("%d.db", p.files)))
	}
	db, err := sqlx.ConnectContext(ctx, p.driver, dsn)
	if err != nil {
		return nil, "", err
	}
	// One connection, so that its server process is that of the whole run. A
	// variant that asks for a second one inside its transaction hangs here.
	db.SetMaxOpenConns(1)
	for _, text := range p.ddl(graph) {
		if _, err := db.ExecContext(ctx, text); err != nil {
			_ = db.Close()
			return nil, "", fmt.Errorf("%s: %s: %w", p.title, text, err)
		}
	}
	return db, dsn, nil
}

// remove takes SQLite's files of the last open away.
func (p *place) remove() error {
	if p.family != sqlite {
		return nil
	}
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Remove(filepath.Join(p.folder, fmt.Sprintf("%d.db%s", p.files, suffix)))
		if !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// ddl returns what makes the tables anew.
func (p *place) ddl(graph bool) []string {
	key, moment := "BIGINT PRIMARY KEY", "TIMESTAMP"
	switch p.family {
	case sqlite:
		key = "INTEGER PRIMARY KEY" // the one spelling that makes it the rowid
	case postgres:
		moment = "TIMESTAMPTZ"
	case mariaDB:
		moment = "DATETIME(6)"
	}
	reference := ""
	if graph {
		reference = ", FOREIGN KEY (order_id) REFERENCES orders (id)"
	}
	return []string{
		"DROP TABLE IF EXISTS order_items",
		"DROP TABLE IF EXISTS orders",
		"CREATE TABLE orders (id " + key + ", number VARCHAR(40) NOT NULL, total BIGINT NOT NULL, created_at " + moment + " NOT NULL)",
		"CREATE TABLE order_items (id " + key + ", order_id BIGINT NOT NULL, sku VARCHAR(40) NOT NULL, quantity INTEGER NOT NULL, " +
			"price BIGINT NOT NULL, created_at " + moment + " NOT NULL" + reference + ")",
		"CREATE INDEX order_items_order ON order_items (order_id)",
	}
}

// version asks the database what it is.
func (p *place) version(ctx context.Context) (version string, err error) {
	db, _, err := p.open(ctx, false)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close(), p.remove()) }()
	query := "SELECT version()"
	if p.family == sqlite {
		query = "SELECT sqlite_version()"
	}
	if err := db.QueryRowContext(ctx, query).Scan(&version); err != nil {
		return "", fmt.Errorf("%s: %w", p.title, err)
	}
	version, _, _ = strings.Cut(version, " on ")
	return version, nil
}
