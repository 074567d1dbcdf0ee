package servers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type altered struct {
	types.Model
	Code  string `db:"code"`
	N     int    `db:"n"`
	Extra string `db:"extra"`
}

// PostgreSQL refuses a prepared SELECT whose columns have got other types: "cached plan
// must not change result type". pgx keeps SELECTs prepared on each connection.
func TestTypesThatChangeCostNoCallOfSqlx(t *testing.T) {
	t.Parallel()
	for _, mode := range waysTo("PostgreSQL") {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			d := mode.place(t).sqlx(t)
			const connections = 3
			d.DB.SetMaxOpenConns(connections)
			d.DB.SetMaxIdleConns(connections)
			execSqlx(t, d.DB, "CREATE TABLE altered (id bigint PRIMARY KEY, code varchar(20) UNIQUE, n int, extra varchar(20))")
			h := sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.OnConflictUpdate("n"), sqlxhelper.ConflictTarget("code"), sqlxhelper.Returning("n", "extra"))
			upsert := func(db sqlxhelper.DB, i int) error {
				rows := []altered{{Code: "a", N: i}, {Code: fmt.Sprint("b", i), N: i}}
				if err := h.InsertMany(t.Context(), db, "altered", rows); err != nil {
					return err
				}
				if rows[0].ID != 1 || rows[0].N != i || rows[1].N != i {
					t.Errorf("rows = %+v; want key 1 first, and n %d", rows, i)
				}
				return nil
			}
			next := 0
			// On all connections at once, so that none is left with its old plans.
			everywhere := func(inTx bool) {
				t.Helper()
				next++
				var txs []*sqlx.Tx
				for range connections {
					txs = append(txs, d.DB.MustBegin())
				}
				for _, tx := range txs {
					if err := upsert(tx, next); err != nil && inTx {
						t.Errorf("InsertMany(in a transaction) = %v; want nil", err)
					}
					if err := tx.Commit(); err != nil {
						t.Error(err)
					}
				}
			}
			everywhere(true)
			for i, ddl := range []string{"n TYPE bigint", "extra TYPE text", "n TYPE numeric(20)", "id TYPE numeric(20)"} {
				execSqlx(t, d.DB, "ALTER TABLE altered ALTER "+ddl)
				if i%2 == 0 {
					everywhere(true)
					continue
				}
				next++
				for range 2 * connections {
					if err := upsert(d.DB, next); err != nil {
						t.Errorf("InsertMany(after %s) = %v; want nil", ddl, err)
					}
				}
			}
		})
	}
}

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
