package sqlxhelper

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"io"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// A Copier runs a COPY of PostgreSQL, which database/sql does not support. It belongs to a
// driver; github.com/snowkey/snowkey/sqlxhelper/pgxcopy has one for pgx. [WithCopy] gives it to
// a [Helper]. It must be as safe for concurrent use as the Helper is used.
type Copier interface {
	// Copy runs statement, a COPY … FROM STDIN, on the connection and in the transaction of db,
	// with all that it reads from rows, and returns how many rows the server has copied. With
	// another driver it sends nothing, returns an error, and leaves the transaction usable.
	//
	// It does not read from rows after it has returned.
	Copy(ctx context.Context, db sqlx.ExecerContext, statement string, rows io.Reader) (int64, error)
}

// copyRows bounds the rows of one COPY, so that a long load reports progress.
const copyRows = 50000

// copying sends rows by COPY, in the binary format or in the text format, which can carry more.
type copying struct {
	*attempt
	*load
	encoders []encoder
	in       pgtext.Format
	table    *pgtext.Table
	most     int // rows of the next COPY
	reader   *copyReader
}

// take encodes the first row. How many of the others can go by COPY is known when they are sent.
func (c *copying) take(first int) (int, error) {
	c.most = min(copyRows, len(c.load.rows)-first)
	c.reader = &copyReader{encoders: c.encoders, in: c.in, rows: c.load.rows[first : first+c.most]}
	if c.in == pgtext.Binary {
		c.reader.buf = []byte(binaryHeader)
	}
	c.reader.fill(len(c.reader.buf) + 1)
	return c.reader.done, nil
}

// send sends rows up to the first one that COPY cannot carry.
func (c *copying) send(ctx context.Context, s session) (int, driver.Result, error) {
	format := "text"
	if c.in == pgtext.Binary {
		format = "binary"
	}
	text := "COPY " + strings.TrimPrefix(c.head, "INSERT INTO ") + " FROM STDIN (FORMAT " + format + ")"
	affected, err := c.config.copier.Copy(ctx, s.db, text, c.reader)
	if err != nil {
		return c.most, nil, err // it may have failed for any of them
	}
	return c.reader.done, driver.RowsAffected(affected), nil
}

func (c *copying) check(ctx context.Context, s session, err error) error {
	if err == nil {
		return c.unchanged(ctx, s, c.load, c.table)
	}
	return c.copied(c.load, err)
}

// A copyReader encodes rows in a format of COPY while it is read. At a row that it cannot carry
// it ends as if there were no more, so that the COPY succeeds; an error would end the
// transaction.
//
// Drivers read in a goroutine of their own, where nothing could recover from a panic. The only
// foreign code here is Value methods, and argument recovers from their panics.
type copyReader struct {
	encoders []encoder
	in       pgtext.Format
	rows     []reflect.Value // cut short at one that it cannot carry
	done     int             // rows encoded so far
	buf      []byte          // unread from off on
	off      int
	closed   bool // buf has, or had, the trailer
}

// Read implements io.Reader.
func (r *copyReader) Read(p []byte) (int, error) {
	r.fill(len(p))
	if r.off == len(r.buf) {
		return 0, io.EOF
	}
	n := copy(p, r.buf[r.off:])
	r.off += n
	return n, nil
}

// binaryHeader is a signature, flags, and the length of no extensions.
const binaryHeader = "PGCOPY\n\377\r\n\000\000\000\000\000\000\000\000\000"

// fill encodes rows until n bytes can be read, or all there will be.
func (r *copyReader) fill(n int) {
	if len(r.buf)-r.off >= n {
		return
	}
	r.buf = r.buf[:copy(r.buf, r.buf[r.off:])]
	r.off = 0
	for len(r.buf) < n && r.done < len(r.rows) {
		if !r.append(r.rows[r.done]) {
			r.rows = r.rows[:r.done]
			break
		}
		r.done++
	}
	if r.in == pgtext.Binary && !r.closed && r.done == len(r.rows) {
		r.closed = true
		r.buf = append(r.buf, 0xff, 0xff)
	}
}

// append appends a row, or nothing.
func (r *copyReader) append(row reflect.Value) bool {
	b := r.buf
	if r.in == pgtext.Binary {
		b = binary.BigEndian.AppendUint16(b, uint16(len(r.encoders)))
	}
	for i := range r.encoders {
		if i > 0 && r.in == pgtext.Copy {
			b = append(b, '\t')
		}
		var fits bool
		if b, fits = r.encoders[i].append(b, row); !fits {
			return false
		}
	}
	if r.in == pgtext.Copy {
		b = append(b, '\n')
	}
	r.buf = b
	return true
}
