package sqlrow

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// openMySQL reads what has to be known of the server. read_only may not bind the user,
// so it is asked for. MariaDB 12 has words for it, and a word is false where a number
// is wanted. UTC_TIMESTAMP does not depend on the session's time zone.
// UNIX_TIMESTAMP(NOW(6)) is an hour off in the hour that a change from summer time
// repeats.
const openMySQL = "SELECT @@innodb_lock_wait_timeout, CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF') OR @@innodb_read_only, @@innodb_flush_log_at_trx_commit, " + isDolt + ", @@version LIKE '%TiDB%'," + clockMySQL

const clockMySQL = " TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6)) DIV 1000"

// isDolt is true on Dolt, which gives its name in version_comment since June 2023
// (dolthub/go-mysql-server#1841). There, dolt_version() would tell too, but on MySQL a
// function that is missing is an error. Dolt takes no lock for FOR UPDATE, and merges what
// two transactions have written: if both change a counter from 7 to 8, both are committed
// (dolthub/dolt#7148).
const isDolt = "LOWER(CONCAT(@@version, ' ', @@version_comment)) LIKE '%dolt%'"

// RefuseDolt returns ErrDolt on that server. It is for the dialect MySQL, and a transaction
// of the caller: those of Do ask by themselves.
func (t *Tx) RefuseDolt(ctx context.Context) error {
	var dolt bool
	if err := dialect.One(ctx, t.executor, []any{&dolt}, "SELECT "+isDolt); err != nil {
		return err
	}
	if dolt {
		return ErrDolt
	}
	return nil
}

const lockWaitTimeout = "SET SESSION innodb_lock_wait_timeout = "

func (t *Tx) beginMySQL(ctx context.Context) error {
	// The transaction begins first. A proxy that sends reads to replicas sends all of a
	// transaction to the primary, and the answers below must be the primary's. They
	// open no snapshot; the first read of a table does.
	//
	// READ COMMITTED would lock less, but with binlog_format=STATEMENT InnoDB refuses
	// every write under it. The driver sets the level for one transaction, so there is
	// nothing to set back.
	//
	// TiDB has no such log, and its REPEATABLE READ reads what was stored at BEGIN, even
	// after the transaction has waited for a lock, which is when InnoDB would first read.
	level := sql.LevelRepeatableRead
	if t.db.tidb.Load() {
		level = sql.LevelReadCommitted
	}
	if err := t.beginTx(ctx, level); err != nil {
		return err
	}
	var (
		lock, flush         int64
		refuses, dolt, tidb bool
	)
	if err := t.askServer(ctx, []any{&lock, &refuses, &flush, &dolt, &tidb}, openMySQL); err != nil {
		return err
	}
	if tidb && !t.db.tidb.Swap(true) {
		return fmt.Errorf("%w: the first transaction on TiDB", ErrConflict) // begins anew
	}
	if err := t.acceptMySQL(ctx, refuses, dolt, flush); err != nil {
		return err
	}
	// The server goes on waiting for a lock when the client has gone; 50 s by
	// default.
	if d, limited := remaining(ctx); limited {
		if seconds := int64((d + time.Second - 1) / time.Second); seconds < lock {
			t.restore = append(t.restore, lockWaitTimeout+strconv.FormatInt(lock, 10))
			if _, err := t.executor.ExecContext(ctx, lockWaitTimeout+strconv.FormatInt(seconds, 10)); err != nil {
				return fmt.Errorf("settings: %w", err)
			}
		}
	}
	return nil
}

// acceptMySQL refuses a server that cannot keep rows, and warns of one that may forget them.
func (t *Tx) acceptMySQL(ctx context.Context, refuses, dolt bool, flush int64) error {
	switch {
	case dolt:
		return ErrDolt
	case refuses:
		return fmt.Errorf("%w: read_only or innodb_read_only is on", ErrReadOnly)
	case flush != 1:
		t.db.warnOfServer(ctx, "innodb_flush_log_at_trx_commit", strconv.FormatInt(flush, 10), "1")
	}
	return nil
}
