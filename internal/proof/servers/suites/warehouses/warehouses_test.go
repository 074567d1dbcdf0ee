// Package warehouses tests the dialects of keysql for copies of tables. It is a module of its
// own, because DuckDB's driver brings 30 MB of libraries.
package warehouses

import (
	"database/sql"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
	"github.com/snowkey/snowkey/types"
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

// A TIMESTAMPTZ is a moment, whatever the zone of the session.
func TestDuckDBTakesTimesOfAnyZone(t *testing.T) {
	db := duckDB(t)
	id, err := keysql.New(keysql.DuckDB, core.Default(), "id")
	if err != nil {
		t.Fatal(err)
	}
	want := core.Default().Min(time.Date(2026, 5, 4, 22, 30, 0, 0, time.UTC))
	for _, at := range []string{"TIMESTAMP '2026-05-04 22:30:00'", "TIMESTAMPTZ '2026-05-05 00:30:00 Europe/Berlin'"} {
		var got types.Snowflake
		query := "SELECT " + id.Min(at)
		if err := db.QueryRowContext(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %d, %v; want %d", query, got, err, want)
		}
	}
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
