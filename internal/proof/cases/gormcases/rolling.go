package gormcases

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// A Product is what the old release of a program knows of its table.
type Product struct {
	ID    types.Snowflake
	Code  *string `gorm:"size:5;uniqueIndex"`
	SKU   string  `gorm:"column:sku;size:40"`
	Parts []ProductPart
}

// A ProductPart is a child of a [Product].
type ProductPart struct {
	ID        types.Snowflake
	ProductID types.Snowflake
	Name      string `gorm:"size:40"`
	N         int
}

// Two releases of a program work on one database: e.db is that of the old one, which has used its
// tables before the new one alters them. Columns of other types, and indexes that are made or
// dropped, are also among the random upserts.
var rollingCases = []testCase{
	{"UniqueIndexThatAnotherReleaseMakesIsSeenByAnUpsertOfTheKey", func(e *env) {
		e.migrate(&ProductPart{})
		first := []ProductPart{{Name: "A", N: 1}, {Name: "B", N: 2}}
		e.must(e.db.Clauses(upsertAll()).Create(&first)) // the key is the only unique one
		again := []ProductPart{{ID: first[0].ID, Name: "A", N: 3}, {Name: "C", N: 4}}
		e.must(e.db.Save(&again))
		e.ddl("CREATE UNIQUE INDEX PRE_part ON PRE_product_parts (name)")
		for _, upsert := range []struct {
			what string
			list []ProductPart
		}{
			{"one new", []ProductPart{{Name: "A", N: 5}}},
			{"one new, one of them stored", []ProductPart{{Name: "B", N: 6}, {Name: "new1", N: 7}}},
			{"one changes, one does not", []ProductPart{{Name: "A", N: 50}, {Name: "B", N: 6}}},
			{"one row twice", []ProductPart{{Name: "new2", N: 8}, {Name: "new2", N: 8}}},
			{"a key of the caller", []ProductPart{{ID: 77, Name: "C", N: 9}}},
			{"a stored key, and a new one", []ProductPart{{ID: first[1].ID, Name: "B", N: 10}, {Name: "A", N: 11}}},
		} {
			tx := e.db.Clauses(upsertAll()).Create(&upsert.list)
			if tx.Error != nil && !e.mysql() {
				continue // the others go by the target alone
			}
			e.ok(upsert.what, tx.Error)
			for _, p := range upsert.list {
				if p.ID != 0 || len(upsert.list) == 1 { // zero where a later row may have changed the name
					e.stored("product_parts", "name", p.Name, p.ID)
				}
			}
		}
	}},
	{"UniqueIndexOfChildrenThatAnotherReleaseMakesIsSeenWhenTheirParentIsSaved", func(e *env) {
		e.migrate(&Product{}, &ProductPart{})
		p := Product{SKU: "1", Parts: []ProductPart{{Name: "A", N: 1}, {Name: "B", N: 2}}}
		e.must(e.db.Create(&p))
		q := Product{SKU: "2", Parts: []ProductPart{{Name: "moved"}}}
		e.must(e.db.Create(&q))
		e.ddl("CREATE UNIQUE INDEX PRE_part ON PRE_product_parts (product_id, name)")
		for i, full := range []bool{false, true, false} {
			again := Product{ID: p.ID, SKU: "1", Parts: []ProductPart{{Name: "A", N: 10 + i}, {Name: "B", N: 2}, {Name: fmt.Sprint("new", i)}}}
			if i == 2 { // of which RowsAffected has as many as if all were new
				again.Parts = []ProductPart{{Name: "A", N: 11}, {ID: q.Parts[0].ID, Name: "moved"}}
			}
			if err := e.db.Session(&gorm.Session{FullSaveAssociations: full}).Save(&again).Error; err != nil {
				// A part that moves may have been the one that another has met.
				if e.mysql() && !(i == 2 && errors.Is(err, gormplugin.ErrUnresolved)) {
					e.Errorf("Save = %v; want no error", err)
				}
				continue
			}
			for _, part := range again.Parts {
				var stored []ProductPart
				e.must(e.db.Where("id = ?", part.ID).Find(&stored))
				if len(stored) != 1 || stored[0].ProductID != p.ID || stored[0].Name != part.Name {
					e.Errorf("part %s has the key %d in memory, of which there is %+v", part.Name, part.ID, stored)
				}
			}
		}
	}},
	{"ColumnThatAnotherReleaseRenamesIsAnErrorAndNoRow", func(e *env) {
		e.migrate(&Product{}, &ProductPart{})
		code := "A"
		e.must(e.db.Create(&Product{SKU: "A", Code: &code}))
		e.must(e.db.Clauses(doNothing()).Create(&Product{SKU: "B", Code: &code}))
		rename := func(from, to string) { e.ddl("ALTER TABLE PRE_products RENAME COLUMN " + from + " TO " + to) }
		rename("sku", "number")
		p := Product{SKU: "C", Parts: []ProductPart{{Name: "of C"}}}
		if err := e.db.Clauses(doNothing()).Create(&p).Error; err == nil || !strings.Contains(err.Error(), "sku") {
			e.Errorf("Create = %v; want the error of the database", err)
		}
		e.count("product_parts", 0)
		rename("number", "sku")
		e.must(e.db.Clauses(doNothing()).Create(&p))
		e.stored("products", "sku", "C", p.ID)
	}},
	{"ReleasesOfWhichOneKnowsMoreColumnsWriteBesideEachOther", func(e *env) {
		e.migrate(&Product{}, &ProductPart{})
		text := func(s string) *string { return &s }
		first := Product{Code: text("A")}
		e.must(e.db.Create(&first)) // the old release has used its tables
		type Product struct {       // of the new one
			ID     types.Snowflake
			Code   *string `gorm:"size:10;uniqueIndex"`
			Extern *string `gorm:"size:40;uniqueIndex"`
			Note   string  `gorm:"size:40;not null;default:none"`
		}
		old, next := e.db, e.with(e.src)
		e.ok("AutoMigrate", next.AutoMigrate(&Product{}))
		for i := range 3 {
			code := func(s string) *string { return text(fmt.Sprint(s, i)) }
			a := Product{Code: code("A"), Extern: code("xA"), Note: "new"}
			e.must(next.Create(&a))
			many := slices.Repeat([]oldProduct{{Code: code("A")}}, 25) // which are looked up by a list
			e.must(old.Clauses(doNothing()).Create(&many))
			for _, p := range many {
				equal(e, "the row of the new release in the old one's memory", p.ID, a.ID)
			}

			b := oldProduct{Code: code("B"), SKU: "old"}
			e.must(old.Create(&b))
			again := Product{Code: code("B"), Extern: code("xB"), Note: "new"}
			e.must(next.Clauses(upsertAll("code")).Create(&again))
			equal(e, "the row of the old release in the new one's memory", again.ID, b.ID)
			more := oldProduct{Code: code("B"), SKU: "again"}
			e.must(old.Clauses(upsertAll("code")).Create(&more))
			equal(e, "the row of both releases in the old one's memory", more.ID, b.ID)
			b.SKU = "saved"
			e.must(old.Save(&b))

			// The old release knows nothing of the index by which the new one finds the row.
			met := Product{Code: code("C"), Extern: code("xB")}
			e.must(next.Clauses(doNothing()).Create(&met))
			equal(e, "the row that was met by the new column", met.ID, b.ID)
			list := []oldProduct{{Code: code("A")}, {Code: code("D")}, {Code: code("B")}}
			e.must(old.Clauses(doNothing()).Create(&list))
			lists := []Product{{Code: code("D"), Extern: code("xD")}, {Code: code("E"), Extern: code("xA")}, {Code: code("F"), Extern: code("xF")}}
			e.must(next.Clauses(doNothing()).Create(&lists))
			for what, key := range map[string][2]types.Snowflake{
				"A in the list of the old": {list[0].ID, a.ID}, "B in the list of the old": {list[2].ID, b.ID},
				"D in the list of the new": {lists[0].ID, list[1].ID}, "the extern of A": {lists[1].ID, a.ID},
			} {
				equal(e, what, key[0], key[1])
			}
			e.stored("products", "code", *code("F"), lists[2].ID)

			var stored Product
			e.must(next.First(&stored, "code = ?", code("B")))
			if stored.ID != b.ID || stored.Extern == nil || *stored.Extern != *code("xB") || stored.Note != "new" {
				e.Errorf("the row of both releases = %+v; want what the new one has set of it", stored)
			}
			var sku string
			e.must(old.Model(&oldProduct{}).Where("id = ?", b.ID).Pluck("sku", &sku))
			equal(e, "the column of the old release", sku, "saved")
		}
		e.count("products", 1+3*4)
	}},
}

// oldProduct is [Product] where a newer release has that name.
type oldProduct = Product
