package sqlxhelper

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// These bound a chunk, which has at least one row. The first counts values, because
// rows have different widths.
const (
	unnestValues = 12000
	unnestBytes  = 2 << 20
)

// unnest sends rows by INSERT … SELECT unnest($1), unnest($2), …, with one array per column and
// one text for any number of rows. The server plans it fast, while VALUES has a node for each
// value. The rows keep their order.
//
// The arrays are text literals, because slices work only in some modes of pgx.
//
// While the server works on a statement, the next one is encoded, which saves a tenth of the
// time. VALUES would gain nothing: on SQLite statements are too short, and MySQL took as long
// at a fifth more work.
type unnest struct {
	*load
	encoders []encoder
	text     string
	arrays   [][]byte // by column, reused for the next chunk
	ends     []int    // by column, where the last complete row ends
	first    int      // the row with which args begin; -1 before the first
	taken    int      // how many rows are in args
	args     []any
}

func newUnnest(d *traits, l *load, encoders []encoder, t *pgtext.Table) *unnest {
	return &unnest{
		load: l, encoders: encoders, text: unnestText(d, l, encoders, t),
		arrays: make([][]byte, len(encoders)), ends: make([]int, len(encoders)), first: -1,
	}
}

func (u *unnest) take(first int) (int, error) {
	if u.first != first {
		u.encode(first)
	}
	return u.taken, nil
}

// encode puts as many rows into the arrays as a chunk may have, and stops before a row that has
// to go by VALUES.
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

// append appends a row to the arrays, or nothing if it has to go by VALUES. size is the size of
// all arrays.
func (u *unnest) append(row int) (size int, fits bool) {
	for i, a := range u.arrays {
		u.ends[i] = len(a)
		if u.taken > 0 {
			a = append(a, ',')
		}
		if u.arrays[i], fits = u.encoders[i].append(a, u.rows[row]); !fits {
			for j := range i + 1 { // which have a part of the row
				u.arrays[j] = u.arrays[j][:u.ends[j]]
			}
			return 0, false
		}
		size += len(u.arrays[i])
	}
	return size, true
}

// send sends the rows that were taken while another goroutine encodes the next ones. That has
// ended when send returns or panics, because the rows are the caller's again then. The only
// foreign code in it is Value methods: argument recovers from their panics, and if one ends the
// goroutine, take encodes those rows again.
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
	result, err := outcome.Exec(ctx, s.cancels, s.db, u.text, args...)
	return n, result, err
}

func (u *unnest) check(_ context.Context, _ session, err error) error { return err }

func unnestText(d *traits, l *load, encoders []encoder, t *pgtext.Table) string {
	names := make([]string, len(encoders))
	for i := range encoders {
		names[i] = encoders[i].name
	}
	var b strings.Builder
	b.WriteString(l.head)
	t.WriteUnnest(&b, d.Quote(l.name), names, func(i int) { b.WriteString(d.Placeholder(i + 1)) })
	return b.String() + l.tail
}
