package gormcases

import (
	"database/sql"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/types"
)

var mapCases = []testCase{
	{"NilMapIsMadeUnlessNobodyWouldSeeIt", func(e *env) {
		e.migrate(&Label{})
		var m map[string]any
		e.must(e.db.Model(&Label{}).Create(&m))
		list := []map[string]any{{"text": "A"}, nil}
		e.must(e.db.Model(&Label{}).Create(list))
		for _, m := range []map[string]any{m, list[1]} {
			id, _ := m["id"].(types.Snowflake)
			e.fresh("m[id]", id)
		}
		e.fails(e.db.Model(&Label{}).Create(map[string]any(nil)), gorm.ErrInvalidValue)
		e.count("labels", 3)
	}},
	{"EverySpellingOfTheKeyInAMapIsSeen", func(e *env) {
		e.migrate(&Item{})
		for i, name := range []string{"id", "ID", "Id"} {
			m := map[string]any{name: 100 + i, "sku": name, "order_id": 1}
			e.must(e.db.Model(&Item{}).Create(m))
			e.must(e.db.Where("id = ?", 100+i).Take(&Item{}))
			equal(e, "len(m)", len(m), 3)
		}
		m := map[string]any{"id": 7, "sku": "A", "order_id": 1}
		e.must(e.db.Table(e.prefix + "items").Create(m)) // without a model
		e.stored("items", "sku", "A", 7)
		equal(e, "keys asked for", e.src.given, 0)
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
	{"ZeroInAnyFormIsFilledWhereItStands", func(e *env) {
		e.migrate(&Item{})
		var null *types.Snowflake
		for sku, zero := range map[string]any{
			"nil": nil, "int": 0, "snowflake": types.Snowflake(0), "json": 0.0, "text": "", "0": "0", "bytes": []byte("0"), "pointer": null, "nil *int64": (*int64)(nil),
			"absent": types.NullSnowflake{}, "present": types.NullSnowflake{Valid: true}, "null int64": sql.NullInt64{}, "int64": sql.NullInt64{Valid: true}, "string": sql.NullString{String: "0", Valid: true},
		} {
			m := map[string]any{"ID": zero, "sku": sku, "order_id": 1}
			e.must(e.db.Model(&Item{}).Create(m))
			id, _ := m["ID"].(types.Snowflake)
			e.fresh("m[ID] of "+sku, id)
			equal(e, "len(m)", len(m), 3)
			e.stored("items", "sku", sku, id)
		}
	}},
}
