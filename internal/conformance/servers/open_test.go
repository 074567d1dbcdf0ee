package servers

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/servertest"
)

// Open asks the database what it is, whatever the driver and whatever is wrapped around it.
func TestOpenGivesEachProcessOfADatabaseAWorkerNumber(t *testing.T) {
	for name, make := range map[string]func(*testing.T) leaseTarget{
		"pgx":     func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) },
		"pq":      func(t *testing.T) leaseTarget { return leasePostgres(t, pqConnector) },
		"MariaDB": func(t *testing.T) leaseTarget { return leaseMariaDB(t, func(*mysql.Config) {}) },
		"MySQL":   func(t *testing.T) leaseTarget { return leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			g := make(t)
			workers := map[int64]bool{}
			for range 3 {
				gen, err := snowkey.Open(t.Context(), g.open(t), snowkey.Config{})
				must(t, err)
				t.Cleanup(func() { must(t, gen.Close(context.Background())) })
				id, err := gen.Next(t.Context())
				must(t, err)
				workers[gen.Layout().Parts(id).Worker] = true
			}
			if len(workers) != 3 {
				t.Errorf("3 generators have %d worker numbers; want 3", len(workers))
			}
			var rows int
			must(t, g.admin.QueryRow("SELECT COUNT(*) FROM snowkey_leases WHERE owner <> ''").Scan(&rows))
			if rows != 3 {
				t.Errorf("%d rows are held; want 3", rows)
			}
		})
	}
}

func TestOpenPrintsTheStatementsThatItMayNotRun(t *testing.T) {
	check := func(t *testing.T, db *sql.DB) {
		t.Helper()
		gen, err := snowkey.Open(t.Context(), db, snowkey.Config{})
		var missing *sqlstore.TableError
		if gen != nil || !errors.As(err, &missing) || !errors.Is(err, sqlstore.ErrNoTable) {
			t.Fatalf("Open = %v, %v; want a *sqlstore.TableError", gen, err)
		}
		for _, part := range append([]string{"denied"}, missing.Statements...) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("Open error = %v; want %q in it", err, part)
			}
		}
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		role := spaceName()
		g := leasePostgres(t, pgxConnector, "role", role)
		g.exec(t, "CREATE ROLE "+role)
		t.Cleanup(func() {
			g.exec(t, "DROP OWNED BY "+role)
			g.exec(t, "DROP ROLE "+role)
		})
		g.exec(t, "DO $$BEGIN EXECUTE 'GRANT USAGE ON SCHEMA ' || current_schema() || ' TO "+role+"'; END$$")
		check(t, g.open(t))
	})
	for name, server := range map[string]func(testing.TB) string{"MariaDB": servertest.MariaDB, "MySQL": servertest.MySQL} {
		t.Run(name, func(t *testing.T) {
			g := leaseMySQL(t, server(t), func(*mysql.Config) {})
			config, err := mysql.ParseDSN(g.dsn)
			must(t, err)
			user := spaceName()[:20]
			g.exec(t, "CREATE USER "+user+"@'%'")
			t.Cleanup(func() { g.exec(t, "DROP USER "+user+"@'%'") })
			g.exec(t, "GRANT SELECT, INSERT, UPDATE ON "+config.DBName+".* TO "+user+"@'%'")
			config.User, config.Passwd = user, ""
			g.dsn = config.FormatDSN()
			check(t, g.open(t))
		})
	}
}

func TestOpenKnowsOtherDriversOfSQLite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	for _, dsn := range []string{file, "file:" + file + "?_pragma=busy_timeout(1000)", ":memory:"} {
		db := openModernc(t, dsn)
		_, err := db.Exec("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)")
		must(t, err)
		gen, err := snowkey.Open(t.Context(), db, snowkey.Config{})
		must(t, err)
		_, err = gen.Next(t.Context())
		must(t, err)
		must(t, gen.Close(t.Context()))
	}
	if folders, _ := filepath.Glob(file + "-leases"); len(folders) != 1 {
		t.Errorf("folders of leases = %q; want one beside the file", folders)
	}
}
