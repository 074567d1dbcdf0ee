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
	"github.com/mattn/go-sqlite3" // and it is the driver "sqlite3"
)

// inDatabase runs load on the SQLite file at path. load does all that it does in
// one transaction. If there is no file yet, there is one afterwards only if load
// returned nil.
//
// A new database is filled under another name, in a folder of its own beside the
// place where it belongs, and gets its name when it is complete. So nobody ever
// sees half of one, there is nothing to clean up that might be somebody else's,
// and a power cut in the middle leaves a folder that can be told from a database.
func inDatabase(ctx context.Context, path string, load func(*sqlx.DB) error) (err error) {
	if path == "" {
		return errors.New("-db is empty, want the name of a file")
	}
	// Here the system says why a file cannot be written. SQLite says less.
	if file, err := os.OpenFile(path, os.O_RDWR, 0); err == nil {
		err := errors.Join(file.Close(), withFile(ctx, path, load))
		if refused := (sqlite3.Error{}); errors.As(err, &refused) && (refused.Code == sqlite3.ErrCantOpen || refused.Code == sqlite3.ErrReadonly) {
			return unusable("write beside", path, err)
		}
		return err
	} else if !errors.Is(err, fs.ErrNotExist) {
		return unusable("write to", path, err)
	}
	folder, err := os.MkdirTemp(filepath.Dir(path), ".import-*")
	if err != nil {
		return unusable("create", path, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	draft := filepath.Join(folder, "draft.db")
	if err := withFile(ctx, draft, load); err != nil {
		return err
	}
	// Link and not Rename, which would replace a file that somebody else has made
	// there in the meantime.
	if err := os.Link(draft, path); err != nil {
		return fmt.Errorf("giving the new database its name: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// unusable says what is wrong with the file that the user has named, and what to
// do. err may name another file, which the user does not know.
func unusable(verb, path string, err error) error {
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		err = system.Err
	}
	return fmt.Errorf("cannot %s %s: %w; choose a file in a folder that you may write to, with -db", verb, path, err)
}

// syncFolder makes the names in a folder survive a power cut. SQLite has done so
// for what is in the file.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil // has no such thing, and does it by itself
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// withFile opens or creates a SQLite file, runs load on it, and closes it.
func withFile(ctx context.Context, path string, load func(*sqlx.DB) error) (err error) {
	settings := url.Values{
		// SQLite ignores REFERENCES unless it is told otherwise.
		"_foreign_keys": {"on"},
		// No _journal_mode: a database that is there keeps the mode that its
		// application has chosen, and in a new one SQLite's own is the best for a
		// single large transaction. It journals the old content of pages that
		// change, and a page that is new has none; a write-ahead log writes every
		// page twice, and took a fifth more CPU time here.
		//
		// FULL is SQLite's default, said aloud: what is reported as loaded survives
		// a power cut. It costs a few waits for the disk per transaction, and there
		// is one transaction: with no journal on disk and OFF the load was no
		// faster.
		"_synchronous": {"FULL"},
		// Pages that are needed again stay in memory, up to 64 MB and not 2: a
		// fifth less CPU time, most of it where indexes are made.
		"_cache_size": {"-65536"},
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
	db, err := sqlx.ConnectContext(ctx, "sqlite3", dsn)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// One connection, because this program does one thing at a time.
	db.SetMaxOpenConns(1)
	err = load(db)
	// When ctx ends, database/sql rolls back in a goroutine that Close does not
	// wait for, and the program could be gone before its journal is. Who gets the
	// one connection knows that the rollback is over.
	return errors.Join(err, db.PingContext(context.WithoutCancel(ctx)))
}
