package servers

import (
	"fmt"
	"strings"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

type (
	// An affectedRow conflicts in its key and in two other columns.
	affectedRow struct {
		ID       types.Snowflake
		Name     string  `gorm:"size:40;uniqueIndex"`
		Code     *string `gorm:"size:40;uniqueIndex"`
		Note     string  `gorm:"size:40"`
		OtherID  types.NullSnowflake
		Other    *affectedOther
		Children []affectedChild `gorm:"foreignKey:RowID"`
	}
	affectedOther struct {
		ID   types.Snowflake
		Name string `gorm:"size:40;uniqueIndex"`
	}
	affectedChild struct {
		ID    types.Snowflake
		RowID types.Snowflake
		Name  string `gorm:"size:40"`
	}
	// An affectedFilled makes GORM ask for what the database fills, where it can.
	affectedFilled struct {
		ID    types.Snowflake
		Name  string `gorm:"size:40;uniqueIndex"`
		Note  string `gorm:"size:40"`
		Score int64  `gorm:"default:(3+4)"`
	}
	// An affectedPair has nothing that an upsert could update.
	affectedPair struct {
		ID     types.Snowflake
		Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
	}
)

var affectedModels = []any{&affectedOther{}, &affectedRow{}, &affectedChild{}, &affectedFilled{}, &affectedPair{}}

// An affectedCase is a statement whose RowsAffected a program reads. key returns a key that no
// row has, or zero where the plugin shall assign it.
type affectedCase struct {
	name string
	only string // the dialect that has it; empty: all
	run  func(db *gorm.DB, key func() types.Snowflake) *gorm.DB
}

// What the stored rows are named. The keys are below those that a source gives.
var affectedStored = map[string]types.Snowflake{"old1": 11, "old2": 12, "old3": 13}

func storeAffected(t *testing.T, db *gorm.DB) {
	t.Helper()
	for name, id := range affectedStored {
		must(t, db.Create(&affectedRow{ID: id, Name: name, Code: &name}).Error)
		must(t, db.Create(&affectedFilled{ID: id, Name: name}).Error)
		must(t, db.Create(&affectedOther{ID: id, Name: name}).Error)
		must(t, db.Create(&affectedPair{ID: id, Public: id}).Error)
	}
}

func affectedCases() (list []affectedCase) {
	target := []clause.Column{{Name: "name"}}
	set := clause.AssignmentColumns([]string{"note"})
	where := func(text string) clause.Where {
		return clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: text}}}
	}
	type with struct {
		name, only string
		clauses    []clause.Expression
	}
	upserts := []with{
		{"DO NOTHING", "", []clause.Expression{clause.OnConflict{DoNothing: true}}},
		{"DO NOTHING by name", "", []clause.Expression{clause.OnConflict{Columns: target, DoNothing: true}}},
		{"DO UPDATE", "", []clause.Expression{clause.OnConflict{Columns: target, DoUpdates: set}}},
		{"DO UPDATE of the target", "", []clause.Expression{clause.OnConflict{Columns: target, DoUpdates: clause.AssignmentColumns([]string{"name"})}}},
		{"DO UPDATE WHERE true", "", []clause.Expression{clause.OnConflict{Columns: target, DoUpdates: set, Where: where("1 = 1")}}},
		{"DO UPDATE WHERE false", "", []clause.Expression{clause.OnConflict{Columns: target, DoUpdates: set, Where: where("1 = 0")}}},
		{"UpdateAll", "", []clause.Expression{clause.OnConflict{Columns: target, UpdateAll: true}}},
		{"DO NOTHING RETURNING", "", []clause.Expression{clause.OnConflict{DoNothing: true}, clause.Returning{Columns: []clause.Column{{Name: "note"}}}}},
		{"DO UPDATE RETURNING", "", []clause.Expression{clause.OnConflict{Columns: target, DoUpdates: set}, clause.Returning{Columns: []clause.Column{{Name: "note"}}}}},
		{"DO UPDATE RETURNING *", "", []clause.Expression{clause.OnConflict{Columns: target, DoUpdates: set}, clause.Returning{}}},
		{"IGNORE", "mysql", []clause.Expression{clause.Insert{Modifier: "IGNORE"}}},
		{"OR IGNORE", "sqlite", []clause.Expression{clause.Insert{Modifier: "OR IGNORE"}}},
		{"OR REPLACE", "sqlite", []clause.Expression{clause.Insert{Modifier: "OR REPLACE"}}},
	}
	for _, names := range [][]string{{"new1"}, {"old1"}, {"new1", "new2"}, {"old1", "old2"}, {"old1", "new1", "old2", "new2", "new3"}} {
		rows := func(key func() types.Snowflake) (list []affectedRow) {
			for _, name := range names {
				list = append(list, affectedRow{ID: key(), Name: name, Note: "x"})
			}
			return list
		}
		filled := func(key func() types.Snowflake) (list []affectedFilled) {
			for _, name := range names {
				list = append(list, affectedFilled{ID: key(), Name: name, Note: "x"})
			}
			return list
		}
		maps := func(key func() types.Snowflake) (list []map[string]any) {
			for _, name := range names {
				m := map[string]any{"name": name, "note": "x"}
				if id := key(); id != 0 {
					m["id"] = id
				}
				list = append(list, m)
			}
			return list
		}
		add := func(of with, form string, run func(db *gorm.DB, key func() types.Snowflake) *gorm.DB) {
			list = append(list, affectedCase{fmt.Sprintf("%s of %s %s", of.name, form, names), of.only, func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
				return run(db.Clauses(of.clauses...), key)
			}})
		}
		for _, of := range upserts {
			if len(names) == 1 {
				add(of, "a struct", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB { return db.Create(&rows(key)[0]) })
				add(of, "a filled struct", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB { return db.Create(&filled(key)[0]) })
				add(of, "a map", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
					return db.Model(&affectedRow{}).Create(maps(key)[0])
				})
				add(of, "a parent", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
					row := rows(key)[0]
					row.Children = []affectedChild{{ID: key(), Name: "a"}, {ID: key(), Name: "b"}}
					row.Other = &affectedOther{ID: key(), Name: "other"}
					return db.Session(&gorm.Session{FullSaveAssociations: true}).Create(&row)
				})
			}
			add(of, "a slice", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
				list := rows(key)
				return db.Create(&list)
			})
			add(of, "pointers", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
				var list []*affectedRow
				for _, row := range rows(key) {
					list = append(list, &row)
				}
				return db.Create(list)
			})
			add(of, "a filled slice", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
				list := filled(key)
				return db.Create(&list)
			})
			add(of, "batches", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
				list := rows(key)
				return db.CreateInBatches(&list, 2)
			})
			if strings.Contains(of.name, "RETURNING") {
				continue // which GORM cannot read into maps
			}
			add(of, "maps", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
				list := maps(key)
				return db.Model(&affectedRow{}).Create(list)
			})
		}
	}
	all := []clause.Expression{clause.OnConflict{UpdateAll: true}}
	return append(list,
		affectedCase{"Create", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			return db.Create(&affectedRow{ID: key(), Name: "new", Children: []affectedChild{{ID: key()}}, Other: &affectedOther{ID: key(), Name: "other"}})
		}},
		affectedCase{"Create of many", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			list := make([]affectedOther, 100)
			for i := range list {
				list[i] = affectedOther{ID: key(), Name: fmt.Sprint(i)}
			}
			return db.Create(&list)
		}},
		affectedCase{"Save of a row that is not stored", "", func(db *gorm.DB, _ func() types.Snowflake) *gorm.DB {
			return db.Save(&affectedRow{ID: 99, Name: "new"})
		}},
		affectedCase{"Save of a stored row", "", func(db *gorm.DB, _ func() types.Snowflake) *gorm.DB {
			return db.Save(&affectedRow{ID: 11, Name: "renamed"})
		}},
		affectedCase{"Save of a row that is like another in its name", "", func(db *gorm.DB, _ func() types.Snowflake) *gorm.DB {
			return db.Save(&affectedRow{ID: 99, Name: "old1", Other: &affectedOther{ID: 12, Name: "old2"}})
		}},
		affectedCase{"Save of a slice", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			return db.Save(&[]affectedRow{{ID: key(), Name: "new"}, {ID: 11, Name: "renamed"}, {ID: 12, Name: "old2"}})
		}},
		affectedCase{"FirstOrCreate of a new row", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			return db.Where("name = ?", "new").Attrs(affectedRow{ID: key(), Name: "new"}).FirstOrCreate(&affectedRow{})
		}},
		affectedCase{"FirstOrCreate of a stored row", "", func(db *gorm.DB, _ func() types.Snowflake) *gorm.DB {
			return db.Where("name = ?", "old1").Assign(affectedRow{Note: "y"}).FirstOrCreate(&affectedRow{})
		}},
		affectedCase{"UpdateAll by the key", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			return db.Clauses(all...).Create(&[]affectedRow{{ID: key(), Name: "new"}, {ID: 11, Name: "old1", Note: "y"}})
		}},
		affectedCase{"UpdateAll of nothing", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			return db.Clauses(all...).Create(&[]affectedPair{{ID: key(), Public: 51}, {ID: 11, Public: 52}})
		}},
		affectedCase{"UpdateAll of a met row that leaves nothing", "", func(db *gorm.DB, _ func() types.Snowflake) *gorm.DB {
			return db.Clauses(all...).Create(&affectedPair{ID: 11, Public: 52})
		}},
		affectedCase{"DO NOTHING of rows that are like each other", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&[]affectedRow{{ID: key(), Name: "new"}, {ID: key(), Name: "new"}, {ID: key(), Name: "old1"}})
		}},
		affectedCase{"DO NOTHING of a row that is like two", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			code := "old2"
			return db.Clauses(clause.OnConflict{DoNothing: true}).Create(&affectedRow{ID: key(), Name: "old1", Code: &code})
		}},
		affectedCase{"generic Create", "", func(db *gorm.DB, key func() types.Snowflake) *gorm.DB {
			result := gorm.WithResult()
			err := gorm.G[affectedRow](db, result, clause.OnConflict{DoNothing: true}).Create(db.Statement.Context, &affectedRow{ID: key(), Name: "old1"})
			return &gorm.DB{Error: err, RowsAffected: result.RowsAffected}
		}},
	)
}

// affectedTargets returns each way to a database on which RowsAffected might differ.
func affectedTargets() []gormTarget {
	withMySQL := func(name string, server func(testing.TB) string, settings string, config mysql.Config) gormTarget {
		return gormTarget{name, !config.DisableWithReturning, func(t testing.TB) func() gorm.Dialector {
			t.Helper()
			config := config
			config.DSN = server(t) + settings
			return func() gorm.Dialector { return mysql.New(config) }
		}}
	}
	maria := func(t testing.TB) string { return mariaDatabase(t) }
	mysqlServer := func(t testing.TB) string { return mysqlDatabase(t, servertest.MySQL(t)) }
	const found = "&clientFoundRows=true"
	withPostgres := func(name string, config postgres.Config) gormTarget {
		return gormTarget{name, true, func(t testing.TB) func() gorm.Dialector {
			t.Helper()
			config := config
			config.DSN = postgresSchema(t)
			return func() gorm.Dialector { return postgres.New(config) }
		}}
	}
	return []gormTarget{
		gormTargets[0], // SQLite
		withPostgres("PostgreSQL", postgres.Config{}),
		withPostgres("PostgreSQLSimpleProtocol", postgres.Config{PreferSimpleProtocol: true}),
		withPostgres("PostgreSQLByLibPQ", postgres.Config{DriverName: "postgres"}),
		withMySQL("MariaDB", maria, "", mysql.Config{}),
		withMySQL("MariaDBFoundRows", maria, found, mysql.Config{}),
		withMySQL("MariaDBWithoutReturning", maria, "", mysql.Config{DisableWithReturning: true}),
		withMySQL("MariaDBWithoutReturningFoundRows", maria, found, mysql.Config{DisableWithReturning: true}),
		withMySQL("MySQL", mysqlServer, "", mysql.Config{}),
		withMySQL("MySQLFoundRows", mysqlServer, found, mysql.Config{}),
	}
}

// A program that asks RowsAffected whether a row is new gets the same answer with the
// plugin as without it.
func TestGormPluginLeavesRowsAffectedAsItIs(t *testing.T) {
	for _, target := range affectedTargets() {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			open := opener(t, target.dialector(t))
			// Without the plugin, children may be stored under a key that no row has.
			plain := open(&gorm.Config{Logger: logger.Discard, DisableForeignKeyConstraintWhenMigrating: true})
			must(t, plain.AutoMigrate(affectedModels...))
			plugins := map[string]*gorm.DB{}
			for name, plugin := range map[string]*gormplugin.Plugin{"the plugin": newPlugin(), "WithUnnest": newPlugin(gormplugin.WithUnnest())} {
				if plain.Name() == "postgres" || name == "the plugin" {
					plugins[name] = open(&gorm.Config{Logger: logger.Discard})
					must(t, plugins[name].Use(plugin))
				}
			}
			storeAffected(t, plain)
			next := types.Snowflake(1 << 40)
			given := func() types.Snowflake { next++; return next }
			missing := func() types.Snowflake { return 0 }
			run := func(db *gorm.DB, c affectedCase, key func() types.Snowflake) (affected int64, err error) {
				tx := db.Begin()
				must(t, tx.Error)
				defer func() { must(t, tx.Rollback().Error) }()
				result := c.run(tx, key)
				return result.RowsAffected, result.Error
			}
			compared := 0
			for _, c := range affectedCases() {
				if c.only != "" && c.only != plain.Name() {
					continue
				}
				want, wanted := run(plain, c, given)
				for name, db := range plugins {
					for keys, key := range map[string]func() types.Snowflake{"without keys": missing, "with keys": given} {
						if got, err := run(db, c, key); got != want || err != nil && wanted == nil {
							t.Errorf("%s, with %s and rows %s: RowsAffected = %d (error %v); want %d, as without the plugin (error %v)", c.name, name, keys, got, err, want, wanted)
						}
						compared++
					}
				}
			}
			if compared < 500 {
				t.Errorf("%d statements were compared; want 500 or more", compared)
			}
		})
	}
}
