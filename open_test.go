package snowkey_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/types"
)

func openSQLite(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return db
}

func open(t *testing.T, db *sql.DB, c snowkey.Config) *core.Generator {
	t.Helper()
	gen, err := snowkey.Open(t.Context(), db, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gen.Close(context.Background()) })
	return gen
}

func workerOf(t *testing.T, gen *core.Generator) int64 {
	t.Helper()
	id, err := gen.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return gen.Layout().Parts(id).Worker
}

func TestOpenKeepsTheLeasesBesideTheSQLiteFile(t *testing.T) {
	for _, name := range []string{"orders.db", "with space?#%.db"} {
		file := filepath.Join(t.TempDir(), name)
		for _, dsn := range []string{file, "file:" + (&url.URL{Path: file}).EscapedPath() + "?_busy_timeout=1000"} {
			if dsn == file && strings.Contains(file, "?") {
				continue // this driver takes what follows for its options
			}
			first, second := open(t, openSQLite(t, dsn), snowkey.Config{}), open(t, openSQLite(t, dsn), snowkey.Config{})
			if a, b := workerOf(t, first), workerOf(t, second); a == b {
				t.Errorf("two generators on %s have the worker number %d", dsn, a)
			}
			if info, err := os.Stat(file + "-leases"); err != nil || !info.Mode().IsRegular() {
				t.Errorf("Stat(%s-leases) = %v, %v; want a file", file, info, err)
			}
		}
	}
}

func TestOpenOnALinkToAFileFindsTheLeasesOfTheFile(t *testing.T) {
	folder := t.TempDir()
	file, link := filepath.Join(folder, "orders.db"), filepath.Join(folder, "link.db")
	open(t, openSQLite(t, file), snowkey.Config{})
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	open(t, openSQLite(t, link), snowkey.Config{})
	if _, err := os.Stat(link + "-leases"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat(%s-leases) error = %v; want none there", link, err)
	}
}

func TestCloseGivesTheNumberBack(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "orders.db"))
	// With one worker number, a second generator needs that of the first.
	layout := oneWorker()
	for range 3 {
		gen, err := snowkey.Open(t.Context(), db, snowkey.Config{Layout: layout})
		if err != nil {
			t.Fatal(err)
		}
		var none *lease.NoFreeWorkerError
		if _, err := snowkey.Open(t.Context(), db, snowkey.Config{Layout: layout, AcquireWait: 1}); !errors.As(err, &none) {
			t.Errorf("Open beside a live generator error = %v; want a *lease.NoFreeWorkerError", err)
		}
		if err := gen.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func oneWorker() core.Layout {
	l := core.Default()
	l.WorkerBits, l.TimeBits = 0, l.TimeBits+l.WorkerBits
	return l
}

// killedOn names the database of a process that is killed.
const killedOn = "SNOWKEY_KILLED_ON"

// The process is killed in the middle of its work, with a transaction open, and Open waits for the
// only number until its window is over.
func TestTheNumberOfAKilledProcessIsFreeAfterItsWindowOnSQLite(t *testing.T) {
	if file := os.Getenv(killedOn); file != "" {
		db := openSQLite(t, file)
		if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		gen := open(t, db, snowkey.Config{Layout: oneWorker()})
		fmt.Println("first key", workerOf(t, gen))
		for {
			if _, err := gen.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "orders.db")
	openSQLite(t, file)
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	other.Env = append(os.Environ(), killedOn+"="+file)
	out, err := other.StdoutPipe()
	if err == nil {
		err = other.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "first key") {
		t.Fatalf("the other process has written %q, %v", line, err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	db := openSQLite(t, file)
	var none *lease.NoFreeWorkerError
	if _, err := snowkey.Open(t.Context(), db, snowkey.Config{Layout: oneWorker(), AcquireWait: 1}); !errors.As(err, &none) || none.Wait > 10*time.Second {
		t.Errorf("Open with AcquireWait 1ns = %v; want a *lease.NoFreeWorkerError, and a wait of at most 10s", err)
	}
	workerOf(t, open(t, db, snowkey.Config{Layout: oneWorker()}))
}

func TestTheLeaseOfAnOpenedGeneratorIsItsWorker(t *testing.T) {
	gen := open(t, openSQLite(t, filepath.Join(t.TempDir(), "orders.db")), snowkey.Config{})
	l, ok := gen.Worker().(*lease.Lease)
	if !ok {
		t.Fatalf("Worker() = %T; want a *lease.Lease", gen.Worker())
	}
	if err := l.Check(t.Context()); err != nil || l.Status().Worker != workerOf(t, gen) {
		t.Errorf("Check() = %v, %+v; want nil, and the number of the keys", err, l.Status())
	}
	if err := gen.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context()); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("Check() after Close = %v; want lease.ErrClosed", err)
	}
}

func TestTheLeaseOfOpenLogsNothingWhereNothingIsWrong(t *testing.T) {
	var log bytes.Buffer
	db := openSQLite(t, filepath.Join(t.TempDir(), "orders.db"))
	for range 2 {
		gen := open(t, db, snowkey.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		workerOf(t, gen)
		if err := gen.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	// The store may warn of the file, which is in memory on some machines.
	if strings.Contains(log.String(), "lease: ") {
		t.Errorf("log = %s; want nothing of the lease", log.String())
	}
}

func TestOpenInMemoryTakesTheFirstNumberThatIsFree(t *testing.T) {
	db := openSQLite(t, ":memory:")
	first := open(t, db, snowkey.Config{})
	second := open(t, db, snowkey.Config{})
	if a, b := workerOf(t, first), workerOf(t, second); a != 0 || b != 1 {
		t.Errorf("worker numbers = %d, %d; want 0, 1", a, b)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := workerOf(t, open(t, db, snowkey.Config{})); n != 0 {
		t.Errorf("worker number = %d; want 0, which is free again", n)
	}
}

func TestOpenInMemoryRepeatsNoKey(t *testing.T) {
	seen := map[types.Snowflake]bool{}
	for range 5 {
		gen := open(t, openSQLite(t, ":memory:"), snowkey.Config{})
		ids := make([]types.Snowflake, 1000)
		if err := gen.Fill(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("the key %d came twice", id)
			}
			seen[id] = true
		}
	}
}

// Each file has leases of its own, whose random numbers may meet in one process.
func TestOpenOnManyFilesRepeatsNoNumber(t *testing.T) {
	folder, workers := t.TempDir(), map[int64]string{}
	layout := core.Default()
	layout.TimeBits, layout.WorkerBits = layout.TimeBits+layout.WorkerBits-3, 3
	for i := range 8 { // all that there are
		file := filepath.Join(folder, fmt.Sprint(i))
		n := workerOf(t, open(t, openSQLite(t, file), snowkey.Config{Layout: layout}))
		if other := workers[n]; other != "" {
			t.Errorf("%s and %s have the worker number %d", file, other, n)
		}
		workers[n] = file
	}
	_, err := snowkey.Open(t.Context(), openSQLite(t, filepath.Join(folder, "one more")), snowkey.Config{Layout: layout})
	if !errors.Is(err, lease.ErrNoFreeWorker) {
		t.Errorf("Open on the ninth file = %v; want lease.ErrNoFreeWorker", err)
	}
}

func TestOpenRefusesAnotherLayoutOfTheNamespace(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "orders.db"))
	open(t, db, snowkey.Config{})
	var other *lease.LayoutError
	if gen, err := snowkey.Open(t.Context(), db, snowkey.Config{Layout: core.JavaScript()}); !errors.As(err, &other) || gen != nil {
		t.Errorf("Open with another layout = %v, %v; want nil and a *lease.LayoutError", gen, err)
	}
	open(t, db, snowkey.Config{Layout: core.JavaScript(), Namespace: "numbers"})
}

func TestOpenDoesNotGuessAtADatabase(t *testing.T) {
	unknown := errors.New("no such function")
	for name, expect := range map[string]func(sqlmock.Sqlmock){
		"a version that names another server": func(m sqlmock.Sqlmock) {
			m.ExpectQuery("SELECT version()").WillReturnRows(sqlmock.NewRows([]string{"v"}).AddRow("CockroachDB CCL v25.4.0"))
		},
		"a number, and no @@version_comment": func(m sqlmock.Sqlmock) {
			m.ExpectQuery("SELECT version()").WillReturnRows(sqlmock.NewRows([]string{"v"}).AddRow("24.8.1"))
			m.ExpectQuery("SELECT @@version_comment").WillReturnError(unknown)
		},
		"neither function": func(m sqlmock.Sqlmock) {
			m.ExpectQuery("SELECT version()").WillReturnError(unknown)
			m.ExpectQuery("SELECT sqlite_version()").WillReturnError(unknown)
		},
	} {
		db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
		if err != nil {
			t.Fatal(err)
		}
		expect(mock)
		_, err = snowkey.Open(t.Context(), db, snowkey.Config{})
		if err == nil || !strings.HasPrefix(err.Error(), "snowkey: Open: not recognized as PostgreSQL, MySQL, MariaDB or SQLite") {
			t.Errorf("%s: Open error = %v; want that it is not recognized", name, err)
		}
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = db.Close()
	}
}

func TestAServerThatCannotBeReachedIsNoUnknownDatabase(t *testing.T) {
	db, mock, err := sqlmock.New(sqlmock.MonitorPingsOption(true))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	refused := errors.New("connection refused")
	mock.ExpectPing().WillReturnError(refused)
	if _, err := snowkey.Open(t.Context(), db, snowkey.Config{}); !errors.Is(err, refused) || strings.Contains(err.Error(), "recognized") || strings.Contains(err.Error(), "Dialect") {
		t.Errorf("Open error = %v; want that of the ping", err)
	}
}

func TestOpenInATransactionOfTheOnlyConnectionSaysSo(t *testing.T) {
	db := openSQLite(t, filepath.Join(t.TempDir(), "orders.db"))
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = snowkey.Open(ctx, db, snowkey.Config{})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all 1 connections of the pool are in use") {
		t.Errorf("Open error = %v; want the end of the context, and that the pool is used up", err)
	}
}

func TestOpenHasTheNumberOfItsRegion(t *testing.T) {
	dir, layout := t.TempDir(), core.Layout{Epoch: core.Default().Epoch, Unit: time.Millisecond, TimeBits: 41, DatacenterBits: 3, WorkerBits: 7, SequenceBits: 12}
	common, err := sqllease.New(openSQLite(t, filepath.Join(dir, "common")), sqlstore.Config{Dialect: sqlstore.SQLite})
	if err == nil {
		err = common.CreateTables(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // programs stop and start again
		for number, name := range []string{"eu-west-1", "us-east-1"} {
			c := snowkey.Config{Layout: layout, Region: &lease.Region{Name: name, Store: common}}
			gen, err := snowkey.Open(t.Context(), openSQLite(t, "file:"+filepath.Join(dir, name)), c)
			if err != nil {
				t.Fatal(err)
			}
			if id, err := gen.Next(t.Context()); err != nil || layout.Parts(id).Datacenter != int64(number) {
				t.Errorf("Next() in %s = an ID of %+v, %v; want datacenter %d", name, layout.Parts(id), err, number)
			}
			if err := gen.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	c := snowkey.Config{Layout: layout, Region: &lease.Region{Name: "us-east-1", Store: common}}
	if gen, err := snowkey.Open(t.Context(), openSQLite(t, "file:"+filepath.Join(dir, "eu-west-1")), c); !errors.Is(err, lease.ErrRegion) {
		t.Errorf("Open() of a region on the database of another = %v, %v; want ErrRegion", gen, err)
	}
	if gen, err := snowkey.Open(t.Context(), openSQLite(t, ":memory:"), c); err == nil || !strings.Contains(err.Error(), "Config.Region") {
		t.Errorf("Open() of a region in memory = %v, %v; want an error about Config.Region", gen, err)
	}
}
