package gormplugin

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// How much one statement of a re-read asks for. Old versions of SQLite take 999
// parameters, and 500 parts of a UNION; SQL Server takes 2,100 parameters.
const (
	keysPerQuery    = 900
	lookupsPerQuery = 100
)

// A reread finds the stored rows of an upsert.
//
// First by the keys that the statement assigned itself: nobody else has them,
// so a row with one is the row that was inserted. For a key that the caller had
// set this says nothing yet: the row with that key may be another one than the
// row that was met, and as a part of a composite key it may be of many rows. The
// rest is looked up by what the statement recognizes a row by, or by all unique
// keys of the table. The database compares, because only it knows its collations
// and the precision of its columns.
type reread struct {
	db       *gorm.DB
	model    *model
	upsert   upsert
	creation *creation
	rows     rows

	fresh      map[any]bool    // the keys that the statement assigned, as active[0] has them
	selected   map[string]bool // what Statement.SelectAndOmitColumns says
	restricted bool
}

func (r *reread) run() error {
	stmt := r.db.Statement
	r.selected, r.restricted = stmt.SelectAndOmitColumns(true, false)
	r.fresh = make(map[any]bool, len(r.creation.fresh))
	for _, id := range r.creation.fresh {
		r.fresh[r.creation.active[0].of(id)] = true
	}
	named := r.named()
	var own, others []int
	for i := range r.rows.len() {
		switch sent := r.creation.at(i, 0); {
		case sent == nil: // an expression in a map: what it gave is not ours to know
		case r.fresh[sent] || !named && r.alone(): // without a target, the row with the key is the row
			own = append(own, i)
		default:
			others = append(others, i)
		}
	}
	unmet, err := r.byKey(own)
	if err != nil {
		return err
	}
	rest := append(unmet, others...)
	if len(rest) == 0 {
		return nil
	}
	uniques, err := r.storedUniques()
	if err != nil {
		return err
	}
	target := r.target(uniques)
	primary := []unique{uniqueOf(uniques, stmt.Schema.PrimaryFields)}
	keys := uniques
	switch {
	case named && target.hidden:
		keys = nil
	case named:
		keys = []unique{target}
	case slices.ContainsFunc(uniques, func(u unique) bool { return u.hidden }):
		keys = primary // any other row may not be the one that was met
	}
	free, torn, err := r.byUnique(rest, keys)
	if err != nil {
		return err
	}
	if named {
		// None of these is like a stored row in the one way that counts. So
		// they were inserted, also under a key that the caller had set.
		var more []int
		if free, more, err = r.byUnique(free, primary); err != nil {
			return err
		}
		torn = append(torn, more...)
		// Behind a hidden target they may have met a row as well. They have not if as
		// many rows are stored under their keys as were inserted.
		stored := len(own) + len(others) - len(free) - len(torn)
		if target.hidden && !(countsInserts(stmt, r.upsert) && r.db.RowsAffected == int64(stored)) {
			free, torn = rest, nil
		}
	}
	for _, i := range append(free, torn...) {
		if lost := r.unresolved(i); lost != nil {
			err = lost
		}
	}
	return err
}

// alone reports whether the key that the plugin fills is the whole primary key.
func (r *reread) alone() bool {
	primary := r.db.Statement.Schema.PrimaryFields
	return len(primary) == 1 && primary[0] == r.creation.active[0].field
}

// byKey finds the rows that are stored under the key in memory, and returns the
// rest of list.
func (r *reread) byKey(list []int) (rest []int, err error) {
	var ask []any
	at := map[any][]int{}
	for _, i := range list {
		sent := r.creation.at(i, 0)
		ask = append(ask, sent)
		at[sent] = append(at[sent], i)
	}
	for chunk := range slices.Chunk(ask, keysPerQuery) {
		q := r.query()
		q.selectFrom(0)
		q.write(" WHERE ", clause.Column{Name: r.creation.active[0].field.DBName}, " IN ")
		q.AddVar(q, chunk)
		err = q.each(func(_ int, values []any) {
			for _, i := range at[values[0]] {
				r.resolved(i, values)
			}
			delete(at, values[0])
		})
		if err != nil {
			return nil, err
		}
	}
	for _, i := range list {
		if at[r.creation.at(i, 0)] != nil {
			rest = append(rest, i)
		}
	}
	return rest, nil
}

// byUnique looks list up by keys. It returns the rows that are like no stored row,
// and those that are torn between two: like one in one unique key and like the other
// in another.
func (r *reread) byUnique(list []int, keys []unique) (free, torn []int, err error) {
	type lookup struct {
		row int
		key unique
	}
	var ask []lookup
	for _, i := range list {
		for _, key := range keys {
			if r.usable(i, key) {
				ask = append(ask, lookup{i, key})
			}
		}
	}
	found := map[int][][]any{}
	for chunk := range slices.Chunk(ask, lookupsPerQuery) {
		q := r.query()
		for n, l := range chunk {
			if n > 0 {
				q.write(" UNION ALL ")
			}
			q.lookup(l.row, l.key)
		}
		err = q.each(func(i int, values []any) {
			same := func(other []any) bool { return other[0] == values[0] }
			if !slices.ContainsFunc(found[i], same) {
				found[i] = append(found[i], values)
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	for _, i := range list {
		switch met := found[i]; {
		case len(met) == 0:
			free = append(free, i)
		case len(met) > 1 || met[0][0] == nil:
			torn = append(torn, i)
		default:
			r.resolved(i, met[0])
		}
	}
	return free, torn, nil
}

// usable reports whether row i can be found by u: not by a key that nobody had
// before, which is like no stored one.
func (r *reread) usable(i int, u unique) bool {
	key := r.creation.active[0].field
	return r.known(i, u) && !(key.PrimaryKey && r.fresh[r.creation.at(i, 0)] && u.covers(r.db.Statement.Schema.PrimaryFields))
}

// known reports whether it is known what row i has in u: not where the database
// decides. Nothing is known of no columns, in which all rows would be alike.
func (r *reread) known(i int, u unique) bool {
	for _, c := range u.columns {
		if c.field == nil || !r.writes(c.field.DBName) || !r.has(i, c.field) {
			return false
		}
	}
	return len(u.columns) > 0
}

// named reports whether the statement names what a stored row is recognized by. MySQL
// goes by every unique key, whatever is named.
func (r *reread) named() bool {
	return r.db.Name() != mysqlName && (r.upsert.conflict.OnConstraint != "" || len(r.upsert.target(r.db.Statement.Schema)) > 0)
}

// target returns what the statement names, which is hidden if it is more than columns
// of the model.
func (r *reread) target(uniques []unique) unique {
	s, conflict := r.db.Statement.Schema, r.upsert.conflict
	if conflict.OnConstraint != "" {
		for _, u := range uniques {
			if u.name == conflict.OnConstraint {
				return u
			}
		}
		return unique{hidden: true}
	}
	var fields []*schema.Field
	for _, name := range r.upsert.target(s) {
		f := s.LookUpField(name)
		if f == nil {
			return unique{hidden: true}
		}
		fields = append(fields, f)
	}
	u := uniqueOf(uniques, fields)
	if len(conflict.TargetWhere.Exprs) > 0 {
		u.where = conflict.TargetWhere
	}
	return u
}

// has reports whether row i says what it has in f: not where it is zero and the
// database has a default that GORM did not put there. What a map leaves out is looked
// up as NULL, which nothing is like.
func (r *reread) has(i int, f *schema.Field) bool {
	row := r.rows.at(i)
	if row.values != nil {
		return true
	}
	_, zero := f.ValueOf(r.db.Statement.Context, row.fields)
	return !zero || !f.HasDefaultValue || f.DefaultValueInterface != nil
}

// names reports whether row i names f, as all structs do.
func (r *reread) names(i int, f *schema.Field) bool {
	row := r.rows.at(i)
	for k := range row.values {
		if names(k, f) {
			return true
		}
	}
	return row.values == nil
}

// value returns what row i sends for f.
func (r *reread) value(i int, f *schema.Field) any {
	row := r.rows.at(i)
	for k, v := range row.values {
		if names(k, f) {
			return v
		}
	}
	if row.values != nil {
		return nil
	}
	v, _ := f.ValueOf(r.db.Statement.Context, row.fields)
	return v
}

// resolved stores the keys of the stored row in row i.
func (r *reread) resolved(i int, values []any) {
	for c, v := range values {
		r.creation.active[c].put(r.db.Statement.Context, r.rows.at(i), v)
	}
}

// unresolved empties the keys of row i, of which no stored row was found. It
// returns an error if rows of associations need the key.
func (r *reread) unresolved(i int) error {
	stmt := r.db.Statement
	row := r.rows.at(i)
	for c := range r.creation.active {
		r.creation.active[c].put(stmt.Context, row, nil)
	}
	if !r.creation.nested && !r.associationsFollow(row) {
		return nil
	}
	return fmt.Errorf("%w: %s at index %d was not inserted, and its key is needed for associations", ErrUnresolved, stmt.Schema.Name, i)
}

// associationsFollow reports whether GORM is going to create rows that refer to
// row.
func (r *reread) associationsFollow(row row) bool {
	if row.values != nil {
		return false // GORM takes no associations from maps
	}
	stmt := r.db.Statement
	rels := &stmt.Schema.Relationships
	for _, rel := range slices.Concat(rels.HasOne, rels.HasMany, rels.Many2Many) {
		if !r.writes(rel.Name) {
			continue
		}
		if _, zero := rel.Field.ValueOf(stmt.Context, row.fields); !zero {
			return true
		}
	}
	return false
}

// writes reports whether the statement writes the column or the association of
// that name: selected, or nothing was, and not omitted.
func (r *reread) writes(name string) bool {
	on, named := r.selected[name]
	return on || !named && !r.restricted
}

// A query is a SELECT that is being written, of the active columns.
type query struct {
	*gorm.Statement
	reread *reread
}

func (r *reread) query() *query {
	from := r.db.Statement
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
	for _, c := range q.reread.creation.active {
		q.write(",", clause.Column{Name: c.field.DBName})
	}
	q.write(" FROM ", q.table())
}

// table returns the table of the insert.
func (q *query) table() clause.Table {
	if c, ok := q.reread.db.Statement.Clauses["INSERT"]; ok {
		if insert, known := c.Expression.(clause.Insert); known && insert.Table.Name != "" {
			return insert.Table
		}
	}
	return clause.Table{Name: clause.CurrentTable}
}

// lookup writes the SELECT of what row i met in u.
func (q *query) lookup(i int, u unique) {
	lock := ""
	if q.Dialector.Name() == mysqlName {
		// Under REPEATABLE READ a plain SELECT sees the past, in which the row
		// that was met may not exist. The insert has locked that row already:
		// to share where it ignores, else to write.
		lock = " FOR UPDATE"
		if q.reread.upsert.ignores {
			lock = " LOCK IN SHARE MODE"
		}
		q.write("(")
	}
	q.selectFrom(i)
	for n, c := range u.columns {
		q.write([...]string{" WHERE ", " AND "}[min(n, 1)])
		q.compare(c, q.reread.value(i, c.field))
	}
	if lock != "" {
		q.write(lock, ")")
		return // MySQL has no unique keys of some rows alone: it makes them of all
	}
	if u.where != nil {
		q.within(i, u.where)
	}
}

// compare writes that a column of a unique key is like value, of which it compares
// what the column has stored.
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

// within writes that a unique key covers the stored row, and row i, which else met
// nothing there: a closed account is not the open one of the same address. For the
// second, row i stands in the place of the table, from whose columns its values have
// their types. Where the database fills what is asked for, row i counts as covered.
func (q *query) within(i int, where clause.Expression) {
	q.write(" AND (")
	start := q.SQL.Len()
	where.Build(q.Statement)
	asked := parseSQL(q.SQL.String()[start:])
	q.write(")")
	var columns, values []any
	for _, name := range q.Schema.DBNames {
		if asked.find(0, func(token string) bool { return strings.EqualFold(unquote(token), name) }) < 0 {
			continue
		}
		f := q.Schema.FieldsByDBName[name]
		if !q.reread.known(i, unique{columns: []uniqueColumn{{field: f}}}) || !q.reread.names(i, f) {
			return
		}
		columns = append(columns, ",", clause.Column{Name: name})
		values = append(values, q.reread.value(i, f))
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

// each runs the query and calls f with the number of each row and its columns,
// in the form described at column.
func (q *query) each(f func(i int, values []any)) error {
	var i int
	columns := q.reread.creation.active
	numbers, texts := make([]sql.NullInt64, len(columns)), make([]sql.NullString, len(columns))
	into := []any{&i}
	for c := range columns {
		if columns[c].kind == text {
			into = append(into, &texts[c])
		} else {
			into = append(into, &numbers[c])
		}
	}
	return q.rows(func(found *sql.Rows) error {
		if err := found.Scan(into...); err != nil {
			return err
		}
		values := make([]any, len(columns))
		for c := range columns {
			switch {
			case texts[c].Valid:
				values[c] = texts[c].String
			case numbers[c].Valid:
				values[c] = numbers[c].Int64
			}
		}
		f(i, values)
		return nil
	})
}

// rows runs the query and calls f for each row.
//
// It runs on the very connection or pool that ran the insert, not through
// GORM's callbacks: with dbresolver those might take another server, which does
// not have the row yet.
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
	found, err := q.reread.db.Statement.ConnPool.QueryContext(q.Context, asked, vars...)
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
