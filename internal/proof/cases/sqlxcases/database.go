package sqlxcases

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A Database is where the cases run: an open pool and its dialect. Tables of any
// name there belong to the cases.
type Database struct {
	DB      *sqlx.DB
	Dialect sqlxhelper.Dialect

	// Fails names cases that cannot pass because of the driver. The caller says why.
	Fails []string
	// Inexact says that the driver reads some types back otherwise than they were sent.
	Inexact bool
}

// run runs a case.
func (d Database) run(t *testing.T, name string, run func(*testing.T)) {
	if !slices.Contains(d.Fails, name) {
		t.Run(name, run)
	}
}

// tables creates tables and drops them at the end of the test, last one first. The
// dialect replaces the column types bytes, moment, document, amount, level and
// list. level is an enum of low and high. list is an array where there are arrays.
func (d Database) tables(t *testing.T, ddl ...string) {
	t.Helper()
	kinds := map[sqlxhelper.Dialect]*strings.Replacer{
		sqlxhelper.SQLite:     strings.NewReplacer(" bytes", " BLOB", " moment", " TIMESTAMP", " document", " TEXT", " amount", " TEXT", " level", " VARCHAR(10)", " list", " TEXT"),
		sqlxhelper.PostgreSQL: strings.NewReplacer(" bytes", " BYTEA", " moment", " TIMESTAMPTZ", " document", " JSON", " amount", " NUMERIC(30,10)", " level", " level", " list", " TEXT[]"),
		sqlxhelper.MySQL:      strings.NewReplacer(" bytes", " BLOB", " moment", " DATETIME(6)", " document", " JSON", " amount", " DECIMAL(30,10)", " level", " ENUM('low', 'high')", " list", " TEXT"),
	}
	for _, text := range ddl {
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "CREATE TABLE "), " ")
		d.exec(t, kinds[d.Dialect].Replace(text))
		t.Cleanup(func() { d.exec(t, "DROP TABLE "+name) })
	}
}

func (d Database) exec(t *testing.T, text string) {
	t.Helper()
	if _, err := d.DB.ExecContext(context.Background(), text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}

// count returns the rows of a table that a new statement on the pool sees.
func (d Database) count(t *testing.T, table string) int {
	t.Helper()
	var n int
	if err := d.DB.Get(&n, "SELECT COUNT(*) FROM "+table); err != nil {
		t.Fatalf("count of %s: %v", table, err)
	}
	return n
}

// wantCount fails the test if a table does not have n rows.
func (d Database) wantCount(t *testing.T, table string, n int) {
	t.Helper()
	if got := d.count(t, table); got != n {
		t.Errorf("rows in %s = %d; want %d", table, got, n)
	}
}

// begin begins a transaction. It is rolled back at the end of the test, if the test
// has not ended it.
func (d Database) begin(t *testing.T) *sqlx.Tx {
	t.Helper()
	tx, err := d.DB.Beginx()
	if err != nil {
		t.Fatalf("Beginx() = %v", err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// A Counter is a source of the keys first+1, first+2, …. It records how it was
// asked. It is safe for concurrent use.
type Counter struct {
	mu    sync.Mutex
	last  types.Snowflake
	fills []int // the length of each Fill
	err   error // what Fill returns, if not nil
	after func()
}

// NewCounter returns a Counter whose first key is first+1.
func NewCounter(first types.Snowflake) *Counter { return &Counter{last: first} }

// Next implements sqlxhelper.Source. The helper has to prefer Fill.
func (c *Counter) Next(context.Context) (types.Snowflake, error) {
	return 0, errors.New("Next was called on a source that has Fill")
}

// Fill is the method that sqlxhelper looks for in a source.
func (c *Counter) Fill(_ context.Context, ids []types.Snowflake) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fills = append(c.fills, len(ids))
	for i := range ids {
		c.last++
		ids[i] = c.last
	}
	if c.after != nil {
		c.after()
	}
	return c.err
}

// A handle is what a call gets: a pool, a transaction of the caller's, or else a connection.
type handle struct {
	name string
	pool func(*sqlx.DB) sqlxhelper.DB
	tx   func(*sqlx.Tx) sqlxhelper.DB
}

var handles = []handle{
	{name: "a pool", pool: func(db *sqlx.DB) sqlxhelper.DB { return db }},
	{name: "a pool in a struct", pool: func(db *sqlx.DB) sqlxhelper.DB { return struct{ *sqlx.DB }{db} }},
	{name: "a pool to unwrap", pool: func(db *sqlx.DB) sqlxhelper.DB { return around{db} }},
	{name: "a connection"},
	{name: "a transaction", tx: func(tx *sqlx.Tx) sqlxhelper.DB { return tx }},
	{name: "a transaction in a struct", tx: func(tx *sqlx.Tx) sqlxhelper.DB { return struct{ *sqlx.Tx }{tx} }},
	{name: "a transaction to unwrap", tx: func(tx *sqlx.Tx) sqlxhelper.DB { return &around{tx} }},
	{name: "the queries of a transaction", tx: func(tx *sqlx.Tx) sqlxhelper.DB { return sqlxhelper.Within(accessor{tx}) }},
}

// around is a handle around another one.
type around struct{ sqlxhelper.DB }

func (a around) Unwrap() sqlxhelper.DB { return a.DB }

// An accessor has the methods of queries alone, as the handle of a repository.
type accessor struct{ sqlx.ExtContext }

// through calls f with a handle. A transaction has to be usable afterwards, and is committed.
func (d Database) through(t *testing.T, h handle, f func(sqlxhelper.DB) error) error {
	t.Helper()
	switch {
	case h.pool != nil:
		return f(h.pool(d.DB))
	case h.tx == nil:
		conn, err := d.DB.Connx(ctx)
		if err != nil {
			t.Fatalf("Connx() = %v", err)
		}
		defer func() { _ = conn.Close() }()
		return f(sqlxhelper.OnConn(conn, d.DB.DriverName()))
	}
	tx := d.begin(t)
	err := f(h.tx(tx))
	var one int
	if err := tx.Get(&one, "SELECT 1"); err != nil {
		t.Errorf("%s is no longer usable: %v", h.name, err)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("Commit() = %v; want nil", err)
	}
	return err
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
