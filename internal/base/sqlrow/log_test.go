//go:build cgo && unix

package sqlrow

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/filesystem"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

// bumping is the environment variable that makes the test binary a process that bumps the
// counter in a file, the value.
const bumping = "SNOWKEY_SQLROW_BUMP"

func TestMain(m *testing.M) {
	if path := os.Getenv(bumping); path != "" {
		go func() { // the test ends it so, and so does the end of the test
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		fmt.Println("error", bumpOnAll(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// bumpOnAll bumps on several connections in turn and prints each number, until an error.
func bumpOnAll(path string) error {
	pool, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		return err
	}
	const conns = 3
	pool.SetMaxIdleConns(conns)
	d := New(pool, Config{
		Dialect: dialect.SQLite, Table: "t",
		Verdict: func(error) bool { return false },
		Warn:    func(context.Context, string, ...any) {},
		Now:     time.Now,
	})
	var (
		mu   sync.Mutex // of the output
		ends = make(chan error, conns)
	)
	for range conns {
		go func() {
			for {
				n, err := bump(context.Background(), d)
				if err != nil {
					ends <- err
					return
				}
				mu.Lock()
				fmt.Println(n)
				mu.Unlock()
			}
		}()
	}
	err = <-ends
	for range conns - 1 {
		err = errors.Join(err, <-ends)
	}
	return err
}

// A bumper is a process that does so.
type bumper struct {
	t      *testing.T
	stdin  io.Closer
	out    *bufio.Scanner
	counts map[string]int // of each number, of all processes
	err    string         // by which it has ended
}

func startBumper(t *testing.T, path string, counts map[string]int) *bumper {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), bumping+"="+path)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	return &bumper{t: t, stdin: stdin, out: bufio.NewScanner(stdout), counts: counts}
}

// read reads up to n numbers, and fewer if the process has ended.
func (b *bumper) read(n int) int {
	for i := range n {
		if !b.out.Scan() {
			return i
		}
		if text, failed := strings.CutPrefix(b.out.Text(), "error "); failed {
			b.err = text
			for b.out.Scan() {
				b.err += "\n" + b.out.Text()
			}
			return i
		}
		b.counts[b.out.Text()]++
	}
	return n
}

// Whoever finds a database locked may remove its log, and start the program again. The
// processes that still run would go on in a log that no other sees.
func TestALogThatIsRemovedRepeatsNothingAndEndsTheProcesses(t *testing.T) {
	for name, suffixes := range map[string][]string{"log and index": {"-wal", "-shm"}, "log": {"-wal"}, "index": {"-shm"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(sqlitetest.Folder(t), "counter.db")
			makeFile(t, path, "WAL")
			counts := map[string]int{}
			old := []*bumper{startBumper(t, path, counts), startBumper(t, path, counts)}
			for _, b := range old {
				if b.read(50) < 50 {
					t.Fatalf("a process ended with %s; want it to go on", b.err)
				}
			}
			for _, suffix := range suffixes {
				if err := os.Remove(path + suffix); err != nil {
					t.Fatal(err)
				}
			}
			// SQLite may fail as long as the others have only one of the two. A supervisor
			// would start the program again, too.
			const enough = 200
			for left, starts := enough, 0; left > 0; starts++ {
				if starts == 100 {
					t.Fatal("no process that began afterwards goes on")
				}
				left -= startBumper(t, path, counts).read(left)
			}
			for _, b := range old {
				if b.read(250*enough) == 250*enough || !strings.Contains(b.err, ErrReplaced.Error()) || !strings.Contains(b.err, path+"-wal") {
					t.Errorf("a process whose %s was removed ended with %q; want ErrReplaced, and the log", name, b.err)
				}
			}
			repeated := 0
			for _, count := range counts {
				if count > 1 {
					repeated++
				}
			}
			if repeated > 0 {
				t.Errorf("%d of %d numbers were repeated; want none", repeated, len(counts))
			}
		})
	}
}

// withConnections gives a DB some connections that have been used.
func withConnections(t *testing.T, d *DB) {
	t.Helper()
	const conns = 3
	d.pool.SetMaxIdleConns(conns)
	bumpAll(t, d, conns, func(_ int64, err error) {
		if err != nil {
			t.Fatalf("Do() = %v; want nil", err)
		}
	})
}

// bumpAll bumps on each of n connections of a pool.
func bumpAll(t *testing.T, d *DB, n int, found func(int64, error)) {
	t.Helper()
	var taken []*sql.Conn // database/sql gives the one that was used last
	for range n {
		found(bump(t.Context(), d))
		conn, err := d.pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, conn)
	}
	for _, conn := range taken {
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALogThatIsNotTheOneThatWasOpenedIsNotTrusted(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed": func(path string) error { return errors.Join(os.Remove(path+"-wal"), os.Remove(path+"-shm")) },
		"moved":   func(path string) error { return os.Rename(path+"-wal", path+".old") },
		"made anew": func(path string) error {
			return errors.Join(os.Rename(path+"-wal", path+".old"), os.WriteFile(path+"-wal", nil, 0o666))
		},
		"without index": func(path string) error { return os.Remove(path + "-shm") },
		"index made anew": func(path string) error {
			return errors.Join(os.Rename(path+"-shm", path+".old"), os.WriteFile(path+"-shm", nil, 0o666))
		},
	} {
		path := filepath.Join(sqlitetest.Folder(t), "counter.db")
		d := counterIn(t, path, nil)
		withConnections(t, d)
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrReplaced) || errors.Is(err, ErrCommit) || !strings.Contains(err.Error(), path+"-wal or "+path+"-shm") {
				t.Errorf("Do() with a log that was %s = %d, %v; want ErrReplaced, and the log", name, n, err)
			}
		}
	}
}

// A process has one index for all of its connections, whatever is at the path when they are opened.
func TestAConnectionOpenedAfterTheIndexWasReplacedIsNotTrusted(t *testing.T) {
	for name, after := range map[string]func(path string) error{
		"removed":   os.Remove,
		"made anew": func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o666)) },
	} {
		path := filepath.Join(sqlitetest.Folder(t), "counter.db")
		d := counterIn(t, path, nil)
		if _, err := bump(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		old, err := d.pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := after(path + "-shm"); err != nil {
			t.Fatal(err)
		}
		if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrReplaced) || errors.Is(err, ErrCommit) {
			t.Errorf("Do() on a new connection after the index was %s = %d, %v; want ErrReplaced", name, n, err)
		}
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The program has used the connection before, which has no mark therefore.
func TestAConnectionWhoseLogWasReplacedBeforeItsFirstTransactionIsNotTrusted(t *testing.T) {
	path := filepath.Join(sqlitetest.Folder(t), "counter.db")
	d := counterIn(t, path, nil)
	if err := errors.Join(os.Remove(path+"-wal"), os.WriteFile(path+"-wal", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrReplaced) {
		t.Errorf("Do() = %d, %v; want ErrReplaced", n, err)
	}
}

// It has none to be marked with.
func TestAConnectionWithoutALogThatIsRefusedIsGivenBack(t *testing.T) {
	d, c := watched(t, "_journal_mode=MEMORY")
	for range 2 {
		if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrNotDurable) {
			t.Errorf("Do() in journal_mode MEMORY = %d, %v; want ErrNotDurable", n, err)
		}
	}
	if sent := c.Sent(); slices.Contains(sent, "close") {
		t.Errorf("Do() does %q; want the connection kept", sent)
	}
}

// It may have a log that is no longer at the path when the next transaction marks it.
func TestAConnectionThatFailsBeforeItHasItsMarkIsClosed(t *testing.T) {
	for _, failing := range []string{`PRAGMA "main".journal_mode`, "PRAGMA query_only", "PRAGMA temp.application_id"} {
		d, c := watched(t, "_journal_mode=WAL")
		c.Before = func(query string) error {
			if strings.HasPrefix(query, failing) {
				return errors.New("no")
			}
			return nil
		}
		if _, err := bump(t.Context(), d); err == nil {
			t.Fatalf("Do() with %s that fails = nil; want an error", failing)
		}
		if sent := c.Sent(); !slices.Contains(sent, "close") {
			t.Errorf("Do() with %s that fails does %q; want the connection closed", failing, sent)
		}
	}
}

// Until then another process alone has the log and its index.
func TestACallersTransactionAndALookMayBeTheFirstThatOpenTheLog(t *testing.T) {
	for name, first := range map[string]func(*DB) error{
		"Within": func(d *DB) error {
			tx, err := d.pool.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			_, err = d.Within(t.Context(), tx)
			return errors.Join(err, tx.Rollback())
		},
		"Look": func(d *DB) error {
			_, err := Look(t.Context(), d, func(*Tx) (int64, error) { return 0, nil })
			return err
		},
	} {
		path := filepath.Join(sqlitetest.Folder(t), "counter.db")
		makeFile(t, path, "WAL")
		startBumper(t, path, map[string]int{}).read(1)
		if err := first(newDB(openSQLite(t, "file:"+path), dialect.SQLite, nil)); err != nil {
			t.Errorf("%s() on the first connection of a process = %v; want nil", name, err)
		}
	}
}

// SQLite's own locks are of no use to a process that has another index.
func TestTheFolderIsLockedFromBeforeATransactionUntilTheLogIsCopied(t *testing.T) {
	d, c := watched(t, "_journal_mode=WAL&_busy_timeout=1234")
	folder := filepath.Dir(c.DSN[len("file:"):strings.Index(c.DSN, "?")])
	locked := func() bool {
		unlock, err := filesystem.TryLock(folder)
		if err != nil {
			t.Error(err)
		}
		if unlock != nil {
			unlock()
		}
		return unlock == nil
	}
	for range 2 { // the first marks the connection
		var during []string
		c.Before = func(query string) error {
			if locked() {
				during = append(during, query)
			}
			return nil
		}
		if _, err := bump(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		c.Before = nil
		sent := c.Sent()
		if want := sent[slices.Index(sent, `PRAGMA "main".synchronous`):]; !slices.Equal(during, want) {
			t.Errorf("the folder was locked during %q; want %q", during, want)
		}
		if locked() {
			t.Error("the folder is locked after Do()")
		}
	}
}

// SQLite keeps its locks of such a file on the file itself.
func TestATransactionWithoutALogNeedsNoLockOfTheFolder(t *testing.T) {
	d, c := watched(t, "_journal_mode=DELETE")
	unlock, err := filesystem.TryLock(filepath.Dir(c.DSN[len("file:"):strings.Index(c.DSN, "?")]))
	if err != nil || unlock == nil {
		t.Fatalf("TryLock() = %v, locked by another: %v", err, unlock == nil)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.After = func(query string) error {
		if query == "PRAGMA busy_timeout = 5000" { // an attempt has ended
			cancel()
		}
		return nil
	}
	if n, err := bump(ctx, d); n != 8 || err != nil {
		t.Errorf("Do() in a folder that is locked = %d, %v; want 8", n, err)
	}
}

func TestATransactionWaitsForTheLockOfTheFolderUntilItsContextEnds(t *testing.T) {
	for _, ends := range []bool{false, true} {
		d, c := watched(t, "_journal_mode=WAL&_busy_timeout=1234")
		unlock, err := filesystem.TryLock(filepath.Dir(c.DSN[len("file:"):strings.Index(c.DSN, "?")]))
		if err != nil || unlock == nil {
			t.Fatalf("TryLock() = %v, locked by another: %v", err, unlock == nil)
		}
		ctx, cancel := context.WithCancel(t.Context())
		n, err := Look(t.Context(), d, func(tx *Tx) (n int64, err error) {
			return n, tx.Each(t.Context(), func(scan func(...any) error) error { return scan(&n) }, selectN)
		})
		if n != 7 || err != nil {
			t.Errorf("Look() in a folder that is locked = %d, %v; want 7", n, err)
		}
		tries := 0
		c.Before = func(query string) error {
			if query == "BEGIN IMMEDIATE" && unlock != nil {
				t.Error("Do() begins without the lock")
			}
			if query != "PRAGMA busy_timeout = 1234" { // a try has ended
				return nil
			}
			if tries++; tries == 3 && ends {
				cancel()
			} else if tries == 3 {
				unlock()
				unlock = nil
			}
			return nil
		}
		n, err = bump(ctx, d)
		if ends && (n != 0 || !errors.Is(err, context.Canceled) || !errors.Is(err, errLocked) || errors.Is(err, ErrCommit) || strings.Contains(err.Error(), "write lock of the file")) {
			t.Errorf("Do() in a folder that stays locked = %d, %v; want the end of the context, and the reason", n, err)
		}
		if !ends && (n != 8 || err != nil || tries != 4) {
			t.Errorf("Do() in a folder that was locked = %d, %v after %d tries; want 8 after 4", n, err, tries)
		}
		c.Before = nil
		cancel()
		if unlock != nil {
			unlock()
		}
	}
}

// What was written into a log that was removed may or may not be stored.
func TestALogRemovedDuringTheCommitIsUnknown(t *testing.T) {
	d, c := watched(t, "_journal_mode=WAL")
	if _, err := bump(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	c.After = func(query string) error {
		if query == "COMMIT" {
			return os.Remove(d.file.path + "-wal")
		}
		return nil
	}
	c.Sent()
	if n, err := bump(t.Context(), d); n != 0 || !errors.Is(err, ErrReplaced) || !errors.Is(err, ErrCommit) {
		t.Errorf("Do() during which the log was removed = %d, %v; want ErrReplaced and ErrCommit", n, err)
	}
	if sent := strings.Join(c.Sent(), "|"); !strings.Contains(sent, "wal_checkpoint") {
		t.Errorf("Do() sends %s; want the log copied into the file, before the end of the process does it", sent)
	}
}

// SQLite removes the log with the last connection, and makes it again.
func TestALogThatComesAndGoesRightlyIsTrusted(t *testing.T) {
	path := filepath.Join(sqlitetest.Folder(t), "counter.db")
	d := counterIn(t, path, nil)
	other := openSQLite(t, "file:"+path+"?_busy_timeout=5000")
	other.SetMaxIdleConns(0)
	run := func(texts ...string) func() error {
		return func() (err error) {
			for _, text := range texts {
				_, e := other.ExecContext(t.Context(), text)
				err = errors.Join(err, e)
			}
			return err
		}
	}
	n := int64(7)
	for name, change := range map[string]func() error{
		"nothing":            run(),
		"TRUNCATE":           run("PRAGMA wal_checkpoint(TRUNCATE)"),
		"RESTART":            run("PRAGMA wal_checkpoint(RESTART)"),
		"a copy":             run("VACUUM INTO '" + path + ".copy'"),
		"VACUUM":             run("VACUUM"),
		"a writer":           run("UPDATE t SET n = n"),
		"a large writer":     run("CREATE TABLE large (b BLOB)", "INSERT INTO large VALUES (zeroblob(9000000))", "DROP TABLE large"),
		"no idle connection": func() error { d.pool.SetMaxIdleConns(0); return nil },
		"idle connections":   func() error { d.pool.SetMaxIdleConns(3); return nil },
		"DELETE and WAL": func() error {
			d.pool.SetMaxIdleConns(0) // no other connection may be open
			return run("PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = WAL")()
		},
	} {
		if err := change(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for range 3 {
			bumpAll(t, d, 2, func(got int64, err error) {
				if n++; got != n || err != nil {
					t.Errorf("after %s: Do() = %d, %v; want %d", name, got, err, n)
				}
			})
		}
	}
}

// Such a connection has its index in memory.
func TestALogWithoutIndexIsTrustedIfTheConnectionHasTheFileForItself(t *testing.T) {
	d, _ := watched(t, "_journal_mode=WAL&_locking_mode=EXCLUSIVE")
	for want := int64(8); want < 11; want++ {
		if n, err := bump(t.Context(), d); n != want || err != nil {
			t.Errorf("Do() = %d, %v; want %d", n, err, want)
		}
	}
	if _, err := os.Stat(d.file.path + "-shm"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file has an index: %v; want none", err)
	}
}

// A connection that has left WAL for a while has a log of another identity later.
func TestAConnectionThatLeavesItsLogIsTrusted(t *testing.T) {
	d, _ := watched(t, "_journal_mode=WAL")
	for i, mode := range []string{"WAL", "DELETE", "WAL", "TRUNCATE", "WAL"} {
		if _, err := d.pool.ExecContext(t.Context(), "PRAGMA journal_mode = "+mode); err != nil {
			t.Fatal(err)
		}
		for j := range 2 {
			if n, err := bump(t.Context(), d); n != int64(8+2*i+j) || err != nil {
				t.Errorf("Do() in mode %s, change %d = %d, %v; want %d", mode, i, n, err, 8+2*i+j)
			}
		}
	}
}

// A mark that is of another file is none.
func TestConnectionsWithSeveralFilesAreTrusted(t *testing.T) {
	dir := sqlitetest.Folder(t)
	makeFile(t, filepath.Join(dir, "other.db"), "WAL")
	pool := openSQLite(t, "file:"+filepath.Join(dir, "counter.db")+"?_journal_mode=WAL")
	pool.SetMaxOpenConns(1)
	makeCounter(t, pool)
	if _, err := pool.ExecContext(t.Context(), "ATTACH '"+filepath.Join(dir, "other.db")+"' AS other"); err != nil {
		t.Fatal(err)
	}
	first := newDB(pool, dialect.SQLite, nil)
	second := newDB(pool, dialect.SQLite, nil)
	second.config.Table = "other.t"
	for range 3 {
		for _, d := range []*DB{first, second} {
			if _, err := bump(t.Context(), d); err != nil {
				t.Errorf("Do() in %s = %v; want nil", d.config.Table, err)
			}
		}
	}
}

// In a log alone it would be lost with the log, or left out of a copy of the file.
func TestWhatIsAcknowledgedIsInTheFileItself(t *testing.T) {
	path := filepath.Join(sqlitetest.Folder(t), "counter.db")
	d := counterIn(t, path, nil)
	for want := int64(8); want < 20; want++ {
		if n, err := bump(t.Context(), d); n != want || err != nil {
			t.Fatalf("Do() = %d, %v; want %d", n, err, want)
		}
		if stored := copied(t, path); stored != want {
			t.Errorf("a copy of the file without its log has %d; want %d", stored, want)
		}
	}
}

// copied returns the counter in a copy of a file without its log. To open the file itself,
// and close it, would drop the locks of this process.
func copied(t *testing.T, path string) (n int64) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.db")
	if text, err := exec.CommandContext(t.Context(), "cp", path, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, text)
	}
	if err := openSQLite(t, "file:"+to).QueryRowContext(t.Context(), selectN).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// A reader of an older state is in the way of the copy, and not of the transaction.
func TestAReaderDoesNotKeepATransactionFromItsCommit(t *testing.T) {
	path := filepath.Join(sqlitetest.Folder(t), "counter.db")
	d := counterIn(t, path, nil)
	reader, err := openSQLite(t, "file:"+path).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRowContext(t.Context(), selectN).Scan(&n); err != nil {
		t.Fatal(err)
	}
	for want := int64(8); want < 11; want++ {
		if n, err := bump(t.Context(), d); n != want || err != nil {
			t.Errorf("Do() while another reads = %d, %v; want %d", n, err, want)
		}
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n, err := bump(t.Context(), d); n != 11 || err != nil {
		t.Errorf("Do() = %d, %v; want 11", n, err)
	}
	if stored := copied(t, path); stored != 11 {
		t.Errorf("a copy of the file without its log has %d; want 11, once nobody reads", stored)
	}
}
