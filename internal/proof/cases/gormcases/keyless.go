package gormcases

import (
	"errors"
	"fmt"
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
	{"KeyIsNeverStoredAsZeroOrNULL", func(e *env) {
		e.migrate(&Bearer{}, &Passport{}, &Item{})
		hidden, item, m := gorm.Session{SkipHooks: true}, Item{SKU: "A"}, map[string]any{"sku": "A"}
		for what, tx := range map[string]*gorm.DB{
			"omitted":                e.db.Omit("ID").Create(&item),
			"omitted in a slice":     e.db.Omit("id").Create(&[]Item{{SKU: "A"}, {SKU: "B"}}),
			"omitted in a map":       e.db.Model(&Item{}).Omit("ID").Create(m),
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
		equal(e, "keys asked for", e.src.given, 0)
		equal(e, "memory", fmt.Sprint(item, m), "{0 0 A} map[sku:A]")
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
}
