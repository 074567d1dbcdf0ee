package sqlxhelper

import (
	"context"
	"reflect"
	"strconv"

	"github.com/snowkey/snowkey/internal/pgtext"
)

// These bound a chunk, which has at least one row. The first counts values, because
// rows have different widths.
const (
	unnestValues = 12000
	unnestBytes  = 2 << 20
)

// insertUnnest writes rows by INSERT … SELECT unnest($1), unnest($2), …, with one
// array for each column. So there is one text for any number of rows. The server
// plans it fast, while VALUES has a node for each value. The rows keep their order.
//
// The arrays are text literals. Slices of Go would work for pgx in some modes. Text
// works in all of them, for lib/pq, for enums, and for NULLs.
func (w *writer) insertUnnest(ctx context.Context, s session, l *load, encoders []encoder, t *description) (int, error) {
	text := unnestText(l, encoders, t)
	a := arrays{encoders: encoders, texts: make([][]byte, len(encoders))}
	args := make([]any, len(encoders))
	for first := 0; first < len(l.rows); {
		n, fits := a.fill(l.rows[first:])
		if !s.inTx && n < len(l.rows) {
			if !fits {
				return 0, nil
			}
			return 0, errSeveral
		}
		if n == 0 {
			return first, nil
		}
		if err := ctx.Err(); err != nil {
			return first, w.sent(l, first, n, nil, err)
		}
		for i, text := range a.texts {
			args[i] = string(text)
		}
		result, err := s.db.ExecContext(ctx, text, args...)
		if err := w.sent(l, first, n, result, err); err != nil {
			return first, err
		}
		if first += n; !fits {
			return first, nil
		}
	}
	return len(l.rows), nil
}

// unnestText returns the statement. The calls stand in the list of what is
// selected, where they advance together, row by row. After FROM each of them would
// first be written to a table of its own, which takes a fifth more time. Arrays of
// different lengths would be filled up with NULLs, silently. arrays.fill makes them
// equal.
func unnestText(l *load, encoders []encoder, t *description) string {
	b := append([]byte(l.head), " SELECT "...)
	for i := range encoders {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(b, "unnest($"...), int64(i+1), 10)
		b = append(append(b, "::"...), t.columns[encoders[i].name].name...)
		b = append(b, "[])"...)
	}
	return string(append(b, l.tail...))
}

// arrays are the columns of a chunk as text, their memory used again for the
// next chunk.
type arrays struct {
	encoders []encoder
	texts    [][]byte
}

// fill puts as many rows into the arrays as a chunk may have, and returns how many.
// If fits is false, it stopped at a row that has to go by VALUES.
func (a *arrays) fill(rows []reflect.Value) (n int, fits bool) {
	for i := range a.texts {
		a.texts[i] = append(a.texts[i][:0], '{')
	}
	most := max(1, unnestValues/len(a.encoders))
	ends := make([]int, len(a.encoders)) // where the last complete row ends
	fits = true
	for size := 0; n < len(rows) && n < most && size < unnestBytes; n++ {
		size = 0
		for i := range a.encoders {
			b := a.texts[i]
			ends[i] = len(b)
			if n > 0 {
				b = append(b, ',')
			}
			if b, fits = a.encoders[i].append(b, rows[n], pgtext.Array); !fits {
				// The columns before have this row already.
				for j := range i {
					a.texts[j] = a.texts[j][:ends[j]]
				}
				break
			}
			a.texts[i] = b
			size += len(b)
		}
		if !fits {
			break
		}
	}
	for i := range a.texts {
		a.texts[i] = append(a.texts[i], '}')
	}
	return n, fits
}
