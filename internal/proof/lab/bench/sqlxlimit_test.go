package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"io"
	"strings"

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

// list is the columns, as statements have them.
func (t jobTable) list() string { return t.name + " (" + strings.Join(t.columns, ", ") + ")" }

// tables returns the tables of a job that have rows, parents first.
func (j *job) tables() []jobTable {
	var list []jobTable
	if j.orders != nil {
		list = append(list, jobTable{"orders", []string{"id", "number", "total", "created_at"}, len(j.orders),
			func(v []any, i int) {
				o := &j.orders[i]
				v[0], v[1], v[2], v[3] = o.ID.Int64(), o.Number, o.Total, o.CreatedAt
			},
			func(b []byte, i int) []byte {
				o := &j.orders[i]
				b = appendInt64(append(b, 0, 4), o.ID.Int64())
				b = appendInt64(appendString(b, o.Number), o.Total)
				return appendInt64(b, o.CreatedAt.UnixMicro()-postgresEpoch)
			}})
	}
	return append(list, jobTable{"order_items", []string{"id", "order_id", "sku", "quantity", "price", "created_at"}, len(j.items),
		func(v []any, i int) {
			it := &j.items[i]
			v[0], v[1], v[2], v[3], v[4], v[5] = it.ID.Int64(), it.OrderID.Int64(), it.SKU, int64(it.Quantity), it.Price, it.CreatedAt
		},
		func(b []byte, i int) []byte {
			it := &j.items[i]
			b = appendInt64(appendInt64(append(b, 0, 6), it.ID.Int64()), it.OrderID.Int64())
			b = binary.BigEndian.AppendUint32(append(appendString(b, it.SKU), 0, 0, 0, 4), uint32(int32(it.Quantity)))
			return appendInt64(appendInt64(b, it.Price), it.CreatedAt.UnixMicro()-postgresEpoch)
		}})
}

// A statement is prepared, and takes the values of its rows.
type statement interface {
	execute(ctx context.Context, values []any) error
	Close() error
}

// inChunks inserts the rows of a table so many at a time: all full chunks by one prepared
// statement, then the rest by another.
func inChunks(ctx context.Context, t jobTable, chunk int, prepare func(text string, values int) (statement, error)) error {
	row := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	for done := 0; done < t.rows; {
		n := min(chunk, t.rows-done)
		values := make([]any, n*len(t.columns))
		s, err := prepare("INSERT INTO "+t.list()+" VALUES "+row+strings.Repeat(", "+row, n-1), len(values))
		if err != nil {
			return err
		}
		for ; err == nil && done+n <= t.rows; done += n {
			for i := range n {
				t.set(values[i*len(t.columns):(i+1)*len(t.columns)], done+i)
			}
			err = s.execute(context.WithoutCancel(ctx), values)
		}
		if err := errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	return nil
}

// ofTables makes a load that stores one table after the other, in a transaction of sqlx.
func ofTables(store func(context.Context, *sqlx.Tx, jobTable) error) func(context.Context, *job) (load, error) {
	return func(ctx context.Context, j *job) (load, error) {
		return load{run: func() error {
			return j.inTx(ctx, func(tx *sqlx.Tx) error {
				for _, t := range j.tables() {
					if err := store(ctx, tx, t); err != nil {
						return err
					}
				}
				return nil
			})
		}}, nil
	}
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
			return opened.Raw(func(c any) error { return sqliteStore(ctx, c.(*sqlite3.SQLiteConn), j.tables(), chunk) })
		}}, nil
	}
}

func sqliteStore(ctx context.Context, conn *sqlite3.SQLiteConn, tables []jobTable, chunk int) error {
	tx, err := conn.BeginTx(ctx, driver.TxOptions{})
	if err != nil {
		return err
	}
	for _, t := range tables {
		err := inChunks(ctx, t, chunk, func(text string, values int) (statement, error) {
			s, err := conn.PrepareContext(ctx, text)
			args := make([]driver.NamedValue, values)
			for i := range args {
				args[i].Ordinal = i + 1
			}
			return &sqliteStatement{s, args}, err
		})
		if err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

type sqliteStatement struct {
	driver.Stmt
	args []driver.NamedValue
}

func (s *sqliteStatement) execute(ctx context.Context, values []any) error {
	for i, v := range values {
		s.args[i].Value = v
	}
	_, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, s.args)
	return err
}

// preparedLimit is database/sql with nothing on top. It is one prepared statement for so
// many rows, over one slice of values. The rows have their keys.
func preparedLimit(chunk int) func(context.Context, *job) (load, error) {
	return ofTables(func(ctx context.Context, tx *sqlx.Tx, t jobTable) error {
		return inChunks(ctx, t, chunk, func(text string, _ int) (statement, error) {
			s, err := tx.PrepareContext(ctx, text)
			return sqlStatement{s}, err
		})
	})
}

type sqlStatement struct{ *sql.Stmt }

func (s sqlStatement) execute(ctx context.Context, values []any) error {
	_, err := s.ExecContext(ctx, values...)
	return err
}

// copyInLimit is the COPY of lib/pq: a prepared statement that takes a row at a time.
var copyInLimit = ofTables(func(ctx context.Context, tx *sqlx.Tx, t jobTable) (err error) {
	stmt, err := tx.PrepareContext(ctx, "COPY "+t.list()+" FROM STDIN")
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
})

// binaryCopyLimit writes the rows as they go over the wire, by a connection of pgx in a transaction
// of database/sql. It knows the types of the columns, and looks neither at them nor at the values.
func binaryCopyLimit(ctx context.Context, j *job) (load, error) {
	return load{run: func() error {
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
		for _, t := range j.tables() {
			err := opened.Raw(func(c any) error {
				rows := &rowReader{jobTable: t, text: []byte(binaryHeader)}
				_, err := c.(*stdlib.Conn).Conn().PgConn().CopyFrom(ctx, rows, "COPY "+t.list()+" FROM STDIN (FORMAT binary)")
				return err
			})
			if err != nil {
				return err
			}
		}
		return tx.Commit()
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
