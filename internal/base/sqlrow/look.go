package sqlrow

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// Look runs body, which only reads, and returns its result. It takes fewer round trips than
// [Do], since what is read needs no lock and need not be durable: on PostgreSQL and SQLite
// each statement stands alone, and on MySQL they are in a transaction, because proxies send
// those to the primary. Look begins anew as Do does, and has the errors of Do.
func Look[T any](ctx context.Context, d *DB, body func(*Tx) (T, error)) (T, error) {
	return run(ctx, d, (*Tx).beginLook, body)
}

// LookAt is [Look] for one statement that locks the rows that it reads. On MySQL the statement
// ends in FOR UPDATE, by which proxies send it to the primary, and needs no transaction.
func LookAt[T any](ctx context.Context, d *DB, body func(*Tx) (T, error)) (T, error) {
	return run(ctx, d, func(t *Tx, ctx context.Context) error {
		if d.config.Dialect == dialect.MySQL {
			t.executor = t.conn
			return nil
		}
		return t.beginLook(ctx)
	}, body)
}

func (t *Tx) beginLook(ctx context.Context) error {
	switch t.db.config.Dialect {
	case dialect.MySQL:
		return t.beginTx(ctx, sql.LevelRepeatableRead)
	case dialect.SQLite:
		return t.lookSQLite(ctx)
	default:
		if t.db.pooled.Load() || t.byLibPQ() {
			t.bound = true
			return t.beginPastPooler(ctx)
		}
		t.executor = t.conn
		return nil
	}
}

// byLibPQ reports whether the driver is lib/pq, which prepares a statement and runs it in two
// steps. Behind a pooler in transaction mode another client may come in between, unless both
// steps are in a transaction.
func (t *Tx) byLibPQ() (is bool) {
	_ = t.conn.Raw(func(c any) error {
		is = strings.HasPrefix(fmt.Sprintf("%T", c), "*pq.")
		return nil
	})
	return is
}

// lookSQLite is beginSQLite for a look. The connection has the log open once it has read, so
// the log is checked after that.
func (t *Tx) lookSQLite(ctx context.Context) error {
	t.executor = t.conn
	file, err := t.openSQLite(ctx)
	if err != nil {
		return err
	}
	t.check = func() error { return t.db.file.still(ctx, file) }
	t.tellSQLite()
	return nil
}

// Columns that tell about the server, for a look. The last is its clock.
const (
	lookPostgreSQL = `pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', current_setting('fsync'), ` + alone + `, ` + clockPostgreSQL + `, `
	lookMySQL      = "CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF') OR @@innodb_read_only, @@innodb_flush_log_at_trx_commit, " + isDolt + ", @@autocommit," + clockMySQL + ", "
)

// alone is true where a statement may write without BEGIN: where the default isolation is
// unchanged, and no commit waits for a standby, which only package standby can tell from one
// whose wait was cut off.
const alone = `(coalesce(current_setting('synchronous_standby_names', true), '') = '' AND current_setting('transaction_isolation') = 'read committed')`

// See runs the query "SELECT " + columns + rest of a look, which has one row at least, and
// calls f for each row, as [Tx.Each] does. It refuses a server that [Do] refuses, and reads the
// clock along with the rows.
func (t *Tx) See(ctx context.Context, f func(scan func(...any) error) error, columns string, args ...any) error {
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
		found = func() error {
			if refuses {
				return fmt.Errorf("%w: in recovery, or default_transaction_read_only is on", ErrReadOnly)
			}
			if fsync != "on" {
				t.db.warnOfServer(ctx, "fsync", fsync, "on")
			}
			return nil
		}
	case dialect.MySQL:
		var (
			flush            int64
			dolt, autocommit bool
		)
		text, server = lookMySQL, []any{&refuses, &flush, &dolt, &autocommit, &now}
		found = func() error {
			if !autocommit && t.rollback == nil { // the statement has begun a transaction
				t.rollback = func() error {
					_, err := t.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
					return err
				}
			}
			return t.acceptMySQL(ctx, refuses, dolt, flush)
		}
	default:
		return t.Each(ctx, f, "SELECT "+columns, args...)
	}
	first := true
	t.Asked = time.Now()
	return t.Each(ctx, func(scan func(...any) error) error {
		if !first {
			return f(func(dest ...any) error { return scan(append(server, dest...)...) })
		}
		first = false
		t.Answered = time.Now()
		return f(func(dest ...any) error {
			if err := scan(append(server, dest...)...); err != nil {
				return err
			}
			t.Now = time.UnixMilli(now)
			return found()
		})
	}, "SELECT "+text+columns, args...)
}

// Alone reports whether [DB.Write] may write on the server that a look has found.
func (t *Tx) Alone() bool { return t.single && !t.bound }

// Clock returns the clock of the database as an expression of SQL, in milliseconds.
func (t *Tx) Clock() string {
	switch t.db.config.Dialect {
	case dialect.PostgreSQL:
		return clockPostgreSQL
	case dialect.MySQL:
		return "(" + clockMySQL + ")"
	default:
		return strconv.FormatInt(t.Now.UnixMilli(), 10)
	}
}
