package sqlxhelper

import (
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/types"
)

// A transaction is identified once, and a server without IDs is asked once.
func TestTransactionIsIdentifiedByItsFirstInsert(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		asks []bool // in each of two transactions
	}{
		"PostgreSQL":               {nil, []bool{true, true}},
		"a server without IDs":     {postgres("42883"), []bool{true, false}},
		"a user without the right": {postgres("42501"), []bool{true, false}},
	} {
		db, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		mock.MatchExpectationsInOrder(true)
		h := New(nil, WithDialect(PostgreSQL))
		for _, asks := range c.asks {
			mock.ExpectBegin()
			for i := range 2 {
				mock.ExpectExec("^SAVEPOINT").WillReturnResult(sqlmock.NewResult(0, 0))
				switch {
				case i > 0 || !asks:
				case c.err != nil:
					mock.ExpectQuery("txid_current").WillReturnError(c.err)
					mock.ExpectExec("^ROLLBACK TO").WillReturnResult(sqlmock.NewResult(0, 0))
				default:
					mock.ExpectQuery("txid_current").WillReturnRows(sqlmock.NewRows([]string{"id", "run"}).AddRow(730, "1 "))
				}
				mock.ExpectExec("^INSERT").WillReturnResult(sqlmock.NewResult(0, 1))
				mock.ExpectExec("^RELEASE").WillReturnResult(sqlmock.NewResult(0, 0))
			}
			mock.ExpectCommit()
			err := h.InTx(t.Context(), sqlx.NewDb(db, "sqlmock"), nil, func(tx *sqlx.Tx) error {
				return errors.Join(h.Insert(t.Context(), tx, "t", &types.Model{ID: 7}), h.Insert(t.Context(), tx, "t", &types.Model{ID: 8}))
			})
			if err != nil {
				t.Errorf("InTx() on %s = %v; want nil", name, err)
			}
		}
		mock.ExpectClose()
		if err := errors.Join(db.Close(), mock.ExpectationsWereMet()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that is another one, or has crashed, does not know the ID, and the rows decide.
func TestRowsDecideWhereTheServerDoesNotKnowTheTransaction(t *testing.T) {
	const version = "PostgreSQL 15.8 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit"
	for name, c := range map[string]struct {
		state, hidden any
		want          outcome
		why           error
	}{
		"committed":                      {xactCommitted, nil, committed, nil},
		"aborted":                        {xactAborted, nil, lost, nil},
		"another server":                 {nil, "", lost, nil},
		"another server, hidden":         {nil, "rows", inDoubt, errHidden},
		"another server, another schema": {nil, "names", inDoubt, errNames},
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
		d := doubt{db: sqlx.NewDb(db, "pgx"), honors: honorsAll, xact: xact{730, "1 0/70"}, proofs: []proof{{orders, 7}}}
		o, why := d.settle(t.Context())
		if o == rolledBack {
			o = lost
		}
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
	one, _ := openTwice(t, "")
	one.SetMaxOpenConns(1)
	exec(t, one, "CREATE VIEW shown AS SELECT id FROM rows WHERE id > 9")
	exec(t, one, "CREATE TRIGGER fill INSTEAD OF INSERT ON shown BEGIN INSERT INTO rows VALUES (NEW.id); END")
	exec(t, one, "ATTACH ':memory:' AS other")
	exec(t, one, "CREATE TABLE other.rows (id INTEGER PRIMARY KEY)")
	exec(t, one, "CREATE TABLE other.alone (id INTEGER PRIMARY KEY)")
	exec(t, one, "CREATE TEMP TABLE brief (id INTEGER PRIMARY KEY)")
	for table, want := range map[string]error{"rows": nil, "main.rows": nil, "ROWS": nil, "shown": errHidden, "other.rows": errHidden, "alone": errHidden, "brief": errHidden} {
		d := doubt{db: one, honors: honorsAll, proofs: []proof{{place{SQLite, table, "id"}, 7}}}
		o, why := d.settle(t.Context())
		if (o == rolledBack) != (want == nil) || !errors.Is(why, want) {
			t.Errorf("settle(%s) = %v, %v; want %v", table, o, why, want)
		}
	}
}
