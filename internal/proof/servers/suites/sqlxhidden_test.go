package servers

import (
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
	// rights are the program's rights, if it is a user to whom row level security applies.
	rights string
	// tables makes the tables, where %s is the schema or database beside that of the test.
	tables []string
	// first is what the function sends first.
	first string
	// from is where the rows are counted.
	from string
}

// These are on MySQL too, whose schemas are databases.
var (
	otherSchema = hiding{
		tables: []string{
			"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
			"CREATE TABLE %s.suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
		},
		first: "SET LOCAL search_path TO %s",
		from:  "(SELECT id FROM suppressed UNION ALL SELECT id FROM %s.suppressed) both_tables",
	}
	aView = hiding{
		tables: []string{
			"CREATE TABLE behind (id BIGINT PRIMARY KEY, n BIGINT)",
			"CREATE VIEW suppressed AS SELECT id, n FROM behind WHERE n > 0",
		},
		from: "behind",
	}
)

var hidings = map[string]hiding{
	"row level security by a setting": {
		rights: "SELECT, INSERT",
		tables: []string{
			"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT, tenant TEXT DEFAULT current_setting('app.tenant'))",
			"ALTER TABLE suppressed ENABLE ROW LEVEL SECURITY",
			"CREATE POLICY own ON suppressed USING (tenant = current_setting('app.tenant', true))",
		},
		first: "SELECT set_config('app.tenant', 'acme', true)",
		from:  "suppressed",
	},
	"a policy for inserts alone": {
		rights: "SELECT, INSERT",
		tables: []string{
			"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
			"ALTER TABLE suppressed ENABLE ROW LEVEL SECURITY",
			"CREATE POLICY writes ON suppressed FOR INSERT WITH CHECK (true)",
		},
		from: "suppressed",
	},
	"a table of that name in another schema": otherSchema,
	"a view that shows other rows":           aView,
	"a user without SELECT": {
		rights: "INSERT",
		tables: []string{"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)"},
		from:   "suppressed",
	},
}

// in makes the tables of h beside a proxy that loses a commit or another statement. It returns the way through
// that, and how many rows are stored.
func (h hiding) in(t *testing.T, way string, what loss, lost string) (through *sqlx.DB, text func(string) string, rows func() int) {
	t.Helper()
	p := wayTo(way).place(t)
	around := p.open(t)
	beside := wayTo(way).place(t).schema
	text = func(s string) string { return strings.ReplaceAll(s, "%s", beside) }
	for _, table := range h.tables {
		execSqlx(t, around, text(table))
	}
	if h.rights != "" {
		p, _ = p.user(t, around.DB, "GRANT "+h.rights+" ON suppressed TO $role")
	}
	return p.losing(t, what, lost), text, counting(t, around, text(h.from))
}

// A transaction whose commit is not answered is found out by its ID.
func TestLostCommitOfRowsThatAreHiddenIsFoundOut(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "pq"} {
		for name, h := range hidings {
			for what, want := range map[loss]int{answerLost: 1, requestLost: 2} {
				onTxPlugins(t, func(t *testing.T, p txPlugin) {
					t.Run(fmt.Sprintf("%s/%s/%d runs", driver, name, want), func(t *testing.T) {
						t.Parallel()
						through, text, rows := h.in(t, driver, what, "commit")
						inTxOutcome{runs: want, rows: 1}.of(t, p, through, 0, rows, func(tx pluginTx) error {
							return errors.Join(tx.exec(t.Context(), text(h.first)), tx.insert(t.Context(), make([]suppressed, 1)))
						})
					})
				})
			}
		}
	}
}

// A statement on a pool has no ID. It is not sent again where a second row could be stored, and
// a row that it has stored itself is no duplicate.
func TestLostStatementOfRowsThatAreHiddenIsUnknown(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"pgx", "pq"} {
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
				through, _, rows := h.in(t, driver, answerLost, "insert into")
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
	for name, change := range map[string]string{"pgx": "SET search_path TO %s", "MariaDB": "USE %s", "MySQL": "USE %s"} {
		t.Run(name, func(t *testing.T) {
			through, text, rows := otherSchema.in(t, name, answerLost, "insert into")
			through.SetMaxOpenConns(1) // until the connection breaks
			execSqlx(t, through, text(change))
			err := sqlxhelper.New(sqlxcases.NewCounter(0)).Insert(t.Context(), through, "suppressed", &suppressed{})
			if n := rows(); n != 1 || err != nil && !errors.Is(err, sqlxhelper.ErrCommitUnknown) {
				t.Errorf("Insert() = %v with %d rows; want nil or ErrCommitUnknown with 1", err, n)
			}
		})
	}
}

// MySQL has no ID. If a table of that name in another database has the row, it is not certain
// whose row that is, because each database may have keys of its own. If none has it, fn runs again.
func TestLostCommitInAnotherDatabaseIsNoReasonToRunAgain(t *testing.T) {
	t.Parallel()
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		for what, want := range map[loss]int{answerLost: 1, requestLost: 2} {
			onTxPlugins(t, func(t *testing.T, p txPlugin) {
				t.Run(fmt.Sprintf("%d runs", want), func(t *testing.T) {
					t.Parallel()
					key := time.Now().UnixNano() // in no database of another test
					through, text, rows := otherSchema.in(t, w.name, what, "commit")
					inTxOutcome{what == answerLost, want, 1}.of(t, p, through, types.Snowflake(key), rows, func(tx pluginTx) error {
						if _, err := tx.conn().Exec(text("USE %s")); err != nil {
							return err
						}
						return tx.insert(t.Context(), make([]suppressed, 1))
					})
				})
			})
		}
	})
}

// A view may show other rows than go through it.
func TestLostCommitThroughAViewOfMySQLIsUnknown(t *testing.T) {
	onMariaDBAndMySQL(t, func(t *testing.T, w way) {
		onTxPlugins(t, func(t *testing.T, p txPlugin) {
			through, _, rows := aView.in(t, w.name, answerLost, "commit")
			inTxOutcome{true, 1, 1}.of(t, p, through, 0, rows, func(tx pluginTx) error { return tx.insert(t.Context(), make([]suppressed, 1)) })
		})
	})
}

// If a process of the server dies, all others start anew, and what was not on disk is lost: also
// that an ID was given out. Another transaction gets it then, and commits.
func TestIDOfATransactionIsWorthNothingAfterACrash(t *testing.T) {
	t.Parallel()
	dsn, _ := servertest.StartPostgreSQL(t, "autovacuum=off", "bgwriter_delay=10s", "wal_writer_delay=10s")
	db := openSqlx(t, "pgx", dsn)
	for _, text := range []string{
		"CREATE ROLE app",
		"CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT)",
		"ALTER TABLE suppressed ENABLE ROW LEVEL SECURITY",
		"CREATE POLICY writes ON suppressed FOR INSERT WITH CHECK (true)",
		"GRANT SELECT, INSERT ON suppressed TO app",
		"CREATE TABLE others (x BIGINT)",
	} {
		execSqlx(t, db, text)
	}
	onTxPlugins(t, func(t *testing.T, p txPlugin) { idAfterACrash(t, p, dsn, db) })
}

func idAfterACrash(t *testing.T, p txPlugin, dsn string, db *sqlx.DB) {
	t.Helper()
	execSqlx(t, db, "CHECKPOINT")
	app := openSqlx(t, "pgx", dsn+"&role=app")
	inTxOutcome{true, 1, 0}.of(t, p, app, 0, counting(t, db, "suppressed"), func(tx pluginTx) error {
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
}
