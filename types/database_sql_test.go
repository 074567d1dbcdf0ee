package types_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/types"
)

// A fakeDB is a driver that answers every query with rows of one column, and
// remembers the arguments. Text of type []byte is handed out in one buffer that
// the next row overwrites, as drivers do.
type fakeDB struct {
	rows []driver.Value
	args []driver.Value
}

func (f *fakeDB) open(t *testing.T) *sql.DB {
	t.Helper()
	db := sql.OpenDB(f)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v; want nil", err)
		}
	})
	return db
}

func (f *fakeDB) Connect(context.Context) (driver.Conn, error) { return f, nil }
func (f *fakeDB) Driver() driver.Driver                        { return nil }
func (f *fakeDB) Prepare(string) (driver.Stmt, error) {
	return nil, errors.New("fakeDB prepares nothing")
}
func (f *fakeDB) Begin() (driver.Tx, error) { return nil, errors.New("fakeDB begins nothing") }
func (f *fakeDB) Close() error              { return nil }

func (f *fakeDB) QueryContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Rows, error) {
	for _, a := range args {
		f.args = append(f.args, a.Value)
	}
	return &fakeRows{rows: f.rows}, nil
}

// db is the database of the example. It stores what it is sent, in a table of two columns. A real
// one would link SQLite into the tests of this package.
var db = sql.OpenDB(&pairsDB{})

type pairsDB struct {
	fakeDB
	values []driver.Value
}

func (p *pairsDB) Connect(context.Context) (driver.Conn, error) { return p, nil }

func (p *pairsDB) ExecContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Result, error) {
	for _, a := range args {
		p.values = append(p.values, a.Value)
	}
	return driver.RowsAffected(len(args) / 2), nil
}

func (p *pairsDB) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &pairRows{p.values}, nil
}

type pairRows struct{ values []driver.Value }

func (p *pairRows) Columns() []string { return []string{"id", "parent_id"} }
func (p *pairRows) Close() error      { return nil }

func (p *pairRows) Next(dest []driver.Value) error {
	if len(p.values) == 0 {
		return io.EOF
	}
	p.values = p.values[copy(dest, p.values):]
	return nil
}

type fakeRows struct {
	rows []driver.Value
	buf  [32]byte
}

func (r *fakeRows) Columns() []string { return []string{"id"} }
func (r *fakeRows) Close() error      { return nil }

func (r *fakeRows) Next(dest []driver.Value) error {
	for i := range r.buf {
		r.buf[i] = '#'
	}
	if len(r.rows) == 0 {
		return io.EOF
	}
	dest[0] = r.rows[0]
	if b, ok := r.rows[0].([]byte); ok && b != nil {
		dest[0] = r.buf[:copy(r.buf[:], b)]
	}
	r.rows = r.rows[1:]
	return nil
}

// query scans every row into a fresh result of dest, and stops at an error.
func query[T any](t *testing.T, rows []driver.Value, start T) (got []T, err error) {
	t.Helper()
	fake := &fakeDB{rows: rows}
	rs, err := fake.open(t).Query("SELECT id")
	if err != nil {
		t.Fatalf("Query() = %v; want nil", err)
	}
	defer func() {
		if cerr := rs.Close(); cerr != nil {
			t.Errorf("Rows.Close() = %v; want nil", cerr)
		}
	}()
	dest := start // one variable for all rows: what a loop in a program does
	for rs.Next() {
		err := rs.Scan(&dest)
		got = append(got, dest)
		if err != nil {
			return got, err
		}
	}
	return got, rs.Err()
}

func TestRowsScanReadsEveryKindThatHoldsAnID(t *testing.T) {
	rows := []driver.Value{int64(1), []byte("22222222"), "3", uint64(4), []byte("5"), int64(math.MaxInt64), []byte("0")}
	want := []types.Snowflake{1, 22222222, 3, 4, 5, maxInt64, 0}

	got, err := query(t, rows, before)
	if !slices.Equal(got, want) || err != nil {
		t.Errorf("Rows.Scan(*Snowflake) = %v, %v; want %v, nil", got, err, want)
	}
	nulls, err := query(t, rows, types.NullSnowflake{})
	if err != nil || len(nulls) != len(want) {
		t.Fatalf("Rows.Scan(*NullSnowflake) = %v, %v; want %v, nil", nulls, err, want)
	}
	for i, n := range nulls {
		if n != (types.NullSnowflake{Snowflake: want[i], Valid: true}) {
			t.Errorf("Rows.Scan(*NullSnowflake) row %d = %+v; want {%d true}", i, n, want[i])
		}
	}
	std, err := query(t, rows, sql.Null[types.Snowflake]{})
	if err != nil || len(std) != len(want) {
		t.Fatalf("Rows.Scan(*sql.Null[Snowflake]) = %v, %v; want %v, nil", std, err, want)
	}
	for i, n := range std {
		if n != (sql.Null[types.Snowflake]{V: want[i], Valid: true}) {
			t.Errorf("Rows.Scan(*sql.Null[Snowflake]) row %d = %+v; want {%d true}", i, n, want[i])
		}
	}
	ptrs, err := query(t, rows, (*types.Snowflake)(nil))
	if err != nil || len(ptrs) != len(want) {
		t.Fatalf("Rows.Scan(**Snowflake) = %v, %v; want %v, nil", ptrs, err, want)
	}
	for i, p := range ptrs {
		if p == nil || *p != want[i] {
			t.Errorf("Rows.Scan(**Snowflake) row %d = %v; want a pointer to %d", i, p, want[i])
		}
	}
}

func TestRowsScanOfNullNeverShowsThePreviousRow(t *testing.T) {
	for name, null := range map[string]driver.Value{"nil": nil, "nil []byte": []byte(nil)} {
		got, err := query(t, []driver.Value{int64(7), null, int64(8)}, before)
		if !slices.Equal(got, []types.Snowflake{7, 0}) {
			t.Errorf("Rows.Scan(*Snowflake) of 7, %s = %v; want [7 0]", name, got)
		}
		if !errors.Is(err, types.ErrNull) || !strings.Contains(err.Error(), "NullSnowflake") || !strings.Contains(err.Error(), `"id"`) {
			t.Errorf("Rows.Scan(*Snowflake) of %s error = %v; want ErrNull, naming NullSnowflake and the column", name, err)
		}
	}
}

func TestRowsScanOfNullIntoNullableTypes(t *testing.T) {
	rows := []driver.Value{int64(7), nil, int64(0)}
	nulls, err := query(t, rows, types.NullSnowflake{Snowflake: before, Valid: true})
	if want := []types.NullSnowflake{{Snowflake: 7, Valid: true}, {}, {Snowflake: 0, Valid: true}}; !slices.Equal(nulls, want) || err != nil {
		t.Errorf("Rows.Scan(*NullSnowflake) = %v, %v; want %v, nil", nulls, err, want)
	}
	std, err := query(t, rows, sql.Null[types.Snowflake]{})
	if want := []sql.Null[types.Snowflake]{{V: 7, Valid: true}, {}, {V: 0, Valid: true}}; !slices.Equal(std, want) || err != nil {
		t.Errorf("Rows.Scan(*sql.Null[Snowflake]) = %v, %v; want %v, nil", std, err, want)
	}
	ptrs, err := query(t, rows, (*types.Snowflake)(nil))
	if err != nil || len(ptrs) != 3 || ptrs[0] == nil || *ptrs[0] != 7 || ptrs[1] != nil || ptrs[2] == nil || *ptrs[2] != 0 {
		t.Errorf("Rows.Scan(**Snowflake) = %v, %v; want pointers to 7 and 0 around a nil", ptrs, err)
	}
}

func TestRowsScanRefusesWhatIsNoID(t *testing.T) {
	for _, src := range []driver.Value{
		int64(-1), uint64(1 << 63), 5.0, true, time.Unix(5, 0), "", "007", []byte{2, 0x71, 6, 0x5a, 0xc1, 2, 0, 7},
	} {
		got, err := query(t, []driver.Value{src}, before)
		var ve *types.ValueError
		if !errors.As(err, &ve) || !slices.Equal(got, []types.Snowflake{before}) {
			t.Errorf("Rows.Scan(*Snowflake) of %T %v = %v, %v; want [%d] and a *ValueError", src, src, got, err, before)
		}
		was := types.NullSnowflake{Snowflake: before, Valid: true}
		nulls, err := query(t, []driver.Value{src}, was)
		if !errors.As(err, &ve) || !slices.Equal(nulls, []types.NullSnowflake{was}) {
			t.Errorf("Rows.Scan(*NullSnowflake) of %T %v = %v, %v; want [%v] and a *ValueError", src, src, nulls, err, was)
		}
	}
}

func TestArgumentsReachTheDriverAsInt64OrNull(t *testing.T) {
	id := maxInt64
	fake := &fakeDB{}
	rows, err := fake.open(t).Query("SELECT ?",
		types.Snowflake(0), id, &id, (*types.Snowflake)(nil),
		types.NullSnowflake{}, types.NullSnowflake{Snowflake: 5, Valid: true}, types.NullSnowflake{Valid: true},
		sql.Null[types.Snowflake]{}, sql.Null[types.Snowflake]{V: 6, Valid: true},
	)
	if err != nil {
		t.Fatalf("Query() = %v; want nil", err)
	}
	if err := rows.Close(); err != nil {
		t.Fatalf("Rows.Close() = %v; want nil", err)
	}
	want := []driver.Value{
		int64(0), int64(math.MaxInt64), int64(math.MaxInt64), nil,
		nil, int64(5), int64(0),
		nil, int64(6),
	}
	if !slices.Equal(fake.args, want) {
		t.Errorf("arguments = %#v; want %#v", fake.args, want)
	}
}

func TestNegativeArgumentsDoNotReachTheDriver(t *testing.T) {
	for _, arg := range []any{
		types.Snowflake(-5), types.NullSnowflake{Snowflake: -5, Valid: true}, sql.Null[types.Snowflake]{V: -5, Valid: true},
	} {
		fake := &fakeDB{}
		rows, err := fake.open(t).Query("SELECT ?", arg)
		if err == nil {
			_ = rows.Close()
		}
		if !errors.Is(err, types.ErrRange) || fake.args != nil {
			t.Errorf("Query(%#v) = %v with the arguments %v; want ErrRange and no statement", arg, err, fake.args)
		}
	}
}
