//go:build chdb

package warehouses

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "github.com/chdb-io/chdb-go/chdb/driver" // panics without a libchdb.so

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
)

// The step copies of .ci/nightly has the library.
func TestKeySQLIsRightOnClickHouse(t *testing.T) {
	keysqlcases.Run(t, clickHouse(t), keysql.ClickHouse)
}

func TestClickHouseTakesUnsignedKeysAndTimesOfAnyZone(t *testing.T) {
	db := clickHouse(t)
	id, err := keysql.New(keysql.ClickHouse, core.Default(), "id")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 5, 4, 22, 30, 0, 0, time.UTC)
	key := core.Default().Max(at)
	from := "toDateTime('2026-05-05 00:30:00', 'Europe/Berlin')"
	for _, column := range []string{"Int64", "UInt64"} {
		query := fmt.Sprintf("SELECT toString(%s), toString(%s), %s FROM (SELECT to%s('%d') AS id) WHERE %s",
			id.Time(), id.Text(), id.Worker(), column, key, id.Between(from, "addMilliseconds(toDateTime64("+from+", 3), 1)"))
		var made, text string
		var worker int64
		if err := db.QueryRowContext(t.Context(), query).Scan(&made, &text, &worker); err != nil ||
			made != "2026-05-04 22:30:00.000000" || text != key.String() || worker != 1023 {
			t.Errorf("%s = %s, %s, %d, %v; want those of %d", query, made, text, worker, err, key)
		}
	}
}

func clickHouse(t *testing.T) *sql.DB {
	db, err := sql.Open("chdb", "")
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
