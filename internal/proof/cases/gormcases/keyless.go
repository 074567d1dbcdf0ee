package gormcases

import (
	"database/sql"
	"errors"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// A Passport shares the key of its [Bearer], by a foreign key that no constraint holds.
type Passport struct {
	BearerID types.Snowflake `gorm:"primaryKey"`
	Bearer   *Bearer         `gorm:"constraint:-"`
	Name     string          `gorm:"size:40"`
}

// A Bearer has a [Passport].
type Bearer struct{ ID types.Snowflake }

// keylessCases try to store rows whose key is 0 or NULL.
var keylessCases = []testCase{
	{"CountedKeyIsRefusedUntilItsTagSaysWhoGivesIt", func(e *env) {
		type Counted struct {
			ID   types.Snowflake `gorm:"primaryKey;autoIncrement"`
			Name string          `gorm:"size:40"`
		}
		type Pointed struct {
			ID *types.Snowflake `gorm:"primaryKey;autoIncrement:true"`
		}
		type Tagged struct {
			ID int64 `gorm:"primaryKey;autoIncrement;snowflake"`
		}
		type Public struct {
			ID     types.Snowflake
			Number uint64 `gorm:"autoIncrement;snowflake"`
		}
		e.ddl("CREATE TABLE `PRE_counteds` (`id` bigint PRIMARY KEY, `name` varchar(40))")
		refused := func(what string, tx *gorm.DB) {
			e.Helper()
			if err := (*gormplugin.ModelError)(nil); !errors.As(tx.Error, &err) || !strings.Contains(err.Reason, "autoIncrement") {
				e.Errorf("Create(%s) = %v; want a ModelError about autoIncrement", what, tx.Error)
			}
		}
		refused("Counted", e.db.Create(&Counted{Name: "A"}))
		refused("Counted with a key", e.db.Create(&Counted{ID: 5, Name: "A"}))
		refused("map", e.db.Model(&Counted{}).Create(map[string]any{"name": "A"}))
		refused("Pointed", e.db.Create(&Pointed{}))
		refused("Tagged", e.db.Create(&Tagged{}))
		refused("Public", e.db.Create(&Public{}))
		e.count("counteds", 0)
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"KeyIsNeverStoredAsZeroOrNULL", func(e *env) {
		e.migrate(&Bearer{}, &Passport{}, &Item{})
		hidden := gorm.Session{SkipHooks: true}
		for what, tx := range map[string]*gorm.DB{
			"omitted":                e.db.Omit("ID").Create(&Item{SKU: "A"}),
			"omitted in a slice":     e.db.Omit("id").Create(&[]Item{{SKU: "A"}, {SKU: "B"}}),
			"omitted in a map":       e.db.Model(&Item{}).Omit("ID").Create(map[string]any{"sku": "A"}),
			"omitted without hooks":  e.db.Session(&hidden).Omit("ID").Create(&Item{SKU: "A"}),
			"omitted in an upsert":   e.db.Omit("ID").Clauses(clause.OnConflict{DoNothing: true}).Create(&Item{SKU: "A"}),
			"no bearer":              e.db.Create(&Passport{Name: "A"}),
			"no bearer in a slice":   e.db.Create(&[]Passport{{BearerID: 5, Name: "A"}, {Name: "B"}}),
			"no bearer in a map":     e.db.Model(&Passport{}).Create(map[string]any{"name": "A"}),
			"no bearer and a select": e.db.Select("Name").Create(&Passport{BearerID: 5, Name: "A"}),
		} {
			if !errors.Is(tx.Error, gormplugin.ErrNoKey) {
				e.Errorf("Create, %s = %v; want ErrNoKey", what, tx.Error)
			}
		}
		e.count("items", 0)
		e.count("passports", 0)
		p := Passport{Bearer: &Bearer{}, Name: "A"}
		e.must(e.db.Create(&p))
		equal(e, "BearerID", p.BearerID, p.Bearer.ID)
		e.fresh("BearerID", p.BearerID)
		tx := e.db.Create(&[]Passport{{BearerID: 6}, {Name: "B"}})
		if want := "Passport[1].BearerID"; tx.Error == nil || !strings.Contains(tx.Error.Error(), want) {
			e.Errorf("Create = %v; want an error with %s", tx.Error, want)
		}
	}},
	{"ZeroInAnyFormIsAMissingKey", func(e *env) {
		type Nullable struct {
			ID   types.NullSnowflake `gorm:"primaryKey;snowflake;type:bigint"`
			Name string              `gorm:"size:40"`
		}
		e.migrate(&Item{}, &Nullable{})
		for what, zero := range map[string]any{
			"0": "0", "bytes": []byte("0"), "present": types.NullSnowflake{Valid: true}, "absent": sql.NullInt64{},
			"int64": sql.NullInt64{Valid: true}, "text": sql.NullString{String: "0", Valid: true}, "float": 0.0, "nil": (*int64)(nil),
		} {
			m := map[string]any{"id": zero, "sku": what}
			e.must(e.db.Model(&Item{}).Create(m))
			id, _ := m["id"].(types.Snowflake)
			e.fresh("key in the map that had a zero, "+what, id)
			e.stored("items", "sku", what, id)
		}
		n := Nullable{Name: "A", ID: types.NullSnowflake{Valid: true}}
		e.must(e.db.Create(&n))
		e.stored("nullables", "name", "A", n.ID.Snowflake)
	}},
}
