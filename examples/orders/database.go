package main

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

// openDatabase opens or creates a SQLite file. GORM and sqlx share the pool that
// it returns: both are layers over database/sql.
func openDatabase(ctx context.Context, path string) (*sql.DB, error) {
	if path == "" {
		return nil, errors.New("-db is empty, want the name of a file")
	}
	created, err := createFile(path)
	if err != nil {
		return nil, err
	}
	db, err := csvload.OpenDatabase(ctx, path, url.Values{
		// With a write-ahead log others can read the file while we write, and a
		// crash leaves whole transactions. With NORMAL a power cut may take the last
		// of them, but never a part of one.
		"_journal_mode": {"WAL"},
		"_synchronous":  {"NORMAL"},
	})
	if err != nil && created {
		err = errors.Join(err, os.Remove(path))
	}
	return db, csvload.BesideFile(path, err)
}

// createFile creates the file if it is not there. The system says why a file cannot
// be written. SQLite says less.
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
	if err != nil {
		return false, csvload.Unusable(verb, path, err)
	}
	return verb == "create", file.Close()
}
