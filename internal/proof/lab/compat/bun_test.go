package compat

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/types"
)

type bunOrder struct {
	ID      types.Snowflake     `bun:",pk"`
	Parent  types.NullSnowflake `bun:"type:bigint"`
	BuyerID types.Snowflake
	Pointer *types.Snowflake
}

func bunDB(t *testing.T, dialect schema.Dialect) *bun.DB {
	t.Helper()
	pool, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	db := bun.NewDB(pool, dialect)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestBunMakesBigintColumns(t *testing.T) {
	for _, dialect := range []schema.Dialect{pgdialect.New(), sqlitedialect.New()} {
		table := bunDB(t, dialect).NewCreateTable().Model((*bunOrder)(nil)).String()
		want := map[string]string{"id": "BIGINT", "parent": "bigint", "buyer_id": "BIGINT", "pointer": "BIGINT"}
		if dialect.Name().String() == "sqlite" {
			want = map[string]string{"id": "INTEGER", "parent": "bigint", "buyer_id": "INTEGER", "pointer": "INTEGER"}
		}
		for column, typ := range want {
			if !strings.Contains(table, `"`+column+`" `+typ) {
				t.Errorf("%s: %s; want column %s of type %s", dialect.Name(), table, column, typ)
			}
		}
		if upper := strings.ToUpper(table); strings.Contains(upper, "AUTOINCREMENT") || strings.Contains(upper, "SERIAL") {
			t.Errorf("%s: %s; want no counter", dialect.Name(), table)
		}
	}
}

// This is why the field needs type:bigint. No method can tell bun.
func TestBunDoesNotMakeABigintOfAStructWithoutATag(t *testing.T) {
	type order struct {
		Parent types.NullSnowflake
	}
	for dialect, want := range map[schema.Dialect]string{pgdialect.New(): "JSONB", sqlitedialect.New(): "VARCHAR"} {
		table := bunDB(t, dialect).NewCreateTable().Model((*order)(nil)).String()
		if !strings.Contains(table, `"parent" `+want) {
			t.Errorf("%s: %s; want a %s, or a document that says otherwise", dialect.Name(), table, want)
		}
	}
}

func TestBunStoresAndReadsWhatMayBeNull(t *testing.T) {
	db := bunDB(t, sqlitedialect.New())
	ctx := t.Context()
	if _, err := db.NewCreateTable().Model((*bunOrder)(nil)).Exec(ctx); err != nil {
		t.Fatal(err)
	}
	pointer := id
	for _, c := range []struct {
		order           bunOrder
		parent, pointer string // typeof in SQLite
	}{
		{bunOrder{ID: 1}, "null", "null"},
		{bunOrder{ID: 2, Parent: types.NullSnowflake{Valid: true}, BuyerID: id, Pointer: &pointer}, "integer", "integer"},
		{bunOrder{ID: 1<<63 - 1, Parent: types.NullSnowflake{Snowflake: id, Valid: true}}, "integer", "null"},
	} {
		if _, err := db.NewInsert().Model(&c.order).Exec(ctx); err != nil {
			t.Fatalf("insert %+v = %v; want nil", c.order, err)
		}
		var parent, pointer string
		query := "SELECT typeof(parent), typeof(pointer) FROM bun_orders WHERE id = ?"
		if err := db.QueryRowContext(ctx, query, c.order.ID).Scan(&parent, &pointer); err != nil {
			t.Fatal(err)
		}
		if parent != c.parent || pointer != c.pointer {
			t.Errorf("%+v is stored as %s, %s; want %s, %s", c.order, parent, pointer, c.parent, c.pointer)
		}
		got := bunOrder{ID: c.order.ID, Parent: types.NullSnowflake{Snowflake: 7, Valid: true}}
		if err := db.NewSelect().Model(&got).WherePK().Scan(ctx); err != nil {
			t.Fatalf("select of %d = %v; want nil", c.order.ID, err)
		}
		samePointer := got.Pointer == nil && c.order.Pointer == nil ||
			got.Pointer != nil && c.order.Pointer != nil && *got.Pointer == *c.order.Pointer
		if got.ID != c.order.ID || got.Parent != c.order.Parent || got.BuyerID != c.order.BuyerID || !samePointer {
			t.Errorf("select of %d = %+v; want %+v", c.order.ID, got, c.order)
		}
	}
}

// With nullzero bun stores NULL for zero, and reads it back. A Snowflake takes no
// NULL, so the error comes after the row is stored.
func TestBunNullzeroFitsANullSnowflakeAlone(t *testing.T) {
	type nullOrder struct {
		ID     types.Snowflake     `bun:",pk"`
		Parent types.NullSnowflake `bun:"type:bigint,nullzero"`
	}
	type zeroOrder struct {
		ID     types.Snowflake `bun:",pk"`
		Parent types.Snowflake `bun:",nullzero"`
	}
	db := bunDB(t, sqlitedialect.New())
	ctx := t.Context()
	for _, model := range []any{(*nullOrder)(nil), (*zeroOrder)(nil)} {
		if _, err := db.NewCreateTable().Model(model).Exec(ctx); err != nil {
			t.Fatal(err)
		}
	}
	absent := nullOrder{ID: 1}
	if _, err := db.NewInsert().Model(&absent).Exec(ctx); err != nil || absent.Parent.Valid {
		t.Errorf("insert of an absent NullSnowflake = %+v, %v; want no change, nil", absent, err)
	}
	if _, err := db.NewInsert().Model(&zeroOrder{ID: 1}).Exec(ctx); !errors.Is(err, types.ErrNull) {
		t.Errorf("insert of a zero Snowflake = %v; want an error that matches ErrNull", err)
	}
	for table, want := range map[string]int{"null_orders": 1, "zero_orders": 1} {
		var got int
		query := "SELECT count(*) FROM " + table + " WHERE parent IS NULL"
		if err := db.QueryRowContext(ctx, query).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d, nil", query, got, err, want)
		}
	}
}
