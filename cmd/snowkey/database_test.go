package main

import (
	"cmp"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A testDB is a database of a test's own, as -db names it.
type testDB struct {
	*database
	url string
}

func (d testDB) exec(t *testing.T, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := d.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// text returns a value of one row.
func (d testDB) text(t *testing.T, query string) (value string) {
	t.Helper()
	var v sql.NullString
	if err := d.QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v.String
}

// openURL opens what a URL names, as the command does.
func openURL(t *testing.T, text string) testDB {
	t.Helper()
	d, err := (&options{db: text}).open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return testDB{d, text}
}

// databases are the kinds of databases, each with a function that makes one.
var databases = map[string]func(*testing.T) testDB{
	"SQLite": func(t *testing.T) testDB {
		name := filepath.Join(t.TempDir(), "test.db")
		db, err := sql.Open("sqlite", name)
		if err == nil {
			_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 1")
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		return openURL(t, "sqlite:"+name)
	},
	"PostgreSQL": func(t *testing.T) testDB {
		u, err := url.Parse(servertest.PostgreSQL(t))
		if err != nil {
			t.Fatal(err)
		}
		return inDatabase(t, u)
	},
	"MariaDB": func(t *testing.T) testDB { return inDatabase(t, urlOf(t, servertest.MariaDB(t))) },
	"MySQL":   func(t *testing.T) testDB { return inDatabase(t, urlOf(t, servertest.MySQL(t))) },
}

func urlOf(t *testing.T, dsn string) *url.URL {
	t.Helper()
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal("the DSN of the server cannot be parsed")
	}
	return &url.URL{Scheme: "mysql", User: url.UserPassword(c.User, c.Passwd), Host: c.Addr, Path: "/" + c.DBName}
}

func inDatabase(t *testing.T, u *url.URL) testDB {
	t.Helper()
	name := "snowkey_" + strings.ToLower(rand.Text())
	admin := openURL(t, u.String())
	admin.exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { _, _ = admin.DB.Exec("DROP DATABASE " + name) }) // t.Context has ended
	own := *u
	own.Path = "/" + name
	if u.Scheme == "mysql" { // a user who does not see the tables of other tests
		user := name[:30]
		admin.exec(t, "CREATE USER "+user+"@'%' IDENTIFIED BY 'own'", "GRANT ALL ON "+name+".* TO "+user+"@'%' WITH GRANT OPTION", "GRANT CREATE USER, PROCESS, SUPER, REPLICATION CLIENT ON *.* TO "+user+"@'%'")
		t.Cleanup(func() { _, _ = admin.DB.Exec("DROP USER " + user + "@'%'") })
		own.User = url.UserPassword(user, "own")
	}
	return openURL(t, own.String())
}

// onDatabases runs a test on the named kinds, all of them if none is named.
func onDatabases(t *testing.T, test func(t *testing.T, d testDB), kinds ...string) {
	t.Helper()
	for kind, make := range databases {
		if len(kinds) == 0 || slices.Contains(kinds, kind) {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				test(t, make(t))
			})
		}
	}
}

// on runs a command line with the database in the environment.
func (d testDB) on(t *testing.T, line, stdin string) (stdout, stderr string, code int) {
	t.Helper()
	return snowkey(t, "export "+dbVariable+"='"+d.url+"'\n"+line, stdin)
}

func TestNoOutputHasAPassword(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	_ = closed.Close()
	lines := []string{"postgres://me:PASS@" + nobody + "/x", "postgres://me:PASS@" + nobody + "/x?sslmode=nonsense", "postgres://me:PASS@" + nobody + "/x?connect_timeout=PASS",
		"postgres://me:PASS%zz@" + nobody + "/x", "postgres://me:PASS@[::1/x", "mysql://me:PASS@" + nobody + "/x", "mysql://me:PASS@" + nobody + "/x?tls=nonsense",
		"mysql://me:PASS@" + nobody + "/x?timeout=PASS", "mysql://me:PASS@" + nobody + ":x/x", "mysql://me:PASS@/x?socket=/nowhere", "oracle://me:PASS@" + nobody, "me:PASS@tcp(" + nobody + ")/x",
		"sqlite:/nowhere?key=PASS", "PASS"}
	for _, server := range []string{servertest.MariaDB(t), servertest.MySQL(t)} {
		u := urlOf(t, server)
		u.User = url.UserPassword("nobody", "PASS")
		lines = append(lines, u.String())
	}
	for _, password := range []string{"geheim", "ge%2Fhe%20im%25"} {
		plain, _ := url.PathUnescape(password)
		for _, line := range lines {
			where := strings.ReplaceAll(line, "PASS", password)
			for _, command := range []string{"snowkey sql -apply -yes view a b -db '" + where + "'", dbVariable + "='" + where + "' snowkey partitions -every day maintain orders"} {
				out, bad, code := snowkey(t, command, "")
				if code == 0 || bad == "" {
					t.Errorf("%s = %s, %d; want an error", command, bad, code)
				}
				if text := out + bad; strings.Contains(text, password) || strings.Contains(text, plain) {
					t.Errorf("%s prints the password: %s", command, text)
				}
			}
		}
	}
}

// What is wrong with the words is said before anything is sent.
func TestBadInputReachesNoServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int64
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			_ = c.Close()
		}
	}()
	for _, scheme := range []string{"postgres", "mysql"} {
		db := " -apply -yes -db " + scheme + "://me@" + listener.Addr().String() + "/x"
		for _, line := range []string{
			"sql view 'a`b\"' orders", `sql view ab 'or"d` + "`" + `ers'`, `sql functions 'a.b"'`, "sql -layout nonsense functions", "sql -bits 1/2/3 functions",
			"sql -dialect sqlite view a b", "sql -column 'i`\"d' view a b",
			"partitions -every day orders 2026-05-05 2026-05-04", "partitions -every day -zone Mars/Olympus orders 2026-05", "partitions -every day orders 2026-13",
			"partitions -every hour orders 2000 2100", "partitions orders 2026", "partitions -every day 'or;d$ers' 2026-05", "partitions -every eon orders 2026",
			"partitions -every day -column '' orders 2026-05", "partitions -every day convert orders tomorrow", "partitions -every day -ahead 0 convert orders 2026-05",
			"partitions -every month partman orders 2026-05",
		} {
			if out, bad, code := snowkey(t, "snowkey "+line+db, ""); code != 2 || bad == "" || out != "" {
				t.Errorf("%s = %s, %s, %d; want a complaint, and 2", line, out, bad, code)
			}
		}
	}
	// One that is in order shows that the server would have been reached.
	before := reached.Load()
	_, _, _ = snowkey(t, "snowkey sql view a b -apply -yes -db mysql://me@"+listener.Addr().String()+"/x", "")
	_ = listener.Close()
	if before != 0 || reached.Load() == 0 {
		t.Errorf("%d lines of bad input reached a server, and %d without; want 0, and some", before, reached.Load())
	}
}

func TestNothingIsWrittenUnlessSomebodySaysYes(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, n INT)")
		const seen = "SELECT count(*) FROM orders_read"
		for _, answer := range []string{"", "\n", "n\n", "no\n", "yess\n", "y e s\n"} {
			out, bad, code := d.on(t, "snowkey sql -apply view orders_read orders", answer)
			if _, err := d.ExecContext(t.Context(), seen); err == nil {
				t.Fatalf("the answer %q has made the view", answer)
			}
			if want := map[bool]int{true: 2, false: 1}[answer == ""]; code != want || !strings.Contains(bad, "nothing was changed") || !strings.Contains(out, "CREATE") {
				t.Errorf("the answer %q gives %s, %s, %d; want the statements, and %d", answer, out, bad, code, want)
			}
		}
		for _, line := range []string{"snowkey sql -apply view orders_read orders", "snowkey sql -apply -yes view orders_read orders"} {
			if _, bad, code := d.on(t, line, "YES\n"); code != 0 || strings.Contains(bad, "[y/N]") != !strings.Contains(line, "-yes") {
				t.Errorf("%s = %s, %d", line, bad, code)
			}
			if n := d.text(t, seen); n != "0" {
				t.Errorf("the view has %s rows; want 0", n)
			}
		}
	})
}

// A run can end between any two statements. What runs after is the whole command again.
func TestApplyGoesOnWhereARunHasEnded(t *testing.T) {
	year := time.Now().UTC().Year()
	lines := map[string][]string{
		"PostgreSQL": {"sql functions", "sql -worker 1023 default", "partitions -every month -ahead 3 convert orders " + fmt.Sprint(year+1), fmt.Sprintf("partitions -every month orders %d", year+2), "partitions -every month -ahead 30 maintain orders", "sql view orders_read orders"},
		"MariaDB":    {"sql functions", "sql require-key orders", "sql view orders_read orders", fmt.Sprintf("partitions -every month orders %d", year), "partitions -every month maintain orders"},
		"SQLite":     {"sql require-key orders", "sql view orders_read orders"},
	}
	lines["MySQL"] = lines["MariaDB"]
	onDatabases(t, func(t *testing.T, d testDB) {
		d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, n INT)", fmt.Sprintf("INSERT INTO orders VALUES (%d, 1)", core.Default().Min(time.Now())))
		kind := strings.Split(t.Name(), "/")[1]
		for _, line := range lines[kind] {
			printed, bad, code := d.on(t, "snowkey "+line, "")
			if code != 0 {
				t.Fatalf("%s = %s, %d", line, bad, code)
			}
			before := d.made(t)
			statements := divided(printed)
			for i := range statements {
				d.exec(t, statements[:i+1]...)
				if _, bad, code := d.on(t, "snowkey "+line+" -apply -yes", ""); code != 0 {
					t.Errorf("%s after a run that ended with statement %d of %d = %s, %d", line, i+1, len(statements), bad, code)
				}
			}
			if len(statements) > 1 {
				out, bad, code := d.on(t, "snowkey "+line+" -apply -yes", "")
				back := undoOf(out)
				if code != 0 || back == nil && !strings.Contains(out, "-- there is nothing to do\n") {
					t.Errorf("%s = %s, %s, %d; want what takes it back", line, out, bad, code)
				}
				undone := back != nil
				for i := range statements {
					if undone {
						d.exec(t, back...)
						if after := d.made(t); after != before {
							t.Errorf("after what takes %d statements of %s back there are %s; want %s", i, line, after, before)
						}
						d.exec(t, statements[:i+1]...)
						d.exec(t, back...)
					}
				}
			}
			for range 2 {
				if _, bad, code := d.on(t, "snowkey "+line+" -apply -yes", ""); code != 0 {
					t.Errorf("%s again = %s, %d", line, bad, code)
				}
			}
		}
		if n := d.text(t, "SELECT count(*) FROM orders_read"); n != "1" {
			t.Errorf("%s rows; want 1", n)
		}
	})
}

// What maintain makes and removes, after a run that ended in the middle. What is removed has rows.
func TestMaintainWithDropGoesOnWhereARunHasEnded(t *testing.T) {
	now := time.Now().UTC()
	const line = "snowkey partitions -every month -ahead 2 -keep 2 -drop maintain orders"
	onDatabases(t, func(t *testing.T, d testDB) {
		month := func(ago int) string {
			return time.Date(now.Year(), now.Month()-time.Month(ago), 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
		}
		begin := func() {
			t.Helper()
			table := "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, n INT)"
			if d.dialect == keysql.PostgreSQL {
				table += " PARTITION BY RANGE (id)"
			}
			d.exec(t, "DROP TABLE IF EXISTS orders", table)
			if _, bad, code := d.on(t, "snowkey partitions -every month -apply -yes orders "+month(6)+" "+month(0), ""); code != 0 {
				t.Fatalf("partitions = %s, %d", bad, code)
			}
			for ago := 1; ago <= 6; ago++ { // the eldest of each month
				at := time.Date(now.Year(), now.Month()-time.Month(ago), 2, 0, 0, 0, 0, time.UTC)
				d.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, %d)", core.Default().Min(at), ago))
			}
		}
		state := func() string {
			t.Helper()
			existing := map[keysql.Dialect]string{
				keysql.PostgreSQL: "SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
				keysql.MySQL:      "SELECT GROUP_CONCAT(partition_name ORDER BY partition_name) FROM information_schema.partitions WHERE table_schema = DATABASE() AND table_name = 'orders'",
			}
			return d.text(t, existing[d.dialect]) + " with " + d.text(t, "SELECT count(*) FROM orders") + " rows"
		}
		begin()
		printed, bad, code := d.on(t, line, "")
		if code != 0 {
			t.Fatalf("%s = %s, %d", line, bad, code)
		}
		var statements []string
		for _, s := range divided(printed) {
			for strings.HasPrefix(s, "-- ") { // which partitions are old
				_, s, _ = strings.Cut(s, "\n")
			}
			statements = append(statements, s)
		}
		d.exec(t, statements...)
		want := state()
		if n := len(statements); n < 5 || !strings.HasSuffix(want, " with 2 rows") {
			t.Fatalf("%d statements leave %s; want some for months to come, 4 for the old ones, and 2 rows", n, want)
		}
		for i := range statements {
			begin()
			d.exec(t, statements[:i]...)
			out, bad, code := d.on(t, line+" -apply -yes", "")
			if got := state(); code != 0 || got != want || i == 0 && !strings.Contains(out, "Rows that are removed are gone") {
				t.Errorf("after %d of %d statements the same command = %s, %s, %d, and leaves %s; want %s", i, len(statements), out, bad, code, got, want)
			}
		}
	}, "PostgreSQL", "MariaDB", "MySQL")
}

// divided returns the statements of a text. Some have semicolons in them.
func divided(printed string) (statements []string) {
	for part := range strings.SplitSeq(strings.TrimSuffix(printed, ";\n"), ";\n") {
		if n := len(statements); n > 0 && unfinished(statements[n-1]) {
			statements[n-1] += ";\n" + part
		} else {
			statements = append(statements, part)
		}
	}
	return statements
}

// undoOf returns the statements that a run shows to take it back, or nil.
func undoOf(out string) []string {
	_, text, found := strings.Cut(out, "-- What takes it back, also after a part of it:\n")
	if !found {
		return nil
	}
	var lines string
	for line := range strings.Lines(text) {
		statement, ok := strings.CutPrefix(line, "-- ")
		if !ok || strings.HasPrefix(statement, "done: ") {
			break
		}
		lines += statement
	}
	return divided(lines)
}

// made returns the names of what statements make.
func (d testDB) made(t *testing.T) string {
	t.Helper()
	return d.text(t, map[string]string{
		"SQLite": "SELECT coalesce(group_concat(name), '') FROM (SELECT name FROM sqlite_master ORDER BY name)",
		"PostgreSQL": "SELECT string_agg(name, ',' ORDER BY name) FROM (SELECT relname || relkind::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'S'" +
			" UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace UNION ALL SELECT conname || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace) AS all_names",
		"MySQL": "SELECT GROUP_CONCAT(name ORDER BY name) FROM (SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()" +
			" UNION ALL SELECT routine_name FROM information_schema.routines WHERE routine_schema = DATABASE() UNION ALL SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()) AS all_names",
	}[d.dialect.String()])
}

// unfinished reports whether a statement has begun a text in dollars, or the body of a trigger.
func unfinished(s string) bool {
	return strings.Count(s, "$snowkey$")%2 == 1 || strings.Count(s, "$$")%2 == 1 || !strings.Contains(s, "$") && (strings.Contains(s, "BEGIN\n") && !strings.HasSuffix(s, "END") || strings.Contains(s, "THEN\n") && !strings.HasSuffix(s, "END IF"))
}

func TestAStatementThatFailsSaysWhatWasDone(t *testing.T) {
	d := databases["PostgreSQL"](t)
	d.exec(t, "CREATE FUNCTION id_min(at timestamptz) RETURNS int LANGUAGE sql AS 'SELECT 1'") // another type cannot be replaced
	_, bad, code := d.on(t, "snowkey sql functions -apply -yes", "")
	if code != 1 || !strings.Contains(bad, "was not done, and the ") || !strings.Contains(bad, "when the cause is gone, the same command goes on with it") {
		t.Errorf("functions beside another id_min = %s, %d; want what was done", bad, code)
	}
	d.exec(t, "DROP FUNCTION id_min")
	if _, bad, code := d.on(t, "snowkey sql functions -apply -yes", ""); code != 0 {
		t.Errorf("the same again = %s, %d", bad, code)
	}
	now := time.Now().Truncate(time.Millisecond)
	if got := d.text(t, fmt.Sprintf("SELECT id_min(to_timestamp(%d / 1000.0))", now.UnixMilli())); got != core.Default().Min(now).String() {
		t.Errorf("id_min = %s; want %d", got, core.Default().Min(now))
	}
}

// A DBA stops a statement that waits for the locks of others.
func TestCtrlCEndsAnApplyThatCanBeGoneOnWith(t *testing.T) {
	d := databases["PostgreSQL"](t)
	d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, n INT) PARTITION BY RANGE (id)")
	busy, err := d.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := busy.ExecContext(t.Context(), "LOCK TABLE orders IN SHARE UPDATE EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	const line = "snowkey partitions -every month orders 2026 -apply -yes"
	cmd := shell(t, "export "+dbVariable+"='"+d.url+"'\nexec "+line)
	var bad strings.Builder
	cmd.Stderr = &bad
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for d.text(t, "SELECT count(*) FROM pg_locks WHERE relation = 'orders'::regclass AND NOT granted") != "1" {
		time.Sleep(10 * time.Millisecond) // ends with the test
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(bad.String(), "statement 1 of 12 was not done, and nothing is changed") {
		t.Errorf("after Ctrl-C: %s, %d; want what was done, and 130", bad.String(), code)
	}
	if err := busy.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, bad, code := d.on(t, line, ""); code != 0 {
		t.Errorf("the same command again = %s, %d", bad, code)
	}
	if n := d.text(t, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'orders'::regclass"); n != "12" {
		t.Errorf("%s partitions; want 12", n)
	}
}

// Whatever the command line, a table that writers use stays one that they can use.
func TestConvertIsRefusedBeforeItsFirstStatement(t *testing.T) {
	now := time.Now().UTC()
	later := core.Default().Min(now.AddDate(3, 0, 0))
	for name, c := range map[string]struct{ setup, by, want string }{
		"an ended period": {"", now.AddDate(-1, 0, 0).Format("2006"), "has passed: name a later time"},
		"a later key":     {fmt.Sprintf("INSERT INTO orders VALUES (%d, 1)", later), now.Format("2006"), "name a later time"},
		"a view":          {"CREATE VIEW seen AS SELECT * FROM orders", now.Format("2006"), "would stay with the old table: view"},
	} {
		t.Run(name, func(t *testing.T) {
			d := databases["PostgreSQL"](t)
			d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, n INT)")
			if c.setup != "" {
				d.exec(t, c.setup)
			}
			before := d.made(t)
			_, bad, code := d.on(t, "snowkey partitions -every year -apply -yes convert orders "+c.by, "")
			if code != 1 || !strings.Contains(bad, c.want) || !strings.Contains(bad, "nothing is changed") || strings.Contains(bad, "goes on") {
				t.Errorf("convert = %s, %d; want it refused", bad, code)
			}
			if after := d.made(t); after != before {
				t.Errorf("convert has left %s; want %s", after, before)
			}
			d.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, 1)", core.Default().Min(now)))
		})
	}
}

// One that was begun in time goes on when the period has ended, or can be taken back.
func TestAConversionWhoseTimeHasPassedGoesOn(t *testing.T) {
	d := databases["PostgreSQL"](t)
	d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, n INT)")
	year := time.Now().UTC().Year()
	end := core.Default().Min(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
	begun := fmt.Sprintf("ALTER TABLE orders ADD CONSTRAINT orders_p0 CHECK (id < %d) NOT VALID", end)
	insert := fmt.Sprintf("INSERT INTO orders VALUES (%d, 1)", core.Default().Min(time.Now()))
	d.exec(t, begun)
	_, bad, code := d.on(t, fmt.Sprintf("snowkey partitions -every year -apply -yes convert orders %d", year), "")
	undo, found := strings.CutSuffix(bad[strings.LastIndex(bad, "ALTER TABLE"):], " (SQLSTATE P0001): statement 1 of 6 was not done, and nothing is changed\n")
	if code != 1 || !found {
		t.Fatalf("convert for another time = %s, %d; want how it begins anew", bad, code)
	}
	d.exec(t, undo, insert, "DELETE FROM orders", begun)
	if _, bad, code := d.on(t, fmt.Sprintf("snowkey partitions -every year -apply -yes convert orders %d", year-1), ""); code != 0 {
		t.Errorf("convert for the same time = %s, %d", bad, code)
	}
	d.exec(t, insert)
}

// The first partition lasts until then.
func TestMaintainAfterAConversionToALaterPeriodGoesOnFromItsEnd(t *testing.T) {
	d := databases["PostgreSQL"](t)
	d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, n INT)")
	now := time.Now().UTC()
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	if _, bad, code := d.on(t, "snowkey partitions -every month -ahead 1 -apply -yes convert orders "+first.AddDate(0, 4, 0).Format("2006-01"), ""); code != 0 {
		t.Fatal(bad, code)
	}
	for ahead, want := range map[int]string{1: "2", 3: "2", 5: "2", 6: "3"} { // the old table, and the one after it
		line := fmt.Sprintf("snowkey partitions -every month -ahead %d -keep 2 -drop -apply -yes maintain orders", ahead)
		for range 2 {
			if out, bad, code := d.on(t, line, ""); code != 0 {
				t.Errorf("%s = %s, %s, %d", line, out, bad, code)
			}
		}
		if got := d.text(t, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'orders'::regclass"); got != want && ahead < 6 || ahead == 6 && got != "3" {
			t.Errorf("after %s there are %s partitions; want %s", line, got, want)
		}
		d.exec(t, "DROP TABLE IF EXISTS "+"orders_p"+first.AddDate(0, 6, 0).Format("200601"))
	}
}

func TestMaintainMakesWhatIsAheadAndDropsOnlyWhenAsked(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		divided := ""
		if d.dialect.String() == "PostgreSQL" {
			divided = " PARTITION BY RANGE (id)"
		}
		d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, n INT)"+divided)
		now := time.Now().UTC()
		month := func(n int) time.Time {
			return time.Date(now.Year(), now.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC)
		}
		begin := month(-5)
		if epoch := core.Default().Epoch; begin.Before(epoch) {
			begin = epoch
		}
		const line = "snowkey partitions -every month "
		if _, bad, code := d.on(t, line+"-apply -yes orders "+begin.Format("2006-01")+" "+now.Format("2006-01"), ""); code != 0 {
			t.Fatal(bad, code)
		}
		for n := -5; n < 0; n++ {
			d.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, %d)", core.Default().Min(month(n)), n))
		}
		rows := func() string { return d.text(t, "SELECT count(*) FROM orders") }
		out, bad, code := d.on(t, line+"-apply -yes -ahead 2 -keep 3 maintain orders", "")
		if code != 0 || strings.Count(out, "-- old: ") != 2 || rows() != "5" || strings.Contains(out, "DETACH") || strings.Contains(out, "DROP PARTITION") {
			t.Errorf("maintain = %s, %s, %d, and %s rows; want two old partitions that stay", out, bad, code, rows())
		}
		d.exec(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, 2)", core.Default().Min(month(2))))
		if out, bad, code := d.on(t, line+"-apply -yes -ahead 2 -keep 3 maintain orders", ""); code != 0 || !strings.HasSuffix(out, "-- there is nothing to do\n") {
			t.Errorf("maintain again = %s, %s, %d; want nothing to do", out, bad, code)
		}
		if out, bad, code := d.on(t, line+"-apply -yes -ahead 2 -keep 3 -drop maintain orders", ""); code != 0 || rows() != "4" {
			t.Errorf("maintain -drop = %s, %s, %d, and %s rows; want 4", out, bad, code, rows())
		}
		if got := d.text(t, "SELECT min(n) FROM orders"); got != "-3" {
			t.Errorf("the oldest row is of month %s; want -3", got)
		}
	}, "PostgreSQL", "MariaDB", "MySQL")
}

func TestALayoutThatTheLeasesDoNotHaveIsRefused(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		store, err := sqllease.New(d.DB, sqlstore.Config{Dialect: map[string]sqlstore.Dialect{"SQLite": sqlstore.SQLite, "PostgreSQL": sqlstore.PostgreSQL, "MySQL": sqlstore.MySQL}[d.dialect.String()]})
		if err == nil {
			err = store.CreateTables(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Retire(t.Context(), store, lease.Config{Namespace: "shop", Layout: core.Twitter()}, 7, "test"); err != nil {
			t.Fatal(err)
		}
		d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY)")
		if _, bad, code := d.on(t, "snowkey sql -apply -yes view orders_read orders", ""); code != 2 || !strings.Contains(bad, lease.Fingerprint(core.Twitter())) {
			t.Errorf("another layout = %s, %d; want that of the leases named", bad, code)
		}
		if _, err := d.ExecContext(t.Context(), "SELECT count(*) FROM orders_read"); err == nil {
			t.Error("the view was made")
		}
		if _, bad, code := d.on(t, "snowkey sql -layout twitter -apply -yes view orders_read orders", ""); code != 0 {
			t.Errorf("the layout of the leases = %s, %d", bad, code)
		}
	})
}

// -db takes the keywords of libpq, too.
func TestKeywordsOfLibpqNameADatabase(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		u, err := url.Parse(d.url)
		if err != nil {
			t.Fatal(err)
		}
		password, _ := u.User.Password()
		keywords := fmt.Sprintf("host='%s' dbname=%s user=%s password='%s'", u.Hostname(), strings.TrimPrefix(u.Path, "/"), u.User.Username(), cmp.Or(password, "any"))
		if u.Port() != "" {
			keywords += " port=" + u.Port()
		}
		got := openURL(t, keywords)
		if name := got.text(t, "SELECT current_database()"); name != strings.TrimPrefix(u.Path, "/") || got.dialect != keysql.PostgreSQL {
			t.Errorf("-db %q opens %s; want %s", keywords, name, u.Path)
		}
		for _, bad := range []string{"host=127.0.0.1 port=x password=hidden", "host=127.0.0.1 port=1 password=hidden connect_timeout=1"} {
			if _, err := (&options{db: bad}).open(t.Context()); err == nil || strings.Contains(err.Error(), "hidden") {
				t.Errorf("-db %q = %v; want an error without the password", bad, err)
			}
		}
	}, "PostgreSQL")
}
