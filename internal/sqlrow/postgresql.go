package sqlrow

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
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
	CASE WHEN current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN set_config('synchronous_commit', 'on', true) END,
	CASE WHEN CAST($1 AS TEXT) <> '' THEN set_config('lock_timeout', CAST($1 AS TEXT), true) END,
	CASE WHEN CAST($1 AS TEXT) <> '' THEN set_config('statement_timeout', CAST($1 AS TEXT), true) END,
	CASE WHEN CAST($1 AS TEXT) <> '' THEN set_config('idle_in_transaction_session_timeout', CAST($1 AS TEXT), true) END,
	CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)`

func (t *Tx) beginPostgreSQL(ctx context.Context) error {
	if err := t.beginTx(ctx, sql.LevelReadCommitted); err != nil {
		return err
	}
	limit := ""
	if d, limited := remaining(ctx); limited {
		// Above what a setting holds, 24 days, it is as good as none.
		if ms := (d + time.Millisecond - 1).Milliseconds(); ms < 1<<31 {
			limit = strconv.FormatInt(ms, 10)
		}
	}
	var (
		refuses bool
		fsync   string
	)
	if err := t.askServer(ctx, []any{&refuses, &fsync, new(any), new(any), new(any), new(any)}, openPostgreSQL, limit); err != nil {
		return err
	}
	if refuses {
		return fmt.Errorf("%w: in recovery, or default_transaction_read_only is on", ErrReadOnly)
	}
	if fsync != "on" {
		t.db.warnOfServer(ctx, "fsync", fsync, "on")
	}
	return nil
}
