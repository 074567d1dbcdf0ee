package servers

import (
	"flag"
	"fmt"
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
	dsn, _ := servertest.StartPostgreSQL(t, "max_wal_size=4GB", "synchronous_commit=off", "autovacuum=off")
	db := openSqlx(t, "pgx", dsn)
	execSqlx(t, db, "CREATE EXTENSION pgstattuple")
	l := core.Default()
	l.ShardBits = 8
	plain := func(g *core.Generator, ids []types.Snowflake) error { return g.Fill(t.Context(), ids) }
	measured := map[string]indexed{}
	for _, kind := range []struct {
		name   string
		layout core.Layout
		change func(types.Snowflake) types.Snowflake
	}{
		{"plain", core.Default(), nil},
		{"shard_low", l, nil},
		{"shard_high", l, func(id types.Snowflake) types.Snowflake { return id>>8 | id&255<<55 }},
		{"random", core.Default(), func(types.Snowflake) types.Snowflake { return types.Snowflake(rand.Int64()) }},
	} {
		measured[kind.name] = fillIndex(t, db, kind.name, kind.layout, func(g *core.Generator, ids []types.Snowflake) error {
			err := plain(g, ids)
			for i := range ids {
				if kind.change != nil {
					ids[i] = kind.change(ids[i])
				}
			}
			return err
		})
		t.Logf("%-10s %+v", kind.name, measured[kind.name])
	}
	if low, plain := measured["shard_low"], measured["plain"]; low.wal > plain.wal*1.05 {
		t.Errorf("with shards %+v; want what plain keys have, %+v", low, plain)
	}
	if random, plain := measured["random"], measured["plain"]; random.wal < plain.wal*1.1 {
		t.Errorf("random keys %+v beside plain ones %+v: the test sees no difference", random, plain)
	}
}

// An indexed is what the rows of a table cost.
type indexed struct {
	wal    float64 // MB
	images int64   // of pages in it
	leaf   float64 // how full the leaves of the index are, %
}

// fillIndex inserts rows from four processes' generators, with checkpoints in between.
func fillIndex(t *testing.T, db *sqlx.DB, table string, l core.Layout, fill func(*core.Generator, []types.Snowflake) error) (got indexed) {
	t.Helper()
	rounds, batches := 4, *shardRows/4/4/250
	execSqlx(t, db, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), note text NOT NULL)")
	var generators [4]*core.Generator
	for i := range generators {
		g, err := core.New(core.Config{Layout: l, Worker: core.StaticWorker(int64(900 + i))})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Close(t.Context()) }()
		generators[i] = g
	}
	before := walOf(t, db)
	for range rounds {
		execSqlx(t, db, "CHECKPOINT")
		var writers sync.WaitGroup
		for _, g := range generators {
			writers.Go(func() {
				for range batches {
					ids := make([]types.Snowflake, 250)
					if err := fill(g, ids); err != nil {
						t.Error(err)
						return
					}
					if _, err := db.ExecContext(t.Context(), "INSERT INTO "+table+" (id, note) SELECT unnest($1::bigint[]), 'an order'", ids); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		writers.Wait()
	}
	after := walOf(t, db)
	got.wal, got.images = after.wal-before.wal, after.images-before.images
	if err := db.QueryRowContext(t.Context(), "SELECT avg_leaf_density FROM pgstatindex($1)", table+"_pkey").Scan(&got.leaf); err != nil {
		t.Fatal(err)
	}
	var rows int
	want := 4 * 250 * rounds * batches
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows); err != nil || rows != want {
		t.Fatalf("%s has %d rows, %v; want %d", table, rows, err, want)
	}
	return got
}

func walOf(t *testing.T, db *sqlx.DB) (w indexed) {
	t.Helper()
	var major int
	if err := db.QueryRowContext(t.Context(), "SELECT current_setting('server_version_num')::int / 10000").Scan(&major); err != nil {
		t.Fatal(err)
	}
	images := "0"
	if major >= 14 {
		images = "(SELECT wal_fpi FROM pg_stat_wal)"
	}
	query := fmt.Sprintf("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn, %s", images)
	var bytes int64
	if err := db.QueryRowContext(t.Context(), query).Scan(&bytes, &w.images); err != nil {
		t.Fatal(err)
	}
	w.wal = float64(bytes) / 1e6
	return w
}
