package integration

import (
	"testing"

	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/keysqlcases"
	"github.com/snowkey/snowkey/internal/servertest"
)

func TestKeySQLIsRightOnPostgreSQL(t *testing.T) {
	db := openSqlx(t, "pgx", servertest.PostgreSQL(t))
	keysqlcases.Run(t, db.DB, keysql.PostgreSQL)
}

func TestKeySQLIsRightOnMariaDB(t *testing.T) {
	db := openSqlx(t, "mysql", servertest.MariaDB(t))
	keysqlcases.Run(t, db.DB, keysql.MySQL)
}

func TestKeySQLIsRightOnMySQL(t *testing.T) {
	db := openSqlx(t, "mysql", servertest.MySQL(t))
	keysqlcases.Run(t, db.DB, keysql.MySQL)
}
