package servers

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// A hiding is a way in which a row that is stored is not seen from another connection.
type hiding struct {
	// role says that the program is a user to whom row level security applies.
	role bool
	// tables makes the tables, where %s is the schema or database beside that of the test.
	tables []string
	// first is what the function sends first.
	first string
	// counts the rows.
	count string
}

var hidings = map[string]hiding{
	"row level security by a setting": {
		role: true,
		tables: []string{
			"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT, tenant TEXT DEFAULT current_setting('app.tenant'))",
			"ALTER TABLE suppressed ENABLE ROW LEVEL SECURITY",
			"CREATE POLICY own ON suppressed USING (tenant = current_setting('app.tenant', true))",
		},
		first: "SELECT set_config('app.tenant', 'acme', true)",
		count: "SELECT COUNT(*) FROM suppressed",
	},
	"a policy for inserts alone": {
		role: true,
		tables: []string{
			"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
			"ALTER TABLE suppressed ENABLE ROW LEVEL SECURITY",
			"CREATE POLICY writes ON suppressed FOR INSERT WITH CHECK (true)",
		},
		count: "SELECT COUNT(*) FROM suppressed",
	},
	"a table of that name in another schema": {
		tables: []string{
			"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
			"CREATE TABLE %s.suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
		},
		first: "SET LOCAL search_path TO %s",
		count: "SELECT (SELECT COUNT(*) FROM suppressed) + (SELECT COUNT(*) FROM %s.suppressed)",
	},
	"a view that shows other rows": {
		tables: []string{
			"CREATE TABLE behind (id BIGINT PRIMARY KEY, n BIGINT)",
			"CREATE VIEW suppressed AS SELECT id, n FROM behind WHERE n > 0",
		},
		count: "SELECT COUNT(*) FROM behind",
	},
	"a user without SELECT": {
		role: true,
		tables: []string{
			"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
			"REVOKE SELECT ON suppressed FROM PUBLIC",
		},
		count: "SELECT COUNT(*) FROM suppressed",
	},
}

// in makes the tables of h beside a proxy that loses a commit or another statement. It
// returns the way through that, and how many rows are stored.
func (h hiding) in(t *testing.T, driver string, l *losing) (through *sqlx.DB, text func(string) string, rows func() int) {
	t.Helper()
	beside := "beside_" + strings.ToLower(rand.Text())
	text = func(s string) string { return strings.ReplaceAll(s, "%s", beside) }
	var parameters []string
	admin := openSqlx(t, "pgx", servertest.PostgreSQL(t))
	if h.role {
		role := "role_" + strings.ToLower(rand.Text())
		execSqlx(t, admin, "CREATE ROLE "+role)
		t.Cleanup(func() { execSqlx(t, admin, "DROP OWNED BY "+role); execSqlx(t, admin, "DROP ROLE "+role) })
		parameters = append(parameters, "role", role)
	}
	execSqlx(t, admin, "CREATE SCHEMA "+beside)
	t.Cleanup(func() { execSqlx(t, admin, "DROP SCHEMA "+beside+" CASCADE") })
	db, around := postgresBehind(driver, parameters...)(t, l)
	for _, table := range h.tables {
		execSqlx(t, around.DB, text(table))
	}
	if h.role {
		var schema string
		if err := around.DB.Get(&schema, "SELECT current_schema()"); err != nil {
			t.Fatal(err)
		}
		execSqlx(t, around.DB, `GRANT USAGE ON SCHEMA "`+schema+`" TO `+parameters[1])
		rights := "INSERT"
		if !strings.Contains(strings.Join(h.tables, " "), "REVOKE SELECT") {
			rights = "SELECT, INSERT"
		}
		execSqlx(t, around.DB, "GRANT "+rights+" ON suppressed TO "+parameters[1])
	}
	return db.DB, text, func() (n int) {
		t.Helper()
		if err := around.DB.Get(&n, text(h.count)); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// A transaction whose commit is not answered is found out by its ID.
func TestLostCommitOfRowsThatAreHiddenIsFoundOut(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		for name, h := range hidings {
			for what, want := range map[loss]int{answerLost: 1, commitLost: 2} {
				onTxPlugins(t, func(t *testing.T, p txPlugin) {
					t.Run(fmt.Sprintf("%s/%s/%d runs", driver, name, want), func(t *testing.T) {
						t.Parallel()
						through, text, rows := h.in(t, driver, &losing{what: what})
						runs := 0
						err := p.on(t, through, 0)(t.Context(), func(tx pluginTx) error {
							runs++
							if err := tx.exec(t.Context(), text(h.first)); err != nil {
								return err
							}
							return tx.insert(t.Context(), make([]suppressed, 1))
						})
						if n := rows(); err != nil || n != 1 || runs != want {
							t.Errorf("InTx() = %v after %d runs with %d rows; want nil after %d with 1", err, runs, n, want)
						}
					})
				})
			}
		}
	}
}

// A statement on a pool has no ID. It is not sent again where a second row could be stored, and
// a row that it has stored itself is no duplicate.
func TestLostStatementOfRowsThatAreHiddenIsUnknown(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		for name, h := range hidings {
			t.Run(driver+"/"+name, func(t *testing.T) {
				t.Parallel()
				h := h
				if strings.Contains(h.first, "search_path") {
					h.first = "" // the names are enough
				}
				for i, table := range h.tables {
					h.tables = slices.Clone(h.tables)
					h.tables[i] = strings.ReplaceAll(table, "current_setting('app.tenant')", "'acme'")
				}
				if h.first != "" {
					h.tables = append(h.tables, "CREATE POLICY writes ON suppressed FOR INSERT WITH CHECK (true)")
				}
				through, _, rows := h.in(t, driver, &losing{what: answerLost, at: "insert into"})
				err := sqlxhelper.New(sqlxcases.NewCounter(0)).Insert(t.Context(), through, "suppressed", &suppressed{})
				seen := strings.Contains(name, "of that name") && err == nil // the table that is looked into has the row
				if n := rows(); n != 1 || !seen && !errors.Is(err, sqlxhelper.ErrCommitUnknown) {
					t.Errorf("Insert() = %v with %d rows; want ErrCommitUnknown with 1", err, n)
				}
			})
		}
	}
}

// A search_path that one connection of a pool keeps leads a statement to another table.
func TestLostStatementIsNotStoredInTwoTables(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		h := hidings["a table of that name in another schema"]
		through, text, rows := h.in(t, "pgx", &losing{what: answerLost, at: "insert into"})
		notInTwo(t, through, text("SET search_path TO %s"), rows)
	})
	onMariaDBAndMySQL(t, func(t *testing.T, dsn string) {
		through, text, rows := besideMySQL(t, dsn, &losing{what: answerLost, at: "insert into"})
		notInTwo(t, through, text("USE %s"), rows)
	})
}

func notInTwo(t *testing.T, through *sqlx.DB, change string, rows func() int) {
	t.Helper()
	through.SetMaxOpenConns(1) // until the connection breaks
	execSqlx(t, through, change)
	err := sqlxhelper.New(sqlxcases.NewCounter(0)).Insert(t.Context(), through, "suppressed", &suppressed{})
	if n := rows(); n != 1 || err != nil && !errors.Is(err, sqlxhelper.ErrCommitUnknown) {
		t.Errorf("Insert() = %v with %d rows; want nil or ErrCommitUnknown with 1", err, n)
	}
}

// besideMySQL makes a table in two databases.
func besideMySQL(t *testing.T, dsn string, l *losing) (through *sqlx.DB, text func(string) string, rows func() int) {
	t.Helper()
	db, around := mysqlBehind(dsn)(t, l)
	beside := "beside_" + strings.ToLower(rand.Text())
	text = func(s string) string { return strings.ReplaceAll(s, "%s", beside) }
	execSqlx(t, around.DB, "CREATE DATABASE "+beside)
	t.Cleanup(func() { execSqlx(t, around.DB, "DROP DATABASE "+beside) })
	execSqlx(t, around.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
	execSqlx(t, around.DB, "CREATE TABLE "+beside+".suppressed (id BIGINT PRIMARY KEY, n BIGINT)")
	return db.DB, text, func() (n int) {
		t.Helper()
		if err := around.DB.Get(&n, text("SELECT (SELECT COUNT(*) FROM suppressed) + (SELECT COUNT(*) FROM %s.suppressed)")); err != nil {
			t.Fatal(err)
		}
		return n
	}
}

// MySQL has no ID. If a table of that name in another database has the row, it is not certain
// whose row that is, because each database may have keys of its own. If none has it, fn runs again.
func TestLostCommitInAnotherDatabaseIsNoReasonToRunAgain(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, dsn string) {
		for what, want := range map[loss]int{answerLost: 1, commitLost: 2} {
			onTxPlugins(t, func(t *testing.T, p txPlugin) {
				t.Run(fmt.Sprintf("%d runs", want), func(t *testing.T) {
					t.Parallel()
					key := time.Now().UnixNano() // in no database of another test
					through, text, rows := besideMySQL(t, dsn, &losing{what: what})
					runs := 0
					err := p.on(t, through, types.Snowflake(key))(t.Context(), func(tx pluginTx) error {
						runs++
						if _, err := tx.conn().Exec(text("USE %s")); err != nil {
							return err
						}
						return tx.insert(t.Context(), make([]suppressed, 1))
					})
					unknown := what == answerLost
					if n := rows(); n != 1 || runs != want || errors.Is(err, sqlxhelper.ErrCommitUnknown) != unknown || !unknown && err != nil {
						t.Errorf("InTx() = %v after %d runs with %d rows; want ErrCommitUnknown: %t, after %d with 1", err, runs, n, unknown, want)
					}
				})
			})
		}
	})
}

// A view may show other rows than go through it.
func TestLostCommitThroughAViewOfMySQLIsUnknown(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, dsn string) {
		onTxPlugins(t, func(t *testing.T, p txPlugin) {
			through, around := mysqlBehind(dsn)(t, &losing{what: answerLost})
			execSqlx(t, around.DB, "CREATE TABLE behind (id BIGINT PRIMARY KEY, n BIGINT)")
			execSqlx(t, around.DB, "CREATE VIEW suppressed AS SELECT id, n FROM behind WHERE n > 0")
			runs := 0
			err := p.on(t, through.DB, 0)(t.Context(), func(tx pluginTx) error { runs++; return tx.insert(t.Context(), make([]suppressed, 1)) })
			if !errors.Is(err, sqlxhelper.ErrCommitUnknown) || runs != 1 {
				t.Errorf("InTx() = %v after %d runs; want ErrCommitUnknown after 1", err, runs)
			}
		})
	})
}

// If a process of the server dies, all others start anew, and what was not on disk is lost: also
// that an ID was given out. Another transaction gets it then, and commits.
func TestIDOfATransactionIsWorthNothingAfterACrash(t *testing.T) {
	onTxPlugins(t, idAfterACrash)
}

func idAfterACrash(t *testing.T, p txPlugin) {
	t.Helper()
	dsn, _ := servertest.StartPostgreSQL(t, "autovacuum=off", "bgwriter_delay=10s", "wal_writer_delay=10s")
	db := openSqlx(t, "pgx", dsn)
	for _, text := range []string{
		"CREATE ROLE app",
		"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
		"ALTER TABLE suppressed ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY writes ON suppressed FOR INSERT WITH CHECK (true)",
		"GRANT SELECT, INSERT ON suppressed TO app",
		"CREATE TABLE others (x BIGINT)",
		"CHECKPOINT",
	} {
		execSqlx(t, db, text)
	}
	app := openSqlx(t, "pgx", dsn+"&role=app")
	runs := 0
	err := p.on(t, app, 0)(t.Context(), func(tx pluginTx) error {
		runs++
		if err := tx.insert(t.Context(), make([]suppressed, 1)); err != nil {
			return err
		}
		var id, other int64
		var pid int
		if err := tx.conn().QueryRow("SELECT txid_current(), pg_backend_pid()").Scan(&id, &pid); err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
		for recovered := false; !recovered; time.Sleep(10 * time.Millisecond) {
			_ = db.Get(&recovered, "SELECT pg_last_wal_replay_lsn() IS NOT NULL") // an error until the server is back
		}
		for other < id { // until it gives out the ID
			_ = db.Get(&other, "INSERT INTO others VALUES (1) RETURNING txid_current()")
		}
		t.Logf("the transaction has the ID %d, and then another one had %d", id, other)
		return nil
	})
	if !errors.Is(err, sqlxhelper.ErrCommitUnknown) || runs != 1 {
		t.Errorf("InTx() = %v after %d runs; want ErrCommitUnknown after 1", err, runs)
	}
}

// A row that an upsert meets may be another tenant's.
func TestUpsertNamesRowLevelSecurityWhereItHidesTheStoredRow(t *testing.T) {
	h := hiding{role: true, tables: []string{
		"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT UNIQUE, tenant TEXT DEFAULT 'acme')",
		"INSERT INTO suppressed VALUES (99, 7, 'other')",
		"ALTER TABLE suppressed ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY own ON suppressed USING (tenant = 'acme')",
	}, count: "SELECT COUNT(*) FROM suppressed"}
	for _, driver := range []string{"pgx", "postgres"} {
		db, _, rows := h.in(t, driver, &losing{at: "nothing is lost"})
		err := sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.OnConflictDoNothing("n")).Insert(t.Context(), db, "suppressed", &suppressed{N: 7})
		if n := rows(); n != 1 || !errors.Is(err, sqlxhelper.ErrUnresolved) || !strings.Contains(err.Error(), "row level security may hide it") {
			t.Errorf("Insert() by %s = %v with %d rows; want ErrUnresolved that names row level security, with 1", driver, err, n)
		}
	}
}
