package sqlsegment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/sqlrow"
)

// texts are the statements of one Store.
type texts struct {
	alter          []string // Leaf's table
	row, rows      string
	insert, update string
	sample         string // beginning of an INSERT for people, which a tag and ", 1, 1000)" complete
}

func textsOf(d sqlstore.Dialect, names []string) texts {
	table := names[0]
	const columns = "biz_tag, max_id, step, coalesce(description, ''), stride, number_offset, version"
	lock := " FOR UPDATE"
	if d == dialect.SQLite {
		lock = "" // the transaction has locked the file
	}
	alter := []string{
		"ALTER TABLE " + table + " ADD COLUMN version BIGINT NOT NULL DEFAULT 0",
		"ALTER TABLE " + table + " ADD COLUMN number_offset BIGINT NOT NULL DEFAULT 0",
		"ALTER TABLE " + table + " ADD COLUMN stride BIGINT NOT NULL DEFAULT 1",
	}
	return texts{
		alter:  alter,
		row:    d.Bind("SELECT " + columns + " FROM " + table + " WHERE biz_tag = ?" + lock),
		rows:   "SELECT " + columns + " FROM " + table + " ORDER BY biz_tag",
		insert: d.Bind("INSERT INTO " + table + " (biz_tag, max_id, step, description, stride, number_offset, version) VALUES (?, ?, ?, ?, ?, ?, ?)"),
		sample: "INSERT INTO " + table + " (biz_tag, max_id, step) VALUES (",
		update: d.Bind("UPDATE " + table + " SET max_id = ?, stride = ?, number_offset = ?, version = ?, update_time = CURRENT_TIMESTAMP" +
			" WHERE biz_tag = ? AND max_id = ? AND stride = ? AND version = ?"),
	}
}

// create returns the statement that creates the table.
func create(d sqlstore.Dialect, names []string) []string {
	return []string{sqlrow.CreateTable(d, names[0],
		"biz_tag VARCHAR(128) NOT NULL PRIMARY KEY",
		"max_id BIGINT NOT NULL DEFAULT 1",
		"step INT NOT NULL",
		"description VARCHAR(256)",
		"update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
		"version BIGINT NOT NULL DEFAULT 0",
		"number_offset BIGINT NOT NULL DEFAULT 0",
		"stride BIGINT NOT NULL DEFAULT 1")}
}

// AlterLeaf returns the statements that add the columns of this package to Leaf's own table. Servers
// of Leaf can keep running.
func (s *Store) AlterLeaf() []string { return slices.Clone(s.db.Named().Text.alter) }

// stride is the column of that name: negative while the row is frozen.
func stride(r segment.Row) int64 {
	if r.Frozen {
		return -r.Stride
	}
	return r.Stride
}

// literal returns a tag for a statement that people run; those of this package have parameters.
func (s *Store) literal(tag string) string {
	if s.db.Dialect == dialect.MySQL {
		tag = strings.ReplaceAll(tag, `\`, `\\`)
	}
	return "'" + strings.ReplaceAll(tag, "'", "''") + "'"
}

// find reads the row of a tag and locks it.
func (s *Store) find(ctx context.Context, t *tx, tag string) (segment.Row, error) {
	rows, err := s.read(ctx, t, t.Text.row, tag)
	if err != nil {
		return segment.Row{}, err
	}
	for _, r := range rows {
		// Leaf's table may have a collation to which "Orders" equals "orders".
		if r.Tag == tag {
			return r, nil
		}
	}
	return segment.Row{}, fmt.Errorf("%w: %s; make it with Create, or run %s%s, 1, 1000)", segment.ErrNoTag, tag, t.Text.sample, s.literal(tag))
}

// read returns the rows of a query. An impossible value is a *core.ValueError that names its column,
// wrapped with the tag.
func (s *Store) read(ctx context.Context, t *tx, text string, args ...any) (rows []segment.Row, err error) {
	err = t.Each(ctx, func(scan func(...any) error) error {
		r, err := s.scanRow(scan)
		if err != nil {
			return fmt.Errorf("tag %q: %w", r.Tag, err)
		}
		rows = append(rows, r)
		return nil
	}, text, args...)
	return rows, err
}

// scanRow reads a row, which other programs may have written.
func (s *Store) scanRow(scan func(...any) error) (r segment.Row, err error) {
	into := func(name string, value *int64, least, most int64) *column {
		return &column{name, value, least, most, s.db.Dialect != dialect.SQLite}
	}
	err = scan(&r.Tag,
		into("max_id", &r.Next, 0, math.MaxInt64),
		into("step", &r.Step, 1, segment.MaxCount),
		&r.Description,
		into("stride", &r.Stride, -math.MaxInt32, math.MaxInt32),
		into("number_offset", &r.Offset, 0, math.MaxInt32-1),
		into("version", &r.Version, 0, math.MaxInt64-1))
	if err != nil {
		return r, err
	}
	if r.Stride < 0 {
		r.Frozen, r.Stride = true, -r.Stride
	}
	switch {
	case r.Stride == 0:
		return r, invalid("column stride", 0, fmt.Sprintf("1 to %d, or negative while it is changed", math.MaxInt32))
	case r.Offset >= r.Stride:
		return r, invalid("column number_offset", r.Offset, fmt.Sprintf("0 to %d, below the stride", r.Stride-1))
	}
	return r, nil
}

// A column scans an integer from any type of integers: INT, BIGINT UNSIGNED, NUMERIC.
type column struct {
	name        string
	value       *int64
	least, most int64
	// text reports that an integer may arrive as text, as every integer does in MySQL's text
	// protocol, and NUMERIC on both servers. In SQLite, which stores any type in any column, a
	// text of digits neither equals the number nor sorts like it.
	text bool
}

// Scan implements sql.Scanner.
func (c *column) Scan(src any) error {
	n, shown, ok := int64(0), any(nil), false
	switch v := src.(type) {
	case int64:
		n, shown, ok = v, v, true
	case uint64: // BIGINT UNSIGNED
		n, shown, ok = int64(v), v, v <= math.MaxInt64
	case []byte:
		n, ok = integer(string(v))
		shown, ok = fmt.Sprintf("%q", v), ok && c.text
	case string:
		n, ok = integer(v)
		shown, ok = fmt.Sprintf("%q", v), ok && c.text
	case nil:
		shown = "NULL"
	default:
		shown = fmt.Sprintf("%v (%T)", v, v)
	}
	if !ok || n < c.least || n > c.most {
		return invalid("column "+c.name, shown, fmt.Sprintf("an integer from %d to %d", c.least, c.most))
	}
	*c.value = n
	return nil
}

// integer reads an integer as servers write it: NUMERIC(12, 2) has 41.00.
func integer(text string) (n int64, ok bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	return n, err == nil && strings.Trim(fraction, "0") == ""
}
