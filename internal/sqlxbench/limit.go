package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"
)

// limits returns the fastest ways that the databases and drivers have.
func limits() []variant {
	pgxOnly, pqOnly := []string{"PostgreSQL-pgx"}, []string{"PostgreSQL-pq"}
	sqliteOnly, mariaOnly := []string{"SQLite"}, []string{"MariaDB"}
	return []variant{
		{lines, "limit=50", "**limit**: mattn's driver, prepared for 50 rows", sqliteOnly, true, sqliteLimit(50)},
		{lines, "limit=1", "**limit**: mattn's driver, prepared for one row", sqliteOnly, true, sqliteLimit(1)},
		{lines, "limit", "**limit**: pgx `CopyFrom`", pgxOnly, true, copyFromLimit},
		{lines, "limit", "**limit**: `COPY` of lib/pq", pqOnly, true, copyInLimit},
		{lines, "limit", "**limit**: `LOAD DATA LOCAL`", mariaOnly, true, loadDataLimit},
		{graph, "limit=50", "**limit**: mattn's driver, prepared for 50 rows, twice", sqliteOnly, true, sqliteLimit(50)},
		{graph, "limit=1", "**limit**: mattn's driver, prepared for one row, twice", sqliteOnly, true, sqliteLimit(1)},
		{graph, "limit", "**limit**: two pgx `CopyFrom`", pgxOnly, true, copyFromLimit},
		{graph, "limit", "**limit**: two `COPY` of lib/pq", pqOnly, true, copyInLimit},
		{graph, "limit", "**limit**: two `LOAD DATA LOCAL`", mariaOnly, true, loadDataLimit},
	}
}

// A table is the rows of a job for one table, as the limits take them.
type table struct {
	name    string
	columns []string
	rows    int
	// set puts the values of a row where they are wanted, and appendText appends
	// them as LOAD DATA reads them.
	set        func(values []any, row int)
	appendText func(text []byte, row int) []byte
}

// tables returns the tables of a job that have rows, parents first.
func (j *job) tables() []table {
	var list []table
	if j.orders != nil {
		list = append(list, table{"orders", []string{"id", "number", "total", "created_at"}, len(j.orders),
			func(v []any, i int) {
				o := &j.orders[i]
				v[0], v[1], v[2], v[3] = o.ID, o.Number, o.Total, o.CreatedAt
			},
			func(b []byte, i int) []byte {
				o := &j.orders[i]
				b = append(strconv.AppendInt(b, o.ID, 10), '\t')
				b = append(appendEscaped(b, o.Number), '\t')
				b = append(strconv.AppendInt(b, o.Total, 10), '\t')
				return append(o.CreatedAt.AppendFormat(b, mysqlTime), '\n')
			}})
	}
	return append(list, table{"order_items", []string{"id", "order_id", "sku", "quantity", "price", "created_at"}, len(j.items),
		func(v []any, i int) {
			it := &j.items[i]
			v[0], v[1], v[2], v[3], v[4], v[5] = it.ID, it.OrderID, it.SKU, int64(it.Quantity), it.Price, it.CreatedAt
		},
		func(b []byte, i int) []byte {
			it := &j.items[i]
			b = append(strconv.AppendInt(b, it.ID, 10), '\t')
			b = append(strconv.AppendInt(b, it.OrderID, 10), '\t')
			b = append(appendEscaped(b, it.SKU), '\t')
			b = append(strconv.AppendInt(b, int64(it.Quantity), 10), '\t')
			b = append(strconv.AppendInt(b, it.Price, 10), '\t')
			return append(it.CreatedAt.AppendFormat(b, mysqlTime), '\n')
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

func sqliteStore(ctx context.Context, conn *sqlite3.SQLiteConn, tables []table, chunk int) error {
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
func sqliteChunks(ctx context.Context, conn *sqlite3.SQLiteConn, t table, first, n, chunks int) (err error) {
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

// copyFromLimit gives pgx the rows, in a transaction of database/sql.
func copyFromLimit(ctx context.Context, j *job) (load, error) {
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
		err = opened.Raw(func(c any) error {
			conn, ok := c.(*stdlib.Conn)
			if !ok {
				return fmt.Errorf("the connection is a %T", c)
			}
			for _, t := range j.tables() {
				rows := &copyRows{table: t, next: -1, values: make([]any, len(t.columns))}
				if _, err := conn.Conn().CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, rows); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return tx.Commit()
	}}, nil
}

// copyRows implements pgx.CopyFromSource. pgx encodes a row before it asks for the
// next, so that one slice serves all.
type copyRows struct {
	table
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

func copyIn(ctx context.Context, tx *sqlx.Tx, t table) (err error) {
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

// loadDataLimit has MariaDB read text from the client. It is a limit, not a way to
// store rows. It takes duplicates, texts that are too long, and text that is not a
// number, without an error.
func loadDataLimit(ctx context.Context, j *job) (load, error) {
	return load{run: func() error {
		return j.inTx(ctx, func(tx *sqlx.Tx) error {
			for _, t := range j.tables() {
				mysql.RegisterReaderHandler(t.name, func() io.Reader { return &textRows{table: t} })
				_, err := tx.ExecContext(ctx, "LOAD DATA LOCAL INFILE 'Reader::"+t.name+"' INTO TABLE "+t.name+
					` CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n' (`+strings.Join(t.columns, ", ")+")")
				mysql.DeregisterReaderHandler(t.name)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}}, nil
}

// mysqlTime is how MariaDB reads a time.
const mysqlTime = "2006-01-02 15:04:05.000000"

// textRows is the rows as text.
type textRows struct {
	table
	next int
	text []byte // not yet read
	room []byte // that text lies in
}

// Read implements io.Reader.
func (r *textRows) Read(p []byte) (int, error) {
	if len(r.text) == 0 {
		if r.next == r.rows {
			return 0, io.EOF
		}
		r.room = r.room[:0]
		for r.next < r.rows && len(r.room) < len(p) {
			r.room = r.appendText(r.room, r.next)
			r.next++
		}
		r.text = r.room
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// appendEscaped appends a text as LOAD DATA reads it. There is no zero byte in one,
// which PostgreSQL would not take.
func appendEscaped(b []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; c {
		case '\t', '\n', '\\':
			b = append(b, '\\', c)
		default:
			b = append(b, c)
		}
	}
	return b
}
