package gormcases

import (
	"database/sql"
	"math"
	"strings"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// impossible fails the test unless tx was refused for the field at path, before any SQL and
// before a key was taken.
func (e *env) impossible(tx *gorm.DB, path string) {
	e.Helper()
	e.refused(tx.Error, path)
	equal(e, "keys asked for", e.src.given, 0)
	equal(e, "statements after a refusal", strings.Join(e.log.statements(""), "; "), "")
	e.log.reset()
}

// refused fails the test unless err names the field at path as out of range.
func (e *env) refused(err error, path string) {
	e.Helper()
	e.fails(&gorm.DB{Error: err}, types.ErrRange)
	if !strings.HasPrefix(err.Error(), "gormplugin: "+path+" is ") {
		e.Errorf("statement = %v; want the error to name %s", err, path)
	}
}

// impossibleCases: types.Snowflake reads no number below zero, so one stored key of that
// kind fails every SELECT that meets it.
var impossibleCases = []testCase{
	{"KeyThatCannotBeReadBackIsRefused", func(e *env) {
		e.migrate(&Item{})
		list := []Item{{SKU: "A"}, {ID: -5, SKU: "B"}}
		e.impossible(e.db.Create(&list[1]), "Item.ID")
		e.impossible(e.db.Create(list[1]), "Item.ID")
		e.impossible(e.db.Create(&list), "Item[1].ID")
		e.impossible(e.db.Create([]*Item{&list[0], &list[1]}), "Item[1].ID")
		e.impossible(e.db.Create(&[2]Item{list[0], list[1]}), "Item[1].ID")
		e.impossible(e.db.Omit("sku").Create(&list), "Item[1].ID")
		e.impossible(e.db.Select("SKU").Create(&list), "Item[1].ID")
		e.impossible(e.db.Session(&gorm.Session{DryRun: true}).Create(&list), "Item[1].ID")
		e.impossible(e.db.Clauses(doNothing()).Create(&list), "Item[1].ID")
		e.impossible(e.db.Clauses(upsertAll()).Create(&list), "Item[1].ID")
		e.impossible(e.db.Save(&list), "Item[1].ID")
		e.impossible(e.db.Session(&gorm.Session{SkipHooks: true}).Create(&list), "Item[1].ID")
		equal(e, "list[0].ID", list[0].ID, 0)
		e.count("items", 0)
	}},
	{"KeyInAMapThatCannotBeReadBackIsRefused", func(e *env) {
		e.migrate(&Item{})
		for _, id := range []any{
			-5, int8(-5), int64(math.MinInt64), -5.0, "-5", []byte("-5"), uint64(1 << 63), types.Snowflake(-5),
			types.NullSnowflake{Snowflake: -5, Valid: true}, sql.NullInt64{Int64: -5, Valid: true}, sql.NullString{String: "-5", Valid: true},
		} {
			for _, name := range []string{"id", "ID"} {
				m := map[string]any{name: id, "sku": "A"}
				e.impossible(e.db.Model(&Item{}).Create(m), "Item.ID")
				e.impossible(e.db.Model(&Item{}).Create(&[]map[string]any{{"sku": "B"}, m}), "Item[1].ID")
			}
			e.impossible(e.db.Model(&Item{}).Create(map[string]any{"order_id": id}), "Item.OrderID")
		}
		e.count("items", 0)
	}},
	{"KeyThatIsNotWrittenIsNotLookedAt", func(e *env) {
		e.migrate(&Item{})
		item := Item{OrderID: -5, SKU: "A"}
		e.must(e.db.Omit("OrderID").Create(&item))
		e.must(e.db.Select("SKU").Create(&Item{OrderID: -5, SKU: "B"}))
		e.stored("items", "sku", "A", item.ID)
		e.count("items", 2)
	}},
	// GORM drops the error of Value in a condition that is a map or a struct.
	{"ConditionWithAnImpossibleKeyIsAnErrorAndNotNULL", func(e *env) {
		e.integers()
		newWorld(e)
		e.must(e.db.Create(&Doc{Number: "A", Party: &Party{Email: "p"}}))
		minus := types.NullID[Party]{ID: -1, Valid: true}
		for _, tx := range []*gorm.DB{
			e.db.Where(map[string]any{"party_id": types.Snowflake(-1)}), e.db.Where(map[string]any{"party_id": []types.Snowflake{-1, -2}}),
			e.db.Where(map[string]any{"party_id": types.ID[Party](-1)}), e.db.Where(Doc{PartyID: minus}), e.db.Not(map[string]any{"party_id": minus}),
		} {
			e.fails(tx.Unscoped().Delete(&Doc{}), types.ErrRange)
		}
		e.count("docs", 1)
	}},
	{"AssignRefusesImpossibleKeysBeforeItAssignsOne", func(e *env) {
		minus := types.Snowflake(-5)
		for path, o := range map[string]Order{
			"Order[1].ID":               {Model: gormplugin.Model{ID: -5}},
			"Order[1].CustomerID":       {CustomerID: &minus, Customer: &Customer{}},
			"Order[1].Customer.ID":      {Customer: &Customer{ID: -5}},
			"Order[1].Items[1].ID":      {Items: []Item{{}, {ID: -5}}},
			"Order[1].Items[1].OrderID": {Items: []Item{{}, {OrderID: -5}}},
			"Order[1].Labels[0].ID":     {Labels: []Label{{ID: -5}}},
		} {
			orders := []Order{{}, o}
			e.refused(gormplugin.New(e.src).Assign(e.Context(), e.db, orders), path)
			equal(e, "orders[0].ID", orders[0].ID, 0)
		}
		equal(e, "keys asked for", e.src.given, 0)
	}},
}
