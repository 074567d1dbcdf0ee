package sqlxhelper_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/sqlxhelper"
)

// An accessor is the handle of a repository: the transaction of its context or else the pool, with
// the methods that queries need and no other.
type accessor struct {
	sqlx.ExtContext
	sent *[]string
}

func (a accessor) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	*a.sent = append(*a.sent, strings.Fields(query)[0])
	return a.ExtContext.ExecContext(ctx, query, args...)
}

func TestWithinSendsEverythingThroughTheHandle(t *testing.T) {
	db := openSQLite(t)
	db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE)")
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	var sent []string
	at := sqlxhelper.Within(accessor{tx, &sent})
	h := newHelper(sqlxhelper.SQLite)
	rows := make([]pair, 20000) // of which a handle with PrepareContext would prepare a statement
	for i := range rows {
		rows[i].N = i
	}
	if err := h.Insert(ctx, at, "t", &pair{N: -1}); err != nil {
		t.Errorf("Insert() = %v", err)
	}
	if err := h.InsertMany(ctx, at, "t", rows); err != nil {
		t.Errorf("InsertMany() = %v", err)
	}
	found := pair{N: 7}
	if err := h.With(sqlxhelper.OnConflictDoNothing("n")).Insert(ctx, at, "t", &found); err != nil || found.ID != rows[7].ID {
		t.Errorf("an upsert = key %d, %v; want %d", found.ID, err, rows[7].ID)
	}
	if err := h.Insert(ctx, at, "t", &pair{N: 7}); !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
		t.Errorf("Insert(duplicate) = %v; want ErrDuplicateKey", err)
	}
	if n, err := sqlxhelper.InsertSeq(ctx, h, at, "t", func(yield func(pair, error) bool) { yield(pair{N: -2}, nil) }); n != 1 || err != nil {
		t.Errorf("InsertSeq() = %d, %v; want 1", n, err)
	}
	var n int
	if err := tx.Get(&n, "SELECT count(*) FROM t"); err != nil || n != 20002 {
		t.Errorf("%d rows are in the transaction, %v; want 20002", n, err)
	}
	if !slices.Contains(sent, "INSERT") || !slices.Contains(sent, "SAVEPOINT") || slices.Contains(sent, "BEGIN") {
		t.Errorf("the handle has sent %q; want the statements of every call, and no BEGIN", slices.Compact(slices.Sorted(slices.Values(sent))))
	}
}

func TestCheckSaysWhichHandlesCallsRefuse(t *testing.T) {
	db := openSQLite(t)
	h := newHelper(sqlxhelper.SQLite)
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	for name, good := range map[string]sqlxhelper.DB{"pool": db, "transaction": tx, "within": sqlxhelper.Within(accessor{tx, nil})} {
		if err := h.Check(good); err != nil {
			t.Errorf("Check(%s) = %v; want nil", name, err)
		}
	}
	var none *sqlx.Tx
	for name, bad := range map[string]sqlxhelper.DB{
		"nil": nil, "nil transaction": none, "neither": forward{db}, "within nil": sqlxhelper.Within(nil), "within nil transaction": sqlxhelper.Within(none),
		"within a pool": sqlxhelper.Within(db),
	} {
		if err := h.Check(bad); !errors.Is(err, sqlxhelper.ErrDB) {
			t.Errorf("Check(%s) = %v; want ErrDB", name, err)
		}
	}
	if err := h.Check(forward{db}); !strings.Contains(err.Error(), "sqlxhelper.Within") || strings.Contains(err.Error(), "Unwrap") {
		t.Errorf("Check(neither) = %v; want Within as the way, which passes by no lock of the program", err)
	}
}
