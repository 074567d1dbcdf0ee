package alternatives

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
)

// tableOf returns a table with the last number, in a database with two connections.
func tableOf(t *testing.T) (a, b *sql.Conn) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "numbers.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.ExecContext(t.Context(), "CREATE TABLE numbers (last INTEGER NOT NULL); INSERT INTO numbers VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	conns := make([]*sql.Conn, 2)
	for i := range conns {
		if conns[i], err = db.Conn(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conns[i].Close() })
	}
	return conns[0], conns[1]
}

// number runs a statement that returns a number.
func number(t *testing.T, c *sql.Conn, query string) (n int64) {
	t.Helper()
	if err := c.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(query, err)
	}
	return n
}

func run(t *testing.T, c *sql.Conn, query string, args ...any) {
	t.Helper()
	if _, err := c.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(query, err)
	}
}

const (
	look = "SELECT last FROM numbers"
	take = "UPDATE numbers SET last = last + 1 RETURNING last"
)

// Two callers read the row before either writes it: SELECT, then UPDATE, without a lock.
func TestReadThenWriteGivesANumberTwice(t *testing.T) {
	a, b := tableOf(t)
	x, y := number(t, a, look)+1, number(t, b, look)+1
	run(t, a, "UPDATE numbers SET last = ?", x)
	run(t, b, "UPDATE numbers SET last = ?", y)
	if x != y {
		t.Errorf("A gets %d and B %d; want one number twice", x, y)
	}
	if x, y := number(t, a, take), number(t, b, take); x == y {
		t.Errorf("one statement that reads and writes gives %d twice; want two numbers", x)
	}

	store := rowOf(t, 1, 1, 0)
	if x, y := takeOne(t, store), takeOne(t, store); x == y {
		t.Errorf("two calls of Take give %d; want two numbers", x)
	}
}

// The number is taken in the caller's transaction. The caller prints it, and rolls back.
func TestARollbackGivesANumberAgainThatIsInUseOutside(t *testing.T) {
	a, b := tableOf(t)
	run(t, a, "BEGIN")
	printed := number(t, a, take) // on an invoice, in a message, in another database
	run(t, a, "ROLLBACK")
	if again := number(t, b, take); again != printed {
		t.Errorf("the next caller gets %d; want %d again", again, printed)
	}
}

func rowOf(t *testing.T, next, stride, offset int64) segment.Store {
	store := new(segmenttest.Memory)
	err := store.Create(t.Context(), segment.Row{Tag: "a", Next: next, Step: 1, Stride: stride, Offset: offset})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func takeOne(t *testing.T, s segment.Store) int64 {
	r, err := s.Take(context.Background(), segment.Take{Tag: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return r.First*r.Stride + r.Offset
}
