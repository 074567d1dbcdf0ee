package gormplugin

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// manyRows is the number of rows from which a look-up by runs of keys or by a list of values
// is worth it.
const manyRows = 20

// The names of the values that a look-up joins with the table, and of their columns, before
// a number. No table has columns of these names, which keeps them from being ambiguous.
const (
	valuesName  = "snowkey_values"
	valueColumn = "snowkey_value"
	placeColumn = "snowkey_place"
)

// A foundFunc receives a stored row that equals row i of the statement: the columns that the
// plugin fills, and a bit for each unique key in which the two are equal.
type foundFunc func(i int, stored []cell, same uint64)

// find calls found for each stored row that equals a row of list in the first of keys. It
// lists the values where that key is a single column that stores them unchanged, joins the
// other rows with the table, and uses a SELECT for each row that a join could compare
// otherwise than the insert did. For 10,000 stored rows, joins alone take 1.2 to 1.6 times as
// much CPU time of client and server.
func (r *resolver) find(list []int, keys []unique, found foundFunc) error {
	list, err := r.findListed(list, keys, found)
	if err != nil {
		return err
	}
	return r.findJoined(list, keys, found)
}

// A query builds and runs a SELECT. It has the table of the insert and a text of its own.
type query struct {
	*gorm.Statement
	creation *creation
}

func (c *creation) query() *query {
	from := c.stmt
	tx := from.DB.Session(&gorm.Session{NewDB: true})
	return &query{creation: c, Statement: &gorm.Statement{
		DB:        tx,
		Table:     from.Table,
		TableExpr: from.TableExpr,
		Schema:    from.Schema,
		Context:   from.Context,
		Clauses:   map[string]clause.Clause{},
	}}
}

// write writes strings as they are and names in quotes.
func (q *query) write(parts ...any) {
	for _, part := range parts {
		if s, ok := part.(string); ok {
			q.SQL.WriteString(s)
		} else {
			q.WriteQuoted(part)
		}
	}
}

// filled writes the columns that the plugin fills.
func (q *query) filled() {
	for n, c := range q.creation.columns {
		q.write([...]string{"", ","}[min(n, 1)])
		q.column(c.field.DBName, "text") // in which cells accept a number too
	}
}

// column writes a column of the result. Where results are cast, it has the type typ even
// after the column has got another type. PostgreSQL would refuse the query if it was
// prepared before: "cached plan must not change result type". pgx prepares each query for
// the life of the connection, and GORM's PrepareStmt for its own.
func (q *query) column(name, typ string) {
	if q.creation.database.castsResult {
		q.write("CAST(", clause.Column{Name: name}, " AS ", typ, ")")
	} else {
		q.write(clause.Column{Name: name})
	}
}

// table returns the table of the insert.
func (q *query) table() clause.Table {
	if c, ok := q.creation.stmt.Clauses["INSERT"]; ok {
		if insert, known := c.Expression.(clause.Insert); known && insert.Table.Name != "" {
			return insert.Table
		}
	}
	return clause.Table{Name: clause.CurrentTable}
}

// each runs the query and calls found for each row. The query returns the index of a row in
// list, the bits for found, and the columns that the plugin fills.
func (q *query) each(list []int, found foundFunc) error {
	var n, same int64
	values, into := make([]any, len(q.creation.columns)), []any{&n, &same}
	for c := range values {
		into = append(into, &values[c])
	}
	return q.rows(func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		found(list[n], q.creation.cells(values), uint64(same))
		return nil
	})
}

// cells returns the first of values as cells of the columns that the plugin fills.
func (c *creation) cells(values []any) []cell {
	n := len(c.columns)
	if len(c.room) < n {
		c.room = make([]cell, min(256, c.rows.len())*n)
	}
	stored := c.room[:n:n]
	c.room = c.room[n:]
	for k := range stored {
		v := values[k]
		if bytes, ok := v.([]byte); ok {
			v = string(bytes)
		}
		stored[k] = c.columns[k].cell(reflect.ValueOf(v))
	}
	return stored
}

// rows runs the query and calls f for each row. It uses the connection or pool of the insert
// and not GORM's callbacks, in which dbresolver may choose a replica that does not have the
// row yet.
func (q *query) rows(f func(*sql.Rows) error) (err error) {
	begin, count := time.Now(), int64(0)
	asked, vars := q.SQL.String(), q.Vars
	defer func() {
		if err != nil {
			err = fmt.Errorf("gormplugin: read back the keys of %s: %w", q.Schema.Name, err)
		}
		q.Logger.Trace(q.Context, begin, func() (string, int64) {
			if filter, ok := q.Logger.(gorm.ParamsFilter); ok {
				asked, vars = filter.ParamsFilter(q.Context, asked, vars...)
			}
			return q.Dialector.Explain(asked, vars...), count
		}, err)
	}()
	if q.Error != nil {
		return q.Error
	}
	found, err := q.creation.stmt.ConnPool.QueryContext(q.Context, asked, vars...)
	if err != nil {
		return err
	}
	defer func() {
		if closed := found.Close(); err == nil {
			err = closed
		}
	}()
	for found.Next() {
		if err = f(found); err != nil {
			return err
		}
		count++
	}
	return found.Err()
}

// simple reports whether v is a value that database/sql converts by itself, and not SQL.
func simple(v any) bool {
	if isSQL(v) {
		return false
	}
	_, err := driver.DefaultParameterConverter.ConvertValue(v)
	return err == nil
}

// isNull reports whether v is sent as NULL.
func isNull(v any) bool {
	v, err := driver.DefaultParameterConverter.ConvertValue(v)
	return v == nil && err == nil
}

// isSQL reports whether GORM writes SQL for v.
func isSQL(v any) bool {
	switch v.(type) {
	case clause.Expression, clause.Interface, gorm.Valuer:
		return true
	default:
		return false
	}
}

// sqlToken matches a quoted name or string, a comment, white space, a word, or any other
// character. The tokens of a statement, put together, are the statement. A doubled quote is
// part of the name, and a quote that is never closed ends with the statement.
var sqlToken = regexp.MustCompile(`(?s)"(?:[^"]|"")*"?|'(?:[^']|'')*'?|` + "`(?:[^`]|``)*`?" +
	`|\[[^\]]*\]?|--[^\n]*\n?|/\*.*?(?:\*/|$)|\s+|[\w$\x{80}-\x{10ffff}]+|.`)

func tokensOf(sql string) []string { return sqlToken.FindAllString(sql, -1) }

// unquote returns the name in a token. A token without quotes is returned unchanged.
func unquote(token string) string {
	if len(token) < 2 {
		return token
	}
	switch q := token[0]; q {
	case '"', '`', '\'':
		return strings.ReplaceAll(token[1:len(token)-1], string(q)+string(q), string(q))
	case '[':
		return token[1 : len(token)-1]
	default:
		return token
	}
}
