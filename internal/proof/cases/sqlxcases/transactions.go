package sqlxcases

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// conflict is an error that makes InTx run again on any database.
type conflict struct{}

func (conflict) Error() string    { return "could not serialize access" }
func (conflict) SQLState() string { return "40001" }

func (d Database) runsAgain(t *testing.T) {
	d.tables(t, orderTables...)
	h := sqlxhelper.New(NewCounter(0))
	orders := newOrders(4) // outside of the function: the same rows in every run
	var first []order
	runs := 0
	err := sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error {
		runs++
		if err := h.InsertGraph(ctx, tx, "orders", orders); err != nil {
			return err
		}
		if runs == 1 {
			first = append(first, orders...)
			return fmt.Errorf("mine: %w", conflict{})
		}
		return nil
	})
	if err != nil || runs != 2 {
		t.Errorf("InTx() = %v after %d runs; want nil after 2", err, runs)
	}
	for i := range orders {
		if orders[i].ID != first[i].ID {
			t.Errorf("key of order %d = %d in the first run, %d in the second", i, first[i].ID, orders[i].ID)
		}
		d.wantCount(t, fmt.Sprintf("orders WHERE id = %d", orders[i].ID), 1)
	}
	d.wantCount(t, "orders", 4)
	d.wantCount(t, "order_items", 12)
}

// An accessor has the methods of queries alone, as the handle of a repository.
type accessor struct{ sqlx.ExtContext }

func (d Database) within(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(100))
	tx := d.begin(t)
	if err := h.Insert(ctx, sqlxhelper.Within(accessor{tx}), "many_rows", &newRows(1)[0]); err != nil {
		t.Errorf("Insert() = %v", err)
	}
	if err := h.InsertMany(ctx, sqlxhelper.Within(accessor{tx}), "many_rows", newRows(3)); err != nil {
		t.Errorf("InsertMany() = %v", err)
	}
	var n int
	if err := tx.Get(&n, "SELECT COUNT(*) FROM many_rows"); err != nil || n != 4 {
		t.Errorf("the transaction sees %d rows, %v; want 4", n, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	d.wantCount(t, "many_rows", 0)
}

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
	if err := h.InsertMany(ctx, d.DB, "many_rows", stock); err != nil {
		t.Fatal(err)
	}
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

// The row that a transaction has read is changed before it writes. It is run again,
// and reads what the other one has written.
func (d Database) serialization(t *testing.T) {
	d.tables(t, rowsTable)
	h := sqlxhelper.New(NewCounter(100))
	d.exec(t, "INSERT INTO many_rows (id, n) VALUES (1, 10)")
	made := row{}
	runs := 0
	err := sqlxhelper.InTx(ctx, d.DB, &sql.TxOptions{Isolation: sql.LevelSerializable}, func(tx *sqlx.Tx) error {
		runs++
		var n int
		if err := tx.Get(&n, "SELECT n FROM many_rows WHERE id = 1"); err != nil {
			return err
		}
		if runs == 1 {
			other := sqlxhelper.InTx(ctx, d.DB, &sql.TxOptions{Isolation: sql.LevelSerializable}, func(tx *sqlx.Tx) error {
				_, err := tx.Exec("UPDATE many_rows SET n = n + 1 WHERE id = 1")
				return err
			})
			if other != nil {
				return errors.Join(errors.New("the other transaction"), other)
			}
		}
		made.N = n
		if err := h.Insert(ctx, tx, "many_rows", &made); err != nil {
			return err
		}
		_, err := tx.Exec(fmt.Sprintf("UPDATE many_rows SET n = %d WHERE id = 1", n*2))
		return err
	})
	if err != nil || runs != 2 {
		t.Errorf("InTx() = %v after %d runs; want nil after 2", err, runs)
	}
	d.wantCount(t, "many_rows WHERE id = 1 AND n = 22", 1)
	d.wantCount(t, "many_rows WHERE id = 101 AND n = 11", 1)
	d.wantCount(t, "many_rows", 2)
}
