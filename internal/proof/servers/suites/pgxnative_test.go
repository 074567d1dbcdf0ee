package servers

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/snowkey/snowkey/types"
)

// pgx by itself, without database/sql.

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

// inNativeModes runs a test in each mode in which pgx sends arguments, on a connection with tables of its own.
// In the last two it does not ask the server for their types, and sends text.
func inNativeModes(t *testing.T, run func(t *testing.T, conn *pgx.Conn, typeless bool)) {
	t.Parallel()
	for name, mode := range map[string]pgx.QueryExecMode{
		"CacheStatement": pgx.QueryExecModeCacheStatement,
		"CacheDescribe":  pgx.QueryExecModeCacheDescribe,
		"DescribeExec":   pgx.QueryExecModeDescribeExec,
		"Exec":           pgx.QueryExecModeExec,
		"SimpleProtocol": pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(name, func(t *testing.T) {
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
				_, err := conn.Exec(t.Context(), statement, pgx.QueryExecModeExec)
				must(t, err)
			}
			run(t, conn, mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol)
		})
	}
}

func TestPgxStoresAndReadsRowsWithKeysOfEachType(t *testing.T) {
	stored := []nativeOrder{
		{types.Model{ID: 1}, types.NullSnowflake{}, 5, types.NullID[nativeOrder]{}},
		{types.Model{ID: nativeID}, types.NullSnowflake{Valid: true}, 6, types.NullID[nativeOrder]{ID: 7, Valid: true}},
		{types.Model{ID: 1<<63 - 1}, types.NullSnowflake{Snowflake: 1<<63 - 1, Valid: true}, 0, types.NullID[nativeOrder]{Valid: true}},
	}
	const insert = "INSERT INTO orders (id, parent, customer, gift) VALUES ($1, $2, $3, $4) RETURNING id"
	arguments := func(o nativeOrder) []any { return []any{o.ID, o.Parent, &o.Customer, o.Gift} }
	ways := map[string]func(ctx context.Context, conn *pgx.Conn) error{
		"QueryRow": func(ctx context.Context, conn *pgx.Conn) (err error) {
			for _, o := range stored {
				var id types.Snowflake
				if err = errors.Join(err, conn.QueryRow(ctx, insert, arguments(o)...).Scan(&id)); id != o.ID {
					err = errors.Join(err, errors.New("RETURNING id is another"))
				}
			}
			return err
		},
		"Batch": func(ctx context.Context, conn *pgx.Conn) error {
			batch := new(pgx.Batch)
			for _, o := range stored {
				batch.Queue(insert, arguments(o)...)
			}
			return conn.SendBatch(ctx, batch).Close()
		},
		"CopyFrom": func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.CopyFrom(ctx, pgx.Identifier{"orders"}, []string{"id", "parent", "customer", "gift"}, pgx.CopyFromSlice(len(stored), func(i int) ([]any, error) {
				return arguments(stored[i]), nil
			}))
			return err
		},
	}
	inNativeModes(t, func(t *testing.T, conn *pgx.Conn, _ bool) {
		formats := []any{pgx.QueryResultFormats{pgx.TextFormatCode}, pgx.QueryResultFormats{pgx.BinaryFormatCode}}
		if conn.Config().DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
			formats = []any{pgx.QueryExecModeSimpleProtocol} // text alone
		}
		for way, store := range ways {
			if err := store(t.Context(), conn); err != nil {
				t.Fatalf("%s = %v; want nil", way, err)
			}
			for _, format := range formats {
				rows, err := conn.Query(t.Context(), "SELECT id, parent, customer, gift FROM orders ORDER BY id", format)
				must(t, err)
				if got, err := pgx.CollectRows(rows, pgx.RowToStructByName[nativeOrder]); !slices.Equal(got, stored) || err != nil {
					t.Errorf("rows by %s in format %v = %+v, %v; want %+v", way, format, got, err, stored)
				}
			}
			rows, err := conn.Query(t.Context(), "DELETE FROM orders WHERE id = ANY(ARRAY[1, 9007199254740993, 9223372036854775807]) RETURNING id")
			must(t, err)
			if got, err := pgx.CollectRows(rows, pgx.RowTo[types.Snowflake]); len(got) != len(stored) || err != nil {
				t.Errorf("keys by %s = %v, %v; want %d", way, got, err, len(stored))
			}
		}
	})
}

// comesBack sends a value and reads it back.
func comesBack[T any](t *testing.T, conn *pgx.Conn, typ string, want T) {
	t.Helper()
	var got T
	if err := conn.QueryRow(t.Context(), "SELECT $1::"+typ, want).Scan(&got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%#v as a %s comes back as %#v, %v; want no other", want, typ, got, err)
	}
}

// arrayComesBack sends an array, as a slice and as pgx's type, whose types it has pgx know first, if that does
// not ask the server.
func arrayComesBack[T any](t *testing.T, conn *pgx.Conn, typeless bool, want ...T) {
	t.Helper()
	if typeless { // as docs/types.md says
		var ids []T
		if err := conn.QueryRow(t.Context(), "SELECT $1::bigint[]", want).Scan(&ids); err == nil {
			t.Errorf("%T of a type that pgx does not know = no error; want one", want)
		}
		conn.TypeMap().RegisterDefaultPgType([]T(nil), "_int8")
		conn.TypeMap().RegisterDefaultPgType(pgtype.FlatArray[T](nil), "_int8")
	}
	comesBack(t, conn, "bigint[]", want)
	comesBack(t, conn, "bigint[]", pgtype.FlatArray[T](want))
	comesBack(t, conn, "bigint[]", []T(nil))
	comesBack(t, conn, "bigint[]", []T{})
}

func TestPgxSendsAndReadsValuesOfEachType(t *testing.T) {
	inNativeModes(t, func(t *testing.T, conn *pgx.Conn, typeless bool) {
		one, two := types.Snowflake(1), nativeID
		present := types.NullSnowflake{Snowflake: 1<<63 - 1, Valid: true}
		comesBack(t, conn, "bigint", two)
		comesBack(t, conn, "bigint", (*types.Snowflake)(nil))
		comesBack(t, conn, "bigint", (*types.ID[nativeOrder])(nil))
		for _, column := range []string{"'9007199254740993'::text", "'9007199254740993'::varchar", "9007199254740993::numeric"} {
			var got types.Snowflake
			if err := conn.QueryRow(t.Context(), "SELECT "+column).Scan(&got); got != nativeID || err != nil {
				t.Errorf("%s into Snowflake = %d, %v; want %d", column, got, err, nativeID)
			}
		}
		arrayComesBack(t, conn, typeless, one, two, 1<<63-1)
		arrayComesBack(t, conn, typeless, types.ID[nativeOrder](0), 3)
		arrayComesBack(t, conn, typeless, types.NullSnowflake{}, present, types.NullSnowflake{Valid: true})
		arrayComesBack(t, conn, typeless, types.NullID[nativeOrder]{}, types.NullID[nativeOrder]{ID: 4, Valid: true})
		arrayComesBack(t, conn, typeless, &one, nil, &two)

		loaded, err := conn.LoadTypes(t.Context(), []string{"order_line", "_order_line"})
		must(t, err)
		conn.TypeMap().RegisterTypes(loaded)
		conn.TypeMap().RegisterDefaultPgType(nativeLine{}, "order_line")
		conn.TypeMap().RegisterDefaultPgType([]nativeLine(nil), "_order_line")
		conn.TypeMap().RegisterDefaultPgType(pgtype.Range[types.Snowflake]{}, "int8range")
		line := nativeLine{nativeID, types.NullSnowflake{}, 7, "cup"}
		comesBack(t, conn, "order_line", line)
		comesBack(t, conn, "order_line[]", []nativeLine{line, {1, present, 0, `"a, (b)`}})
		comesBack(t, conn, "int8range", pgtype.Range[types.Snowflake]{Lower: 1, Upper: nativeID, LowerType: pgtype.Inclusive, UpperType: pgtype.Exclusive, Valid: true})
	})
}

func TestPgxRefusesWhatIsNoIDAndStoresNothing(t *testing.T) {
	inNativeModes(t, func(t *testing.T, conn *pgx.Conn, typeless bool) {
		id, present, typed := types.Snowflake(42), types.NullSnowflake{Snowflake: 42, Valid: true}, types.ID[nativeOrder](42)
		for column, want := range map[string]error{
			"-1::bigint": types.ErrRange, "'007'::text": types.ErrSyntax, "''::text": types.ErrSyntax, "1.5::float8": types.ErrSyntax,
			"9223372036854775808::numeric": types.ErrRange, "true": types.ErrSyntax,
		} {
			for _, dest := range []any{&id, &present, &typed} {
				if err := conn.QueryRow(t.Context(), "SELECT "+column).Scan(dest); !errors.Is(err, want) {
					t.Errorf("%s into %T = %v; want an error that matches %v", column, dest, err, want)
				}
			}
		}
		for column, dest := range map[string]any{"NULL::bigint": new(types.Snowflake), "ARRAY[1, NULL]::bigint[]": new([]types.Snowflake)} {
			if err := conn.QueryRow(t.Context(), "SELECT "+column).Scan(dest); !errors.Is(err, types.ErrNull) {
				t.Errorf("%s into %T = %v; want an error that matches ErrNull", column, dest, err)
			}
		}
		if id != 42 || present.Snowflake != 42 || typed != 42 {
			t.Errorf("refused values left %d, %v, %d; want them unchanged", id, present, typed)
		}
		for _, arg := range []any{types.Snowflake(-1), types.NullSnowflake{Snowflake: -1, Valid: true}, types.ID[nativeOrder](-1), []types.Snowflake{1, -1}} {
			query := "INSERT INTO orders (id, customer) VALUES ($1, 1)"
			if reflect.TypeOf(arg).Kind() == reflect.Slice {
				if query = "SELECT $1::bigint[]"; typeless {
					continue
				}
			}
			if _, err := conn.Exec(t.Context(), query, arg); !errors.Is(err, types.ErrRange) {
				t.Errorf("%s of %T -1 = %v; want an error that matches ErrRange", query, arg, err)
			}
		}
		_, err := conn.CopyFrom(t.Context(), pgx.Identifier{"orders"}, []string{"id", "customer"}, pgx.CopyFromRows([][]any{{types.Snowflake(100), 1}, {types.Snowflake(-1), 1}}))
		if err == nil || !strings.Contains(err.Error(), "cannot marshal Snowflake -1 into SQL") { // pgx passes on the text alone, by way of the server
			t.Errorf("CopyFrom of -1 = %v; want that -1 is refused", err)
		}
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM orders").Scan(&n); n != 0 || err != nil {
			t.Errorf("%d rows are stored, %v; want none", n, err)
		}
	})
}
