package main

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"
)

// A jobTable is the rows of a job for one table, as the limits take them.
type jobTable struct {
	name    string
	columns []string
	rows    int
	// set puts the values of a row where they are wanted. appendBinary appends them as a
	// binary COPY reads them.
	set          func(values []any, row int)
	appendBinary func(b []byte, row int) []byte
}

// tables returns the tables of a job that have rows, parents first.
func (j *job) tables() []jobTable {
	var list []jobTable
	if j.orders != nil {
		list = append(list, jobTable{"orders", []string{"id", "number", "total", "created_at"}, len(j.orders),
			func(v []any, i int) {
				o := &j.orders[i]
				v[0], v[1], v[2], v[3] = o.ID, o.Number, o.Total, o.CreatedAt
			},
			func(b []byte, i int) []byte {
				o := &j.orders[i]
				b = appendInt64(append(b, 0, 4), o.ID)
				b = appendInt64(appendString(b, o.Number), o.Total)
				return appendInt64(b, o.CreatedAt.UnixMicro()-postgresEpoch)
			}})
	}
	return append(list, jobTable{"order_items", []string{"id", "order_id", "sku", "quantity", "price", "created_at"}, len(j.items),
		func(v []any, i int) {
			it := &j.items[i]
			v[0], v[1], v[2], v[3], v[4], v[5] = it.ID, it.OrderID, it.SKU, int64(it.Quantity), it.Price, it.CreatedAt
		},
		func(b []byte, i int) []byte {
			it := &j.items[i]
			b = appendInt64(appendInt64(append(b, 0, 6), it.ID), it.OrderID)
			b = binary.BigEndian.AppendUint32(append(appendString(b, it.SKU), 0, 0, 0, 4), uint32(int32(it.Quantity)))
			return appendInt64(appendInt64(b, it.Price), it.CreatedAt.UnixMicro()-postgresEpoch)
		}})
}

// sqliteLimit writes through the driver itself, without database/sql, so many rows
// per statement.
func sqliteLimit(chunk int) func(context.Context, *job) (load, error) {
	return func(ctx context.Context, j *job) (load, error) {
		return load{run: func() error {
			opened, err := j.db.Conn(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = opened.Close() }() // gives it back
			return opened.Raw(func(c any) error {
				conn, ok := c.(*sqlite3.SQLiteConn)
				if !ok {
					return fmt.Errorf("the connection is a %T", c)
				}
				return sqliteStore(ctx, conn, j.tables(), chunk)
			})
		}}, nil
	}
}

func sqliteStore(ctx context.Context, conn *sqlite3.SQLiteConn, tables []jobTable, chunk int) error {
	tx, err := conn.BeginTx(ctx, driver.TxOptions{})
	if err != nil {
		return err
	}
	for _, t := range tables {
		for done := 0; done < t.rows; {
			// All of the full chunks by one statement, then the rest by another.
			n := min(chunk, t.rows-done)
			if err := sqliteChunks(ctx, conn, t, done, n, (t.rows-done)/n); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			done += (t.rows - done) / n * n
		}
	}
	return tx.Commit()
}

// sqliteChunks inserts so many chunks of n rows with one prepared statement.
func sqliteChunks(ctx context.Context, conn *sqlite3.SQLiteConn, t jobTable, first, n, chunks int) (err error) {
	row := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	text := "INSERT INTO " + t.name + " (" + strings.Join(t.columns, ", ") + ") VALUES " + row + strings.Repeat(", "+row, n-1)
	prepared, err := conn.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prepared.Close()) }()
	stmt, ok := prepared.(driver.StmtExecContext)
	if !ok {
		return fmt.Errorf("%T has no ExecContext", prepared)
	}
	values := make([]any, len(t.columns))
	args := make([]driver.NamedValue, n*len(t.columns))
	for i := range args {
		args[i].Ordinal = i + 1
	}
	for c := range chunks {
		for i := range n {
			t.set(values, first+c*n+i)
			for k, v := range values {
				args[i*len(values)+k].Value = v
			}
		}
		if _, err := stmt.ExecContext(context.WithoutCancel(ctx), args); err != nil {
			return err
		}
	}
	return nil
}

// inPgx runs store for each table on the connection of pgx, in a transaction of
// database/sql.
func inPgx(ctx context.Context, j *job, store func(*pgx.Conn, jobTable) error) error {
	opened, err := j.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }() // gives it back
	tx, err := opened.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	err = opened.Raw(func(c any) error {
		conn, ok := c.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("the connection is a %T", c)
		}
		for _, t := range j.tables() {
			if err := store(conn.Conn(), t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Commit()
}

// copyFromLimit gives pgx the rows.
func copyFromLimit(ctx context.Context, j *job) (load, error) {
	return load{run: func() error {
		return inPgx(ctx, j, func(conn *pgx.Conn, t jobTable) error {
			rows := &copyRows{jobTable: t, next: -1, values: make([]any, len(t.columns))}
			_, err := conn.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, rows)
			return err
		})
	}}, nil
}

// binaryCopyLimit writes the rows as they go over the wire. It knows the types of
// the columns, and looks neither at them nor at the values.
func binaryCopyLimit(ctx context.Context, j *job) (load, error) {
	return load{run: func() error {
		return inPgx(ctx, j, func(conn *pgx.Conn, t jobTable) error {
			rows := &rowReader{jobTable: t, text: []byte(binaryHeader)}
			_, err := conn.PgConn().CopyFrom(ctx, rows, "COPY "+t.name+" ("+strings.Join(t.columns, ", ")+") FROM STDIN (FORMAT binary)")
			return err
		})
	}}, nil
}

// binaryHeader is a signature, flags and the length of no extensions.
const binaryHeader = "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000"

// postgresEpoch is where PostgreSQL's times begin, in microseconds since 1970.
const postgresEpoch = 946_684_800_000_000

// appendInt64 appends a bigint, or the microseconds of a timestamptz.
func appendInt64(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 8), uint64(v))
}

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// copyRows implements pgx.CopyFromSource. pgx encodes a row before it asks for the
// next, so that one slice serves all.
type copyRows struct {
	jobTable
	next   int
	values []any
}

func (r *copyRows) Next() bool {
	r.next++
	return r.next < r.rows
}

func (r *copyRows) Values() ([]any, error) {
	r.set(r.values, r.next)
	return r.values, nil
}

func (r *copyRows) Err() error { return nil }

// preparedLimit is database/sql with nothing on top. It is one prepared statement for so
// many rows, over one slice of values. The rows have their keys.
func preparedLimit(chunk int) func(context.Context, *job) (load, error) {
	return func(ctx context.Context, j *job) (load, error) {
		return load{run: func() error {
			return j.inTx(ctx, func(tx *sqlx.Tx) error {
				for _, t := range j.tables() {
					if err := preparedStore(ctx, tx, t, chunk); err != nil {
						return err
					}
				}
				return nil
			})
		}}, nil
	}
}

func preparedStore(ctx context.Context, tx *sqlx.Tx, t jobTable, chunk int) error {
	for done := 0; done < t.rows; {
		// All of the full chunks by one statement, then the rest by another.
		n := min(chunk, t.rows-done)
		if err := preparedChunks(ctx, tx, t, done, n, (t.rows-done)/n); err != nil {
			return err
		}
		done += (t.rows - done) / n * n
	}
	return nil
}

func preparedChunks(ctx context.Context, tx *sqlx.Tx, t jobTable, first, n, chunks int) (err error) {
	row := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	stmt, err := tx.PrepareContext(ctx, "INSERT INTO "+t.name+" ("+strings.Join(t.columns, ", ")+") VALUES "+row+strings.Repeat(", "+row, n-1))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	columns := len(t.columns)
	values := make([]any, n*columns)
	for c := range chunks {
		for i := range n {
			t.set(values[i*columns:(i+1)*columns], first+c*n+i)
		}
		if _, err := stmt.ExecContext(context.WithoutCancel(ctx), values...); err != nil {
			return err
		}
	}
	return nil
}

// copyInLimit is the COPY of lib/pq: a prepared statement that takes a row at a time.
func copyInLimit(ctx context.Context, j *job) (load, error) {
	return load{run: func() error {
		return j.inTx(ctx, func(tx *sqlx.Tx) error {
			for _, t := range j.tables() {
				if err := copyIn(ctx, tx, t); err != nil {
					return err
				}
			}
			return nil
		})
	}}, nil
}

func copyIn(ctx context.Context, tx *sqlx.Tx, t jobTable) (err error) {
	stmt, err := tx.PrepareContext(ctx, "COPY "+t.name+" ("+strings.Join(t.columns, ", ")+") FROM STDIN")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	values := make([]any, len(t.columns))
	for i := range t.rows {
		t.set(values, i)
		if _, err := stmt.ExecContext(ctx, values...); err != nil {
			return err
		}
	}
	_, err = stmt.ExecContext(ctx) // sends what is left, and hears how it went
	return err
}

// A rowReader is the rows of a table as a binary COPY reads them.
type rowReader struct {
	jobTable
	text []byte // not yet read, at first what is before the rows
	next int    // row; rows+1 after the trailer
	room []byte // that text lies in
}

// Read implements io.Reader.
func (r *rowReader) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		r.room = r.room[:0]
		for r.next < r.rows && len(r.room) < len(p) {
			r.room = r.appendBinary(r.room, r.next)
			r.next++
		}
		if r.next == r.rows {
			r.room = append(r.room, "\xff\xff"...)
			r.next++
		}
		if r.text = r.room; len(r.text) == 0 {
			return 0, io.EOF
		}
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}
