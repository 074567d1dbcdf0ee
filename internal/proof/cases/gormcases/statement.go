package gormcases

import (
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/types"
)

var statementCases = []testCase{
	{"HooksSeeAndChangeKeys", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		e.must(e.db.Create(&Hooked{Name: "makes an upsert"}))
		for what, test := range map[string]struct {
			before func(*Hooked, *gorm.DB)
			right  func(Hooked) bool
		}{
			"sees the key":      {nil, func(h Hooked) bool { return h.ID == h.Seen && e.src.gave(h.ID) }},
			"overrides the key": {func(h *Hooked, _ *gorm.DB) { h.ID = 42 }, func(h Hooked) bool { return h.ID == 42 }},
			"zeroes the key":    {func(h *Hooked, _ *gorm.DB) { h.ID = 0 }, func(h Hooked) bool { return h.ID != h.Seen }},
			"adds a child": {
				func(h *Hooked, _ *gorm.DB) { h.Parts = append(h.Parts, HookedPart{}) },
				func(h Hooked) bool { return len(h.Parts) == 2 },
			},
			"makes an upsert": {
				func(_ *Hooked, tx *gorm.DB) { tx.Statement.AddClause(doNothing("name")) },
				func(h Hooked) bool { return h.ID != h.Seen },
			},
		} {
			list := []Hooked{{Name: what, Before: test.before, Parts: []HookedPart{{}}}, {Name: "another " + what}}
			e.must(e.db.Create(&list))
			e.matches(&list)
			if !test.right(list[0]) {
				e.Errorf("a hook that %s leaves %+v", what, list[0])
			}
		}
		skipped := Hooked{Name: "skipped", Parts: []HookedPart{{}}}
		e.must(e.db.Session(&gorm.Session{SkipHooks: true}).Create(&skipped))
		e.matches(&skipped)
		equal(e, "key that a skipped hook saw", skipped.Seen, 0)
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
	{"ToSQLShowsTheKeyThatACreateThenWrites", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A"}
		text := e.db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Clauses(doNothing()).Create(&o) })
		id := o.ID
		e.fresh("ID", id)
		if !strings.Contains(text, id.String()) {
			e.Errorf("ToSQL = %s; want it to hold %d", text, id)
		}
		e.count("orders", 0)
		e.must(e.db.Create(&o))
		e.stored("orders", "number", "A", id)
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
}
