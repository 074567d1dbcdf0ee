package sqlxhelper

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/snowkey/snowkey/types"
)

// said is an error of PostgreSQL, with the fields of pgx and lib/pq.
type said struct{ Code, Message, Detail, Where string }

func (s *said) Error() string    { return s.Message }
func (s *said) SQLState() string { return s.Code }

type located struct {
	ID    types.Snowflake     `db:"id"`
	Owner types.NullSnowflake `db:"owner_id"`
	Name  string              `db:"name"`
	Size  float64             `db:"size"`
}

// newLocated returns a writer of rows with the keys 101, 102, …, the owners 7, 8,
// 7, 8, … and the names n0, n1, n1, n3.
func newLocated(t *testing.T, n int) (*writer, *load) {
	t.Helper()
	rows := make([]located, n)
	for i := range rows {
		rows[i] = located{ID: types.Snowflake(101 + i), Owner: types.NullSnowflake{Snowflake: types.Snowflake(7 + i%2), Valid: true}, Name: fmt.Sprint("n", i)}
	}
	if n > 2 {
		rows[2].Name = "n1"
	}
	b, err := manyRows("InsertMany", rows)
	if err != nil {
		t.Fatal(err)
	}
	w := newTestWriter(t, b, schemaOf[located](t, PostgreSQL, "t", false))
	return w, &w.loads[0]
}

// The line belongs to the COPY if there is no other, and if it names the table.
func TestLineOfACopyIsItsRow(t *testing.T) {
	for where, row := range map[string]int{
		"COPY t, line 3":                                     2,
		"COPY t, line 3, column name: \"x\"":                 2,
		"COPY t, Zeile 3":                                    2,
		"COPY t, line 9":                                     -1, // there are four
		"COPY audit, line 3":                                 -1,
		"SQL function \"f\" statement 1\nCOPY t, line 3":     -1, // of a trigger
		"COPY t, line 2\nSQL statement\nCOPY t, line 3":      -1,
		"COPY t, line 2, column name: \"x\nCOPY t, line 3\"": -1,
	} {
		w, l := newLocated(t, 4)
		var e *InsertError
		if err := w.copied(l, w.located(l, 0, 4, &said{Code: "22001", Where: where})); !errors.As(err, &e) || e.Row != row {
			t.Errorf("copied(%q) = row %d; want %d", where, e.Row, row)
		}
	}
}

// The rows of a statement are a part of those of the table.
// The server names the line, or the value, that it was at when something else happened.
func TestWhatIsNoRowsFaultNamesNone(t *testing.T) {
	for _, code := range []string{
		"57014",          // pg_cancel_backend, statement_timeout
		"57P01", "57P02", // pg_terminate_backend, crash
		"55P03", "40P01", "40001", // lock_timeout, deadlock, serialization failure
		"53100", "53200", "25P04", "58030", "XX000", // no space, no memory, transaction_timeout, I/O, internal
	} {
		for _, n := range []int{1, 4} {
			w, l := newLocated(t, 4)
			var e *InsertError
			if err := w.copied(l, w.located(l, 0, n, &said{Code: code, Where: "COPY t, line 1"})); !errors.As(err, &e) || e.Row != -1 || e.Path != "" || e.Key != 0 {
				t.Errorf("copied(%s at line 1 of %d) = %+v; want no row", code, n, e)
			}
			err := w.bound(l, w.located(l, 0, n, &said{Code: code, Where: `unnamed portal parameter $3 = '...'`}))
			if !errors.As(err, &e) || e.Row != -1 || e.Field != "" {
				t.Errorf("bound(%s at a parameter of %d rows) = %+v; want no row and no field", code, n, e)
			}
		}
	}
}

func TestRowIsCountedFromTheFirstOfTheTable(t *testing.T) {
	w, l := newLocated(t, 40)
	var e *InsertError
	err := w.copied(l, w.located(l, 32, 8, &said{Code: "22001", Where: "COPY t, line 3", Message: "mine"}))
	if !errors.As(err, &e) || e.First != 32 || e.Last != 39 || e.Rows != 40 || e.Row != 34 {
		t.Errorf("located(row 3 of 33 to 40) = %#v; want row 34 of 32 to 39", err)
	}
	if want := "sqlxhelper: insert into t, sqlxhelper.located[34] (id 135): mine"; err.Error() != want {
		t.Errorf("located() = %q; want %q", err, want)
	}
	if !strings.Contains(w.located(l, 32, 8, errors.New("x")).Error(), "rows 33 to 40 of 40: x") {
		t.Errorf("located(unknown row) = %v; want rows 33 to 40", w.located(l, 32, 8, errors.New("x")))
	}
}

// MySQL and PostgreSQL do not say which statement the row is of. It may be one of a trigger.
func TestRowThatAServerSpeaksOfIsNotTaken(t *testing.T) {
	for _, err := range []error{
		&MySQLError{Number: 1366, Message: "Data too long for column 'name' at row 3"},
		&MySQLError{Number: 1062, Message: "Duplicate entry 'n3' for key 't.name'"},
		&said{Code: "23505", Detail: "Key (id)=(103) already exists."},
		&said{Code: "23514", Detail: "Failing row contains (104, 8, n3, 0)."},
	} {
		w, l := newLocated(t, 4)
		var e *InsertError
		if got := w.located(l, 0, 4, err); !errors.As(got, &e) || e.Row != -1 || e.Unwrap() != err {
			t.Errorf("located(%v) = %#v; want row -1, and the error of the server", err, e)
		}
	}
}

type (
	whole struct {
		part
		PartID types.Snowflake `db:"part_id"`
		Part   *part           `db:"-" snowkey:"parts,belongs_to=part_id"`
	}
	part struct{ types.Model }
)

func TestRowsAtOneAddressAreToldApart(t *testing.T) {
	row := &whole{}
	row.Part = &row.part
	b, err := oneRow("InsertGraph", row)
	if err != nil {
		t.Fatal(err)
	}
	w := newTestWriter(t, b, schemaOf[whole](t, MySQL, "wholes", true))
	for i, want := range []string{"sqlxhelper.whole.Part", "sqlxhelper.whole"} {
		if got := w.path(w.loads[i].index(0)); got != want {
			t.Errorf("path(%s) = %q; want %q", w.loads[i].name, got, want)
		}
	}
}

func TestOneRowIsNamedWithoutAPlaceInASlice(t *testing.T) {
	one, err := oneRow("Insert", &benchItem{})
	if err != nil {
		t.Fatal(err)
	}
	many, err := manyRows("InsertMany", make([]benchItem, 2))
	if err != nil {
		t.Fatal(err)
	}
	for row, c := range []struct {
		batch
		want string
	}{{one, "sqlxhelper.benchItem"}, {many, "sqlxhelper.benchItem[1]"}} {
		w := newTestWriter(t, c.batch, schemaOf[benchItem](t, SQLite, "t", false))
		if got := w.path(row); got != c.want {
			t.Errorf("path(row %d) = %q; want %q", row, got, c.want)
		}
	}
}

// Drivers count values, from 0 or from 1.
func TestValueThatADriverCountsIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"failed to encode args[6]: no":          "1 Name",
		"sql: converting argument $7 type: no":  "1 Name",
		"sql: converting argument $17 type: no": "-1 ",
		"sql: converting argument $0 type: no":  "-1 ",
		"failed to encode args[16]: no":         "-1 ",
		"failed to encode args: no":             "-1 ",
	} {
		w, l := newLocated(t, 4)
		err := w.bound(l, w.located(l, 0, 4, errors.New(text)))
		var e *InsertError
		if !errors.As(err, &e) || fmt.Sprint(e.Row, " ", e.Field) != want {
			t.Errorf("bound(%q) = %d %s; want %s", text, e.Row, e.Field, want)
		}
	}
}

// A trigger may say anything, and so may what a driver wraps.
func TestTextOfAServerIsNotTakenForThatOfADriver(t *testing.T) {
	for _, err := range []error{
		&said{Code: "P0001", Message: "failed to encode args[6]: no"},
		&said{Code: "P0001", Where: "PL/pgSQL function f() line 3 at RAISE, portal parameter $7"},
		&MySQLError{Number: 1644, Message: "sql: converting argument $7 type: no"},
		fmt.Errorf("failed to encode args[99]: %w", errors.New("failed to encode args[6]: no")),
	} {
		w, l := newLocated(t, 4)
		var e *InsertError
		if bound := w.bound(l, w.located(l, 0, 4, err)); !errors.As(bound, &e) || e.Row != -1 {
			t.Errorf("bound(%v) = row %d; want -1", err, e.Row)
		}
	}
}

// A statement of one row has no other row to blame. But it may fail for a reason
// that is no row's fault.
func TestOneRowIsNamedOnlyForItsOwnFault(t *testing.T) {
	w, l := newLocated(t, 1)
	for _, c := range []struct {
		err  error
		want int
	}{
		{mattn(sqlite3.ErrConstraintUnique), 0},
		{mattn(18), 0}, // too big
		{mysql(1406), 0},
		{postgres("23505"), 0},
		{postgres("22001"), 0},
		{mattn(8), -1}, // a readonly database
		{mattn(13), -1},
		{mattn(5), -1},
		{mattn(1), -1}, // no such table
		{mattn(9), -1}, // interrupted
		{mysql(1146), -1},
		{mysql(1317), -1}, // KILL QUERY
		{mysql(1969), -1}, // max_statement_time
		{mysql(1213), -1},
		{postgres("42P01"), -1},
		{postgres("57014"), -1},
		{driver.ErrBadConn, -1},
		{io.ErrUnexpectedEOF, -1},
		{errors.New("invalid connection"), -1},
		{context.Canceled, -1},
	} {
		var e *InsertError
		if !errors.As(w.located(l, 0, 1, c.err), &e) || e.Row != c.want {
			t.Errorf("located(%v) = row %d; want %d", c.err, e.Row, c.want)
		}
	}
}
