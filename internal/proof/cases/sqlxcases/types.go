package sqlxcases

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
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

func (d Database) withLevels(t *testing.T) {
	t.Helper()
	if d.Dialect == sqlxhelper.PostgreSQL {
		d.exec(t, "CREATE TYPE level AS ENUM ('low', 'high')")
		t.Cleanup(func() { d.exec(t, "DROP TYPE level") })
	}
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
