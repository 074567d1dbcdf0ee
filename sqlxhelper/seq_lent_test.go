package sqlxhelper_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A lent row has its bytes in memory that the sequence uses for the next row.
type lent struct {
	types.Model
	lentPart
	N     int             `db:"n"`
	Bytes []byte          `db:"bytes"`
	JSON  json.RawMessage `db:"json"`
	Raw   sql.RawBytes    `db:"raw"`
	Named blob            `db:"named"`
	None  []byte          `db:"none"`
}

type lentPart struct {
	Part []byte `db:"part"`
}

type blob []byte

func TestStructsWhoseMemoryIsUsedAgainAreStoredAsYielded(t *testing.T) {
	for _, n := range []int{1, 100, 5001} {
		db := openSQLite(t)
		db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE, bytes, json, raw, named, none, part)")
		inserted, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(lent, error) bool) {
			text := make([]byte, 8)
			row := lent{Bytes: text, JSON: text, Raw: text, Named: text, lentPart: lentPart{text}}
			for i := range n {
				row.N = i
				copy(text, fmt.Sprintf("row%05d", i))
				if !yield(row, nil) {
					return
				}
				copy(text, "spoiled!")
			}
		})
		if err != nil || inserted != int64(n) {
			t.Errorf("InsertSeq(%d structs) = %d, %v", n, inserted, err)
		}
		wantRows(t, db, "t", n)
		for _, column := range []string{"bytes", "json", "raw", "named", "part"} {
			var wrong int
			if err := db.Get(&wrong, "SELECT COUNT(*) FROM t WHERE CAST("+column+" AS TEXT) <> printf('row%05d', n) OR "+column+" IS NULL OR none IS NOT NULL"); err != nil || wrong > 0 {
				t.Errorf("%d of %d rows have the %s of another, %v", wrong, n, column, err)
			}
		}
	}
}

// A row that is yielded again is never stored as another one.
func TestPointerThatIsYieldedTwiceIsRefused(t *testing.T) {
	for _, apart := range []int{1, 7, 5003} { // the last is in another part
		db := newPairs(t)
		ring := make([]pair, apart)
		n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*pair, error) bool) {
			for i := range 6000 {
				p := &ring[i%apart]
				p.N = i
				if !yield(p, nil) {
					return
				}
			}
		})
		var row *sqlxhelper.RowError
		if n != 0 || !errors.As(err, &row) && !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
			t.Errorf("InsertSeq(each pointer again after %d) = %d, %v; want a RowError or ErrDuplicateKey", apart, n, err)
		}
		if want := fmt.Sprintf("sqlxhelper_test.pair[%d]", apart); row != nil && row.Path != want {
			t.Errorf("InsertSeq(each pointer again after %d) = %v; want %s", apart, err, want)
		}
		wantRows(t, db, "t", 0)
	}
}

// What two rows share by an embedded pointer is refused too.
func TestKeyThatTwoRowsOfASequenceShareIsRefused(t *testing.T) {
	type row struct {
		*types.Model
		N int `db:"n"`
	}
	db := newPairs(t)
	base := &types.Model{}
	_, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(row, error) bool) {
		_ = yield(row{base, 1}, nil) && yield(row{base, 2}, nil)
	})
	if !errors.As(err, new(*sqlxhelper.RowError)) {
		t.Errorf("InsertSeq(one *Model in two rows) = %v; want a RowError", err)
	}
	wantRows(t, db, "t", 0)
}

func TestValueThatFailsIsThatOfItsRowInASequence(t *testing.T) {
	type failing struct {
		types.Model
		F func() (driver.Value, error) `db:"-"`
		V any                          `db:"v"`
	}
	for name, value := range map[string]valuerFunc{
		"error": func() (driver.Value, error) { return nil, errMine },
		"panic": func() (driver.Value, error) { panic(errMine) },
	} {
		db := openSQLite(t)
		db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
		_, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(failing, error) bool) {
			for i := range 70 {
				row := failing{V: i}
				if i == 60 {
					row.V = value
				}
				if !yield(row, nil) {
					return
				}
			}
		})
		var e *sqlxhelper.InsertError
		if !errors.As(err, &e) || e.Row != 60 || e.Field != "V" || !strings.Contains(err.Error(), errMine.Error()) {
			t.Errorf("InsertSeq(a Value with an %s) = %v; want an InsertError of V in row 60", name, err)
		}
		wantRows(t, db, "t", 0)
	}
}

type valuerFunc func() (driver.Value, error)

func (f valuerFunc) Value() (driver.Value, error) { return f() }

// keysByN returns the stored keys by n.
func keysByN(t *testing.T, db *sqlx.DB) map[int]types.Snowflake {
	t.Helper()
	var rows []pair
	if err := db.Select(&rows, "SELECT id, n FROM t"); err != nil {
		t.Fatal(err)
	}
	keys := map[int]types.Snowflake{}
	for _, r := range rows {
		keys[r.N] = r.ID
	}
	return keys
}

// The key of a struct behind a pointer is there when yield returns, so that later rows can refer
// to it.
func TestPointerHasItsKeyWhenYieldReturns(t *testing.T) {
	db := newPairs(t)
	seen := map[int]types.Snowflake{}
	n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*pair, error) bool) {
		for i := range 6000 {
			p := &pair{N: i}
			if i%2 == 0 {
				p.ID = types.Snowflake(1_000_000 + i)
			}
			if !yield(p, nil) {
				return
			}
			seen[i] = p.ID
		}
	})
	if err != nil || n != 6000 {
		t.Fatalf("InsertSeq() = %d, %v", n, err)
	}
	for i, key := range keysByN(t, db) {
		if key != seen[i] || (i%2 == 0) != (key == types.Snowflake(1_000_000+i)) {
			t.Fatalf("row %d is stored with key %d, and yielded with %d", i, key, seen[i])
		}
	}
}

// What only the database tells comes after the part was sent. Other pointers get it all
// the same.
func TestPointersGetWhatTheDatabaseTells(t *testing.T) {
	type row struct {
		types.Model
		N     int    `db:"n"`
		Extra string `db:"extra"`
	}
	for _, upsert := range []bool{false, true} {
		db := openSQLite(t)
		db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE, extra TEXT DEFAULT 'x')")
		db.MustExec("INSERT INTO t (id, n) VALUES (1000001, -1)")
		h := newHelper(sqlxhelper.SQLite).With(sqlxhelper.Omit("extra"), sqlxhelper.Returning("extra"))
		if upsert {
			db.MustExec("INSERT INTO t (id, n, extra) VALUES (1000002, 7, 'seven')")
			h = h.With(sqlxhelper.OnConflictDoNothing("n"))
		}
		rows := make([]*row, 5003)
		for i := range rows {
			rows[i] = &row{N: i}
		}
		var seq iter.Seq2[*row, error] = func(yield func(*row, error) bool) {
			for _, r := range rows {
				if !yield(r, nil) {
					return
				}
			}
		}
		n, err := sqlxhelper.InsertSeq(ctx, h, db, "t", seq)
		if err != nil || n != 5003 {
			t.Fatalf("InsertSeq() = %d, %v", n, err)
		}
		stored := keysByN(t, db)
		for i, r := range rows {
			want := "x"
			if upsert && i == 7 {
				want = "seven"
			}
			if r.ID == 0 || r.ID != stored[i] || r.Extra != want {
				t.Fatalf("upsert %v: row %d = %+v; want the stored key %d, and %q", upsert, i, r, stored[i], want)
			}
		}
	}
}

// A sequence that fails leaves the keys in the pointers, so that a retry writes them.
func TestKeysStayInPointersOfASequenceThatFailed(t *testing.T) {
	db := newPairs(t)
	rows := []*pair{{N: 1}, {N: 2}, {N: 2}}
	seq := func(yield func(*pair, error) bool) {
		for _, p := range rows {
			if !yield(p, nil) {
				return
			}
		}
	}
	h := newHelper(sqlxhelper.SQLite)
	if _, err := sqlxhelper.InsertSeq(ctx, h, db, "t", seq); !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
		t.Fatalf("InsertSeq() = %v; want ErrDuplicateKey", err)
	}
	first := rows[0].ID
	rows[2].N = 3
	n, err := sqlxhelper.InsertSeq(ctx, h, db, "t", seq)
	if stored := keysByN(t, db); err != nil || n != 3 || first == 0 || stored[1] != first {
		t.Errorf("InsertSeq() again = %d, %v, with keys %v; want row 1 with its first key %d", n, err, stored, first)
	}
}

func TestNilPointerInASequenceIsCounted(t *testing.T) {
	db := newPairs(t)
	n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*pair, error) bool) {
		for i := range 6000 {
			p := &pair{N: i}
			if i == 5500 {
				p = nil
			}
			if !yield(p, nil) {
				return
			}
		}
	})
	var row *sqlxhelper.RowError
	if n != 0 || !errors.As(err, &row) || row.Path != "sqlxhelper_test.pair[5500]" || row.Problem != "it is nil" {
		t.Errorf("InsertSeq() = %d, %v; want 0 and that row 5500 is nil", n, err)
	}
}
