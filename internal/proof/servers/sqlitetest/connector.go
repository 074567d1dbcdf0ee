//go:build cgo

package sqlitetest

import (
	"context"
	"database/sql/driver"
	"sync"

	"github.com/mattn/go-sqlite3"
)

// A Connector makes connections to SQLite that call Before and After each statement,
// unless these are nil. An error of Before stands for the statement, which is not run.
// One of After stands for its answer. The fields are changed between the statements of
// one goroutine.
type Connector struct {
	DSN           string
	Before, After func(query string) error

	mu   sync.Mutex
	sent []string
}

// Connect opens a connection.
func (c *Connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.Driver().Open(c.DSN)
	if err != nil {
		return nil, err
	}
	return &conn{opened.(*sqlite3.SQLiteConn), c}, nil
}

// Driver returns the driver of SQLite.
func (c *Connector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

// Sent returns the statements since the last call, and "close" for each connection that
// was closed.
func (c *Connector) Sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return sent
}

func (c *Connector) before(query string) error {
	c.mu.Lock()
	c.sent = append(c.sent, query)
	c.mu.Unlock()
	if c.Before != nil {
		return c.Before(query)
	}
	return nil
}

type conn struct {
	*sqlite3.SQLiteConn
	c *Connector
}

func (c *conn) Close() error {
	_ = c.c.before("close")
	return c.SQLiteConn.Close()
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.c.before(query); err != nil {
		return nil, err
	}
	result, err := c.SQLiteConn.ExecContext(ctx, query, args)
	if err == nil && c.c.After != nil {
		err = c.c.After(query)
	}
	return result, err
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.c.before(query); err != nil {
		return nil, err
	}
	return c.SQLiteConn.QueryContext(ctx, query, args)
}
