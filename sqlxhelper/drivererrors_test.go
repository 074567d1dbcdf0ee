package sqlxhelper

import "github.com/snowkey/snowkey/internal/base/dialect/dialecttest"

// MySQLError and the functions below are errors as drivers have them.
type MySQLError = dialecttest.MySQLError

var (
	postgres = dialecttest.Postgres
	mysql    = dialecttest.MySQL
	mattn    = dialecttest.Mattn
)
