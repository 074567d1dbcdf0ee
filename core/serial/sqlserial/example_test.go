//go:build cgo

package sqlserial_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

var invoices = serial.Series{Name: "invoices", Prefix: "INV", Period: serial.Yearly, Digits: 6}

// A store on a new database, with the table of the invoices.
func open() (db *sql.DB, store *sqlserial.Store, end func()) {
	dir, err := os.MkdirTemp("", "sqlserial")
	if err == nil {
		db, err = sql.Open("sqlite3", "file:"+filepath.Join(dir, "invoices.db")+"?_txlock=immediate")
	}
	if err == nil {
		store, err = sqlserial.New(db, sqlstore.Config{Dialect: sqlstore.SQLite})
	}
	if err == nil {
		err = store.CreateTables(context.Background())
	}
	if err == nil {
		_, err = db.Exec("CREATE TABLE invoices (number TEXT PRIMARY KEY)")
	}
	if err != nil {
		panic(err)
	}
	return db, store, func() { _, _ = db.Close(), os.RemoveAll(dir) }
}

// The number is there if and only if the transaction is committed.
func ExampleStore_NextIn() {
	ctx := context.Background()
	db, store, end := open()
	defer end()
	if err := store.Define(ctx, invoices); err != nil { // when the program starts
		fmt.Println(err)
		return
	}

	date := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for _, commit := range []bool{true, false, true} {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		n, err := store.NextIn(ctx, tx, invoices, date)
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO invoices (number) VALUES (?)", n.Text)
		}
		if commit && err == nil {
			err = tx.Commit()
		} else {
			err = errors.Join(err, tx.Rollback())
		}
		fmt.Println(n.Text, commit, err)
	}

	_, err := store.NextIn(ctx, db, invoices, date)
	fmt.Println(errors.Is(err, serial.ErrNotInTransaction))
	// Output:
	// INV2026000001 true <nil>
	// INV2026000002 false <nil>
	// INV2026000002 true <nil>
	// true
}

// Blocks of 100: no transaction of the caller, and gaps.
func ExampleStore_Take() {
	ctx := context.Background()
	_, store, end := open()
	defer end()
	notes, err := serial.NewCounter(store, serial.Series{Name: "notes", Period: serial.Daily, Digits: 5}, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = notes.Close(ctx) }()
	for range 2 {
		n, err := notes.Next(ctx, time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC))
		fmt.Println(n.Text, err)
	}
	// Output:
	// 2026112200001 <nil>
	// 2026112200002 <nil>
}

// At the end of a year: no later number, and a list of what is wrong.
func ExampleStore_Gaps() {
	ctx := context.Background()
	db, store, end := open()
	defer end()
	if err := store.Define(ctx, invoices); err != nil {
		fmt.Println(err)
		return
	}
	date := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	if _, err := store.Take(ctx, invoices.Name, "2026", date, 5); err != nil {
		fmt.Println(err)
		return
	}
	_, err := db.ExecContext(ctx, "INSERT INTO invoices (number) VALUES ('INV2026000001'), ('INV2026000004'), ('INV2026000005')")
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(store.ClosePeriod(ctx, invoices.Name, date))
	gaps, err := store.Gaps(ctx, invoices.Name, "2026", numbers(ctx, db))
	fmt.Println(gaps, err)
	// Output:
	// <nil>
	// [{Missing 2 3}] <nil>
}

// numbers reads the numbers of the table, one at a time.
func numbers(ctx context.Context, db *sql.DB) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		rows, err := db.QueryContext(ctx, "SELECT number FROM invoices WHERE number LIKE 'INV2026%' ORDER BY number")
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				fmt.Println(err)
				return
			}
			n, err := invoices.Parse(text)
			if err != nil {
				fmt.Println(err)
				return
			}
			if !yield(n.N) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			fmt.Println(err)
		}
	}
}
