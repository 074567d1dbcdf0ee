package outcome

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A server that is another one, or has crashed, does not know the ID, and the rows decide.
func TestRowsDecideWhereTheServerDoesNotKnowTheTransaction(t *testing.T) {
	const version = "PostgreSQL 15.8 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit"
	for name, c := range map[string]struct {
		state, hidden any
		want          End
		why           error
	}{
		"committed":                      {xactCommitted, nil, Committed, nil},
		"aborted":                        {xactAborted, nil, RolledBack, nil},
		"another server":                 {nil, "", RolledBack, nil},
		"another server, hidden":         {nil, "rows", InDoubt, ErrHidden},
		"another server, another schema": {nil, "names", InDoubt, ErrNames},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		look := func() {
			mock.ExpectBegin()
			mock.ExpectQuery("txid_status").WithArgs("1 0/70", 730).WillReturnRows(sqlmock.NewRows([]string{"version", "state"}).AddRow(version, c.state))
			switch c.state {
			case xactCommitted:
				mock.ExpectExec("pg_logical_emit_message").WillReturnResult(sqlmock.NewResult(0, 0))
				mock.ExpectCommit()
				return
			case nil:
				mock.ExpectQuery(`SELECT 1 FROM "orders"`).WillReturnRows(sqlmock.NewRows([]string{"1"}))
				mock.ExpectQuery("pg_locks").WillReturnRows(sqlmock.NewRows([]string{"version", "recovers", "open", "hidden"}).AddRow(version, false, "", c.hidden))
			}
			mock.ExpectRollback()
		}
		look()
		if c.hidden == "" {
			look() // after the end of all transactions
		}
		d := Pending{Database: &Database{Begin: begin(db), Cancels: CancelsAll}, Xact: Xact{730, "1 0/70"}, Proofs: []Proof{{KeyColumn{Dialect: dialect.PostgreSQL, Table: "orders", Column: "id"}, 7}}}
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
