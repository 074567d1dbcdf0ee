package sqlxcases

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A kind is a type of a column, with values of one Go type that the column keeps as they are.
type kind struct {
	column string // as in [Database.tables]
	value  func(r *rand.Rand) any
}

// kinds begins with numbers, and ends with types that hold a NULL themselves, which stand behind no
// pointer.
var kinds = []kind{
	{"BIGINT", func(r *rand.Rand) any { return int64(r.Uint64()) >> r.IntN(64) }},
	{"INTEGER", func(r *rand.Rand) any { return int32(r.Uint32()) }},
	{"SMALLINT", func(r *rand.Rand) any { return int8(r.Uint32()) }},
	{"SMALLINT", func(r *rand.Rand) any { return uint8(r.Uint32()) }},
	{"BIGINT", func(r *rand.Rand) any { return r.Uint32() }},
	{"BIGINT", func(r *rand.Rand) any { return r.Uint64() >> 1 }},
	{"BIGINT", func(r *rand.Rand) any { return int(r.Int64()) }},
	{"BIGINT", func(r *rand.Rand) any { return types.Snowflake(r.Int64()) }},
	{"DOUBLE PRECISION", func(r *rand.Rand) any { return r.NormFloat64() * math.Pow10(r.IntN(40)-20) }},
	{"DOUBLE PRECISION", func(r *rand.Rand) any { return float32(r.IntN(2000)-1000) / 8 }},
	{"BOOLEAN", func(r *rand.Rand) any { return r.IntN(2) == 0 }},
	{"VARCHAR(100)", func(r *rand.Rand) any { return randomText(r) }},
	{"VARCHAR(100)", func(r *rand.Rand) any { return status(randomText(r)) }},
	{"moment", func(r *rand.Rand) any { return randomMoment(r) }},
	{"amount", func(r *rand.Rand) any { return decimal(fmt.Sprintf("%d.%010d", r.Int64()>>r.IntN(64), r.IntN(1e10))) }},
	{"level", func(r *rand.Rand) any { return level([]string{"low", "high"}[r.IntN(2)]) }},

	{"bytes", func(r *rand.Rand) any { return [][]byte{nil, []byte("\x00\xff?\\" + randomText(r))}[r.IntN(2)] }},
	{"document", func(r *rand.Rand) any {
		text, _ := json.Marshal(map[string]any{"a": []any{"?", `\`, randomText(r)}}) // which never fails
		return json.RawMessage(text)
	}},
	{"VARCHAR(50)", func(r *rand.Rand) any { return point{-r.IntN(9), r.IntN(9)} }},
	{"list", func(r *rand.Rand) any { return []labels{nil, {"a", fmt.Sprint(r.IntN(9))}}[r.IntN(2)] }},
	{"SMALLINT", func(r *rand.Rand) any { return sql.NullInt16{Int16: int16(r.Uint32()), Valid: r.IntN(3) > 0} }},
	{"INTEGER", func(r *rand.Rand) any { return sql.NullInt32{Int32: int32(r.Uint32()), Valid: r.IntN(3) > 0} }},
	{"BIGINT", func(r *rand.Rand) any { return sql.NullInt64{Int64: int64(r.Uint64()), Valid: r.IntN(3) > 0} }},
	{"BIGINT", func(r *rand.Rand) any { return sql.Null[int64]{V: int64(r.Uint64()), Valid: r.IntN(3) > 0} }},
	{"SMALLINT", func(r *rand.Rand) any { return sql.NullByte{Byte: byte(r.Uint32()), Valid: r.IntN(3) > 0} }},
	{"BOOLEAN", func(r *rand.Rand) any { return sql.NullBool{Bool: r.IntN(2) == 0, Valid: r.IntN(3) > 0} }},
	{"DOUBLE PRECISION", func(r *rand.Rand) any { return sql.NullFloat64{Float64: r.NormFloat64(), Valid: r.IntN(3) > 0} }},
	{"VARCHAR(100)", func(r *rand.Rand) any { return sql.NullString{String: randomText(r), Valid: r.IntN(3) > 0} }},
	{"moment", func(r *rand.Rand) any { return sql.NullTime{Time: randomMoment(r), Valid: r.IntN(3) > 0} }},
	{"BIGINT", func(r *rand.Rand) any {
		return types.NullSnowflake{Snowflake: types.Snowflake(r.Int64()), Valid: r.IntN(3) > 0}
	}},
}

// plainKinds is how many kinds are not such types.
const plainKinds = 16

var keysOf = []reflect.Type{
	reflect.TypeFor[types.Snowflake](), reflect.TypeFor[types.ID[row]](), reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[labelID](),
}

func randomText(r *rand.Rand) string {
	special := []string{"NULL", "null", `\N`, `\.`, "{}", `{"a"}`, `""`, `\\`, "why? :a $1 '12:30' ::int", "ä€𝔘\U0010ffff", "\r\n", "\\\n", " "}
	if r.IntN(4) == 0 {
		return special[r.IntN(len(special))]
	}
	s := make([]byte, r.IntN(12))
	for i := range s {
		s[i] = byte(1 + r.IntN(127))
	}
	return string(s)
}

// randomMoment returns a time to the microsecond, because MySQL and lib/pq round and pgx cuts.
func randomMoment(r *rand.Rand) time.Time {
	from, to := time.Date(1000, 1, 2, 0, 0, 0, 0, time.UTC).UnixMicro(), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).UnixMicro()
	return time.UnixMicro(from + r.Int64N(to-from)).In(time.FixedZone("", 1800*(r.IntN(40)-20)))
}

// Alike stores rows of random types, in random numbers and forms, together and one by one, and
// compares what the table has then, what is in memory, and what is read back into the same type.
// Together they are sent with each of the ways.
func (d Database) Alike(t *testing.T, seed uint64, programs int, ways ...sqlxhelper.Option) {
	d.withLevels(t)
	for n := range programs {
		t.Run(fmt.Sprintf("seed %d, program %d", seed, n), func(t *testing.T) {
			// pgx keeps what it knows of a table under its name.
			d.alike(t, fmt.Sprint("alike", n), rand.New(rand.NewPCG(seed, uint64(n))), ways)
		})
	}
}

func (d Database) alike(t *testing.T, table string, r *rand.Rand, ways []sqlxhelper.Option) {
	sizes, width := []int{0, 1, 2, 3, 32, 33, 50, 51, 101, 499, 1203}, r.IntN(14)
	var choice []int // few, since one column without a text form makes all go by VALUES
	for range 6 {
		choice = append(choice, r.IntN(len(kinds)))
	}
	switch width {
	case 0:
		sizes = []int{3500}
	case 13: // more columns than SQLite's chunk of 300 values, in one row
		width, sizes, choice = 399, []int{1, 20}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9} // numbers
	}
	quote := map[bool]string{true: "`", false: `"`}[d.Dialect == sqlxhelper.MySQL]
	names := []string{"order", "group", "select"}
	fields := []reflect.StructField{{Name: "ID", Type: keysOf[r.IntN(len(keysOf))], Tag: `db:"id"`}}
	ddl, columns, of := "CREATE TABLE "+table+" (id BIGINT PRIMARY KEY", []string{"id"}, []kind(nil)
	for i := range width {
		k := choice[r.IntN(len(choice))]
		of = append(of, kinds[k])
		typ := reflect.TypeOf(kinds[k].value(r))
		for k < plainKinds && r.IntN(3) == 0 {
			typ = reflect.PointerTo(typ)
		}
		name := fmt.Sprint("c", i)
		if i < len(names) {
			name = names[i]
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: typ, Tag: reflect.StructTag(fmt.Sprintf(`db:%q`, name))})
		columns = append(columns, quote+name+quote)
		ddl += ", " + columns[i+1] + " " + kinds[k].column + " NULL"
	}
	if width > 0 { // or the row is nothing but its key
		ddl += ", left_out VARCHAR(10) DEFAULT 'new', city VARCHAR(50), zip VARCHAR(50), changed_by VARCHAR(50), changed_at moment NULL"
		columns = append(columns, "left_out", "city", "zip", "changed_by", "changed_at")
		fields = append(fields,
			reflect.StructField{Name: "Left", Type: reflect.TypeFor[string](), Tag: `db:"left_out" snowkey:"-"`},
			reflect.StructField{Name: "Skipped", Type: reflect.TypeFor[string](), Tag: `db:"-"`},
			reflect.StructField{Name: "Address", Type: reflect.TypeFor[Address](), Anonymous: true},
			reflect.StructField{Name: "Audit", Type: reflect.TypeFor[*Audit](), Anonymous: true})
	}
	d.tables(t, ddl+")")
	typ := reflect.StructOf(fields)

	n, preset, missing := sizes[r.IntN(len(sizes))], r.IntN(2) == 0, 0
	given := reflect.MakeSlice(reflect.SliceOf(typ), n, n)
	for i := range n {
		row := given.Index(i)
		if preset && r.IntN(3) == 0 {
			row.Field(0).Set(reflect.ValueOf(i + 1).Convert(row.Field(0).Type()))
		} else {
			missing++
		}
		for j, k := range of {
			field := row.Field(j + 1)
			for field.Kind() == reflect.Pointer && r.IntN(4) > 0 {
				field.Set(reflect.New(field.Type().Elem()))
				field = field.Elem()
			}
			if field.Kind() != reflect.Pointer {
				field.Set(reflect.ValueOf(k.value(r)))
			}
		}
		if width == 0 {
			continue
		}
		text, at := randomText(r), randomMoment(r)
		row.FieldByName("Left").SetString("?")
		row.FieldByName("Skipped").SetString("?")
		row.FieldByName("City").SetString(text)
		row.FieldByName("Audit").Set(reflect.ValueOf([]*Audit{{}, {By: &text, When: &at}}[r.IntN(2)]))
	}

	rows := func() reflect.Value { return reflect.AppendSlice(reflect.MakeSlice(given.Type(), 0, n), given) }
	h := func(src *Counter, options ...sqlxhelper.Option) *sqlxhelper.Helper {
		return sqlxhelper.New(src, append(options, sqlxhelper.WithIntegerKeys())...)
	}
	memory, tx := rows(), d.begin(t) // faster than a commit for each
	one := h(NewCounter(5000))
	for i := range n {
		if err := one.Insert(ctx, tx, table, memory.Index(i).Addr().Interface()); err != nil {
			t.Fatalf("Insert(row %d of %s) = %v; want nil", i, ddl, err)
		}
	}
	must(t, tx.Commit())
	want := d.texts(t, table, columns)
	d.readBack(t, table, memory)
	for _, way := range append([]sqlxhelper.Option{sqlxhelper.WithIntegerKeys()}, ways...) {
		d.exec(t, "DELETE FROM "+table)
		src, list := NewCounter(5000), rows()
		arg := reflect.New(list.Type())
		arg.Elem().Set(list)
		if r.IntN(2) == 0 {
			pointers := reflect.MakeSlice(reflect.SliceOf(reflect.PointerTo(typ)), n, n)
			for i := range n {
				pointers.Index(i).Set(list.Index(i).Addr())
			}
			arg = reflect.New(pointers.Type())
			arg.Elem().Set(pointers)
		}
		if r.IntN(2) == 0 {
			arg = arg.Elem()
		}
		insert := h(src, way).InsertMany
		if r.IntN(4) == 0 {
			insert = h(src, way).InsertGraph
		}
		by := handles[r.IntN(len(handles))]
		if err := d.through(t, by, func(db sqlxhelper.DB) error { return insert(ctx, db, table, arg.Interface()) }); err != nil {
			t.Fatalf("%d rows of %s together, by %s = %v; want nil", n, ddl, by.name, err)
		}
		if !reflect.DeepEqual(list.Interface(), memory.Interface()) {
			t.Errorf("%d rows of %s are in memory %+v; want %+v", n, ddl, list, memory)
		}
		if !reflect.DeepEqual(src.fills, []int{missing}) && missing+len(src.fills) > 0 {
			t.Errorf("Fill was called with %v keys for %d rows; want once with %d", src.fills, n, missing)
		}
		got := d.texts(t, table, columns)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("row %d of %d of %s is stored together as %.1q; want %.1q", i, n, ddl, got[i:], want[i:])
			}
		}
		d.readBack(t, table, memory)
	}
}

// texts returns the stored rows in the order of their keys, as the database writes their values.
func (d Database) texts(t *testing.T, table string, columns []string) (texts []string) {
	t.Helper()
	form := map[sqlxhelper.Dialect]string{sqlxhelper.PostgreSQL: "%s::text", sqlxhelper.MySQL: "HEX(CAST(%s AS BINARY))", sqlxhelper.SQLite: "typeof(%[1]s) || hex(%[1]s)"}[d.Dialect]
	var list []string
	for _, column := range columns {
		list = append(list, fmt.Sprintf(form, column))
	}
	rows, err := d.DB.Queryx("SELECT " + strings.Join(list, ", ") + " FROM " + table + " ORDER BY id")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		cells, err := rows.SliceScan()
		must(t, err)
		texts = append(texts, fmt.Sprintf("%s", cells))
	}
	return texts
}

// readBack reads the rows into the type of those in memory, and compares what both would send.
func (d Database) readBack(t *testing.T, table string, memory reflect.Value) {
	t.Helper()
	if d.Inexact {
		return
	}
	list := reflect.New(memory.Type())
	if err := d.DB.Select(list.Interface(), "SELECT * FROM "+table); err != nil {
		t.Fatalf("Select(%v) = %v", memory.Type(), err)
	}
	got := map[string]bool{}
	for i := range list.Elem().Len() {
		got[sent(list.Elem().Index(i))] = true
	}
	for i := range memory.Len() {
		if want := sent(memory.Index(i)); !got[want] {
			t.Fatalf("row %d of %v is not read back: %s; want it among %v", i, memory.Type(), want, got)
		}
	}
}

// sent returns the values of a row as a driver gets them, times as instants and documents without
// blanks.
func sent(row reflect.Value) (text string) {
	for i := range row.NumField() {
		field, f := row.Type().Field(i), row.Field(i)
		switch {
		case field.Tag.Get("db") == "-":
		case field.Name == "Left": // in memory it is another
			text += strings.ReplaceAll(f.String(), "?", "new")
		case field.Anonymous:
			text += sent(reflect.Indirect(f))
		default:
			v := f.Interface()
			if valuer, ok := reflect.TypeAssert[driver.Valuer](f.Addr()); ok {
				v = valuer
			}
			v, err := driver.DefaultParameterConverter.ConvertValue(v)
			switch of := v.(type) {
			case time.Time:
				v = of.UTC()
			case []byte:
				var value any // MySQL writes a JSON in its own way
				if json.Unmarshal(of, &value) == nil {
					v, err = json.Marshal(value)
				}
			}
			text += fmt.Sprintf(" %s=%T %q %v", field.Name, v, fmt.Sprint(v), err)
		}
	}
	return text
}
