package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"github.com/mattn/go-sqlite3" // and it is the driver "sqlite3"
)

// openDatabase opens or creates a SQLite file. GORM and sqlx share the one pool
// that it returns: both are layers over database/sql.
func openDatabase(ctx context.Context, path string) (*sql.DB, error) {
	if path == "" {
		return nil, errors.New("-db is empty, want the name of a file")
	}
	created, err := createFile(path)
	if err != nil {
		return nil, err
	}
	settings := url.Values{
		// SQLite ignores REFERENCES unless it is told otherwise.
		"_foreign_keys": {"on"},
		// With a write-ahead log others can read the file while we write, and
		// a crash leaves whole transactions only. NORMAL is made for it: a power
		// cut may take the last of them, never a part of one.
		"_journal_mode": {"WAL"},
		"_synchronous":  {"NORMAL"},
		// There is one writer at a time. Another process that holds the lock
		// gets five seconds to finish before we give up.
		"_busy_timeout": {"5000"},
		// Take the write lock at BEGIN. A transaction that starts as a reader
		// and then writes is refused at once, without that waiting time, if
		// somebody else wrote in between.
		"_txlock": {"immediate"},
	}
	// As a URL, so that a file name with ? or % in it is still a file name.
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + settings.Encode()
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	// One connection, because this program does one thing at a time: no
	// transaction of ours can wait for another of ours, and ":memory:", which
	// is a database per connection, is one database.
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil { // sql.Open does not touch the file
		err = errors.Join(err, db.Close())
		if created {
			err = errors.Join(err, os.Remove(path))
		}
		if refused := (sqlite3.Error{}); errors.As(err, &refused) && (refused.Code == sqlite3.ErrCantOpen || refused.Code == sqlite3.ErrReadonly) {
			return nil, unusable("write beside", path, err)
		}
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return db, nil
}

// unusable says what is wrong with the file that the user has named, and what to do.
func unusable(verb, path string, err error) error {
	return fmt.Errorf("cannot %s %s: %w; choose a file in a folder that you may write to, with -db", verb, path, err)
}

// createFile creates the file if it is not there. Here the system says why a file
// cannot be written. SQLite says less.
func createFile(path string) (created bool, err error) {
	if path == ":memory:" {
		return false, nil
	}
	verb := "create"
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		verb = "write to"
		file, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		return false, unusable(verb, path, system.Err)
	}
	return verb == "create", file.Close()
}
