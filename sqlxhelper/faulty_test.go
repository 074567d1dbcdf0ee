package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/standby"
	"github.com/snowkey/snowkey/types"
)

const slow = standby.Slow // a commit that may have been cut off

// A fate is what becomes of a commit.
type fate struct {
	applied bool  // at once
	late    int   // after so many lists of open transactions; of a statement, at the next one
	err     error // what the client is told
	cancel  bool  // its context ends then
	took    time.Duration
}

var (
	answerLost = fate{applied: true, err: driver.ErrBadConn}
	commitLost = fate{err: io.ErrUnexpectedEOF}
	commitLate = fate{late: 3, err: io.ErrUnexpectedEOF}
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
	sends                             []fate  // of statements outside of a transaction
	connects                          []error // of the driver
	ensureTook                        []time.Duration
	cancel                            context.CancelFunc // for fate.cancel

	mu        sync.Mutex
	stored    map[int64]bool
	inFlight  []int64 // of a commit that is late
	lateness  int     // lists until it lands
	lookCount int
	listCount int
	sendCount int
	version   string // what the server says that it is; PostgreSQL if empty
	replica   int    // so many lists come from a replica
	hidden    string // why a row may be stored though it is not seen
	blind     bool   // no row is seen
	landsAt   int    // the look before which a statement that is late arrives
}

// open returns a pool on f, which has to be closed.
func (f *faulty) open(t *testing.T) *sqlx.DB {
	t.Helper()
	if f.stored == nil {
		f.stored = map[int64]bool{}
	}
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

// list is the answer to openPostgreSQL. Another transaction is always new.
func (f *faulty) list() []driver.Value {
	f.listCount++
	var open string
	if f.inFlight != nil {
		if f.lateness--; f.lateness >= 0 {
			open = "3/14"
		} else {
			f.store(f.inFlight)
			f.inFlight = nil
		}
	}
	if f.listCount > 1 {
		open += fmt.Sprintf(" 4/%d", f.listCount)
	}
	version := "PostgreSQL 15.8 (Debian 15.8-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit"
	if f.version != "" {
		version = f.version
	}
	f.replica--
	return []driver.Value{version, f.replica >= 0, open, f.hidden}
}

// next takes the first entry off a script.
func next[T any](script *[]T) (v T) {
	if len(*script) > 0 {
		v, *script = (*script)[0], (*script)[1:]
	}
	return v
}

var orders = outcome.KeyColumn{Dialect: PostgreSQL, Table: "orders", Column: "id"}

// insert inserts keys as a Helper does.
func insert(tx *sqlx.Tx, keys ...types.Snowflake) error {
	for _, k := range keys {
		if _, err := tx.Exec("INSERT", int64(k)); err != nil {
			return err
		}
		recordOf(tx).Add(orders, k)
	}
	return nil
}

type faultyConnector struct{ f *faulty }

func (c faultyConnector) Connect(context.Context) (driver.Conn, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if err := next(&c.f.connects); err != nil {
		return nil, err
	}
	return &faultyConn{f: c.f}, nil
}
func (c faultyConnector) Driver() driver.Driver { return nil }

// A faultyConn is a connection and its transaction.
type faultyConn struct {
	f       *faulty
	inTx    bool
	keys    []int64
	ensures bool
}

func (c *faultyConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *faultyConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (c *faultyConn) Close() error                        { return nil }

func (c *faultyConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.inTx, c.keys, c.ensures = true, nil, false
	return c, next(&c.f.begins)
}

func (c *faultyConn) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	switch {
	case strings.HasPrefix(text, "SELECT CASE"): // of a look that has found the row
		c.ensures = true
		return driver.RowsAffected(1), next(&c.f.writes)
	case len(args) == 0: // of a savepoint
		return driver.RowsAffected(0), nil
	}
	if text == "STORE" { // by whoever
		c.f.stored[args[0].Value.(int64)] = true
		return driver.RowsAffected(1), nil
	}
	if err := next(&c.f.inserts); err != nil {
		return nil, err
	}
	var keys []int64
	for _, a := range args {
		keys = append(keys, a.Value.(int64))
	}
	if !c.inTx {
		return c.f.send(keys)
	}
	if c.f.holds(keys) {
		return nil, postgres("23505")
	}
	c.keys = append(c.keys, keys...)
	return driver.RowsAffected(len(keys)), nil
}

// send runs a statement that is a transaction by itself.
func (f *faulty) send(keys []int64) (driver.Result, error) {
	f.sendCount++
	f.store(f.inFlight)
	f.inFlight = nil
	scripted := len(f.sends) > 0
	now := next(&f.sends)
	if now.cancel {
		f.cancel()
	}
	time.Sleep(now.took)
	switch {
	case !scripted || now.applied:
		if f.holds(keys) {
			return nil, postgres("23505")
		}
		f.store(keys)
	case now.late > 0:
		f.inFlight, f.lateness = keys, 1<<30
	}
	return driver.RowsAffected(len(keys)), now.err
}

func (f *faulty) holds(keys []int64) bool {
	return slices.ContainsFunc(keys, func(k int64) bool { return f.stored[k] })
}

func (f *faulty) store(keys []int64) {
	for _, k := range keys {
		f.stored[k] = true
	}
}

// QueryContext is the look for a key, or the list of open transactions.
func (c *faultyConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if strings.HasPrefix(text, "SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery()") { // for the ID of a transaction
		return &faultyRows{[]driver.Value{nil, "run"}}, ctx.Err()
	}
	if strings.HasPrefix(text, "WITH looked ") {
		return &faultyRows{c.f.list()}, ctx.Err()
	}
	if strings.HasPrefix(text, "SELECT COALESCE(") { // of OnConn: whether a transaction is open
		return &faultyRows{[]driver.Value{c.inTx}}, nil
	}
	if len(args) == 0 {
		return &faultyRows{}, nil
	}
	if strings.Contains(text, "information_schema") { // no other database has the table
		return &faultyRows{}, nil
	}
	c.f.lookCount++
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := next(&c.f.looks); err != nil {
		return nil, err
	}
	if c.f.lookCount == c.f.landsAt {
		c.f.store(c.f.inFlight)
	}
	if c.f.blind || !c.f.stored[args[0].Value.(int64)] {
		return &faultyRows{}, nil
	}
	return &faultyRows{[]driver.Value{int64(1)}}, nil
}

func (c *faultyConn) Commit() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.inTx = false
	if c.ensures {
		time.Sleep(next(&c.f.ensureTook))
		return next(&c.f.ensures)
	}
	scripted := len(c.f.commits) > 0
	now := next(&c.f.commits)
	if now.cancel {
		c.f.cancel()
	}
	if now.late > 0 {
		c.f.inFlight, c.f.lateness = c.keys, now.late
	}
	time.Sleep(now.took)
	if !scripted || now.applied {
		c.f.store(c.keys)
	}
	return now.err
}

func (c *faultyConn) Rollback() error {
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.inTx = false
	return next(&c.f.rollbacks)
}

// faultyRows are one row, or none.
type faultyRows struct{ left []driver.Value }

func (r *faultyRows) Columns() []string { return []string{"a", "b", "c", "d"}[:max(1, len(r.left))] }
func (r *faultyRows) Close() error      { return nil }

func (r *faultyRows) Next(dest []driver.Value) error {
	if r.left == nil {
		return io.EOF
	}
	copy(dest, r.left)
	r.left = nil
	return nil
}
