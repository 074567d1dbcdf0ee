package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/internal/base/outcome"
)

// An unread answers each query with a row, and counts the answers that were not read to the end. It
// is what go-sql-driver waits for when rows are closed, for as long as the server likes.
type unread struct {
	driver.Conn
	rows  int // that are left of the answer
	count int
}

func (u *unread) Connect(context.Context) (driver.Conn, error) { return u, nil }
func (u *unread) Driver() driver.Driver                        { return nil }
func (u *unread) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	u.rows = 1
	u.count++
	return u, nil
}
func (*unread) Columns() []string { return []string{"1"} }
func (*unread) Close() error      { return nil }
func (u *unread) Next(values []driver.Value) error {
	if u.rows == 0 {
		u.count--
		return io.EOF
	}
	u.rows--
	values[0] = int64(1)
	return nil
}

func TestValueIsReadToTheEndOfItsAnswer(t *testing.T) {
	u := &unread{}
	db := sqlx.NewDb(sql.OpenDB(u), "mysql")
	defer db.Close()
	if traitsOf(MySQL).prepares(t.Context(), session{db: db}) || u.count != 0 {
		t.Errorf("prepares() = true, or %d answers were not read to their end; want false and none", u.count)
	}
	c, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	open, err := outcome.InTransaction(t.Context(), MySQL, c)
	if !open || err != nil || u.count != 0 {
		t.Errorf("InTransaction() = %t, %v, and %d answers were not read to their end; want true and none", open, err, u.count)
	}
}
