package sqlxhelper

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/types"
)

// keysPerQuery is how many keys one statement asks for, at most. Old versions of
// SQLite take 999 values.
const keysPerQuery = 512

// fewSizes returns the power of two, at most most, that n values are filled up to.
// So there are few texts. pgx keeps each prepared on the server.
func fewSizes(n, most int) int { return min(1<<bits.Len(uint(n-1)), most) }

// byKeys selects the key and fields of the rows stored under the keys of at. It
// calls scan for each. lock says that they may be rows of others.
func (w *writer) byKeys(ctx context.Context, s session, l *load, at map[types.Snowflake][]int, fields []destination, lock bool, scan func(*sql.Rows) error) error {
	key, of := w.dialect.Quote(l.plan.columns[l.plan.key].name), ""
	if w.dialect.nameIsText {
		of = w.dialect.Quote(l.table) + "."
	}
	names := []string{key}
	for _, f := range fields {
		names = append(names, of+w.dialect.Quote(f.name))
	}
	head := "SELECT " + strings.Join(names, ", ") + " FROM " + w.dialect.Quote(l.table) + " WHERE " + key + " IN ("
	end := ")"
	if lock {
		end += w.dialect.forUpdate
	}
	// In order, for the sake of the index, and of those who read logs.
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(at)), keysPerQuery) {
		args := make([]any, fewSizes(len(chunk), keysPerQuery))
		marks := make([]string, len(args))
		for i := range args {
			args[i], marks[i] = int64(chunk[min(i, len(chunk)-1)]), w.dialect.Placeholder(i+1)
		}
		if err := w.query(ctx, s, l, head+strings.Join(marks, ", ")+end, args, scan); err != nil {
			return err
		}
	}
	return nil
}

// query runs a SELECT and calls scan for each row.
func (w *writer) query(ctx context.Context, s session, l *load, text string, args []any, scan func(*sql.Rows) error) (err error) {
	defer func() {
		if err != nil {
			w.stale = w.stale || dialect.StalePlan(err)
			err = fmt.Errorf("sqlxhelper: read back from %s: %w", l.table, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	return done(ctx, s.heeds, func() error {
		rows, err := s.db.QueryContext(w.dialect.sends(ctx), text, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // where Next has not come to the end
		for rows.Next() {
			if s.heeds < heedsStatements && ctx.Err() != nil {
				return ctx.Err() // the caller may have left, and what scan changes with it
			}
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}
