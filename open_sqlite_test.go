//go:build cgo

package snowkey_test

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/filesystem"
	"github.com/snowkey/snowkey/internal/proof/servers/filesystemtest"
)

// A shim is a driver of SQLite that changes the names of databases that it is given, and what SQLite
// says of its files.
type shim struct {
	name  func(string) (string, error)
	path  func(string) any
	list  string       // what is asked in place of PRAGMA database_list
	conns atomic.Int64 // that are open
}

func (d *shim) Open(name string) (driver.Conn, error) {
	if d.name != nil {
		var err error
		if name, err = d.name(name); err != nil {
			return nil, err
		}
	}
	c, err := (&sqlite3.SQLiteDriver{}).Open(name)
	if err != nil {
		return nil, err
	}
	d.conns.Add(1)
	return &shimConn{c.(*sqlite3.SQLiteConn), d}, nil
}

type shimConn struct {
	*sqlite3.SQLiteConn
	d *shim
}

func (c *shimConn) Close() error {
	c.d.conns.Add(-1)
	return c.SQLiteConn.Close()
}

func (c *shimConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.d.list != "" && strings.Contains(query, "database_list") {
		query = c.d.list
	}
	rows, err := c.SQLiteConn.QueryContext(ctx, query, args)
	if err == nil && c.d.path != nil && strings.Contains(query, "database_list") {
		return shimRows{rows, c.d}, nil
	}
	return rows, err
}

type shimRows struct {
	driver.Rows
	d *shim
}

func (r shimRows) Next(values []driver.Value) error {
	err := r.Rows.Next(values)
	for i, v := range values {
		if text, ok := v.(string); ok && strings.HasPrefix(text, "/") {
			values[i] = r.d.path(text)
		}
	}
	return err
}

// through opens a database by a shim, with a connector, so that the driver is in no registry.
func (d *shim) through(t *testing.T, name string) *sql.DB {
	t.Helper()
	db := sql.OpenDB(connector{d, name})
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return db
}

type connector struct {
	d    *shim
	name string
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(c.name) }
func (c connector) Driver() driver.Driver                        { return c.d }

// refused fails the test unless Open returns no generator and an error with all of these parts.
func refused(t *testing.T, db *sql.DB, c snowkey.Config, parts ...string) error {
	t.Helper()
	gen, err := snowkey.Open(t.Context(), db, c)
	if gen != nil {
		_ = gen.Close(context.Background())
	}
	if gen != nil || err == nil {
		t.Fatalf("Open = %v, %v; want nil and an error", gen, err)
	}
	for _, part := range append(parts, "snowkey: Open: ") {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("Open error = %v; want %q in it", err, part)
		}
	}
	return err
}

func TestOpenRefusesAFileWithTwoNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	db := openSQLite(t, file)
	if err := os.Link(file, file+".link"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	for _, name := range []string{file, file + ".link"} {
		for _, c := range []snowkey.Config{{}, {LeaseFile: filepath.Join(t.TempDir(), "leases")}} {
			if err := refused(t, openSQLite(t, name), c, name, "it has 2 names"); !errors.Is(err, sqlstore.ErrNotDurable) {
				t.Errorf("Open error = %v; want sqlstore.ErrNotDurable", err)
			}
		}
	}
	if err := os.Remove(file + ".link"); err != nil {
		t.Fatal(err)
	}
	workerOf(t, open(t, db, snowkey.Config{}))
}

// rqlite, libSQL and dqlite answer as SQLite does, with the path of a file of their own machine.
func TestOpenRefusesADatabaseThatAServerKeeps(t *testing.T) {
	server := filepath.Join(t.TempDir(), "db.sqlite")
	d := &shim{
		name: func(string) (string, error) { return server, nil }, // a URL of the server, whatever it is
		path: func(string) any { return "/var/lib/rqlite/db.sqlite" },
	}
	for _, c := range []snowkey.Config{{}, {Dialect: sqlstore.SQLite}, {LeaseFile: filepath.Join(t.TempDir(), "leases")}} {
		err := refused(t, d.through(t, "http://rqlite:4001"), c, `"/var/lib/rqlite/db.sqlite"`, "rqlite", "docs/workers.md")
		if !errors.As(err, new(*core.ValueError)) {
			t.Errorf("Open error = %v; want a *core.ValueError", err)
		}
	}
	// A server of this machine: its file is here, but its driver opens no files.
	d.path = func(string) any { return server }
	_ = refused(t, d.through(t, "http://127.0.0.1:4001"), snowkey.Config{}, server+"-leases", "the driver has opened "+fmt.Sprintf("%q", server), "Config.LeaseFile", "acquire the lease by hand")
	if tables := count(t, openSQLite(t, server), "SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'snowkey%'"); tables != 0 {
		t.Errorf("Open has made %d tables in the database of the server; want none", tables)
	}
}

// Only a path that is empty says that there is no file.
func TestOpenTakesNoDatabaseForOneInMemoryThatDoesNotSaySo(t *testing.T) {
	for name, query := range map[string]string{
		"NULL":             "SELECT 0, 'main', NULL",
		"another database": "SELECT 2, 'db', ''",
		"nothing":          "SELECT 0, '', '' WHERE 0",
	} {
		t.Run(name, func(t *testing.T) {
			d := &shim{list: query}
			for _, c := range []snowkey.Config{{}, {LeaseFile: filepath.Join(t.TempDir(), "leases")}} {
				err := refused(t, d.through(t, ":memory:"), c, "PRAGMA database_list names no file of main", "rqlite", "docs/workers.md")
				if !errors.As(err, new(*core.ValueError)) {
					t.Errorf("Open error = %v; want a *core.ValueError", err)
				}
			}
		})
	}
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// What cannot be looked at is no database in memory.
func TestOpenRefusesAFileThatIsNotThere(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "orders.db")
	first, second := openSQLite(t, file), openSQLite(t, file)
	if err := os.Rename(file, file+".old"); err != nil {
		t.Skipf("SKIPPED: %v", err) // on Windows
	}
	for _, db := range []*sql.DB{first, second} {
		_ = refused(t, db, snowkey.Config{}, fmt.Sprintf("%q", file), "if the file was moved, restart the program")
	}
	if err := os.Mkdir(file, 0o777); err != nil {
		t.Fatal(err)
	}
	_ = refused(t, first, snowkey.Config{}, "it is no regular file")
}

func TestOpenRefusesWhatItCannotUseBeforeItAsks(t *testing.T) {
	wide, negative := core.Default(), core.Default()
	wide.WorkerBits, negative.WorkerBits = 63, -1
	memory, file := openSQLite(t, ":memory:"), openSQLite(t, filepath.Join(t.TempDir(), "orders.db"))
	for name, c := range map[string]struct {
		db     *sql.DB
		config snowkey.Config
		want   string
	}{
		"no database":                       {nil, snowkey.Config{}, "snowkey: Open: db is nil"},
		"63 worker bits in memory":          {memory, snowkey.Config{Layout: wide}, "WorkerBits"},
		"-1 worker bits in memory":          {memory, snowkey.Config{Layout: negative}, "WorkerBits"},
		"63 worker bits in a file":          {file, snowkey.Config{Layout: wide}, "WorkerBits"},
		"-1 worker bits in a file":          {file, snowkey.Config{Layout: negative}, "WorkerBits"},
		"-1 worker bits and no database":    {nil, snowkey.Config{Layout: negative}, "snowkey: Open: db is nil"},
		"-1 worker bits, a dialect of name": {memory, snowkey.Config{Layout: negative, Dialect: sqlstore.PostgreSQL}, "WorkerBits"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := refused(t, c.db, c.config, c.want); !errors.As(err, new(*core.ValueError)) {
				t.Errorf("Open error = %v; want a *core.ValueError", err)
			}
		})
	}
}

// A driver reports the end of its context as an error of its own, as pgx does.
func TestOpenUnderAContextThatHasEndedSaysSo(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ending, end := context.WithCancel(t.Context())
	tries := 0
	late := &shim{name: func(string) (string, error) {
		if tries++; tries > 2 { // the last time that database/sql tries a bad connection
			end()
		}
		return "", driver.ErrBadConn
	}}
	for name, c := range map[string]struct {
		ctx context.Context
		db  *sql.DB
	}{
		"before":               {ended, openSQLite(t, ":memory:")},
		"while it is answered": {ending, sql.OpenDB(connector{late, ""})},
	} {
		if gen, err := snowkey.Open(c.ctx, c.db, snowkey.Config{}); gen != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("Open under a context that has ended %s = %v, %v; want context.Canceled", name, gen, err)
		}
	}
}

// The file of the leases is opened in a pool of its own, and its driver's errors are no better.
func TestOpenUnderAContextThatEndsAtTheFileOfLeasesSaysSo(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	tries := 0
	d := &shim{name: func(name string) (string, error) {
		if !strings.HasSuffix(name, "-leases") {
			return name, nil
		}
		if tries++; tries > 2 { // the last time that database/sql tries a bad connection
			end()
		}
		return "", driver.ErrBadConn
	}}
	if gen, err := snowkey.Open(ctx, d.through(t, filepath.Join(t.TempDir(), "orders.db")), snowkey.Config{}); gen != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v, %v; want context.Canceled", gen, err)
	}
}

// LiteFS is FUSE, and takes no files but databases and their logs.
func TestOpenKeepsTheLeasesOfAFileOnLiteFSElsewhere(t *testing.T) {
	folder, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "leases")
	filesystemtest.On(t, filesystem.FUSE, folder)
	file := filepath.Join(folder, "orders.db")
	if err := refused(t, openSQLite(t, file), snowkey.Config{}, file+"-leases", "FUSE"); !errors.Is(err, sqlstore.ErrNotDurable) {
		t.Errorf("Open error = %v; want sqlstore.ErrNotDurable, because the leases would be on FUSE", err)
	}
	if err := os.Remove(file + "-leases"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	d := &shim{name: func(name string) (string, error) {
		if strings.Contains(name, folder) && strings.HasSuffix(name, "-leases") {
			return "", fs.ErrPermission
		}
		return name, nil
	}}
	db := d.through(t, file)
	_ = refused(t, db, snowkey.Config{}, fs.ErrPermission.Error(), "Config.LeaseFile names another place")
	a, b := open(t, db, snowkey.Config{LeaseFile: elsewhere}), open(t, db, snowkey.Config{LeaseFile: elsewhere})
	if workerOf(t, a) == workerOf(t, b) {
		t.Errorf("two generators of one database have the worker number %d", workerOf(t, a))
	}
}

func TestOpenWorksBesideATransactionOfTheProgram(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "orders.db"))
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = conn.ExecContext(t.Context(), "ROLLBACK") }()
	workerOf(t, open(t, db, snowkey.Config{}))
}

// The program opens the database by a driver and a name of its own. Its file of leases is opened by
// the same driver, with the options in the program's data source name, not with options
// for that file.
func TestTheFileOfLeasesIsOpenedWhateverItsNameIs(t *testing.T) {
	for _, name := range []string{"a b", "a?mode=memory", "a#b", "100%", "%20", "a&b=c;d", "ä", "a+b", "\x01", "a\nb", "'", `"`, "[x]", `C:\x`, "file:x", "?vfs=memdb", "x?_pragma=y"} {
		t.Run(url.PathEscape(name), func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, name)
			db := openSQLite(t, "file:"+(&url.URL{Path: path}).EscapedPath())
			for _, c := range []snowkey.Config{{}, {Namespace: "other", LeaseFile: path + "-leases"}} {
				workerOf(t, open(t, db, c))
			}
			if names := filesIn(t, folder); !slices.Equal(names, []string{name, name + "-leases"}) {
				t.Errorf("files = %q; want the database and %q", names, name+"-leases")
			}
		})
	}
}

func filesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "-journal") {
			names = append(names, e.Name())
		}
	}
	return names
}

// On Windows SQLite names its files with a drive letter and backslashes, which are legal in the name
// of a file here, so that C:\shop\orders.db is one in the working directory.
func TestOpenKeepsTheLeasesBesideAFileWithADriveLetter(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	folder, err := os.Getwd() // as SQLite resolves it
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	d := &shim{
		name: func(name string) (string, error) { names = append(names, name); return name, nil },
		path: func(path string) any { return strings.TrimPrefix(path, folder+"/") },
	}
	for _, file := range []string{`C:\shop\orders.db`, `C:\Program Files\100% (x86)\orders #1.db`, `\\?\C:\shop\orders.db`, `\\host\share\orders.db`} {
		db := d.through(t, "file:"+strings.NewReplacer("%", "%25", "#", "%23", "?", "%3F").Replace(file))
		if a, b := workerOf(t, open(t, db, snowkey.Config{})), workerOf(t, open(t, db, snowkey.Config{})); a == b {
			t.Errorf("two generators on %s have the worker number %d", file, a)
		}
		if info, err := os.Stat(file + "-leases"); err != nil || !info.Mode().IsRegular() {
			t.Errorf("Stat(%s-leases) = %v, %v; want a file", file, info, err)
		}
	}
	if want := "file:C:%5Cshop%5Corders.db-leases"; !slices.Contains(names, want) {
		t.Errorf("the driver was asked for %q; want %q among them", names, want)
	}
}

func TestOpenSaysWhatToDoIfTheDriverCannotOpenAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	nothing := errors.New("unknown scheme file")
	d := &shim{name: func(name string) (string, error) {
		if strings.HasSuffix(name, "-leases") {
			return "", nothing
		}
		return name, nil
	}}
	err := refused(t, d.through(t, file), snowkey.Config{}, file+"-leases", "Config.LeaseFile", "*snowkey_test.shim", "acquire the lease by hand")
	if !errors.Is(err, nothing) {
		t.Errorf("Open error = %v; want that of the driver", err)
	}
	_ = refused(t, sql.OpenDB(anonymous{connector{d, file}}), snowkey.Config{}, "does not name its driver", "acquire the lease by hand")
}

// An anonymous is a connector that names no driver, as wrappers that trace statements do.
type anonymous struct{ connector }

func (anonymous) Driver() driver.Driver { return nil }

func TestLeaseFileIsWhereTheLeasesAre(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "orders.db")
	db := openSQLite(t, file)
	elsewhere := filepath.Join(t.TempDir(), "leases of orders")
	c := snowkey.Config{LeaseFile: elsewhere}
	if a, b := workerOf(t, open(t, db, c)), workerOf(t, open(t, openSQLite(t, file), c)); a == b {
		t.Errorf("two generators have the worker number %d", a)
	}
	if names := filesIn(t, folder); !slices.Equal(names, []string{"orders.db"}) {
		t.Errorf("files beside the database = %q; want none", names)
	}
	if info, err := os.Stat(elsewhere); err != nil || !info.Mode().IsRegular() {
		t.Errorf("Stat(LeaseFile) = %v, %v; want a file", info, err)
	}
	// A folder that takes no files says that there is a way.
	_ = refused(t, db, snowkey.Config{LeaseFile: filepath.Join(folder, "nowhere", "leases")}, "nowhere", "Config.LeaseFile")
}

func TestLeasesOfAnotherPlaceAreNotOverlooked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	db := openSQLite(t, file)
	elsewhere := filepath.Join(t.TempDir(), "leases")
	workerOf(t, open(t, db, snowkey.Config{}))
	_ = refused(t, db, snowkey.Config{LeaseFile: elsewhere}, "Config.LeaseFile", file+"-leases", "stop all programs")
	workerOf(t, open(t, db, snowkey.Config{LeaseFile: file + "-leases"}))
}

// Older versions kept the leases in a folder of that name. A process of such a version may live.
func TestOpenRefusesTheFolderOfAnOlderVersion(t *testing.T) {
	file := filepath.Join(t.TempDir(), "orders.db")
	db := openSQLite(t, file)
	if err := os.Mkdir(file+"-leases", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []snowkey.Config{{}, {LeaseFile: filepath.Join(t.TempDir(), "leases")}} {
		_ = refused(t, db, c, file+"-leases", "older version", "stop all programs", "remove the folder")
	}
	if err := os.Remove(file + "-leases"); err != nil {
		t.Fatal(err)
	}
	workerOf(t, open(t, db, snowkey.Config{}))
}

func TestTheFileOfLeasesIsClosedWithTheGenerator(t *testing.T) {
	d := &shim{}
	db := d.through(t, filepath.Join(t.TempDir(), "orders.db"))
	db.SetMaxIdleConns(0)
	check := func(when string) {
		t.Helper()
		if n := d.conns.Load(); n != 0 {
			t.Errorf("%s %d connections are open; want none", when, n)
		}
	}
	gen := open(t, db, snowkey.Config{})
	workerOf(t, gen)
	if n := d.conns.Load(); n == 0 {
		t.Error("no connection is open while the generator lives; want one")
	}
	_ = refused(t, db, snowkey.Config{Layout: core.JavaScript()}, "layout")
	if err := gen.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("after Close")
	_ = refused(t, db, snowkey.Config{Layout: core.JavaScript()}, "layout")
	check("after an error of Open")

	// Close after the database's, and under a context that has ended: the number stays busy.
	gen = open(t, db, snowkey.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := gen.Close(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Close under a context that has ended = %v; want context.Canceled", err)
	}
	check("after Close under a context that has ended")
}

// A lease that was refused, because its number is one that this process has, is closed, and the file
// stays open for the lease after it.
func TestTheFileOfLeasesStaysOpenForTheLeaseThatIsLeft(t *testing.T) {
	layout := core.Default()
	layout.TimeBits, layout.WorkerBits = layout.TimeBits+layout.WorkerBits-1, 1
	folder := t.TempDir()
	first := open(t, openSQLite(t, filepath.Join(folder, "a")), snowkey.Config{Layout: layout})
	for range 8 { // half of them get the number of first, and then another
		gen, err := snowkey.Open(t.Context(), openSQLite(t, filepath.Join(folder, "b")), snowkey.Config{Layout: layout})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := workerOf(t, first), workerOf(t, gen); a == b {
			t.Errorf("two generators have the worker number %d", a)
		}
		if err := gen.Worker().(*lease.Lease).Check(t.Context()); err != nil {
			t.Errorf("Check() = %v", err)
		}
		if err := gen.Close(t.Context()); err != nil {
			t.Errorf("Close() = %v; want the number given back", err)
		}
	}
}

func TestOpenWaitsUntilANumberIsGivenBack(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "orders.db"))
	c := snowkey.Config{Layout: oneWorker()}
	for _, c.AcquireWait = range []time.Duration{0, -1, time.Hour} {
		first := open(t, db, c)
		waits := make(signal, 1)
		config := c
		config.Logger = slog.New(slog.NewTextHandler(waits, nil))
		opened := make(chan error, 1)
		go func() {
			second, err := snowkey.Open(t.Context(), db, config)
			if err == nil {
				err = second.Close(t.Context())
			}
			opened <- err
		}()
		select {
		case <-waits: // it has failed, and says so
		case err := <-opened:
			t.Fatalf("Open with AcquireWait %v = %v; want it to wait", c.AcquireWait, err)
		}
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-opened; err != nil {
			t.Errorf("Open with AcquireWait %v = %v; want the number that was given back", c.AcquireWait, err)
		}
	}
}

// A signal is a log that tells when something is written to it.
type signal chan struct{}

func (s signal) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("cannot claim")) {
		select {
		case s <- struct{}{}:
		default:
		}
	}
	return len(text), nil
}
