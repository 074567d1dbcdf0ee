package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

// openDatabase opens or creates a SQLite file. GORM and sqlx share the pool that
// it returns: both are layers over database/sql.
func openDatabase(ctx context.Context, path string) (*sql.DB, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err() // and no new file
	}
	if path == "" {
		return nil, errors.New("-db is empty, want the name of a file")
	}
	// The system says why a file cannot be written. SQLite says less.
	if path != ":memory:" {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, csvload.Unusable("write to", path, err)
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	db, err := csvload.OpenDatabase(ctx, path, url.Values{
		// With a write-ahead log others can read the file while we write, and a
		// crash leaves whole transactions. With NORMAL a power cut may take the last
		// of them, but never a part of one.
		"_journal_mode": {"WAL"},
		"_synchronous":  {"NORMAL"},
	})
	return db, csvload.BesideFile(path, err)
}
