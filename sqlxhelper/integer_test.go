package sqlxhelper_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/conformance/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type (
	intRow[K any] struct {
		ID K `db:"id"`
	}
	intChild[K any] struct {
		types.Model
		Of K `db:"t_id"`
	}
	intParent[K any] struct {
		ID       uint          `db:"id"`
		Children []intChild[K] `db:"-" snowkey:"children,fk=t_id"`
	}
	textID uint64
)

func (i textID) Value() (driver.Value, error) { return "text", nil }

func TestIntegerKeysNeedTheOptionAnd64Bits(t *testing.T) {
	db := openSQLite(t)
	for _, test := range []struct {
		row     any
		option  sqlxhelper.Option
		problem string
	}{
		{&struct{ N int }{}, sqlxhelper.WithDialect(sqlxhelper.SQLite), "want a field of type types.Snowflake or types.ID for column id"},
		{&struct{ N int }{}, sqlxhelper.WithIntegerKeys(), "want a field of type types.Snowflake or types.ID, or a 64-bit integer, for column id"},
		{&intRow[uint]{}, sqlxhelper.WithDialect(sqlxhelper.SQLite), "the primary key is uint, want types.Snowflake or types.ID, or the option WithIntegerKeys"},
		{&intRow[int32]{}, sqlxhelper.WithDialect(sqlxhelper.SQLite), "the primary key is int32, want types.Snowflake or types.ID"},
		{&intRow[int32]{}, sqlxhelper.WithIntegerKeys(), "int32, which cannot hold the 64-bit keys"},
		{&intRow[uint16]{}, sqlxhelper.WithWideIntegerKeys(), "uint16, which cannot hold the 64-bit keys"},
		{&intRow[float64]{}, sqlxhelper.WithIntegerKeys(), "float64, want types.Snowflake, types.ID or a 64-bit integer"},
		{&intRow[*uint64]{}, sqlxhelper.WithIntegerKeys(), "*uint64, want types.Snowflake, types.ID or a 64-bit integer"},
		{&intRow[textID]{}, sqlxhelper.WithIntegerKeys(), "whose Value method may store something else"},
		{&intParent[uint32]{}, sqlxhelper.WithIntegerKeys(), "Of is uint32, want types.Snowflake"},
		{&intParent[*int32]{}, sqlxhelper.WithIntegerKeys(), "Of is *int32, want types.Snowflake"},
		{&intParent[textID]{}, sqlxhelper.WithIntegerKeys(), "or a 64-bit integer, a pointer to one, sql.NullInt64 or sql.Null"},
	} {
		err := sqlxhelper.New(sqlxcases.NewCounter(0), test.option).InsertGraph(ctx, db, "t", test.row)
		var plan *sqlxhelper.PlanError
		if !errors.As(err, &plan) || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("InsertGraph(%T) = %v; want a *PlanError with %q", test.row, err, test.problem)
		}
	}
}

// A Helper and one of With have plans of their own.
func TestIntegerKeysAreThoseOfTheHelperWithTheOption(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
	plain := newHelper(sqlxhelper.SQLite)
	for range 2 {
		if err := plain.Insert(ctx, db, "t", &intRow[uint64]{}); err == nil {
			t.Error("Insert() without the option = nil; want an error")
		}
		r := &intRow[uint64]{}
		if err := plain.With(sqlxhelper.WithIntegerKeys()).Insert(ctx, db, "t", r); err != nil || r.ID == 0 {
			t.Errorf("Insert() = %v with key %d; want nil and a key", err, r.ID)
		}
	}
}

// ahead is a source whose greatest key its method tells, as core.Generator's does.
type ahead struct{ last types.Snowflake }

func (a ahead) Next(context.Context) (types.Snowflake, error) { return 1, nil }

func (a ahead) Max(time.Time) types.Snowflake { return a.last }

func TestASourceThatIsTooWideForIntegerKeysIsRefused(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
	const last = 1<<53 - 1
	integers, wide := sqlxhelper.WithIntegerKeys(), sqlxhelper.WithWideIntegerKeys()
	next := func(id types.Snowflake) sqlxhelper.Source {
		return sqlxhelper.SourceFunc(func(context.Context) (types.Snowflake, error) { return id, nil })
	}
	for _, test := range []struct {
		name   string
		src    sqlxhelper.Source
		option sqlxhelper.Option
		refuse bool
	}{
		{"the last key of 53 bits", next(last), integers, false},
		{"the first of 54", next(last + 1), integers, true},
		{"the first of 54, wide", next(last + 1), wide, false},
		{"53 bits to come", ahead{last}, integers, false},
		{"54 bits to come", ahead{last + 1}, integers, true},
		{"54 bits to come, wide", ahead{math.MaxInt64}, wide, false},
		{"the default layout", generator(t, core.Default()), integers, true},
		{"the layout for JavaScript", generator(t, core.JavaScript()), integers, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &intRow[uint64]{}
			err := sqlxhelper.New(test.src, test.option).Insert(ctx, db, "t", r)
			if refused := errors.Is(err, sqlxhelper.ErrWideKey); refused != test.refuse || refused != (err != nil) || refused != (r.ID == 0) {
				t.Errorf("Insert() = %v with key %d; want ErrWideKey and no key: %v", err, r.ID, test.refuse)
			}
			execAll(t, db, "DELETE FROM t")
		})
	}
	if err := sqlxhelper.New(next(1<<53)).Insert(ctx, db, "t", &pair{}); errors.Is(err, sqlxhelper.ErrWideKey) {
		t.Errorf("Insert() without the option = %v; want no ErrWideKey", err)
	}
}

func generator(t *testing.T, l core.Layout) *core.Generator {
	t.Helper()
	g, err := core.New(core.Config{Layout: l, Worker: core.StaticWorker(9)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close(context.Background()) })
	return g
}

func TestAZeroIntegerForeignKeyIsRefused(t *testing.T) {
	err := sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.WithIntegerKeys()).Insert(ctx, openSQLite(t), "t", &struct {
		ID       uint          `db:"id"`
		ParentID uint          `db:"parent_id"`
		Parent   *intRow[uint] `db:"-" snowkey:"parents,belongs_to=parent_id"`
	}{})
	if !errors.Is(err, sqlxhelper.ErrForeignKey) || !strings.Contains(err.Error(), "make it a *uint or sql.Null[uint], which can be null") {
		t.Errorf("Insert() = %v; want ErrForeignKey, and which types can be null", err)
	}
}
