package servers

import (
	"testing"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

func TestKeySQLIsRightOnPostgreSQL(t *testing.T) {
	t.Parallel()
	db := openSqlx(t, "pgx", servertest.PostgreSQL(t))
	if v := postgresVersion(t, db.DB); v < 14 {
		t.Skipf("keysql needs PostgreSQL 14, and this is %d: there, extract returns a float", v)
	}
	keysqlcases.Run(t, db.DB, keysql.PostgreSQL)
}

func TestKeySQLIsRightOnMariaDB(t *testing.T) {
	t.Parallel()
	db := openSqlx(t, "mysql", servertest.MariaDB(t))
	keysqlcases.Run(t, db.DB, keysql.MySQL)
}

func TestKeySQLIsRightOnMySQL(t *testing.T) {
	t.Parallel()
	db := openSqlx(t, "mysql", servertest.MySQL(t))
	keysqlcases.Run(t, db.DB, keysql.MySQL)
}
