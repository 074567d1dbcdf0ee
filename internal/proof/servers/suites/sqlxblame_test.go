package servers

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

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

// blames inserts rows and fails the test if the error names another row than bad, the one at
// fault. A negative bad means that no row is at fault.
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
		} else if e.Row == -1 {
			t.Logf("%s: %d rows: none is named", what, len(rows))
		}
	}
}

// newAccused returns rows with the numbers 0, 1, … and the codes 100, 101, ….
func newAccused(n int) []accused {
	rows := make([]accused, n)
	for i := range rows {
		rows[i] = accused{Code: fmt.Sprint(100 + i), N: i}
	}
	return rows
}

func TestErrorOfATriggerNamesNoInnocentRowOnPostgres(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		d := sqlxPostgres(t, driver)
		for _, text := range []string{
			"CREATE TABLE accused (id bigint PRIMARY KEY, code int UNIQUE, n int)",
			// The audit has the columns of the table, with values of other rows in
			// them.
			"CREATE TABLE log (id bigint PRIMARY KEY, code int UNIQUE CHECK (code <> 3000), n int)",
			"INSERT INTO log VALUES (1, 101, 0)",
			`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF NEW.n = 4 THEN INSERT INTO log VALUES (-NEW.id, 101, 0); END IF;
				IF NEW.n = 1000 THEN INSERT INTO log VALUES (2, 3000, 0); END IF;
				IF NEW.n = 2000 THEN RAISE EXCEPTION 'failed to encode args[3], at row 3'; END IF;
				RETURN NEW; END $$`,
			"CREATE TRIGGER note BEFORE INSERT ON accused FOR EACH ROW EXECUTE FUNCTION note()",
		} {
			execSqlx(t, d.DB, text)
		}
		helpers := []*sqlxhelper.Helper{sqlxhelper.New(sqlxcases.NewCounter(0))}
		if driver == "pgx" {
			helpers = append(helpers, helpers[0].With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 11)))
		}
		for _, h := range helpers {
			for _, n := range []int{6, 40} {
				blames(t, d, h, "a key of the audit", newAccused(n), 4)
				rows := newAccused(n)
				rows[4].N, rows[5].N = 5, 1000
				blames(t, d, h, "a check of the audit", rows, 5)
				rows = newAccused(n)
				rows[4].N, rows[5].N = 5, 2000
				blames(t, d, h, "a text of the trigger", rows, 5)
				rows = newAccused(n)
				rows[4].N, rows[1].Code, rows[5].Code = 5, "7", "007"
				blames(t, d, h, "7 and 007", rows, 5)
			}
		}
	}
}

func TestErrorOfATriggerNamesNoInnocentRowOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, blamesOnMySQL)
}

func blamesOnMySQL(t *testing.T, dsn string) {
	t.Helper()
	d := sqlxMySQL(t, dsn, func(*mysql.Config) {})
	for _, text := range []string{
		"CREATE TABLE accused (id BIGINT PRIMARY KEY, code INT UNIQUE, n INT)",
		"CREATE TABLE log (id BIGINT PRIMARY KEY AUTO_INCREMENT, code INT UNIQUE, note VARCHAR(3))",
		"INSERT INTO log (code) VALUES (101)",
		`CREATE TRIGGER note BEFORE INSERT ON accused FOR EACH ROW BEGIN
			IF NEW.n = 4 THEN INSERT INTO log (code) VALUES (101); END IF;
			IF NEW.n = 1000 THEN INSERT INTO log (note) VALUES ('abc'), ('abcd'); END IF;
			IF NEW.n = 2000 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'see the text at row 3'; END IF; END`,
	} {
		execSqlx(t, d.DB, text)
	}
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	for _, n := range []int{6, 40} {
		blames(t, d, h, "a key of the audit", newAccused(n), 4)
		for number, what := range map[int]string{1000: "a row of the audit", 2000: "a text of the trigger"} {
			rows := newAccused(n)
			rows[4].N, rows[5].N = 5, number
			blames(t, d, h, what, rows, 5)
		}
		rows := newAccused(n)
		rows[4].N, rows[1].Code, rows[5].Code = 5, "7", "007"
		blames(t, d, h, "7 and 007", rows, 5)
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

// What ends a statement from outside is no row's fault. PostgreSQL names the line of the
// COPY, or the parameter, that it was at then.
func TestStatementThatIsEndedFromOutsideNamesNoRowOnPostgres(t *testing.T) {
	const sleeping = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND application_name = $1"
	ends := map[string]func(t *testing.T, d sqlxcases.Database, name string){
		"statement_timeout":    func(*testing.T, sqlxcases.Database, string) {},
		"pg_cancel_backend":    endBackend("SELECT pg_cancel_backend(pid) FROM (" + sleeping + ") s"),
		"pg_terminate_backend": endBackend("SELECT pg_terminate_backend(pid) FROM (" + sleeping + ") s"),
	}
	for _, driver := range []string{"pgx", "postgres"} {
		for what, end := range ends {
			t.Run(driver+"/"+what, func(t *testing.T) {
				t.Parallel()
				name := "blame_" + rand.Text()
				d := sqlxPostgres(t, driver, "application_name", name)
				admin := openSqlx(t, "pgx", servertest.PostgreSQL(t))
				for _, text := range []string{
					// A CHECK of the table is under way at a line of the COPY, one of a
					// domain at a parameter.
					"CREATE DOMAIN slow AS text CHECK (VALUE <> '104' OR pg_sleep(60)::text = '')",
					"CREATE TABLE accused (id bigint PRIMARY KEY, code text, n int CHECK (n <> 4 OR pg_sleep(60)::text = ''))",
					"CREATE TABLE accused_slowly (id bigint PRIMARY KEY, code slow, n int)",
				} {
					execSqlx(t, d.DB, text)
				}
				h := sqlxhelper.New(sqlxcases.NewCounter(0))
				helpers := map[string]*sqlxhelper.Helper{"": h}
				if driver == "pgx" {
					helpers[" by COPY"] = h.With(sqlxhelper.WithCopy(pgxcopy.Copier{}, 11))
				}
				for by, h := range helpers {
					for _, table := range []string{"accused", "accused_slowly"} {
						for _, rows := range [][]accused{newAccused(5)[4:], newAccused(6), newAccused(40)} {
							if by != "" && len(rows) < 11 {
								continue
							}
							done := make(chan struct{})
							go func() {
								defer close(done)
								end(t, sqlxcases.Database{DB: admin}, name)
							}()
							// On a pool database/sql would send the rows again by lib/pq.
							tx := d.DB.MustBegin()
							if what == "statement_timeout" {
								tx.MustExec("SET LOCAL statement_timeout = '1s'")
							}
							var e *sqlxhelper.InsertError
							err := h.InsertMany(t.Context(), tx, table, rows)
							<-done
							_ = tx.Rollback()
							if !errors.As(err, &e) || e.Row != -1 || e.Path != "" || e.Field != "" || e.Key != 0 {
								t.Errorf("%s: InsertMany(%d rows into %s%s) = %v; want no row", what, len(rows), table, by, err)
							} else {
								t.Log(err)
							}
						}
					}
				}
			})
		}
	}
}

// endBackend returns a function that runs query until it has met a session that sleeps.
func endBackend(query string) func(*testing.T, sqlxcases.Database, string) {
	return func(t *testing.T, d sqlxcases.Database, name string) {
		t.Helper()
		for t.Context().Err() == nil {
			var met []bool
			if err := d.DB.SelectContext(t.Context(), &met, query, name); err != nil {
				t.Errorf("%s: %v", query, err)
				return
			}
			if len(met) > 0 {
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func TestStatementThatIsEndedFromOutsideNamesNoRowOnMariaDBAndMySQL(t *testing.T) {
	onMariaDBAndMySQL(t, endedOnMySQL)
}

func endedOnMySQL(t *testing.T, dsn string) {
	t.Helper()
	admin := openSqlx(t, "mysql", dsn)
	// A session whose client has been told of its end is in the list for a moment longer, with
	// its state. One hit is not enough: it ends what sleeps until the statement is over.
	kill := func(what string) func(*testing.T, sqlxcases.Database, <-chan struct{}) {
		return func(t *testing.T, d sqlxcases.Database, over <-chan struct{}) {
			t.Helper()
			for {
				select {
				case <-over:
					return
				case <-time.After(5 * time.Millisecond):
				}
				var ids []int64
				const sleeping = "SELECT p.id FROM information_schema.processlist p JOIN (SELECT DATABASE() AS db) d ON p.db = d.db WHERE p.state = 'User sleep'"
				if err := d.DB.Select(&ids, sleeping); err != nil {
					t.Error(err)
					return
				}
				for _, id := range ids {
					// It may have gone since.
					var gone *mysql.MySQLError
					if _, err := admin.Exec(fmt.Sprint("KILL ", what, " ", id)); err != nil && !(errors.As(err, &gone) && gone.Number == 1094) {
						t.Error(err)
						return
					}
				}
			}
		}
	}
	ends := map[string]func(*testing.T, sqlxcases.Database, <-chan struct{}){"KILL QUERY": kill("QUERY"), "KILL CONNECTION": kill("CONNECTION")}
	if _, err := admin.Exec("SET @@max_statement_time = 1"); err == nil { // MariaDB
		ends["max_statement_time"] = func(*testing.T, sqlxcases.Database, <-chan struct{}) {}
	}
	for what, end := range ends {
		d := sqlxMySQL(t, dsn, func(*mysql.Config) {})
		execSqlx(t, d.DB, "CREATE TABLE accused (id BIGINT PRIMARY KEY, code INT UNIQUE, n INT)")
		execSqlx(t, d.DB, "CREATE TRIGGER slow BEFORE INSERT ON accused FOR EACH ROW BEGIN IF NEW.n = 4 THEN DO SLEEP(60); END IF; END")
		for _, rows := range [][]accused{newAccused(5)[4:], newAccused(6), newAccused(40)} {
			tx := d.DB.MustBegin()
			if what == "max_statement_time" {
				tx.MustExec("SET max_statement_time = 1") // and not before, for tables take longer on a busy machine
			}
			over, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				end(t, d, over)
			}()
			var e *sqlxhelper.InsertError
			err := sqlxhelper.New(sqlxcases.NewCounter(0)).InsertMany(t.Context(), tx, "accused", rows)
			close(over)
			<-done
			_ = tx.Rollback()
			if !errors.As(err, &e) || e.Row != -1 || e.Path != "" || e.Field != "" || e.Key != 0 {
				t.Errorf("%s: InsertMany(%d rows) = %v; want no row", what, len(rows), err)
			} else {
				t.Log(err)
			}
		}
	}
}
