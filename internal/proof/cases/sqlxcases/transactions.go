package sqlxcases

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// What the comment of Within says of a handle that is outside of a transaction.
func (d Database) withinNone(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(100))
	err := h.InsertMany(ctx, sqlxhelper.Within(accessor{d.DB}), "many_rows", newRows(3))
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "savepoint") {
		t.Errorf("InsertMany() outside of a transaction = %v; want the savepoint's error", err)
	}
	stored := 0 // PostgreSQL refuses the call
	if d.Dialect == sqlxhelper.MySQL {
		stored = 3
	}
	d.wantCount(t, "many_rows", stored)
}

// Two transactions update two rows in opposite order. The one that the server aborts runs
// again, without a conflict.
func (d Database) deadlock(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(100))
	stock := newRows(2)
	stock[0].ID, stock[1].ID = 1, 2
	must(t, h.InsertMany(ctx, d.DB, "many_rows", stock))
	var wg sync.WaitGroup
	var both sync.WaitGroup // has its first row in the first run
	both.Add(2)
	var mu sync.Mutex
	runs := 0
	for i := range 2 {
		made := row{N: 7}
		wg.Go(func() {
			here := sync.OnceFunc(both.Done)
			defer here() // lets the other one go on if this one fails
			err := sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error {
				mu.Lock()
				runs++
				mu.Unlock()
				for _, id := range []int{1 + i, 2 - i} {
					if _, err := tx.Exec(fmt.Sprintf("UPDATE many_rows SET n = n + 10 WHERE id = %d", id)); err != nil {
						return err
					}
					here()
					both.Wait()
				}
				return h.Insert(ctx, tx, "many_rows", &made)
			})
			if err != nil {
				t.Errorf("InTx() = %v; want nil", err)
			}
		})
	}
	wg.Wait()
	// There may be more. On PostgreSQL a quick loser may lock its first row again
	// before the winner has noticed that it may. Then the two meet once more.
	if runs < 3 {
		t.Errorf("%d runs; want 3 or more, one of them for the one that lost", runs)
	}
	d.wantCount(t, "many_rows WHERE n = 7", 2)
	d.wantCount(t, "many_rows WHERE id = 1 AND n = 20", 1)
	d.wantCount(t, "many_rows WHERE id = 2 AND n = 21", 1)
}

// A deferred constraint is checked when the call ends its transaction.
func (d Database) failedCommit(t *testing.T) {
	d.tables(t, "CREATE TABLE late (id BIGINT PRIMARY KEY, other_id BIGINT REFERENCES late (id) DEFERRABLE INITIALLY DEFERRED)")
	type late struct {
		types.Model
		OtherID types.Snowflake `db:"other_id"`
	}
	rows := make([]late, 1300)
	for i := range rows {
		rows[i].OtherID = 1
	}
	h := sqlxhelper.New(NewCounter(1))
	if err := h.InsertMany(ctx, d.DB, "late", rows); err == nil {
		t.Error("InsertMany(rows that the commit refuses) = nil; want an error")
	}
	d.wantCount(t, "late", 0)
	rows[0].ID = 1 // to which all refer
	if err := h.InsertMany(ctx, d.DB, "late", rows); err != nil {
		t.Errorf("InsertMany(again, mended) = %v; want nil", err)
	}
	d.wantCount(t, "late", len(rows))
}
