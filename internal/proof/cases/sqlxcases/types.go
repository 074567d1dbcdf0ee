package sqlxcases

import (
	"bytes"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// decimal is exact: a text in Go, a number in the database.
type decimal string

func (d decimal) Value() (driver.Value, error) { return string(d), nil }

func (d *decimal) Scan(src any) error {
	switch src := src.(type) {
	case string:
		*d = decimal(src)
	case []byte:
		*d = decimal(src)
	default:
		return fmt.Errorf("decimal: cannot scan %T", src)
	}
	return nil
}

// level is an enum.
type level string

// point is a Valuer by its pointer alone.
type point struct{ X, Y int }

func (p *point) Value() (driver.Value, error) { return fmt.Sprintf("%d,%d", p.X, p.Y), nil }

func (p *point) Scan(src any) error {
	text := fmt.Sprint(src)
	if b, ok := src.([]byte); ok {
		text = string(b)
	}
	_, err := fmt.Sscanf(text, "%d,%d", &p.X, &p.Y)
	return err
}

// labels is an array that does without the driver.
type labels []string

func (l labels) Value() (driver.Value, error) {
	if l == nil {
		return nil, nil
	}
	return "{" + strings.Join(l, ",") + "}", nil
}

func (l *labels) Scan(src any) error {
	text := ""
	switch src := src.(type) {
	case nil:
		*l = nil
		return nil
	case string:
		text = src
	case []byte:
		text = string(src)
	}
	*l = strings.Split(strings.Trim(text, "{}"), ",")
	return nil
}

// Address is embedded by value, Audit by pointer.
type Address struct {
	City string         `db:"city"`
	Zip  sql.NullString `db:"zip"`
}

type Audit struct {
	By   *string    `db:"changed_by"`
	When *time.Time `db:"changed_at"`
}

// typed has what users of database/sql have in their structs.
type typed struct {
	types.Model
	Int16   sql.NullInt16   `db:"c_int16"`
	Int32   sql.NullInt32   `db:"c_int32"`
	Int64   sql.NullInt64   `db:"c_int64"`
	Byte    sql.NullByte    `db:"c_byte"`
	Bool    sql.NullBool    `db:"c_bool"`
	Float   sql.NullFloat64 `db:"c_float"`
	Text    sql.NullString  `db:"c_text"`
	Time    sql.NullTime    `db:"c_time"`
	Generic sql.Null[int64] `db:"c_generic"`

	PtrInt   *int                `db:"p_int"`
	PtrPtr   **int               `db:"pp_int"`
	PtrText  *string             `db:"p_text"`
	PtrBool  *bool               `db:"p_bool"`
	PtrTime  *time.Time          `db:"p_time"`
	PtrKey   *types.Snowflake    `db:"p_key"`
	NullKey  types.NullSnowflake `db:"n_key"`
	PtrFloat *float64            `db:"p_float"`

	Data []byte          `db:"data"`
	Doc  json.RawMessage `db:"doc"`
	At   time.Time       `db:"at"`

	Amount    decimal  `db:"a_value"`
	PtrAmount *decimal `db:"p_amount"` // nil: the method of the value must not be called
	Level     level    `db:"l_value"`
	PtrLevel  *level   `db:"p_level"`
	Point     point    `db:"place"`
	Labels    labels   `db:"labels"`

	Int8    int8    `db:"c_int8"`
	Uint8   uint8   `db:"c_uint8"`
	Uint32  uint32  `db:"c_uint32"`
	Uint64  uint64  `db:"c_uint64"`
	Float32 float32 `db:"c_float32"`

	Address
	*Audit
}

const typedTable = "CREATE TABLE typed (id BIGINT PRIMARY KEY, c_int16 SMALLINT, c_int32 INTEGER, c_int64 BIGINT, c_byte SMALLINT, " +
	"c_bool BOOLEAN, c_float DOUBLE PRECISION, c_text VARCHAR(100), c_time moment NULL, c_generic BIGINT, " +
	"p_int BIGINT, pp_int BIGINT, p_text VARCHAR(100), p_bool BOOLEAN, p_time moment NULL, p_key BIGINT, n_key BIGINT, p_float DOUBLE PRECISION, " +
	"data bytes, doc document, at moment NOT NULL, a_value amount, p_amount amount, l_value level, p_level level, place VARCHAR(50), labels list, " +
	"c_int8 SMALLINT NOT NULL, c_uint8 SMALLINT NOT NULL, c_uint32 BIGINT NOT NULL, c_uint64 BIGINT NOT NULL, c_float32 DOUBLE PRECISION NOT NULL, " +
	"city VARCHAR(50) NOT NULL, zip VARCHAR(50), changed_by VARCHAR(50), changed_at moment NULL)"

// newTyped returns a row whose fields are NULL, zero or extreme. Which of these
// depends on i modulo 3.
func newTyped(i int) typed {
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.FixedZone("", 2*3600+1800)).Add(time.Duration(i) * time.Microsecond)
	row := typed{
		At: at, Amount: "0.0000000000", Level: "low", Point: point{-i, i}, Labels: labels{"a", fmt.Sprint(i)}, Doc: json.RawMessage(`{"a":["?","\\"]}`),
		Data: []byte{0, 255, '\\', byte(i)}, Int8: math.MinInt8, Uint8: math.MaxUint8, Uint32: math.MaxUint32, Uint64: math.MaxInt64, Float32: 0.5,
		Address: Address{City: "Zürich \\ \" ' {,} 😀\tx\n"}, Audit: &Audit{},
	}
	if i%3 == 0 {
		return row
	}
	yes, n, text, key, f, amount, high := i%2 == 0, -i, "NULL", types.Snowflake(math.MaxInt64), 1e-300, decimal("-12345678901234567890.1234567890"), level("high")
	ptr := &n
	row.Int16, row.Int32 = sql.NullInt16{Int16: math.MinInt16, Valid: true}, sql.NullInt32{Int32: math.MaxInt32, Valid: true}
	row.Int64, row.Byte = sql.NullInt64{Int64: math.MinInt64, Valid: true}, sql.NullByte{Byte: 7, Valid: true}
	row.Bool, row.Float = sql.NullBool{Bool: yes, Valid: true}, sql.NullFloat64{Float64: -math.MaxFloat64 / 2, Valid: true}
	row.Text, row.Time = sql.NullString{Valid: true}, sql.NullTime{Time: at, Valid: true}
	row.Generic = sql.Null[int64]{V: 1 << 53, Valid: true}
	row.PtrInt, row.PtrPtr, row.PtrText, row.PtrBool, row.PtrTime = &n, &ptr, &text, &yes, &at
	row.PtrKey, row.NullKey, row.PtrFloat = &key, types.NullSnowflake{Snowflake: 1, Valid: true}, &f
	row.Amount, row.PtrAmount, row.Level, row.PtrLevel = amount, &amount, high, &high
	row.Zip, row.Audit = sql.NullString{String: "8000", Valid: true}, &Audit{By: &text, When: &at}
	if i%3 == 1 {
		row.Data, row.Doc, row.Labels = nil, json.RawMessage("null"), nil // NULL cannot be scanned into a RawMessage
		row.Int8, row.Uint8, row.Uint32, row.Uint64, row.Float32 = 0, 0, 0, 0, float32(math.MaxFloat32)
	}
	return row
}

func (d Database) withLevels(t *testing.T) {
	t.Helper()
	if d.Dialect == sqlxhelper.PostgreSQL {
		d.exec(t, "CREATE TYPE level AS ENUM ('low', 'high')")
		t.Cleanup(func() { d.exec(t, "DROP TYPE level") })
	}
}

// everyType writes few rows and many, which take different ways into the database.
// It reads them back into the same types.
func (d Database) everyType(t *testing.T) {
	d.withLevels(t)
	d.tables(t, typedTable)
	for _, n := range []int{1, 3, 60} {
		rows := make([]typed, n)
		for i := range rows {
			rows[i] = newTyped(i)
		}
		if err := sqlxhelper.New(NewCounter(types.Snowflake(n*1000))).InsertMany(ctx, d.DB, "typed", rows); err != nil {
			t.Fatalf("InsertMany(%d rows) = %v; want nil", n, err)
		}
		for _, want := range rows {
			var got typed
			if err := d.DB.Get(&got, fmt.Sprintf("SELECT * FROM typed WHERE id = %d", want.ID)); err != nil {
				t.Fatalf("Get(%d) = %v", want.ID, err)
			}
			// The instant is what counts: which zone it comes back in is the driver's choice.
			for _, p := range []struct{ got, want *time.Time }{
				{&got.At, &want.At}, {&got.Time.Time, &want.Time.Time}, {got.PtrTime, want.PtrTime}, {got.When, want.When},
			} {
				if p.got != nil && p.want != nil && p.got.Equal(*p.want) {
					*p.got = *p.want
				}
			}
			// MySQL keeps a document, not its text: there are blanks when it is read back.
			var text bytes.Buffer
			if err := json.Compact(&text, got.Doc); err != nil {
				t.Errorf("document of row %d = %s, %v; want JSON", want.ID, got.Doc, err)
			}
			got.Doc = text.Bytes()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("one of %d rows = %s; want %s", n, dump(got), dump(want))
			}
		}
	}
}

// dump shows what pointers point to.
func dump(row typed) string {
	text, err := json.Marshal(row)
	return fmt.Sprintf("%s %v", text, err)
}

// trouble is a Valuer that fails when it is told to.
type trouble string

var errTrouble = errors.New("trouble")

func (t trouble) Value() (driver.Value, error) {
	switch t {
	case "error":
		return nil, errTrouble
	case "panic":
		panic("trouble")
	case "nil":
		return (*point)(nil).Value()
	}
	return string(t), nil
}

type troubled struct {
	types.Model
	Name trouble `db:"name"`
}

func (d Database) troubledValue(t *testing.T) {
	d.tables(t, "CREATE TABLE troubled (id BIGINT PRIMARY KEY, name VARCHAR(20))")
	for _, kind := range []trouble{"error", "panic", "nil"} {
		for _, n := range []int{1, 5, 700} {
			for _, inTx := range []bool{false, true} {
				rows := make([]troubled, n)
				rows[n-1].Name = kind
				err := d.onEither(t, inTx, func(db sqlxhelper.DB) error {
					return sqlxhelper.New(NewCounter(0)).InsertMany(ctx, db, "troubled", rows)
				})
				var e *sqlxhelper.InsertError
				if !errors.As(err, &e) || e.First != n-1 || e.Last != n-1 || e.Rows != n || e.Row != n-1 || e.Field != "Name" || errors.Is(err, errTrouble) != (kind == "error") {
					t.Errorf("InsertMany(%d rows, %s in the last) = %+v; want an InsertError about its Name", n, kind, e)
				}
				d.wantCount(t, "troubled", 0)
			}
		}
	}
}

type unsigned struct {
	types.Model
	N uint64 `db:"n"`
}

// unsignedValue: what does not fit into the column is an error, not another
// number.
func (d Database) unsignedValue(t *testing.T) {
	d.tables(t, "CREATE TABLE unsigneds (id BIGINT PRIMARY KEY, n BIGINT)")
	for _, n := range []int{1, 3, 60} {
		rows := make([]unsigned, n)
		rows[n-1].N = 1 << 63
		err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, d.DB, "unsigneds", rows)
		var e *sqlxhelper.InsertError
		if !errors.As(err, &e) || e.Row != n-1 && (e.Row >= 0 || n == 1 || d.Dialect != sqlxhelper.MySQL && toldWhere(err)) {
			t.Errorf("InsertMany(%d rows, 1<<63 in the last) = %v; want an InsertError about it", n, err)
		}
		d.wantCount(t, "unsigneds", 0)
	}
}

// toldWhere reports whether an error says which value it is about. That of
// PostgreSQL about a value within a text does not. pgx sends such texts in its
// simple protocol.
func toldWhere(err error) bool {
	var said interface{ SQLState() string }
	if !errors.As(err, &said) {
		return true
	}
	where := reflect.Indirect(reflect.ValueOf(said)).FieldByName("Where")
	return where.Kind() != reflect.String || where.String() != ""
}

type generated struct {
	types.Model
	N     int    `db:"n"`
	Twice int    `db:"twice" snowkey:"-"`
	State string `db:"state" snowkey:"-"`
}

func (d Database) generatedColumns(t *testing.T) {
	d.tables(t, "CREATE TABLE generateds (id BIGINT PRIMARY KEY, n BIGINT, twice BIGINT GENERATED ALWAYS AS (n * 2) STORED, state VARCHAR(10) DEFAULT 'new')")
	for _, n := range []int{1, 60} {
		rows := make([]generated, n)
		for i := range rows {
			rows[i] = generated{N: i, Twice: -1, State: "?"}
		}
		if err := sqlxhelper.New(NewCounter(types.Snowflake(n*100))).InsertMany(ctx, d.DB, "generateds", rows); err != nil {
			t.Fatalf("InsertMany(%d rows) = %v; want nil", n, err)
		}
		var wrong int
		if err := d.DB.Get(&wrong, "SELECT COUNT(*) FROM generateds WHERE twice <> 2 * n OR state <> 'new'"); err != nil || wrong != 0 {
			t.Errorf("rows with another value than the database's = %d, %v; want 0", wrong, err)
		}
	}
	d.wantCount(t, "generateds", 61)
}

// tagged has its names in another tag, as in programs written for another library.
type tagged struct {
	Key     types.Snowflake `json:"id"`
	Order   string          `json:"order_no,omitempty"`
	Comment string
	Hidden  string `json:"-"`
}

func (d Database) customMapper(t *testing.T) {
	d.tables(t, "CREATE TABLE tagged (id BIGINT PRIMARY KEY, order_no VARCHAR(20), x_comment VARCHAR(20))")
	db := sqlx.NewDb(d.DB.DB, d.DB.DriverName())
	db.Mapper = reflectx.NewMapperTagFunc("json", func(field string) string { return "x_" + strings.ToLower(field) }, func(tag string) string {
		name, _, _ := strings.Cut(tag, ",")
		return name
	})
	rows := []tagged{{Order: "A", Comment: "B", Hidden: "C"}, {Order: "D"}}
	if err := sqlxhelper.New(NewCounter(0)).InsertMany(ctx, db, "tagged", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	var got []tagged
	if err := db.Select(&got, "SELECT * FROM tagged ORDER BY id"); err != nil {
		t.Fatal(err)
	}
	rows[0].Hidden = ""
	if !reflect.DeepEqual(got, rows) {
		t.Errorf("rows = %+v; want %+v", got, rows)
	}
}
