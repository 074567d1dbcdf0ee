package gormcases

import (
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// These cases show what GORM itself makes impossible. It fails with a clear error,
// or does the known thing. They also show the way out.
var limitCases = []testCase{
	{"SaveWithAKeyAndChildrenNeedsAnUpsert", func(e *env) {
		e.migrate(orderModels...)
		e.must(e.db.Create(&Order{Number: "A"}))
		failed, preset := Order{Number: "A", Items: []Item{{SKU: "1"}}}, Order{Model: gormplugin.Model{ID: 42}, Items: []Item{{SKU: "1"}}}
		if e.db.Create(&failed).Error == nil {
			e.Error("Create of a duplicate = nil; want an error")
		}
		e.fresh("ID after a failure", failed.ID)
		for number, o := range map[string]*Order{"B": &failed, "C": &preset} {
			o.Number = number
			id := o.ID
			// It has a key, so Save tries to update it, and saves children of an order that does not exist.
			if e.db.Save(o).Error == nil {
				e.Error("Save = nil; want the error of the foreign key")
			}
			equal(e, "orders after Save", len(e.keys("orders", "id", "number", number)), 0)
			for _, note := range []string{"first", "changed"} {
				o.Note = note
				e.must(e.db.Clauses(upsertAll()).Create(o))
				e.matches(o)
			}
			e.stored("orders", "number", number, id)
			e.stored("items", "order_id", id, o.Items[0].ID)
		}
	}},
	{"RootOfATreeNeedsAParentThatCanBeNull", func(e *env) {
		type Branch struct {
			ID       types.Snowflake
			ParentID types.Snowflake
			Branches []Branch `gorm:"foreignKey:ParentID"`
		}
		e.migrate(&Branch{}, &Node{})
		if e.db.Create(&Branch{}).Error == nil {
			e.Error("Create of a root with a plain ParentID = nil; want the error of the foreign key")
		}
		e.count("branches", 0)
		n := Node{Name: "root", Children: []Node{{Name: "a"}}}
		e.must(e.db.Create(&n))
		e.stored("nodes", "parent_id", n.ID, n.Children[0].ID)
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
	{"JoinTableWithAKeyNeedsAUniquePair", func(e *env) {
		type Group struct{ ID types.Snowflake }
		type Human struct {
			ID     types.Snowflake
			Groups []Group `gorm:"many2many:belongings"`
		}
		type Belonging struct {
			ID      types.Snowflake `gorm:"primaryKey"`
			HumanID types.Snowflake
			GroupID types.Snowflake
		}
		e.ok("SetupJoinTable", e.db.SetupJoinTable(&Human{}, "Groups", &Belonging{}))
		e.migrate(&Group{}, &Human{}, &Belonging{})
		h := Human{Groups: []Group{{}}}
		e.must(e.db.Create(&h))
		e.ok("Append", e.db.Model(&h).Association("Groups").Append(&h.Groups[0]))
		// One row too many; with a uniqueIndex on the pair there would be one.
		if n := len(e.keys("belongings", "id", "human_id", h.ID)); n < 2 {
			e.Errorf("rows of the pair = %d; want more than one, as documented", n)
		}
	}},
	{"KeyInATextConditionIsNotTakenByFirstOrCreate", func(e *env) {
		e.migrate(&Item{})
		var item Item
		e.must(e.db.Where("id = ?", 42).FirstOrCreate(&item))
		e.fresh("ID", item.ID)
		var kept Item
		e.must(e.db.Where(Item{ID: 42}).Assign(Item{SKU: "A"}).FirstOrCreate(&kept))
		e.stored("items", "sku", "A", 42)
		var again Item
		e.must(e.db.Where(Item{ID: 42}).Assign(Item{SKU: "B"}).FirstOrCreate(&again))
		e.stored("items", "sku", "B", 42)
	}},
	{"CallbackThatIsRemovedLaterLeavesTheKeysRight", func(e *env) {
		e.withOld()
		e.ok("Remove", e.db.Callback().Create().Remove("gorm:save_after_associations"))
		list := []Order{{Number: "new"}, {Number: "old1"}}
		e.must(e.db.Clauses(doNothing()).Create(&list))
		for _, o := range list {
			e.stored("orders", "number", o.Number, o.ID)
		}
		e.ok("Remove", e.db.Callback().Create().Remove("gorm:before_create"))
		o := Order{Number: "without hooks"}
		e.must(e.db.Create(&o))
		e.stored("orders", "number", o.Number, o.ID)
	}},
}
