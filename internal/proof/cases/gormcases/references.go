package gormcases

import (
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

// A foreign key that may be absent, in Go.
type (
	nullable = types.NullSnowflake
	pointer  = *types.Snowflake
)

// What GORM does to a pointer to any Scanner is in the cases too. If one of these fails, GORM has
// improved. Then change the package comment and docs/gorm.md.
var referenceCases = []testCase{
	{"NullReferenceIsGoneAfterAssociationDelete", func(e *env) {
		for _, clear := range []bool{false, true} {
			d, stored := leaveRoom[nullable](e, clear)
			equal(e, "RoomID", d.RoomID, nullable{})
			equal(e, "desks of the room after Save", stored, 0)
		}
	}},
	{"PointerReferenceIsWrittenBackAfterAssociationDelete", func(e *env) {
		d, stored := leaveRoom[pointer](e, false)
		equal(e, "RoomID is there", d.RoomID != nil, true)
		equal(e, "desks of the room after Save", stored, 1)
	}},
	{"NullReferenceOfACompositeTreeIsPreloaded", func(e *env) {
		list := preloaded[nullable](e)
		equal(e, "len", len(list), 3)
		equal(e, "children of the root", len(list[0].Children), 2)
		equal(e, "the root has a parent", list[0].Parent != nil, false)
		equal(e, "parent of a child", list[1].Parent.ID, list[0].ID)
	}},
	{"PointerReferenceOfACompositeTreePanicsInPreload", func(e *env) {
		defer func() {
			if recover() == nil {
				e.Error("Preload of a nil pointer did not panic")
			}
		}()
		preloaded[pointer](e)
	}},
	{"ReferenceOfAFilledStructIsKeptWhereNullIsRead", func(e *env) {
		filled, fresh := readRooms[nullable](e)
		equal(e, "RoomIDs are there", [2]bool{filled.Valid, fresh.Valid}, [2]bool{true, false})
	}},
	{"PointerOfAFilledStructIsKeptWhereNullIsRead", func(e *env) {
		filled, fresh := readRooms[pointer](e)
		equal(e, "RoomIDs are there", [2]bool{filled != nil, fresh != nil}, [2]bool{true, false})
	}},
}

// leaveRoom takes a desk out of its room, by Delete or Clear, and saves it. It returns the desk, and
// how many desks the room then has.
func leaveRoom[R any](e *env, clear bool) (d desk[R], stored int) {
	e.Helper()
	e.migrate(&room[R]{}, &desk[R]{})
	r := room[R]{}
	d = desk[R]{Name: "A", Room: &r}
	e.must(e.db.Create(&d))
	id, gone := r.ID, r
	equal(e, "desks of the room", len(e.keys("desks", "id", "room_id", id)), 1)
	association := e.db.Model(&d).Association("Room")
	var err error
	if clear {
		err = association.Clear()
	} else {
		err = association.Delete(&gone)
	}
	e.ok("removal", err)
	equal(e, "desks of the room after the removal", len(e.keys("desks", "id", "room_id", id)), 0)
	d.Room = nil // GORM has emptied the room itself, and would store that as another
	e.must(e.db.Save(&d))
	return d, len(e.keys("desks", "id", "room_id", id))
}

// preloaded stores a tree of three, and reads it with its relations.
func preloaded[R any](e *env) (list []branch[R]) {
	e.Helper()
	e.migrate(&branch[R]{})
	e.must(e.db.Create(&branch[R]{TenantID: 1, Children: []branch[R]{{}, {}}}))
	e.must(e.db.Preload("Parent").Preload("Children").Order("id").Find(&list))
	return list
}

// readRooms reads the NULL of a desk without a room into a struct that has one, and into a new one.
func readRooms[R any](e *env) (filled, fresh R) {
	e.Helper()
	e.migrate(&room[R]{}, &desk[R]{})
	e.must(e.db.Create(&[]desk[R]{{Name: "in", Room: &room[R]{}}, {Name: "out"}}))
	var d, other desk[R]
	e.must(e.db.Where("name = ?", "in").First(&d))
	d.ID = 0 // GORM would search by it
	e.must(e.db.Where("name = ?", "out").First(&d))
	e.must(e.db.Where("name = ?", "out").First(&other))
	return d.RoomID, other.RoomID
}
