//go:build cgo

package sqlrow

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

// openSQLite opens a pool, closed at the end of the test.
func openSQLite(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("sqlite3", dsn)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, pool)
}

func closing(t *testing.T, pool *sql.DB) *sql.DB {
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return pool
}

// makeCounter makes the table of bump.
func makeCounter(t *testing.T, pool *sql.DB) {
	t.Helper()
	for _, text := range []string{"CREATE TABLE t (n INTEGER)", "INSERT INTO t VALUES (7)"} {
		if _, err := pool.Exec(text); err != nil {
			t.Fatalf("Exec(%q) = %v", text, err)
		}
	}
}

// watched returns a DB on one connection to a file with a counter of 7. The connection
// can be watched.
func watched(t *testing.T, options string) (*DB, *sqlitetest.Connector) {
	t.Helper()
	c := &sqlitetest.Connector{DSN: "file:" + filepath.Join(sqlitetest.Folder(t), "counter.db") + "?" + options}
	pool := closing(t, sql.OpenDB(c))
	pool.SetMaxOpenConns(1)
	makeCounter(t, pool)
	c.Sent()
	return newDB(pool, dialect.SQLite, nil), c
}

// anyMark matches the statement that gives a connection its mark.
var anyMark = regexp.MustCompile(`(temp\.application_id = )-?\d+`)

func TestWriteIsDurableAndPragmasAreSetBackOnSQLite(t *testing.T) {
	for options, want := range map[string]string{
		"_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=1234": `PRAGMA busy_timeout|PRAGMA busy_timeout = 0|PRAGMA database_list|PRAGMA "main".journal_mode|PRAGMA query_only|PRAGMA temp.application_id|PRAGMA temp.application_id = mark|PRAGMA "main".synchronous|PRAGMA "main".synchronous = 3|BEGIN IMMEDIATE|SELECT n FROM t|UPDATE t SET n = n + 1|COMMIT|PRAGMA "main".wal_checkpoint(PASSIVE)|PRAGMA "main".synchronous = 1|PRAGMA busy_timeout = 1234`,
		"_journal_mode=DELETE&_synchronous=FULL&_busy_timeout=0":   `PRAGMA busy_timeout|PRAGMA database_list|PRAGMA "main".journal_mode|PRAGMA query_only|PRAGMA temp.application_id|PRAGMA "main".synchronous|PRAGMA "main".synchronous = 3|BEGIN IMMEDIATE|SELECT n FROM t|UPDATE t SET n = n + 1|COMMIT|PRAGMA "main".synchronous = 2`,
		"_journal_mode=DELETE&_synchronous=EXTRA&_busy_timeout=0":  `PRAGMA busy_timeout|PRAGMA database_list|PRAGMA "main".journal_mode|PRAGMA query_only|PRAGMA temp.application_id|PRAGMA "main".synchronous|BEGIN IMMEDIATE|SELECT n FROM t|UPDATE t SET n = n + 1|COMMIT`,
	} {
		d, c := watched(t, options)
		if n, err := bump(t.Context(), d); n != 8 || err != nil {
			t.Errorf("%s: Do() = %d, %v; want 8", options, n, err)
		}
		if got := anyMark.ReplaceAllString(strings.Join(c.Sent(), "|"), "${1}mark"); got != want {
			t.Errorf("%s: Do() sends %s; want %s", options, got, want)
		}
	}
}

// failing fails the statements that begin with a text.
func failing(prefix string) func(string) error {
	return func(query string) error {
		if prefix != "" && strings.HasPrefix(query, prefix) {
			return errors.New("no")
		}
		return nil
	}
}

func TestConnectionIsClosedUnlessItIsAsBefore(t *testing.T) {
	for _, test := range []struct {
		before, after string
		done          bool // as the caller gets to know
		stored        int64
	}{
		{before: "UPDATE", stored: 7}, // given back, see below
		{before: "COMMIT", stored: 7},
		{after: "COMMIT", stored: 8},
		{before: "BEGIN", stored: 7},
		{before: `PRAGMA "main".synchronous = 1`, done: true, stored: 8},
		{before: "PRAGMA busy_timeout = 1234", done: true, stored: 8},
	} {
		d, c := watched(t, "_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=1234")
		c.Before, c.After = failing(test.before), failing(test.after)
		if _, err := bump(t.Context(), d); (err == nil) != test.done || errors.Is(err, ErrCommit) != (test.before+test.after == "COMMIT") {
			t.Errorf("%+v: Do() = %v; want done %v", test, err, test.done)
		}
		c.Before, c.After = nil, nil
		closed := strings.Contains(strings.Join(c.Sent(), "|"), "close")
		if want := test.before != "UPDATE"; closed != want {
			t.Errorf("%+v: connection closed = %v; want %v", test, closed, want)
		}
		if n, err := bump(t.Context(), d); n != test.stored+1 || err != nil {
			t.Errorf("%+v: the next Do() = %d, %v; want %d", test, n, err, test.stored+1)
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
		pool := openSQLite(t, dsn)
		pool.SetMaxOpenConns(1)
		makeCounter(t, pool)
		if n, err := bump(t.Context(), newDB(pool, dialect.SQLite, nil)); n != 0 || !errors.Is(err, ErrNotDurable) {
			t.Errorf("%s: Do() = %d, %v; want ErrNotDurable", dsn, n, err)
		}
	}
}

func TestFileThatCannotBeWrittenIsReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter.db")
	makeCounter(t, openSQLite(t, "file:"+path))
	for _, options := range []string{"mode=ro", "_query_only=on"} {
		pool := openSQLite(t, "file:"+path+"?"+options)
		if n, err := bump(t.Context(), newDB(pool, dialect.SQLite, nil)); n != 0 || !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: Do() = %d, %v; want ErrReadOnly", options, n, err)
		}
	}
}

func TestAPoolThatIsInUseIsNamedWhenTheContextEnds(t *testing.T) {
	d, _ := watched(t, "_journal_mode=WAL")
	tx, err := d.pool.Begin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for d.pool.Stats().WaitCount == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := bump(ctx, d); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "connect: the pool's 1 connections are all in use") {
		t.Errorf("Do() while a transaction has the connection = %v; want Canceled, and that the pool has no other", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n, err := bump(t.Context(), d); n != 8 || err != nil {
		t.Errorf("Do() afterwards = %d, %v; want 8", n, err)
	}
}

// With a rollback journal a reader stops the COMMIT, not the transaction.
func TestReaderDelaysTheCommit(t *testing.T) {
	d, c := watched(t, "_journal_mode=DELETE&_busy_timeout=0")
	reader, err := openSQLite(t, c.DSN).Begin()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRow(selectN).Scan(&n); err != nil {
		t.Fatal(err)
	}
	commits := 0
	c.Before = func(query string) error {
		if query == "COMMIT" {
			if commits++; commits == 3 {
				return reader.Rollback()
			}
		}
		return nil
	}
	if n, err := bump(t.Context(), d); n != 8 || err != nil || commits != 3 {
		t.Errorf("Do() = %d, %v after %d commits; want 8 after 3", n, err, commits)
	}
}

func TestAWriterIsWaitedForUntilTheContextEnds(t *testing.T) {
	d, c := watched(t, "_journal_mode=WAL&_busy_timeout=60000")
	writer, err := openSQLite(t, c.DSN+"&_txlock=immediate").Begin()
	if err != nil {
		t.Fatal(err)
	}
	begins, ends := 0, 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Before = func(query string) error {
		if query == "BEGIN IMMEDIATE" {
			if begins++; begins == ends {
				cancel()
			}
		}
		return nil
	}
	if n, err := bump(ctx, d); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Do() while another writes = %d, %v; want Canceled", n, err)
	}
	c.Before = nil
	if err := writer.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n, err := bump(t.Context(), d); n != 8 || err != nil {
		t.Errorf("Do() afterwards = %d, %v; want 8", n, err)
	}
}

func TestBrokenConnectionIsReplacedBeforeTheCommit(t *testing.T) {
	d, c := watched(t, "_journal_mode=WAL")
	broken := false
	c.Before = func(query string) error {
		if strings.HasPrefix(query, "UPDATE") && !broken {
			broken = true
			return driver.ErrBadConn
		}
		return nil
	}
	if n, err := bump(t.Context(), d); n != 8 || err != nil {
		t.Errorf("Do() = %d, %v; want 8", n, err)
	}
	if sent := strings.Join(c.Sent(), "|"); !strings.Contains(sent, "close") {
		t.Errorf("Do() sends %s; want the broken connection closed", sent)
	}
}

func TestTheClockOfSQLiteIsThatOfTheConfig(t *testing.T) {
	d, _ := watched(t, "_journal_mode=WAL")
	want := time.UnixMilli(1_800_000_000_000)
	d.config.Now = func() time.Time { return want }
	got, err := Do(t.Context(), d, func(tx *Tx) (time.Time, error) { return tx.Now, nil })
	if err != nil || !got.Equal(want) {
		t.Errorf("Now = %v, %v; want %v", got, err, want)
	}
}
