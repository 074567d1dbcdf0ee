package servers

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/sqlxhelper/pgxcopy"
	"github.com/snowkey/snowkey/types"
)

// An accused is a row that an error must not name unless it is to blame.
type accused struct {
	types.Model
	Code string `db:"code"`
	N    int    `db:"n"`
}

// newAccused returns rows with the numbers 0, 1, … and the codes 100, 101, ….
func newAccused(n int) []accused {
	rows := make([]accused, n)
	for i := range rows {
		rows[i] = accused{Code: fmt.Sprint(100 + i), N: i}
	}
	return rows
}

// blames inserts rows of which bad is at fault, and fails the test if the error names another one.
func blames(t *testing.T, d sqlxcases.Database, h *sqlxhelper.Helper, what string, rows []accused, bad int) {
	t.Helper()
	for _, inTx := range []bool{false, true} {
		db := sqlxhelper.DB(d.DB)
		if inTx {
			tx := d.DB.MustBegin()
			defer func() { _ = tx.Rollback() }()
			db = tx
		}
		var e *sqlxhelper.InsertError
		if err := h.InsertMany(t.Context(), db, "accused", rows); !errors.As(err, &e) || e.Row != bad && e.Row != -1 {
			t.Errorf("%s: InsertMany(%d rows, in a transaction: %v) = %v; want row %d or none", what, len(rows), inTx, err, bad)
		}
	}
}

// A trigger fails for the row with the number 4 by a key of its audit, for 1000 by another rule of that, and for 2000 by a text
// as that of a driver. The audit has the columns of the table, with values of other rows in them.
func TestErrorOfATriggerNamesNoInnocentRow(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		for _, driver := range []string{"pgx", "pq"} {
			helpers := []*sqlxhelper.Helper{sqlxhelper.New(sqlxcases.NewCounter(0))}
			if driver == "pgx" {
				helpers = append(helpers, helpers[0].With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 11)))
			}
			blamesNoInnocentRow(t, sqlxOn(t, driver), helpers,
				"CREATE TABLE log (id bigint PRIMARY KEY, code int UNIQUE CHECK (code <> 3000), n int)",
				"INSERT INTO log VALUES (1, 101, 0)",
				`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
					IF NEW.n = 4 THEN INSERT INTO log VALUES (-NEW.id, 101, 0); END IF;
					IF NEW.n = 1000 THEN INSERT INTO log VALUES (2, 3000, 0); END IF;
					IF NEW.n = 2000 THEN RAISE EXCEPTION 'failed to encode args[3], at row 3'; END IF;
					RETURN NEW; END $$`,
				"CREATE TRIGGER note BEFORE INSERT ON accused FOR EACH ROW EXECUTE FUNCTION note()")
		}
	})
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		blamesNoInnocentRow(t, w.place(t).sqlx(t), []*sqlxhelper.Helper{sqlxhelper.New(sqlxcases.NewCounter(0))},
			"CREATE TABLE log (id BIGINT PRIMARY KEY AUTO_INCREMENT, code INT UNIQUE, note VARCHAR(3))",
			"INSERT INTO log (code) VALUES (101)",
			`CREATE TRIGGER note BEFORE INSERT ON accused FOR EACH ROW BEGIN
				IF NEW.n = 4 THEN INSERT INTO log (code) VALUES (101); END IF;
				IF NEW.n = 1000 THEN INSERT INTO log (note) VALUES ('abc'), ('abcd'); END IF;
				IF NEW.n = 2000 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'see the text at row 3'; END IF; END`)
	})
}

func blamesNoInnocentRow(t *testing.T, d sqlxcases.Database, helpers []*sqlxhelper.Helper, trigger ...string) {
	t.Helper()
	execSqlx(t, d.DB, "CREATE TABLE accused (id BIGINT PRIMARY KEY, code INT UNIQUE, n INT)")
	for _, text := range trigger {
		execSqlx(t, d.DB, text)
	}
	for _, h := range helpers {
		for _, n := range []int{6, 40} {
			blames(t, d, h, "a key of the audit", newAccused(n), 4)
			for what, spoil := range map[string]func(first, last *accused){
				"another rule of the audit": func(_, last *accused) { last.N = 1000 },
				"a text of the trigger":     func(_, last *accused) { last.N = 2000 },
				"7 and 007":                 func(first, last *accused) { first.Code, last.Code = "7", "007" },
			} {
				rows := newAccused(n)
				rows[4].N = 5
				spoil(&rows[1], &rows[5])
				blames(t, d, h, what, rows, 5)
			}
		}
	}
}

// SQLite says of all foreign keys the same, when the statement ends.
func TestRowThatRefersToALaterOneIsInnocentOnSQLite(t *testing.T) {
	d := sqlxcases.Database{DB: openSqlx(t, "sqlite3", "file:"+t.TempDir()+"/test.db?_foreign_keys=on"), Dialect: sqlxhelper.SQLite}
	execSqlx(t, d.DB, "CREATE TABLE accused (id INTEGER PRIMARY KEY, code TEXT UNIQUE, n INT REFERENCES accused (code))")
	for _, n := range []int{6, 40} {
		rows := newAccused(n)
		for i := range rows {
			rows[i].N = 100 + i
		}
		rows[1].N, rows[4].N = 102, 7 // a later row, and none
		blames(t, d, sqlxhelper.New(sqlxcases.NewCounter(0)), "a row refers to a later one", rows, 4)
	}
}

// An ending ends a statement that sleeps. What it is called by is no row's fault. PostgreSQL names the line of the COPY, or the
// parameter, that it was at then.
type ending struct {
	name string
	set  string       // of the transaction, or
	end  func() error // ends what sleeps, until the statement is over
}

// of ends an insert of rows, and fails the test if its error names one of them.
func (e ending) of(t *testing.T, db *sqlx.DB, h *sqlxhelper.Helper, table string, rows []accused) {
	t.Helper()
	tx := db.MustBegin() // on a pool database/sql would send the rows again by lib/pq
	defer func() { _ = tx.Rollback() }()
	if e.set != "" {
		tx.MustExec(e.set) // and not before, for tables take longer on a busy machine
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for e.end != nil {
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
				if err := e.end(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	err := h.InsertMany(t.Context(), tx, table, rows)
	close(over)
	<-done
	var in *sqlxhelper.InsertError
	if !errors.As(err, &in) || in.Row != -1 || in.Path != "" || in.Field != "" || in.Key != 0 {
		t.Errorf("%s: InsertMany(%d rows into %s) = %v; want no row", e.name, len(rows), table, err)
	}
}

// accusedRows are few, and as many as go by VALUES and by other ways, with a row that sleeps.
func accusedRows() [][]accused { return [][]accused{newAccused(5)[4:], newAccused(6), newAccused(40)} }

func TestStatementThatIsEndedFromOutsideNamesNoRow(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		for _, driver := range []string{"pgx", "pq"} {
			name := "blame_" + rand.Text()
			d, admin := sqlxOn(t, driver, "application_name", name), openSqlx(t, "pgx", servertest.PostgreSQL(t))
			end := func(function string) func() error {
				return func() error {
					_, err := admin.Exec("SELECT "+function+"(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = $1", name)
					return err
				}
			}
			for _, text := range []string{
				// A CHECK of the table is under way at a line of the COPY, one of a domain at a parameter.
				"CREATE DOMAIN slow AS text CHECK (VALUE <> '104' OR pg_sleep(60)::text = '')",
				"CREATE TABLE accused (id bigint PRIMARY KEY, code text, n int CHECK (n <> 4 OR pg_sleep(60)::text = ''))",
				"CREATE TABLE accused_slowly (id bigint PRIMARY KEY, code slow, n int)",
			} {
				execSqlx(t, d.DB, text)
			}
			h := sqlxhelper.New(sqlxcases.NewCounter(0))
			for _, e := range []ending{
				{"statement_timeout", "SET LOCAL statement_timeout = '1s'", nil},
				{"pg_cancel_backend", "", end("pg_cancel_backend")}, {"pg_terminate_backend", "", end("pg_terminate_backend")},
			} {
				for _, table := range []string{"accused", "accused_slowly"} {
					for _, rows := range accusedRows() {
						e.of(t, d.DB, h, table, rows)
					}
					if driver == "pgx" {
						e.of(t, d.DB, h.With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 11)), table, newAccused(40))
					}
				}
			}
		}
	})
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		d, admin := w.place(t).sqlx(t), openSqlx(t, "mysql", servers[w.server](t))
		execSqlx(t, d.DB, "CREATE TABLE accused (id BIGINT PRIMARY KEY, code INT UNIQUE, n INT)")
		execSqlx(t, d.DB, "CREATE TRIGGER slow BEFORE INSERT ON accused FOR EACH ROW BEGIN IF NEW.n = 4 THEN DO SLEEP(60); END IF; END")
		// A session whose client has been told of its end is in the list for a moment longer, with its state.
		kill := func(what string) func() error {
			return func() error {
				var ids []int64
				err := d.DB.Select(&ids, "SELECT p.id FROM information_schema.processlist p JOIN (SELECT DATABASE() AS db) d ON p.db = d.db WHERE p.state = 'User sleep'")
				for _, id := range ids {
					var gone *mysql.MySQLError
					if _, killed := admin.Exec(fmt.Sprint("KILL ", what, " ", id)); killed != nil && (!errors.As(killed, &gone) || gone.Number != 1094) {
						err = killed
					}
				}
				return err
			}
		}
		endings := []ending{{"KILL QUERY", "", kill("QUERY")}, {"KILL CONNECTION", "", kill("CONNECTION")}}
		if _, err := admin.Exec("SET @@max_statement_time = 1"); err == nil { // MariaDB
			endings = append(endings, ending{"max_statement_time", "SET max_statement_time = 1", nil})
		}
		for _, e := range endings {
			for _, rows := range accusedRows() {
				e.of(t, d.DB, sqlxhelper.New(sqlxcases.NewCounter(0)), "accused", rows)
			}
		}
	})
}
