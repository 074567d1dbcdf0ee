package sqlxhelper

import (
	"context"
)

// bulkRows is from how many rows on PostgreSQL gets them otherwise than by
// VALUES. Measured on loopback, statements of 10 rows cost the same either way;
// further away the round trip counts, and is one in both.
const bulkRows = 11

// insertBulk writes the first rows of a load by a path that is faster than
// VALUES, and returns how many: all of them as a rule, none if there is no such
// path, and those before the first row that no such path can carry. The rest
// goes by VALUES. That is not seen in the result: what is on the list in
// literal.go is stored alike on every path.
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

// encoders returns the columns with what is to be known of the table's, or nil if
// there is one whose values can only go by VALUES.
func (t *description) encoders(columns []column) []encoder {
	if t == nil {
		return nil
	}
	encoders := make([]encoder, len(columns))
	for i := range columns {
		c := t.columns[columns[i].name].class
		k, pointer := kindOf(&columns[i])
		if c == 0 || !c.takes(k) {
			return nil
		}
		encoders[i] = encoder{column: &columns[i], kind: k, pointer: pointer, class: c}
	}
	return encoders
}
