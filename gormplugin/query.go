package gormplugin

import (
	"cmp"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// A query builds and runs a SELECT of the columns that the plugin fills.
type query struct {
	*gorm.Statement
	reread *reread
}

func (r *reread) query() *query {
	from := r.stmt
	tx := r.db.Session(&gorm.Session{NewDB: true})
	return &query{reread: r, Statement: &gorm.Statement{
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

// selectFrom writes "SELECT i, columns FROM table".
func (q *query) selectFrom(i int) {
	q.write("SELECT ", strconv.Itoa(i))
	for _, c := range q.reread.columns {
		q.write(",", clause.Column{Name: c.field.DBName})
	}
	q.write(" FROM ", q.table())
}

// table returns the table of the insert.
func (q *query) table() clause.Table {
	if c, ok := q.reread.stmt.Clauses["INSERT"]; ok {
		if insert, known := c.Expression.(clause.Insert); known && insert.Table.Name != "" {
			return insert.Table
		}
	}
	return clause.Table{Name: clause.CurrentTable}
}

// lookup writes the SELECT of the stored row that equals row i in u.
func (q *query) lookup(i int, u unique) {
	lock := ""
	if q.Dialector.Name() == mysqlName {
		// Under REPEATABLE READ a plain SELECT reads an old snapshot, which may lack the
		// row that was met. The insert has locked that row already: in share mode if it
		// ignores, else for update.
		lock = " FOR UPDATE"
		if q.reread.upsert.ignores {
			lock = " LOCK IN SHARE MODE"
		}
		q.write("(")
	}
	q.selectFrom(i)
	for n, c := range u.columns {
		q.write([...]string{" WHERE ", " AND "}[min(n, 1)])
		value, _ := q.reread.value(i, c.field)
		q.compare(c, value)
	}
	if lock != "" {
		q.write(lock, ")")
		return // MySQL has no partial unique keys
	}
	if u.where != nil {
		q.within(i, u.where)
	}
}

// compare writes that a column of a unique key equals what it would store of value.
func (q *query) compare(c uniqueColumn, value any) {
	column := clause.Column{Name: c.field.DBName}
	before, after, _ := strings.Cut(cmp.Or(c.as, "?"), "?")
	stored := func() {
		q.write(before)
		q.AddVar(q, value)
		q.write(after)
	}
	if c.prefix > 0 && q.Dialector.Name() == mysqlName {
		length := ", " + strconv.Itoa(c.prefix) + ")"
		q.write("LEFT(", column, length, " = LEFT(")
		stored()
		// LEFT alone reads, and locks, the whole table.
		q.write(length, " AND ", column, " LIKE CONCAT(REPLACE(REPLACE(REPLACE(RTRIM(LEFT(")
		stored()
		q.write(length, "), '|', '||'), '%', '|%'), '_', '|_'), '%') ESCAPE '|'")
		return
	}
	q.write(column)
	if c.collate != "" {
		q.write(" COLLATE ", c.collate)
	}
	q.write(" = ")
	stored()
}

// within writes that a partial unique key covers the stored row and row i. A closed
// account is not the open one of the same address. To test row i, the query puts it in
// the place of the table. The columns of the table give its values their types. If the
// database fills a column that is tested, row i counts as covered.
func (q *query) within(i int, where clause.Expression) {
	q.write(" AND (")
	start := q.SQL.Len()
	where.Build(q.Statement)
	asked := tokensOf(q.SQL.String()[start:])
	q.write(")")
	var columns, values []any
	for _, name := range q.Schema.DBNames {
		if !slices.ContainsFunc(asked, func(token string) bool { return strings.EqualFold(unquote(token), name) }) {
			continue
		}
		f := q.Schema.FieldsByDBName[name]
		value, named := q.reread.value(i, f)
		if !named || !q.reread.gives(i, f) {
			return
		}
		columns = append(columns, ",", clause.Column{Name: name})
		values = append(values, value)
	}
	if len(columns) == 0 {
		return
	}
	q.write(" AND EXISTS (SELECT 1 FROM (SELECT ")
	q.write(columns[1:]...)
	q.write(" FROM ", q.table(), " WHERE 1 = 0 UNION ALL SELECT ")
	q.AddVar(q, values...)
	q.write(") AS ", clause.Table{Name: q.Table}, " WHERE ")
	where.Build(q.Statement)
	q.write(")")
}

// each runs the query and calls f with the number and the columns of each row.
func (q *query) each(f func(i int, values []cell)) error {
	var i int
	columns := q.reread.columns
	texts, into := make([]sql.NullString, len(columns)), []any{&i}
	for c := range texts {
		into = append(into, &texts[c])
	}
	return q.rows(func(found *sql.Rows) error {
		if err := found.Scan(into...); err != nil {
			return err
		}
		values := make([]cell, len(columns))
		for c, text := range texts {
			if text.Valid {
				values[c] = columns[c].cell(reflect.ValueOf(text.String))
			}
		}
		f(i, values)
		return nil
	})
}

// rows runs the query and calls f for each row.
//
// It uses the connection or pool of the insert and not GORM's callbacks. With dbresolver
// these may choose a replica that does not have the row yet.
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
	found, err := q.reread.stmt.ConnPool.QueryContext(q.Context, asked, vars...)
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
