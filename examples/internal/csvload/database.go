package csvload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"

	"github.com/mattn/go-sqlite3" // and it is the driver "sqlite3"
)

// OpenDatabase opens or creates a SQLite file. The settings of the driver are
// those that both programs need, and those of the caller.
func OpenDatabase(ctx context.Context, path string, settings url.Values) (*sql.DB, error) {
	all := url.Values{
		// Without it SQLite ignores REFERENCES.
		"_foreign_keys": {"on"},
		// There is one writer at a time. We wait five seconds for another
		// process that holds the lock.
		"_busy_timeout": {"5000"},
		// BEGIN takes the write lock. Without it a transaction that reads first
		// and writes later is refused at once, and does not wait, if somebody
		// else wrote in between.
		"_txlock": {"immediate"},
	}
	maps.Copy(all, settings)
	// As a URL, so that a file name may contain ? or %.
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+all.Encode())
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	// One connection, because the programs do one thing at a time. No transaction
	// waits for another of ours, and ":memory:", which is one database per
	// connection, is one database.
	db.SetMaxOpenConns(1)
	if err := db.PingContext(ctx); err != nil { // sql.Open does not touch the file
		return nil, fmt.Errorf("opening %s: %w", path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// Unusable returns an error that says what to do about the file at path. It keeps
// the reason of err, but no other file name that the user does not know.
func Unusable(verb, path string, err error) error {
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		err = system.Err
	}
	return fmt.Errorf("cannot %s %s: %w; choose a file in a folder that you may write to, with -db", verb, path, err)
}

// BesideFile returns err, but Unusable if SQLite could not write its journal
// beside the file at path.
func BesideFile(path string, err error) error {
	if refused := (sqlite3.Error{}); errors.As(err, &refused) && (refused.Code == sqlite3.ErrCantOpen || refused.Code == sqlite3.ErrReadonly) {
		return Unusable("write beside", path, err)
	}
	return err
}
