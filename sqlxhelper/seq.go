package sqlxhelper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/types"
)

// seqRows is how many rows of a sequence are in memory at a time. Statements usually have
// fewer, and would not grow with it. In a COPY each chunk costs two round trips for its
// savepoint, below 1 % at 5,000 rows on loopback.
const seqRows = 5000

// InsertSeq inserts the rows of a sequence into table, where T is a struct or a pointer to
// one, and returns their number. Use it for more rows than fit into memory: it holds a few
// thousand at a time. In all other respects it behaves as [Helper.InsertMany] does.
//
// All rows go into one transaction, either that of db or one of its own. After an error
// nothing of the call is stored, and inserted is 0. If the sequence yields an error,
// InsertSeq stops reading and returns it wrapped; if the sequence panics or ends its
// goroutine, the rows are undone too.
//
// The transaction is not retried, because a sequence may be readable only once, and a
// serialization failure is returned as the database's error. If the sequence can be read
// again, call InsertSeq inside of [InTx].
//
// Rows are kept until a few thousand are sent together. A struct is copied when it is yielded,
// with the bytes of its []byte fields, so that the sequence may use it, and the slice of a
// bufio.Scanner, for the next row. Do not change what else a row refers to, nor a struct
// behind a pointer, until InsertSeq returns: yield each pointer once.
//
// Keys are set in structs behind pointers before yield returns, except in an upsert, and those
// of other structs are not returned. The source is asked for one key per pointer, and for the
// keys of a few thousand structs at a time. A row may refer to rows that were yielded before it,
// but not to later ones, which may be in a later statement.
//
// Errors count rows from the beginning of the sequence, and [InsertError.Rows] is the number
// read so far. [OnProgress] reports a total of -1, since the total is unknown.
//
// The sequence runs between the statements of a transaction, while locks are held. It must
// not use that transaction: on PostgreSQL and MySQL, unread rows of its own queries make the
// next statement fail, with an error that says so.
func InsertSeq[T any](ctx context.Context, h *Helper, db DB, table string, rows iter.Seq2[T, error]) (inserted int64, err error) {
	if rows == nil {
		return 0, fmt.Errorf("%w: InsertSeq got a nil sequence", ErrArgument)
	}
	// What can be refused is refused before the sequence begins.
	if err := h.InsertMany(ctx, db, table, []T(nil)); err != nil {
		return 0, err
	}
	c, err := h.connect(db)
	if err != nil {
		return 0, err
	}
	s := &sequence[T]{helper: h, table: table, rows: rows}
	if c.pool != nil {
		t := outcome.Transaction{Database: c.database(h.config.partial)}
		_, err = t.Run(ctx, watch(&t.Record, func(tx *sqlx.Tx) error { return s.insert(ctx, tx) }))
		if outcome.AtCommit(err) {
			err = &InsertError{Table: table, Last: s.stored - 1, Rows: s.stored, Row: -1, Err: err}
		}
	} else {
		err = s.insertUnder(ctx, db, c.cancels)
	}
	if err != nil {
		return 0, err
	}
	return int64(s.stored), nil
}

// A sequence is the rows of one InsertSeq, which are sent in chunks.
type sequence[T any] struct {
	helper *Helper
	table  string
	rows   iter.Seq2[T, error]
	stored int // rows that were sent
}

// insertUnder inserts the rows in the caller's transaction, under a savepoint with a name of
// its own: MySQL replaces a savepoint by the next one of its name.
//
// If it fails, it takes back what its chunks have noted for InTx, which would otherwise look
// for a row that the savepoint has undone, and take a committed transaction for one that is
// not.
func (s *sequence[T]) insertUnder(ctx context.Context, tx DB, cancels outcome.Cancels) error {
	undo := recordOf(tx).Mark()
	done := false
	defer func() {
		if !done { // also by a panic
			undo()
		}
	}()
	err := inSavepoint(ctx, tx, cancels, sequenceSavepoint, func() error { return s.insert(ctx, tx) })
	done = err == nil
	return err
}

func (s *sequence[T]) insert(ctx context.Context, tx DB) error {
	// One prepared statement serves all chunks: database/sql keeps each that is prepared in a
	// transaction until its end, with a text of up to 10 kB.
	own := *s.helper
	h := &own
	h.fullChunk = &fullChunk{}
	defer h.fullChunk.close()
	if report := h.config.progress; report != nil {
		h.config.progress = func(sent, _ int) { report(s.stored+sent, -1) }
	}
	size := seqRows
	if h.config.copier != nil {
		size = max(size, min(h.config.copyRows, copyRows)) // or no chunk would have enough rows for COPY
	}
	chunk := make([]T, 0, size)
	b, err := manyRows("InsertSeq", chunk)
	if err != nil {
		return err
	}
	c, err := h.connect(tx)
	if err != nil {
		return err
	}
	schema, err := h.schema(b.typ, &c, s.table, false)
	if err != nil {
		return err
	}
	kept := keeper{keys: h.keys, row: rows{schema: schema, scratch: make([]types.Snowflake, 1)}, pointers: b.pointer}
	send := func() error {
		b.value, b.first = reflect.ValueOf(chunk), s.stored
		if err := h.insert(ctx, tx, s.table, b, false); err != nil {
			s.recount(err, len(chunk))
			return err
		}
		s.stored += len(chunk)
		clear(chunk) // releases what the rows refer to
		chunk = chunk[:0]
		return nil
	}
	for row, err := range s.rows {
		if err != nil {
			return fmt.Errorf("sqlxhelper: insert into %s: row %d of the sequence: %w", s.table, s.stored+len(chunk)+1, err)
		}
		chunk = append(chunk, row)
		if kept.pointers || schema.tables[0].plan.bytes != nil {
			err = kept.keep(ctx, reflect.ValueOf(&chunk[len(chunk)-1]).Elem())
		}
		if err == nil && len(chunk) == size {
			err = send()
		}
		if err != nil {
			return err
		}
	}
	return send()
}

// A keeper does what has to be done for a row before yield returns.
type keeper struct {
	keys     keySource
	pointers bool // the sequence yields pointers
	row      rows // the row behind a pointer
}

// keep copies the bytes of a struct, or gives its key to the one behind a pointer. An upsert
// takes keys later, because it has to know which rows it gave one. A row that cannot be inserted
// is refused with its chunk, by its number.
func (k *keeper) keep(ctx context.Context, row reflect.Value) error {
	t := k.row.tables[0]
	p := t.plan
	if !k.pointers {
		for _, i := range p.bytes {
			f := p.columns[i].in(row)
			f.SetBytes(bytes.Clone(f.Bytes()))
		}
		return nil
	}
	if t.upsert != nil || row.IsNil() || p.missing(row.Elem()) != "" {
		return nil
	}
	k.row.structs, k.row.ids, k.row.shards = append(k.row.structs[:0], row.Elem()), append(k.row.ids[:0], p.id(row.Elem())), nil
	if err := k.row.assign(ctx, k.keys); err != nil && !errors.As(err, new(*RowError)) {
		return err
	}
	return nil
}

// recount makes the error of a chunk count rows from the beginning of the sequence.
func (s *sequence[T]) recount(err error, rows int) {
	if e := (*InsertError)(nil); errors.As(err, &e) {
		e.First, e.Last, e.Rows = e.First+s.stored, e.Last+s.stored, rows+s.stored
		if e.Row >= 0 {
			e.Row += s.stored
		}
	}
}
