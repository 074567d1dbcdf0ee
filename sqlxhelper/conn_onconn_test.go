package sqlxhelper_test

import (
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/sqlxhelper"
)

func TestConnectionIsAPoolOfOne(t *testing.T) {
	db := openSQLite(t)
	db.SetMaxOpenConns(1) // no call may want a second one
	c, err := db.Connx(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	at := sqlxhelper.OnConn(c, db.DriverName())
	if _, err := at.ExecContext(ctx, "CREATE TEMP TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE)"); err != nil {
		t.Fatal(err)
	}
	h := newHelper(sqlxhelper.SQLite)
	rows := make([]pair, 20000) // several statements
	for i := range rows {
		rows[i].N = i
	}
	if err := h.InsertMany(ctx, at, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v", err)
	}
	if err := h.Insert(ctx, at, "t", &pair{N: 7}); !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
		t.Errorf("Insert(duplicate) = %v; want ErrDuplicateKey", err)
	}
	found := pair{N: 7}
	if err := h.With(sqlxhelper.OnConflictDoNothing("n")).Insert(ctx, at, "t", &found); err != nil || found.ID != rows[7].ID {
		t.Errorf("an upsert = key %d, %v; want %d", found.ID, err, rows[7].ID)
	}
	if n, err := sqlxhelper.InsertSeq(ctx, h, at, "t", func(yield func(pair, error) bool) { yield(pair{N: -1}, nil) }); n != 1 || err != nil {
		t.Errorf("InsertSeq() = %d, %v; want 1", n, err)
	}
	if got := stored(t, at); got != 20001 {
		t.Errorf("%d rows are stored; want 20001", got)
	}
	query, args, err := at.BindNamed("SELECT :n", map[string]any{"n": 1})
	if err != nil || query != "SELECT ?" || len(args) != 1 {
		t.Errorf("BindNamed() = %q, %v, %v", query, args, err)
	}
}

func TestNilConnectionIsAnError(t *testing.T) {
	var c *sqlx.Conn
	if err := newHelper(sqlxhelper.SQLite).Insert(ctx, sqlxhelper.OnConn(c, "sqlite3"), "t", &pair{}); !errors.Is(err, sqlxhelper.ErrDB) {
		t.Errorf("Insert(nil connection) = %v; want ErrDB", err)
	}
}
