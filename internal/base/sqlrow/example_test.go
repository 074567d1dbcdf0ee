//go:build cgo

package sqlrow_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"

	_ "github.com/mattn/go-sqlite3"
)

var errNoTag = errors.New("no such tag")

// A store of segments takes ranges of numbers from a row. A range is used only if take
// has returned no error.
func ExampleDo() {
	dir, err := os.MkdirTemp("", "sqlrow-*")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	pool, err := sql.Open("sqlite3", filepath.Join(dir, "segments.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	ctx := context.Background()

	rows := sqlrow.New(pool, sqlrow.Config{
		Dialect: dialect.SQLite,
		Table:   "segments",
		Verdict: func(err error) bool { return errors.Is(err, errNoTag) },
		Warn:    func(context.Context, string, ...any) {}, // a real store logs it
		Now:     time.Now,
	})
	table := sqlrow.Quote(dialect.SQLite, "segments")
	for _, text := range []string{
		sqlrow.CreateTable(dialect.SQLite, table, "tag VARCHAR(128) NOT NULL PRIMARY KEY", "next BIGINT NOT NULL"),
		"INSERT INTO " + table + " VALUES ('orders', 1)",
	} {
		if _, err := pool.ExecContext(ctx, text); err != nil {
			log.Fatal(err)
		}
	}

	take := func(tag string, count int64) (first int64, err error) {
		return sqlrow.Do(ctx, rows, func(t *sqlrow.Tx) (int64, error) {
			var end int64
			err := t.Returning(ctx, []any{&end}, "UPDATE "+table+" SET next = next + ? WHERE tag = ? RETURNING next", count, tag)
			if errors.Is(err, sql.ErrNoRows) {
				err = errNoTag
			}
			return end - count, err
		})
	}
	fmt.Println(take("orders", 1000))
	fmt.Println(take("orders", 1000))
	fmt.Println(take("invoices", 1000))
	// Output:
	// 1 <nil>
	// 1001 <nil>
	// 0 no such tag
}
