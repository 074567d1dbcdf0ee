package servers

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"gorm.io/datatypes"
	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// A column of JSON has strings, and the number that a key is for SQL is none of them.
func TestAKeyIsInAColumnOfJSONAsItsText(t *testing.T) {
	type readers struct {
		ID      types.Snowflake
		Readers datatypes.JSONSlice[types.Snowflake]
	}
	for name, dialector := range map[string]func(t *testing.T) gorm.Dialector{
		"SQLite":  func(*testing.T) gorm.Dialector { return sqlite.Open(":memory:") },
		"MariaDB": func(t *testing.T) gorm.Dialector { return mysql.Open(servertest.MariaDB(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			db, err := gorm.Open(dialector(t), &gorm.Config{Logger: logger.Discard})
			must(t, err)
			pool, err := db.DB()
			must(t, err)
			pool.SetMaxOpenConns(1) // a temporary table belongs to a connection
			defer func() { _ = pool.Close() }()
			db = db.Table("snowkey_readers")
			must(t, db.Exec("CREATE TEMPORARY TABLE snowkey_readers (id BIGINT PRIMARY KEY, readers JSON)").Error)
			row := readers{redisID, []types.Snowflake{redisID + 1, redisID + 2}}
			must(t, db.Session(&gorm.Session{}).Create(&row).Error)
			for want, value := range []any{redisID + 1, (redisID + 1).String()} {
				var found []readers
				err := db.Session(&gorm.Session{}).Find(&found, datatypes.JSONArrayQuery("readers").Contains(value)).Error
				if err != nil || len(found) != want {
					t.Errorf("Contains(%T) finds %d rows, %v; want %d", value, len(found), err, want)
				}
			}
		})
	}
}

// Redis keeps a score as a double, so that neighbours have one, and a page by score misses rows. As
// members of one score, the texts of Base32 are in the order of the keys, however long they are.
func TestScoresOfRedisRoundKeys(t *testing.T) {
	client, set := redisHash(t)
	ctx := t.Context()
	first := core.Default().Min(core.Default().Epoch.AddDate(2, 0, 0))
	var members []redis.Z
	for i := range types.Snowflake(200) {
		members = append(members, redis.Z{Score: float64(first + i), Member: (first + i).String()})
	}
	must(t, client.ZAdd(ctx, set, members...).Err())
	stored, err := client.ZRangeWithScores(ctx, set, 0, -1).Result()
	must(t, err)
	scores := map[float64]int{}
	for _, z := range stored {
		scores[z.Score]++
	}
	if len(stored) != 200 || len(scores) > 10 {
		t.Errorf("%d keys have %d scores; want 200 keys, and at most 10", len(stored), len(scores))
	}
	after := strconv.FormatFloat(stored[99].Score, 'f', -1, 64)
	page, err := client.ZRangeByScore(ctx, set, &redis.ZRangeBy{Min: "(" + after, Max: "+inf", Count: 100}).Result()
	must(t, err)
	if want := 88; len(page) != want {
		t.Errorf("the page by score after the 100th of 200 has %d members; want %d of the other 100", len(page), want)
	}

	must(t, client.Del(ctx, set).Err())
	keys := []types.Snowflake{9, 10} // counted before
	for i := range types.Snowflake(200) {
		keys = append(keys, first+i)
	}
	keys = append(keys, core.Default().Max(time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC))) // a digit longer
	var texts []string
	for _, key := range keys {
		texts = append(texts, key.Base32())
		must(t, client.ZAdd(ctx, set, redis.Z{Member: key.Base32()}).Err())
	}
	for i := range keys {
		page, err := client.ZRangeByLex(ctx, set, &redis.ZRangeBy{Min: "(" + texts[i], Max: "+", Count: 100}).Result()
		must(t, err)
		if rest := texts[i+1:]; !slices.Equal(page, rest[:min(100, len(rest))]) {
			t.Fatalf("the page by lex after %s has %d members that are not the next ones in order", keys[i], len(page))
		}
	}
}
