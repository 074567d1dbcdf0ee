package servers

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/servertest"
)

// TiDB keeps a table, or each of its partitions, in the order of the key, cut into regions. Keys
// that rise therefore go to one region at a time, however many SPLIT TABLE has made ahead of
// them. Partitions are written side by side. By HASH (id), which is id % 16, they need keys with a
// shard: the low bits of others are those of the sequence, which is 0 in most ticks of a program
// that is not busy.
func TestRisingKeysOnTiDBArePartitionedByTheirShardOrByKey(t *testing.T) {
	db := openSqlx(t, "mysql", mysqlDatabase(t, servertest.MySQL(t)))
	if !isTiDB(t, db.DB) {
		t.Skip("regions are TiDB's")
	}
	sharded := core.Default()
	sharded.ShardBits = 4
	for _, c := range []struct {
		name, partition string
		layout          core.Layout
		least, most     int // rows of a partition
	}{
		{"by_hash", "HASH (id)", core.Default(), 0, 20_000},
		{"by_key", "KEY (id)", core.Default(), 1_000, 1_500},
		{"by_shard", "HASH (id)", sharded, 1_000, 1_500},
	} {
		if _, err := db.Exec("CREATE TABLE " + c.name + " (id BIGINT PRIMARY KEY) PARTITION BY " + c.partition + " PARTITIONS 16"); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		keys := make([]string, 20_000)
		for i := range keys {
			p := core.Parts{Time: c.layout.Epoch.AddDate(1, 0, 0).Add(time.Duration(i) * 3 * time.Millisecond), Worker: int64(i % 4)}
			if c.layout.ShardBits > 0 {
				p.Shard = random.Int64N(1 << c.layout.ShardBits)
			}
			id, err := c.layout.Compose(p)
			if err != nil {
				t.Fatal(err)
			}
			keys[i] = "(" + id.String() + ")"
		}
		for len(keys) > 0 {
			if _, err := db.Exec("INSERT INTO " + c.name + " VALUES " + strings.Join(keys[:1000], ",")); err != nil {
				t.Fatal(err)
			}
			keys = keys[1000:]
		}
		least, most := 20_000, 0
		for n := range 16 {
			var rows int
			if err := db.Get(&rows, fmt.Sprintf("SELECT COUNT(*) FROM %s PARTITION (p%d)", c.name, n)); err != nil {
				t.Fatal(err)
			}
			least, most = min(least, rows), max(most, rows)
		}
		t.Logf("%s, shard bits %d: %d to %d rows in each of 16 partitions", c.partition, c.layout.ShardBits, least, most)
		if least < c.least || most > c.most || c.least == 0 && most != c.most {
			t.Errorf("%s, shard bits %d: %d to %d rows in each of 16 partitions; want %d to %d", c.partition, c.layout.ShardBits, least, most, c.least, c.most)
		}
	}
	// The key is the table, so a split names keys, such as those of the next hour.
	if _, err := db.Exec("CREATE TABLE split (id BIGINT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	var made struct {
		Regions   int     `db:"TOTAL_SPLIT_REGION"`
		Scattered float64 `db:"SCATTER_FINISH_RATIO"`
	}
	from, to := core.Default().Min(at), core.Default().Min(at.Add(time.Hour))
	if err := db.Get(&made, fmt.Sprintf("SPLIT TABLE split BETWEEN (%d) AND (%d) REGIONS 8", from, to)); err != nil || made.Regions != 7 {
		t.Errorf("SPLIT TABLE = %+v, %v; want 7 regions more", made, err)
	}
}
