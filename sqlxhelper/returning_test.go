package sqlxhelper_test

import (
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

func TestReturningMatchesRowsByKey(t *testing.T) {
	for d, texts := range map[sqlxhelper.Dialect][2]string{
		sqlxhelper.PostgreSQL: {manyText(3), `SELECT "id", "n" FROM "t" WHERE "id" IN ($1, $2, $3, $4)`},
		sqlxhelper.MySQL:      {"INSERT INTO `t` (`id`, `n`) VALUES (?, ?), (?, ?), (?, ?)", "SELECT `id`, `n` FROM `t` WHERE `id` IN (?, ?, ?, ?)"},
	} {
		db, mock := newMock(t)
		mock.ExpectBegin()
		mock.ExpectExec(texts[0]).WillReturnResult(done(3))
		mock.ExpectQuery(texts[1]).WithArgs(1, 2, 3, 3).
			WillReturnRows(sqlmock.NewRows([]string{"id", "n"}).AddRow(3, 30).AddRow(1, 10).AddRow(2, 20))
		mock.ExpectCommit()
		rows := make([]pair, 3)
		err := newHelper(d).With(sqlxhelper.Returning("n")).InsertMany(ctx, db, "t", rows)
		if want := [3]pair{{1, 10}, {2, 20}, {3, 30}}; err != nil || [3]pair(rows) != want {
			t.Errorf("InsertMany(%v) = %v, %v; want nil, %v", d, err, rows, want)
		}
	}
}

func TestRowThatIsNotThereToBeReadBackUndoesTheCall(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db, pairTable, "CREATE TRIGGER gone AFTER INSERT ON t WHEN NEW.n < 0 BEGIN DELETE FROM t WHERE id = NEW.id; END")
	rows := []pair{{N: 1}, {N: -1}}
	err := newHelper(sqlxhelper.SQLite).With(sqlxhelper.Returning()).InsertMany(ctx, db, "t", rows)
	var at *sqlxhelper.InsertError
	if !errors.Is(err, sqlxhelper.ErrUnresolved) || !errors.As(err, &at) || at.Row != 1 {
		t.Errorf("InsertMany() = %v; want ErrUnresolved for row 1", err)
	}
	wantRows(t, db, "t", 0)
}

// SQLite takes a name in quotes for a text if there is no such column.
func TestColumnThatIsNotThereIsNotReadAsItsNameOnSQLite(t *testing.T) {
	type row struct {
		pair
		Left string `db:"n_left"`
		Read string `db:"n_read" snowkey:"-"`
	}
	db := openSQLite(t)
	execAll(t, db, pairTable)
	for _, table := range []string{"t", "main.t"} {
		for _, column := range []string{"n_left", "n_read"} {
			r := row{Left: "mine", Read: "mine"}
			h := newHelper(sqlxhelper.SQLite).With(sqlxhelper.Omit("n_left"), sqlxhelper.Returning(column))
			err := h.Insert(ctx, db, table, &r)
			if err == nil || !strings.Contains(err.Error(), column) || r.Left != "mine" || r.Read != "mine" {
				t.Errorf("Insert(%s, Returning(%s)) = %v, row %+v; want an error that names the column, and no change", table, column, err, r)
			}
		}
	}
	wantRows(t, db, "t", 0)
	r := row{}
	if err := newHelper(sqlxhelper.SQLite).With(sqlxhelper.Omit("n_left"), sqlxhelper.Returning("n")).Insert(ctx, db, "main.t", &r); err != nil {
		t.Errorf("Insert(main.t, Returning(n)) = %v; want nil", err)
	}
}

// A server may fail between two rows, as by a deadlock. That must not be taken for
// missing rows.
func TestErrorBetweenRowsThatAreReadBackIsReported(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(manyText(2)).WillReturnResult(done(2))
	mock.ExpectQuery(`SELECT "id", "n" FROM "t" WHERE "id" IN ($1, $2)`).
		WillReturnRows(sqlmock.NewRows([]string{"id", "n"}).AddRow(1, 0).AddRow(2, 0).RowError(1, errMine))
	mock.ExpectRollback()
	err := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.Returning("n")).InsertMany(ctx, db, "t", make([]pair, 2))
	if !errors.Is(err, errMine) {
		t.Errorf("InsertMany() = %v; want %v", err, errMine)
	}
}

// PostgreSQL cuts long names, and would read another column.
func TestNameThatIsTooLongIsNotReadBack(t *testing.T) {
	type row struct {
		pair
		A int `db:"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" snowkey:"-"`
	}
	db, _ := newMock(t)
	r := row{}
	if err := newHelper(sqlxhelper.PostgreSQL).With(sqlxhelper.Returning()).Insert(ctx, db, "t", &r); !errors.Is(err, sqlxhelper.ErrName) || r.ID != 0 {
		t.Errorf("Insert(Returning(name of 64 bytes)) = %v, key %d; want ErrName, 0", err, r.ID)
	}
}

// hidden is embedded by a pointer that reflection cannot set.
type hidden struct {
	Seen int `db:"seen" snowkey:"-"`
}

type Shown struct {
	Double int `db:"double" snowkey:"-"`
}

func TestReturningReachesWhatIsEmbedded(t *testing.T) {
	type row struct {
		pair
		*hidden
		*Shown
		Raw   sql.RawBytes `db:"raw" snowkey:"-"`
		Other struct {
			Name string `db:"name"`
		} `db:"other" snowkey:"-"`
	}
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, seen INTEGER DEFAULT 1, raw BLOB, double INTEGER GENERATED ALWAYS AS (n * 2))")
	rows := []row{{pair: pair{N: 4}}, {pair: pair{N: 5}, Shown: &Shown{}}}
	if err := newHelper(sqlxhelper.SQLite).With(sqlxhelper.Returning()).InsertMany(ctx, db, "t", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	if rows[0].Shown == nil || rows[0].Double != 8 || rows[1].Double != 10 || rows[0].hidden != nil {
		t.Errorf("rows = %+v; want doubles 8 and 10", rows)
	}
	// Bytes that the driver takes back are no field to be filled.
	for _, name := range []string{"seen", "raw", "other", "name", "other.name"} {
		if err := newHelper(sqlxhelper.SQLite).With(sqlxhelper.Returning(name)).InsertMany(ctx, db, "t", rows); !errors.Is(err, sqlxhelper.ErrArgument) {
			t.Errorf("InsertMany(Returning(%q)) = %v; want ErrArgument", name, err)
		}
	}
}

func TestReturningGoesByTheMapperOfTheHandle(t *testing.T) {
	type row struct {
		ID   types.Snowflake
		Size int
		Sum  int `snowkey:"-"`
	}
	db := openSQLite(t)
	db.Mapper = reflectx.NewMapperFunc("json", func(name string) string { return name + "_" })
	execAll(t, db, "CREATE TABLE t (ID_ INTEGER PRIMARY KEY, Size_ INTEGER, Sum_ INTEGER DEFAULT 7)")
	r := row{ID: 3}
	type keyed struct {
		Key types.Snowflake `json:"ID_" snowkey:"pk"`
		row `db:"-" json:"-"`
		Sum int `snowkey:"-"`
	}
	k := keyed{Key: r.ID}
	if err := newHelper(sqlxhelper.SQLite).With(sqlxhelper.Returning("Sum_")).Insert(ctx, db, "t", &k); err != nil || k.Sum != 7 {
		t.Errorf("Insert() = %v, sum %d; want nil, 7", err, k.Sum)
	}
}

// Two structs that became one row do not share what their fields point to.
func TestRowsThatAreOneAreReadApart(t *testing.T) {
	type row struct {
		types.Model
		K string  `db:"k"`
		N *int    `db:"n"`
		B *string `db:"b" snowkey:"-"`
	}
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, k TEXT UNIQUE, n INTEGER, b TEXT DEFAULT 'b')")
	rows := []row{{K: "a", N: new(int)}, {K: "a"}}
	if err := newHelper(sqlxhelper.SQLite).With(sqlxhelper.OnConflictDoNothing("k"), sqlxhelper.Returning()).InsertMany(ctx, db, "t", rows); err != nil {
		t.Fatalf("InsertMany() = %v; want nil", err)
	}
	if rows[0].ID != rows[1].ID || rows[1].N == nil || rows[0].N == rows[1].N || *rows[1].B != "b" || rows[0].B == rows[1].B {
		t.Errorf("rows = %+v; want the same values at different places", rows)
	}
}

// interrupting is a sql.Scanner that panics or ends its goroutine.
type interrupting struct{ goexit bool }

func (i *interrupting) Scan(any) error {
	if i.goexit = goexitInScan; i.goexit {
		runtime.Goexit()
	}
	panic(errMine)
}

var goexitInScan bool

func TestScannerThatPanicsOrEndsItsGoroutineUndoesTheCall(t *testing.T) {
	type row struct {
		pair
		S  interrupting  `db:"n" snowkey:"-"`
		At *interrupting `db:"at" snowkey:"-"`
	}
	type plain struct {
		types.Model
		At *interrupting `db:"at" snowkey:"-"`
	}
	for _, goexitInScan = range []bool{false, true} {
		for _, rows := range []any{[]row{{}}, []plain{{}}} {
			db := openSQLite(t)
			execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, at INTEGER DEFAULT 1)")
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				_ = newHelper(sqlxhelper.SQLite).With(sqlxhelper.Returning()).InsertMany(ctx, db, "t", rows)
			}()
			select {
			case p := <-ended:
				if goexitInScan != (p == nil) || p != nil && p != errMine {
					t.Errorf("InsertMany(%T) panicked with %v; want what Scan did, Goexit: %v", rows, p, goexitInScan)
				}
				wantRows(t, db, "t", 0)
			case <-time.After(20 * time.Second):
				t.Fatalf("InsertMany(%T), Goexit: %v, does not end", rows, goexitInScan)
			}
		}
	}
}

// wrapped is a sql.Scanner by pointer.
type wrapped struct{ value any }

func (w *wrapped) Scan(value any) error {
	if value == "bad" {
		return errMine
	}
	w.value = value
	return nil
}

func TestScannerGetsWhatScanWouldGiveIt(t *testing.T) {
	type row struct {
		types.Model
		Value   wrapped   `db:"v" snowkey:"-"`
		Null    wrapped   `db:"w" snowkey:"-"`
		Pointer **wrapped `db:"p" snowkey:"-"`
		Nil     *wrapped  `db:"q" snowkey:"-"`
	}
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER DEFAULT 7, w INTEGER, p TEXT DEFAULT 'x', q TEXT)")
	h := newHelper(sqlxhelper.SQLite).With(sqlxhelper.Returning())
	r := row{Null: wrapped{1}, Nil: &wrapped{}}
	if err := h.Insert(ctx, db, "t", &r); err != nil {
		t.Fatalf("Insert() = %v; want nil", err)
	}
	if r.Value.value != int64(7) || r.Null.value != nil || (*r.Pointer).value != "x" || r.Nil != nil {
		t.Errorf("row = %+v; want 7, nil, x and a nil pointer", r)
	}
	execAll(t, db, "CREATE TRIGGER spoil AFTER INSERT ON t BEGIN UPDATE t SET q = 'bad'; END")
	bad := row{}
	if err := h.Insert(ctx, db, "t", &bad); !errors.Is(err, errMine) || !strings.Contains(err.Error(), `"q"`) {
		t.Errorf("Insert() = %v; want the Scanner's error and column q", err)
	}
	wantRows(t, db, "t", 1)
}
