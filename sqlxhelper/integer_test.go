package sqlxhelper_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type (
	intRow[K any] struct {
		ID K `db:"id"`
	}
	intChild struct {
		types.Model
		Of uint32 `db:"t_id"`
	}
	intParent struct {
		ID       uint       `db:"id"`
		Children []intChild `db:"-" snowkey:"children,fk=t_id"`
	}
)

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
		{&intParent{}, sqlxhelper.WithIntegerKeys(), "Of is uint32, want types.Snowflake, *types.Snowflake or types.NullSnowflake, or a types.ID or types.NullID; or a 64-bit integer, a pointer to one, sql.NullInt64 or sql.Null"},
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
