package sqlrow

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/standby"
)

// openPostgreSQL reads what has to be known of the server. It sets what is to hold for
// this transaction: set_config(…, true) is SET LOCAL. "local" and "remote_write" are
// raised too. They do not wait until the synchronous replica, to which a failover would
// go, has the commit on its disk. A stronger setting than "on" stays.
//
// The limits are for a process that is stopped or cut off in the middle. Its row must
// not stay locked.
//
// The clock is clock_timestamp(), as now() is when the transaction began.
const openPostgreSQL = `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on',
	current_setting('fsync'),
	` + standby.Columns + `,
	` + raiseCommit + `,
	CASE WHEN most <> '' THEN concat(set_config('lock_timeout', most, true),
		set_config('statement_timeout', most, true), set_config('idle_in_transaction_session_timeout', most, true)) END, ` + clockPostgreSQL +
	` FROM (SELECT CAST(? AS TEXT) AS most) AS wait`

const clockPostgreSQL = "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)"

const raiseCommit = "CASE WHEN current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN set_config('synchronous_commit', 'on', true) END"

// lockLimit returns the time that ctx leaves, as a setting, or "".
func lockLimit(ctx context.Context) string {
	if d, limited := remaining(ctx); limited {
		// Above what a setting holds, 24 days, it is as good as none.
		if ms := (d + time.Millisecond - 1).Milliseconds(); ms < 1<<31 {
			return strconv.FormatInt(ms, 10)
		}
	}
	return ""
}

// beginPastPooler begins a transaction. PgBouncer in statement mode answers BEGIN by an
// error, and ends the connection. lib/pq then only says that the connection is bad, as
// if another one could be better.
func (t *Tx) beginPastPooler(ctx context.Context) error {
	if t.tried {
		if _, err := t.conn.ExecContext(ctx, "SELECT 1"); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	err := t.beginTx(ctx, sql.LevelReadCommitted)
	if t.tried && ctx.Err() == nil && errors.Is(err, driver.ErrBadConn) {
		err = fmt.Errorf("%w: %w", dialect.ErrNoTransactions, err)
	}
	return err
}

func (t *Tx) beginPostgreSQL(ctx context.Context) error {
	if err := t.beginPastPooler(ctx); err != nil {
		return err
	}
	var (
		refuses bool
		fsync   string
		server  *int64
	)
	if err := t.askServer(ctx, []any{&refuses, &fsync, &server, new(any), new(any), new(any)}, openPostgreSQL, lockLimit(ctx)); err != nil {
		return err
	}
	if err := t.acceptPostgreSQL(ctx, refuses, fsync); err != nil {
		return err
	}
	if server != nil {
		s, commit := standby.Server{ID: *server, Conn: t.conn}, t.commit
		t.commit = func() error { return s.Commit(ctx, commit) }
	}
	return nil
}

// acceptPostgreSQL returns why the server will not do, and warns of a setting.
func (t *Tx) acceptPostgreSQL(ctx context.Context, refuses bool, fsync string) error {
	if refuses {
		return fmt.Errorf("%w: in recovery, or default_transaction_read_only is on", ErrReadOnly)
	}
	if fsync != "on" {
		t.db.warnOfServer(ctx, "fsync", fsync, "on")
	}
	return nil
}
