package gormcases

import (
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/types"
)

var assignCases = []testCase{
	{"StructPointerGetsAKey", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A"}
		e.must(e.db.Create(&o))
		e.fresh("ID", o.ID)
		e.stored("orders", "number", "A", o.ID)
	}},
	{"PointerToPointerGetsAKey", func(e *env) {
		e.migrate(orderModels...)
		o := &Order{Number: "A"}
		e.must(e.db.Create(&o))
		e.stored("orders", "number", "A", o.ID)
	}},
	{"StructByValueIsErrInvalidValue", func(e *env) {
		e.migrate(orderModels...)
		e.fails(e.db.Create(Order{Number: "A"}), gorm.ErrInvalidValue)
		e.count("orders", 0)
	}},
	{"StructByValueWithItsKeyIsGORMsBusiness", func(e *env) {
		e.migrate(&Item{})
		e.must(e.db.Create(Item{ID: 5, SKU: "A"}))
		e.stored("items", "sku", "A", 5)
	}},
	{"ArrayByValueIsErrInvalidValue", func(e *env) {
		e.migrate(orderModels...)
		e.fails(e.db.Create([2]Item{{SKU: "A"}, {SKU: "B"}}), gorm.ErrInvalidValue)
		e.count("items", 0)
	}},
	{"ArrayPointerGetsKeys", func(e *env) {
		e.migrate(&Item{})
		list := [2]Item{{SKU: "A"}, {SKU: "B"}}
		e.must(e.db.Create(&list))
		e.stored("items", "sku", "A", list[0].ID)
		e.stored("items", "sku", "B", list[1].ID)
	}},
	{"ArrayOfPointersByValueGetsKeys", func(e *env) {
		e.migrate(&Item{})
		list := [2]*Item{{SKU: "A"}, {SKU: "B"}}
		e.must(e.db.Create(list))
		e.stored("items", "sku", "A", list[0].ID)
		e.stored("items", "sku", "B", list[1].ID)
	}},
	{"SliceGetsKeysInOrderOfOneFill", func(e *env) {
		e.migrate(&Item{})
		list := []Item{{SKU: "A"}, {SKU: "B"}, {SKU: "C"}}
		e.must(e.db.Create(list))
		for i, item := range list {
			equal(e, fmt.Sprintf("list[%d].ID", i), item.ID, firstKey+types.Snowflake(i+1)*keyStep)
			e.stored("items", "sku", item.SKU, item.ID)
		}
		equal(e, "Fill calls", e.src.fills, 1)
	}},
	{"PointerSliceGetsKeys", func(e *env) {
		e.migrate(&Item{})
		list := []*Item{{SKU: "A"}, {SKU: "B"}}
		e.must(e.db.Create(&list))
		e.stored("items", "sku", "A", list[0].ID)
		e.stored("items", "sku", "B", list[1].ID)
	}},
	{"NilElementIsGORMsErrorNamingItsIndex", func(e *env) {
		e.migrate(&Item{})
		list := []*Item{{SKU: "A"}, nil}
		tx := e.db.Create(&list)
		e.fails(tx, gorm.ErrInvalidData)
		equal(e, "error", tx.Error.Error(), "slice data #1 is invalid: "+gorm.ErrInvalidData.Error())
		equal(e, "list[0].ID", list[0].ID, 0)
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"EmptySliceIsGORMsError", func(e *env) {
		e.migrate(&Item{})
		e.fails(e.db.Create(&[]Item{}), gorm.ErrEmptySlice)
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"NilPointerIsGORMsError", func(e *env) {
		e.migrate(&Item{})
		e.fails(e.db.Create((*Item)(nil)), gorm.ErrInvalidValue)
	}},
	{"InterfaceIsGORMsError", func(e *env) {
		e.migrate(&Item{})
		var value any = Item{SKU: "A"}
		e.fails(e.db.Create(&value), gorm.ErrInvalidData)
	}},
	{"SliceOfInterfacesIsAnErrorWhereGORMPanics", func(e *env) {
		e.migrate(&Item{})
		e.fails(e.db.Model(&Item{}).Create([]any{&Item{SKU: "A"}}), gorm.ErrInvalidData)
	}},
	{"ForeignStructIsAnErrorWhereGORMPanics", func(e *env) {
		e.migrate(&Item{})
		dto := struct{ SKU string }{"A"}
		e.fails(e.db.Model(&Item{}).Create(&dto), gorm.ErrInvalidData)
		e.fails(e.db.Model(&Item{}).Create([]struct{ SKU string }{{"A"}}), gorm.ErrInvalidData)
	}},
	{"TypeOfTheSameFieldsServesForTheModel", func(e *env) {
		e.migrate(&Item{})
		type input Item
		in := input{SKU: "A"}
		e.must(e.db.Model(&Item{}).Create(&in))
		e.stored("items", "sku", "A", in.ID)
	}},
	{"KeyOfTheCallerIsKept", func(e *env) {
		e.migrate(&Item{})
		item := Item{ID: 42, SKU: "A"}
		e.must(e.db.Create(&item))
		equal(e, "ID", item.ID, 42)
		e.stored("items", "sku", "A", 42)
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"OnlyMissingKeysOfABatchAreAssigned", func(e *env) {
		e.migrate(&Item{})
		list := []Item{{SKU: "A"}, {ID: 42, SKU: "B"}, {SKU: "C"}}
		e.must(e.db.Create(&list))
		e.fresh("list[0].ID", list[0].ID)
		equal(e, "list[1].ID", list[1].ID, 42)
		e.fresh("list[2].ID", list[2].ID)
		equal(e, "keys asked for", e.src.given, 2)
		for _, item := range list {
			e.stored("items", "sku", item.SKU, item.ID)
		}
	}},
	{"SamePointerTwiceIsADuplicateKey", func(e *env) {
		e.migrate(&Item{})
		item := &Item{SKU: "A"}
		if tx := e.db.Create([]*Item{item, item}); tx.Error == nil {
			e.Error("Create([p, p]) = nil; want the database's duplicate key error")
		}
		e.count("items", 0)
	}},
	{"CreateInBatchesGetsKeys", func(e *env) {
		e.migrate(&Item{})
		list := make([]Item, 7)
		for i := range list {
			list[i].SKU = fmt.Sprint(i)
		}
		e.must(e.db.CreateInBatches(&list, 3))
		for _, item := range list {
			e.stored("items", "sku", item.SKU, item.ID)
		}
		equal(e, "Fill calls", e.src.fills, 3)
	}},
	{"CreateBatchSizeCarriesMoreChildrenThanOneStatementCan", func(e *env) {
		e.migrate(orderModels...)
		// Three columns each: above 65,535 bound parameters, the most of all
		// three databases.
		o := Order{Number: "A", Items: make([]Item, 22_000)}
		db := e.db.Session(&gorm.Session{CreateBatchSize: 5000, SkipDefaultTransaction: false})
		e.must(db.Create(&o))
		e.count("items", 22_000)
		seen := map[types.Snowflake]bool{}
		for _, item := range o.Items {
			if item.ID == 0 || item.OrderID != o.ID || seen[item.ID] {
				e.Fatalf("item = %+v; want a key of its own and order %d", item, o.ID)
			}
			seen[item.ID] = true
		}
	}},
	{"RetryAfterAFailureWritesTheSameKeys", func(e *env) {
		e.migrate(orderModels...)
		e.must(e.db.Create(&Order{Number: "A"}))
		o := Order{Number: "A", Items: []Item{{SKU: "1"}}}
		err := e.db.Transaction(func(tx *gorm.DB) error {
			nested := tx.Transaction(func(tx *gorm.DB) error { return tx.Create(&o).Error })
			if nested == nil {
				e.Error("Create of a duplicate = nil; want an error")
			}
			id := o.ID
			e.fresh("ID after a failure", id)
			o.Number = "B"
			if err := tx.Create(&o).Error; err != nil {
				return err
			}
			equal(e, "ID after the retry", o.ID, id)
			return nil
		})
		if err != nil {
			e.Fatalf("Transaction = %v; want no error", err)
		}
		e.stored("orders", "number", "B", o.ID)
		e.stored("items", "order_id", o.ID, o.Items[0].ID)
	}},
	{"SaveOfANewRowGetsAKey", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Items: []Item{{SKU: "1"}}}
		e.must(e.db.Save(&o))
		e.stored("orders", "number", "A", o.ID)
		e.stored("items", "order_id", o.ID, o.Items[0].ID)
	}},
	{"SaveOfAMixedSliceKeepsAndAssigns", func(e *env) {
		e.migrate(orderModels...)
		old := Order{Number: "A"}
		e.must(e.db.Create(&old))
		list := []Order{{Number: "A2"}, {Number: "B"}}
		list[0].ID = old.ID
		e.must(e.db.Save(&list))
		e.stored("orders", "number", "A2", old.ID)
		e.stored("orders", "number", "B", list[1].ID)
		e.count("orders", 2)
	}},
	{"UpsertOfAPresetKeyWithChildrenWorksWhereSaveCannot", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Items: []Item{{SKU: "1"}}}
		o.ID = 42
		// GORM tries to update first, and then saves the children of no order.
		if tx := e.db.Save(&o); tx.Error == nil {
			e.Error("Save = nil; want the error of the foreign key")
		}
		e.count("orders", 0)
		e.must(e.db.Omit("Items").Save(&o))
		e.stored("orders", "number", "A", 42)
		e.must(e.db.Unscoped().Delete(&o))
		e.must(e.db.Clauses(upsertAll()).Create(&o))
		e.stored("orders", "number", "A", 42)
		e.stored("items", "order_id", 42, o.Items[0].ID)
		o.Note = "changed"
		e.must(e.db.Clauses(upsertAll()).Create(&o))
		e.count("orders", 1)
		e.count("items", 1)
	}},
	{"FirstOrCreateGetsAKey", func(e *env) {
		e.migrate(orderModels...)
		var o, again, kept Order
		e.must(e.db.Where(Order{Number: "A"}).Attrs(Order{Note: "n"}).FirstOrCreate(&o))
		e.stored("orders", "number", "A", o.ID)
		e.must(e.db.Where(Order{Number: "A"}).FirstOrCreate(&again))
		equal(e, "ID found", again.ID, o.ID)
		where := Order{Number: "B"}
		where.ID = 42
		e.must(e.db.Where(where).FirstOrCreate(&kept))
		e.stored("orders", "number", "B", 42)
	}},
	{"ConcurrentCreatesGetKeysOfTheirOwn", func(e *env) {
		e.migrate(orderModels...)
		const workers, each = 4, 10
		errs, ids := make(chan error, workers), make(chan types.Snowflake, workers*each*2)
		for w := range workers {
			go func() {
				var err error
				for i := range each {
					o := Order{Number: fmt.Sprintf("%d-%d", w, i), Items: []Item{{SKU: "x"}}}
					if err = e.db.Create(&o).Error; err != nil {
						break
					}
					ids <- o.ID
					ids <- o.Items[0].ID
				}
				errs <- err
			}()
		}
		for range workers {
			if err := <-errs; err != nil {
				e.Errorf("Create = %v; want no error", err)
			}
		}
		close(ids)
		var list []types.Snowflake
		for id := range ids {
			list = append(list, id)
		}
		slices.Sort(list)
		equal(e, "distinct keys", len(slices.Compact(list)), workers*each*2)
	}},
}
