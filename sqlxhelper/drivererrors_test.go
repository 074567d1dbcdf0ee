package sqlxhelper

import "github.com/snowkey/snowkey/internal/proof/servers/drivererrors"

// MySQLError and the functions below are errors as drivers have them.
type MySQLError = drivererrors.MySQLError

var (
	postgres = drivererrors.Postgres
	mysql    = drivererrors.MySQL
	mattn    = drivererrors.Mattn
)
