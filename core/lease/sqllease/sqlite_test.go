//go:build cgo

package sqllease

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
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

// newStore returns a Store whose tables are there.
func newStore(t *testing.T, db *sql.DB, c Config) *Store {
	t.Helper()
	if c.Dialect == 0 {
		c.Dialect = SQLite
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

// testClaim is a claim that is granted by an empty store.
func testClaim(now time.Time) lease.Claim {
	return lease.Claim{
		Space: lease.Space{Namespace: "shop", Datacenter: 2, Workers: 4, Layout: "41/5/5/12"},
		Owner: rand.Text(), Nonce: "00000000000000000000000000000002",
		Window: 60_000, Now: lease.MillisOf(now), Skew: 5_000,
	}
}

func testRenewal(c lease.Claim, r lease.Reply) lease.Renewal {
	return lease.Renewal{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner, Known: []string{c.Nonce},
		Nonce: "00000000000000000000000000000003", Next: c.Now, Until: r.Row.Until, Window: c.Window, Now: c.Now, Skew: c.Skew,
	}
}

func TestSQLitePassesTheSuite(t *testing.T) {
	for name, options := range map[string]string{
		"WAL":          "_journal_mode=WAL&_synchronous=NORMAL",
		"Delete":       "_journal_mode=DELETE&_synchronous=OFF&_txlock=exclusive&_busy_timeout=0",
		"AttachedFile": "_journal_mode=WAL",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leasetest.Run(t, func(t *testing.T) leasetest.Harness {
				return sqliteHarness(t, name, options)
			})
		})
	}
}

// An attaching connector makes connections to which a file is attached as "other".
type attaching struct{ dsn, file string }

func (a *attaching) Driver() driver.Driver {
	return &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		_, err := c.Exec("ATTACH '"+a.file+"' AS other; PRAGMA other.journal_mode = WAL", nil)
		return err
	}}
}

func (a *attaching) Connect(context.Context) (driver.Conn, error) { return a.Driver().Open(a.dsn) }

func sqliteHarness(t *testing.T, name, options string) leasetest.Harness {
	path := filepath.Join(t.TempDir(), "leases.db")
	admin := openSQLite(t, path, options+"&_busy_timeout=20000")
	execAll(t, admin, "VACUUM") // makes the file
	var clock atomic.Int64
	config := Config{Dialect: SQLite, Logger: slog.New(slog.DiscardHandler)}
	open := func(t *testing.T, db *sql.DB) leasetest.Store {
		s := newStore(t, db, config)
		s.now = func() time.Time { return time.UnixMilli(clock.Load()) }
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
		SetUntil: func(t *testing.T, s lease.Space, worker int64, until lease.Millis) {
			execAll(t, admin, fmt.Sprintf("UPDATE snowkey_leases SET reserved_until = %d WHERE namespace = '%s' AND datacenter = %d AND worker = %d", until, s.Namespace, s.Datacenter, worker))
		},
		Delete: func(t *testing.T, s lease.Space, worker int64) {
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
			db := closing(t, sql.OpenDB(&hooked{dsn: "file:" + path + "?" + options, after: func(query string) error {
				if query == "COMMIT" {
					return lost
				}
				return nil
			}}))
			s, err := New(db, config)
			if err != nil {
				t.Fatal(err)
			}
			s.now = func() time.Time { return time.UnixMilli(clock.Load()) }
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
	if name == "AttachedFile" { // the hooks are for the other file
		h.SetUntil, h.Delete, h.Stall, h.LosesReplies = nil, nil, nil, nil
	}
	return h
}

// hooked opens connections to SQLite that call before and after each statement
// what the test wants. An error of before stands for the statement, which is not
// run; one of after for its answer.
type hooked struct {
	dsn           string
	before, after func(query string) error

	mu   sync.Mutex
	seen []string
}

func (h *hooked) Connect(context.Context) (driver.Conn, error) {
	conn, err := h.Driver().Open(h.dsn)
	if err != nil {
		return nil, err
	}
	return &hookedConn{conn.(*sqlite3.SQLiteConn), h}, nil
}

func (h *hooked) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

func (h *hooked) see(query string) error {
	h.mu.Lock()
	h.seen = append(h.seen, query)
	h.mu.Unlock()
	if h.before != nil {
		return h.before(query)
	}
	return nil
}

func (h *hooked) statements() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.seen
	h.seen = nil
	return seen
}

type hookedConn struct {
	*sqlite3.SQLiteConn
	h *hooked
}

func (c *hookedConn) Close() error {
	_ = c.h.see("close")
	return c.SQLiteConn.Close()
}

func (c *hookedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.h.see(query); err != nil {
		return nil, err
	}
	result, err := c.SQLiteConn.ExecContext(ctx, query, args)
	if err == nil && c.h.after != nil {
		err = c.h.after(query)
	}
	return result, err
}

func (c *hookedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.h.see(query); err != nil {
		return nil, err
	}
	return c.SQLiteConn.QueryContext(ctx, query, args)
}

// newHooked returns a Store in WAL mode whose statements can be seen.
func newHooked(t *testing.T, options string) (*Store, *hooked) {
	t.Helper()
	h := &hooked{dsn: "file:" + filepath.Join(t.TempDir(), "leases.db") + "?" + options}
	db := closing(t, sql.OpenDB(h))
	db.SetMaxOpenConns(1)
	s := newStore(t, db, Config{Logger: slog.New(slog.DiscardHandler)})
	h.statements()
	return s, h
}

func TestWriteIsDurableAndPragmasAreSetBackOnSQLite(t *testing.T) {
	for options, want := range map[string]string{
		"_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=1234": `PRAGMA busy_timeout|PRAGMA busy_timeout = 0|PRAGMA database_list|PRAGMA "main".journal_mode|PRAGMA query_only|PRAGMA "main".synchronous|PRAGMA "main".synchronous = 3|BEGIN IMMEDIATE|SELECT|UPDATE|COMMIT|PRAGMA "main".synchronous = 1|PRAGMA busy_timeout = 1234`,
		"_journal_mode=DELETE&_synchronous=EXTRA&_busy_timeout=0":  `PRAGMA busy_timeout|PRAGMA database_list|PRAGMA "main".journal_mode|PRAGMA query_only|PRAGMA "main".synchronous|BEGIN IMMEDIATE|SELECT|UPDATE|COMMIT`,
	} {
		s, h := newHooked(t, options)
		c := testClaim(time.Now())
		r, err := s.Claim(t.Context(), c)
		if err != nil {
			t.Fatalf("Claim() = %v", err)
		}
		h.statements()
		if _, err := s.Renew(t.Context(), testRenewal(c, r)); err != nil {
			t.Fatalf("Renew() = %v", err)
		}
		var got []string
		for _, text := range h.statements() {
			if verb, _, _ := strings.Cut(text, " "); verb == "SELECT" || verb == "UPDATE" {
				text = verb
			}
			got = append(got, text)
		}
		if got := strings.Join(got, "|"); got != want {
			t.Errorf("%s: Renew() sends %s; want %s", options, got, want)
		}
	}
}

// failing fails the statements that begin with a text, as before or after.
func failing(prefix string) func(string) error {
	return func(query string) error {
		if strings.HasPrefix(query, prefix) {
			return errors.New("no")
		}
		return nil
	}
}

func TestConnectionIsClosedUnlessItIsAsBefore(t *testing.T) {
	for _, test := range []struct {
		before, after string
		renewed       bool // whether the caller gets to know
		stored        bool
	}{
		{before: "UPDATE"}, // given back, see below
		{before: "COMMIT"},
		{after: "COMMIT", stored: true},
		{before: `PRAGMA "main".synchronous = 1`, renewed: true, stored: true},
		{before: "PRAGMA busy_timeout = 1234", renewed: true, stored: true},
	} {
		s, h := newHooked(t, "_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=1234")
		c := testClaim(time.Now())
		r, err := s.Claim(t.Context(), c)
		if err != nil {
			t.Fatalf("Claim() = %v", err)
		}
		h.statements()
		if test.before != "" {
			h.before = failing(test.before)
		}
		if test.after != "" {
			h.after = failing(test.after)
		}
		renewal := testRenewal(c, r)
		_, err = s.Renew(t.Context(), renewal)
		if (err == nil) != test.renewed || definiteError(err) {
			t.Errorf("%+v: Renew() = %v; want renewed %v", test, err, test.renewed)
		}
		h.before, h.after = nil, nil
		closed := strings.Contains(strings.Join(h.statements(), "|"), "close")
		if want := test.before != "UPDATE"; closed != want {
			t.Errorf("%+v: connection closed = %v; want %v", test, closed, want)
		}
		rows, _, err := s.Rows(t.Context(), c.Space)
		if err != nil {
			t.Fatalf("%+v: Rows() = %v", test, err)
		}
		if stored := rows[r.Row.Worker].Nonce == renewal.Nonce; stored != test.stored {
			t.Errorf("%+v: stored = %v; want %v", test, stored, test.stored)
		}
	}
}

func TestDatabaseThatForgetsIsRefused(t *testing.T) {
	for _, dsn := range []string{
		":memory:",
		"file::memory:?cache=shared",
		"file:x?mode=memory&cache=shared",
		"file:?",
		"file:" + filepath.Join(t.TempDir(), "off.db") + "?_journal_mode=OFF",
		"file:" + filepath.Join(t.TempDir(), "memory.db") + "?_journal_mode=MEMORY",
	} {
		s, err := New(closing(t, mustOpen(t, dsn)), Config{Dialect: SQLite})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CreateTables(t.Context()); !errors.Is(err, ErrNotDurable) {
			t.Errorf("%s: CreateTables() = %v; want ErrNotDurable, for good", dsn, err)
		}
		if _, err := s.Claim(t.Context(), testClaim(time.Now())); !errors.Is(err, ErrNotDurable) || !errors.Is(err, lease.ErrPermanent) {
			t.Errorf("%s: Claim() = %v; want ErrNotDurable, for good", dsn, err)
		}
	}
}

// A table without a schema is main's, whose file is what is checked. It is not one of
// the same name in a database that was attached, or a temporary one.
func TestTableWithoutASchemaIsInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leases.db")
	db := openSQLite(t, path, "_journal_mode=DELETE")
	db.SetMaxOpenConns(1)
	execAll(t, db, "ATTACH ':memory:' AS forgets")
	s, err := New(db, Config{Dialect: SQLite, Logger: slog.New(slog.DiscardHandler)})
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
	r, err := newStore(t, db, Config{}).Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim() = %v", err)
	}
	for options, want := range map[string]string{
		"mode=ro":        "read-only",
		"_query_only=on": "read-only",
	} {
		s, err := New(openSQLite(t, path, options), Config{Dialect: SQLite})
		if err != nil {
			t.Fatal(err)
		}
		for call, err := range map[string]error{
			"Renew": func() error { _, err := s.Renew(t.Context(), testRenewal(c, r)); return err }(),
			"Claim": func() error { _, err := s.Claim(t.Context(), testClaim(time.Now())); return err }(),
		} {
			if !errors.Is(err, ErrReadOnly) || definiteError(err) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s() = %v; want ErrReadOnly that says %q", options, call, err, want)
			}
		}
	}
	if _, err := newStore(t, db, Config{}).Renew(t.Context(), testRenewal(c, r)); err != nil {
		t.Errorf("Renew() on the writable file = %v; want it renewed", err)
	}
}

func TestFullDiskIsNamed(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "leases.db"), "_journal_mode=DELETE")
	db.SetMaxOpenConns(1)
	s := newStore(t, db, Config{Logger: slog.New(slog.DiscardHandler)})
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
	s, err := New(db, Config{Dialect: SQLite, Table: "Leases"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Claim(t.Context(), testClaim(time.Now()))
	var table *TableError
	if !errors.Is(err, ErrNoTable) || !errors.Is(err, lease.ErrPermanent) || !errors.As(err, &table) || !strings.Contains(err.Error(), s.Statements()[0]) || !strings.Contains(err.Error(), s.Statements()[1]) {
		t.Errorf("Claim() without tables = %v; want ErrNoTable and the statements", err)
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
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "schema_version is 2, want 1") {
			t.Errorf("%s() of another version = %v; want ErrSchema", call, err)
		}
	}
	execAll(t, db, "DROP TABLE Leases", "CREATE TABLE Leases (id INTEGER, namespace TEXT)")
	if err := s.CreateTables(t.Context()); !errors.Is(err, ErrSchema) {
		t.Errorf("CreateTables() with a foreign table = %v; want ErrSchema", err)
	}
}

func TestPoolOfOneWorksAndIsWarnedOfOnce(t *testing.T) {
	var log bytes.Buffer
	db := openSQLite(t, filepath.Join(t.TempDir(), "leases.db"), "_journal_mode=WAL")
	s := newStore(t, db, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if _, err := s.Claim(t.Context(), testClaim(time.Now())); err != nil || log.Len() > 0 {
		t.Errorf("Claim() = %v, log %q; want no warning of a pool without limit", err, log.String())
	}
	db.SetMaxOpenConns(1)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for db.Stats().WaitCount == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := s.Claim(ctx, testClaim(time.Now())); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the pool's 1 connections are all in use") {
		t.Errorf("Claim() while a transaction has the connection = %v; want Canceled, and that the pool has no other", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), testClaim(time.Now())); err != nil {
		t.Errorf("Claim() afterwards = %v; want a row", err)
	}
	if n := strings.Count(log.String(), "the pool has one connection"); n != 1 {
		t.Errorf("log = %q; want one warning of the pool", log.String())
	}
}

// The COMMIT of a claim may be done though its answer is lost. The claim would then
// hold a row for a window, for nobody.
func TestAClaimWhoseCommitIsUnknownIsLookedFor(t *testing.T) {
	lost := errors.New("the answer is lost")
	for _, test := range []struct {
		name    string
		commits func(n int) (before, after error) // of the COMMIT that is number n
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
		}, false, 0},
		{"done, and unknown again", func(int) (_, after error) { return nil, lost }, false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, h := newHooked(t, "_journal_mode=WAL")
			c := testClaim(time.Now())
			if _, err := s.Claim(t.Context(), c); err != nil { // makes the rows
				t.Fatal(err)
			}
			c.Owner = "00000000000000000000000000000009"
			n := 0
			var after error
			h.before = func(query string) (before error) {
				after = nil
				if query == "COMMIT" {
					n++
					before, after = test.commits(n)
				}
				return before
			}
			h.after = func(string) error { return after }
			r, err := s.Claim(t.Context(), c)
			h.before, h.after = nil, nil
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

// With a rollback journal a reader stops the COMMIT, not the transaction.
func TestReaderDelaysTheCommit(t *testing.T) {
	s, h := newHooked(t, "_journal_mode=DELETE&_busy_timeout=0")
	c := testClaim(time.Now())
	r, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim() = %v", err)
	}
	reader, err := closing(t, mustOpen(t, h.dsn)).Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRow("SELECT COUNT(*) FROM snowkey_leases").Scan(&n); err != nil {
		t.Fatal(err)
	}
	h.statements()
	commits := 0
	h.before = func(query string) error {
		if query == "COMMIT" {
			if commits++; commits == 3 {
				return reader.Rollback()
			}
		}
		return nil
	}
	if _, err := s.Renew(t.Context(), testRenewal(c, r)); err != nil || commits != 3 {
		t.Errorf("Renew() = %v after %d commits; want it renewed after 3", err, commits)
	}
}

func TestBrokenConnectionIsReplacedBeforeTheCommit(t *testing.T) {
	s, h := newHooked(t, "_journal_mode=WAL")
	c := testClaim(time.Now())
	r, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim() = %v", err)
	}
	h.statements()
	broken := false
	h.before = func(query string) error {
		if strings.HasPrefix(query, "UPDATE") && !broken {
			broken = true
			return driver.ErrBadConn
		}
		return nil
	}
	reply, err := s.Renew(t.Context(), testRenewal(c, r))
	if err != nil || reply.Row.Renewals != 2 {
		t.Errorf("Renew() = %+v, %v; want it renewed once", reply, err)
	}
	if seen := strings.Join(h.statements(), "|"); !strings.Contains(seen, "close") {
		t.Errorf("Renew() sends %s; want the broken connection closed", seen)
	}
}
