package servers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
)

// TiDB keeps a table, or each of its partitions, in the order of the key, cut into regions. Keys
// that rise therefore go to one region at a time, however many SPLIT TABLE has made ahead of
// them. Partitions are written side by side. By HASH (id), which is id % 16, they need keys with a
// shard: other keys have their sequence in the low bits, which is 0 in most ticks of a program
// that is not busy. A table that is not clustered is in the order of a row ID, which has shards.
func TestRisingKeysOnTiDBArePartitionedByTheirShardOrByKey(t *testing.T) {
	db := openSqlx(t, "mysql", wayTo("MySQL").place(t).dsn)
	if !isTiDB(t, db.DB) {
		t.Skip("regions are TiDB's")
	}
	const all, parts = 20_000, 16
	for _, c := range []struct {
		options     string
		shardBits   int
		places      int // with rows
		least, most int // rows of these
	}{
		{"PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 16", 0, 1, all, all},
		{"PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 16", 0, parts, 1_000, 1_500},
		{"PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 16", 4, parts, 1_000, 1_500},
		{"PRIMARY KEY NONCLUSTERED) SHARD_ROW_ID_BITS = 4 PRE_SPLIT_REGIONS = 4", 0, parts, 500, 2_500},
	} {
		if _, err := db.Exec("CREATE TABLE places (id BIGINT " + c.options); err != nil {
			t.Fatal(err)
		}
		l := core.Default()
		l.ShardBits = c.shardBits
		for chunk := range slices.Chunk(quietKeys(t, l, all), 50) {
			if _, err := db.Exec("INSERT INTO places VALUES " + strings.Join(chunk, ",")); err != nil {
				t.Fatal(err)
			}
		}
		var rows []int
		for n := range parts {
			where := fmt.Sprintf("places PARTITION (p%d)", n)
			if !strings.Contains(c.options, "PARTITION") {
				where = fmt.Sprintf("places WHERE _tidb_rowid >> 59 = %d", n)
			}
			var count int
			if err := db.Get(&count, "SELECT COUNT(*) FROM "+where); err != nil {
				t.Fatal(err)
			}
			if count > 0 {
				rows = append(rows, count)
			}
		}
		least, most := slices.Min(rows), slices.Max(rows)
		t.Logf("%s, shard bits %d: %d places with %d to %d rows", c.options, c.shardBits, len(rows), least, most)
		if len(rows) != c.places || least < c.least || most > c.most {
			t.Errorf("%s, shard bits %d: %d places with %d to %d rows; want %d with %d to %d", c.options, c.shardBits, len(rows), least, most, c.places, c.least, c.most)
		}
		if _, err := db.Exec("DROP TABLE places"); err != nil {
			t.Fatal(err)
		}
	}
	// The key is the table, so a split names keys, such as those of the next hour.
	if _, err := db.Exec("CREATE TABLE split (id BIGINT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	var made struct {
		Regions   int     `db:"TOTAL_SPLIT_REGION"`
		Scattered float64 `db:"SCATTER_FINISH_RATIO"`
	}
	from, to := core.Default().Min(now), core.Default().Min(now.Add(time.Hour))
	if err := db.Get(&made, fmt.Sprintf("SPLIT TABLE split BETWEEN (%d) AND (%d) REGIONS 8", from, to)); err != nil || made.Regions != 7 {
		t.Errorf("SPLIT TABLE = %+v, %v; want 7 regions more", made, err)
	}
}

// quietKeys returns keys of four processes that make one in three milliseconds together, each as a
// row of VALUES. Shards are random.
func quietKeys(t *testing.T, l core.Layout, n int) []string {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	keys := make([]string, n)
	for i := range keys {
		p := core.Parts{Time: l.Epoch.AddDate(1, 0, 0).Add(time.Duration(i) * 3 * time.Millisecond), Worker: int64(i % 4)}
		if l.ShardBits > 0 {
			p.Shard = random.Int64N(1 << l.ShardBits)
		}
		id, err := l.Compose(p)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = "(" + id.String() + ")"
	}
	return keys
}
