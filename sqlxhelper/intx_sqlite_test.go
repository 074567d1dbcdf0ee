package sqlxhelper

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/types"
)

// openTwice opens a database by two pools, whose connections wait for no lock.
func openTwice(t *testing.T, parameters string) (one, other *sqlx.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.db")
	open := func() *sqlx.DB {
		db, err := sqlx.Open("sqlite3", "file:"+path+"?_busy_timeout=0&_synchronous=OFF&"+parameters)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
		return db
	}
	one, other = open(), open()
	exec(t, one, "CREATE TABLE rows (id INTEGER PRIMARY KEY)")
	return one, other
}

func exec(t *testing.T, db sqlx.Execer, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

// releasing is a pool that ends another transaction when it has failed to begin
// one.
type releasing struct {
	*sqlx.DB
	held   *sqlx.Tx
	failed int
}

func (r *releasing) BeginTxx(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	tx, err := r.DB.BeginTxx(ctx, opts)
	if err != nil {
		if r.failed++; r.failed == 2 {
			err := r.held.Rollback()
			if err != nil {
				return nil, err
			}
		}
	}
	return tx, err
}

func TestBusyBeginIsTriedAgainOnSQLite(t *testing.T) {
	one, other := openTwice(t, "_journal_mode=WAL&_txlock=immediate")
	held, err := other.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	db := &releasing{DB: one, held: held}
	err = (&attempts{db: db, fn: func(tx *sqlx.Tx) error {
		return New(nil).Insert(t.Context(), tx, "rows", &types.Model{ID: 7})
	}}).run(t.Context())
	if err != nil || db.failed != 2 {
		t.Errorf("InTx() = %v after %d beginnings that failed; want nil after 2", err, db.failed)
	}
	wantKeys(t, one, 7)
}

// In WAL mode a transaction that has read cannot write once another one has
// committed.
func TestBusySnapshotIsRunAgainOnSQLite(t *testing.T) {
	one, other := openTwice(t, "_journal_mode=WAL")
	runs := 0
	err := InTx(t.Context(), one, nil, func(tx *sqlx.Tx) error {
		runs++
		var n int
		if err := tx.Get(&n, "SELECT COUNT(*) FROM rows"); err != nil {
			return err
		}
		if runs == 1 {
			exec(t, other, "INSERT INTO rows VALUES (1)")
		}
		return New(nil).Insert(t.Context(), tx, "rows", &types.Model{ID: 7})
	})
	if err != nil || runs != 2 {
		t.Errorf("InTx() = %v after %d runs; want nil after 2", err, runs)
	}
	wantKeys(t, one, 1, 7)
}

// With a rollback journal a reader keeps a writer from committing. SQLite leaves
// the transaction open then, and the driver ends it.
func TestBusyCommitIsRunAgainOnSQLite(t *testing.T) {
	one, other := openTwice(t, "_journal_mode=DELETE")
	one.SetMaxOpenConns(1) // the same connection again
	exec(t, other, "INSERT INTO rows VALUES (1)")
	reader, err := other.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.Get(&n, "SELECT COUNT(*) FROM rows"); err != nil {
		t.Fatal(err)
	}
	runs := 0
	err = InTx(t.Context(), one, nil, func(tx *sqlx.Tx) error {
		if runs++; runs == 2 {
			if err := reader.Rollback(); err != nil {
				return err
			}
		}
		return New(nil).Insert(t.Context(), tx, "rows", &types.Model{ID: 7})
	})
	if err != nil || runs != 2 {
		t.Errorf("InTx() = %v after %d runs; want nil after 2", err, runs)
	}
	wantKeys(t, one, 1, 7)
}

// wantKeys fails the test if the table does not hold exactly these.
func wantKeys(t *testing.T, db *sqlx.DB, keys ...int64) {
	t.Helper()
	var got []int64
	if err := db.Select(&got, "SELECT id FROM rows ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, keys) {
		t.Errorf("keys = %v; want %v", got, keys)
	}
}
