package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/examples/internal/csvload"
)

// inDatabase runs load, which is one transaction, on the SQLite file at path. It
// creates the file only if load returns nil.
//
// A new database is filled in a folder of its own, beside the place where it
// belongs, and gets its name when it is complete. No program sees half of one, and a
// power cut leaves a folder that is not taken for a database.
func inDatabase(ctx context.Context, path string, load func(*sqlx.DB) error) (err error) {
	if path == "" {
		return errors.New("-db is empty, want the name of a file")
	}
	// The system says why a file cannot be written. SQLite says less.
	if file, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		return csvload.BesideFile(path, errors.Join(file.Close(), withFile(ctx, path, load)))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return csvload.Unusable("write to", path, err)
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".import-*")
	if err != nil {
		return csvload.Unusable("create", path, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	draft := filepath.Join(folder, "draft.db")
	if err := withFile(ctx, draft, load); err != nil {
		return err
	}
	// Link and not Rename, which would replace a file made there in the meantime.
	if err := os.Link(draft, path); err != nil {
		return fmt.Errorf("giving the new database its name: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder survive a power cut. SQLite does so for
// the content of a file.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil // does it by itself
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// withFile opens or creates a SQLite file, runs load on it, and closes it.
func withFile(ctx context.Context, path string, load func(*sqlx.DB) error) (err error) {
	conn, err := csvload.OpenDatabase(ctx, path, url.Values{
		// No _journal_mode: a database that is there keeps the mode that its
		// application has chosen. For a new one SQLite's default is the best for a
		// single large transaction. It journals the old content of pages, and a new
		// page has none. A write-ahead log writes every page twice, and took a fifth
		// more CPU time here.
		//
		// FULL is SQLite's default: what is reported as loaded survives a power cut.
		// It costs a few waits for the disk per transaction, and there is one
		// transaction. Without a journal and with OFF the load was no faster.
		"_synchronous": {"FULL"},
		// Pages that are needed again stay in memory, up to 64 MB and not 2. It
		// takes a fifth less CPU time, mostly where indexes are made.
		"_cache_size": {"-65536"},
	})
	if err != nil {
		return err
	}
	db := sqlx.NewDb(conn, "sqlite3")
	defer func() { err = errors.Join(err, db.Close()) }()
	err = load(db)
	// When ctx ends, database/sql rolls back in a goroutine that Close does not
	// wait for. The process could end before SQLite deletes the journal. The Ping
	// gets the only connection after the rollback.
	return errors.Join(err, db.PingContext(context.WithoutCancel(ctx)))
}
