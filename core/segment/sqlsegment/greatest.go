package sqlsegment

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// A Column is one in which the program keeps numbers, such as the key of a table.
type Column struct {
	Table string // as Config.Table has it
	Name  string // letters, digits and _, at most 63 of them
	// DB is the database of the table, in the dialect of the Store. Nil: that of the
	// Store. On SQLite it is mostly another file.
	DB *sql.DB
}

// RaiseAboveMax sees to it that every number from now on is above all that the columns
// hold. It never lowers the row. A column that is empty holds none. One that holds
// something else than integers is a [*core.ValueError]. BIGINT UNSIGNED and NUMERIC do.
//
// It sees what is committed. Whoever still inserts numbers of its own may go above the row
// again; docs/segments.md has a safe order of steps.
func (s *Store) RaiseAboveMax(ctx context.Context, tag string, columns ...Column) (segment.Row, error) {
	n, err := s.greatest(ctx, columns)
	if err != nil {
		return segment.Row{}, err
	}
	return s.RaiseAbove(ctx, tag, n)
}

// Floor returns a segment.Config.Floor: the greatest number in the columns, all of which
// are of one tag.
func (s *Store) Floor(columns ...Column) func(context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) { return s.greatest(ctx, columns) }
}

// greatest returns the greatest number in the columns, or 0 if there is none.
func (s *Store) greatest(ctx context.Context, columns []Column) (int64, error) {
	if len(columns) == 0 {
		return 0, invalid("columns", "none", "one or more")
	}
	top := int64(0)
	for _, c := range columns {
		n, err := s.max(ctx, c)
		if err != nil {
			return 0, err
		}
		top = max(top, n)
	}
	return top, nil
}

// max returns the greatest number in a column, or 0 if there is none.
func (s *Store) max(ctx context.Context, c Column) (n int64, err error) {
	if want, ok := sqlrow.CheckTable(c.Table, 0); !ok {
		return 0, invalid("Column.Table", strconv.Quote(c.Table[:min(len(c.Table), 64)]), want)
	}
	if _, ok := sqlrow.CheckTable(c.Name, 0); !ok || strings.Contains(c.Name, ".") {
		return 0, invalid("Column.Name", strconv.Quote(c.Name[:min(len(c.Name), 64)]), "1..63 letters, digits and _ of ASCII, the first no digit")
	}
	rows := s.db.DB
	if c.DB != nil {
		rows = s.db.On(c.DB, c.Table)
	}
	n, err = sqlrow.Do(ctx, rows, func(t *sqlrow.Tx) (n int64, err error) {
		err = t.Each(ctx, func(scan func(...any) error) error {
			var found any
			var number bool
			if err := scan(&found, &number); err != nil || found == nil {
				return err
			}
			return (&column{c.Name, &n, math.MinInt64, math.MaxInt64, number}).Scan(found)
		}, s.maxText(c))
		return n, err
	})
	if err != nil {
		return 0, fmt.Errorf("sqlsegment: max(%s) of table %s: %w", c.Name, c.Table, err)
	}
	return n, nil
}

// maxText returns a query for the greatest value of a column, and for whether the column
// has numbers. The greatest of texts is another one: '9', and not '41'.
func (s *Store) maxText(c Column) string {
	top := "max(" + s.db.Dialect.Quote(c.Name) + ")"
	number := "0" // the value itself says what it is
	switch s.db.Dialect {
	case dialect.PostgreSQL:
		number = "pg_typeof(" + top + ")::text IN ('smallint', 'integer', 'bigint', 'numeric')"
	case dialect.MySQL:
		number = "coercibility(" + top + ") = 5" // of numbers and times
	}
	return "SELECT " + top + ", " + number + " FROM " + sqlrow.Quote(s.db.Dialect, c.Table)
}
