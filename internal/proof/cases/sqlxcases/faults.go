package sqlxcases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// blamed is a row for each kind of constraint that a database has.
type blamed struct {
	types.Model
	Code    string              `db:"code"`
	N       int                 `db:"n"`
	Name    *string             `db:"name"`
	OwnerID types.NullSnowflake `db:"owner_id"`
}

var blamedTables = []string{
	"CREATE TABLE owners (id BIGINT PRIMARY KEY)",
	"CREATE TABLE blamed (id BIGINT PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, n BIGINT NOT NULL CHECK (n >= 0), " +
		"name VARCHAR(20) NOT NULL, owner_id BIGINT, FOREIGN KEY (owner_id) REFERENCES owners (id))",
}

// faultyRow: a row violates a constraint. The statement has few rows or many, on a
// pool or in a transaction. The error names no other row, and nothing is stored.
func (d Database) faultyRow(t *testing.T) {
	d.tables(t, blamedTables...)
	d.exec(t, "INSERT INTO blamed (id, code, n, name) VALUES (5, 'five', 0, '')")
	name := ""
	for what, spoil := range map[string]func(*blamed){
		"key":         func(b *blamed) { b.ID = 5 },
		"unique":      func(b *blamed) { b.Code = "five" },
		"check":       func(b *blamed) { b.N = -1 },
		"not null":    func(b *blamed) { b.Name = nil },
		"foreign key": func(b *blamed) { b.OwnerID = types.NullSnowflake{Snowflake: 77, Valid: true} },
	} {
		for _, size := range []struct{ rows, bad int }{{1, 0}, {2, 1}, {9, 0}, {9, 4}, {40, 39}, {60, 0}, {60, 59}, {1200, 1}, {1200, 777}} {
			for _, inTx := range []bool{false, true} {
				about := fmt.Sprintf("%s of row %d of %d, in a transaction: %v", what, size.bad, size.rows, inTx)
				rows := make([]blamed, size.rows)
				for i := range rows {
					rows[i] = blamed{Code: fmt.Sprint("c", i), Name: &name}
				}
				spoil(&rows[size.bad])
				h := sqlxhelper.New(NewCounter(1000))
				err := d.onEither(t, inTx, func(db sqlxhelper.DB) error { return h.InsertMany(ctx, db, "blamed", rows) })
				var e *sqlxhelper.InsertError
				if !errors.As(err, &e) {
					t.Fatalf("%s: InsertMany() = %v; want an InsertError", about, err)
				}
				told := e.Row == size.bad && e.Key == rows[size.bad].ID && e.Path == fmt.Sprintf("sqlxcases.blamed[%d]", size.bad)
				silent := e.Row == -1 && e.Key == 0 && e.Path == "" && d.Dialect != sqlxhelper.SQLite && size.rows > 1
				if !told && !silent {
					t.Errorf("%s: InsertMany() = %v; want row %d, or on a server none", about, err, size.bad)
				}
				if got, want := errors.Is(err, sqlxhelper.ErrDuplicateKey), what == "key" || what == "unique"; got != want {
					t.Errorf("%s: errors.Is(%v, ErrDuplicateKey) = %v; want %v", about, err, got, want)
				}
				d.wantCount(t, "blamed", 1)
			}
		}
	}
}

// onEither runs f on the pool or in a transaction. The transaction has to be usable
// after it, and is committed then.
func (d Database) onEither(t *testing.T, inTx bool, f func(sqlxhelper.DB) error) error {
	t.Helper()
	if !inTx {
		return f(d.DB)
	}
	tx := d.begin(t)
	err := f(tx)
	if err := usable(tx); err != nil {
		t.Errorf("the transaction is no longer usable: %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("Commit() = %v; want nil", err)
	}
	return err
}

func usable(tx *sqlx.Tx) error {
	var one int
	return tx.Get(&one, "SELECT 1")
}

// twins: two rows of one call that are alike in a unique column. The error names the second, or none.
func (d Database) twins(t *testing.T) {
	d.tables(t, blamedTables...)
	name := ""
	rows := make([]blamed, 50)
	for i := range rows {
		rows[i] = blamed{Code: fmt.Sprint("c", i), Name: &name}
	}
	rows[44].Code = rows[11].Code
	err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, d.DB, "blamed", rows)
	var e *sqlxhelper.InsertError
	if !errors.As(err, &e) || !errors.Is(err, sqlxhelper.ErrDuplicateKey) || e.Row != 44 && e.Row != -1 {
		t.Errorf("InsertMany(two alike) = %#v; want a duplicate key of row 44, or of a row that is not known", err)
	}
	if d.Dialect == sqlxhelper.SQLite && e.Row != 44 {
		t.Errorf("InsertMany(two alike) = %v; want row 44", err)
	}
	d.wantCount(t, "blamed", 0)
}

// faultyChild: a row of a graph is named by its place in it.
func (d Database) faultyChild(t *testing.T) {
	d.tables(t, orderTables...)
	orders := make([]order, 30)
	for i := range orders {
		orders[i] = order{Number: fmt.Sprint(i), Items: []item{{SKU: fmt.Sprint(i, "a")}, {SKU: fmt.Sprint(i, "b")}}}
	}
	d.exec(t, "INSERT INTO orders (id, number) VALUES (1, 'x')")
	d.exec(t, "INSERT INTO order_items (id, order_id, sku) VALUES (2, 1, '17b')")
	orders[17].Items[1].SKU = "17b"
	err := sqlxhelper.New(NewCounter(10)).InsertGraph(ctx, d.DB, "orders", orders)
	var e *sqlxhelper.InsertError
	told := errors.As(err, &e) && e.Path == "sqlxcases.order[17].Items[1]" && e.Row == 35
	if silent := e != nil && e.Row == -1 && d.Dialect != sqlxhelper.SQLite; !told && !silent || e.Table != "order_items" {
		t.Errorf("InsertGraph(a stored SKU) = %#v; want order[17].Items[1], which is row 35 of order_items, or on a server none of them", err)
	}
	d.wantCount(t, "orders", 1)
	d.wantCount(t, "order_items", 1)
}

// wide has room for much.
type wide struct {
	types.Model
	N    int    `db:"n"`
	Text string `db:"body"`
	Data []byte `db:"data"`
}

func (d Database) wideTable(t *testing.T) {
	text := "TEXT"
	if d.Dialect == sqlxhelper.MySQL {
		text = "LONGTEXT"
	}
	bytes := map[sqlxhelper.Dialect]string{sqlxhelper.SQLite: "BLOB", sqlxhelper.PostgreSQL: "BYTEA", sqlxhelper.MySQL: "LONGBLOB"}[d.Dialect]
	d.tables(t, "CREATE TABLE wide (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, body "+text+", data "+bytes+")")
}

// largeRows: together far above what the server takes in one statement.
func (d Database) largeRows(t *testing.T) {
	d.wideTable(t)
	text, data := strings.Repeat("'\\x", 200_000), make([]byte, 500_000)
	rows := make([]wide, 26)
	for i := range rows {
		if rows[i] = (wide{N: i}); i%3 > 0 {
			rows[i].Text, rows[i].Data = text, data
		}
	}
	if err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, d.DB, "wide", rows); err != nil {
		t.Fatalf("InsertMany(26 rows of 1.1 MB) = %v; want nil", err)
	}
	var got []struct {
		N, Texts, Bytes int
	}
	if err := d.DB.Select(&got, "SELECT n, LENGTH(body) AS texts, COALESCE(LENGTH(data), 0) AS bytes FROM wide ORDER BY n"); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(rows) {
		t.Fatalf("rows = %d; want %d", len(got), len(rows))
	}
	for i, g := range got {
		if g.N != i || g.Texts != len(rows[i].Text) || g.Bytes != len(rows[i].Data) {
			t.Errorf("row %d = %+v; want %d and %d bytes", i, g, len(rows[i].Text), len(rows[i].Data))
		}
	}
}

// endedBetween: a context that ends after some statements, on a pool and in a
// transaction.
func (d Database) endedBetween(t *testing.T) {
	d.tables(t, rowsTable)
	for _, inTx := range []bool{false, true} {
		ending, cancel := context.WithCancel(ctx)
		defer cancel()
		h := sqlxhelper.New(NewCounter(0), sqlxhelper.OnProgress(func(done, total int) {
			if done > total/2 {
				cancel()
			}
		}))
		err := d.onEither(t, inTx, func(db sqlxhelper.DB) error {
			return h.InsertMany(ending, db, "many_rows", newRows(9000))
		})
		var e *sqlxhelper.InsertError
		if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.First == 0 || e.Row != -1 {
			t.Errorf("InsertMany(context that ends halfway, in a transaction: %v) = %v; want context.Canceled at a later row, and no row to blame", inTx, err)
		}
		d.wantCount(t, "many_rows", 0)
	}
}
