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
	{"SourceThatGivesNoKeyStopsTheStatementBeforeAnySQL", func(e *env) {
		e.migrate(orderModels...)
		ended, cancel := context.WithCancel(e.Context())
		cancel()
		bad := func(id types.Snowflake) gormplugin.SourceFunc {
			return func(context.Context) (types.Snowflake, error) { return id, nil }
		}
		for _, test := range []struct {
			ctx    context.Context
			source gormplugin.Source
			want   error
		}{
			{e.Context(), &counter{failAt: 3, err: errSource}, errSource},
			{e.Context(), gormplugin.SourceFunc((&counter{failAt: 3, err: errSource}).Next), errSource},
			{ended, &counter{}, context.Canceled},
			{e.Context(), bad(0), gormplugin.ErrBadKey},
			{e.Context(), bad(-1), gormplugin.ErrBadKey},
		} {
			db := e.with(test.source)
			list := []Label{{Text: "A"}, {ID: 42, Text: "B"}, {Text: "C"}, {Text: "D"}}
			e.log.reset()
			err := db.WithContext(test.ctx).Create(&list).Error
			if !errors.Is(err, test.want) || !strings.HasPrefix(err.Error(), "gormplugin: ") || !strings.Contains(err.Error(), "Label") {
				e.Errorf("Create = %v; want an error of gormplugin that is %q and names Label", err, test.want)
			}
			equal(e, "statements", len(e.log.statements("")), 0)
			equal(e, "keys", fmt.Sprint(list), "[{0 A} {42 B} {0 C} {0 D}]")
		}
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
	{"SourceIsAskedBeforeAConnectionIsTaken", func(e *env) {
		e.migrate(&Item{})
		db := e.open(&gorm.Config{})
		pool, err := db.DB()
		e.ok("DB", err)
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
		e.ok("Use", db.Use(gormplugin.New(source)))
		e.must(db.Create(&[]Item{{SKU: "A"}, {SKU: "B"}}))
		e.stored("items", "sku", "B", 2)
	}},
}
