package gormcases

import (
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/types"
)

// These cases show what GORM itself makes impossible. It fails with a clear error,
// or does the known thing. They also show the way out.
var limitCases = []testCase{
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
}
