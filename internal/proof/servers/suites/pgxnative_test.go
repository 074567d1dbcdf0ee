package servers

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/snowkey/snowkey/types"
)

// pgx by itself, without database/sql, in each of its modes and both formats.

type (
	nativeOrder struct {
		types.Model
		Parent   types.NullSnowflake       `db:"parent"`
		Customer types.ID[nativeOrder]     `db:"customer"`
		Gift     types.NullID[nativeOrder] `db:"gift"`
	}
	// nativeLine is a composite type.
	nativeLine struct {
		Order  types.Snowflake
		Parent types.NullSnowflake
		Typed  types.ID[nativeOrder]
		SKU    string
	}
)

const nativeID = types.Snowflake(9007199254740993) // 2^53+1

var (
	nativeNull    = types.NullSnowflake{}
	nativePresent = types.NullSnowflake{Snowflake: 1<<63 - 1, Valid: true}
)

var nativeColumns = []string{"id", "parent", "customer", "gift"}

// nativeModes are the ways in which pgx sends arguments. In the last two it does not ask the
// server for their types, and sends text.
var nativeModes = map[string]pgx.QueryExecMode{
	"CacheStatement": pgx.QueryExecModeCacheStatement,
	"CacheDescribe":  pgx.QueryExecModeCacheDescribe,
	"DescribeExec":   pgx.QueryExecModeDescribeExec,
	"Exec":           pgx.QueryExecModeExec,
	"SimpleProtocol": pgx.QueryExecModeSimpleProtocol,
}

// typeless reports whether pgx does not know the types of parameters.
func typeless(mode pgx.QueryExecMode) bool {
	return mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol
}

// nativeConn returns a connection with tables of its own.
func nativeConn(t *testing.T, mode pgx.QueryExecMode) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(wayTo("pgx").place(t).dsn)
	must(t, err)
	config.DefaultQueryExecMode = mode
	conn, err := pgx.ConnectConfig(t.Context(), config)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, statement := range []string{
		"CREATE TABLE orders (id BIGINT PRIMARY KEY, parent BIGINT, customer BIGINT NOT NULL, gift BIGINT)",
		"CREATE TYPE order_line AS (order_id BIGINT, parent BIGINT, typed BIGINT, sku TEXT)",
	} {
		if _, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeExec); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func inNativeModes(t *testing.T, run func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode)) {
	t.Helper()
	for name, mode := range nativeModes {
		t.Run(name, func(t *testing.T) { run(t, nativeConn(t, mode), mode) })
	}
}

// nativeQuery returns what a query of one row and one column returns.
func nativeQuery[T any](t *testing.T, conn *pgx.Conn, query string, args ...any) T {
	t.Helper()
	var got T
	if err := conn.QueryRow(t.Context(), query, args...).Scan(&got); err != nil {
		t.Errorf("%s of %v into %T = %v; want no error", query, args, got, err)
	}
	return got
}

func nativeRows() []nativeOrder {
	return []nativeOrder{
		{types.Model{ID: 1}, nativeNull, 5, types.NullID[nativeOrder]{}},
		{types.Model{ID: nativeID}, types.NullSnowflake{Valid: true}, 6, types.NullID[nativeOrder]{ID: 7, Valid: true}},
		{types.Model{ID: 1<<63 - 1}, nativePresent, 0, types.NullID[nativeOrder]{Valid: true}},
	}
}

// sameRows asks for all orders, and compares.
func sameRows(t *testing.T, conn *pgx.Conn, want []nativeOrder) {
	t.Helper()
	for _, format := range []int16{pgx.TextFormatCode, pgx.BinaryFormatCode} {
		args := []any{pgx.QueryResultFormats{format}}
		if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
			args = nil // text alone
		}
		rows, err := conn.Query(t.Context(), "SELECT id, parent, customer, gift FROM orders ORDER BY id", args...)
		must(t, err)
		if got, err := pgx.CollectRows(rows, pgx.RowToStructByName[nativeOrder]); !slices.Equal(got, want) || err != nil {
			t.Errorf("RowToStructByName in format %d = %+v, %v; want %+v", format, got, err, want)
		}
	}
	rows, err := conn.Query(t.Context(), "SELECT id FROM orders ORDER BY id")
	must(t, err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[types.Snowflake])
	if len(ids) != len(want) || err != nil {
		t.Errorf("RowTo[Snowflake] = %v, %v; want %d keys", ids, err, len(want))
	}
	for i := range min(len(ids), len(want)) {
		if ids[i] != want[i].ID {
			t.Errorf("RowTo[Snowflake] = %v; want the keys of %+v", ids, want)
		}
	}
}

func TestPgxStoresAndReadsIDsOfEachType(t *testing.T) {
	t.Parallel()
	const insert = "INSERT INTO orders (id, parent, customer, gift) VALUES ($1, $2, $3, $4) RETURNING id"
	arguments := func(o nativeOrder) []any { return []any{o.ID, o.Parent, &o.Customer, o.Gift} }
	for way, store := range map[string]func(conn *pgx.Conn, rows []nativeOrder) error{
		"Exec": func(conn *pgx.Conn, rows []nativeOrder) (err error) {
			for _, o := range rows {
				_, failed := conn.Exec(context.Background(), insert, arguments(o)...)
				err = errors.Join(err, failed)
			}
			return err
		},
		"Batch": func(conn *pgx.Conn, rows []nativeOrder) error {
			batch := new(pgx.Batch)
			for _, o := range rows {
				batch.Queue(insert, arguments(o)...).QueryRow(func(row pgx.Row) error {
					var id types.Snowflake
					if err := row.Scan(&id); id != o.ID || err != nil {
						return fmt.Errorf("RETURNING id = %d, %w; want %d", id, err, o.ID)
					}
					return nil
				})
			}
			return conn.SendBatch(context.Background(), batch).Close()
		},
		"Copy": func(conn *pgx.Conn, rows []nativeOrder) error {
			_, err := conn.CopyFrom(context.Background(), pgx.Identifier{"orders"}, nativeColumns, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
				return arguments(rows[i]), nil
			}))
			return err
		},
	} {
		inNativeModes(t, func(t *testing.T, conn *pgx.Conn, _ pgx.QueryExecMode) {
			if err := store(conn, nativeRows()); err != nil {
				t.Fatalf("%s = %v; want nil", way, err)
			}
			sameRows(t, conn, nativeRows())
		})
	}
	inNativeModes(t, func(t *testing.T, conn *pgx.Conn, _ pgx.QueryExecMode) {
		if got := nativeQuery[*types.Snowflake](t, conn, "SELECT NULL::bigint"); got != nil {
			t.Errorf("NULL into *Snowflake = %v; want nil", got)
		}
		if got := nativeQuery[*types.ID[nativeOrder]](t, conn, "SELECT $1::bigint", (*types.ID[nativeOrder])(nil)); got != nil {
			t.Errorf("a nil pointer came back as %v; want nil", got)
		}
		// The column need not be a bigint.
		for _, column := range []string{"'9007199254740993'::text", "'9007199254740993'::varchar", "9007199254740993::numeric"} {
			if got := nativeQuery[types.Snowflake](t, conn, "SELECT "+column); got != nativeID {
				t.Errorf("%s into Snowflake = %d; want %d", column, got, nativeID)
			}
		}
	})
}

func TestPgxRefusesWhatIsNoIDAndStoresNothing(t *testing.T) {
	t.Parallel()
	inNativeModes(t, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		for column, want := range map[string]error{
			"-1::bigint": types.ErrRange, "'007'::text": types.ErrSyntax, "''::text": types.ErrSyntax, "1.5::float8": types.ErrSyntax,
			"9223372036854775808::numeric": types.ErrRange, "true": types.ErrSyntax,
		} {
			id, null, typed := types.Snowflake(42), nativePresent, types.ID[nativeOrder](42)
			for _, dest := range []any{&id, &null, &typed} {
				if err := conn.QueryRow(t.Context(), "SELECT "+column).Scan(dest); !errors.Is(err, want) {
					t.Errorf("%s into %T = %v; want an error that matches %v", column, dest, err, want)
				}
			}
			if id != 42 || null != nativePresent || typed != 42 {
				t.Errorf("%s left %d, %v, %d; want them unchanged", column, id, null, typed)
			}
		}
		var id types.Snowflake
		if err := conn.QueryRow(t.Context(), "SELECT NULL::bigint").Scan(&id); !errors.Is(err, types.ErrNull) {
			t.Errorf("NULL into Snowflake = %v; want an error that matches ErrNull", err)
		}
		for _, arg := range []any{types.Snowflake(-1), types.NullSnowflake{Snowflake: -1, Valid: true}, types.ID[nativeOrder](-1)} {
			if _, err := conn.Exec(t.Context(), "INSERT INTO orders (id, customer) VALUES ($1, 1)", arg); !errors.Is(err, types.ErrRange) {
				t.Errorf("insert of %T -1 = %v; want an error that matches ErrRange", arg, err)
			}
		}
		_, err := conn.CopyFrom(t.Context(), pgx.Identifier{"orders"}, nativeColumns, pgx.CopyFromRows([][]any{
			{types.Snowflake(100), nil, 1, nil}, {types.Snowflake(-1), nil, 1, nil},
		}))
		if err == nil || !strings.Contains(err.Error(), "cannot marshal Snowflake -1 into SQL") { // pgx passes on the text alone, by way of the server
			t.Errorf("CopyFrom of -1 = %v; want that -1 is refused", err)
		}
		if !typeless(mode) {
			if _, err := conn.Exec(t.Context(), "SELECT $1::bigint[]", []types.Snowflake{1, -1}); !errors.Is(err, types.ErrRange) {
				t.Errorf("array with -1 = %v; want an error that matches ErrRange", err)
			}
		}
		if n := nativeQuery[int](t, conn, "SELECT count(*) FROM orders"); n != 0 {
			t.Errorf("%d rows are stored; want none", n)
		}
	})
}

// arrayOf sends and reads back an array.
func arrayOf[T any](t *testing.T, conn *pgx.Conn, want ...T) {
	t.Helper()
	const query = "SELECT $1::bigint[]"
	if got := nativeQuery[[]T](t, conn, query, want); !reflect.DeepEqual(got, want) {
		t.Errorf("%T came back as %v; want %v", want, got, want)
	}
	if got := nativeQuery[pgtype.FlatArray[T]](t, conn, query, pgtype.FlatArray[T](want)); !reflect.DeepEqual([]T(got), want) {
		t.Errorf("FlatArray of %T came back as %v; want %v", want, got, want)
	}
}

func TestPgxArraysOfIDs(t *testing.T) {
	t.Parallel()
	inNativeModes(t, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		one, two := types.Snowflake(1), nativeID
		// Results are read in each mode.
		const some = "SELECT ARRAY[1, 9007199254740993, NULL]::bigint[]"
		if got := nativeQuery[[]types.NullSnowflake](t, conn, some); !slices.Equal(got, []types.NullSnowflake{{Snowflake: 1, Valid: true}, {Snowflake: nativeID, Valid: true}, {}}) {
			t.Errorf("%s = %v", some, got)
		}
		if got := nativeQuery[[]*types.Snowflake](t, conn, some); len(got) != 3 || *got[0] != 1 || *got[1] != nativeID || got[2] != nil {
			t.Errorf("%s = %v", some, got)
		}
		var ids []types.Snowflake
		if err := conn.QueryRow(t.Context(), some).Scan(&ids); !errors.Is(err, types.ErrNull) {
			t.Errorf("an array with NULL into []Snowflake = %v, %v; want an error that matches ErrNull", ids, err)
		}
		if typeless(mode) {
			// pgx cannot tell what a slice of an unknown type is.
			if err := conn.QueryRow(t.Context(), "SELECT $1::bigint[]", []types.Snowflake{1}).Scan(&ids); err == nil {
				t.Error("a slice as an argument = no error; want one, for which docs/types.md has the remedy")
			}
			for _, slice := range []any{[]types.Snowflake(nil), []types.NullSnowflake(nil), []*types.Snowflake(nil), []types.ID[nativeOrder](nil), []types.NullID[nativeOrder](nil)} {
				conn.TypeMap().RegisterDefaultPgType(slice, "_int8")
			}
			for _, array := range []any{pgtype.FlatArray[types.Snowflake](nil), pgtype.FlatArray[types.NullSnowflake](nil), pgtype.FlatArray[*types.Snowflake](nil), pgtype.FlatArray[types.ID[nativeOrder]](nil), pgtype.FlatArray[types.NullID[nativeOrder]](nil)} {
				conn.TypeMap().RegisterDefaultPgType(array, "_int8")
			}
		}
		arrayOf(t, conn, one, two, 1<<63-1)
		arrayOf(t, conn, types.ID[nativeOrder](0), 3)
		arrayOf(t, conn, nativeNull, nativePresent, types.NullSnowflake{Valid: true})
		arrayOf(t, conn, types.NullID[nativeOrder]{}, types.NullID[nativeOrder]{ID: 4, Valid: true})
		arrayOf(t, conn, &one, nil, &two)
		if got := nativeQuery[[]types.Snowflake](t, conn, "SELECT $1::bigint[]", []types.Snowflake{}); got == nil || len(got) != 0 {
			t.Errorf("an empty slice came back as %#v; want an empty slice", got)
		}
		if !nativeQuery[bool](t, conn, "SELECT $1::bigint[] IS NULL", []types.Snowflake(nil)) {
			t.Error("a nil slice is not NULL")
		}

		for _, o := range nativeRows() {
			if _, err := conn.Exec(t.Context(), "INSERT INTO orders (id, customer) VALUES ($1, 1)", o.ID); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := conn.Query(t.Context(), "SELECT id FROM orders WHERE id = ANY($1::bigint[]) ORDER BY id", []types.Snowflake{nativeID, 1, nativeID - 1})
		must(t, err)
		if got, err := pgx.CollectRows(rows, pgx.RowTo[types.Snowflake]); !slices.Equal(got, []types.Snowflake{1, nativeID}) || err != nil {
			t.Errorf("rows by = ANY = %v, %v; want 1 and %d", got, err, nativeID)
		}
	})
}

func TestPgxCompositesAndRangesOfIDs(t *testing.T) {
	t.Parallel()
	inNativeModes(t, func(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
		loaded, err := conn.LoadTypes(t.Context(), []string{"order_line", "_order_line"})
		must(t, err)
		conn.TypeMap().RegisterTypes(loaded)
		conn.TypeMap().RegisterDefaultPgType(nativeLine{}, "order_line")
		conn.TypeMap().RegisterDefaultPgType([]nativeLine(nil), "_order_line")
		want := nativeLine{nativeID, nativeNull, 7, "cup"}
		if got := nativeQuery[nativeLine](t, conn, "SELECT $1::order_line", want); got != want {
			t.Errorf("the composite came back as %+v; want %+v", got, want)
		}
		lines := []nativeLine{want, {1, nativePresent, 0, `"a, (b)`}}
		if got := nativeQuery[[]nativeLine](t, conn, "SELECT $1::order_line[]", lines); !slices.Equal(got, lines) {
			t.Errorf("the composites came back as %+v; want %+v", got, lines)
		}

		conn.TypeMap().RegisterDefaultPgType(pgtype.Range[types.Snowflake]{}, "int8range")
		keys := pgtype.Range[types.Snowflake]{Lower: 1, Upper: nativeID, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true}
		if got := nativeQuery[pgtype.Range[types.Snowflake]](t, conn, "SELECT $1::int8range", keys); got != keys {
			t.Errorf("the range came back as %+v; want %+v", got, keys)
		}
	})
}
