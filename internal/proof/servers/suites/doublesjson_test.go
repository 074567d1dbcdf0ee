package servers

import (
	"testing"

	"gorm.io/datatypes"
	"gorm.io/driver/mysql"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// A column of JSON has strings, and SQL compares a key as a number, which equals no
// string.
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
