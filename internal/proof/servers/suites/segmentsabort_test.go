package servers

import (
	"context"
	"database/sql/driver"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A node of Galera rolls a transaction back for the write of another node at any moment. MariaDB
// 10.11 reports that in the answer to a write or a COMMIT, and at times not in the answer to a read:
// the statements that follow then stand alone, and the COMMIT ends nothing.
func TestNumbersOfATransactionThatTheServerHasEndedAreNotReturned(t *testing.T) {
	for server, dsn := range map[string]func(testing.TB) string{"MariaDB": servertest.MariaDB, "MySQL": servertest.MySQL} {
		t.Run(server, func(t *testing.T) {
			g := leaseMySQL(t, dsn(t), func(c *mysql.Config) { c.InterpolateParams = true })
			other := g.segments(t, g.open(t), "")
			must(t, other.CreateTables(t.Context()))
			must(t, other.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 10, Stride: 1}))
			for at := 1; ; at++ {
				var theirs segment.Range
				statement := 0
				own := g.segments(t, g.pool(t, abortingConnector{g.connector(t), func(conn driver.Conn, reads bool) error {
					if statement++; statement != at {
						return nil
					}
					_, err := conn.(driver.ExecerContext).ExecContext(t.Context(), "ROLLBACK", nil)
					must(t, err)
					theirs, err = other.Take(t.Context(), segment.Take{Tag: "orders"})
					must(t, err)
					if reads {
						return nil
					}
					return &mysql.MySQLError{Number: 1213}
				}}), "")
				ours, err := own.Take(t.Context(), segment.Take{Tag: "orders"})
				if err == nil && ours.First <= theirs.Last && theirs.First <= ours.Last {
					t.Errorf("Take, whose transaction is ended at statement %d, = %+v, which another was given: %+v", at, ours, theirs)
				}
				if next, err := other.Take(t.Context(), segment.Take{Tag: "orders"}); err != nil || next.First <= max(ours.Last, theirs.Last) {
					t.Errorf("Take after statement %d = %+v, %v; want numbers after %d and %d", at, next, err, ours.Last, theirs.Last)
				}
				if statement < at {
					if at < 4 {
						t.Errorf("a Take has %d statements; want a read, a write and COMMIT at least", statement)
					}
					return
				}
			}
		})
	}
}

// An abortingConnector makes connections that call end before each statement of a transaction.
type abortingConnector struct {
	driver.Connector
	end func(conn driver.Conn, reads bool) error
}

func (c abortingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return &abortingConn{Conn: conn, end: c.end}, err
}

type abortingConn struct {
	driver.Conn
	end    func(conn driver.Conn, reads bool) error
	within bool // a transaction
}

func (c *abortingConn) before(reads bool) error {
	if !c.within {
		return nil
	}
	return c.end(c.Conn, reads)
}

func (c *abortingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	c.within = err == nil
	return abortedTx{tx, c}, err
}

func (c *abortingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.before(false); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *abortingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.before(true); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type abortedTx struct {
	driver.Tx
	conn *abortingConn
}

func (tx abortedTx) Commit() error {
	if err := tx.conn.before(false); err != nil {
		_ = tx.Tx.Rollback()
		return err
	}
	tx.conn.within = false
	return tx.Tx.Commit()
}

func (tx abortedTx) Rollback() error {
	tx.conn.within = false
	return tx.Tx.Rollback()
}
