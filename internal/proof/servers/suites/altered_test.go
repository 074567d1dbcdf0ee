package servers

import (
	"fmt"
	"slices"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/types"
)

// PostgreSQL refuses a prepared SELECT whose columns have got other types: "cached plan
// must not change result type". pgx keeps SELECTs prepared on each connection.
func TestTypesThatChangeCostNoCallOfGORM(t *testing.T) {
	t.Parallel()
	type altered struct {
		ID   types.Snowflake
		Code string `gorm:"size:20;uniqueIndex"`
		Name string `gorm:"size:20;uniqueIndex"`
	}
	for name, config := range map[string]gorm.Config{
		"plain": {}, "prepared": {PrepareStmt: true}, "on the pool": {SkipDefaultTransaction: true}, "prepared on the pool": {PrepareStmt: true, SkipDefaultTransaction: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config.Logger = logger.Discard
			pool := sqlxOn(t, "pgx").DB
			pool.SetMaxOpenConns(1)
			db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool.DB}), &config)
			must(t, err)
			must(t, db.Use(newPlugin()))
			must(t, db.AutoMigrate(&altered{}))
			var want []types.Snowflake
			upsert := func(n int) {
				t.Helper()
				rows := make([]altered, n)
				for i := range rows {
					rows[i].Code, rows[i].Name = fmt.Sprint("c", i), fmt.Sprint("n", i)
				}
				err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&rows).Error
				var keys []types.Snowflake
				for _, r := range rows {
					keys = append(keys, r.ID)
				}
				if want == nil {
					want = keys
				}
				if err != nil || !slices.Equal(keys, want[:n]) {
					t.Errorf("Create(%d rows) = %v, keys %v; want nil, %v", n, err, keys, want[:n])
				}
			}
			sizes := []int{60, 1, 2, 25}
			for _, n := range sizes {
				upsert(n)
			}
			for _, ddl := range []string{"id TYPE numeric(20)", "code TYPE text", "id TYPE bigint", "name TYPE text"} {
				execSqlx(t, pool, "ALTER TABLE altereds ALTER "+ddl)
				for _, n := range sizes {
					upsert(n)
				}
			}
		})
	}
}
