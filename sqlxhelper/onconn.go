package sqlxhelper

import "github.com/jmoiron/sqlx"

// OnConn makes a [DB] of one connection of a pool, for temporary tables, settings of the
// session and locks that belong to it. driverName is that of the pool: db.DriverName().
// *sqlx.Conn keeps it to itself.
//
// The DB is a pool of one connection. Several statements run in a transaction that the
// call begins on it. So the connection must not be inside of a transaction: use the
// *sqlx.Tx then. The DB is as safe for concurrent use as c, and c stays the caller's to
// close. [InTx] takes no connection, since it needs another one after a lost commit.
func OnConn(c *sqlx.Conn, driverName string) DB { return onConn{c, driverName} }

// An onConn adds what *sqlx.Conn lacks of a DB.
type onConn struct {
	*sqlx.Conn
	driver string
}

// DriverName implements [DB].
func (c onConn) DriverName() string { return c.driver }

// BindNamed implements [DB].
func (c onConn) BindNamed(query string, arg any) (string, []any, error) {
	return sqlx.BindNamed(sqlx.BindType(c.driver), query, arg)
}
