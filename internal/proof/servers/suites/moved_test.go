package servers

import (
	"context"
	"path/filepath"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

type movedOrder struct {
	ID     types.Snowflake
	Number string
}

// docs/existing.md says that a table needs no setval after its rows were copied from SQLite.
func TestRowsCopiedFromSQLiteNeedNoSetvalOnPostgreSQL(t *testing.T) {
	open := func(dialector gorm.Dialector, table string) *gorm.DB {
		t.Helper()
		db, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard})
		must(t, err)
		pool, err := db.DB()
		must(t, err)
		t.Cleanup(func() { _ = pool.Close() })
		gen, err := snowkey.Open(t.Context(), pool, snowkey.Config{Table: table})
		must(t, err)
		t.Cleanup(func() { _ = gen.Close(context.WithoutCancel(t.Context())) })
		must(t, db.Use(gormplugin.New(gen)))
		must(t, db.AutoMigrate(&movedOrder{}))
		return db
	}
	g := wayTo("pgx").target(t)
	from := open(sqlite.Open(filepath.Join(t.TempDir(), "shop.db")), "")
	rows := []movedOrder{{ID: 1, Number: "counted"}, {ID: 2, Number: "counted"}}
	must(t, from.Create(&rows).Error)
	made := make([]movedOrder, 5)
	must(t, from.Create(&made).Error)
	var stored []map[string]any
	must(t, from.Table("moved_orders").Order("id").Find(&stored).Error)

	to := open(postgres.New(postgres.Config{Conn: g.open(t)}), g.config(sqllease.DefaultTable).Table)
	for _, row := range stored {
		must(t, to.Exec("INSERT INTO moved_orders (id, number) VALUES (?, ?)", row["id"], row["number"]).Error)
	}
	fresh := make([]movedOrder, 5)
	must(t, to.Create(&fresh).Error)
	var all []types.Snowflake
	must(t, to.Table("moved_orders").Order("id").Pluck("id", &all).Error)
	if len(all) != 12 || all[0] != 1 || all[6] != made[4].ID || fresh[0].ID <= made[4].ID || all[11] != fresh[4].ID {
		t.Errorf("after the copy the keys are %d; want the 7 that were copied, and 5 above them", all)
	}
}
