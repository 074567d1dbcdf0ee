package gormcases

import (
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// Base is embedded in several ways.
type Base struct {
	ID types.Snowflake `gorm:"primaryKey"`
}

var fieldCases = []testCase{
	{"EmbeddedKeyIsFilled", func(e *env) {
		type ByValue struct {
			Base
			Name string `gorm:"size:40"`
		}
		type ByPointer struct {
			*Base
			Name string `gorm:"size:40"`
		}
		type ByField struct {
			Part Base   `gorm:"embedded;embeddedPrefix:p_"`
			Name string `gorm:"size:40"`
		}
		e.migrate(&ByValue{}, &ByPointer{}, &ByField{})
		v, f := ByValue{Name: "A"}, ByField{Name: "A"}
		list := []ByPointer{{Name: "A"}, {Name: "B", Base: &Base{}}, {Name: "C", Base: &Base{ID: 42}}}
		e.must(e.db.Create(&v))
		e.must(e.db.Create(&list))
		e.must(e.db.Create(&f))
		e.stored("by_values", "name", "A", v.ID)
		e.stored("by_pointers", "name", "A", list[0].ID)
		e.stored("by_pointers", "name", "B", list[1].ID)
		e.stored("by_pointers", "name", "C", 42)
		e.fresh("p_id", f.Part.ID)
		equal(e, "stored p_id", e.keys("by_fields", "p_id", "name", "A")[0], f.Part.ID.Int64())
	}},
	{"KeyOutsideShadowsThatOfGORMsModel", func(e *env) {
		type Shadow struct {
			gorm.Model
			ID   types.Snowflake `gorm:"primaryKey"`
			Name string          `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Shadow{})
		list := []Shadow{{Name: "A"}, {Name: "B"}}
		e.must(e.db.Create(&list))
		e.stored("shadows", "name", "A", list[0].ID)
		e.stored("shadows", "name", "B", list[1].ID)
		equal(e, "gorm.Model.ID", list[0].Model.ID, 0)
		// GORM asks for the shadowed key by RETURNING, and puts what comes
		// back by position.
		again := []Shadow{{Name: "C"}, {Name: "A"}, {Name: "D"}}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		for _, s := range again {
			e.stored("shadows", "name", s.Name, s.ID)
		}
	}},
	{"ShadowedColumnIsNotFilled", func(e *env) {
		type Inner struct {
			Code types.Snowflake `gorm:"snowflake"`
		}
		type Outer struct {
			ID types.Snowflake
			Inner
			Code types.Snowflake
		}
		e.migrate(&Outer{})
		o := Outer{}
		e.must(e.db.Create(&o))
		equal(e, "Code", o.Code, 0)
		equal(e, "Inner.Code", o.Inner.Code, 0)
	}},
	{"PointerKeyIsReplacedWhenNilAndWhenAtZero", func(e *env) {
		type Pointed struct {
			ID   *types.Snowflake `gorm:"primaryKey"`
			Name string           `gorm:"size:40"`
		}
		e.migrate(&Pointed{})
		zero, own := new(types.Snowflake), types.Snowflake(42)
		list := []Pointed{{Name: "A"}, {Name: "B", ID: zero}, {Name: "C", ID: &own}, {Name: "D", ID: zero}}
		e.must(e.db.Create(&list))
		for _, p := range list {
			e.stored("pointeds", "name", p.Name, *p.ID)
		}
		equal(e, "the zero that two rows shared", *zero, 0)
		equal(e, "the key that the caller set", own, 42)
	}},
	{"KeyOfATypeOfItsOwnIsRefusedUntilItsTagSaysWhoGivesIt", func(e *env) {
		type OrderID types.Snowflake
		type WrappedID struct{ types.Snowflake }
		type Unsaid struct{ ID OrderID }
		type Uncounted struct {
			ID *OrderID `gorm:"primaryKey;autoIncrement:false"`
		}
		type Wrapped struct{ ID WrappedID }
		type Holder struct {
			ID      types.Snowflake
			Unsaids []Unsaid `gorm:"foreignKey:ID"` // there it is a foreign key
		}
		for _, row := range []any{&Unsaid{}, &Unsaid{ID: 5}, &Uncounted{}, &Wrapped{}, []Unsaid{{}}} {
			var refused *gormplugin.ModelError
			if err := e.db.Create(row).Error; !errors.As(err, &refused) || refused.Field != "ID" {
				e.Errorf("Create(%T) = %v; want a ModelError for ID", row, err)
			}
		}
		equal(e, "statements", len(e.log.statements("INSERT")), 0)
		type Ours struct {
			ID   OrderID `gorm:"snowflake;autoIncrement:false"`
			Name string  `gorm:"size:40"`
		}
		type Counted struct {
			ID OrderID `gorm:"autoIncrement"`
		}
		type Own struct {
			ID OrderID `gorm:"autoIncrement:false;snowflake:-"`
		}
		e.migrate(&Ours{}, &Counted{}, &Own{}, &Holder{}, &Unsaid{})
		ours, counted, own := Ours{Name: "A"}, Counted{}, Own{ID: 5}
		e.must(e.db.Create(&ours))
		e.fresh("ID", types.Snowflake(ours.ID))
		e.stored("ours", "name", "A", types.Snowflake(ours.ID))
		e.must(e.db.Create(&counted))
		equal(e, "ID", counted.ID, 1)
		e.must(e.db.Create(&own))
		equal(e, "ID", own.ID, 5)
		holder := Holder{Unsaids: []Unsaid{{}}}
		e.must(e.db.Create(&holder))
		equal(e, "ID", types.Snowflake(holder.Unsaids[0].ID), holder.ID)
	}},
	{"KeyOfAnotherNameIsFilled", func(e *env) {
		type Named struct {
			Code types.Snowflake `gorm:"primaryKey;column:the_code"`
			Name string          `gorm:"size:40"`
		}
		e.migrate(&Named{})
		n := Named{Name: "A"}
		e.must(e.db.Create(&n))
		e.fresh("Code", n.Code)
		equal(e, "stored the_code", e.keys("nameds", "the_code", "name", "A")[0], n.Code.Int64())
		m := map[string]any{"Code": 42, "name": "B"}
		e.must(e.db.Model(&n).Create(m))
		equal(e, "stored the_code", e.keys("nameds", "the_code", "name", "B")[0], 42)
		equal(e, "len(m)", len(m), 2)
	}},
	{"OnlyIDOfACompositeKeyIsFilled", func(e *env) {
		type Tenanted struct {
			ID       types.Snowflake `gorm:"primaryKey"` // first, as a key that is whole would be
			TenantID types.Snowflake `gorm:"primaryKey"`
			Name     string          `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Tenanted{})
		one := Tenanted{TenantID: 7, Name: "A"}
		e.must(e.db.Create(&one))
		e.stored("tenanteds", "name", "A", one.ID)
		// The same ID under another tenant is another row.
		e.must(e.db.Create(&[]Tenanted{{TenantID: 8, ID: 5, Name: "x"}, {TenantID: 7, ID: 9, Name: "y"}}))
		for _, conflict := range []clause.OnConflict{doNothing(), doNothing("name")} {
			list := []Tenanted{{TenantID: 7, ID: 5, Name: "y"}, {TenantID: 7, Name: "y"}, {TenantID: 7, ID: one.ID, Name: "A"}, {TenantID: 8, ID: one.ID, Name: "z"}}
			e.must(e.db.Clauses(conflict).Create(&list))
			equal(e, "list[0].ID", list[0].ID, 9)
			equal(e, "list[1].ID", list[1].ID, 9)
			equal(e, "list[2].ID", list[2].ID, one.ID)
			equal(e, "list[3].ID", list[3].ID, one.ID)
			e.must(e.db.Where("name = ?", "z").Delete(&Tenanted{}))
		}
		none := Tenanted{Name: "B"}
		e.must(e.db.Create(&none))
		equal(e, "TenantID", none.TenantID, 0)
	}},
	{"TaggedColumnsOfAllKindsAreFilled", func(e *env) {
		type Word string
		type Tagged struct {
			ID      int64                     `gorm:"primaryKey;autoIncrement:false;snowflake"`
			Name    string                    `gorm:"size:40"`
			Serial  uint64                    `gorm:"snowflake"`
			Word    Word                      `gorm:"size:40;snowflake"`
			Typed   types.Snowflake           `gorm:"snowflake"`
			Pointer *int64                    `gorm:"snowflake"`
			Null    types.NullSnowflake       `gorm:"snowflake"`
			SQLNull sql.Null[types.Snowflake] `gorm:"snowflake"`
			Zero    types.NullSnowflake       `gorm:"snowflake"`
			Plain   types.Snowflake           // not the key, and nobody asked
			Absent  types.NullSnowflake
		}
		e.migrate(&Tagged{})
		v := Tagged{Name: "A", Zero: types.NullSnowflake{Valid: true}}
		e.must(e.db.Create(&v))
		word, err := strconv.ParseInt(string(v.Word), 10, 64)
		if err != nil {
			e.Errorf("Word = %q; want a decimal key", v.Word)
		}
		seen := map[types.Snowflake]bool{}
		for name, id := range map[string]types.Snowflake{
			"ID": types.Snowflake(v.ID), "Serial": types.Snowflake(v.Serial), "Word": types.Snowflake(word), "Typed": v.Typed,
			"Pointer": types.Snowflake(*v.Pointer), "Null": v.Null.Snowflake, "SQLNull": v.SQLNull.V,
		} {
			e.fresh(name, id)
			seen[id] = true
		}
		equal(e, "distinct keys", len(seen), 7)
		equal(e, "keys asked for", e.src.given, 7)
		equal(e, "Null.Valid", v.Null.Valid && v.SQLNull.Valid, true)
		equal(e, "Plain", v.Plain, 0)
		equal(e, "Zero", v.Zero, types.NullSnowflake{Valid: true})
		equal(e, "Absent.Valid", v.Absent.Valid, false)
		var back Tagged
		e.must(e.db.Where("name = ?", "A").Take(&back))
		if *back.Pointer != *v.Pointer {
			e.Errorf("stored Pointer = %d; want %d", *back.Pointer, *v.Pointer)
		}
		back.Pointer = v.Pointer
		equal(e, "stored row", back, v)
	}},
	{"TextKeyIsDecimalAndGoesToForeignKeys", func(e *env) {
		type Line struct {
			ID        types.Snowflake
			InvoiceID string `gorm:"size:40"`
		}
		type Invoice struct {
			ID     string `gorm:"primaryKey;size:40;snowflake"`
			Number string `gorm:"size:40;uniqueIndex"`
			Lines  []Line
		}
		e.migrate(&Invoice{}, &Line{})
		v := Invoice{Number: "A", Lines: []Line{{}}}
		e.must(e.db.Create(&v))
		id, err := types.Parse(v.ID)
		if err != nil {
			e.Fatalf("ID = %q; want a decimal key", v.ID)
		}
		e.stored("invoices", "number", "A", id)
		e.stored("lines", "invoice_id", v.ID, v.Lines[0].ID)
		again := Invoice{Number: "A", Lines: []Line{{}}}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		equal(e, "ID of the stored row", again.ID, v.ID)
		equal(e, "InvoiceID", again.Lines[0].InvoiceID, v.ID)
		own := Invoice{ID: "abc", Number: "A"}
		e.must(e.db.Clauses(doNothing()).Create(&own))
		equal(e, "ID of the stored row", own.ID, v.ID)
		e.must(e.db.Create(&Invoice{ID: "abc", Number: "B"}))
		own = Invoice{Number: "B"}
		e.must(e.db.Clauses(doNothing()).Create(&own))
		equal(e, "ID of the stored row", own.ID, "abc")
	}},
	{"TagMinusOptsOut", func(e *env) {
		type Out struct {
			ID   types.Snowflake `gorm:"primaryKey;snowflake:-"`
			Name string          `gorm:"size:40"`
		}
		e.migrate(&Out{})
		o := Out{Name: "A"}
		e.must(e.db.Create(&o))
		equal(e, "ID", o.ID, 0)
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"KeyThatCannotBeAssignedIsAModelError", func(e *env) {
		type Typo struct {
			ID types.Snowflake `gorm:"primaryKey;snowflake:false"`
		}
		type Timed struct {
			ID   types.Snowflake
			Flag bool `gorm:"snowflake"`
		}
		type Coded struct {
			ID   types.Snowflake
			Code int64 `gorm:"snowflake;serializer:json"`
		}
		type Untagged struct {
			ID types.Snowflake `gorm:"serializer:json"`
		}
		for value, says := range map[any]string{
			&Typo{}: "the tag snowflake:false is unknown", &Timed{}: "the tag snowflake does not accept the type",
			&Coded{}: "a key with a serializer", &Untagged{}: "a key with a serializer",
		} {
			err := e.db.Create(value).Error
			var model *gormplugin.ModelError
			if !errors.As(err, &model) || !strings.HasPrefix(model.Reason, says) {
				e.Errorf("Create(%T) = %v; want a *ModelError that says %q", value, err, says)
			}
		}
		equal(e, "statements", len(e.log.statements("INSERT")), 0)
	}},
	{"ReadOnlyKeyIsLeftAlone", func(e *env) {
		type ReadOnly struct {
			ID   types.Snowflake `gorm:"primaryKey;->"`
			Name string          `gorm:"size:40"`
		}
		type UpdateOnly struct {
			ID   types.Snowflake
			Name string          `gorm:"size:40"`
			Code types.Snowflake `gorm:"snowflake;<-:update"`
		}
		e.migrate(&UpdateOnly{})
		e.must(e.db.Exec("CREATE TABLE " + e.prefix + "read_onlies (id bigint DEFAULT 5, name varchar(40))"))
		r, u := ReadOnly{Name: "A"}, UpdateOnly{Name: "A"}
		e.must(e.db.Create(&r))
		equal(e, "ID", r.ID, 0)
		e.must(e.db.Create(&u))
		equal(e, "Code", u.Code, 0)
		equal(e, "keys asked for", e.src.given, 1)
	}},
	{"KeyThatTheDatabaseFillsIsLeftAlone", func(e *env) {
		type Defaulted struct {
			ID   types.Snowflake `gorm:"primaryKey;default:77"`
			Name string          `gorm:"size:40"`
		}
		type Counting struct {
			ID   types.Snowflake `gorm:"primaryKey;autoIncrement;snowflake:-"`
			Name string          `gorm:"size:40"`
		}
		type Uinted struct {
			ID   uint
			Name string `gorm:"size:40"`
		}
		e.migrate(&Defaulted{}, &Uinted{})
		d, u := Defaulted{Name: "A"}, Uinted{Name: "A"}
		e.must(e.db.Create(&d))
		equal(e, "ID", d.ID, 77)
		e.must(e.db.Create(&u))
		e.stored("uinteds", "name", "A", types.Snowflake(u.ID))
		e.must(e.db.Session(&gorm.Session{DryRun: true}).Create(&Counting{Name: "A"}))
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"KeyOfAnotherTypeIsLeftAlone", func(e *env) {
		type Worded struct {
			ID string `gorm:"primaryKey;size:40"`
		}
		e.migrate(&Worded{})
		w := Worded{}
		e.must(e.db.Create(&w))
		equal(e, "ID", w.ID, "")
		// Nor is anything else of such a model changed.
		e.must(e.db.Clauses(doNothing()).Create(Worded{ID: "x"}))
		e.must(e.db.Clauses(doNothing()).Create(Worded{ID: "x"}))
		e.count("wordeds", 2)
	}},
}
