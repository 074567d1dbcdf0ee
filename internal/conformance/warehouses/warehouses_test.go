// Package warehouses tests the dialects of keysql for copies of tables. It is a module of its
// own, because DuckDB's driver brings 30 MB of libraries.
package warehouses

import (
	"database/sql"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/conformance/keysqlcases"
)

func TestKeySQLIsRightOnDuckDB(t *testing.T) {
	keysqlcases.Run(t, duckDB(t), keysql.DuckDB)
}

// BigQuery itself does not run here. DuckDB has its operators and types, and macros stand for
// its functions, as its documentation describes them:
// https://cloud.google.com/bigquery/docs/reference/standard-sql/timestamp_functions and
// https://cloud.google.com/bigquery/docs/reference/standard-sql/mathematical_functions#div.
func TestKeySQLOfBigQueryIsRightByItsDocumentation(t *testing.T) {
	db := duckDB(t)
	for _, macro := range []string{
		"TIMESTAMP_MICROS(n) AS make_timestamp(n)",
		"UNIX_MICROS(t) AS epoch_us(t)",
		"DIV(n, d) AS n // d",
		"FORMAT(form, a, b, c, d) AS printf(form, a, b, c, d)",
	} {
		if _, err := db.ExecContext(t.Context(), "CREATE MACRO "+macro); err != nil {
			t.Fatalf("CREATE MACRO %s = %v", macro, err)
		}
	}
	keysqlcases.Run(t, db, keysql.BigQuery)
}

func duckDB(t *testing.T) *sql.DB {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
