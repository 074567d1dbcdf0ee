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

// A Column holds numbers of the program, such as the keys of a table.
type Column struct {
	Table string // with its schema, if need be
	Name  string // at most 63 letters, digits and _

	// DB is the database of the table, in the dialect of the Store. Defaults to the Store's
	// database. On SQLite it usually is another file.
	DB *sql.DB
}

// RaiseAboveMax raises the row so that every number from now on is greater than all numbers in the
// columns. It never lowers the row, and an empty column raises nothing. A column of another type
// than integers, BIGINT UNSIGNED and NUMERIC included, is a [*core.ValueError].
//
// It reads what is committed. A program that still inserts numbers of its own may exceed the row
// again; docs/segments.md has a safe order of steps.
func (s *Store) RaiseAboveMax(ctx context.Context, tag string, columns ...Column) (segment.Row, error) {
	n, err := s.greatest(ctx, columns)
	if err != nil {
		return segment.Row{}, err
	}
	return s.RaiseAbove(ctx, tag, n)
}

// Floor returns a function for segment.Config.Floor, which returns the greatest number in the
// columns of one tag.
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
	table, err := s.locate(ctx, rows, c)
	if err != nil {
		return 0, fmt.Errorf("sqlsegment: max(%s) of table %s: %w", c.Name, c.Table, err)
	}
	n, err = sqlrow.Do(ctx, rows, func(t *sqlrow.Tx) (n int64, err error) {
		err = t.Each(ctx, func(scan func(...any) error) error {
			var found any
			var number bool
			if err := scan(&found, &number); err != nil || found == nil {
				return err
			}
			return (&column{c.Name, &n, math.MinInt64, math.MaxInt64, number}).Scan(found)
		}, s.maxText(table, c.Name))
		return n, err
	})
	if err != nil {
		return 0, fmt.Errorf("sqlsegment: max(%s) of table %s: %w", c.Name, c.Table, err)
	}
	return n, nil
}

// maxText returns a query for the greatest value of a column, and for whether the column has numbers,
// because the greatest text is '9' where the greatest number is 41.
func (s *Store) maxText(table, column string) string {
	top := "max(" + s.db.Dialect.Quote(column) + ")"
	number := "0" // SQLite: the type of the value decides
	switch s.db.Dialect {
	case dialect.PostgreSQL:
		number = "pg_typeof(" + top + ")::text IN ('smallint', 'integer', 'bigint', 'numeric')"
	case dialect.MySQL:
		number = "coercibility(" + top + ") = 5" // of numbers and times
	}
	return "SELECT " + top + ", " + number + " FROM " + table
}

// locate returns the table of a column in full, quoted. As with the Store's own, the first one that
// is found remains, whatever search_path and the default database become.
func (s *Store) locate(ctx context.Context, rows *sqlrow.DB, c Column) (string, error) {
	if name, ok := s.columns.Load(c); ok {
		return name.(string), nil
	}
	name, found, err := s.db.Locate(ctx, rows, c.Table)
	if !found {
		return name, err
	}
	kept, _ := s.columns.LoadOrStore(c, name)
	return kept.(string), nil
}
