//go:build cgo

package sqlsegment_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/internal/proof/servers/sqlitetest"
)

// The scenarios have the numbers that they have in package segment.
func TestNoScenarioBreaksThePromise(t *testing.T) {
	t.Run("46 commit of a segment unknown", func(t *testing.T) {
		file := filepath.Join(sqlitetest.Folder(t), "segments.db")
		if err := open(t, file).Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 10, Stride: 1}); err != nil {
			t.Fatal(err)
		}
		commits := 0
		a := allocator(t, over(t, sql.OpenDB(&sqlitetest.Connector{DSN: file, After: func(query string) error {
			if query == "COMMIT" {
				if commits++; commits == 1 {
					return errors.New("the reply is lost")
				}
			}
			return nil
		}}), ""))
		if id, err := a.Next(t.Context()); id != 11 || err != nil || commits != 2 {
			t.Errorf("Next = %d, %v after %d commits; want 11 after 2: the range of the first is burnt", id, err, commits)
		}
	})
	t.Run("47 rollback of the program", func(t *testing.T) {
		dir := sqlitetest.Folder(t)
		db, store := oneFile(t, dir, 4)
		a := allocator(t, store)
		if _, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		id, err := a.Next(t.Context()) // before the first write, which locks the file
		if err != nil || id != 1 {
			t.Fatalf("Next = %d, %v; want 1", id, err)
		}
		if _, err := tx.Exec("INSERT INTO orders VALUES (?)", int64(id)); err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		rows, err := store.Rows(t.Context())
		if err != nil || rows[0].Next != 51 || rows[0].Version != 1 {
			t.Errorf("Rows after the rollback = %+v, %v; want next = 51 and version 1, as the fetch has left them", rows, err)
		}
		if id, err := a.Next(t.Context()); id != 2 || err != nil {
			t.Errorf("Next after the rollback = %d, %v; want 2", id, err)
		}
	})
}

// allocator returns an Allocator without prefetch, which the test closes at its end.
func allocator(t *testing.T, store segment.Store) *segment.Allocator {
	t.Helper()
	a, err := segment.New(store, segment.Config{Tag: "orders", Hold: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.WithoutCancel(t.Context())) })
	return a
}
