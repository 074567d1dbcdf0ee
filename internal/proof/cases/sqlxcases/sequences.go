package sqlxcases

import (
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// A raw BEGIN is no transaction to database/sql. What it has done must neither be
// committed by a call nor be lost by the refusal.
func (d Database) connectionInTransaction(t *testing.T) {
	d.tables(t, rowsTable)
	c, err := d.DB.Connx(ctx)
	must(t, err)
	defer func() { _ = c.Close() }()
	h, at := sqlxhelper.New(NewCounter(0)), sqlxhelper.OnConn(c, d.DB.DriverName())
	exec := func(text string) {
		t.Helper()
		if _, err := c.ExecContext(ctx, text); err != nil {
			t.Fatalf("Exec(%q) = %v", text, err)
		}
	}
	for name, call := range map[string]func() error{
		"InsertMany": func() error { return h.InsertMany(ctx, at, "many_rows", newRows(3000)) },
		"InsertSeq": func() error {
			_, err := sqlxhelper.InsertSeq(ctx, h, at, "many_rows", func(yield func(row, error) bool) { yield(row{}, nil) })
			return err
		},
		"an upsert": func() error {
			return h.With(sqlxhelper.OnConflictDoNothing("id")).Insert(ctx, at, "many_rows", &row{})
		},
	} {
		for end, want := range map[string]int{"ROLLBACK": 0, "COMMIT": 1} {
			exec("BEGIN")
			exec("INSERT INTO many_rows (id, n) VALUES (-1, 1)")
			if err := call(); !errors.Is(err, sqlxhelper.ErrDB) {
				t.Errorf("%s after BEGIN = %v; want ErrDB", name, err)
			}
			exec(end)
			d.wantCount(t, "many_rows", want)
			d.exec(t, "DELETE FROM many_rows")
		}
		if err := call(); err != nil {
			t.Errorf("%s after the transaction = %v; want nil", name, err)
		}
		d.exec(t, "DELETE FROM many_rows")
	}
}

// The rows come from a query of the transaction that they go to. That works on SQLite
// alone, whose connections take several statements.
func (d Database) sequenceOfItsTransaction(t *testing.T) {
	d.tables(t, rowsTable, "CREATE TABLE other_rows (n BIGINT NOT NULL)")
	for range 4 { // more than one part, and more than drivers read ahead
		d.exec(t, "INSERT INTO other_rows (n) VALUES (1)"+strings.Repeat(", (1)", 1999))
	}
	h := sqlxhelper.New(NewCounter(0))
	insert := func(db sqlxhelper.DB) error {
		_, err := sqlxhelper.InsertSeq(ctx, h, db, "many_rows", func(yield func(row, error) bool) {
			rows, err := db.QueryxContext(ctx, "SELECT n FROM other_rows")
			if err != nil {
				yield(row{}, err)
				return
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				var r row
				if err := rows.Scan(&r.N); !yield(r, err) {
					return
				}
			}
			if err := rows.Err(); err != nil {
				yield(row{}, err)
			}
		})
		return err
	}
	check := func(err error) {
		t.Helper()
		if d.Dialect == sqlxhelper.SQLite {
			if err != nil {
				t.Errorf("InsertSeq(rows of its transaction) = %v; want nil", err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "unread rows") {
			t.Errorf("InsertSeq(rows of its transaction) = %v; want an error with a hint", err)
		}
	}
	tx := d.begin(t)
	check(insert(tx))
	_ = tx.Rollback() // MySQL has lost the connection
	d.wantCount(t, "many_rows", 0)
	check(sqlxhelper.InTx(ctx, d.DB, nil, func(tx *sqlx.Tx) error { return insert(tx) }))
}
