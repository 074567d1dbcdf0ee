package servers

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
)

// A deferred constraint is checked at COMMIT, be that of a statement or of a transaction.
func TestDeferredConstraintIsADuplicateAtAnyNumberOfRows(t *testing.T) {
	for _, driver := range []string{"pgx", "postgres"} {
		d := sqlxPostgres(t, driver)
		execSqlx(t, d.DB, "CREATE TABLE suppressed (id BIGINT PRIMARY KEY, n BIGINT UNIQUE DEFERRABLE INITIALLY DEFERRED)")
		h := sqlxhelper.New(sqlxcases.NewCounter(0))
		for _, n := range []int{2, 40, 9000, 30000} {
			rows := make([]suppressed, n) // all of them have the same n
			calls := map[string]func() error{
				"InsertMany": func() error { return h.InsertMany(t.Context(), d.DB, "suppressed", rows) },
				"InTx": func() error {
					return sqlxhelper.InTx(t.Context(), d.DB, nil, func(tx *sqlx.Tx) error { return h.InsertMany(t.Context(), tx, "suppressed", rows) })
				},
			}
			for name, call := range calls {
				t.Run(fmt.Sprint(driver, name, n), func(t *testing.T) {
					err := call()
					if !errors.Is(err, sqlxhelper.ErrDuplicateKey) || errors.Is(err, sqlxhelper.ErrCommitUnknown) {
						t.Errorf("%s(%d rows) = %v; want ErrDuplicateKey", name, n, err)
					}
					var e *sqlxhelper.InsertError
					if name != "InTx" && (!errors.As(err, &e) || e.Row != -1 || e.Rows != n) {
						t.Errorf("%s(%d rows) = %v; want an InsertError that blames no row", name, n, err)
					}
				})
			}
		}
	}
}

// A coordinator without two-phase commit reports the error of one server after another has
// committed. Whoever believes that nothing is stored stores it twice.
func TestPartialCommitOfForeignServersIsUnknown(t *testing.T) {
	d := sqlxPostgres(t, "pgx")
	var schema, database string
	if err := d.DB.QueryRow("SELECT current_schema(), current_database()").Scan(&schema, &database); err != nil {
		t.Fatal(err)
	}
	if _, err := d.DB.Exec("CREATE EXTENSION IF NOT EXISTS postgres_fdw WITH SCHEMA public"); err != nil {
		servertest.Missing(t, "postgres_fdw is needed:", err)
	}
	dsn, err := url.Parse(servertest.PostgreSQL(t))
	if err != nil {
		t.Fatal("the DSN is no URL") // err may hold a password
	}
	password, _ := dsn.User.Password()
	exec := func(text string, args ...any) {
		t.Helper()
		execSqlx(t, d.DB, fmt.Sprintf(text, args...))
	}
	exec("CREATE TABLE far_orders (id BIGINT PRIMARY KEY, n BIGINT)")
	exec("CREATE TABLE far_lines (id BIGINT PRIMARY KEY, n BIGINT)")
	// The COMMIT of each server loses once against somebody else. One of them has
	// committed by then, whichever the coordinator commits first.
	exec("CREATE SEQUENCE commits")
	exec(`CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
		IF nextval(''"%s".commits'') = 2 THEN RAISE SQLSTATE ''40001''; END IF; RETURN NULL; END'`, schema)
	for _, table := range []string{"orders", "lines"} {
		server := schema + "_" + table
		exec("CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON far_%s DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose()", table)
		exec(`CREATE SERVER "%s" FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '%s', dbname '%s')`, server, portOf(t, d.DB), database)
		t.Cleanup(func() { execSqlx(t, d.DB, fmt.Sprintf(`DROP SERVER "%s" CASCADE`, server)) })
		mapping := fmt.Sprintf(`CREATE USER MAPPING FOR CURRENT_USER SERVER "%s" OPTIONS (user '%s', password '%s')`, server, userOf(t, d.DB), password)
		if _, err := d.DB.Exec(mapping); err != nil {
			t.Fatal(err) // without the password
		}
		exec(`CREATE FOREIGN TABLE %s (id BIGINT, n BIGINT) SERVER "%s" OPTIONS (schema_name '%s', table_name 'far_%s')`, table, server, schema, table)
	}
	if _, err := d.DB.Exec("SELECT count(*) FROM orders"); err != nil {
		servertest.Missing(t, "the server does not let itself in:", err)
	}
	if _, err := d.DB.Exec("SELECT count(*) FROM lines"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		options []sqlxhelper.Option
		runs    int
		unknown bool
	}{
		{"WithoutTheOption", nil, 2, false}, // and one of the tables has the rows of both runs
		{"WithPartialCommits", []sqlxhelper.Option{sqlxhelper.WithPartialCommits()}, 1, true},
	} {
		exec("ALTER SEQUENCE commits RESTART")
		exec("TRUNCATE far_orders, far_lines")
		h := sqlxhelper.New(sqlxcases.NewCounter(0), c.options...)
		runs := 0
		err := h.InTx(t.Context(), d.DB, nil, func(tx *sqlx.Tx) error {
			runs++
			return errors.Join(h.Insert(t.Context(), tx, "orders", &suppressed{}), h.Insert(t.Context(), tx, "lines", &suppressed{}))
		})
		if errors.Is(err, sqlxhelper.ErrCommitUnknown) != c.unknown || !c.unknown && err != nil || runs != c.runs {
			t.Errorf("%s: InTx() = %v after %d runs; want ErrCommitUnknown: %v, after %d", c.name, err, runs, c.unknown, c.runs)
		}
		var e *sqlxhelper.UnknownError
		if c.unknown && (!errors.As(err, &e) || len(e.Rows) != 2) {
			t.Errorf("%s: InTx() = %v; want the keys of both tables", c.name, err)
		}
		var orders, lines int
		if err := d.DB.QueryRow("SELECT (SELECT count(*) FROM far_orders), (SELECT count(*) FROM far_lines)").Scan(&orders, &lines); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d orders and %d lines are stored", c.name, orders, lines)
		if !c.unknown && orders+lines != 3 {
			t.Errorf("%d orders and %d lines; want three rows, or this test shows nothing", orders, lines)
		}
	}
}

func portOf(t *testing.T, db *sqlx.DB) (port string) {
	t.Helper()
	if err := db.Get(&port, "SHOW port"); err != nil {
		t.Fatal(err)
	}
	return port
}

func userOf(t *testing.T, db *sqlx.DB) (name string) {
	t.Helper()
	if err := db.Get(&name, "SELECT current_user"); err != nil {
		t.Fatal(err)
	}
	return name
}
