package feed

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/snowkey/snowkey/types"
)

// postgreSQL keeps the fence in a sequence, because every transaction reads the current value of one,
// whatever its snapshot, and without a lock.
//
// A writer gets its transaction ID W first, and then reads the fence. The feed raises the fence first,
// and then gets an ID X of its own, in a transaction that ends. A writer that has read the old value
// therefore has W < X, and a later snapshot has W in its list until the transaction has ended, prepared ones
// included. When all of that list below X are gone, a writer that comes later reads the new value.
//
// A snapshot without X would be wrong: its list ends at the last ID that has ended, and W can be above it.
type postgreSQL struct{ names }

func (p postgreSQL) statements() []string {
	return []string{
		"CREATE TABLE IF NOT EXISTS " + p.readers + " (feed bigint PRIMARY KEY, closed bigint NOT NULL)",
		"INSERT INTO " + p.readers + " VALUES (0, 0), (1, 0) ON CONFLICT DO NOTHING",
		"CREATE SEQUENCE IF NOT EXISTS " + p.fence,
		"GRANT SELECT ON SEQUENCE " + p.fence + " TO PUBLIC",
		"CREATE OR REPLACE FUNCTION " + p.fence + "() RETURNS trigger LANGUAGE plpgsql AS $$\n" +
			"DECLARE\n  closed bigint;\nBEGIN\n" +
			"  IF TG_OP = 'UPDATE' THEN\n    IF NEW." + p.column + " = OLD." + p.column + " THEN\n      RETURN NEW;\n    END IF;\n  END IF;\n" +
			"  PERFORM pg_catalog.pg_current_xact_id(); -- before the fence is read\n" +
			"  SELECT last_value INTO closed FROM " + p.fence + ";\n" +
			// An upsert comes here before it finds its row.
			"  IF NEW." + p.column + " < closed AND NOT EXISTS (SELECT FROM " + p.table + " WHERE " + p.column + " = NEW." + p.column + ") THEN\n" +
			"    RAISE EXCEPTION '" + refusal + "' USING ERRCODE = 'check_violation', DETAIL = 'key ' || NEW." + p.column + " || ', horizon ' || closed;\n" +
			"  END IF;\n  RETURN NEW;\nEND\n$$",
		// Triggers run in the order of their names: this is the last, so that none changes the key after it.
		"CREATE OR REPLACE TRIGGER zz_feed BEFORE INSERT OR UPDATE ON " + p.table + " FOR EACH ROW EXECUTE FUNCTION " + p.fence + "()",
		// Rows of a subscription too.
		"DO $$\nDECLARE\n  part regclass;\nBEGIN\n  FOR part IN SELECT tgrelid FROM pg_catalog.pg_trigger WHERE tgfoid = '" + p.fence + "'::regproc LOOP\n" +
			"    EXECUTE 'ALTER TABLE ' || part || ' ENABLE ALWAYS TRIGGER zz_feed';\n  END LOOP;\nEND\n$$",
	}
}

func (p postgreSQL) check(ctx context.Context, db session) error {
	var standby, readers bool
	if err := db.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), to_regclass($1) IS NOT NULL", p.names.readers).Scan(&standby, &readers); err != nil {
		return err
	}
	switch {
	case standby:
		return fmt.Errorf("%w: Config.DB is a standby, which does not know the transactions of its primary; use the primary, and Config.Replica for the rows", ErrUnknownHorizon)
	case !readers:
		return fmt.Errorf("%w: there is no table %s; call Install", ErrUnknownHorizon, p.names.readers)
	}
	// Partitions, and other tables that inherit. A foreign table takes rows that no trigger here sees.
	open, err := list[string](ctx, db, "WITH RECURSIVE tree(id) AS (SELECT to_regclass($1)::oid UNION ALL SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = id)"+
		" SELECT coalesce(id::regclass::text, 'the table') FROM tree LEFT JOIN pg_class ON pg_class.oid = id WHERE relkind IS DISTINCT FROM 'p' AND NOT (relkind IS NOT DISTINCT FROM 'r' AND EXISTS"+
		" (SELECT FROM pg_trigger WHERE tgrelid = id AND tgfoid = to_regproc($2) AND tgenabled = 'A' AND tgtype = 23)) LIMIT 1", p.table, p.names.fence)
	if err != nil {
		return err
	}
	if len(open) > 0 {
		return fmt.Errorf("%w: %s has no fence, or one that is not ENABLE ALWAYS; call Install", ErrUnknownHorizon, open[0])
	}
	return nil
}

func (p postgreSQL) now(ctx context.Context, db session) (time.Time, error) {
	var micros int64
	err := db.QueryRowContext(ctx, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").Scan(&micros)
	return time.UnixMicro(micros), err
}

// begin wants READ COMMITTED, so that what follows sees what the transaction before has written.
func (p postgreSQL) begin(ctx context.Context, db session) (*sql.Tx, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return nil, err
	}
	_, err = tx.ExecContext(ctx, "SELECT set_config('synchronous_commit', 'on', true)")
	if err == nil {
		_, err = tx.ExecContext(ctx, "SELECT FROM "+p.readers+" WHERE feed = 0 FOR UPDATE")
	}
	if err != nil {
		_ = tx.Rollback() // it has written nothing
		return nil, err
	}
	return tx, nil
}

func (p postgreSQL) raise(ctx context.Context, tx *sql.Tx, key types.Snowflake) (after types.Snowflake, err error) {
	// Also if it stays: the commit then waits until an earlier setval is durable.
	err = tx.QueryRowContext(ctx, "SELECT setval('"+p.fence+"', greatest(last_value, $1)) FROM "+p.fence, int64(key)).Scan((*int64)(&after))
	return after, err
}

func (p postgreSQL) open(ctx context.Context, db session) (map[string]struct{}, bool, error) {
	var x int64
	if err := db.QueryRowContext(ctx, "SELECT pg_current_xact_id()::text::bigint").Scan(&x); err != nil {
		return nil, false, err
	}
	ids, err := list[string](ctx, db, "SELECT id::text FROM pg_snapshot_xip(pg_current_snapshot()) AS id WHERE id::text::bigint < $1", x)
	return setOf(ids), true, err
}

// ship notes how far the replica has to get for key to be its horizon too. Every commit that has
// settled is before that place in the log, also if synchronous_commit was off.
func (f *Feed) ship(ctx context.Context, primary session, key types.Snowflake) error {
	s := shipped{key: key}
	if err := primary.QueryRowContext(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&s.lsn); err != nil {
		return err
	}
	f.passed = append(f.passed, s)
	return nil
}

// replayed moves the horizon to where the replica is.
func (f *Feed) replayed(ctx context.Context, primary session, replica *sql.Tx) error {
	const identity = "SELECT system_identifier FROM pg_control_system()"
	var own, other, lsn int64
	var standby bool
	if err := primary.QueryRowContext(ctx, identity).Scan(&own); err != nil {
		return err
	}
	err := replica.QueryRowContext(ctx, "SELECT pg_is_in_recovery(), coalesce((pg_last_wal_replay_lsn() - '0/0')::bigint, 0), ("+identity+")").Scan(&standby, &lsn, &other)
	switch {
	case err != nil:
		return err
	case !standby || own != other:
		return fmt.Errorf("%w: Config.Replica is no standby of Config.DB", ErrUnknownHorizon)
	case lsn < f.lsn:
		return fmt.Errorf("%w: Config.Replica is another standby than before, and behind that one; use a single one", ErrUnknownHorizon)
	}
	for len(f.passed) > 0 && f.passed[0].lsn <= lsn {
		f.horizon, f.lsn, f.passed = f.passed[0].key, f.passed[0].lsn, f.passed[1:]
	}
	return nil
}
