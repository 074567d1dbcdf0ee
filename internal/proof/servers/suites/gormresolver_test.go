package servers

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// An empty replica stands for one that lags. Whatever the plugin reads there is
// missing.
func TestGormPluginStandsBesideTheResolver(t *testing.T) {
	t.Parallel()
	for _, target := range gormTargets {
		for _, resolverFirst := range []bool{true, false} {
			for _, skip := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s resolver first %v without transaction %v", target.name, resolverFirst, skip), func(t *testing.T) {
					t.Parallel()
					db := besideResolver(t, target, resolverFirst, skip)
					first := box{Name: "A"}
					must(t, db.Create(&first).Error)
					var n int64
					must(t, db.Model(&box{}).Count(&n).Error)
					if n != 0 {
						t.Fatalf("boxes that a query sees = %d; want 0, since it asks the replica", n)
					}
					// The boxes are counted where they are stored.
					source := db.Clauses(dbresolver.Write).Session(&gorm.Session{})
					for i, with := range []clause.Expression{
						clause.OnConflict{DoNothing: true},
						clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoNothing: true},
						clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, DoUpdates: clause.AssignmentColumns([]string{"note"})},
					} {
						list := []box{{Name: fmt.Sprint(i), Things: []thing{{Name: "x"}}}, {Name: "A", Things: []thing{{Name: "y"}}}}
						must(t, db.Clauses(with).Create(&list).Error)
						if list[1].ID != first.ID || *list[1].Things[0].BoxID != first.ID {
							t.Errorf("key after %#v = %d; want %d", with, list[1].ID, first.ID)
						}
						wantBox(t, source, fmt.Sprint(i), list[0].ID)
					}
					undone := box{Name: "undone", Things: []thing{{Name: "z"}}}
					back := errors.New("rolled back")
					err := db.Transaction(func(tx *gorm.DB) error {
						must(t, tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&undone).Error)
						again := box{Name: "A"}
						must(t, tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&again).Error)
						if again.ID != first.ID {
							t.Errorf("key in a transaction = %d; want %d", again.ID, first.ID)
						}
						return back
					})
					if !errors.Is(err, back) {
						t.Fatalf("Transaction = %v; want the error of its closure", err)
					}
					within := box{Name: "within"}
					must(t, gormplugin.InTx(t.Context(), db, nil, func(tx *gorm.DB) error { return tx.Create(&within).Error }))
					wantBox(t, source, "within", within.ID)
					id, child := undone.ID, undone.Things[0].ID
					must(t, db.Create(&undone).Error)
					if undone.ID != id || undone.Things[0].ID != child {
						t.Errorf("keys after a rollback = %d and %d; want %d and %d", undone.ID, undone.Things[0].ID, id, child)
					}
					wantBox(t, source, "undone", id)
					var refers []types.Snowflake
					must(t, source.Model(&thing{}).Where("name = ?", "y").Distinct().Pluck("box_id", &refers).Error)
					if len(refers) != 1 || refers[0] != first.ID {
						t.Errorf("boxes of the things y = %d; want %d alone", refers, first.ID)
					}
				})
			}
		}
	}
}

// besideResolver opens target with the plugin and a resolver, whose replica is
// empty.
func besideResolver(t *testing.T, target gormTarget, resolverFirst, skip bool) *gorm.DB {
	t.Helper()
	source, replica := target.dialector(t), target.dialector(t)
	for _, dialector := range []func() gorm.Dialector{source, replica} { // the tables
		withPlugin(t, opener(t, dialector)(&gorm.Config{Logger: logger.Discard}))
	}
	db := opener(t, source)(&gorm.Config{Logger: logger.Discard, SkipDefaultTransaction: skip})
	resolver := dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{replica()}})
	plugins := []gorm.Plugin{newPlugin(), resolver}
	if resolverFirst {
		plugins[0], plugins[1] = plugins[1], plugins[0]
	}
	for _, p := range plugins {
		must(t, db.Use(p))
	}
	t.Cleanup(func() { closeReplicas(t, db, resolver) })
	return db
}

// closeReplicas closes what the opener of db does not, which closes the source alone.
func closeReplicas(t *testing.T, db *gorm.DB, resolver *dbresolver.DBResolver) {
	t.Helper()
	must(t, resolver.Call(func(pool gorm.ConnPool) error {
		if closer, ok := pool.(*sql.DB); ok && pool != db.Config.ConnPool {
			return closer.Close()
		}
		return nil
	}))
}
