package servertest

import (
	"context"
	"database/sql"
	"fmt"
)

// Table returns the name in full of a table in the schema, or on MySQL the database, of the
// connections of db. Tests name the tables of stores so, because tests that run at the same time have
// tables of the same name in other schemas.
func Table(db *sql.DB, table string) (string, error) {
	var schema string
	err := db.QueryRowContext(context.Background(), "SELECT current_schema()").Scan(&schema)
	if err != nil {
		err = db.QueryRowContext(context.Background(), "SELECT DATABASE()").Scan(&schema)
	}
	if err != nil {
		return "", fmt.Errorf("the schema of the connections: %w", err)
	}
	return schema + "." + table, nil
}
