package servers

import (
	"flag"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

var shardRows = flag.Int("shards.rows", 40_000, "how many rows each index of keys with shards has")

// An index of keys whose low bits are the shard is written at its end, as one of plain keys: the
// database has no more log and no emptier pages. With the shard in the high bits, every shard has
// an end of its own, and random keys are written everywhere.
func TestShardsInTheLowBitsCostTheIndexNothing(t *testing.T) {
	t.Parallel()
	dsn, _ := servertest.StartPostgreSQL(t, "max_wal_size=4GB", "synchronous_commit=off", "autovacuum=off")
	db := openSqlx(t, "pgx", dsn)
	l := core.Default()
	l.ShardBits = 8
	same := func(id types.Snowflake) types.Snowflake { return id }
	low := walOfRows(t, db, "shard_low", l, same)
	plain := walOfRows(t, db, "plain", core.Default(), same)
	high := walOfRows(t, db, "shard_high", l, func(id types.Snowflake) types.Snowflake { return id>>8 | id&255<<55 })
	random := walOfRows(t, db, "random", l, func(types.Snowflake) types.Snowflake { return types.Snowflake(rand.Int64()) })
	t.Logf("MB of log with plain keys: %.1f; with shards: %.1f; with shards in the high bits: %.1f; with random keys: %.1f", plain, low, high, random)
	if low > plain*1.05 {
		t.Errorf("with shards in the low bits, the log has %.1f MB; want what it has of plain keys, %.1f", low, plain)
	}
	if random < plain*1.1 {
		t.Errorf("of random keys the log has %.1f MB, and %.1f of plain ones: the test sees no difference", random, plain)
	}
}

// walOfRows returns the MB of log that rows take, whose keys are four generators', with checkpoints in
// between.
func walOfRows(t *testing.T, db *sqlx.DB, table string, l core.Layout, change func(types.Snowflake) types.Snowflake) (mb float64) {
	t.Helper()
	execSqlx(t, db, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), note text NOT NULL)")
	const rounds, batch = 4, 250
	var before string
	must(t, db.Get(&before, "SELECT pg_current_wal_insert_lsn()::text"))
	var writers sync.WaitGroup
	for range rounds {
		execSqlx(t, db, "CHECKPOINT")
		for worker := range int64(4) {
			writers.Go(func() {
				g, err := core.New(core.Config{Layout: l, Worker: core.StaticWorker(900 + worker)})
				for i := 0; i < *shardRows/4/rounds/batch && err == nil; i++ {
					ids := make([]types.Snowflake, batch)
					err = g.Fill(t.Context(), ids)
					for i := range ids {
						ids[i] = change(ids[i])
					}
					if err == nil {
						_, err = db.ExecContext(t.Context(), "INSERT INTO "+table+" (id, note) SELECT unnest($1::bigint[]), 'an order'", ids)
					}
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := g.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
	}
	must(t, db.Get(&mb, "SELECT (pg_current_wal_insert_lsn() - $1::pg_lsn) / 1e6", before))
	return mb
}
