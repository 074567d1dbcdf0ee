package sqlrow

import (
	"context"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// Look runs body, which only reads, and returns its result. It takes fewer round trips than
// [Do], since what is read needs no lock and need not be durable: each statement stands alone.
// Look begins anew as Do does, and has the errors of Do.
func Look[T any](ctx context.Context, d *DB, body func(*Tx) (T, error)) (T, error) {
	return run(ctx, d, (*Tx).beginLook, body)
}

// LookAt is [Look] for one statement, which on MySQL takes a round trip less and locks the rows that
// it reads outside of subqueries.
func LookAt[T any](ctx context.Context, d *DB, body func(*Tx) (T, error)) (T, error) {
	return run(ctx, d, func(t *Tx, ctx context.Context) error {
		t.locks = true
		return t.beginLook(ctx)
	}, body)
}

func (t *Tx) beginLook(ctx context.Context) error {
	switch {
	case t.db.config.Dialect == dialect.SQLite:
		return t.lookSQLite(ctx)
	case t.db.pooled.Load():
		return t.beginPastPooler(ctx)
	}
	t.executor = t.conn
	return nil
}

// lookSQLite is beginSQLite for a look. The connection has the log open once it has read, so
// the log is checked after that.
func (t *Tx) lookSQLite(ctx context.Context) error {
	t.executor = t.conn
	file, err := t.openSQLite(ctx, false)
	if err != nil {
		return err
	}
	t.check = func() error { return t.db.file.still(ctx, file) }
	t.Now = t.db.config.Now()
	return nil
}

// Columns that tell about the server, for a look. The last is its clock.
const (
	lookPostgreSQL = `pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', current_setting('fsync'), ` + alone + `, ` + clockPostgreSQL
	lookMySQL      = "CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF') OR @@innodb_read_only AS a, @@innodb_flush_log_at_trx_commit AS b, " + isDolt + " AS c, @@autocommit AS d," + clockMySQL + " AS e"
)

// alone is true where a statement may write without BEGIN: where the default isolation is
// unchanged, and no commit waits for a standby, which only package standby can tell from one
// whose wait was cut off.
const alone = `(coalesce(current_setting('synchronous_standby_names', true), '') = '' AND current_setting('transaction_isolation') = 'read committed')`

// See runs the query of a look, SELECT columns FROM s and what is joined to it, with '?' for its
// parameters, and calls f for each row, as [Tx.Each] does. s is a table of one row, to which joined
// joins none or more. See refuses a server that [Do] refuses, and reads the clock along with the
// rows.
//
// On MySQL the query ends in FOR UPDATE, by which proxies send it to the primary. It locks no rows
// that joined reads in a subquery with a LIMIT.
func (t *Tx) See(ctx context.Context, f func(scan func(...any) error) error, columns, joined string, args ...any) error {
	var (
		text    string
		refuses bool
		now     int64
		server  []any
		found   func() error
	)
	switch t.db.config.Dialect {
	case dialect.PostgreSQL:
		var fsync string
		text, server = lookPostgreSQL, []any{&refuses, &fsync, &t.single, &now}
		found = func() error { return t.acceptPostgreSQL(ctx, refuses, fsync) }
	case dialect.MySQL:
		joined += " FOR UPDATE"
		if err := t.readCommitted(ctx); err != nil {
			return err
		}
		var (
			flush            int64
			dolt, autocommit bool
		)
		text, server = lookMySQL, []any{&refuses, &flush, &dolt, &autocommit, &now}
		found = func() error {
			t.dirty = false
			if !autocommit && t.rollback == nil { // the statement has begun a transaction
				t.rollback = t.rollsBack(ctx)
			}
			return t.acceptMySQL(ctx, refuses, dolt, flush)
		}
	default:
		return t.Each(ctx, f, "SELECT "+columns+" FROM (SELECT 1) s "+joined, args...)
	}
	// In a table, because PostgreSQL would otherwise compute them for each row.
	text, args, err := t.db.Bind("SELECT s.*, "+columns+" FROM (SELECT "+text+") s "+joined, args...)
	if err != nil {
		return err
	}
	first := true
	return t.Each(ctx, func(scan func(...any) error) error {
		return f(func(dest ...any) error {
			if err := scan(append(server, dest...)...); err != nil || !first {
				return err
			}
			first = false
			t.Now = time.UnixMilli(now)
			return found()
		})
	}, text, args...)
}

// readCommitted keeps the next statement from reading what is not committed, as it would if READ
// UNCOMMITTED were the default and it took no lock.
func (t *Tx) readCommitted(ctx context.Context) error {
	if t.locks || t.rollback != nil {
		return nil
	}
	t.dirty = true // until a statement has used the level up
	_, err := t.conn.ExecContext(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	return err
}

// Alone reports whether [DB.Write] may write on the server that a look has found.
func (t *Tx) Alone() bool { return t.single }

// Clock returns the clock of the database as an expression of SQL, in milliseconds. It is a query,
// because PostgreSQL would otherwise compute it for each row.
func (t *Tx) Clock() string {
	switch t.db.config.Dialect {
	case dialect.PostgreSQL:
		return "(SELECT " + clockPostgreSQL + ")"
	case dialect.MySQL:
		return "(SELECT" + clockMySQL + ")"
	default:
		return strconv.FormatInt(t.Now.UnixMilli(), 10)
	}
}
