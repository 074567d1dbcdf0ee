package gormcases

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/types"
)

var mapCases = []testCase{
	{"MapGetsAKeyUnderTheColumnName", func(e *env) {
		e.migrate(&Item{})
		m := map[string]any{"sku": "A", "order_id": 1}
		e.must(e.db.Model(&Item{}).Create(m))
		id, ok := m["id"].(types.Snowflake)
		equal(e, "m[id] is a Snowflake", ok, true)
		e.stored("items", "sku", "A", id)
	}},
	{"MapPointerGetsAKey", func(e *env) {
		e.migrate(&Item{})
		m := map[string]any{"SKU": "A", "OrderID": 1}
		e.must(e.db.Model(&Item{}).Create(&m))
		id, _ := m["id"].(types.Snowflake)
		e.stored("items", "sku", "A", id)
	}},
	{"NilMapBehindAPointerIsMade", func(e *env) {
		e.migrate(&Label{})
		var m map[string]any
		e.must(e.db.Model(&Label{}).Create(&m))
		id, _ := m["id"].(types.Snowflake)
		e.fresh("m[id]", id)
		e.count("labels", 1)
	}},
	{"NilMapIsErrInvalidValue", func(e *env) {
		e.migrate(&Label{})
		e.fails(e.db.Model(&Label{}).Create(map[string]any(nil)), gorm.ErrInvalidValue)
		e.count("labels", 0)
	}},
	{"SliceOfMapsGetsKeysAndKeepsItsLength", func(e *env) {
		e.migrate(&Item{})
		list := []map[string]any{{"sku": "A", "order_id": 1}, {"sku": "B", "order_id": 1}}
		e.must(e.db.Model(&Item{}).Create(list))
		more := []map[string]any{{"sku": "C", "order_id": 1}, {"sku": "D", "order_id": 1}, nil}
		more[2] = map[string]any{"sku": "E", "order_id": 1, "id": 42}
		e.must(e.db.Model(&Item{}).Create(&more))
		equal(e, "len", len(more), 3)
		for _, m := range append(list, more[:2]...) {
			id, _ := m["id"].(types.Snowflake)
			e.fresh("m[id]", id)
			e.stored("items", "sku", m["sku"], id)
		}
		equal[any](e, "m[id]", more[2]["id"], 42)
		e.stored("items", "sku", "E", 42)
		equal(e, "Fill calls", e.src.fills, 2)
	}},
	{"NilMapInASliceIsMade", func(e *env) {
		e.migrate(&Label{})
		list := []map[string]any{{"text": "A"}, nil}
		e.must(e.db.Model(&Label{}).Create(list))
		id, _ := list[1]["id"].(types.Snowflake)
		e.fresh("m[id]", id)
		e.count("labels", 2)
	}},
	{"MapsInBatchesGetKeys", func(e *env) {
		e.migrate(&Item{})
		list := []map[string]any{{"sku": "A", "order_id": 1}, {"sku": "B", "order_id": 1}, {"sku": "C", "order_id": 1}}
		e.must(e.db.Model(&Item{}).CreateInBatches(list, 2))
		for _, m := range list {
			id, _ := m["id"].(types.Snowflake)
			e.stored("items", "sku", m["sku"], id)
		}
	}},
	{"EverySpellingOfTheKeyInAMapIsSeen", func(e *env) {
		e.migrate(&Item{})
		for i, name := range []string{"id", "ID", "Id"} {
			m := map[string]any{name: 100 + i, "sku": "A", "order_id": 1}
			e.must(e.db.Model(&Item{}).Create(m))
			e.stored("items", "order_id", 1, types.Snowflake(100+i))
			e.must(e.db.Where("1 = 1").Delete(&Item{}))
			equal(e, "len(m)", len(m), 3)
		}
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"EmptyKeyInAMapIsFilledWhereItStands", func(e *env) {
		e.migrate(&Item{})
		var null *types.Snowflake
		for sku, empty := range map[string]any{
			"nil": nil, "zero": 0, "snowflake": types.Snowflake(0), "json": 0.0, "text": "",
			"pointer": null, "null": types.NullSnowflake{},
		} {
			m := map[string]any{"ID": empty, "sku": sku, "order_id": 1}
			e.must(e.db.Model(&Item{}).Create(m))
			id, _ := m["ID"].(types.Snowflake)
			e.fresh("m[ID] of "+sku, id)
			equal(e, "len(m)", len(m), 3)
			e.stored("items", "sku", sku, id)
		}
	}},
	{"ExpressionForTheKeyInAMapIsKept", func(e *env) {
		e.migrate(&Item{})
		m := map[string]any{"id": gorm.Expr("40 + ?", 2), "sku": "A", "order_id": 1}
		e.must(e.db.Model(&Item{}).Create(m))
		e.stored("items", "sku", "A", 42)
		if _, ok := m["id"].(interface{ IsZero() bool }); ok {
			e.Errorf("m[id] = %v; want the expression", m["id"])
		}
		equal(e, "keys asked for", e.src.given, 0)
		// Not even an upsert makes a key of it.
		m = map[string]any{"id": gorm.Expr("40 + ?", 3), "text": "B"}
		e.migrate(&Label{})
		e.must(e.db.Model(&Label{}).Clauses(doNothing()).Create(m))
		e.stored("labels", "text", "B", 43)
		m["id"] = gorm.Expr("40 + ?", 4)
		e.must(e.db.Model(&Label{}).Clauses(doNothing()).Create(m))
		e.stored("labels", "text", "B", 43)
		if _, ok := m["id"].(types.Snowflake); ok {
			e.Errorf("m[id] = %v; want the expression", m["id"])
		}
	}},
	{"KeysOfMapsAreNotOverwrittenByLastInsertId", func(e *env) {
		type Counted struct {
			ID   int64  `gorm:"primaryKey;autoIncrement:false;snowflake"`
			Name string `gorm:"size:40"`
		}
		type Numbered struct {
			ID   int64  `gorm:"primaryKey;snowflake"` // GORM takes it for auto-increment
			Name string `gorm:"size:40"`
		}
		e.migrate(&Counted{}, &Numbered{})
		list := []map[string]any{{"name": "A"}, {"name": "B"}, {"name": "C"}}
		e.must(e.db.Model(&Counted{}).Create(list))
		for _, m := range list {
			id, _ := m["id"].(int64)
			e.stored("counteds", "name", m["name"], types.Snowflake(id))
		}
		if e.target.Returning {
			return // GORM itself fails on []map with RETURNING, plugin or not
		}
		list = []map[string]any{{"name": "A"}, {"name": "B"}, {"name": "C"}}
		e.log.reset()
		e.must(e.db.Model(&Numbered{}).Create(list))
		equal(e, "re-reads", len(e.log.statements("SELECT")), 0)
		for _, m := range list {
			id, _ := m["id"].(int64)
			e.stored("numbereds", "name", m["name"], types.Snowflake(id))
		}
	}},
	{"KeyOfARowThatMetAnotherByAGeneratedColumnIsZero", func(e *env) {
		e.migrate(&LowerItem{})
		e.uniqueGenerated("lower_items", "sku") // of which memory need not have the value
		e.must(e.db.Create(&LowerItem{ID: 1, SKU: "Met"}))
		e.must(e.db.Create(&LowerItem{ID: 2, SKU: "another"}))
		for _, id := range []types.Snowflake{0, 5} { // of the source, and of the caller
			for _, memory := range []string{"", "met", "another"} {
				item := LowerItem{ID: id, SKU: "met", LowerCase: memory}
				e.must(e.db.Clauses(doNothing()).Create(&item))
				equal(e, "ID of a struct", item.ID, 0)
				list := []LowerItem{{ID: id, SKU: "MET", LowerCase: memory}, {SKU: fmt.Sprint("new", id, memory), LowerCase: memory}}
				e.must(e.db.Clauses(doNothing()).Create(&list))
				equal(e, "ID in a slice", list[0].ID, 0)
				e.stored("lower_items", "sku", list[1].SKU, list[1].ID)
				maps := []map[string]any{{"id": id, "sku": "MET"}, {"sku": fmt.Sprint("map", id, memory)}}
				if id == 0 {
					delete(maps[0], "id")
				}
				e.must(e.db.Model(&LowerItem{}).Clauses(doNothing()).Create(maps))
				equal[any](e, "id in a slice of maps", maps[0]["id"], types.Snowflake(0))
				key, _ := maps[1]["id"].(types.Snowflake)
				e.stored("lower_items", "sku", maps[1]["sku"], key)
			}
		}
		e.count("lower_items", 2+2*3*2)
	}},
	{"MapWithoutAModelGetsNone", func(e *env) {
		e.migrate(&Item{})
		m := map[string]any{"id": 7, "sku": "A", "order_id": 1}
		e.must(e.db.Table(e.prefix + "items").Create(m))
		e.stored("items", "sku", "A", 7)
		equal(e, "keys asked for", e.src.given, 0)
	}},
}

// A LowerItem reads a column that is generated.
type LowerItem struct {
	ID        types.Snowflake
	SKU       string `gorm:"column:sku;size:40"`
	LowerCase string `gorm:"->;-:migration"`
}
