package gormplugin

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
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

// columns writes the columns that the plugin fills.
func (q *query) columns() {
	for n, c := range q.reread.columns {
		q.write([...]string{"", ","}[min(n, 1)])
		q.column(c.field.DBName, "text") // as which a number is understood too
	}
}

// column writes a column that is selected. On PostgreSQL it is cast to typ, so that the
// query has the same type of result when the column has got another. Otherwise the server
// would refuse the query where it was prepared before: "cached plan must not change result
// type". pgx prepares each query for the connection, and GORM's PrepareStmt for its life.
func (q *query) column(name, typ string) {
	if q.Dialector.Name() == postgresName {
		q.write("CAST(", clause.Column{Name: name}, " AS ", typ, ")")
	} else {
		q.write(clause.Column{Name: name})
	}
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

// only returns what stands before the table in a query for rows that the insert has met.
func (q *query) only() string {
	if q.reread.alone {
		return "ONLY "
	}
	return ""
}

// standsAlone reports whether the insert meets rows of the table alone. On PostgreSQL a
// unique key does not span the tables that inherit from its own, and a query would read
// those too. The rows of a partitioned table are in its partitions.
func (r *reread) standsAlone() (alone bool, err error) {
	if r.db.Name() != postgresName {
		return false, nil
	}
	q := r.query()
	q.write(q.table())
	quoted := q.SQL.String()
	if known, ok := r.model.alone.Load(quoted); ok {
		return known.(bool), nil
	}
	name := tokensOf(quoted)
	if i := slices.IndexFunc(name, func(token string) bool { return strings.TrimSpace(token) == "" }); i >= 0 {
		name = name[:i] // an alias follows
	}
	q.SQL.Reset()
	q.write("SELECT relkind <> 'p' FROM pg_catalog.pg_class WHERE oid = to_regclass($1)")
	q.Vars = []any{strings.Join(name, "")}
	if err = q.rows(func(found *sql.Rows) error { return found.Scan(&alone) }); err == nil {
		r.model.alone.Store(quoted, alone)
	}
	return alone, err
}

// each runs the query and calls f for each row. The query returns the place of a number
// in list, the columns that the plugin fills, and bits that f understands.
func (q *query) each(list []int, f func(i int, stored []cell, same uint64)) error {
	var n, same int64
	values, into := make([]any, len(q.reread.columns)), []any{&n, &same}
	for c := range values {
		into = append(into, &values[c])
	}
	return q.rows(func(found *sql.Rows) error {
		if err := found.Scan(into...); err != nil {
			return err
		}
		f(list[n], q.reread.cells(values), uint64(same))
		return nil
	})
}

// cells returns what was scanned of the columns that the plugin fills, the first of values.
func (r *reread) cells(values []any) []cell {
	n := len(r.columns)
	if len(r.room) < n {
		r.room = make([]cell, min(256, r.rows.len())*n)
	}
	stored := r.room[:n:n]
	r.room = r.room[n:]
	for c := range stored {
		v := values[c]
		if bytes, ok := v.([]byte); ok {
			v = string(bytes)
		}
		stored[c] = r.columns[c].cell(reflect.ValueOf(v))
	}
	return stored
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
