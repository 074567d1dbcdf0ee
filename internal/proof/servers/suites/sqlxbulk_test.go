package servers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

// Rows are stored alike whichever way they go to the database. Few go by VALUES,
// many by unnest or by COPY. The tests here send the same values all ways, through
// all drivers and modes. Then they ask the database what it has.
var (
	bulkPairs = flag.Int("sqlxbulk.pairs", bulkPairsByDefault, "about how many pairs of a value and a column type per driver and mode; 0 for all")
	bulkSeed  = flag.Uint64("sqlxbulk.seed", 20261121, "which pairs and which rows")
)

// A bulkMode is a driver in one of its modes.
type bulkMode struct {
	driver     string
	parameters []string
}

var bulkModes = map[string]bulkMode{
	"pgx":                 {"pgx", nil},
	"pgx exec":            {"pgx", []string{"default_query_exec_mode", "exec"}},
	"pgx simple protocol": {"pgx", []string{"default_query_exec_mode", "simple_protocol"}},
	"pgx describe exec":   {"pgx", []string{"default_query_exec_mode", "describe_exec"}},
	"pgx cache describe":  {"pgx", []string{"default_query_exec_mode", "cache_describe"}},
	"pq":                  {"postgres", nil},
	"pq binary":           {"postgres", []string{"binary_parameters", "yes"}},
}

// bulkRandom returns the random numbers for a database: each tries other pairs and
// rows.
func bulkRandom(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // which never fails
	return rand.New(rand.NewPCG(*bulkSeed, h.Sum64()))
}

// ways returns the Helpers that send eleven rows and more differently.
func (m bulkMode) ways() map[string]*sqlxhelper.Helper {
	h := sqlxhelper.New(sqlxcases.NewCounter(1))
	ways := map[string]*sqlxhelper.Helper{"unnest": h}
	if m.driver == "pgx" {
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
		`\x6162`, "101", "high", "1:30", "10.0.0.1", "nul\x00byte", "bad\xffutf8", "[1,5)", strings.Repeat("long ", 30),
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
}

// bulkTable creates a table with all of them, as c0, c1, ….
func bulkTable(t *testing.T, db *sqlx.DB) {
	t.Helper()
	execSqlx(t, db, "CREATE TYPE mood AS ENUM ('low', 'high', 'a \"b\", \\ {c}', 'NULL')")
	execSqlx(t, db, "CREATE DOMAIN positive AS int8 CHECK (VALUE > 0)")
	b := strings.Builder{}
	for i, c := range bulkColumns {
		fmt.Fprintf(&b, ", c%d %s", i, c)
	}
	execSqlx(t, db, "CREATE TABLE bulk (id bigint PRIMARY KEY"+b.String()+")")
}

// bulkRows returns rows of a struct type with the columns and the values.
func bulkRows(typ reflect.Type, rows [][]any) any {
	list := reflect.MakeSlice(reflect.SliceOf(typ), len(rows), len(rows))
	for i, row := range rows {
		for j, v := range row {
			if v != nil {
				list.Index(i).Field(j + 1).Set(reflect.ValueOf(v))
			}
		}
	}
	return list.Interface()
}

// bulkType returns a struct type with a key and a field for each column.
func bulkType(fields []reflect.Type, columns []int) reflect.Type {
	list := []reflect.StructField{{Name: "ID", Type: reflect.TypeFor[types.Snowflake](), Tag: `db:"id"`}}
	for i, c := range columns {
		list = append(list, reflect.StructField{
			Name: fmt.Sprintf("F%d", i), Type: fields[i], Tag: reflect.StructTag(fmt.Sprintf(`db:"c%d"`, c)),
		})
	}
	return reflect.StructOf(list)
}

// stored inserts rows, n at a time. It returns what the database has of them then,
// as text, or the error. It leaves the transaction as it was.
func stored(t *testing.T, tx *sqlx.Tx, h *sqlxhelper.Helper, n int, rows any, columns []int) (texts []string, failed error) {
	t.Helper()
	if _, err := tx.Exec("SAVEPOINT before"); err != nil {
		t.Fatal(err)
	}
	list := reflect.ValueOf(rows)
	for i := 0; i < list.Len(); i += n {
		if err := h.InsertMany(context.Background(), tx, "bulk", list.Slice(i, min(i+n, list.Len())).Interface()); err != nil {
			failed = err
			break
		}
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = fmt.Sprintf("COALESCE('=' || c%d::text, 'NULL')", c)
	}
	var count int
	if err := tx.Get(&count, "SELECT count(*) FROM bulk"); err != nil {
		t.Fatal(err)
	}
	if failed == nil {
		if err := tx.Select(&texts, "SELECT concat_ws(' | ', "+strings.Join(names, ", ")+") FROM bulk ORDER BY id"); err != nil {
			t.Fatal(err)
		}
		count -= list.Len()
	} else if n >= list.Len() && count != 0 {
		t.Errorf("%d rows are stored after %v", count, failed)
	}
	if failed == nil && count != 0 {
		t.Errorf("%d rows too many are stored", count)
	}
	if _, err := tx.Exec("ROLLBACK TO before"); err != nil {
		t.Fatalf("after %v: %v", failed, err)
	}
	return texts, failed
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

func TestValuesAreStoredAlikeByAllWaysToPostgres(t *testing.T) {
	values := bulkValues()
	list := slices.SortedFunc(func(yield func(reflect.Type) bool) {
		for typ := range values {
			if !yield(typ) {
				return
			}
		}
	}, func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	for name, mode := range bulkModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := bulkRandom(name)
			d := sqlxPostgres(t, mode.driver, mode.parameters...)
			bulkTable(t, d.DB)
			pairs := random.Perm(len(list) * len(bulkColumns))
			if *bulkPairs > 0 {
				pairs = pairs[:min(*bulkPairs, len(pairs))]
				// A small chance is too little for what differs most.
				for typ, columns := range map[reflect.Type][]string{
					reflect.TypeFor[time.Time](): {"timestamptz", "timestamp", "date"},
					reflect.TypeFor[string]():    {"text[]", "box", "bit(3)", "char(3)", "bytea"},
				} {
					for _, c := range columns {
						pairs = append(pairs, slices.Index(list, typ)*len(bulkColumns)+slices.Index(bulkColumns, c))
					}
				}
			}
			accepted := 0
			for _, pair := range pairs {
				typ, column := list[pair/len(bulkColumns)], pair%len(bulkColumns)
				accepted += bulkPair(t, d.DB, mode, typ, values[typ], column)
			}
			t.Logf("seed %d: %d pairs, %d values accepted", *bulkSeed, len(pairs), accepted)
		})
	}
}

// bulkPair sends the values of a Go type to a column. It returns how many the
// database takes one by one.
func bulkPair(t *testing.T, db *sqlx.DB, mode bulkMode, typ reflect.Type, values []any, column int) int {
	t.Helper()
	tx := db.MustBegin()
	defer func() { _ = tx.Rollback() }()
	row, columns := bulkType([]reflect.Type{typ}, []int{column}), []int{column}
	h := sqlxhelper.New(sqlxcases.NewCounter(1))
	var good [][]any
	var want []string
	var bad []any
	states := map[int]string{}
	for _, v := range values {
		texts, err := stored(t, tx, h, 1, bulkRows(row, [][]any{{v}}), columns)
		if err == nil {
			good, want = append(good, []any{v}), append(want, texts...)
		} else {
			states[len(bad)] = sqlState(err)
			bad = append(bad, v)
		}
	}
	for way, h := range mode.ways() {
		if len(good) > 0 {
			rows, want := slices.Clone(good), slices.Clone(want)
			for len(rows) < 12 {
				rows, want = append(rows, good...), append(want, want...)[:len(rows)+len(good)]
			}
			texts, err := stored(t, tx, h, len(rows), bulkRows(row, rows), columns)
			if err != nil || !slices.Equal(texts, want) {
				t.Errorf("%v to %s by %s = %q, %v; want %q as by VALUES", typ, bulkColumns[column], way, texts, err, want)
			}
		}
		for i, v := range bad[:min(len(bad), 3)] {
			rows := slices.Repeat([][]any{{v}}, 12)
			for j := range min(11, len(good)) {
				rows[j] = good[j]
			}
			_, err := stored(t, tx, h, len(rows), bulkRows(row, rows), columns)
			if state := sqlState(err); state != states[i] {
				t.Errorf("%v (%#v) to %s by %s = %v; want %s as by VALUES", typ, v, bulkColumns[column], way, err, states[i])
			}
		}
	}
	return len(good)
}

type noted struct {
	types.Model
	At    time.Time    `db:"at"`
	Plain time.Time    `db:"plain"`
	Day   time.Time    `db:"day"`
	Text  time.Time    `db:"text"`
	Ptr   *time.Time   `db:"ptr"`
	Null  sql.NullTime `db:"nul"`
	Any   any          `db:"dyn"`
	Bytes time.Time    `db:"bytes"`
}

// The driver, and not the number of rows, decides what becomes of the nanoseconds.
func TestTimesAreStoredAsThePlainDriverStoresThem(t *testing.T) {
	for name, mode := range bulkModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sqlxPostgres(t, mode.driver, mode.parameters...)
			const columns = "at, plain, day, text, ptr, nul, dyn, bytes"
			at := time.Date(2024, 2, 29, 23, 59, 59, 123_456_789, time.UTC)
			null := sql.NullTime{Time: at, Valid: true}
			for table, ddl := range map[string]string{
				"times": "at timestamptz, plain timestamp, day date, text timestamptz(0), ptr timestamptz, nul timestamp, dyn timestamptz, bytes timestamptz",
				"texts": "at timestamptz, plain timestamp, day date, text text, ptr varchar(60), nul text, dyn text, bytes bytea",
			} {
				execSqlx(t, d.DB, "CREATE TABLE "+table+" (id bigint PRIMARY KEY, "+ddl+")")
				if _, err := d.DB.Exec("INSERT INTO "+table+" (id, "+columns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", 0, at, at, at, at, &at, null, at, at); err != nil {
					t.Fatal(err)
				}
				for way, h := range mode.ways() {
					for _, n := range []int{1, 2, 40} {
						rows := slices.Repeat([]noted{{At: at, Plain: at, Day: at, Text: at, Ptr: &at, Null: null, Any: at, Bytes: at}}, n)
						execSqlx(t, d.DB, "DELETE FROM "+table+" WHERE id > 0")
						if err := h.InsertMany(t.Context(), d.DB, table, rows); err != nil {
							t.Fatal(err)
						}
						var kinds []string
						if err := d.DB.Select(&kinds, "SELECT DISTINCT concat_ws(' | ', "+columns+") FROM "+table); err != nil || len(kinds) != 1 {
							t.Errorf("%s: %d rows by %s and one by the driver are stored as %q, %v; want one kind", table, n, way, kinds, err)
						}
					}
				}
			}
		})
	}
}

func bulkString(r *rand.Rand) string {
	alphabet := []rune("ab \"\\{},'\t\n\r\x01\x7fNUL.ä𝔘")
	s := make([]rune, r.IntN(12))
	for i := range s {
		s[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(s)
}

// bulkTime returns a time to the microsecond, because MySQL and lib/pq round and pgx
// cuts.
func bulkTime(r *rand.Rand) time.Time {
	from := time.Date(1000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	to := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro()
	t := time.UnixMicro(from + r.Int64N(to-from)).UTC()
	if r.IntN(4) == 0 {
		t = t.In(time.FixedZone("", 3600*(r.IntN(20)-10)))
	}
	return t
}

func TestRandomRowsAreStoredAlikeByAllWaysToPostgres(t *testing.T) {
	for name, mode := range bulkModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ways []sqlxhelper.Option
			if mode.driver == "pgx" {
				ways = append(ways, sqlxhelper.WithCopy(pgxcopy.Copier{}, 11))
			}
			sqlxPostgres(t, mode.driver, mode.parameters...).Alike(t, *bulkSeed, 14, ways...)
		})
	}
}

type bulkNote struct {
	ID   types.Snowflake `db:"id"`
	Note string          `db:"note"`
}

func TestTextThatPostgresHasNoCharactersForIsAnErrorByAllWays(t *testing.T) {
	for name, mode := range bulkModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sqlxPostgres(t, mode.driver, mode.parameters...)
			execSqlx(t, d.DB, "CREATE TABLE notes (id bigint PRIMARY KEY, note text NOT NULL)")
			for way, h := range mode.ways() {
				for _, bad := range []string{"a\x00b", "\xff", "\xed\xa0\x80"} {
					rows := make([]bulkNote, 300)
					rows[200].Note = bad
					if err := h.InsertMany(context.Background(), d.DB, "notes", rows); err == nil {
						t.Errorf("%s: InsertMany(%q) = nil; want an error", way, bad)
					}
					var n int
					if err := d.DB.Get(&n, "SELECT count(*) FROM notes"); err != nil || n != 0 {
						t.Errorf("%s: rows after InsertMany(%q) = %d, %v; want 0", way, bad, n, err)
					}
				}
			}
		})
	}
}

// A role with policies can insert what they allow, but not by COPY. Superusers and
// owners have no policies.
func TestRowsUnderAPolicyAreInserted(t *testing.T) {
	d := sqlxPostgres(t, "pgx")
	var schema string
	if err := d.DB.Get(&schema, "SELECT current_schema"); err != nil {
		t.Fatal(err)
	}
	role := "sqlxbulk_" + strings.ToLower(schema[len("sqlxhelper_"):])
	tx := d.DB.MustBegin()
	defer func() { _ = tx.Rollback() }()
	for _, text := range []string{
		"CREATE TABLE policed (id bigint PRIMARY KEY, note text)",
		"ALTER TABLE policed ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY quiet ON policed USING (true) WITH CHECK (note = '')",
		"CREATE ROLE " + role,
		"GRANT USAGE ON SCHEMA \"" + schema + "\" TO " + role,
		"GRANT ALL ON policed TO " + role,
		"SET LOCAL ROLE " + role,
	} {
		tx.MustExec(text)
	}
	h := sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.WithCopy(pgxcopy.Copier{}, 11))
	if err := h.InsertMany(context.Background(), tx, "policed", make([]bulkNote, 30)); err != nil {
		t.Errorf("InsertMany(rows that the policy allows) = %v; want nil", err)
	}
	if err := h.InsertMany(context.Background(), tx, "policed", slices.Repeat([]bulkNote{{Note: "x"}}, 30)); sqlState(err) != "42501" {
		t.Errorf("InsertMany(rows that the policy forbids) = %v; want 42501", err)
	}
}

// COPY would fill the identity and ignore the rule. All ways do what INSERT does.
func TestTablesWhereCopyDiffersAreInsertedInto(t *testing.T) {
	d := sqlxPostgres(t, "pgx")
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

func TestCopierOfPgxIsRefusedByPqAndTheTransactionGoesOn(t *testing.T) {
	d := sqlxPostgres(t, "postgres")
	execSqlx(t, d.DB, "CREATE TABLE notes (id bigint PRIMARY KEY, note text)")
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	tx := d.DB.MustBegin()
	defer func() { _ = tx.Rollback() }()
	err := h.With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 11)).InsertMany(context.Background(), tx, "notes", make([]bulkNote, 20))
	if !errors.Is(err, pgxcopy.ErrDriver) {
		t.Errorf("InsertMany(COPY of pgx, lib/pq) = %v; want ErrDriver", err)
	}
	if err := h.InsertMany(context.Background(), tx, "notes", make([]bulkNote, 20)); err != nil {
		t.Errorf("InsertMany() afterwards = %v; want nil", err)
	}
}

// pgx keeps every text that it has seen prepared in the server.
func TestManyRowCountsAreFewStatementsOnPostgres(t *testing.T) {
	d := sqlxPostgres(t, "pgx")
	d.DB.SetMaxOpenConns(1)
	execSqlx(t, d.DB, "CREATE TABLE notes (id bigint PRIMARY KEY, note text)")
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	for n := 1; n < 300; n++ {
		if err := h.InsertMany(context.Background(), d.DB, "notes", make([]bulkNote, n)); err != nil {
			t.Fatal(err)
		}
	}
	var texts int
	if err := d.DB.Get(&texts, "SELECT count(*) FROM pg_prepared_statements"); err != nil || texts > 13 {
		t.Errorf("prepared statements = %d, %v; want 10 for few rows, one for many, and two queries", texts, err)
	}
}

// The pool does not see a table that the transaction has made. One that does not
// exist leaves the transaction usable.
func TestTypesAreReadInTheCallersTransaction(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		d := sqlxPostgres(t, driver)
		h := sqlxhelper.New(sqlxcases.NewCounter(0))
		tx := d.DB.MustBegin()
		defer func() { _ = tx.Rollback() }()
		if err := h.InsertMany(context.Background(), tx, "made", make([]bulkNote, 20)); sqlState(err) != "42P01" {
			t.Errorf("InsertMany(no table) = %v; want 42P01", err)
		}
		if err := h.Describe(context.Background(), tx, "made"); !errors.Is(err, sqlxhelper.ErrArgument) {
			t.Errorf("Describe(no table) = %v; want ErrArgument", err)
		}
		tx.MustExec("CREATE TABLE made (id bigint PRIMARY KEY, note text)")
		err := errors.Join(h.Describe(context.Background(), tx, "made"), h.InsertMany(context.Background(), tx, "made", make([]bulkNote, 20)))
		if err != nil {
			t.Errorf("Describe(), InsertMany(new table) = %v; want nil", err)
		}
	}
}

type bulkAmounts struct {
	ID types.Snowflake `db:"id"`
	N  float64         `db:"n"`
}

// amounts returns rows with the numbers from 0 to 29, and something more.
func amounts(more float64) []bulkAmounts {
	rows := make([]bulkAmounts, 30)
	for i := range rows {
		rows[i].N = float64(i) + more
	}
	return rows
}

// What is known of a table serves other transactions if it is committed. It serves
// other connections if the table is not temporary. Float64s in an array of double
// precision would be rounded on their way into an integer. By VALUES they are
// refused.
func TestTypesThatOthersDoNotSeeAreNotKept(t *testing.T) {
	d := sqlxPostgres(t, "postgres")
	execSqlx(t, d.DB, "CREATE TABLE amounts (id bigint PRIMARY KEY, n integer)")
	execSqlx(t, d.DB, "CREATE TABLE other (id bigint)")
	for name, texts := range map[string][]string{
		"altered":                   {"ALTER TABLE amounts ALTER n TYPE double precision"},
		"altered under a savepoint": {"INSERT INTO other VALUES (1)", "SAVEPOINT before", "ALTER TABLE amounts ALTER n TYPE double precision"},
		"created anew":              {"DROP TABLE amounts", "CREATE TABLE amounts (id bigint PRIMARY KEY, n double precision)"},
	} {
		h := sqlxhelper.New(sqlxcases.NewCounter(0))
		describe := func(db sqlxhelper.DB) error { return h.Describe(context.Background(), db, "amounts") }
		insert := func(db sqlxhelper.DB) error { return h.InsertMany(context.Background(), db, "amounts", amounts(0.5)) }
		for way, learn := range map[string]func(sqlxhelper.DB) error{"Describe": describe, "InsertMany": insert} {
			tx := d.DB.MustBegin()
			for _, text := range texts {
				tx.MustExec(text)
			}
			if err := errors.Join(learn(tx), insert(tx), tx.Rollback()); err != nil {
				t.Fatalf("%s: %s, InsertMany() = %v; want nil", name, way, err)
			}
			if err := insert(d.DB); err == nil {
				var stored string
				_ = d.DB.Get(&stored, "SELECT string_agg(n::text, ' ' ORDER BY id) FROM amounts")
				t.Errorf("%s, seen by %s: InsertMany(0.5, 1.5, … into integer) = nil, stored %s; want an error", name, way, stored)
				execSqlx(t, d.DB, "TRUNCATE amounts")
			}
		}
	}
}

func TestTypesOfATemporaryTableAreNotKept(t *testing.T) {
	d := sqlxPostgres(t, "postgres")
	d.DB.SetMaxOpenConns(1)
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	execSqlx(t, d.DB, "CREATE TABLE amounts (id bigint PRIMARY KEY, n integer)")
	execSqlx(t, d.DB, "CREATE TEMPORARY TABLE amounts (id bigint, n double precision)")
	if err := h.InsertMany(context.Background(), d.DB, "amounts", amounts(0.5)); err != nil {
		t.Fatalf("InsertMany(temporary table) = %v; want nil", err)
	}
	execSqlx(t, d.DB, "DROP TABLE pg_temp.amounts")
	if err := h.InsertMany(context.Background(), d.DB, "amounts", amounts(0.5)); err == nil {
		t.Error("InsertMany(0.5, 1.5, … into integer) = nil; want an error")
	}
}

// The binary forms of bigint and double precision are both eight bytes.
func TestColumnThatWasAlteredSinceIsNotCopiedIntoWrongly(t *testing.T) {
	d := sqlxPostgres(t, "pgx")
	for _, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
		h := sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.WithCopy(pgxcopy.Copier{}, 11))
		execSqlx(t, d.DB, "CREATE TABLE amounts (id bigint PRIMARY KEY, n double precision)")
		if err := h.InsertMany(context.Background(), d.DB, "amounts", amounts(0)); err != nil {
			t.Fatal(err)
		}
		tx, err := d.DB.BeginTxx(context.Background(), &sql.TxOptions{Isolation: isolation})
		if err != nil {
			t.Fatal(err)
		}
		tx.MustExec("CREATE TEMPORARY TABLE snapshot ON COMMIT DROP AS SELECT 1")
		execSqlx(t, d.DB, "ALTER TABLE amounts ALTER n TYPE bigint")
		if err := h.InsertMany(context.Background(), tx, "amounts", amounts(0)); !errors.Is(err, sqlxhelper.ErrTableChanged) {
			var stored string
			_ = tx.Get(&stored, "SELECT string_agg(n::text, ' ' ORDER BY id) FROM amounts")
			t.Errorf("%v: InsertMany(n has become bigint) = %v, stored %s; want ErrTableChanged", isolation, err, stored)
		}
		if err := tx.Commit(); err != nil {
			t.Errorf("%v: Commit() = %v; want nil", isolation, err)
		}
		// The next call looks.
		if err := h.InsertMany(context.Background(), d.DB, "amounts", amounts(0)); err != nil {
			t.Errorf("%v: InsertMany(once more) = %v; want nil", isolation, err)
		}
		var sum int64
		if err := d.DB.Get(&sum, "SELECT sum(n) FROM amounts"); err != nil || sum != 2*435 {
			t.Errorf("%v: sum = %d, %v; want 870", isolation, sum, err)
		}
		execSqlx(t, d.DB, "DROP TABLE amounts")
	}
}

// Settings of a session may change what a text means, and make a NULL a text.
func TestSettingsOfASessionMeanTheSameOnAllWays(t *testing.T) {
	d := sqlxPostgres(t, "pgx")
	execSqlx(t, d.DB, "CREATE TABLE settings (id bigint PRIMARY KEY, note text, wait interval)")
	for _, set := range []string{
		"SET LOCAL client_encoding = 'LATIN1'", "SET LOCAL array_nulls = off", "SET LOCAL datestyle = 'SQL, DMY'",
		"SET LOCAL standard_conforming_strings = off", "SET LOCAL bytea_output = 'escape'",
	} {
		for way, h := range bulkModes["pgx"].ways() {
			tx := d.DB.MustBegin()
			tx.MustExec(set)
			rows := make([]struct {
				ID   types.Snowflake `db:"id"`
				Note *string         `db:"note"`
				Wait string          `db:"wait"` // it has no binary form
			}, 24)
			for i := range rows {
				rows[i].Wait = "1:30"
				if i%2 > 0 {
					note := fmt.Sprintf("täglich \\ %d", i)
					rows[i].Note = &note
				}
			}
			var texts [2]string
			for i, n := range []int{8, 24} {
				for j := 0; j < len(rows); j += n {
					if err := h.InsertMany(context.Background(), tx, "settings", rows[j:j+n]); err != nil {
						t.Fatalf("%s: InsertMany() = %v", set, err)
					}
				}
				if err := tx.Get(&texts[i], "SELECT string_agg(COALESCE(encode(convert_to(note, 'UTF8'), 'escape'), '-'), '|' ORDER BY id) FROM settings"); err != nil {
					t.Fatal(err)
				}
				tx.MustExec("DELETE FROM settings")
			}
			if texts[0] != texts[1] {
				t.Errorf("%s: stored by %s = %q; want %q as by VALUES", set, way, texts[1], texts[0])
			}
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
		}
	}
}
