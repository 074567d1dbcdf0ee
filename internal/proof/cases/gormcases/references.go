package gormcases

import (
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// A Room has desks, by a reference that may be absent.
type Room struct {
	ID    types.Snowflake
	Desks []Desk
}

// A Desk stands in one [Room] or in none.
type Desk struct {
	ID     types.Snowflake
	Name   string `gorm:"size:40"`
	RoomID types.NullSnowflake
	Room   *Room
}

// A Hall has seats, which refer to it by pointers.
type Hall struct {
	ID    types.Snowflake
	Seats []Seat
}

// A Seat stands in one [Hall] or in none.
type Seat struct {
	ID     types.Snowflake
	Name   string `gorm:"size:40"`
	HallID *types.Snowflake
	Hall   *Hall
}

// A Branch is one of a tree with a key of two columns.
type Branch struct {
	TenantID int64               `gorm:"primaryKey;autoIncrement:false"`
	ID       types.Snowflake     `gorm:"primaryKey"`
	ParentID types.NullSnowflake `gorm:"index"`
	Parent   *Branch             `gorm:"foreignKey:TenantID,ParentID;references:TenantID,ID"`
	Children []Branch            `gorm:"foreignKey:TenantID,ParentID;references:TenantID,ID"`
}

// A Twig is a [Branch] that refers to its parent by a pointer.
type Twig struct {
	TenantID int64            `gorm:"primaryKey;autoIncrement:false"`
	ID       types.Snowflake  `gorm:"primaryKey"`
	ParentID *types.Snowflake `gorm:"index"`
	Parent   *Twig            `gorm:"foreignKey:TenantID,ParentID;references:TenantID,ID"`
	Children []Twig           `gorm:"foreignKey:TenantID,ParentID;references:TenantID,ID"`
}

var referenceCases = []testCase{
	{"NullReferenceIsGoneAfterAssociationDelete", func(e *env) {
		e.migrate(&Room{}, &Desk{})
		for i, remove := range []func(r *Room, d *Desk) error{
			func(r *Room, d *Desk) error { return e.db.Model(d).Association("Room").Delete(r) },
			func(_ *Room, d *Desk) error { return e.db.Model(d).Association("Room").Clear() },
		} {
			room, desk := Room{}, Desk{Name: fmt.Sprint(i)}
			e.must(e.db.Create(&room))
			desk.Room = &room
			e.must(e.db.Create(&desk))
			id := room.ID
			equal(e, "RoomID", desk.RoomID, types.NullSnowflake{Snowflake: id, Valid: true})
			if err := remove(&room, &desk); err != nil {
				e.Fatalf("removal %d = %v; want no error", i, err)
			}
			equal(e, fmt.Sprint("RoomID after removal ", i), desk.RoomID, types.NullSnowflake{})
			desk.Room = nil // GORM has emptied the room itself, and would store that as another
			e.must(e.db.Save(&desk))
			equal(e, fmt.Sprint("desks of the room after removal ", i), len(e.keys("desks", "id", "room_id", id)), 0)
		}
	}},
	{"NullReferenceOfACompositeTreeIsPreloaded", func(e *env) {
		e.migrate(&Branch{})
		root := Branch{TenantID: 1, Children: []Branch{{}, {}}}
		e.must(e.db.Create(&root))
		var list []Branch
		e.must(e.db.Preload("Parent").Preload("Children").Order("id").Find(&list))
		equal(e, "len", len(list), 3)
		equal(e, "children of the root", len(list[0].Children), 2)
		equal(e, "the root has a parent", list[0].Parent != nil, false)
		equal(e, "parent of a child", list[1].Parent.ID, root.ID)
	}},
	// What GORM does to a pointer to any Scanner, and to any Scanner. If one of these
	// fails, GORM has improved. Then change the package comment and docs/gorm.md.
	{"PointerReferenceIsWrittenBackAfterAssociationDelete", func(e *env) {
		e.migrate(&Hall{}, &Seat{})
		seat := Seat{Name: "A", Hall: &Hall{}}
		e.must(e.db.Create(&seat))
		hall := *seat.Hall
		id := hall.ID
		if err := e.db.Model(&seat).Association("Hall").Delete(&hall); err != nil {
			e.Fatalf("Delete = %v; want no error", err)
		}
		equal(e, "seats of the hall", len(e.keys("seats", "id", "hall_id", id)), 0)
		if seat.HallID == nil {
			e.Fatal("HallID = nil; GORM left the pointer alone")
		}
		seat.Hall = nil
		e.must(e.db.Save(&seat))
		equal(e, "seats of the hall after Save", len(e.keys("seats", "id", "hall_id", id)), 1)
	}},
	{"PointerReferenceOfACompositeTreePanicsInPreload", func(e *env) {
		e.migrate(&Twig{})
		root := Twig{TenantID: 1, Children: []Twig{{}}}
		e.must(e.db.Create(&root))
		defer func() {
			if recover() == nil {
				e.Error("Preload of a nil pointer did not panic")
			}
		}()
		_ = e.db.Preload("Parent").Find(&[]Twig{})
	}},
	{"ReferenceOfAFilledStructIsKeptWhereNullIsRead", func(e *env) {
		e.migrate(&Room{}, &Desk{}, &Hall{}, &Seat{})
		e.must(e.db.Create(&[]Desk{{Name: "in", Room: &Room{}}, {Name: "out"}}))
		e.must(e.db.Create(&[]Seat{{Name: "in", Hall: &Hall{}}, {Name: "out"}}))
		var desk, newDesk Desk
		var seat, newSeat Seat
		e.must(e.db.Where("name = ?", "in").First(&desk))
		e.must(e.db.Where("name = ?", "in").First(&seat))
		desk.ID, seat.ID = 0, 0 // GORM would search by them
		e.must(e.db.Where("name = ?", "out").First(&desk))
		e.must(e.db.Where("name = ?", "out").First(&seat))
		equal(e, "RoomID is there", desk.RoomID.Valid, true)
		equal(e, "HallID is there", seat.HallID != nil, true)
		// Read into a new struct.
		e.must(e.db.Where("name = ?", "out").First(&newDesk))
		e.must(e.db.Where("name = ?", "out").First(&newSeat))
		equal(e, "RoomID is there", newDesk.RoomID.Valid, false)
		equal(e, "HallID is there", newSeat.HallID != nil, false)
	}},
}
