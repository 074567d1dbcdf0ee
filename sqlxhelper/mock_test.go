package sqlxhelper_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

var ctx = context.Background()

// newMock returns a pool that takes exactly the statements that are expected, in their order. One
// that ends with "…" is expected to begin so. Without expectations every statement is an error.
func newMock(t *testing.T) (*sqlx.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(expected, actual string) error {
		if begin, ok := strings.CutSuffix(expected, "…"); ok && strings.HasPrefix(actual, begin) {
			return nil
		}
		return sqlmock.QueryMatcherEqual.Match(expected, actual)
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
		mock.ExpectClose()
		if err := db.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return sqlx.NewDb(db, "sqlmock"), mock
}

// newTx begins a transaction on a mock.
func newTx(t *testing.T, db *sqlx.DB, mock sqlmock.Sqlmock) *sqlx.Tx {
	t.Helper()
	mock.ExpectBegin()
	tx, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// newHelper returns a Helper whose keys are 1, 2, …
func newHelper(d sqlxhelper.Dialect) *sqlxhelper.Helper {
	return sqlxhelper.New(sqlxcases.NewCounter(0), sqlxhelper.WithDialect(d))
}

// pair is a narrow row.
type pair struct {
	ID types.Snowflake `db:"id"`
	N  int             `db:"n"`
}

// pairText and manyText are the statements for rows of pair on PostgreSQL.
const pairText = `INSERT INTO "t" ("id", "n") VALUES ($1, $2)`

func manyText(n int) string {
	b := strings.Builder{}
	b.WriteString(`INSERT INTO "t" ("id", "n") VALUES `)
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "($%d, $%d)", 2*i+1, 2*i+2)
	}
	return b.String()
}

// done is the result of a statement that inserted n rows.
func done(n int64) driver.Result { return sqlmock.NewResult(0, n) }

func wantRows(t *testing.T, db *sqlx.DB, table string, n int) {
	t.Helper()
	var got int
	if err := db.Get(&got, "SELECT COUNT(*) FROM "+table); err != nil || got != n {
		t.Errorf("rows in %s = %d, %v; want %d", table, got, err, n)
	}
}
