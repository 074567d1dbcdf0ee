//go:build cgo

package sqlsegment_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
	"github.com/snowkey/snowkey/types"
)

// oneFile returns a database that has the orders and the segments, and a store on it.
func oneFile(t *testing.T, dir string, connections int) (*sql.DB, *sqlsegment.Store) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "shop.db")+"?_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := over(t, db, "")
	if err := s.CreateTables(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 50, Stride: 1}); err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(connections)
	return db, s
}

// The error comes without a deadlock, by a clock that is simulated: real files, and waits
// that take no time.
func TestACreateThatStandsInItsOwnWayGetsAnErrorThatSaysSo(t *testing.T) {
	type Order struct {
		types.Model
		Number string
	}
	for name, c := range map[string]struct {
		connections int
		hold        time.Duration
		want        string
		within      time.Duration
	}{
		"the only connection, with prefetch":     {1, 0, "the pool's 1 connections are all in use", 5 * time.Second},
		"the only connection, without prefetch":  {1, -1, "the store's pool has one connection", 0},
		"the write lock of the file":             {4, 0, "another connection has the write lock of the file", 5 * time.Second},
		"the write lock of it, without prefetch": {4, -1, "another connection has the write lock of the file", 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sqlitetest.Folder(t)
			synctest.Test(t, func(t *testing.T) {
				pool, store := oneFile(t, dir, c.connections)
				// In a wrapper, as for metrics: the store's errors come through all the same.
				numbers, err := segment.New(struct{ segment.Store }{store}, segment.Config{Tag: "orders", Hold: c.hold, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				defer numbers.Close(context.WithoutCancel(t.Context()))
				db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
				if err == nil {
					err = errors.Join(db.Use(gormplugin.New(numbers)), db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, number TEXT)").Error)
				}
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = db.Transaction(func(tx *gorm.DB) error {
					if err := tx.Exec("INSERT INTO orders VALUES (-1, 'it has the lock')").Error; err != nil {
						return err
					}
					return tx.Create(&Order{Number: "A-1"}).Error
				})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Create in a transaction = %v; want an error that says %q", err, c.want)
				}
				if took := time.Since(began); took > c.within {
					t.Errorf("Create takes %v; want at most %v", took, c.within)
				}
			})
		})
	}
}

// The same transaction, where the segments have a file of their own.
func TestAFileOfItsOwnServesACreateInATransaction(t *testing.T) {
	pool, _ := oneFile(t, sqlitetest.Folder(t), 1)
	_, store := oneFile(t, sqlitetest.Folder(t), 1)
	numbers, err := segment.New(store, segment.Config{Tag: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close(context.WithoutCancel(t.Context()))
	tx, err := pool.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	if id, err := numbers.Next(t.Context()); id != 1 || err != nil {
		t.Errorf("Next in a transaction = %d, %v; want 1", id, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

func TestAPoolOfOneConnectionIsWarnedOfOnce(t *testing.T) {
	var text strings.Builder
	db, err := sql.Open("sqlite3", filepath.Join(sqlitetest.Folder(t), "segments.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s, err := sqlsegment.New(db, sqlstore.Config{Dialect: sqlstore.SQLite, Logger: slog.New(slog.NewTextHandler(&text, nil))})
	if err == nil {
		err = errors.Join(s.CreateTables(t.Context()), s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 1, Stride: 1}))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, connections := range []int{0, 2, 1, 1} {
		if n := strings.Count(text.String(), "the pool has one connection"); n != 0 && connections != 1 {
			t.Errorf("with a pool of more connections the log says %q; want nothing", text.String())
		}
		db.SetMaxOpenConns(connections)
		if _, err := s.Take(t.Context(), segment.Take{Tag: "orders"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(text.String(), "the pool has one connection"); n != 1 {
		t.Errorf("the log says it %d times; want once: %s", n, text.String())
	}
}
