package gormcases

import (
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/types"
)

var statementCases = []testCase{
	{"SelectWithoutTheKeyWritesTheKey", func(e *env) {
		type Public struct {
			ID     types.Snowflake
			Name   string          `gorm:"size:40"`
			Public types.Snowflake `gorm:"snowflake"`
		}
		e.migrate(append(slices.Clone(orderModels), &Public{})...)
		selects := make([]string, 1, 4) // with room for what must not be written there
		selects[0] = "Number"
		o, nested, p := Order{Number: "A", Note: "left out"}, Order{Number: "B", Items: []Item{{SKU: "1"}}}, Public{Name: "A"}
		e.must(e.db.Select(selects).Create(&o))
		e.stored("orders", "number", "A", o.ID)
		equal(e, "orders with the note", len(e.keys("orders", "id", "note", o.Note)), 0)
		equal(e, "array behind the selects", selects[:2][1], "")
		list := []Item{{SKU: "A", OrderID: o.ID}, {SKU: "B", OrderID: o.ID}}
		e.must(e.db.Select("SKU", "OrderID").Create(&list))
		e.must(e.db.Select("Number", "Items.SKU", "Items.OrderID", "Items").Create(&nested))
		e.must(e.db.Select("Name").Create(&p))
		equal(e, "tagged column that is left out", p.Public, 0)
		for _, roots := range []any{&list, &nested, &p} {
			e.matches(roots)
		}
		m := map[string]any{"text": "A"}
		e.must(e.db.Model(&Label{}).Select("Text").Create(m))
		id, _ := m["id"].(types.Snowflake)
		e.stored("labels", "text", "A", id)
	}},
	{"ScopesUnscopedAndTableChangeNothing", func(e *env) {
		e.migrate(&Label{})
		e.must(e.db.Exec("CREATE TABLE " + e.prefix + "other (id bigint PRIMARY KEY, text varchar(40) UNIQUE)"))
		scope := func(tx *gorm.DB) *gorm.DB { return tx.Table(e.prefix + "other") }
		l := Label{Text: "A"}
		e.must(e.db.Unscoped().Scopes(scope).Create(&l))
		e.stored("other", "text", "A", l.ID)
		named := func(tx *gorm.DB) *gorm.DB {
			tx.Statement.Table = e.prefix + "other"
			return tx
		}
		ways := map[string]*gorm.DB{
			"a scope":             e.db.Unscoped().Scopes(scope),
			"a scope by its name": e.db.Scopes(named),
			"a clause":            e.db.Clauses(clause.Insert{Table: clause.Table{Name: e.prefix + "other"}}),
		}
		if e.postgres() { // the others do not take an alias here
			ways["an alias"] = e.db.Table(e.prefix + "other AS o")
		}
		for what, db := range ways {
			again := Label{Text: "A"}
			e.must(db.Clauses(doNothing("text")).Create(&again))
			equal(e, "ID of the stored row, whose table is given by "+what, again.ID, l.ID)
		}
		e.count("labels", 0)
	}},
	// Columns of other types, and indexes that another release makes or drops, are among the random upserts.
	{"UniqueColumnOfANewerReleaseHidesNoStoredRow", func(e *env) {
		e.withOld()
		e.ddl("ALTER TABLE PRE_orders ADD COLUMN extern varchar(40)")
		e.ddl("CREATE UNIQUE INDEX PRE_extern ON PRE_orders (extern)")
		e.ddl("UPDATE PRE_orders SET extern = 'x' WHERE number = 'old1'")
		list := []Order{{Number: "old1"}, {Number: "new"}}
		e.must(e.with(e.src).Clauses(doNothing()).Create(&list))
		e.matches(&list)
	}},
	{"MoreRowsThanParametersAreAnErrorAndRolledBack", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Items: make([]Item, 22_000)}
		if e.db.Create(&o).Error == nil {
			e.Error("Create with 66,000 parameters = nil; want the database's error")
		}
		e.count("orders", 0)
		e.count("items", 0)
		// The way out, with the structs of the failure and their keys.
		id, last := o.ID, o.Items[21_999].ID
		e.must(e.db.Session(&gorm.Session{CreateBatchSize: 5000}).Create(&o))
		e.stored("orders", "number", "A", id)
		equal(e, "ID of the last item", o.Items[21_999].ID, last)
		e.count("items", 22_000)
	}},
}
