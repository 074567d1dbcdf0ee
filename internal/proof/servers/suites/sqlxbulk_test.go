package servers

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jmoiron/sqlx"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

// Rows are stored alike whichever way they go to the database. Few go by VALUES, many by unnest or by COPY.
// The tests here send the same values all ways, through all drivers and modes, and ask the database what
// it has. The driver decides what that is: it inserts each value by itself.
var (
	bulkPairs = flag.Int("sqlxbulk.pairs", bulkPairsByDefault, "about how many pairs of a value and a column type per driver and mode; 0 for all")
	bulkSeed  = flag.Uint64("sqlxbulk.seed", 20261121, "which pairs and which rows")
)

// bulkRandom returns the random numbers for a database: each tries other pairs and
// rows.
func bulkRandom(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // which never fails
	return rand.New(rand.NewPCG(*bulkSeed, h.Sum64()))
}

// helpers send eleven rows and more differently.
func (w way) helpers() map[string]*sqlxhelper.Helper {
	h := sqlxhelper.New(sqlxcases.NewCounter(1))
	ways := map[string]*sqlxhelper.Helper{"unnest": h}
	if w.driver == "pgx" {
		ways["COPY"] = h.With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 11))
	}
	return ways
}

type (
	bulkBool   bool
	bulkInt    int32
	bulkLevel  int16
	bulkText   string
	bulkMood   string
	bulkBytes  []byte
	bulkAmount string
	bulkJSON   struct{ N int }
)

func (bulkLevel) String() string                  { return "a level" }
func (bulkMood) String() string                   { return "a mood" }
func (a bulkAmount) Value() (driver.Value, error) { return string(a), nil }
func (j bulkJSON) Value() (driver.Value, error)   { return json.Marshal(j) }

// bulkValues are the values that are sent, by their Go type.
func bulkValues() map[reflect.Type][]any {
	kolkata := time.FixedZone("", 5*3600+1800)
	times := []any{
		time.Time{}, time.Unix(0, 0).UTC(),
		time.Date(2024, 2, 29, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2024, 2, 29, 23, 59, 59, 123_456_501, kolkata),
		time.Date(1969, 12, 31, 23, 59, 59, 1_999, time.UTC),
		time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(-43, 3, 15, 12, 0, 0, 0, time.UTC),
	}
	texts := []string{
		"", "NULL", `\N`, `\.`, `"`, `\`, `a"b\c'd`, "{a,b}", " padded ", "tab\tline\nreturn\r\v\b\f", "täglich 𝔘", "42", "-1",
		"12345.678", "t", "2024-02-29 12:34:56.789+02", "infinity", `{"a": [1, "x"]}`, "00112233-4455-6677-8899-aabbccddeeff",
		`\x6162`, "101", "high", "1:30", "10.0.0.1", "nul\x00byte", "bad\xffutf8", "half \xed\xa0\x80", "[1,5)", strings.Repeat("long ", 30),
	}
	all := [][]any{
		{true, false}, {bulkBool(true)},
		{int8(math.MinInt8)}, {int16(math.MaxInt16)}, {int32(math.MinInt32), int32(0)},
		{0, 1, -1, 70000}, {int64(math.MaxInt64), int64(math.MinInt64), int64(10000), int64(99990000), int64(32768)},
		{uint8(200)}, {uint16(65535)}, {uint32(math.MaxUint32)}, {uint64(math.MaxUint64), uint64(7)}, {uint(3)},
		{bulkInt(5)}, {bulkLevel(6)}, {time.Duration(90)},
		{float32(0.1), float32(math.Inf(1)), float32(math.MaxFloat32), float32(-0.5)},
		{0.1, 0.0, math.Copysign(0, -1), math.NaN(), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.5, 1e21, 16777217.0, 1.1e-7},
		{[]byte(nil), []byte{}, []byte{0, 255, '\\'}, []byte(`{"a":1}`), []byte("42"), []byte("high")},
		{bulkBytes("bytes"), bulkBytes(nil)}, {json.RawMessage(`{"a": 1}`), json.RawMessage(nil)},
		times,
		{types.Snowflake(1 << 53), types.Snowflake(3)},
		{types.NullSnowflake{}, types.NullSnowflake{Snowflake: 9, Valid: true}},
		{sql.NullInt64{}, sql.NullInt64{Int64: 70000, Valid: true}},
		{sql.NullFloat64{}, sql.NullFloat64{Float64: 2.5, Valid: true}},
		{sql.NullBool{}, sql.NullBool{Bool: true, Valid: true}},
		{sql.Null[int16]{}, sql.Null[int16]{V: 4, Valid: true}},
		{sql.NullTime{}, sql.NullTime{Time: times[2].(time.Time), Valid: true}, sql.NullTime{Time: times[3].(time.Time), Valid: true}},
		{bulkAmount("1.50"), bulkAmount("NaN"), bulkAmount("x")}, {bulkJSON{7}},
		{[]string{"a", "b,c"}}, {net.IPv4(10, 0, 0, 1)}, {[16]byte{1, 2, 3}},
	}
	all = append(all, pgxValues()...)
	values := map[reflect.Type][]any{}
	for _, list := range all {
		for _, v := range list {
			t := reflect.TypeOf(v)
			values[t] = append(values[t], v)
		}
	}
	for _, s := range texts {
		for _, v := range []any{s, bulkText(s), bulkMood(s), sql.NullString{String: s, Valid: true}} {
			values[reflect.TypeOf(v)] = append(values[reflect.TypeOf(v)], v)
		}
	}
	// Pointers, and any, to values of several types.
	dynamic := reflect.TypeFor[any]()
	for _, t := range []reflect.Type{
		reflect.TypeFor[bool](), reflect.TypeFor[int64](), reflect.TypeFor[uint64](), reflect.TypeFor[float64](), reflect.TypeFor[string](),
		reflect.TypeFor[[]byte](), reflect.TypeFor[time.Time](), reflect.TypeFor[types.Snowflake](), reflect.TypeFor[sql.NullString](),
	} {
		pointer := reflect.PointerTo(t)
		values[pointer] = []any{reflect.Zero(pointer).Interface()}
		for _, v := range values[t] {
			p := reflect.New(t)
			p.Elem().Set(reflect.ValueOf(v))
			values[pointer] = append(values[pointer], p.Interface())
			if t != reflect.TypeFor[string]() || len(v.(string)) < 20 {
				values[dynamic] = append(values[dynamic], v)
			}
		}
	}
	values[dynamic] = append(values[dynamic], nil, 5, bulkInt(6))
	return values
}

// bulkColumns are the types of the columns that values are sent to.
var bulkColumns = []string{
	"bool", "int2", "int4", "int8", "numeric", "numeric(6,2)", "float4", "float8",
	"text", "varchar(5)", "char(3)", `"char"`, "name", "bytea", "json", "jsonb", "uuid", "xml",
	"timestamptz", "timestamptz(0)", "timestamp", "timestamp(3)", "date", "time", "interval", "interval minute to second", "interval(0)",
	"inet", "bit(3)", "varbit(4)", "money", "oid", "point", "box", "mood", "positive", "text[]", "int4range",
	"varchar(60)", "uuid[]", "date[]", "inet[]",
}

// inDates has its methods from a type of pgx.
type inDates struct{ pgtype.Date }

// pgxValues are of types that pgx knows better than by their Value method, most of all in columns of dates.
func pgxValues() [][]any {
	kolkata := time.Date(2024, 1, 1, 0, 0, 0, 123456000, time.FixedZone("", 5*3600+1800))
	date, uuid := pgtype.Date{Time: kolkata, Valid: true}, pgtype.UUID{Bytes: [16]byte{1, 2, 3}, Valid: true}
	clock, address := pgtype.Time{Microseconds: 3_723_000_004, Valid: true}, netip.MustParseAddr("10.0.0.1")
	raw, text, named := json.RawMessage(`{"a": "\\x41 \u00fc"}`), []byte(`\x41`), bulkBytes(`\101`)
	return [][]any{
		{date, pgtype.Date{}, pgtype.Date{InfinityModifier: pgtype.Infinity, Valid: true}}, {&date, (*pgtype.Date)(nil)}, {inDates{date}},
		{pgtype.Timestamp{Time: kolkata, Valid: true}}, {pgtype.Timestamptz{Time: kolkata, Valid: true}}, {clock, pgtype.Time{}}, {&clock},
		{pgtype.Interval{Months: 1, Days: 2, Microseconds: 3, Valid: true}}, {pgtype.Text{String: "1", Valid: true}, pgtype.Text{}},
		{pgtype.Bool{Bool: true, Valid: true}}, {pgtype.Int2{Int16: 1, Valid: true}}, {pgtype.Int4{Int32: 1, Valid: true}},
		{pgtype.Int8{Int64: 1, Valid: true}, pgtype.Int8{}}, {pgtype.Float4{Float32: 0.1, Valid: true}}, {pgtype.Float8{Float64: 0.1, Valid: true}},
		{pgtype.Uint32{Uint32: 7, Valid: true}}, {pgtype.Numeric{Int: big.NewInt(15), Exp: -1, Valid: true}, pgtype.Numeric{NaN: true, Valid: true}},
		{uuid}, {&uuid}, {pgtype.Point{P: pgtype.Vec2{X: 1, Y: 2}, Valid: true}}, {pgtype.Bits{Bytes: []byte{0xa0}, Len: 3, Valid: true}},
		{zeronull.Int8(0), zeronull.Int8(7)}, {zeronull.Text("")}, {zeronull.Timestamptz(kolkata)},
		{raw, json.RawMessage(`\x41`)}, {&raw, (*json.RawMessage)(nil)}, {text}, {&text, (*[]byte)(nil)}, {named}, {&named},
		{address}, {&address, (*netip.Addr)(nil)}, {netip.MustParsePrefix("10.0.0.0/8")},
		{[]pgtype.UUID{uuid, {}}}, {[][16]byte{uuid.Bytes}}, {[]pgtype.Date{date}}, {[]netip.Addr{address}}, {[]json.RawMessage{raw}}, {kolkata},
	}
}

// bulkAlways are the columns that the values of a type always go to: a small chance is too little for what
// differs most. Drivers cut or round the nanoseconds of times; casts cut texts, and unnest flattens arrays.
var bulkAlways = map[string][]string{
	"time.Time":          {"timestamptz", "timestamptz(0)", "timestamp", "date", "text", "varchar(60)", "bytea"},
	"*time.Time":         {"timestamptz", "varchar(60)"},
	"sql.NullTime":       {"timestamp", "text"},
	"interface {}":       {"timestamptz", "text"},
	"string":             {"text", "varchar(5)", "char(3)", "text[]", "box", "bit(3)", "bytea", "interval"},
	"float64":            {"int4"},
	"float32":            {"float8"},
	"*json.RawMessage":   {"date"},
	"*pgtype.Date":       {"date"},
	"*pgtype.Time":       {"date"},
	"pgtype.Date":        {"date"},
	"pgtype.Text":        {"date"},
	"pgtype.Timestamp":   {"date"},
	"servers.inDates":    {"date"},
	"zeronull.Text":      {"date"},
	"[]pgtype.Date":      {"date[]"},
	"[]netip.Addr":       {"inet[]"},
	"*servers.bulkBytes": {"bytea"},
}

// A bulkPair is a Go type and a column that its values are sent to, in a session with a setting.
type bulkPair struct {
	typ    reflect.Type
	column string
	set    string
}

// bulkPairsOf returns the pairs of a mode, and how many there are.
func bulkPairsOf(values map[reflect.Type][]any, mode string) (pairs []bulkPair, of int) {
	types := slices.SortedFunc(maps.Keys(values), func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	order := bulkRandom(mode).Perm(len(types) * len(bulkColumns))
	if *bulkPairs > 0 {
		order = order[:min(*bulkPairs, len(order))]
	}
	for _, n := range order {
		pairs = append(pairs, bulkPair{typ: types[n/len(bulkColumns)], column: bulkColumns[n%len(bulkColumns)]})
	}
	for _, typ := range types {
		for _, column := range bulkAlways[typ.String()] {
			pairs = append(pairs, bulkPair{typ: typ, column: column})
		}
	}
	if mode != "pgx" {
		return pairs, len(types) * len(bulkColumns)
	}
	// Settings of a session may change what a text means, and make a NULL a text.
	for _, set := range []string{
		"SET LOCAL client_encoding = 'LATIN1'", "SET LOCAL array_nulls = off", "SET LOCAL datestyle = 'SQL, DMY'",
		"SET LOCAL standard_conforming_strings = off", "SET LOCAL bytea_output = 'escape'",
	} {
		pairs = append(pairs, bulkPair{reflect.TypeFor[*string](), "text", set}, bulkPair{reflect.TypeFor[string](), "interval", set})
	}
	return pairs, len(types) * len(bulkColumns)
}

// bulkTables creates a table with all columns, and one with a rule, into which all rows go by VALUES.
func bulkTables(t *testing.T, db *sqlx.DB) {
	t.Helper()
	columns := strings.Builder{}
	for _, c := range bulkColumns {
		fmt.Fprintf(&columns, ", %s %s", bulkName(c), c)
	}
	for _, text := range []string{
		`CREATE TYPE mood AS ENUM ('low', 'high', 'a "b", \ {c}', 'NULL')`, "CREATE DOMAIN positive AS int8 CHECK (VALUE > 0)",
		"CREATE TABLE bulk (id bigint PRIMARY KEY" + columns.String() + ")", "CREATE TABLE ruled (LIKE bulk)",
		"CREATE RULE nothing AS ON DELETE TO ruled DO INSTEAD NOTHING",
	} {
		execSqlx(t, db, text)
	}
}

// bulkName names the column of a type.
func bulkName(column string) string {
	return "c_" + strings.Map(func(r rune) rune {
		if strings.ContainsRune(` (),"[]`, r) {
			return '_'
		}
		return r
	}, column)
}

// A bulkWay stores rows with values in a column. It returns what the database has of them then, as text and in
// the order of the rows, or the error, and takes them back.
type bulkWay func(values []any) (texts []string, failed error)

// bulkWays are ways in one transaction to a column of tables.
type bulkWays struct {
	t      *testing.T
	tx     *sqlx.Tx
	column string // its name
	shown  string // the column as text
}

// storing is the way of insert, into a table that is empty.
func (w bulkWays) storing(table string, insert func(values []any) error) bulkWay {
	return func(values []any) (texts []string, failed error) {
		w.t.Helper()
		w.tx.MustExec("SAVEPOINT nothing_sent")
		if failed = insert(values); failed == nil {
			must(w.t, w.tx.Select(&texts, "SELECT COALESCE("+w.shown+", 'NULL') FROM "+table+" ORDER BY id"))
			if len(texts) != len(values) {
				w.t.Errorf("%d rows are stored; want %d", len(texts), len(values))
			}
		} else if len(values) > 1 {
			var n int
			if err := w.tx.Get(&n, "SELECT count(*) FROM "+table); err != nil || n != 0 {
				w.t.Errorf("%d rows are stored, %v, after %v; want none", n, err, failed)
			}
		}
		w.tx.MustExec("ROLLBACK TO SAVEPOINT nothing_sent")
		return texts, failed
	}
}

// driver is what the driver does with one value after another.
func (w bulkWays) driver(table string) bulkWay {
	insert := w.tx.Rebind("INSERT INTO " + table + " (id, " + w.column + ") VALUES (?, ?)")
	return w.storing(table, func(values []any) error {
		for i, v := range values {
			if _, err := w.tx.Exec(insert, int64(i+1), v); err != nil {
				return err
			}
		}
		return nil
	})
}

// helper is what a Helper does with rows whose field has a type.
func (w bulkWays) helper(table string, h *sqlxhelper.Helper, typ reflect.Type) bulkWay {
	row := reflect.StructOf([]reflect.StructField{
		{Name: "ID", Type: reflect.TypeFor[types.Snowflake](), Tag: `db:"id"`}, {Name: "V", Type: typ, Tag: reflect.StructTag(fmt.Sprintf("db:%q", w.column))},
	})
	return w.storing(table, func(values []any) error {
		rows := reflect.MakeSlice(reflect.SliceOf(row), len(values), len(values))
		for i, v := range values {
			if v != nil {
				rows.Index(i).Field(1).Set(reflect.ValueOf(v))
			}
		}
		return h.InsertMany(w.t.Context(), w.tx, table, rows.Interface())
	})
}

// wantAlike fails the test unless n rows with the values, each as often as the others, are stored by all ways as by one,
// which gets a value at a time, and refused with the same state. It returns how many of the values are stored.
func wantAlike(t *testing.T, what string, values []any, n int, one bulkWay, ways map[string]bulkWay) int {
	t.Helper()
	var good, bad []any
	var want, states []string
	for _, v := range values {
		if texts, err := one([]any{v}); err == nil {
			good, want = append(good, v), append(want, texts...)
		} else {
			bad, states = append(bad, v), append(states, sqlState(err))
		}
	}
	for name, way := range ways {
		if len(good) > 0 {
			times := 1 + n/len(good)
			texts, err := way(slices.Repeat(good, times))
			if err != nil || !slices.Equal(texts, slices.Repeat(want, times)) {
				t.Errorf("%s by %s = %.300q, %v; want %.300q", what, name, texts, err, want)
			}
		}
		for i, v := range bad[:min(len(bad), 3)] {
			rows := slices.Repeat([]any{v}, n)
			copy(rows[:n-1], good)
			if _, err := way(rows); sqlState(err) != states[i] {
				t.Errorf("%s (%#v) by %s = %v; want %s", what, v, name, err, states[i])
			}
		}
	}
	return len(good)
}

func TestValuesAreStoredAlikeByAllWaysToPostgres(t *testing.T) {
	t.Parallel()
	values := bulkValues()
	for _, mode := range waysTo("PostgreSQL") {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			d := mode.place(t).sqlx(t)
			bulkTables(t, d.DB)
			plain, _ := unnestPool(t, d.DB.DB, &gorm.Config{})
			db, arrays := unnestPool(t, d.DB.DB, &gorm.Config{}, gormplugin.WithUnnest())
			pairs, of := bulkPairsOf(values, mode.name)
			accepted := 0
			for _, pair := range pairs {
				what, values := fmt.Sprintf("%v to %s %s", pair.typ, pair.column, pair.set), values[pair.typ]
				column := bulkName(pair.column)
				w := bulkWays{t, d.DB.MustBegin(), column, "'=' || " + column + "::text"}
				w.tx.MustExec(cmp.Or(pair.set, "SELECT 1"))
				ways := map[string]bulkWay{"VALUES": w.helper("ruled", sqlxhelper.New(sqlxcases.NewCounter(1)), pair.typ)}
				for way, h := range mode.helpers() {
					ways[way] = w.helper("bulk", h, pair.typ)
				}
				accepted += wantAlike(t, what, values, 12, w.driver("bulk"), ways)
				must(t, w.tx.Rollback())
				if pair.set == "" {
					wantAlike(t, what, values, 12, gormWay(t, plain, column), map[string]bulkWay{"GORM": gormWay(t, db, column)})
				}
			}
			for _, values := range gormValues() {
				wantAlike(t, fmt.Sprintf("%T to text", values[0]), values, 12, gormWay(t, plain, "c_text"), map[string]bulkWay{"GORM": gormWay(t, db, "c_text")})
			}
			t.Logf("seed %d: %d pairs of %d, %d values accepted, %d inserts of GORM with arrays", *bulkSeed, len(pairs), of, accepted, arrays())
			if accepted < len(pairs) || arrays() < len(pairs)/10 {
				t.Errorf("%d values accepted, %d inserts of GORM with arrays; want more of %d pairs", accepted, arrays(), len(pairs))
			}
		})
	}
}

// gormWay is what GORM does with rows that are maps.
func gormWay(t *testing.T, db *gorm.DB, column string) bulkWay {
	return func(values []any) (texts []string, failed error) {
		t.Helper()
		rows := make([]map[string]any, len(values))
		for i, v := range values {
			rows[i] = map[string]any{"id": i, column: v}
		}
		tx := db.Begin()
		must(t, tx.Error)
		defer tx.Rollback()
		if err := tx.Table("bulk").Create(rows).Error; err != nil {
			return nil, err
		}
		must(t, tx.Table("bulk").Order("id").Pluck("COALESCE('=' || "+column+"::text, 'NULL')", &texts).Error)
		return texts, nil
	}
}

// A spoken is sent as GORM is told: as a value, or as an expression.
type spoken string

func (s spoken) GormValue(context.Context, *gorm.DB) clause.Expr {
	if len(s) > 3 {
		return gorm.Expr("upper(?)", string(s))
	}
	return gorm.Expr("?", string(s))
}

// gormValues are of types that GORM alone knows. Those with an expression go by VALUES.
func gormValues() [][]any {
	return [][]any{
		{spoken("a"), spoken(""), (*spoken)(nil)}, {spoken("a"), spoken("aloud")}, {"a", gorm.Expr("upper(?)", "b")}, {clause.Column{Name: "id"}, "a"},
		{gorm.DeletedAt{}, gorm.DeletedAt{Time: time.Unix(0, 0), Valid: true}},
	}
}

// Full statements, which come twice, and what is left of the rows.
func TestManyRowsAreStoredAsTheDriverStoresOneOnMariaDBAndMySQL(t *testing.T) {
	t.Parallel()
	moment := time.Date(2024, 2, 29, 23, 59, 59, 123456789, time.UTC)
	sent := []struct {
		value  any
		column string
	}{
		{2.5, "INT"}, {0.1, "DECIMAL(40,30)"}, {1e-20, "VARCHAR(40)"}, {float32(0.1), "DOUBLE"}, {-3.5, "VARBINARY(40)"},
		{"Zürich", "VARCHAR(40) CHARACTER SET utf8mb4"}, {"Zürich", "VARCHAR(40) CHARACTER SET latin1"}, {"Zürich", "VARBINARY(40)"},
		{[]byte("Zürich \\'\x00\xff"), "VARBINARY(40)"}, {json.RawMessage(`"Zürich"`), "JSON"}, {"2.5", "INT"}, {"zzz", "INT"},
		{uint64(math.MaxUint64), "BIGINT UNSIGNED"}, {true, "VARCHAR(4)"}, {moment, "DATETIME(3)"}, {moment, "VARCHAR(40)"},
	}
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		for name, parameters := range map[string][]string{
			"prepared":             nil,
			"interpolated":         {"interpolateParams", "true"},
			"latin1":               {"charset", "latin1"},
			"interpolated, latin1": {"interpolateParams", "true", "charset", "latin1"},
			"not strict":           {"sql_mode", "''"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				d := w.place(t, parameters...).sqlx(t)
				for i, s := range sent {
					table := fmt.Sprint("sent", i) // drivers keep what they know of one
					execSqlx(t, d.DB, "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY, v "+s.column+")")
					w := bulkWays{t, d.DB.MustBegin(), "v", "HEX(CAST(v AS BINARY))"}
					by := w.helper(table, sqlxhelper.New(sqlxcases.NewCounter(0)), reflect.TypeOf(s.value))
					wantAlike(t, fmt.Sprintf("%#v to %s", s.value, s.column), []any{s.value}, 3100, w.driver(table), map[string]bulkWay{"InsertMany": by})
					must(t, w.tx.Rollback())
				}
			})
		}
	})
}

// sqlState returns what the server said, or "client" for an error that is not the
// server's.
func sqlState(err error) string {
	if err == nil {
		return ""
	}
	var e interface{ SQLState() string }
	if errors.As(err, &e) {
		return e.SQLState()
	}
	return "client"
}

func TestRandomRowsAreStoredAlikeByAllWaysToPostgres(t *testing.T) {
	t.Parallel()
	for _, mode := range waysTo("PostgreSQL") {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			var ways []sqlxhelper.Option
			if mode.driver == "pgx" {
				ways = append(ways, sqlxhelper.WithCopy(pgxcopy.Copier{}, 11))
			}
			mode.place(t).sqlx(t).Alike(t, *bulkSeed, 14, ways...)
		})
	}
}

type bulkNote struct {
	ID   types.Snowflake `db:"id"`
	Note string          `db:"note"`
}

// COPY would fill the identity and ignore the rule. All ways do what INSERT does.
func TestTablesWhereCopyDiffersAreInsertedInto(t *testing.T) {
	d := sqlxOn(t, "pgx")
	h := sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.WithCopy(pgxcopy.Copier{}, 11))
	for _, text := range []string{
		"CREATE TABLE always (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text)",
		"CREATE TABLE computed (id bigint PRIMARY KEY, note text GENERATED ALWAYS AS ('x') STORED)",
		"CREATE TABLE policed (id bigint PRIMARY KEY, note text)",
		"ALTER TABLE policed ENABLE ROW LEVEL SECURITY",
		"CREATE TABLE log (id bigint, note text)",
		"CREATE TABLE ruled (id bigint PRIMARY KEY, note text)",
		"CREATE RULE also AS ON INSERT TO ruled DO ALSO INSERT INTO log VALUES (NEW.id, NEW.note)",
		"CREATE VIEW seen AS SELECT * FROM policed",
		"CREATE TABLE parted (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id)",
		"CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000000)",
	} {
		execSqlx(t, d.DB, text)
	}
	computed := "428C9"
	if postgresVersion(t, d.DB.DB) < 14 {
		computed = "42601" // the same refusal, under another state
	}
	for table, state := range map[string]string{"always": "428C9", "computed": computed, "policed": "", "ruled": "", "seen": "", "parted": ""} {
		for range 2 {
			err := h.InsertMany(context.Background(), d.DB, table, make([]bulkNote, 30))
			if got := sqlState(err); got != state {
				t.Errorf("InsertMany(%s) = %v; want %q", table, err, state)
			}
		}
	}
	for table, want := range map[string]int{"always": 0, "computed": 0, "policed": 120, "ruled": 60, "log": 60, "parted": 60} {
		var n int
		if err := d.DB.Get(&n, "SELECT count(*) FROM "+table); err != nil || n != want {
			t.Errorf("rows of %s = %d, %v; want %d", table, n, err, want)
		}
	}
}
