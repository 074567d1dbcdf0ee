package sqlxhelper

import (
	"context"
	"reflect"

	"github.com/snowkey/snowkey/internal/pgtext"
)

// bulkRows is the number of rows from which on PostgreSQL gets them by another path
// than VALUES. On loopback, statements of 10 rows cost the same either way. Over a
// network the round trip counts, and both take one.
const bulkRows = 11

// insertBulk writes the first rows of a load by a path that is faster than VALUES,
// and returns how many. It stops before the first row that no such path can carry.
// It writes none if there is no such path. The rest goes by VALUES. The result is
// the same: what package pgtext writes is stored alike on every path.
//
// Outside of a transaction it is all or none.
func (w *writer) insertBulk(ctx context.Context, s session, l *load) (int, error) {
	if !w.dialect.arrays || len(l.rows) < bulkRows {
		return 0, nil
	}
	t := w.tables[l.table]
	encoders := t.encoders(l.columns)
	if encoders == nil {
		return 0, nil
	}
	if c := w.config.copy; c.copier != nil && len(l.rows) >= c.rows && t.copies && l.tail == "" {
		if !s.inTx {
			return 0, errSeveral
		}
		n, err := w.insertCopy(ctx, s, l, encoders)
		if err == nil && n > 0 {
			err = w.unchanged(ctx, s, l, t)
		}
		return n, err
	}
	return w.insertUnnest(ctx, s, l, encoders, t)
}

// An encoder is a column on its way to a column of PostgreSQL.
type encoder struct {
	*column
	typ pgtext.Type
}

// encoders returns the columns with their types in the table. It returns nil if one
// of them can only go by VALUES.
func (t *description) encoders(columns []column) []encoder {
	if t == nil {
		return nil
	}
	encoders := make([]encoder, len(columns))
	for i := range columns {
		c := &columns[i]
		typ := t.columns[c.name].typ
		if typ == 0 || !typ.Takes(c.kind) {
			return nil
		}
		encoders[i] = encoder{c, typ}
	}
	return encoders
}

// append appends the value that a row has for the column. If it is to go by
// VALUES, ok is false, and b may have grown.
func (e *encoder) append(b []byte, row reflect.Value, f pgtext.Format) (_ []byte, ok bool) {
	if e.kind == pgtext.ValueKind {
		v, err := e.argument(row)
		if err != nil {
			return b, false // VALUES has the same error, and says whose it is
		}
		return e.typ.AppendValue(b, v, f)
	}
	var v reflect.Value
	if len(e.index) == 1 {
		v = row.Field(e.index[0])
	} else {
		v = row.FieldByIndex(e.index)
	}
	if e.pointer {
		if v.IsNil() {
			return pgtext.AppendNull(b, f), true
		}
		v = v.Elem()
	}
	return e.typ.AppendField(b, e.kind, v, f)
}
