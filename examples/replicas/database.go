package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/types"
)

// A place says where the rows and the leases are: in SQLite files, or on a
// PostgreSQL server.
type place struct {
	File     string `json:"file,omitempty"`
	Postgres string `json:"postgres,omitempty"` // may hold a password: goes through pipes only
}

const (
	eventsTable = "replicas_events"
	leasesTable = "replicas_leases"
)

// schema creates the table of the rows. On SQLite, INTEGER PRIMARY KEY, exactly
// these words, makes the key the address of the row itself. Nowhere does the
// database make keys.
const schema = `CREATE TABLE IF NOT EXISTS ` + eventsTable + ` (
	id      %s PRIMARY KEY,
	run     TEXT NOT NULL,
	replica TEXT NOT NULL,
	pid     BIGINT NOT NULL
)`

// A database is one process's way to the place.
type database struct {
	rows *sql.DB

	// leases is a pool of its own, and on SQLite a file of its own: the renewals
	// must not wait for the program's transactions.
	leases  *sql.DB
	dialect sqlstore.Dialect
}

// writePatience is how long a batch may take, mostly waiting for other writers.
const writePatience = 30 * time.Second

// openDatabase opens the pools and touches neither server nor file.
func openDatabase(p place) (*database, error) {
	if p.Postgres == "" {
		rows, err := openSQLite(p.File, writePatience)
		if err != nil {
			return nil, err
		}
		leases, err := openSQLite(p.leasesFile(), 0)
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		return &database{rows: rows, leases: leases, dialect: sqlstore.SQLite}, nil
	}
	config, err := pgx.ParseConfig(p.Postgres)
	if err != nil {
		// What pgx says repeats the text, and is not sure to find every password.
		return nil, errors.New("-postgres is neither a URL like postgres://user@host:5432/database nor a line like host=… user=… dbname=… (its value is not shown, it may hold a password)")
	}
	d := &database{rows: stdlib.OpenDB(*config), leases: stdlib.OpenDB(*config), dialect: sqlstore.PostgreSQL}
	d.rows.SetMaxOpenConns(1) // a replica writes one batch after the other
	d.leases.SetMaxOpenConns(1)
	return d, nil
}

// leasesFile is the SQLite file of the leases.
func (p place) leasesFile() string { return p.File + "-leases" }

// createFiles creates the SQLite files that are not there. Here the system says why a
// file cannot be written. SQLite says less.
func (p place) createFiles() error {
	if p.Postgres != "" {
		return nil
	}
	for _, name := range []string{p.File, p.leasesFile()} {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		if system := (*fs.PathError)(nil); errors.As(err, &system) {
			return fmt.Errorf("cannot create or write to %s: %w; choose a file in a folder that you may write to, with -db", name, system.Err)
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	return nil
}

// openSQLite opens a file. patience is how long a statement waits while another
// process writes; sqllease needs none, it does its own waiting.
func openSQLite(path string, patience time.Duration) (*sql.DB, error) {
	settings := url.Values{
		"_journal_mode": {"WAL"},
		"_synchronous":  {"NORMAL"}, // sqllease raises it for its own transactions
		"_busy_timeout": {fmt.Sprint(patience.Milliseconds())},
		"_txlock":       {"immediate"},
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + settings.Encode()
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func (d *database) close() error { return errors.Join(d.rows.Close(), d.leases.Close()) }

// store returns the store of the leases.
func (d *database) store() (*sqllease.Store, error) {
	return sqllease.New(d.leases, sqlstore.Config{Dialect: d.dialect, Table: leasesTable})
}

// create creates the tables that are not there.
func (d *database) create(ctx context.Context) error {
	key := "BIGINT"
	if d.dialect == sqlstore.SQLite {
		key = "INTEGER"
	}
	if _, err := d.rows.ExecContext(ctx, fmt.Sprintf(schema, key)); err != nil {
		return fmt.Errorf("creating the table %s: %w", eventsTable, err)
	}
	store, err := d.store()
	if err != nil {
		return err
	}
	return store.CreateTables(ctx)
}

// insert writes one row per ID, all or none.
func (d *database) insert(ctx context.Context, from author, ids []types.Snowflake) (err error) {
	tx, err := d.rows.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	statement, err := tx.PrepareContext(ctx, "INSERT INTO "+eventsTable+" (id, run, replica, pid) VALUES ($1, $2, $3, $4)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()
	for _, id := range ids {
		if _, err := statement.ExecContext(ctx, id, from.Run, from.Replica, from.PID); err != nil {
			return fmt.Errorf("row %s: %w", id, err)
		}
	}
	return tx.Commit()
}

// An author is the process that has written a row.
type author struct {
	Run     string // of the whole program: the database may have rows of earlier ones
	Replica string
	PID     int
}

// A row is what the database holds.
type row struct {
	id      types.Snowflake
	replica string
	pid     int
}

// read returns the rows of a run, in the order of the IDs.
func (d *database) read(ctx context.Context, run string) (all []row, err error) {
	rows, err := d.rows.QueryContext(ctx, "SELECT id, replica, pid FROM "+eventsTable+" WHERE run = $1 ORDER BY id", run)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.id, &r.replica, &r.pid); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// writable reports whether the SQLite files can be locked soon.
func (p place) writable(ctx context.Context) bool {
	for _, file := range []string{p.File, p.leasesFile()} {
		db, err := openSQLite(file, time.Second)
		if err != nil {
			return false
		}
		tx, err := db.BeginTx(ctx, nil) // takes the write lock, see _txlock
		if err == nil {
			err = tx.Rollback()
		}
		if errors.Join(err, db.Close()) != nil {
			return false
		}
	}
	return true
}
