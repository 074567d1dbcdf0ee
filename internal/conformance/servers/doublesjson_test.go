package servers

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"gorm.io/datatypes"
	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/servertest"
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
			if err != nil {
				t.Fatal(err)
			}
			pool, err := db.DB()
			if err != nil {
				t.Fatal(err)
			}
			pool.SetMaxOpenConns(1) // a temporary table belongs to a connection
			defer func() { _ = pool.Close() }()
			db = db.Table("snowkey_readers")
			if err := db.Exec("CREATE TEMPORARY TABLE snowkey_readers (id BIGINT PRIMARY KEY, readers JSON)").Error; err != nil {
				t.Fatal(err)
			}
			row := readers{redisID, []types.Snowflake{redisID + 1, redisID + 2}}
			if err := db.Session(&gorm.Session{}).Create(&row).Error; err != nil {
				t.Fatal(err)
			}
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

// Redis keeps a score as a double, so that neighbours have one.
func TestScoresOfRedisRoundKeys(t *testing.T) {
	client, set := redisHash(t)
	ctx := t.Context()
	first := core.Default().Min(core.Default().Epoch.AddDate(2, 0, 0))
	var members []redis.Z
	for i := range types.Snowflake(200) {
		members = append(members, redis.Z{Score: float64(first + i), Member: (first + i).String()})
	}
	if err := client.ZAdd(ctx, set, members...).Err(); err != nil {
		t.Fatal(err)
	}
	stored, err := client.ZRangeWithScores(ctx, set, 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	scores := map[float64]int{}
	for _, z := range stored {
		scores[z.Score]++
	}
	if len(stored) != 200 || len(scores) > 10 {
		t.Errorf("%d keys have %d scores; want 200 keys, and so few scores that a page by score misses rows", len(stored), len(scores))
	}
	// By their texts, members with one score are in order, as long as all have as many digits.
	if err := client.Del(ctx, set).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range members {
		members[i].Score = 0
	}
	if err := client.ZAdd(ctx, set, members...).Err(); err != nil {
		t.Fatal(err)
	}
	page, err := client.ZRangeByLex(ctx, set, &redis.ZRangeBy{Min: "(" + (first + 99).String(), Max: "+", Count: 100}).Result()
	if err != nil || len(page) != 100 || page[0] != (first+100).String() || page[99] != (first+199).String() {
		t.Errorf("the page after the 100th by lex has %d members, %v; want the other 100 in order", len(page), err)
	}
}
