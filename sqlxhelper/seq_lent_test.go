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
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A lent row refers to memory in every way that SQLite can store.
type lent struct {
	types.Model
	N         int              `db:"n"`
	Bytes     []byte           `db:"bytes"`
	JSON      json.RawMessage  `db:"json"`
	Raw       sql.RawBytes     `db:"raw"`
	Named     blob             `db:"named"`
	Text      *string          `db:"text"`
	Deep      **string         `db:"deep"`
	BytesAt   *[]byte          `db:"bytes_at"`
	At        *time.Time       `db:"at"`
	Null      sql.Null[[]byte] `db:"null_bytes"`
	Any       any              `db:"any_bytes"`
	AnyText   any              `db:"any_text"`
	AnyValuer any              `db:"any_valuer"`
	Pointer   *shared          `db:"pointer"`
	Valuer    shared           `db:"valuer"`
	Elsewhere elsewhere        `db:"elsewhere"`
	Owner     *types.Snowflake `db:"owner"`
	Addressed addressed        `db:"addressed"`
}

type blob []byte

// shared is a Valuer that shares its memory, and its values', with others.
type shared struct{ text *[]byte }

func (s shared) Value() (driver.Value, error) { return *s.text, nil }

// elsewhere is a Valuer whose memory is not in the row at all.
type elsewhere struct{}

var elsewhereText []byte

func (elsewhere) Value() (driver.Value, error) { return elsewhereText, nil }

// addressed is a Valuer by its address alone.
type addressed struct{ text []byte }

func (a *addressed) Value() (driver.Value, error) { return a.text, nil }

const lentTable = `CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE, bytes, json, raw, named, text, deep, bytes_at, at TIMESTAMP,
	null_bytes, any_bytes, any_text, any_valuer, pointer, valuer, elsewhere, owner INTEGER, addressed)`

var lentTexts = []string{"bytes", "json", "raw", "named", "text", "deep", "bytes_at", "null_bytes", "any_bytes", "any_text", "any_valuer", "pointer", "valuer", "elsewhere", "addressed"}

// A lender yields n rows from one piece of memory, which it writes over as soon as yield
// returns.
type lender struct {
	row   lent
	bytes []byte
	text  string
	at    time.Time
	owner types.Snowflake
}

func newLender() *lender {
	l := &lender{bytes: make([]byte, 8)}
	deep := &l.text
	l.row = lent{
		Bytes: l.bytes, JSON: l.bytes, Raw: l.bytes, Named: l.bytes, Text: &l.text, Deep: &deep, BytesAt: &l.bytes, At: &l.at,
		Null: sql.Null[[]byte]{V: l.bytes, Valid: true}, Any: l.bytes, AnyText: &l.text, AnyValuer: shared{&l.bytes},
		Pointer: &shared{&l.bytes}, Valuer: shared{&l.bytes}, Owner: &l.owner, Addressed: addressed{l.bytes},
	}
	elsewhereText = l.bytes
	return l
}

// write makes the memory that of row n.
func (l *lender) write(n int) {
	l.row.N = n
	copy(l.bytes, fmt.Sprintf("row%05d", n))
	l.text = string(l.bytes)
	l.at = time.Unix(int64(n), 0).UTC()
	l.owner = types.Snowflake(n + 1)
}

func (l *lender) spoil() {
	copy(l.bytes, "spoiled!")
	l.row.N, l.text, l.at, l.owner = -1, "spoiled!", time.Time{}, 77
}

// wantLent fails the test unless n rows are stored as they were yielded.
func wantLent(t *testing.T, db *sqlx.DB, n int) {
	t.Helper()
	wantRows(t, db, "t", n)
	for _, column := range lentTexts {
		var wrong int
		if err := db.Get(&wrong, "SELECT COUNT(*) FROM t WHERE n < 0 OR CAST("+column+" AS TEXT) <> printf('row%05d', n) OR "+column+" IS NULL"); err != nil || wrong > 0 {
			t.Errorf("%d of %d rows have the %s of another, %v", wrong, n, column, err)
		}
	}
	var wrong int
	if err := db.Get(&wrong, "SELECT COUNT(*) FROM t WHERE owner <> n + 1 OR CAST(strftime('%s', at) AS INTEGER) <> n"); err != nil || wrong > 0 {
		t.Errorf("%d of %d rows have the time or the owner of another, %v", wrong, n, err)
	}
}

func TestRowsYieldedFromReusedMemoryAreStoredAsYielded(t *testing.T) {
	for _, n := range []int{1, 100, 5001} {
		db := openSQLite(t)
		db.MustExec(lentTable)
		l := newLender()
		inserted, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(lent, error) bool) {
			for i := range n {
				l.write(i)
				if !yield(l.row, nil) {
					return
				}
				l.spoil()
			}
		})
		if err != nil || inserted != int64(n) {
			t.Errorf("InsertSeq(%d structs) = %d, %v", n, inserted, err)
		}
		wantLent(t, db, n)

		db.MustExec("DELETE FROM t")
		inserted, err = sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*lent, error) bool) {
			for i := range n {
				l.write(i)
				l.row.ID = 0
				if !yield(&l.row, nil) {
					return
				}
				l.spoil()
			}
		})
		if err != nil || inserted != int64(n) {
			t.Errorf("InsertSeq(%d pointers) = %d, %v", n, inserted, err)
		}
		wantLent(t, db, n)
	}
}

// What the row to blame was sent with is what it was yielded with.
func TestRowOfReusedMemoryIsNamedByWhatItWas(t *testing.T) {
	db := openSQLite(t)
	db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT CHECK (CAST(text AS TEXT) <> 'row00003'))")
	type note struct {
		types.Model
		Text []byte `db:"text"`
	}
	text := make([]byte, 8)
	_, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(note, error) bool) {
		for i := range 40 {
			copy(text, fmt.Sprintf("row%05d", i))
			if !yield(note{Text: text}, nil) {
				return
			}
		}
	})
	var e *sqlxhelper.InsertError
	if !errors.As(err, &e) || e.Row != 3 || e.Path != "sqlxhelper_test.note[3]" {
		t.Errorf("InsertSeq(40 rows of which the fourth is refused) = %v; want row 3", err)
	}
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

// A sequence may yield the same pointers again and again, in any order. Each row has a
// key of its own, and the pointer holds it as soon as yield has returned.
func TestPointerThatIsYieldedAgainIsARowOfItsOwn(t *testing.T) {
	const n = 12_000
	ring := make([]*pair, 7)
	for i := range ring {
		ring[i] = &pair{}
	}
	for name, next := range map[string]func(i int) *pair{
		"one pointer":   func(int) *pair { return ring[0] },
		"a ring":        func(i int) *pair { return ring[i%len(ring)] },
		"two at random": func(i int) *pair { return ring[i*i%2] },
		"a copy of the row before": func(i int) *pair {
			p := *ring[i%2]
			ring[(i+1)%2] = &p
			return &p
		},
		"a pointer that is set back": func(int) *pair { *ring[0] = pair{}; return ring[0] },
	} {
		for _, p := range ring {
			*p = pair{}
		}
		db := newPairs(t)
		seen := make([]types.Snowflake, n)
		inserted, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*pair, error) bool) {
			for i := range n {
				p := next(i)
				p.N = i
				if !yield(p, nil) {
					return
				}
				seen[i] = p.ID
			}
		})
		if err != nil || inserted != n {
			t.Errorf("%s: InsertSeq() = %d, %v; want %d", name, inserted, err, n)
			continue
		}
		stored := keysByN(t, db)
		for i := range n {
			if seen[i] == 0 || stored[i] != seen[i] {
				t.Errorf("%s: row %d was yielded with key %d, and is stored with %d", name, i, seen[i], stored[i])
				break
			}
		}
	}
}

func TestKeysOfTheCallerAreKeptInAReusedPointer(t *testing.T) {
	db := newPairs(t)
	p := &pair{}
	n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*pair, error) bool) {
		for i := range 6000 {
			p.N = i
			if i%2 == 0 {
				p.ID = types.Snowflake(1_000_000 + i)
			} else {
				p.ID = 0
			}
			if !yield(p, nil) {
				return
			}
		}
	})
	if err != nil || n != 6000 {
		t.Fatalf("InsertSeq() = %d, %v", n, err)
	}
	for i, key := range keysByN(t, db) {
		if (i%2 == 0) != (key == types.Snowflake(1_000_000+i)) {
			t.Fatalf("row %d is stored with key %d", i, key)
		}
	}
	// A key that the caller gives twice is the caller's mistake, and never replaced.
	_, err = sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*pair, error) bool) {
		for i := range 2 {
			p.ID, p.N = 5_000_000, 10_000+i
			if !yield(p, nil) {
				return
			}
		}
	})
	if !errors.Is(err, sqlxhelper.ErrDuplicateKey) {
		t.Errorf("InsertSeq(one key twice) = %v; want ErrDuplicateKey", err)
	}
}

// A value may hold its key behind an embedded pointer, which is reused like any other.
func TestEmbeddedPointerThatIsYieldedAgainIsARowOfItsOwn(t *testing.T) {
	type row struct {
		*types.Model
		N int `db:"n"`
	}
	db := newPairs(t)
	base := &types.Model{}
	inserted, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(row, error) bool) {
		for i := range 6000 {
			if !yield(row{base, i}, nil) {
				return
			}
		}
	})
	if stored := keysByN(t, db); err != nil || inserted != 6000 || len(stored) != 6000 || stored[5999] != base.ID {
		t.Errorf("InsertSeq() = %d, %v, with %d rows, the last key %d and %d in memory", inserted, err, len(stored), stored[5999], base.ID)
	}
}

// A row is the sequence's again once yield has returned: another goroutine may write to it.
func TestYieldedRowIsNotTouchedAfterYieldHasReturned(t *testing.T) {
	type row struct {
		types.Model
		N    int    `db:"n"`
		Text []byte `db:"text"`
	}
	db := openSQLite(t)
	db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER UNIQUE, text)")
	const n = 6000
	free, full := make(chan *row, 3), make(chan *row)
	for range cap(free) {
		free <- &row{Text: make([]byte, 8)}
	}
	go func() {
		defer close(full)
		for i := range n {
			r := <-free
			r.N = i
			copy(r.Text, fmt.Sprintf("row%05d", i))
			full <- r
		}
	}()
	inserted, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(*row, error) bool) {
		for r := range full {
			if !yield(r, nil) {
				return
			}
			free <- r
		}
	})
	var wrong int
	if err := db.Get(&wrong, "SELECT COUNT(*) FROM t WHERE CAST(text AS TEXT) <> printf('row%05d', n)"); err != nil || wrong > 0 {
		t.Errorf("%d rows have the text of another, %v", wrong, err)
	}
	if err != nil || inserted != n {
		t.Errorf("InsertSeq() = %d, %v; want %d", inserted, err, n)
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
		// Reused pointers too are rows of their own.
		r := &row{}
		n, err = sqlxhelper.InsertSeq(ctx, h, db, "t", func(yield func(*row, error) bool) {
			for i := range 6000 {
				r.N = 20_000 + i
				if !yield(r, nil) {
					return
				}
			}
		})
		if stored := keysByN(t, db); err != nil || n != 6000 || r.ID != stored[25_999] {
			t.Errorf("upsert %v: InsertSeq(one pointer) = %d, %v, and the pointer has %d; want %d", upsert, n, err, r.ID, stored[25_999])
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

type hiddenBase struct {
	Text string `db:"text"`
	Data []byte `db:"data"`
}

// Reflection cannot replace such a pointer, so what it leads to is read field by field.
func TestEmbeddedPointerOfATypeThatIsNotExportedIsReadAsYielded(t *testing.T) {
	type row struct {
		types.Model
		N int `db:"n"`
		*hiddenBase
	}
	db := openSQLite(t)
	db.MustExec("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, text TEXT, data)")
	base := &hiddenBase{Data: make([]byte, 8)}
	n, err := sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(row, error) bool) {
		for i := range 5001 {
			base.Text = fmt.Sprintf("row%05d", i)
			copy(base.Data, base.Text)
			if !yield(row{N: i, hiddenBase: base}, nil) {
				return
			}
		}
	})
	var wrong int
	if err := db.Get(&wrong, "SELECT COUNT(*) FROM t WHERE text <> printf('row%05d', n) OR CAST(data AS TEXT) <> text"); err != nil || wrong > 0 {
		t.Errorf("%d rows have the values of others, %v", wrong, err)
	}
	if n != 5001 || err != nil {
		t.Errorf("InsertSeq() = %d, %v", n, err)
	}
	_, err = sqlxhelper.InsertSeq(ctx, newHelper(sqlxhelper.SQLite), db, "t", func(yield func(row, error) bool) { yield(row{}, nil) })
	if e := (*sqlxhelper.RowError)(nil); !errors.As(err, &e) {
		t.Errorf("InsertSeq(a nil embedded pointer) = %v; want a RowError", err)
	}
}
