package sqlxhelper

import (
	"context"
	"database/sql/driver"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// These bound a chunk, which has at least one row. The first counts values, because
// rows have different widths.
const (
	unnestValues = 12000
	unnestBytes  = 2 << 20
)

// unnest is the way by INSERT … SELECT unnest($1), unnest($2), …, with one array for
// each column. So there is one text for any number of rows. The server plans it
// fast, while VALUES has a node for each value. The rows keep their order.
//
// The arrays are text literals. Slices of Go would work for pgx in some modes. Text
// works in all of them, for lib/pq, for enums, and for NULLs.
//
// While the server works on a statement, the next one is made ready. That takes a tenth
// off the time. It would be no gain on the way by VALUES: on SQLite statements are too
// short, and MySQL took as long at a fifth more work.
type unnest struct {
	*load
	encoders []encoder
	in       pgtext.Format
	text     string
	arrays   [][]byte // by column; their memory is used again for the next chunk
	ends     []int    // by column, where the last complete row ends
	first    int      // the row with which args begin; at first -1
	taken    int      // rows of args
	args     []any
}

func newUnnest(l *load, encoders []encoder, t *pgtext.Table) *unnest {
	return &unnest{
		load: l, encoders: encoders, in: t.Array(), text: unnestText(l, encoders, t),
		arrays: make([][]byte, len(encoders)), ends: make([]int, len(encoders)), first: -1,
	}
}

func (u *unnest) take(first int) (int, error) {
	if u.first != first {
		u.encode(first)
	}
	return u.taken, nil
}

// encode puts as many rows into the arrays as a chunk may have. It stops before a row
// that has to go by VALUES.
func (u *unnest) encode(first int) {
	for i := range u.arrays {
		u.arrays[i] = append(u.arrays[i][:0], '{')
	}
	most := max(1, unnestValues/len(u.encoders))
	most = min(most, len(u.rows)-first)
	u.taken = 0
	for size := 0; u.taken < most && size < unnestBytes; u.taken++ {
		var fits bool
		if size, fits = u.append(first + u.taken); !fits {
			break
		}
	}
	u.args = make([]any, len(u.arrays))
	for i, a := range u.arrays {
		u.args[i] = string(append(a, '}'))
	}
	u.first = first
}

// append appends a row to the arrays, or nothing if it has to go by VALUES. size is
// that of all arrays.
func (u *unnest) append(row int) (size int, fits bool) {
	for i, a := range u.arrays {
		u.ends[i] = len(a)
		if u.taken > 0 {
			a = append(a, ',')
		}
		if u.arrays[i], fits = u.encoders[i].append(a, u.load, row, u.in); !fits {
			for j := range i + 1 { // which have a part of the row
				u.arrays[j] = u.arrays[j][:u.ends[j]]
			}
			return 0, false
		}
		size += len(u.arrays[i])
	}
	return size, true
}

// send sends the rows that were taken. Meanwhile another goroutine encodes the next ones.
// It has ended when send returns or panics, as the rows are the caller's again then. The
// only foreign code in it is Value methods. argument catches their panics. If one ends
// the goroutine, take encodes those rows again.
func (u *unnest) send(ctx context.Context, s session) (int, driver.Result, error) {
	n, args := u.taken, u.args
	if next := u.first + n; next < len(u.rows) {
		encoded := make(chan struct{})
		defer func() { <-encoded }()
		go func() {
			defer close(encoded)
			u.encode(next)
		}()
	}
	result, err := execute(ctx, s.honors, s.db, u.text, args...)
	return n, result, err
}

// check leaves it to prove to find the row.
func (u *unnest) check(_ context.Context, _ session, err error) error { return err }

// unnestText returns the statement. The calls stand in the list of what is
// selected, where they advance together, row by row. After FROM each of them would
// first be written to a table of its own, which takes a fifth more time. Arrays of
// different lengths would be filled up with NULLs, silently. append makes them equal.
func unnestText(l *load, encoders []encoder, t *pgtext.Table) string {
	calls := make([]string, len(encoders))
	for i := range encoders {
		calls[i] = "unnest($" + strconv.Itoa(i+1) + "::" + t.Columns[encoders[i].name].Name + "[])"
	}
	return l.head + " SELECT " + strings.Join(calls, ", ") + l.tail
}
