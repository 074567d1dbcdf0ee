package gormcases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

var errSource = errors.New("no more keys")

var sourceCases = []testCase{
	{"SourceErrorStopsTheStatementBeforeAnySQL", func(e *env) {
		e.migrate(orderModels...)
		e.src.failAt, e.src.err = 1, errSource
		o := Order{Number: "A", Customer: &Customer{Email: "a@x"}, Items: []Item{{SKU: "1"}}}
		e.fails(e.db.Create(&o), errSource)
		equal(e, "statements", len(e.log.statements("")), 0)
		equal(e, "ID", o.ID, 0)
		equal(e, "Customer.ID", o.Customer.ID, 0)
	}},
	{"SourceErrorAssignsNoneOfASlice", func(e *env) {
		e.migrate(&Item{})
		for _, next := range []gormplugin.Source{e.src, gormplugin.SourceFunc(e.src.Next)} {
			db := e.open(&gorm.Config{})
			if err := db.Use(gormplugin.New(next)); err != nil {
				e.Fatalf("Use = %v; want no error", err)
			}
			*e.src = counter{failAt: 3, err: errSource}
			list := []Item{{SKU: "A"}, {ID: 42, SKU: "B"}, {SKU: "C"}, {SKU: "D"}}
			tx := db.Create(&list)
			e.fails(tx, errSource)
			if !strings.HasPrefix(tx.Error.Error(), "gormplugin: ") || !strings.Contains(tx.Error.Error(), "Item") {
				e.Errorf("error = %q; want one of gormplugin that names Item", tx.Error)
			}
			for i, want := range []types.Snowflake{0, 42, 0, 0} {
				equal(e, fmt.Sprintf("list[%d].ID", i), list[i].ID, want)
			}
		}
		e.count("items", 0)
	}},
	{"StatementThatHasFailedAlreadyTakesNoKeys", func(e *env) {
		e.migrate(&Item{})
		tx := e.db.Where("1 = 1")
		_ = tx.AddError(errSource)
		item := Item{SKU: "A"}
		e.fails(tx.Create(&item), errSource)
		equal(e, "ID", item.ID, 0)
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"SourceErrorLeavesANilEmbeddedPointer", func(e *env) {
		type Holder struct {
			*Base
			Name string `gorm:"size:40"`
		}
		e.migrate(&Holder{})
		e.src.failAt, e.src.err = 1, errSource
		h := Holder{Name: "A"}
		e.fails(e.db.Create(&h), errSource)
		equal(e, "Base", h.Base, nil)
		e.fails(e.db.Create(Holder{Name: "B"}), gorm.ErrInvalidValue) // and does not panic
	}},
	{"SourceErrorForAChildRollsTheParentBack", func(e *env) {
		e.migrate(orderModels...)
		e.src.failAt, e.src.err = 2, errSource
		o := Order{Number: "A", Items: []Item{{SKU: "1"}}}
		e.fails(e.db.Create(&o), errSource)
		e.count("orders", 0)
		e.count("items", 0)
		equal(e, "Items[0].ID", o.Items[0].ID, 0)
	}},
	{"ContextReachesTheSource", func(e *env) {
		e.migrate(&Item{})
		ctx, cancel := context.WithCancelCause(e.Context())
		cancel(errSource)
		item := Item{SKU: "A"}
		e.fails(e.db.WithContext(ctx).Create(&item), context.Canceled)
		equal(e, "ID", item.ID, 0)
		equal(e, "statements", len(e.log.statements("INSERT")), 0)
	}},
	{"SourceIsAskedBeforeAConnectionIsTaken", func(e *env) {
		e.migrate(&Item{})
		db := e.open(&gorm.Config{})
		pool, err := db.DB()
		if err != nil {
			e.Fatalf("DB = %v; want no error", err)
		}
		pool.SetMaxOpenConns(1)
		n := 0
		source := gormplugin.SourceFunc(func(ctx context.Context) (types.Snowflake, error) {
			n++
			return types.Snowflake(n), pool.PingContext(ctx)
		})
		// The deadline only ends a test that would hang.
		ctx, cancel := context.WithTimeout(e.Context(), time.Minute)
		defer cancel()
		db = db.WithContext(ctx)
		if err = db.Use(gormplugin.New(source)); err != nil {
			e.Fatalf("Use = %v; want no error", err)
		}
		e.must(db.Create(&[]Item{{SKU: "A"}, {SKU: "B"}}))
		e.stored("items", "sku", "B", 2)
	}},
	{"KeyThatIsNotAboveZeroIsRefused", func(e *env) {
		e.migrate(&Item{})
		for _, bad := range []types.Snowflake{0, -1} {
			db := e.open(&gorm.Config{})
			source := gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { return bad, nil })
			if err := db.Use(gormplugin.New(source)); err != nil {
				e.Fatalf("Use = %v; want no error", err)
			}
			item := Item{SKU: "A"}
			e.fails(db.Create(&item), gormplugin.ErrBadKey)
			equal(e, "ID", item.ID, 0)
		}
		e.count("items", 0)
	}},
	{"OnePluginServesTwoDatabases", func(e *env) {
		e.migrate(orderModels...)
		plugin := gormplugin.New(e.src)
		for _, number := range []string{"A", "B"} {
			db := e.open(&gorm.Config{})
			if err := db.Use(plugin); err != nil {
				e.Fatalf("Use = %v; want no error", err)
			}
			o := Order{Number: number, Items: []Item{{SKU: number}}}
			e.must(db.Create(&o))
			e.stored("orders", "number", number, o.ID)
			e.stored("items", "sku", number, o.Items[0].ID)
		}
	}},
}

// use installs the plugin of the case on db.
func (e *env) use(db *gorm.DB) *gorm.DB {
	e.Helper()
	if err := db.Use(gormplugin.New(e.src, e.target.Options...)); err != nil {
		e.Fatalf("Use = %v; want no error", err)
	}
	return db
}
