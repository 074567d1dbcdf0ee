package compat

import (
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/types"
)

type bunOrder[K, N comparable] struct {
	bun.BaseModel `bun:"table:orders,alias:o"`

	ID       K `bun:",pk"`
	Parent   N `bun:"type:bigint"`
	BuyerID  K
	Pointer  *K
	Untagged N `bun:",nullzero"`
}

func bunDB(t *testing.T, dialect schema.Dialect) *bun.DB {
	t.Helper()
	pool, err := sql.Open("sqlite3", ":memory:")
	must(t, err)
	pool.SetMaxOpenConns(1)
	db := bun.NewDB(pool, dialect)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// No method can tell bun that a struct is a bigint, so the field needs type:bigint.
func TestBunMakesBigintColumnsOfAllButAStructWithoutATag(t *testing.T) {
	each(t, untyped.bunColumns, typed.bunColumns)
}

func (k kind[K, N]) bunColumns(t *testing.T) {
	for dialect, want := range map[schema.Dialect][]string{
		pgdialect.New():     {`"id" BIGINT NOT NULL`, `"parent" bigint`, `"buyer_id" BIGINT`, `"pointer" BIGINT`, `"untagged" JSONB`},
		sqlitedialect.New(): {`"id" INTEGER NOT NULL`, `"parent" bigint`, `"buyer_id" INTEGER`, `"pointer" INTEGER`, `"untagged" VARCHAR`},
	} {
		table := bunDB(t, dialect).NewCreateTable().Model((*bunOrder[K, N])(nil)).String()
		for _, column := range want {
			if !strings.Contains(table, column) {
				t.Errorf("%s: %s; want the column %s, or a document that says otherwise", dialect.Name(), table, column)
			}
		}
		if upper := strings.ToUpper(table); strings.Contains(upper, "AUTOINCREMENT") || strings.Contains(upper, "SERIAL") {
			t.Errorf("%s: %s; want no counter", dialect.Name(), table)
		}
	}
}

func TestBunStoresAndReadsWhatMayBeNull(t *testing.T) { each(t, untyped.bunRows, typed.bunRows) }

func (k kind[K, N]) bunRows(t *testing.T) {
	db := bunDB(t, sqlitedialect.New())
	ctx := t.Context()
	if _, err := db.NewCreateTable().Model((*bunOrder[K, N])(nil)).Exec(ctx); err != nil {
		t.Fatal(err)
	}
	pointer := k.key(id)
	for _, c := range []struct {
		order           bunOrder[K, N]
		parent, pointer string // typeof in SQLite
	}{
		{bunOrder[K, N]{ID: k.key(1)}, "null", "null"},
		{bunOrder[K, N]{ID: k.key(2), Parent: k.null(0), BuyerID: k.key(id), Pointer: &pointer}, "integer", "integer"},
		{bunOrder[K, N]{ID: k.key(largest), Parent: k.null(id)}, "integer", "null"},
	} {
		if _, err := db.NewInsert().Model(&c.order).Exec(ctx); err != nil {
			t.Fatalf("insert %+v = %v; want nil", c.order, err)
		}
		var parent, pointer string
		query := "SELECT typeof(parent), typeof(pointer) FROM orders WHERE id = ?"
		must(t, db.QueryRowContext(ctx, query, c.order.ID).Scan(&parent, &pointer))
		if parent != c.parent || pointer != c.pointer {
			t.Errorf("%+v is stored as %s, %s; want %s, %s", c.order, parent, pointer, c.parent, c.pointer)
		}
		got := bunOrder[K, N]{ID: c.order.ID, Parent: k.null(7)}
		if err := db.NewSelect().Model(&got).WherePK().Scan(ctx); err != nil || !reflect.DeepEqual(got, c.order) {
			t.Errorf("select of %v = %+v, %v; want %+v, nil", c.order.ID, got, err, c.order)
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

func TestSqlxExpandsSlicesOfKeys(t *testing.T) { each(t, untyped.expanded, typed.expanded) }

func (k kind[K, N]) expanded(t *testing.T) {
	db := sqlx.NewDb(bunDB(t, sqlitedialect.New()).DB, "sqlite3")
	db.MustExec("CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	db.MustExec("INSERT INTO orders VALUES (1), (2), (9223372036854775807)")
	query, args, err := sqlx.In("SELECT count(*) FROM orders WHERE id IN (?)", []K{k.key(1), k.key(largest)})
	must(t, err)
	var n int
	if err := db.Get(&n, query, args...); n != 2 || err != nil {
		t.Errorf("Get(IN %T) = %d, %v; want 2, nil", args[0], n, err)
	}
}
