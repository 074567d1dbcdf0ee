package gormcases

import (
	"fmt"

	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

// A room has desks, which refer to it by an R that may be absent.
type room[R any] struct {
	ID    types.Snowflake
	Desks []desk[R] `gorm:"foreignKey:RoomID"`
}

// A desk stands in one [room] or in none.
type desk[R any] struct {
	ID     types.Snowflake
	Name   string `gorm:"size:40"`
	RoomID R
	Room   *room[R]
}

// A branch is one of a tree with a key of two columns.
type branch[R any] struct {
	TenantID int64           `gorm:"primaryKey;autoIncrement:false"`
	ID       types.Snowflake `gorm:"primaryKey"`
	ParentID R               `gorm:"index"`
	Parent   *branch[R]      `gorm:"foreignKey:TenantID,ParentID;references:TenantID,ID"`
	Children []branch[R]     `gorm:"foreignKey:TenantID,ParentID;references:TenantID,ID"`
}

// TableName is needed because brackets are none of a table's name.
func (room[R]) TableName(n schema.Namer) string   { return n.TableName("room") }
func (desk[R]) TableName(n schema.Namer) string   { return n.TableName("desk") }
func (branch[R]) TableName(n schema.Namer) string { return n.TableName("branch") }

// What GORM does to a pointer to any Scanner is in the case too. If it fails there, GORM has
// improved. Then change the package comment and docs/gorm.md.
var referenceCases = []testCase{
	{"ReferenceThatMayBeAbsentIsReadAndTakenAwayAsNullSnowflakeAndNotAsAPointer", func(e *env) {
		for name, references := range map[string]func(e *env) absence{"NullSnowflake": references[types.NullSnowflake], "a pointer": references[*types.Snowflake]} {
			want := absence{}
			if name == "a pointer" {
				want = absence{keptInMemory: true, writtenBack: 1, panics: true}
			}
			equal(e, "reference of "+name, references(e), want)
		}
	}},
}

// An absence is what GORM does to a reference of a type where there is none.
type absence struct {
	keptInMemory bool // after Association.Delete and Clear
	writtenBack  int  // rows, by a Save after that
	panics       bool // in the Preload of a tree with a key of two columns
	read         bool // into a new struct. In a filled one GORM keeps what was there.
}

func references[R comparable](e *env) (is absence) {
	e.Helper()
	e.ok("DropTable", e.db.Migrator().DropTable(&desk[R]{}, &room[R]{}, &branch[R]{}))
	e.migrate(&room[R]{}, &desk[R]{}, &branch[R]{})
	var none R
	for _, clear := range []bool{false, true} {
		r := room[R]{}
		d := desk[R]{Name: "A", Room: &r}
		e.must(e.db.Create(&d))
		id, gone := r.ID, r
		desks := func() int { return len(e.keys("desks", "id", "room_id", id)) }
		equal(e, "desks of the room", desks(), 1)
		if association := e.db.Model(&d).Association("Room"); clear {
			e.ok("Clear", association.Clear())
		} else {
			e.ok("Delete", association.Delete(&gone))
		}
		equal(e, "desks of the room after the removal", desks(), 0)
		d.Room = nil // GORM has emptied the room itself, and would store that as another
		e.must(e.db.Save(&d))
		if !clear { // which GORM does right for pointers too
			is.keptInMemory, is.writtenBack = d.RoomID != none, desks()
		}
	}
	in, out := desk[R]{Name: "in", Room: &room[R]{}}, desk[R]{Name: "out"}
	e.must(e.db.Create([]*desk[R]{&in, &out}))
	out, filled := desk[R]{}, in
	filled.ID = 0 // GORM would search by it
	e.must(e.db.Where("name = ?", "out").First(&filled))
	e.must(e.db.Where("name = ?", "out").First(&out))
	equal(e, "a reference of a filled struct is kept", filled.RoomID != none, true)
	is.read = out.RoomID != none

	e.must(e.db.Create(&branch[R]{TenantID: 1, Children: []branch[R]{{}, {}}}))
	defer func() { is.panics = recover() != nil }()
	var list []branch[R]
	e.must(e.db.Preload("Parent").Preload("Children").Order("id").Find(&list))
	equal(e, "the tree", fmt.Sprint(len(list), len(list[0].Children), list[0].Parent != nil, list[1].Parent.ID == list[0].ID), "3 2 false true")
	return is
}
