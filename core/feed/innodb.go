package feed

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/wait"
	"github.com/snowkey/snowkey/types"
)

// innoDB keeps the fence in a row, which the trigger reads without a lock, as of the snapshot of its
// transaction.
//
// A transaction is in innodb_trx before it has a snapshot, and until its rows are visible, so one that
// reads the old value is in a list that is made after the fence was raised. When all of that list are
// gone, a writer that comes later reads the new value.
type innoDB struct{ names }

func (m innoDB) statements() []string {
	// SELECT … INTO reads without a lock. A subquery in IF would lock the row until the transaction ends.
	refuse := func(condition string) string {
		return " FOR EACH ROW BEGIN DECLARE bound, found BIGINT; SELECT closed INTO bound FROM " + m.fence + ";" +
			" IF " + condition + "NEW." + m.column + " < bound THEN" +
			// An upsert comes here before it finds its row.
			" SELECT COUNT(*) INTO found FROM " + m.table + " WHERE " + m.column + " = NEW." + m.column + ";" +
			" IF found = 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '" + refusal + "'; END IF; END IF; END"
	}
	return []string{
		"CREATE TABLE IF NOT EXISTS " + m.fence + " (one TINYINT NOT NULL PRIMARY KEY, closed BIGINT NOT NULL) ENGINE = InnoDB",
		"INSERT IGNORE INTO " + m.fence + " VALUES (1, 0)",
		"CREATE TABLE IF NOT EXISTS " + m.readers + " (feed BIGINT NOT NULL PRIMARY KEY, closed BIGINT NOT NULL) ENGINE = InnoDB",
		"INSERT IGNORE INTO " + m.readers + " VALUES (0, 0), (1, 0)",
		"CREATE TRIGGER IF NOT EXISTS " + m.insert + " BEFORE INSERT ON " + m.table + refuse(""),
		"CREATE TRIGGER IF NOT EXISTS " + m.update + " BEFORE UPDATE ON " + m.table + refuse("NEW."+m.column+" <> OLD."+m.column+" AND "),
	}
}

func (m innoDB) check(ctx context.Context, db session) error {
	unknown := func(reason string) error { return fmt.Errorf("%w: %s", ErrUnknownHorizon, reason) }
	schema, table := m.name.Schema, m.name.Table
	var triggers, engines, appliers int
	var readOnly, autocommit bool
	var version string
	err := db.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM information_schema.triggers WHERE event_object_schema = ?"+
		" AND event_object_table = ? AND trigger_name IN (?, ?)),"+
		" (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name IN (?, ?, ?) AND engine = 'InnoDB'),"+
		" (SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'system user' AND command <> 'Daemon'), @@global.read_only, @@autocommit, VERSION()",
		schema, table, table+"_feed_insert", table+"_feed_update", schema, table, table+"_feed", table+"_feed_readers").Scan(&triggers, &engines, &appliers, &readOnly, &autocommit, &version)
	switch {
	case err != nil:
		return err
	case strings.Contains(version, "TiDB"):
		return unknown("TiDB has no triggers")
	case triggers != 2 || engines != 3:
		return unknown("the table has no fence, or is not InnoDB; call Install, and use a user with the privilege TRIGGER on the table")
	case !autocommit:
		return unknown("autocommit is off, so a SELECT may have the snapshot of an earlier one; use connections with autocommit")
	}
	// A replica that is stopped looks like any other server, until it starts.
	statement := "SHOW REPLICA STATUS"
	if strings.Contains(version, "MariaDB") {
		statement = "SHOW ALL REPLICAS STATUS"
	}
	source, err := hasRow(ctx, db, statement)
	switch {
	case dialect.Numbered(err, accessDenied):
		return fmt.Errorf("%w: the user needs the privileges PROCESS and REPLICATION CLIENT, on MariaDB PROCESS and REPLICA MONITOR: %w", ErrUnknownHorizon, err)
	case err != nil:
		return err
	case source || appliers > 0 || readOnly:
		return unknown("the server takes rows from another one, or is read-only, and the triggers do not see such rows; use the primary of a single-primary setup, after RESET REPLICA ALL if it was a replica")
	}
	return nil
}

// hasRow reports whether a statement returns a row.
func hasRow(ctx context.Context, db session, statement string) (bool, error) {
	found := false
	err := dialect.Each(ctx, db, func(*sql.Rows) error {
		found = true
		return nil
	}, statement)
	return found, err
}

func (m innoDB) now(ctx context.Context, db session) (time.Time, error) {
	var micros int64
	err := db.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&micros)
	return time.UnixMicro(micros), err
}

func (m innoDB) begin(ctx context.Context, db session) (*sql.Tx, error) {
	return beginWith(ctx, db, "SELECT closed FROM "+m.readers+" WHERE feed = 0 FOR UPDATE")
}

func (m innoDB) raise(ctx context.Context, tx *sql.Tx, key types.Snowflake) (after types.Snowflake, err error) {
	err = tx.QueryRowContext(ctx, "SELECT closed FROM "+m.fence+" FOR UPDATE NOWAIT").Scan((*int64)(&after))
	switch {
	case dialect.Numbered(err, lockNotAvailable, lockWaitTimeout):
		// Writers hold a shared lock until they end if they are SERIALIZABLE, or binlog_format is not
		// ROW. Waiting for them would make every later writer wait too.
		err = tx.QueryRowContext(ctx, "SELECT closed FROM "+m.fence).Scan((*int64)(&after))
	case err == nil:
		after = max(after, key)
		_, err = tx.ExecContext(ctx, "UPDATE "+m.fence+" SET closed = ?", int64(after))
	}
	return after, err
}

// Error numbers.
const (
	lockWaitTimeout  = 1205 // of MariaDB also for NOWAIT
	lockNotAvailable = 3572
	accessDenied     = 1227
)

// beginWith begins a transaction with a statement that locks a row.
func beginWith(ctx context.Context, db session, lock string) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	var closed int64
	if err := tx.QueryRowContext(ctx, lock).Scan(&closed); err != nil {
		_ = tx.Rollback() // it has written nothing
		return nil, err
	}
	return tx, nil
}

// detached names all transactions without a connection: prepared ones of XA whose connection is gone, or
// the server restarted since. Nothing tells which of them a gate has seen, under another name.
const detached = "0"

// open returns the names of all transactions that are open: the connection and the second of the start.
// Two of one connection and second have one name, which only makes a gate wait for the second one too.
//
// The list is a cache, which the server renews only after 0.1 s without a read of it. A list is
// taken for current only if it has this very query, which has a number of its own. A lock of the
// server keeps feeds from reading in each other's 0.1 s; nothing but the time that they take
// depends on it.
func (m innoDB) open(ctx context.Context, db session) (names map[string]struct{}, all bool, err error) {
	var locked sql.NullBool
	if err := db.QueryRowContext(ctx, "SELECT GET_LOCK('snowkey feed', 5)").Scan(&locked); err != nil {
		return nil, false, err
	}
	if locked.Bool {
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, _ = hasRow(ctx, db, "SELECT RELEASE_LOCK('snowkey feed')") // or the connection has ended, and the lock with it
		}()
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = tx.Rollback() }() // it has written nothing
	var closed int64                     // a read of InnoDB begins the transaction there
	if err := tx.QueryRowContext(ctx, "SELECT closed FROM "+m.fence).Scan(&closed); err != nil {
		return nil, false, err
	}
	for range 100 {
		mark := fmt.Sprintf("feed:%016x", rand.Uint64())
		list, err := list[string](ctx, tx, "SELECT CASE WHEN trx_query LIKE '%"+mark+"%' AND trx_mysql_thread_id = CONNECTION_ID() THEN 'own'"+
			" WHEN trx_mysql_thread_id = 0 THEN '"+detached+"' ELSE CONCAT(trx_mysql_thread_id, ' ', trx_started) END FROM information_schema.innodb_trx")
		if dialect.Numbered(err, accessDenied) {
			return nil, false, fmt.Errorf("%w: the list of transactions needs the privilege PROCESS: %w", ErrUnknownHorizon, err)
		}
		if err != nil {
			return nil, false, err
		}
		names := setOf(list)
		if _, ok := names["own"]; ok {
			delete(names, "own")
			_, some := names[detached]
			return names, !some, nil
		}
		if err := wait.Sleep(ctx, 101*time.Millisecond+rand.N(20*time.Millisecond)); err != nil {
			return nil, false, err
		}
	}
	return nil, false, fmt.Errorf("%w: another program reads innodb_trx so often that the server does not renew it", ErrUnknownHorizon)
}

func setOf(names []string) map[string]struct{} {
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
}
