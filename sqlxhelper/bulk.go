package sqlxhelper

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// A way is how rows of a load go to the database. What is stored is the same for
// all ways: package pgtext writes a value only if that is so.
type way interface {
	// take collects the rows of the next statement, from first on. It returns how
	// many there are, or 0 if this way cannot carry the first of them.
	take(first int) (int, error)
	// send sends the rows that were taken. It returns how many these were.
	send(ctx context.Context, s session) (int, driver.Result, error)
	// check returns the error of a statement, which may be nil, with the row that is
	// to blame if that can be found.
	check(ctx context.Context, s session, err error) error
}

// insertLoad writes the rows of a load. It looks at ctx before every statement.
func (w *writer) insertLoad(ctx context.Context, s session, l *load) error {
	ways, err := w.bulk(s, l)
	if err != nil {
		return err
	}
	byValues := &values{writer: w, load: l, fullChunk: w.fullChunk}
	if byValues.fullChunk == nil {
		byValues.fullChunk = &fullChunk{}
		defer byValues.close()
	}
	ways = append(ways, byValues)
	for first := 0; first < len(l.rows); {
		if err := ctx.Err(); err != nil {
			return w.sent(l, first, len(l.rows)-first, nil, err)
		}
		n, err := ways[0].take(first)
		if err != nil {
			return err
		}
		if n == 0 || !s.inTx && n < len(l.rows) {
			if ways = ways[1:]; len(ways) == 0 {
				return errSeveral
			}
			continue
		}
		n, result, err := ways[0].send(ctx, s)
		if err := ways[0].check(ctx, s, w.sent(l, first, n, result, err)); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// bulk returns the ways that are faster than VALUES, the best one first. Each
// carries rows up to the first one that it cannot carry.
func (w *writer) bulk(s session, l *load) ([]way, error) {
	if !w.dialect.arrays || len(l.rows) < pgtext.ManyRows {
		return nil, nil
	}
	t := w.tables[l.table]
	encoders := encoders(t, l.columns)
	if encoders == nil {
		return nil, nil
	}
	// COPY carries microseconds here. A driver that has the server round times would store
	// them otherwise by the other ways.
	rounds := !t.CutsTimes && slices.ContainsFunc(encoders, func(e encoder) bool { return e.kind.MayBeTime() })
	if w.config.copier == nil || len(l.rows) < w.config.copyRows || !t.Copies || rounds || l.upsert != nil {
		return []way{newUnnest(l, encoders, t)}, nil
	}
	if !s.inTx {
		return nil, errSeveral
	}
	var ways []way
	if !slices.ContainsFunc(encoders, func(e encoder) bool { return !e.typ.Binary(e.kind) }) {
		ways = append(ways, &copying{writer: w, load: l, encoders: encoders, in: pgtext.Binary, table: t})
	}
	return append(ways, &copying{writer: w, load: l, encoders: encoders, in: pgtext.Copy, table: t}), nil
}

// An encoder is a column on its way to a column of PostgreSQL.
type encoder struct {
	*column
	typ pgtext.Type
}

// encoders returns the columns with their types in the table. It returns nil if one
// of them can only go by VALUES.
func encoders(t *pgtext.Table, columns []column) []encoder {
	if t == nil {
		return nil
	}
	encoders := make([]encoder, len(columns))
	for i := range columns {
		c := &columns[i]
		typ := t.Columns[c.name].Type
		if typ == 0 || !typ.Takes(c.kind) {
			return nil
		}
		encoders[i] = encoder{c, typ}
	}
	return encoders
}

// append appends the value that a row of l has for the column. If it is to go by
// VALUES, ok is false, and b may have grown.
func (e *encoder) append(b []byte, l *load, row int, f pgtext.Format) (_ []byte, ok bool) {
	if e.kind == pgtext.ValueKind || e.hold == byArgument && l.held != nil {
		v, err := l.argument(e.column, row)
		if err != nil {
			return b, false // VALUES has the same error, and says whose it is
		}
		return e.typ.AppendValue(b, v, f)
	}
	v := e.in(l.rows[row])
	if e.pointer {
		if v.IsNil() {
			return pgtext.AppendNull(b, f), true
		}
		v = v.Elem()
	}
	return e.typ.AppendField(b, e.kind, v, f)
}
