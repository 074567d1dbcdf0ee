package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/types"
)

// A fate is what becomes of a commit.
type fate struct {
	applied bool  // at once
	late    bool  // when the next row is inserted, or an attempt is rolled back
	err     error // what the client is told
	cancel  bool  // its context ends then
}

var (
	answerLost = fate{applied: true, err: driver.ErrBadConn}
	commitLost = fate{err: io.ErrUnexpectedEOF}
	commitLate = fate{late: true, err: io.ErrUnexpectedEOF}
)

// refuses is a commit that the server answers with an error.
func refuses(err error) fate { return fate{err: err} }

// A faulty is a database with one table, of keys alone, whose failures are
// scripted. The scripts name what happens to the first, the second, … of their
// kind. Past their end all succeeds. It speaks PostgreSQL.
type faulty struct {
	begins, inserts, rollbacks, looks []error
	writes, ensures                   []error // what a look that has found the row writes, and its commit
	commits                           []fate
	cancel                            context.CancelFunc // for fate.cancel

	mu        sync.Mutex
	stored    map[int64]bool
	inFlight  [][]int64 // of commits that are late
	lookCount int
}

// open returns a pool on f, which has to be closed.
func (f *faulty) open(t *testing.T) *sqlx.DB {
	t.Helper()
	f.stored = map[int64]bool{}
	db := sqlx.NewDb(sql.OpenDB(faultyConnector{f}), "pgx")
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return db
}

// rows returns the keys that are stored, in order.
func (f *faulty) rows() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.stored))
}

// land applies the commits that are late.
func (f *faulty) land() {
	for _, keys := range f.inFlight {
		for _, k := range keys {
			f.stored[k] = true
		}
	}
	f.inFlight = nil
}

// next takes the first entry off a script.
func next[T any](script *[]T) (v T) {
	if len(*script) > 0 {
		v, *script = (*script)[0], (*script)[1:]
	}
	return v
}

var orders = place{PostgreSQL, "orders", "id"}

// insert inserts keys as a Helper does.
func insert(tx *sqlx.Tx, keys ...types.Snowflake) error {
	for _, k := range keys {
		if _, err := tx.Exec("INSERT", int64(k)); err != nil {
			return err
		}
		recordOf(tx).add(orders, true, k)
	}
	return nil
}

type faultyConnector struct{ f *faulty }

func (c faultyConnector) Connect(context.Context) (driver.Conn, error) {
	return &faultyConn{f: c.f}, nil
}
func (c faultyConnector) Driver() driver.Driver { return nil }

// A faultyConn is a connection and its transaction.
type faultyConn struct {
	f       *faulty
	keys    []int64
	ensures bool
}

func (c *faultyConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *faultyConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (c *faultyConn) Close() error                        { return nil }

func (c *faultyConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.keys, c.ensures = nil, false
	return c, next(&c.f.begins)
}

func (c *faultyConn) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if len(args) == 0 { // of a look that has found the row
		c.ensures = true
		return driver.RowsAffected(1), next(&c.f.writes)
	}
	c.f.land()
	if err := next(&c.f.inserts); err != nil {
		return nil, err
	}
	key := args[0].Value.(int64)
	if c.f.stored[key] {
		return nil, postgres("23505")
	}
	c.keys = append(c.keys, key)
	return driver.RowsAffected(1), nil
}

// QueryContext is the look for a key.
func (c *faultyConn) QueryContext(ctx context.Context, _ string, args []driver.NamedValue) (driver.Rows, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.lookCount++
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := next(&c.f.looks); err != nil {
		return nil, err
	}
	return &faultyRows{left: c.f.stored[args[0].Value.(int64)]}, nil
}

func (c *faultyConn) Commit() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if c.ensures {
		return next(&c.f.ensures)
	}
	scripted := len(c.f.commits) > 0
	now := next(&c.f.commits)
	if now.cancel {
		c.f.cancel()
	}
	if now.late {
		c.f.inFlight = append(c.f.inFlight, c.keys)
	}
	if !scripted || now.applied {
		for _, k := range c.keys {
			c.f.stored[k] = true
		}
	}
	return now.err
}

func (c *faultyConn) Rollback() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if len(c.keys) > 0 {
		c.f.land()
	}
	return next(&c.f.rollbacks)
}

// faultyRows are one row with a 1 in it, or none.
type faultyRows struct{ left bool }

func (r *faultyRows) Columns() []string { return []string{"one"} }
func (r *faultyRows) Close() error      { return nil }

func (r *faultyRows) Next(dest []driver.Value) error {
	if !r.left {
		return io.EOF
	}
	r.left, dest[0] = false, int64(1)
	return nil
}
