package sqlxhelper

import "github.com/snowkey/snowkey/internal/sqlerror/sqlerrortest"

// MySQLError and the functions below are errors as drivers have them.
type MySQLError = sqlerrortest.MySQLError

var (
	postgres = sqlerrortest.Postgres
	mysql    = sqlerrortest.MySQL
	mattn    = sqlerrortest.Mattn
)
