package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// OnConn makes a [DB] of one connection of a pool, for temporary tables, settings of the
// session and locks that belong to it. driverName is that of the pool: db.DriverName().
// *sqlx.Conn keeps it to itself.
//
// The DB is a pool of one connection. Several statements run in a transaction that the
// call begins on it, which the database must not have begun already: a call that finds
// one open, such as that of a raw BEGIN, fails with [ErrDB], and the transaction stays
// open. Begin it by BeginTxx and use the *sqlx.Tx instead. Nor may rows of a query on c be
// unread: with pgx, database/sql would wait for them forever. The DB is as safe for
// concurrent use as c, and c stays the caller's to close. [InTx] takes no connection,
// since it needs another one after a lost commit.
func OnConn(c *sqlx.Conn, driverName string) DB { return onConn{Conn: c, driver: driverName} }

// An onConn adds what *sqlx.Conn lacks of a DB.
type onConn struct {
	*sqlx.Conn
	driver  string
	dialect Dialect // of the Helper; zero: that of the driver
}

// DriverName implements [DB].
func (c onConn) DriverName() string { return c.driver }

// BindNamed implements [DB].
func (c onConn) BindNamed(query string, arg any) (string, []any, error) {
	return sqlx.BindNamed(sqlx.BindType(c.driver), query, arg)
}

// BeginTxx begins a transaction, or returns ErrDB if one is open. MySQL's START
// TRANSACTION would commit that one. PostgreSQL would only warn, and COMMIT both.
func (c onConn) BeginTxx(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, error) {
	open, err := c.inTransaction(ctx)
	if err != nil {
		return nil, err
	}
	var tx *sqlx.Tx
	if !open {
		tx, err = c.Conn.BeginTxx(ctx, opts)
		// SQLite refuses it by itself.
		open = err != nil && strings.Contains(err.Error(), "within a transaction")
	}
	if open {
		return nil, fmt.Errorf("%w: the connection of OnConn is inside of a transaction, which a second BEGIN could commit; begin it by BeginTxx and pass the *sqlx.Tx", ErrDB)
	}
	return tx, err
}

// inTransaction reports whether a transaction was begun by a statement. It leaves that
// transaction as it is.
func (c onConn) inTransaction(ctx context.Context) (open bool, err error) {
	d := c.dialect
	if d == 0 {
		d, _ = dialectOf(c.driver) // an error is one of the call, before it comes here
	}
	switch d {
	case PostgreSQL:
		// No function tells. A setting that is local to a transaction lasts until the
		// next query only within one. The times of the statement and the transaction
		// are no proof, as each message of the extended protocol sets the former.
		if _, err := c.ExecContext(ctx, "SELECT pg_catalog.set_config('snowkey.begun', 'yes', true)"); err != nil {
			return false, err
		}
		err = scalar(ctx, c, &open, "SELECT COALESCE(pg_catalog.current_setting('snowkey.begun', true), '') = 'yes'")
	case MySQL:
		err = scalar(ctx, c, &open, "SELECT @@in_transaction")
		if dialect.UnknownVariable(err) {
			// MySQL does not have it, but refuses, with an error that changes nothing,
			// to set how the next transaction begins while one is open.
			_, err = c.ExecContext(ctx, "SET @@transaction_read_only = @@session.transaction_read_only")
			if open = dialect.InTransaction(err); open {
				err = nil
			}
		}
	}
	return open, err
}
