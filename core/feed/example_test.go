//go:build cgo

package feed_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/types"
)

// A new database with a table of orders, and three keys for it that are older than Config.Slack.
func open() (db *sql.DB, keys []types.Snowflake, end func()) {
	dir, err := os.MkdirTemp("", "feed")
	if err == nil {
		db, err = sql.Open("sqlite3", "file:"+filepath.Join(dir, "orders.db")+"?_txlock=immediate")
	}
	if err == nil {
		_, err = db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY, number TEXT NOT NULL)")
	}
	keys = make([]types.Snowflake, 3)
	if err == nil {
		err = coretest.NewGenerator(coretest.Config{}).Fill(context.Background(), keys)
	}
	if err != nil {
		panic(err)
	}
	return db, keys, func() { _, _ = db.Close(), os.RemoveAll(dir) }
}

// The order of the keys, not that of the commits.
func ExampleFeed_Keys() {
	ctx := context.Background()
	db, ids, end := open()
	defer end()
	orders, err := feed.New(feed.Config{DB: db, Dialect: feed.SQLite, Table: "orders", Reader: "mail"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := orders.Install(ctx); err != nil { // once; Statements has it for a migration
		fmt.Println(err)
		return
	}
	const insert = "INSERT INTO orders (id, number) VALUES (?, ?)"
	for _, i := range []int{1, 0} { // the second key is committed first
		if _, err := db.ExecContext(ctx, insert, ids[i], fmt.Sprint("A-", i+1)); err != nil {
			fmt.Println(err)
			return
		}
	}

	var last types.Snowflake // stored with what was done for it
	for {
		keys, err := orders.Keys(ctx, last, 100)
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(keys) == 0 {
			break // a program sleeps for some time, and calls Keys again
		}
		for _, key := range keys {
			fmt.Println(key)
			last = key
		}
	}
	fmt.Println("5 s behind or more:", orders.Lag() >= 5*time.Second)

	// A row that comes too late for the readers is refused.
	_, err = db.ExecContext(ctx, insert, ids[2], "A-3")
	fmt.Println(err)
	// Output:
	// 132271570944000000
	// 132271570944000001
	// 5 s behind or more: true
	// feed: the key is below the horizon, to which the rows were read already; insert the row under a new key
}

// Whole rows, by a SELECT that begins after Horizon has returned.
func ExampleFeed_Horizon() {
	ctx := context.Background()
	db, ids, end := open()
	defer end()
	for i, id := range ids {
		if _, err := db.ExecContext(ctx, "INSERT INTO orders (id, number) VALUES (?, ?)", id, fmt.Sprint("A-", i+1)); err != nil {
			fmt.Println(err)
			return
		}
	}
	orders, err := feed.New(feed.Config{DB: db, Dialect: feed.SQLite, Table: "orders", Reader: "mail"})
	if err == nil {
		err = orders.Install(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	var last types.Snowflake // stored with what was done for it
	horizon, err := orders.Horizon(ctx, last)
	if err != nil {
		fmt.Println(err)
		return
	}
	rows, err := db.QueryContext(ctx, "SELECT id, number FROM orders WHERE id > ? AND id < ? ORDER BY id LIMIT 1000", last, horizon)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var number string
		if err := rows.Scan(&last, &number); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(last, number)
	}
	fmt.Println(rows.Err())
	// Output:
	// 132271570944000000 A-1
	// 132271570944000001 A-2
	// 132271570944000002 A-3
	// <nil>
}
