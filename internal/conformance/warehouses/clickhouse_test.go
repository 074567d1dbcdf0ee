//go:build chdb

package warehouses

import (
	"database/sql"
	"testing"

	_ "github.com/chdb-io/chdb-go/chdb/driver" // panics without a libchdb.so

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/conformance/keysqlcases"
)

// The step copies of .ci/run has the library.
func TestKeySQLIsRightOnClickHouse(t *testing.T) {
	db, err := sql.Open("chdb", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	keysqlcases.Run(t, db, keysql.ClickHouse)
}
