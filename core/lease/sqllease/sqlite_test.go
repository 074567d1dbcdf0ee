//go:build cgo

package sqllease

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/filesystem"
	"github.com/snowkey/snowkey/internal/proof/servers/filesystemtest"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

// openSQLite opens a pool on a file, closed at the end of the test.
func openSQLite(t *testing.T, path, options string) *sql.DB {
	t.Helper()
	return closing(t, mustOpen(t, "file:"+path+"?"+options))
}

func mustOpen(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func closing(t *testing.T, db *sql.DB) *sql.DB {
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return db
}

func execAll(t *testing.T, db *sql.DB, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("Exec(%q) = %v", text, err)
		}
	}
}

// newStore returns a Store whose tables exist.
func newStore(t *testing.T, db *sql.DB, c sqlstore.Config) *Store {
	t.Helper()
	if c.Dialect == 0 {
		c.Dialect = sqlstore.SQLite
	}
	s, err := New(db, c)
	if err != nil {
		t.Fatalf("New(db, %+v) = %v", c, err)
	}
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatalf("CreateTables() = %v", err)
	}
	return s
}

// testClaim returns a claim that an empty store grants.
func testClaim(now time.Time) leasestore.Claim {
	return leasestore.Claim{
		Space: leasestore.Space{Namespace: "shop", Datacenter: 2, Workers: 4, Layout: "41/5/5/12"},
		Owner: rand.Text(), Nonce: "00000000000000000000000000000002",
		Window: 60_000, Now: leasestore.MillisOf(now), Skew: 5_000,
	}
}

func testRenewal(c leasestore.Claim, r leasestore.Reply) leasestore.Renewal {
	return leasestore.Renewal{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner, Known: []string{c.Nonce},
		Nonce: "00000000000000000000000000000003", Next: c.Now, Until: r.Row.Until, Window: c.Window, Now: c.Now, Skew: c.Skew,
	}
}

var large = flag.Bool("large", false, "run the suite in WAL mode too, with and without an attached file")

func TestSQLitePassesTheSuite(t *testing.T) {
	for name, options := range map[string]string{
		"WAL":          "_journal_mode=WAL&_synchronous=NORMAL",
		"Delete":       "_journal_mode=DELETE&_synchronous=OFF&_txlock=exclusive&_busy_timeout=0",
		"AttachedFile": "_journal_mode=WAL",
	} {
		if name != "Delete" && !*large {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leasetest.Run(t, func(t *testing.T) leasetest.Harness {
				return sqliteHarness(t, name, options)
			})
		})
	}
}

func TestSQLitePassesTheSuiteOfRegisters(t *testing.T) {
	for _, mode := range []string{"WAL", "DELETE"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			leasetest.RunRegister(t, func(t *testing.T) leasetest.RegisterHarness {
				path := filepath.Join(sqlitetest.Folder(t), "leases.db")
				open := func(t *testing.T) *sql.DB { return openSQLite(t, path, "_journal_mode="+mode+"&_busy_timeout=20000") }
				admin := open(t)
				return leasetest.RegisterHarness{
					Open: func(t *testing.T) leasestore.Register {
						return newStore(t, open(t), sqlstore.Config{Logger: slog.New(slog.DiscardHandler)}).Register()
					},
					Delete: func(t *testing.T, s leasestore.Space, worker int64) {
						execAll(t, admin, fmt.Sprintf("DELETE FROM snowkey_leases WHERE namespace = '%s' AND worker = %d", s.Namespace, worker))
					},
				}
			})
		})
	}
}

// An attaching connector makes connections with a file attached as "other".
type attaching struct{ dsn, file string }

func (a *attaching) Driver() driver.Driver {
	return &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		_, err := c.Exec("ATTACH '"+a.file+"' AS other; PRAGMA other.journal_mode = WAL", nil)
		return err
	}}
}

func (a *attaching) Connect(context.Context) (driver.Conn, error) { return a.Driver().Open(a.dsn) }

func sqliteHarness(t *testing.T, name, options string) leasetest.Harness {
	path := filepath.Join(sqlitetest.Folder(t), "leases.db")
	admin := openSQLite(t, path, options+"&_busy_timeout=20000")
	execAll(t, admin, "VACUUM") // makes the file
	var clock atomic.Int64
	config := sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.DiscardHandler)}
	open := func(t *testing.T, db *sql.DB) leasetest.Store {
		s := newStore(t, db, config)
		s.register.now = func() time.Time { return time.UnixMilli(clock.Load()) }
		return s
	}
	h := leasetest.Harness{
		Seed: 1, // the same in every run: a release must not depend on luck
		Open: func(t *testing.T) leasetest.Store {
			db := openSQLite(t, path, options)
			if name == "AttachedFile" {
				db = closing(t, sql.OpenDB(&attaching{dsn: "file:" + path + "?" + options, file: path + "2"}))
				config.Table = "other.leases"
			}
			db.SetMaxOpenConns(1)
			return open(t, db)
		},
		SetUntil: func(t *testing.T, s leasestore.Space, worker int64, until leasestore.Millis) {
			execAll(t, admin, fmt.Sprintf("UPDATE snowkey_leases SET reserved_until = %d WHERE namespace = '%s' AND datacenter = %d AND worker = %d", until, s.Namespace, s.Datacenter, worker))
		},
		Delete: func(t *testing.T, s leasestore.Space, worker int64) {
			execAll(t, admin, fmt.Sprintf("DELETE FROM snowkey_leases WHERE namespace = '%s' AND datacenter = %d AND worker = %d", s.Namespace, s.Datacenter, worker))
		},
		Stall: func(t *testing.T) func() {
			conn, err := admin.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			return func() {
				if _, err := conn.ExecContext(context.WithoutCancel(t.Context()), "ROLLBACK"); err != nil {
					t.Error(err)
				}
				conn.Close()
			}
		},
		LosesReplies: func(t *testing.T) leasetest.Store {
			lost := errors.New("the answer is lost")
			db := closing(t, sql.OpenDB(&sqlitetest.Connector{DSN: "file:" + path + "?" + options, After: func(query string) error {
				if query == "COMMIT" {
					return lost
				}
				return nil
			}}))
			s, err := New(db, config)
			if err != nil {
				t.Fatal(err)
			}
			s.register.now = func() time.Time { return time.UnixMilli(clock.Load()) }
			return s
		},
		Unreachable: func(t *testing.T) leasetest.Store {
			s, err := New(openSQLite(t, filepath.Join(path, "no", "folder"), "_auth_pass=sesame"), config)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Secret:   "sesame",
		SetClock: func(_ *testing.T, now time.Time) { clock.Store(now.UnixMilli()) },
	}
	if name == "AttachedFile" { // the hooks concern the other file
		h.SetUntil, h.Delete, h.Stall, h.LosesReplies = nil, nil, nil, nil
	}
	return h
}

// newWatched returns a Store in WAL mode whose statements can fail.
func newWatched(t *testing.T) (*Store, *sqlitetest.Connector) {
	t.Helper()
	w := &sqlitetest.Connector{DSN: "file:" + filepath.Join(sqlitetest.Folder(t), "leases.db") + "?_journal_mode=WAL"}
	db := closing(t, sql.OpenDB(w))
	db.SetMaxOpenConns(1)
	return newStore(t, db, sqlstore.Config{Logger: slog.New(slog.DiscardHandler)}), w
}

func TestDatabaseThatForgetsIsRefused(t *testing.T) {
	for _, dsn := range []string{
		":memory:",
		"file:" + filepath.Join(t.TempDir(), "off.db") + "?_journal_mode=OFF",
	} {
		s, err := New(closing(t, mustOpen(t, dsn)), sqlstore.Config{Dialect: sqlstore.SQLite})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CreateTables(t.Context()); !errors.Is(err, sqlstore.ErrNotDurable) {
			t.Errorf("%s: CreateTables() = %v; want sqlstore.ErrNotDurable, for good", dsn, err)
		}
		if _, err := s.Claim(t.Context(), testClaim(time.Now())); !errors.Is(err, sqlstore.ErrNotDurable) || !errors.Is(err, leasestore.ErrPermanent) {
			t.Errorf("%s: Claim() = %v; want sqlstore.ErrNotDurable, for good", dsn, err)
		}
	}
}

func TestAFileOnFUSEIsTakenIfTheConfigAllowsIt(t *testing.T) {
	folder := t.TempDir()
	filesystemtest.On(t, filesystem.FUSE, folder)
	for _, allows := range []bool{false, true} {
		s, err := New(openSQLite(t, filepath.Join(folder, "leases.db"), "_journal_mode=WAL"),
			sqlstore.Config{Dialect: sqlstore.SQLite, AllowFUSE: allows, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CreateTables(t.Context()); allows && err != nil || !allows && !errors.Is(err, sqlstore.ErrNotDurable) {
			t.Errorf("AllowFUSE %t: CreateTables() on FUSE = %v; want ErrNotDurable unless it is allowed", allows, err)
		}
	}
}

// A claim reads few rows first, and all of them if none of these is free.
func TestALargeSpaceThatIsNearlyFullGivesItsLastRows(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "leases.db"), "_journal_mode=WAL")
	s := newStore(t, db, sqlstore.Config{Logger: slog.New(slog.DiscardHandler)})
	c := testClaim(time.Now())
	c.Space.Workers = 8 * near
	if _, err := s.Claim(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	until := leasestore.MillisOf(time.Now()) + 100*c.Window
	execAll(t, db, fmt.Sprintf("UPDATE snowkey_leases SET owner = 'x', reserved_until = %d", until),
		"UPDATE snowkey_leases SET owner = '', reserved_until = 0 WHERE worker IN (0, 5000, 8191)")
	got := map[int64]bool{}
	for range 3 {
		c.Owner, c.Nonce, c.Now = rand.Text(), rand.Text(), leasestore.MillisOf(time.Now())
		r, err := s.Claim(t.Context(), c)
		if err != nil {
			t.Fatalf("Claim() = %v; want one of three rows", err)
		}
		got[r.Row.Worker] = true
	}
	if !got[0] || !got[5000] || !got[8191] {
		t.Errorf("claims took %v; want 0, 5000 and 8191", got)
	}
	c.Owner = rand.Text()
	var none *leasestore.NoFreeWorkerError
	if _, err := s.Claim(t.Context(), c); !errors.As(err, &none) || none.Rows != 8*near {
		t.Errorf("Claim() of a full space = %v; want an error about all %d rows", err, 8*near)
	}
}

// The claims of a large, empty space are spread over all of it.
func TestClaimsOfALargeSpaceAreApart(t *testing.T) {
	db := openSQLite(t, filepath.Join(sqlitetest.Folder(t), "leases.db"), "_journal_mode=WAL")
	s := newStore(t, db, sqlstore.Config{Logger: slog.New(slog.DiscardHandler)})
	c := testClaim(time.Now())
	c.Space.Workers = 1 << 16
	eighths := map[int64]bool{}
	for range 100 { // all eighths, except in one run of 80,000
		c.Owner, c.Nonce, c.Now = rand.Text(), rand.Text(), leasestore.MillisOf(time.Now())
		r, err := s.Claim(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		eighths[r.Row.Worker>>13] = true
	}
	if len(eighths) != 8 {
		t.Errorf("100 claims are in the eighths %v of the space; want all 8", eighths)
	}
}

// To choose among all rows at random, the database would have to read and sort them.
func TestAClaimReadsNoMoreRowsThanItChoosesFrom(t *testing.T) {
	s, w := newWatched(t)
	if _, err := s.Claim(t.Context(), testClaim(time.Now())); err != nil {
		t.Fatal(err)
	}
	sent := w.Sent()
	find := sent[slices.IndexFunc(sent, func(text string) bool { return strings.Contains(text, "LIMIT") })]
	db := closing(t, sql.OpenDB(w))
	var plan []string
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+find, slices.Repeat([]any{1}, strings.Count(find, "?"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var detail string
		if err := rows.Scan(new(any), new(any), new(any), &detail); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(plan, "\n")
	if !strings.Contains(all, "namespace=? AND datacenter=? AND worker>? AND worker<?") || strings.Contains(all, "B-TREE") || strings.Contains(all, "SCAN snowkey_leases") {
		t.Errorf("plan of a claim = %q; want a search by the key alone, without a sort", plan)
	}
}

// Two processes with a log each would hold the same number.
func TestAFileWithTwoNamesGivesNoLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	f := newFileStore(t, path, "_journal_mode=WAL")
	if err := os.Link(path, path+".second"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	_, claim := f.Claim(t.Context(), testClaim(time.Now()))
	_, renew := f.Renew(t.Context(), testRenewal(f.claim, f.reply))
	for call, err := range map[string]error{"Claim": claim, "Renew": renew} {
		if !errors.Is(err, sqlstore.ErrNotDurable) || !errors.Is(err, leasestore.ErrPermanent) || errors.Is(err, leasestore.ErrLost) || !strings.Contains(err.Error(), path+": it has 2 names") {
			t.Errorf("%s() in a file with two names = %v; want sqlstore.ErrNotDurable and the file", call, err)
		}
	}
	if err := os.Remove(path + ".second"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Renew(t.Context(), testRenewal(f.claim, f.reply)); err != nil {
		t.Errorf("Renew() when the second name is gone = %v; want nil", err)
	}
}

func TestTableWithoutASchemaIsInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	db := openSQLite(t, path, "_journal_mode=DELETE")
	db.SetMaxOpenConns(1)
	execAll(t, db, "ATTACH ':memory:' AS forgets")
	s, err := New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range s.Statements() {
		execAll(t, db, strings.Replace(text, `"main"`, "forgets", 1), strings.Replace(text, "CREATE TABLE IF NOT EXISTS \"main\".", "CREATE TEMP TABLE ", 1))
	}
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), testClaim(time.Now())); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := openSQLite(t, path, "").QueryRow("SELECT count(*) FROM snowkey_leases WHERE owner <> ''").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("the file has %d rows that are held, error %v; want the one claimed", rows, err)
	}
}

func TestFileThatCannotBeWrittenKeepsTheLease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	db := openSQLite(t, path, "_journal_mode=DELETE")
	c := testClaim(time.Now())
	r, err := newStore(t, db, sqlstore.Config{}).Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim() = %v", err)
	}
	for options, want := range map[string]string{
		"mode=ro":        "read-only",
		"_query_only=on": "read-only",
	} {
		s, err := New(openSQLite(t, path, options), sqlstore.Config{Dialect: sqlstore.SQLite})
		if err != nil {
			t.Fatal(err)
		}
		for call, err := range map[string]error{
			"Renew": func() error { _, err := s.Renew(t.Context(), testRenewal(c, r)); return err }(),
			"Claim": func() error { _, err := s.Claim(t.Context(), testClaim(time.Now())); return err }(),
		} {
			if !errors.Is(err, sqlstore.ErrReadOnly) || definiteError(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s() = %v; want sqlstore.ErrReadOnly that says %q", options, call, err, want)
			}
		}
	}
	if _, err := newStore(t, db, sqlstore.Config{}).Renew(t.Context(), testRenewal(c, r)); err != nil {
		t.Errorf("Renew() on the writable file = %v; want it renewed", err)
	}
}

func TestFullDiskIsNamed(t *testing.T) {
	db := openSQLite(t, filepath.Join(sqlitetest.Folder(t), "leases.db"), "_journal_mode=DELETE")
	db.SetMaxOpenConns(1)
	s := newStore(t, db, sqlstore.Config{Logger: slog.New(slog.DiscardHandler)})
	execAll(t, db, "PRAGMA max_page_count = 6")
	c := testClaim(time.Now())
	c.Space.Workers = 1 << 16
	if _, err := s.Claim(t.Context(), c); err == nil || !strings.Contains(err.Error(), "disk is full") || definiteError(err) {
		t.Errorf("Claim() on a full disk = %v; want it to say so", err)
	}
	execAll(t, db, "PRAGMA max_page_count = 1000000")
	if rows, _, err := s.Rows(t.Context(), c.Space); err != nil || len(rows) != 0 {
		t.Errorf("Rows() = %d rows, %v; want none, all or nothing", len(rows), err)
	}
	if _, err := s.Claim(t.Context(), c); err != nil {
		t.Errorf("Claim() with room again = %v; want a row", err)
	}
}

func TestMissingOrForeignTablesAreNamed(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "leases.db"), "_journal_mode=WAL")
	s, err := New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Table: "Leases"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Claim(t.Context(), testClaim(time.Now()))
	var table *sqlstore.TableError
	if !errors.Is(err, sqlstore.ErrNoTable) || !errors.Is(err, leasestore.ErrPermanent) || !errors.As(err, &table) || !strings.Contains(err.Error(), s.Statements()[0]) || !strings.Contains(err.Error(), s.Statements()[1]) {
		t.Errorf("Claim() without tables = %v; want sqlstore.ErrNoTable and the statements", err)
	}
	execAll(t, db, table.Statements...)
	if _, err := s.Claim(t.Context(), testClaim(time.Now())); err != nil {
		t.Errorf("Claim() after the statements = %v; want a row", err)
	}
	execAll(t, db, "UPDATE Leases_meta SET schema_version = 2")
	for call, err := range map[string]error{
		"CreateTables": s.CreateTables(t.Context()),
		"Claim":        func() error { _, err := s.Claim(t.Context(), testClaim(time.Now())); return err }(),
	} {
		if !errors.Is(err, sqlstore.ErrSchema) || !strings.Contains(err.Error(), "schema_version is 2, want 1") {
			t.Errorf("%s() of another version = %v; want sqlstore.ErrSchema", call, err)
		}
	}
	execAll(t, db, "DROP TABLE Leases", "CREATE TABLE Leases (id INTEGER, namespace TEXT)")
	if err := s.CreateTables(t.Context()); !errors.Is(err, sqlstore.ErrSchema) {
		t.Errorf("CreateTables() with a foreign table = %v; want sqlstore.ErrSchema", err)
	}
}

// The COMMIT of a claim may have taken effect although its answer is lost. Without a search,
// the row would be reserved for a window without a holder.
func TestAClaimWhoseCommitIsUnknownIsLookedFor(t *testing.T) {
	lost := errors.New("the answer is lost")
	for _, test := range []struct {
		name    string
		commits func(n int) (before, after error) // of the n-th COMMIT
		granted bool
		held    int // rows
	}{
		{"done", func(n int) (_, after error) {
			if n == 1 {
				after = lost
			}
			return nil, after
		}, true, 1},
		{"not done", func(n int) (before, _ error) {
			if n == 1 {
				before = lost
			}
			return before, nil
		}, true, 1}, // it is asked for again
		{"done, and unknown again", func(int) (_, after error) { return nil, lost }, false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, w := newWatched(t)
			c := testClaim(time.Now())
			if _, err := s.Claim(t.Context(), c); err != nil { // makes the rows
				t.Fatal(err)
			}
			c.Owner = "00000000000000000000000000000009"
			n := 0
			var after error
			w.Before = func(query string) (before error) {
				after = nil
				if query == "COMMIT" {
					n++
					before, after = test.commits(n)
				}
				return before
			}
			w.After = func(string) error { return after }
			r, err := s.Claim(t.Context(), c)
			w.Before, w.After = nil, nil
			if (err == nil) != test.granted || definiteError(err) || err != nil && !errors.Is(err, lost) {
				t.Errorf("Claim() = %+v, %v; want it granted: %v", r, err, test.granted)
			}
			rows, _, err := s.Rows(t.Context(), c.Space)
			if err != nil {
				t.Fatal(err)
			}
			held := 0
			for _, row := range rows {
				if row.Owner == c.Owner {
					held++
				}
			}
			if held != test.held {
				t.Errorf("rows of the claimant = %d; want %d", held, test.held)
			}
			if test.granted {
				if rows[r.Row.Worker] != r.Row || r.Row.Nonce != c.Nonce {
					t.Errorf("Claim() = %+v; want the row as it is stored, %+v", r, rows[r.Row.Worker])
				}
				if _, err := s.Renew(t.Context(), testRenewal(c, r)); err != nil {
					t.Errorf("Renew() = %v; want it renewed", err)
				}
			}
		})
	}
}
