package servers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/serial"
	"github.com/snowkey/snowkey/core/serial/sqlserial"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// takers return the first and the last number of a range, taken by a Store on a pool of a test.
var takers = map[string]func(t *testing.T, g leaseTarget) (make func(db *sql.DB) func() (first, last int64, err error)){
	"segments": func(t *testing.T, g leaseTarget) func(*sql.DB) func() (int64, int64, error) {
		s := g.segments(t, g.open(t), "")
		must(t, s.CreateTables(t.Context()))
		must(t, s.Create(t.Context(), segment.Row{Tag: "orders", Next: 1, Step: 10, Stride: 1}))
		return func(db *sql.DB) func() (int64, int64, error) {
			s := g.segments(t, db, "")
			return func() (int64, int64, error) {
				r, err := s.Take(t.Context(), segment.Take{Tag: "orders"})
				return r.First, r.Last, err
			}
		}
	},
	"serials": func(t *testing.T, g leaseTarget) func(*sql.DB) func() (int64, int64, error) {
		open := func(db *sql.DB) *sqlserial.Store {
			s, err := sqlserial.New(db, g.config(sqlserial.DefaultTable))
			must(t, err)
			return s
		}
		series := serial.Series{Name: "invoices", Prefix: "I", Digits: 9}
		must(t, open(g.open(t)).CreateTables(t.Context()))
		return func(db *sql.DB) func() (int64, int64, error) {
			s := open(db)
			must(t, s.Define(t.Context(), series))
			return func() (int64, int64, error) {
				first, err := s.Take(t.Context(), series.Name, "", time.Now(), 10)
				return first, first + 9, err
			}
		}
	},
}

// A node of Galera rolls a transaction back for the write of another node at any moment. MariaDB
// 10.11 reports that in the answer to a write or a COMMIT, and at times not in the answer to a read:
// the statements that follow then stand alone, and the COMMIT ends nothing.
func TestNumbersOfATransactionThatTheServerHasEndedAreNotReturned(t *testing.T) {
	for _, server := range []string{"MariaDB", "MySQL"} {
		for name, prepare := range takers {
			t.Run(server+"/"+name, func(t *testing.T) {
				g := wayTo(server + "Interpolated").target(t)
				open := prepare(t, g)
				others := open(g.open(t))
				take := func() (first, last int64) {
					first, last, err := others()
					must(t, err)
					return first, last
				}
				_, greatest := take()
				// The transaction is ended before a statement, and the other takes twice late statements later.
				for at, late := 1, 0; ; at, late = at+late/2, (late+1)%3 {
					var first, last int64
					var deadlock error
					within, statement := false, 0
					c := &endedConnector{Connector: g.connector(t)}
					own := open(g.pool(t, c))
					c.before = func(conn driver.Conn, reads bool) error {
						if statement++; statement == at {
							within, deadlock = true, rollback(t, conn)
						}
						if within && statement == at+late {
							first, _ = take()
							_, last = take()
						}
						if statement == at && !reads {
							return deadlock
						}
						return nil
					}
					start, end, err := own()
					switch {
					case errors.Is(err, sqlstore.ErrSchema):
						t.Errorf("Take, whose transaction is ended at statement %d, and the other's Take %d later = %v; no column is too narrow", at, late, err)
					case err == nil && (start <= greatest || start <= last && first <= end):
						t.Errorf("Take, whose transaction is ended at statement %d, = %d to %d; another was given %d to %d %d later, and %d before", at, start, end, first, last, late, greatest)
					case err == nil:
						greatest = max(greatest, end)
					}
					greatest = max(greatest, last)
					if first, _ := take(); first <= greatest {
						t.Errorf("Take after statement %d = %d; want a number after %d", at, first, greatest)
					}
					_, greatest = take()
					if statement < at {
						if at < 5 {
							t.Errorf("a Take has %d statements; want two reads, a write and COMMIT at least", statement)
						}
						return
					}
				}
			})
		}
	}
}

// An endedConnector makes connections that call before ahead of each statement of a transaction,
// unless it is nil.
type endedConnector struct {
	driver.Connector
	before func(conn driver.Conn, reads bool) error
}

func (c *endedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return &endedConn{Conn: conn, connector: c}, err
}

// rollback ends the transaction of a connection, and returns what the server says of the write that meets this.
func rollback(t *testing.T, conn driver.Conn) error {
	_, err := conn.(driver.ExecerContext).ExecContext(t.Context(), "ROLLBACK", nil)
	must(t, err)
	return &mysql.MySQLError{Number: 1213}
}

type endedConn struct {
	driver.Conn
	connector *endedConnector
	within    bool // a transaction
}

func (c *endedConn) ahead(reads bool) error {
	if !c.within || c.connector.before == nil {
		return nil
	}
	return c.connector.before(c.Conn, reads)
}

func (c *endedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	c.within = err == nil
	return endedTx{tx, c}, err
}

func (c *endedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.ahead(false); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *endedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.ahead(true); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type endedTx struct {
	driver.Tx
	conn *endedConn
}

func (tx endedTx) Commit() error {
	if err := tx.conn.ahead(false); err != nil {
		_ = tx.Tx.Rollback()
		return err
	}
	tx.conn.within = false
	return tx.Tx.Commit()
}

func (tx endedTx) Rollback() error {
	tx.conn.within = false
	return tx.Tx.Rollback()
}
