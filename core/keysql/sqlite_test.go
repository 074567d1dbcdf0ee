//go:build cgo

package keysql_test

import (
	"database/sql"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
)

func TestExpressionsAreRightOnSQLite(t *testing.T) {
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keysqlcases.Run(t, db, keysql.SQLite)
}

func TestTheViewIsRightOnSQLite(t *testing.T) {
	db, err := sql.Open("sqlite3", t.TempDir()+"/view.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keysqlcases.RunFunctions(t, db, keysql.SQLite)
}
