package outcome

import (
	"database/sql"
	"errors"
	"io"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// postgres is what version() says.
const postgres = "PostgreSQL 15.8 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit"

// A server that is another one, or has crashed, does not know the ID, and the rows decide.
func TestRowsDecideWhereTheServerDoesNotKnowTheTransaction(t *testing.T) {
	row := []Proof{{KeyColumn{Dialect: dialect.PostgreSQL, Table: "orders", Column: "id"}, 7}}
	for name, c := range map[string]struct {
		version       string
		state, hidden any
		proofs        []Proof
		want          End
		why           error
	}{
		"committed":                      {postgres, xactCommitted, nil, row, Committed, nil},
		"committed, without a row":       {postgres, xactCommitted, nil, nil, Committed, nil},
		"aborted":                        {postgres, xactAborted, nil, row, RolledBack, nil},
		"another server":                 {postgres, nil, "", row, RolledBack, nil},
		"another server, hidden":         {postgres, nil, "rows", row, InDoubt, ErrHidden},
		"another server, another schema": {postgres, nil, "names", row, InDoubt, ErrNames},
		"another server, without a row":  {postgres, nil, nil, nil, InDoubt, errElsewhere},
		"an ID of CockroachDB":           {"CockroachDB CCL v24.1.0", xactCommitted, nil, nil, InDoubt, errElsewhere},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		look := func() {
			mock.ExpectBegin()
			mock.ExpectQuery("txid_status").WithArgs("1 0/70", 730).WillReturnRows(sqlmock.NewRows([]string{"version", "state"}).AddRow(c.version, c.state))
			switch {
			case c.want == Committed:
				mock.ExpectExec("pg_logical_emit_message").WillReturnResult(sqlmock.NewResult(0, 0))
				mock.ExpectCommit()
				return
			case c.state == nil && c.proofs != nil:
				mock.ExpectQuery(`SELECT 1 FROM "orders"`).WithArgs(7).WillReturnRows(sqlmock.NewRows([]string{"1"}))
				mock.ExpectQuery(`to_regclass.\$1. AS OID., true.*pg_locks`).WithArgs(`"orders"`).WillReturnRows(sqlmock.NewRows([]string{"version", "recovers", "open", "hidden"}).AddRow(postgres, false, "", c.hidden))
			}
			mock.ExpectRollback()
		}
		look()
		if c.hidden == "" {
			look() // after the end of all transactions
		}
		d := Pending{Database: &Database{Begin: begin(db), Cancels: CancelsAll}, Xact: Xact{730, "1 0/70"}, Proofs: c.proofs}
		o, why := d.Settle(t.Context())
		if o != c.want || !errors.Is(why, c.why) {
			t.Errorf("settle(%s) = %v, %v; want %v, %v", name, o, why, c.want, c.why)
		}
		mock.ExpectClose()
		if err := errors.Join(db.Close(), mock.ExpectationsWereMet()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnAnswerThatDoesNotEndIsNoState(t *testing.T) {
	db, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	mock.ExpectBegin()
	mock.ExpectQuery("txid_status").WillReturnRows(sqlmock.NewRows([]string{"version", "state"}).AddRow(postgres, xactAborted).CloseError(io.ErrUnexpectedEOF))
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if state, err := (Xact{730, "1 0/70"}).state(t.Context(), tx); state != "" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("state() = %q, %v; want none, and %v", state, err, io.ErrUnexpectedEOF)
	}
}

func TestTransactionIsIdentifiedByItsServerOrNotAtAll(t *testing.T) {
	for name, c := range map[string]struct {
		id   any
		err  error
		want Xact
	}{
		"primary": {730, nil, Xact{730, "1 0/70"}}, "standby": {nil, nil, Xact{}}, "lost": {730, io.ErrUnexpectedEOF, Xact{}},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		rows := sqlmock.NewRows([]string{"id", "run"}).AddRow(c.id, "1 0/70")
		if c.err != nil {
			rows.AddRow(0, "").RowError(1, c.err)
		}
		mock.ExpectQuery("txid_current").WillReturnRows(rows)
		if x, err := Identify(t.Context(), db); x != c.want || !errors.Is(err, c.err) {
			t.Errorf("Identify(%s) = %+v, %v; want %+v, %v", name, x, err, c.want, c.err)
		}
		_ = db.Close()
	}
}

// On SQLite a view shows other rows, and a file is attached to some connections only.
func TestMissingRowProvesNothingWhereSQLiteMayHideIt(t *testing.T) {
	one, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	one.SetMaxOpenConns(1)
	exec(t, one, "CREATE TABLE rows (id INTEGER PRIMARY KEY)")
	exec(t, one, "CREATE VIEW shown AS SELECT id FROM rows WHERE id > 9")
	exec(t, one, "CREATE TRIGGER fill INSTEAD OF INSERT ON shown BEGIN INSERT INTO rows VALUES (NEW.id); END")
	exec(t, one, "ATTACH ':memory:' AS other")
	exec(t, one, "CREATE TABLE other.rows (id INTEGER PRIMARY KEY)")
	exec(t, one, "CREATE TABLE other.alone (id INTEGER PRIMARY KEY)")
	exec(t, one, "CREATE TEMP TABLE brief (id INTEGER PRIMARY KEY)")
	for table, want := range map[string]error{"rows": nil, "main.rows": nil, "ROWS": nil, "shown": ErrHidden, "other.rows": ErrHidden, "alone": ErrHidden, "brief": ErrHidden} {
		d := Pending{Database: &Database{Begin: begin(one), Cancels: CancelsAll}, Proofs: []Proof{{KeyColumn{Dialect: dialect.SQLite, Table: table, Column: "id"}, 7}}}
		o, why := d.Settle(t.Context())
		if (o == RolledBack) != (want == nil) || !errors.Is(why, want) {
			t.Errorf("settle(%s) = %v, %v; want %v", table, o, why, want)
		}
	}
}

func exec(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("Exec(%q) = %v", text, err)
	}
}
