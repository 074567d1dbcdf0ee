package main

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
)

// interrupt is what the SQL function interrupt() calls in databases opened with
// the driver sqlite3_interrupt.
var interrupt struct {
	sync.Mutex
	stop context.CancelFunc
}

var registerInterrupt = sync.OnceFunc(func() {
	sql.Register("sqlite3_interrupt", &sqlite3.SQLiteDriver{
		ConnectHook: func(conn *sqlite3.SQLiteConn) error {
			return conn.RegisterFunc("interrupt", func() int {
				interrupt.Lock()
				defer interrupt.Unlock()
				interrupt.stop()
				return 0
			}, false)
		},
	})
})

// openStores makes both stores on db.
func openStores(t *testing.T, db *sql.DB) []*writer {
	t.Helper()
	t.Cleanup(func() { _ = db.Close() })
	keys, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keys.Close(context.WithoutCancel(t.Context())) })
	writers, err := newWriters(t.Context(), db, keys)
	if err != nil {
		t.Fatal(err)
	}
	return writers
}

func sampleData(t *testing.T) *dataset {
	t.Helper()
	d, err := openData("")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAnErrorOfTheDatabaseInALineRollsBackTheWholeOrder(t *testing.T) {
	db, err := openDatabase(t.Context(), dbFile(t))
	if err != nil {
		t.Fatal(err)
	}
	d := sampleData(t)
	for _, s := range openStores(t, db) {
		if err := s.begin(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		// The order and its first two lines are written, then the third meets
		// the foreign key.
		o := d.orders[0]
		s.products[o.Items[2].ProductNumber] = 1 // a key that is not there
		if err := s.order(t.Context(), o); err == nil || !strings.Contains(err.Error(), "FOREIGN KEY") {
			t.Errorf("%s: write = %v; want the foreign key error", s.name(), err)
		}
		wantNumber(t, db, 0, "SELECT count(*) FROM "+s.prefix()+"orders")
		wantNumber(t, db, 0, "SELECT count(*) FROM "+s.prefix()+"order_items")
		// The next order is none the worse.
		if err := s.order(t.Context(), d.orders[1]); err != nil {
			t.Errorf("%s: write of the next order = %v; want nil", s.name(), err)
		}
	}
}

func TestAnInterruptInTheMiddleOfAnOrderRollsItBack(t *testing.T) {
	registerInterrupt()
	for i, table := range []string{"gorm_orders", "sqlx_orders"} {
		t.Run(table, func(t *testing.T) {
			db, err := sql.Open("sqlite3_interrupt", dbFile(t)+"?_foreign_keys=on")
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			d := sampleData(t)
			s := openStores(t, db)[i]
			if err := s.begin(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			// When the order's row has been written and its lines have not.
			if _, err := db.ExecContext(t.Context(),
				"CREATE TRIGGER stop AFTER INSERT ON "+table+" BEGIN SELECT interrupt(); END"); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			interrupt.Lock()
			interrupt.stop = stop
			interrupt.Unlock()
			err = s.order(ctx, d.orders[0])
			if err == nil || ctx.Err() == nil { // what the error says is the driver's affair
				t.Errorf("%s: write = %v, ctx.Err() = %v; want two errors", s.name(), err, ctx.Err())
			}
			stop()
			wantNumber(t, db, 0, "SELECT count(*) FROM "+s.prefix()+"orders")
			wantNumber(t, db, 0, "SELECT count(*) FROM "+s.prefix()+"order_items")
		})
	}
}

func TestAnInterruptWhileAnImportBeginsLeavesNothingOfIt(t *testing.T) {
	registerInterrupt()
	for i, table := range []string{"gorm_products", "sqlx_products"} {
		t.Run(table, func(t *testing.T) {
			db, err := sql.Open("sqlite3_interrupt", dbFile(t)+"?_foreign_keys=on")
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			s := openStores(t, db)[i]
			if _, err := db.ExecContext(t.Context(),
				"CREATE TRIGGER stop AFTER INSERT ON "+table+" BEGIN SELECT interrupt(); END"); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			interrupt.Lock()
			interrupt.stop = stop
			interrupt.Unlock()
			err = s.begin(ctx, sampleData(t))
			if err == nil || ctx.Err() == nil { // what the error says is the driver's affair
				t.Errorf("%s: begin = %v, ctx.Err() = %v; want two errors", s.name(), err, ctx.Err())
			}
			stop()
			for _, table := range allTables {
				wantNumber(t, db, 0, "SELECT count(*) FROM "+s.prefix()+table)
			}
			if got := s.imp.ID; got != 0 {
				t.Errorf("%s: imp.ID = %d; want 0, since there is no import", s.name(), got)
			}
		})
	}
}

func TestOneImportHoldsAnOrderNumberOnce(t *testing.T) {
	db, err := openDatabase(t.Context(), dbFile(t))
	if err != nil {
		t.Fatal(err)
	}
	d := sampleData(t)
	for _, s := range openStores(t, db) {
		if err := s.begin(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if err := s.order(t.Context(), d.orders[0]); err != nil {
			t.Fatal(err)
		}
		if err := s.order(t.Context(), d.orders[0]); err == nil || !strings.Contains(err.Error(), "UNIQUE") {
			t.Errorf("%s: second write = %v; want the error of the unique index", s.name(), err)
		}
		wantNumber(t, db, 1, "SELECT count(*) FROM "+s.prefix()+"orders")
	}
}

func TestForeignKeysAreDeclaredAndEnforced(t *testing.T) {
	db, err := openDatabase(t.Context(), dbFile(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range openStores(t, db) {
		for table, want := range map[string]int64{"customers": 1, "products": 1, "orders": 2, "order_items": 2} {
			wantNumber(t, db, want, "SELECT count(*) FROM pragma_foreign_key_list('"+s.prefix()+table+"')")
		}
	}
	wantNumber(t, db, 1, "PRAGMA foreign_keys")
	wantNumber(t, db, 5000, "PRAGMA busy_timeout")
	wantNumber(t, db, 1, "PRAGMA synchronous")
	var mode string
	if err := db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("journal mode = %s, %v; want wal", mode, err)
	}
}

func TestATransactionTakesTheWriteLockWhenItBegins(t *testing.T) {
	file := dbFile(t)
	db, err := openDatabase(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	other := raw(t, file+"?_busy_timeout=1")
	if _, err := other.ExecContext(t.Context(), "CREATE TABLE x (y)"); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("writing beside a transaction that has begun = %v; want the database to be locked", err)
	}
}

func TestAFileNameMayHoldWhatAURLWouldMisread(t *testing.T) {
	for _, name := range []string{"a?b.db", "50%25.db", "a#b.db", "Zürich 1.db"} {
		file := dbFile(t) + name
		db, err := openDatabase(t.Context(), file)
		if err != nil {
			t.Fatalf("openDatabase(%q) = %v; want nil", name, err)
		}
		var got string
		err = db.QueryRowContext(t.Context(), "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&got)
		if err != nil || got != file {
			t.Errorf("openDatabase(%q) opens %q, %v; want %q", file, got, err, file)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAnInMemoryDatabaseWorks(t *testing.T) {
	runOK(t, ":memory:")
}
