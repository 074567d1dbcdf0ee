package gormcases

import (
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

var statementCases = []testCase{
	{"HookSeesTheKey", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		h := Hooked{Name: "A"}
		e.must(e.db.Create(&h))
		e.fresh("key that the hook saw", h.Seen)
		equal(e, "ID", h.ID, h.Seen)
	}},
	{"HookOverridesTheKey", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		h := Hooked{Name: "A", Before: func(h *Hooked, _ *gorm.DB) { h.ID = 42 }, Parts: []HookedPart{{Name: "p"}}}
		e.must(e.db.Create(&h))
		e.stored("hookeds", "name", "A", 42)
		equal(e, "HookedID", h.Parts[0].HookedID, 42)
	}},
	{"KeyThatAHookZeroesIsRefilled", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		zero := func(h *Hooked, _ *gorm.DB) { h.ID = 0 }
		list := []Hooked{{Name: "A", Before: zero}, {Name: "B"}, {Name: "C", Before: zero}}
		e.must(e.db.Create(&list))
		for _, h := range list {
			e.stored("hookeds", "name", h.Name, h.ID)
		}
		// Not the key that the hook refused.
		if list[0].ID == list[0].Seen {
			e.Errorf("ID = %d; want another than the one that was zeroed", list[0].ID)
		}
	}},
	{"ChildrenThatAHookAddsGetKeys", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		h := Hooked{Name: "A", Before: func(h *Hooked, _ *gorm.DB) { h.Parts = append(h.Parts, HookedPart{Name: "p"}) }}
		e.must(e.db.Create(&h))
		e.stored("hooked_parts", "hooked_id", h.ID, h.Parts[0].ID)
	}},
	{"UpsertThatAHookMakesIsReconciled", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		e.must(e.db.Create(&Hooked{Name: "A"}))
		h := Hooked{Name: "A", Before: func(_ *Hooked, tx *gorm.DB) { tx.Statement.AddClause(doNothing("name")) }}
		h.Parts = []HookedPart{{Name: "p"}}
		e.must(e.db.Create(&h))
		e.stored("hookeds", "name", "A", h.ID)
		e.stored("hooked_parts", "hooked_id", h.ID, h.Parts[0].ID)
	}},
	{"KeyThatAHookZeroesIsFreshInAnUpsert", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		e.must(e.db.Create(&Hooked{Name: "B"}))
		e.log.reset()
		zero := func(h *Hooked, _ *gorm.DB) { h.ID = 0 }
		list := []Hooked{{Name: "A", Before: zero}, {Name: "B"}}
		e.must(e.db.Clauses(doNothing("name")).Create(&list))
		for _, s := range e.log.statements("SELECT") {
			if strings.Contains(s, `'A'`) || strings.Contains(s, `"A"`) { // SQLite's way to quote, in the log
				e.Errorf("lookup = %s; want none of A, which was found by its key", s)
			}
		}
		for _, h := range list {
			e.stored("hookeds", "name", h.Name, h.ID)
		}
	}},
	{"SkippedHooksDoNotSkipKeys", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		h := Hooked{Name: "A", Parts: []HookedPart{{Name: "p"}}}
		e.must(e.db.Session(&gorm.Session{SkipHooks: true}).Create(&h))
		equal(e, "key that the hook saw", h.Seen, 0)
		e.stored("hookeds", "name", "A", h.ID)
		e.stored("hooked_parts", "hooked_id", h.ID, h.Parts[0].ID)
	}},
	{"DryRunAssignsAndWritesNothing", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A"}
		tx := e.db.Session(&gorm.Session{DryRun: true}).Clauses(doNothing()).Create(&o)
		e.must(tx)
		e.fresh("ID", o.ID)
		if text := e.db.Dialector.Explain(tx.Statement.SQL.String(), tx.Statement.Vars...); !strings.Contains(text, o.ID.String()) {
			e.Errorf("SQL = %s; want it to hold %d", text, o.ID)
		}
		e.count("orders", 0)
	}},
	{"PreparedStatementsChangeNothing", func(e *env) {
		e.migrate(orderModels...)
		db := e.db.Session(&gorm.Session{PrepareStmt: true})
		for _, number := range []string{"A", "B", "A"} {
			o := Order{Number: number, Items: []Item{{SKU: number}}}
			e.must(db.Clauses(doNothing()).Create(&o))
			e.stored("orders", "number", number, o.ID)
			equal(e, "OrderID", o.Items[0].OrderID, o.ID)
		}
	}},
	{"SkipDefaultTransactionStillAssignsBeforeTheInsert", func(e *env) {
		db := e.withPlugin(&gorm.Config{SkipDefaultTransaction: true})
		e.migrate(orderModels...)
		o := Order{Number: "A", Items: []Item{{SKU: "1"}}}
		e.must(db.Create(&o))
		e.stored("orders", "number", "A", o.ID)
		e.stored("items", "order_id", o.ID, o.Items[0].ID)
		again := Order{Number: "A", Items: []Item{{SKU: "2"}}}
		e.must(db.Clauses(doNothing()).Create(&again))
		equal(e, "ID of the stored row", again.ID, o.ID)
		e.stored("items", "sku", "2", again.Items[0].ID)
	}},
	{"SelectWithoutTheKeyWritesTheKey", func(e *env) {
		e.migrate(orderModels...)
		selects := make([]string, 1, 4) // with room for what must not be written there
		selects[0] = "Number"
		o := Order{Number: "A", Note: "left out"}
		e.must(e.db.Select(selects).Create(&o))
		e.stored("orders", "number", "A", o.ID)
		equal(e, "orders with the note", len(e.keys("orders", "id", "note", "left out")), 0)
		equal(e, "array behind the selects", selects[:2][1], "")
		list := []Item{{SKU: "A", OrderID: o.ID}, {SKU: "B", OrderID: o.ID}}
		e.must(e.db.Select("SKU", "OrderID").Create(&list))
		e.stored("items", "sku", "B", list[1].ID)
		m := map[string]any{"text": "A"}
		e.must(e.db.Model(&Label{}).Select("Text").Create(m))
		id, _ := m["id"].(types.Snowflake)
		e.stored("labels", "text", "A", id)
	}},
	{"NestedSelectWritesTheKeys", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Items: []Item{{SKU: "1"}}}
		e.must(e.db.Select("Number", "Items.SKU", "Items.OrderID", "Items").Create(&o))
		e.stored("orders", "number", "A", o.ID)
		e.stored("items", "sku", "1", o.Items[0].ID)
	}},
	{"SelectWithoutATaggedColumnLeavesItZero", func(e *env) {
		type Public struct {
			ID     types.Snowflake
			Name   string          `gorm:"size:40"`
			Public types.Snowflake `gorm:"snowflake"`
		}
		e.migrate(&Public{})
		p := Public{Name: "A"}
		e.must(e.db.Select("Name").Create(&p))
		e.stored("publics", "name", "A", p.ID)
		equal(e, "Public", p.Public, 0)
	}},
	{"OmittedKeyIsRefused", func(e *env) {
		e.migrate(&Item{})
		item, list := Item{SKU: "A"}, []Item{{SKU: "B"}}
		m := map[string]any{"sku": "C"}
		e.fails(e.db.Omit("ID").Create(&item), gormplugin.ErrNoKey)
		e.fails(e.db.Omit("id").Create(&list), gormplugin.ErrNoKey)
		e.fails(e.db.Model(&Item{}).Omit("ID").Create(m), gormplugin.ErrNoKey)
		equal(e, "ID", item.ID, 0)
		equal(e, "list[0].ID", list[0].ID, 0)
		equal(e, "m[id]", m["id"], nil)
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"GenericsGetKeys", func(e *env) {
		e.migrate(orderModels...)
		o, list := Order{Number: "A", Items: []Item{{SKU: "1"}}}, []Item{{SKU: "2"}, {SKU: "3"}, {SKU: "4"}}
		if err := gorm.G[Order](e.db).Create(e.Context(), &o); err != nil {
			e.Fatalf("G.Create = %v; want no error", err)
		}
		for i := range list {
			list[i].OrderID = o.ID
		}
		if err := gorm.G[Item](e.db).CreateInBatches(e.Context(), &list, 2); err != nil {
			e.Fatalf("G.CreateInBatches = %v; want no error", err)
		}
		e.stored("orders", "number", "A", o.ID)
		e.stored("items", "sku", "1", o.Items[0].ID)
		e.stored("items", "sku", "4", list[2].ID)
		again := Order{Number: "A"}
		if err := gorm.G[Order](e.db, doNothing()).Create(e.Context(), &again); err != nil {
			e.Fatalf("G.Create = %v; want no error", err)
		}
		equal(e, "ID of the stored row", again.ID, o.ID)
		// Where GORM counts what is returned it also counts the stored row, which has a key.
		type Badge struct {
			ID   int64  `gorm:"snowflake"`
			Text string `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Badge{})
		badge := Badge{Text: "A"}
		e.must(e.db.Create(&badge))
		batch := func(text string) []Badge { return []Badge{badge, {Text: text}} }
		one, two, result := batch("B"), batch("C"), gorm.WithResult()
		sent := e.db.Clauses(doNothing()).Create(&one)
		e.must(sent)
		if err := gorm.G[Badge](e.db, doNothing(), result).CreateInBatches(e.Context(), &two, 2); err != nil {
			e.Fatalf("G.CreateInBatches = %v; want no error", err)
		}
		equal(e, "RowsAffected of G", result.RowsAffected, sent.RowsAffected)
	}},
	{"ScopesUnscopedAndTableChangeNothing", func(e *env) {
		e.migrate(&Label{})
		e.must(e.db.Exec("CREATE TABLE " + e.prefix + "other (id bigint PRIMARY KEY, text varchar(40) UNIQUE)"))
		scope := func(tx *gorm.DB) *gorm.DB { return tx.Table(e.prefix + "other") }
		l := Label{Text: "A"}
		e.must(e.db.Unscoped().Scopes(scope).Create(&l))
		e.stored("other", "text", "A", l.ID)
		again := Label{Text: "A"}
		e.must(e.db.Unscoped().Scopes(scope).Clauses(doNothing("text")).Create(&again))
		equal(e, "ID of the stored row", again.ID, l.ID)
		named := func(tx *gorm.DB) *gorm.DB {
			tx.Statement.Table = e.prefix + "other"
			return tx
		}
		again = Label{Text: "A"}
		e.must(e.db.Scopes(named).Clauses(doNothing("text")).Create(&again))
		equal(e, "ID of the stored row", again.ID, l.ID)
		again = Label{Text: "A"}
		into := clause.Insert{Table: clause.Table{Name: e.prefix + "other"}}
		e.must(e.db.Clauses(into, doNothing("text")).Create(&again))
		equal(e, "ID of the stored row", again.ID, l.ID)
		if e.db.Name() == "postgres" { // the others do not take an alias here
			again = Label{Text: "A"}
			e.must(e.db.Table(e.prefix + "other AS o").Clauses(doNothing("text")).Create(&again))
			equal(e, "ID of the stored row", again.ID, l.ID)
		}
		e.count("labels", 0)
	}},
}

// withPlugin opens the target a second time, with another config.
func (e *env) withPlugin(config *gorm.Config) *gorm.DB {
	e.Helper()
	return e.use(e.open(config))
}
