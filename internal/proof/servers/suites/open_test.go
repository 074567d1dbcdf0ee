package servers

import (
	"context"
	"database/sql/driver"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
)

// opened is c with the table in full, as config has it.
func (g leaseTarget) opened(c snowkey.Config) snowkey.Config {
	c.Table = g.config(sqllease.DefaultTable).Table
	return c
}

// Open asks the database what it is, whatever the driver and whatever is wrapped around it.
func TestOpenGivesEachProcessOfADatabaseAWorkerNumber(t *testing.T) {
	distinct := func(t *testing.T, g leaseTarget) {
		t.Helper()
		workers := map[int64]bool{}
		for range 3 {
			gen, err := snowkey.Open(t.Context(), g.open(t), g.opened(snowkey.Config{}))
			must(t, err)
			t.Cleanup(func() { must(t, gen.Close(context.Background())) })
			id, err := gen.Next(t.Context())
			must(t, err)
			workers[gen.Layout().Parts(id).Worker] = true
		}
		var rows int
		must(t, g.admin.QueryRow("SELECT COUNT(*) FROM snowkey_leases WHERE owner <> ''").Scan(&rows))
		if len(workers) != 3 || rows != 3 {
			t.Errorf("3 generators have %d worker numbers, and %d rows are held; want 3", len(workers), rows)
		}
	}
	leaseTargets(t, distinct)
	t.Run("pgx in a wrapper", func(t *testing.T) {
		g := wayTo("pgx").target(t)
		g.wrap = func(c driver.Connector) driver.Connector { return wrapper{c} }
		distinct(t, g)
	})
}

// A wrapper stands for a program's connector that traces its statements.
type wrapper struct{ driver.Connector }

func (w wrapper) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := w.Connector.Connect(ctx)
	return wrapped{c}, err
}

func (wrapper) Driver() driver.Driver { return nil }

type wrapped struct{ driver.Conn }

func (w wrapped) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return w.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

// Programs that are killed again and again use up 64 numbers in a minute.
func TestTheFewNumbersOfJavaScriptAreFreeAfterTenSeconds(t *testing.T) {
	few := func(t *testing.T, g leaseTarget) {
		t.Helper()
		layout := core.JavaScript()
		layout.SequenceBits, layout.WorkerBits = layout.SequenceBits+layout.WorkerBits-1, 1
		db := g.open(t)
		for range 2 {
			gen, err := snowkey.Open(t.Context(), db, g.opened(snowkey.Config{Layout: layout}))
			must(t, err)
			defer func() { must(t, gen.Close(context.Background())) }()
		}
		_, err := snowkey.Open(t.Context(), db, g.opened(snowkey.Config{Layout: layout, AcquireWait: 1}))
		var none *lease.NoFreeWorkerError
		if !errors.As(err, &none) {
			t.Fatalf("Open of the third of 2 = %v; want a *lease.NoFreeWorkerError", err)
		}
		if none.Wait > 10*time.Second {
			t.Errorf("Open error = %v; want a number free in at most 10s", err)
		}
	}
	for _, name := range leaseWays { // in turn, because a process has each of the two numbers once
		t.Run(name, func(t *testing.T) { few(t, wayTo(name).target(t)) })
	}
}

func TestCloseAfterTheDatabaseIsAnErrorAndLeavesTheNumberBusy(t *testing.T) {
	leaseTargets(t, func(t *testing.T, g leaseTarget) {
		db := g.open(t)
		gen, err := snowkey.Open(t.Context(), db, g.opened(snowkey.Config{}))
		must(t, err)
		must(t, db.Close())
		if err := gen.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "database is closed") || !strings.Contains(err.Error(), "it is free at") {
			t.Errorf("Close after that of the database = %v; want what is wrong, and when the number is free", err)
		}
		var busy int
		must(t, g.admin.QueryRow("SELECT COUNT(*) FROM snowkey_leases WHERE owner <> ''").Scan(&busy))
		if busy != 1 {
			t.Errorf("%d rows are held; want 1", busy)
		}
	})
}

func TestOpenPrintsTheStatementsThatItMayNotRun(t *testing.T) {
	check := func(t *testing.T, g leaseTarget) {
		t.Helper()
		gen, err := snowkey.Open(t.Context(), g.open(t), g.opened(snowkey.Config{}))
		var missing *sqlstore.TableError
		if gen != nil || !errors.As(err, &missing) || !errors.Is(err, sqlstore.ErrNoTable) {
			t.Fatalf("Open = %v, %v; want a *sqlstore.TableError", gen, err)
		}
		cause, statements, _ := strings.Cut(err.Error(), "\n")
		if !strings.HasPrefix(cause, "snowkey: Open: the database lacks the tables ") || strings.Count(cause, "snowkey: ") != 1 {
			t.Errorf("the first line of Open's error = %s; want first what is missing, and the package's name once", cause)
		}
		for _, part := range []string{"denied", missing.Tables[0], "let a user with the right to create tables run this once"} {
			if !strings.Contains(cause, part) || strings.Contains(cause, "CreateTables") {
				t.Errorf("the first line of Open's error = %s; want %q in it, and no method of the store", cause, part)
			}
		}
		if want := strings.Join(missing.Statements, ";\n") + ";"; statements != want {
			t.Errorf("Open's error has the statements\n%s\nwant each on a line of its own\n%s", statements, want)
		}
	}
	eachUnprivileged(t, func(t *testing.T, _, program leaseTarget, _ func(string)) { check(t, program) })
}

func TestOpenByAReaderOfItsTablesNamesTheRightsToGrant(t *testing.T) {
	eachUnprivileged(t, func(t *testing.T, admin, program leaseTarget, grant func(rights string)) {
		gen, err := snowkey.Open(t.Context(), admin.open(t), admin.opened(snowkey.Config{}))
		must(t, err)
		must(t, gen.Close(t.Context()))
		c := program.opened(snowkey.Config{})
		for _, has := range []string{"SELECT", "SELECT, INSERT"} {
			grant(has)
			gen, err := snowkey.Open(t.Context(), program.open(t), c)
			if gen != nil || !dialect.Denied(err) {
				t.Fatalf("Open with %s = %v, %v; want that the database denies it", has, gen, err)
			}
			if want := "snowkey: Open: the program lacks a right to the tables " + c.Table + ", " + c.Table + "_meta and " + c.Table + "_past of worker numbers: grant it SELECT, INSERT and UPDATE on all three ("; !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "snowkey: ") != 1 {
				t.Errorf("Open with %s = %v; want first %s", has, err, want)
			}
		}
		grant("SELECT, INSERT, UPDATE")
		gen, err = snowkey.Open(t.Context(), program.open(t), c)
		must(t, err)
		must(t, gen.Close(t.Context()))
	})
}

// eachUnprivileged runs test with an administrator and a program of one schema or database, in which
// the program may create no table. What grant gives it on all tables takes the place of what it had.
func eachUnprivileged(t *testing.T, test func(t *testing.T, admin, program leaseTarget, grant func(rights string))) {
	eachServer(t, func(t *testing.T, w way) {
		admin := w.target(t)
		program, on := admin, " ON ALL TABLES IN SCHEMA "+admin.schema
		if w.dialect() == sqlstore.MySQL {
			on = " ON " + admin.schema + ".*"
		}
		var user string
		program.place, user = admin.user(t, admin.admin)
		if w.dialect() == sqlstore.MySQL { // without a right there, it finds no database
			admin.exec(t, "GRANT SELECT, INSERT, UPDATE"+on+" TO "+user)
		}
		test(t, admin, program, func(rights string) { admin.exec(t, "REVOKE ALL"+on+" FROM "+user, "GRANT "+rights+on+" TO "+user) })
	})
}

func TestOpenKnowsOtherDriversOfSQLite(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"orders.db", "a b?c#d%20&e.db"} {
		file := filepath.Join(folder, name)
		uri := "file:" + (&url.URL{Path: file}).EscapedPath()
		for _, dsn := range []string{file, uri + "?_pragma=busy_timeout(1000)", ":memory:"} {
			if strings.Contains(dsn, name) && strings.Contains(name, "?") {
				continue // the driver takes what follows for its options
			}
			db := openModernc(t, dsn)
			_, err := db.Exec("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)")
			must(t, err)
			gen, err := snowkey.Open(t.Context(), db, snowkey.Config{})
			must(t, err)
			_, err = gen.Next(t.Context())
			must(t, err)
			must(t, gen.Close(t.Context()))
		}
		if info, err := os.Stat(file + "-leases"); err != nil || !info.Mode().IsRegular() {
			t.Errorf("Stat(%s-leases) = %v, %v; want a file", file, info, err)
		}
	}
	file := filepath.Join(folder, "orders.db")
	link := file + ".link"
	must(t, os.Symlink(file, link))
	gen, err := snowkey.Open(t.Context(), openModernc(t, link), snowkey.Config{})
	must(t, err)
	must(t, gen.Close(t.Context()))
	if files, _ := filepath.Glob(file + "*-leases"); len(files) != 1 || files[0] != file+"-leases" {
		t.Errorf("files of leases = %q; want one beside the file", files)
	}
}
