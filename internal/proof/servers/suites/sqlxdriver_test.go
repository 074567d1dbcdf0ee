package servers

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// The driver decides what a row becomes. These tests have it insert a row by
// itself. They compare that with what a Helper makes of the same value.

// A sending is a value and the type of the column that it is sent to.
type sending struct {
	value  any
	column string
}

// single returns what the driver stores for a value, or the error.
func single(t *testing.T, tx *sqlx.Tx, table string, value any, shown string) (string, error) {
	t.Helper()
	insert := "INSERT INTO " + table + " (id, v) VALUES ($1, $2)"
	if tx.DriverName() == "mysql" {
		insert = "INSERT INTO " + table + " (id, v) VALUES (?, ?)"
	}
	tx.MustExec("SAVEPOINT nothing_sent")
	defer tx.MustExec("ROLLBACK TO SAVEPOINT nothing_sent")
	if _, err := tx.Exec(insert, int64(1), value); err != nil {
		return "", err
	}
	var text string
	if err := tx.Get(&text, "SELECT "+shown+" FROM "+table); err != nil {
		t.Fatal(err)
	}
	return text, nil
}

// many returns what a Helper stores for n rows with a value, or the error. Equal
// results are in it once. A single row has it in a field of type any.
func many(t *testing.T, tx *sqlx.Tx, h *sqlxhelper.Helper, table string, n int, value any, shown string) (string, error) {
	t.Helper()
	typ := reflect.TypeOf(value)
	if n == 1 {
		typ = reflect.TypeFor[any]()
	}
	rows := reflect.MakeSlice(reflect.SliceOf(reflect.StructOf([]reflect.StructField{
		{Name: "ID", Type: reflect.TypeFor[types.Snowflake](), Tag: `db:"id"`}, {Name: "V", Type: typ, Tag: `db:"v"`},
	})), n, n)
	for i := range n {
		rows.Index(i).Field(1).Set(reflect.ValueOf(value))
	}
	tx.MustExec("SAVEPOINT nothing_sent")
	defer tx.MustExec("ROLLBACK TO SAVEPOINT nothing_sent")
	if err := h.InsertMany(t.Context(), tx, table, rows.Interface()); err != nil {
		return "", err
	}
	var texts []string
	if err := tx.Select(&texts, "SELECT CONCAT(COUNT(*), ' x ', s) FROM (SELECT "+shown+" AS s FROM "+table+") AS t GROUP BY s"); err != nil {
		t.Fatal(err)
	}
	return strings.Join(texts, ", "), nil
}

// Full statements, which come twice, and what is left of the rows.
func TestManyRowsAreStoredAsTheDriverStoresOneOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, manyRowsAreStoredAsOne)
}

func manyRowsAreStoredAsOne(t *testing.T, dsn string) {
	t.Helper()
	moment := time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)
	for name, change := range map[string]func(*mysql.Config){
		"prepared":             func(*mysql.Config) {},
		"interpolated":         func(c *mysql.Config) { c.InterpolateParams = true },
		"latin1":               func(c *mysql.Config) { _ = c.Apply(mysql.Charset("latin1", "")) },
		"interpolated, latin1": func(c *mysql.Config) { c.InterpolateParams = true; _ = c.Apply(mysql.Charset("latin1", "")) },
		"not strict":           func(c *mysql.Config) { c.Params = map[string]string{"sql_mode": "''"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sqlxMySQL(t, dsn, change)
			for i, s := range []sending{
				{2.5, "INT"}, {0.1, "DECIMAL(40,30)"}, {1e-20, "VARCHAR(40)"}, {float32(0.1), "DOUBLE"}, {-3.5, "VARBINARY(40)"},
				{"Zürich", "VARCHAR(40) CHARACTER SET utf8mb4"}, {"Zürich", "VARCHAR(40) CHARACTER SET latin1"}, {"Zürich", "VARBINARY(40)"},
				{[]byte("Zürich \\'\x00\xff"), "VARBINARY(40)"}, {json.RawMessage(`"Zürich"`), "JSON"}, {"2.5", "INT"}, {"zzz", "INT"},
				{uint64(math.MaxUint64), "BIGINT UNSIGNED"}, {true, "VARCHAR(4)"}, {moment, "DATETIME(3)"}, {moment, "VARCHAR(40)"},
			} {
				table := fmt.Sprint("sent", i) // drivers keep what they know of one
				execSqlx(t, d.DB, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, v "+s.column+")")
				tx := d.DB.MustBegin()
				const shown = "HEX(CAST(v AS BINARY))"
				want, refused := single(t, tx, table, s.value, shown)
				got, err := many(t, tx, sqlxhelper.New(sqlxcases.NewCounter(0)), table, 3100, s.value, shown)
				if (err == nil) != (refused == nil) || err == nil && got != "3100 x "+want {
					t.Errorf("%#v into %s: InsertMany(3100 rows) stores %s, %v; the driver stores %s, %v", s.value, s.column, got, err, want, refused)
				}
				_ = tx.Rollback()
			}
		})
	}
}

// An array column goes by VALUES, however many rows there are.
func TestManyRowsByValuesAreStoredAsTheDriverStoresOneOnPostgres(t *testing.T) {
	for name, mode := range bulkModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sqlxPostgres(t, mode.driver, mode.parameters...)
			for i, s := range []sending{
				{2.5, "int4"}, {"{a,b}", "text[]"}, {time.Date(2024, 1, 1, 0, 0, 0, 0, time.FixedZone("", 5*3600+1800)), "date"}, {float32(0.1), "float8"},
			} {
				table := fmt.Sprint("sent", i) // drivers keep what they know of one
				execSqlx(t, d.DB, "CREATE TABLE "+table+" (id int8 PRIMARY KEY, v "+s.column+")")
				execSqlx(t, d.DB, "CREATE RULE nothing AS ON DELETE TO "+table+" DO INSTEAD NOTHING") // has all rows go by VALUES
				tx := d.DB.MustBegin()
				const shown = "v::text"
				want, refused := single(t, tx, table, s.value, shown)
				got, err := many(t, tx, sqlxhelper.New(sqlxcases.NewCounter(0)), table, 3100, s.value, shown)
				if (err == nil) != (refused == nil) || err == nil && got != "3100 x "+want {
					t.Errorf("%#v into %s: InsertMany(3100 rows) stores %s, %v; the driver stores %s, %v", s.value, s.column, got, err, want, refused)
				}
				_ = tx.Rollback()
			}
		})
	}
}

// inDates has its methods from a type of pgx.
type inDates struct{ pgtype.Date }

// Values whose types the driver knows better than by their Value method.
func TestValuesOfTheDriverAreStoredAsTheDriverStoresThem(t *testing.T) {
	kolkata := time.Date(2024, 1, 1, 0, 0, 0, 123456000, time.FixedZone("", 5*3600+1800))
	date := pgtype.Date{Time: kolkata, Valid: true}
	raw := json.RawMessage(`{"a": "\\x41 \u00fc"}`)
	text := []byte(`\x41`)
	named := bulkBytes(`\101`)
	id := [16]byte{1, 2, 3}
	uuid := pgtype.UUID{Bytes: id, Valid: true}
	clock := pgtype.Time{Microseconds: 3_723_000_004, Valid: true}
	address := netip.MustParseAddr("10.0.0.1")
	values := []any{
		date, &date, (*pgtype.Date)(nil), pgtype.Date{}, inDates{date}, pgtype.Date{InfinityModifier: pgtype.Infinity, Valid: true},
		pgtype.Timestamp{Time: kolkata, Valid: true}, pgtype.Timestamptz{Time: kolkata, Valid: true}, clock, &clock, pgtype.Time{},
		pgtype.Interval{Months: 1, Days: 2, Microseconds: 3, Valid: true},
		pgtype.Text{String: "1", Valid: true}, pgtype.Text{}, pgtype.Bool{Bool: true, Valid: true},
		pgtype.Int2{Int16: 1, Valid: true}, pgtype.Int4{Int32: 1, Valid: true}, pgtype.Int8{Int64: 1, Valid: true}, pgtype.Int8{},
		pgtype.Float4{Float32: 0.1, Valid: true}, pgtype.Float8{Float64: 0.1, Valid: true}, pgtype.Uint32{Uint32: 7, Valid: true},
		pgtype.Numeric{Int: big.NewInt(15), Exp: -1, Valid: true}, pgtype.Numeric{NaN: true, Valid: true},
		uuid, &uuid, id, pgtype.Point{P: pgtype.Vec2{X: 1, Y: 2}, Valid: true}, pgtype.Bits{Bytes: []byte{0xa0}, Len: 3, Valid: true},
		zeronull.Int8(0), zeronull.Int8(7), zeronull.Text(""), zeronull.Timestamptz(kolkata),
		raw, &raw, (*json.RawMessage)(nil), json.RawMessage(nil), json.RawMessage(`\x41`), text, &text, (*[]byte)(nil), named, &named,
		address, &address, (*netip.Addr)(nil), netip.MustParsePrefix("10.0.0.0/8"), net.IPv4(10, 0, 0, 1),
		[]pgtype.UUID{uuid, {}}, [][16]byte{id}, []pgtype.Date{date}, []netip.Addr{address}, []json.RawMessage{raw}, []string{"a,b"},
		kolkata, &kolkata, (*time.Time)(nil), time.Duration(90), sql.NullTime{Time: kolkata, Valid: true}, types.Snowflake(7),
	}
	columns := []string{
		"date", "timestamp", "timestamptz", "time", "interval", "text", "int8", "numeric", "bool", "uuid", "bytea", "json", "jsonb",
		"inet", "point", "uuid[]", "date[]", "inet[]", "text[]",
	}
	for name, mode := range bulkModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sqlxPostgres(t, mode.driver, mode.parameters...)
			random := bulkRandom(name)
			stored := 0
			for i, column := range columns {
				table := fmt.Sprint("sent", i) // drivers keep what they know of one
				execSqlx(t, d.DB, "CREATE TABLE "+table+" (id int8 PRIMARY KEY, v "+column+")")
				tx := d.DB.MustBegin()
				const shown = "COALESCE('=' || v::text, 'NULL')"
				ways := mode.ways()
				for _, value := range values {
					// Dates are what Value methods spoil.
					if *bulkPairs > 0 && column != "date" && random.IntN(len(values)*len(columns)) >= *bulkPairs {
						continue
					}
					want, refused := single(t, tx, table, value, shown)
					if refused == nil {
						stored++
					}
					for _, n := range []int{1, 12} {
						for way, h := range ways {
							if n == 1 && way != "unnest" {
								continue // few rows go one way
							}
							got, err := many(t, tx, h, table, n, value, shown)
							if (err == nil) != (refused == nil) || err == nil && got != fmt.Sprint(n, " x ", want) {
								t.Errorf("%#v into %s: InsertMany(%d rows, %s) stores %s, %v; the driver stores %s, %v", value, column, n, way, got, err, want, refused)
							}
						}
					}
				}
				_ = tx.Rollback()
			}
			t.Logf("seed %d: %d values stored", *bulkSeed, stored)
			if !slices.Contains([]string{"pgx", "postgres"}, mode.driver) || stored == 0 {
				t.Errorf("%d values stored by %s; want some", stored, mode.driver)
			}
		})
	}
}
