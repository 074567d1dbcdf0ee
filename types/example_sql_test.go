package types_test

import (
	"fmt"
	"log"

	"github.com/snowkey/snowkey/types"
)

// An ID serves database/sql as a parameter and as a destination: db is a *sql.DB. A column that may be NULL takes a
// NullSnowflake.
func Example_databaseSQL() {
	if _, err := db.Exec("CREATE TABLE categories (id BIGINT PRIMARY KEY, parent_id BIGINT)"); err != nil {
		log.Fatal(err)
	}
	root := types.Snowflake(175928847299117063)
	child := root + 1
	if _, err := db.Exec("INSERT INTO categories VALUES (?, ?), (?, ?)",
		root, types.NullSnowflake{}, child, types.NullSnowflake{Snowflake: root, Valid: true}); err != nil {
		log.Fatal(err)
	}

	rows, err := db.Query("SELECT id, parent_id FROM categories ORDER BY id")
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id types.Snowflake
		var parent types.NullSnowflake
		if err := rows.Scan(&id, &parent); err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, parent)
	}
	if err := rows.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 175928847299117063 NULL
	// 175928847299117064 175928847299117063
}
