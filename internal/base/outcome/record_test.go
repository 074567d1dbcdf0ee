package outcome

import (
	"database/sql"
	"errors"
	"reflect"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/proof/servers/drivererrors"
)

func TestLastInsertedKeyOfATableIsTheProof(t *testing.T) {
	orders, items := KeyColumn{Dialect: dialect.PostgreSQL, Table: "orders", Column: "id"}, KeyColumn{Dialect: dialect.PostgreSQL, Table: "items", Column: "id"}
	r := &Record{}
	if got := r.Proofs(); got != nil {
		t.Errorf("Proofs() of nothing = %v; want nil", got)
	}
	if !r.empty() {
		t.Error("a record of nothing is not empty")
	}
	r.Add(orders, 2)
	r.Add(items, 4)
	if r.empty() {
		t.Error("a record of keys is empty")
	}
	r.Add(orders, 5)
	r.Add(orders, 0) // upserted, it may be older than the transaction
	want := []Proof{{orders, 5}, {items, 4}}
	if got := r.Proofs(); !reflect.DeepEqual(got, want) {
		t.Errorf("Proofs() = %v; want %v", got, want)
	}
}

func TestRolledBackToASavepointTheRowsOfBeforeAreTheProof(t *testing.T) {
	orders, items := KeyColumn{Dialect: dialect.SQLite, Table: "orders", Column: "id"}, KeyColumn{Dialect: dialect.SQLite, Table: "items", Column: "id"}
	r := &Record{}
	r.Release("none")
	r.Add(orders, 1)
	r.Savepoint("a")
	r.Add(orders, 2)
	r.Savepoint("b")
	r.Savepoint("a")
	r.Add(orders, 3)
	r.Add(items, 4)
	for _, c := range []struct {
		name  string
		known bool
		want  []Proof
	}{
		{"a", true, []Proof{{orders, 2}}}, // the later of this name
		{"a", true, []Proof{{orders, 2}}},
		{"b", true, []Proof{{orders, 2}}},
		{"a", true, []Proof{{orders, 1}}},
		{"b", false, []Proof{{orders, 1}}},
	} {
		if known := r.RollbackTo(c.name); known != c.known || !reflect.DeepEqual(r.Proofs(), c.want) {
			t.Errorf("RollbackTo(%s) = %v, and Proofs() = %v; want %v and %v", c.name, known, r.Proofs(), c.known, c.want)
		}
		if known := r.RollbackTo("c"); known {
			t.Error("RollbackTo(a name of none) = true; want false")
		}
	}
	r.Add(orders, 5)
	r.Release("a")
	if known := r.RollbackTo("a"); known || !reflect.DeepEqual(r.Proofs(), []Proof{{orders, 5}}) {
		t.Errorf("RollbackTo(released) = %v, and Proofs() = %v; want false and 5", known, r.Proofs())
	}
}

// Rows that may be gone are looked for in their transaction, and on PostgreSQL they are not.
func TestRecheckKeepsWhatIsThere(t *testing.T) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	exec(t, db, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
	exec(t, db, "CREATE TABLE texts (id TEXT PRIMARY KEY)")
	exec(t, db, "INSERT INTO orders VALUES (1), (3)")
	exec(t, db, "INSERT INTO texts VALUES ('5')")
	orders, texts := KeyColumn{Dialect: dialect.SQLite, Table: "orders", Column: "id"}, KeyColumn{Dialect: dialect.SQLite, Table: "texts", Column: "id", Text: true}
	missing, elsewhere := KeyColumn{Dialect: dialect.SQLite, Table: "missing", Column: "id"}, KeyColumn{Dialect: dialect.PostgreSQL, Table: "orders", Column: "id"}
	for name, c := range map[string]struct {
		note func(r *Record)
		want []Proof
	}{
		"nothing suspected":     {func(r *Record) { r.Add(orders, 2) }, []Proof{{orders, 2}}},
		"there":                 {func(r *Record) { r.Add(orders, 2); r.Add(orders, 3); r.Suspect() }, []Proof{{orders, 3}}},
		"a text":                {func(r *Record) { r.Add(texts, 5); r.Suspect() }, []Proof{{texts, 5}}},
		"the last is gone":      {func(r *Record) { r.Add(orders, 1); r.Add(orders, 2); r.Suspect() }, []Proof{{orders, 1}}},
		"gone":                  {func(r *Record) { r.Add(orders, 2); r.Suspect() }, nil},
		"gone, another follows": {func(r *Record) { r.Add(orders, 2); r.Suspect(); r.Add(orders, 4) }, []Proof{{orders, 4}}},
		"no such table":         {func(r *Record) { r.Add(missing, 2); r.Suspect() }, nil},
		"upserted":              {func(r *Record) { r.Add(orders, 0); r.Suspect() }, nil},
		"PostgreSQL":            {func(r *Record) { r.Add(elsewhere, 1); r.Suspect() }, nil},
		"rolled back to before it": {func(r *Record) {
			r.Add(orders, 2)
			r.Savepoint("a")
			r.Suspect()
			r.RollbackTo("a")
		}, []Proof{{orders, 2}}},
	} {
		r := &Record{}
		c.note(r)
		before := r.Proofs()
		r.Savepoint("before")
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Recheck(t.Context(), CancelsAll, tx); err != nil || !reflect.DeepEqual(r.Proofs(), c.want) {
			t.Errorf("Recheck(%s) = %v, and Proofs() = %v; want nil and %v", name, err, r.Proofs(), c.want)
		}
		if err := hiddenSQLite(t.Context(), tx, []Proof{{missing, 2}}); !errors.Is(err, ErrHidden) {
			t.Errorf("hiddenSQLite(no such table) = %v; want ErrHidden", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := hiddenSQLite(t.Context(), tx, []Proof{{orders, 1}}); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("hiddenSQLite(transaction that is over) = %v; want ErrTxDone", err)
		}
		if r.RollbackTo("before"); !reflect.DeepEqual(r.Proofs(), before) {
			t.Errorf("Recheck(%s) has left the savepoint with %v; want %v", name, r.Proofs(), before)
		}
		r.Add(orders, 2)
		r.Suspect()
		if err := r.Recheck(t.Context(), CancelsAll, tx); !errors.Is(err, sql.ErrTxDone) {
			t.Errorf("Recheck(transaction that is over) = %v; want ErrTxDone", err)
		}
	}
}

// A role that may not read the rows has no proof of them, and goes on.
func TestRecheckOfRowsThatMayNotBeReadHasNoProof(t *testing.T) {
	orders := KeyColumn{Dialect: dialect.MySQL, Table: "orders", Column: "id"}
	for number, want := range map[uint16]bool{1142: true, 1054: true, 1205: false} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		mock.ExpectBegin()
		for range 2 { // the last and the first
			mock.ExpectQuery("SELECT 1 FROM `orders`").WillReturnError(drivererrors.MySQL(number))
		}
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		r := &Record{}
		r.Add(orders, 1)
		r.Suspect()
		if err := r.Recheck(t.Context(), CancelsAll, tx); (err == nil) != want || want && r.Proofs() != nil {
			t.Errorf("Recheck(error %d) = %v, with the proofs %v; want no error: %v", number, err, r.Proofs(), want)
		}
		_ = db.Close()
	}
}
