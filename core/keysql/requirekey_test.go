//go:build cgo

package keysql_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/keysql"
)

func TestRowsWithoutAKeyAreRefusedOnSQLite(t *testing.T) {
	for _, table := range []string{"orders", "main.orders"} {
		for _, column := range []string{
			"INTEGER PRIMARY KEY", "INTEGER NOT NULL PRIMARY KEY", "INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT PRIMARY KEY",
		} {
			t.Run(table+" "+column, func(t *testing.T) {
				db, err := sql.Open("sqlite3", ":memory:")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = db.Close() }()
				db.SetMaxOpenConns(1) // each has a memory of its own
				exec := func(text string) error {
					_, err := db.ExecContext(t.Context(), text)
					return err
				}
				statements, err := keysql.RequireKey(keysql.SQLite, table, "id")
				if err != nil {
					t.Fatal(err)
				}
				setup := append([]string{"CREATE TABLE orders (id " + column + ", number TEXT)"}, statements...)
				for _, s := range append(setup, statements...) { // again changes nothing
					if err := exec(s); err != nil {
						t.Fatal(s, err)
					}
				}
				const key = "INSERT INTO orders VALUES (177026472345612305, 'A')"
				for _, row := range []string{
					key,
					"INSERT INTO orders (number) VALUES ('A')",
					"INSERT INTO orders VALUES (NULL, 'A')",
					"INSERT INTO orders VALUES (0, 'A')",
					"INSERT INTO orders VALUES (-1, 'A')",
					"INSERT INTO orders SELECT NULL, 'A'",
					"INSERT OR IGNORE INTO orders VALUES (NULL, 'A')",
					"REPLACE INTO orders VALUES (NULL, 'A')",
				} {
					err := exec(row)
					if row == key && err != nil {
						t.Errorf("%s = %v; want no error", row, err)
					}
					if row != key && (err == nil || !strings.Contains(err.Error(), "the row has no key")) {
						t.Errorf("%s = %v; want that the row has no key", row, err)
					}
				}
				var rows int
				if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&rows); err != nil || rows != 1 {
					t.Errorf("%d rows, %v; want the one with a key", rows, err)
				}
			})
		}
	}
}
