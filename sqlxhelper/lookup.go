package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// keysPerQuery is how many keys one statement asks for, at most: old versions of
// SQLite take 999 values.
const keysPerQuery = 512

// fewSizes returns the power of two that n values are filled up to, at most most,
// so that there are few texts: pgx keeps each of them prepared on the server.
func fewSizes(n, most int) int { return min(1<<bits.Len(uint(n-1)), most) }

// byKeys selects the key and fields of the rows of l that are stored under the
// keys of at, and calls scan for each. lock says that they may be rows of others.
func (w *writer) byKeys(ctx context.Context, s session, l *load, at map[types.Snowflake][]int, fields []destination, lock bool, scan func(*sql.Rows) error) error {
	key := w.dialect.quoted(l.plan.columns[l.plan.key].name)
	var b strings.Builder
	b.WriteString("SELECT " + key)
	of := "" // the table, on SQLite, which takes a name that is no column for a text
	if w.dialect == SQLite {
		of = w.dialect.quotedTable(l.table) + "."
	}
	for _, f := range fields {
		b.WriteString(", " + of + w.dialect.quoted(f.name))
	}
	b.WriteString(" FROM " + w.dialect.quotedTable(l.table) + " WHERE " + key + " IN (")
	head := b.String()
	// In order, for the sake of the index, and of those who read logs.
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(at)), keysPerQuery) {
		b.Reset()
		b.WriteString(head)
		args := make([]any, fewSizes(len(chunk), keysPerQuery))
		for i := range args {
			args[i] = int64(chunk[min(i, len(chunk)-1)])
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(w.dialect.placeholder(i + 1))
		}
		b.WriteByte(')')
		if lock {
			b.WriteString(w.dialect.locking())
		}
		if err := w.query(ctx, s, l, b.String(), args, scan); err != nil {
			return err
		}
	}
	return nil
}

// query runs a SELECT and calls scan for each row.
func (w *writer) query(ctx context.Context, s session, l *load, text string, args []any, scan func(*sql.Rows) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("sqlxhelper: read back from %s: %w", l.table, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.dialect == SQLite {
		ctx = context.WithoutCancel(ctx) // see insertValues
	}
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // where Next has not come to the end
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// locking is what makes a SELECT see a row that another transaction has stored
// after this one began. On MySQL a plain one under REPEATABLE READ sees the past.
// The insert has locked that row already, so nobody waits; a key that is not
// stored must not be asked for so, because that locks the gap where it would be.
func (d Dialect) locking() string {
	if d == MySQL {
		return " FOR UPDATE"
	}
	return ""
}

// placeholder returns the n-th one of a statement, counted from 1.
func (d Dialect) placeholder(n int) string {
	if d.traits().numbered {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// quoted returns a name in quotes that has passed the checks of appendQuoted.
func (d Dialect) quoted(name string) string {
	q := string(d.traits().quote)
	return q + name + q
}

// quotedTable is quoted for a table, which may have a schema before it.
func (d Dialect) quotedTable(table string) string {
	q := string(d.traits().quote)
	return q + strings.ReplaceAll(table, ".", q+"."+q) + q
}
