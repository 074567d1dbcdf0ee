package servers

import (
	"flag"
	"testing"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
)

var keysqlRows = flag.Int("keysql.rows", 100_000, "rows of the table whose plans TheFunctionsOfKeySQL look at, up to 1000000")

func TestTheFunctionsOfKeySQLAreRightOnPostgres(t *testing.T) {
	t.Parallel()
	db := openSqlx(t, "pgx", wayTo("pgx").place(t).dsn)
	keysqlcases.RunFunctions(t, db.DB, keysql.PostgreSQL)
	t.Run("plans", func(t *testing.T) { keysqlcases.RunPlans(t, db.DB, keysql.PostgreSQL, *keysqlRows) })
}

func TestTheFunctionsOfKeySQLAreRightOnMariaDB(t *testing.T) {
	t.Parallel()
	db := openSqlx(t, "mysql", wayTo("MariaDB").place(t).dsn)
	keysqlcases.RunFunctions(t, db.DB, keysql.MySQL)
	t.Run("plans", func(t *testing.T) { keysqlcases.RunPlans(t, db.DB, keysql.MySQL, *keysqlRows) })
}

func TestTheFunctionsOfKeySQLAreRightOnMySQL(t *testing.T) {
	t.Parallel()
	db := openSqlx(t, "mysql", wayTo("MySQL").place(t).dsn)
	if isTiDB(t, db.DB) {
		t.Skip("TiDB has no CREATE FUNCTION")
	}
	keysqlcases.RunFunctions(t, db.DB, keysql.MySQL)
	t.Run("plans", func(t *testing.T) { keysqlcases.RunPlans(t, db.DB, keysql.MySQL, *keysqlRows) })
}
