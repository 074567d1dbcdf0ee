package gormplugin

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// How many rows one statement looks up: joined, and by a SELECT each. Old versions of SQLite
// accept 500 parts of a UNION.
const (
	rowsPerJoin  = 1000
	rowsPerUnion = 100
)

// A join looks rows up by joining the table with the values that they send. Or it compares
// the table with the values of one row, for values that a join could compare otherwise than
// the insert did.
type join struct {
	*query
	resolver *resolver
	keys     []unique          // the one to look by, and others in which the rows found are compared
	tested   [][]*schema.Field // for each of keys, the columns of the model that its condition names
	fields   []*schema.Field   // the joined columns, which follow the row's number; nil: rows are not joined
	row      int               // the row whose values are compared, if rows are not joined
}

// findJoined is find by joins, and by a SELECT for each of the other rows.
func (r *resolver) findJoined(rows []int, keys []unique, found foundFunc) error {
	tested := make([][]*schema.Field, len(keys))
	for k, key := range keys {
		if key.where != nil {
			tested[k] = r.tested(key.where)
		}
	}
	newJoin := func() *join { return &join{query: r.query(), resolver: r, keys: keys, tested: tested} }
	var together, apart []int
	for _, i := range rows {
		if len(rows) > 1 && r.joins(i, keys, tested) {
			together = append(together, i)
		} else {
			apart = append(apart, i)
		}
	}
	for chunk := range slices.Chunk(together, rowsPerJoin) {
		j := newJoin()
		j.together(chunk)
		switch err := j.each(chunk, found); {
		case dialect.NoIndex(err): // the index is invisible, or ignored
			apart = append(apart, chunk...)
		case err != nil:
			return err
		}
	}
	for chunk := range slices.Chunk(apart, rowsPerUnion) {
		j := newJoin()
		for n, i := range chunk {
			if n > 0 {
				j.write(" UNION ALL ")
			}
			j.single(n, i)
		}
		if err := j.each(chunk, found); err != nil {
			return err
		}
	}
	return nil
}

// tested returns the columns of the model that a condition names.
func (r *resolver) tested(where clause.Expression) (fields []*schema.Field) {
	q := r.query()
	where.Build(q.Statement)
	tokens := tokensOf(q.SQL.String())
	for _, name := range q.Schema.DBNames {
		if slices.ContainsFunc(tokens, func(token string) bool { return strings.EqualFold(unquote(token), name) }) {
			fields = append(fields, q.Schema.FieldsByDBName[name])
		}
	}
	return fields
}

// joins reports whether a join compares row i as its insert did, for which a joined value
// must have the type of its column. Values that are SQL, or that only the driver converts,
// are not joined, nor are rows whose columns in the condition of a key the database fills.
func (r *resolver) joins(i int, keys []unique, tested [][]*schema.Field) bool {
	d := r.database
	if d.joins == nil || !d.joins(&keys[0]) || d.forcesIndex && keys[0].index == "" {
		return false
	}
	for k, key := range keys {
		if !r.canTest(i, tested[k]) {
			return false
		}
		for _, c := range key.columns {
			if c.field == nil || !r.gives(i, c.field) {
				continue
			}
			if r.tidb && strings.Contains(c.typ, "binary") {
				return false // it has found rows whose values are only the beginning of those joined
			}
			if v, _ := r.value(i, c.field); !simple(v) || key.nullsEqual && isNull(v) {
				return false // no index finds IS NOT DISTINCT FROM
			}
		}
	}
	return true
}

// together writes the look-up of rows by a join.
func (j *join) together(rows []int) {
	j.chooseFields()
	j.write("SELECT ", valueColumn, "1")
	j.selected()
	j.write(" FROM (")
	j.resolver.database.joined(j, rows)
	j.write(" WHERE ")
	j.match(0)
	j.write(j.resolver.lock())
}

// single writes a SELECT for row i, which is number n of the statement.
func (j *join) single(n, i int) {
	j.row = i
	lock := j.resolver.lock()
	if lock != "" {
		j.write("(")
	}
	j.write("SELECT ", strconv.Itoa(n))
	j.selected()
	j.write(" FROM ", j.resolver.only(), j.table(), " WHERE ")
	j.match(0)
	if lock != "" {
		j.write(lock, ")")
	}
}

// lock returns the lock that a look-up takes on MySQL, where a plain SELECT under REPEATABLE
// READ reads an old snapshot, which may lack the row that the insert met. The insert has
// locked that row already: in share mode if it ignores, and for update otherwise. TiDB refuses
// LOCK IN SHARE MODE, or reads an old snapshot if it is told to take that for a comment.
func (r *resolver) lock() string {
	switch {
	case !r.database.locks:
		return ""
	case r.upsert.ignores && !r.tidb:
		return " LOCK IN SHARE MODE"
	default:
		return " FOR UPDATE"
	}
}

// force makes a look-up use the index of key.
func (q *query) force(key unique) { q.write(" FORCE INDEX (", clause.Column{Name: key.index}, ")") }

// only returns what stands before the table in a look-up of rows that the insert met.
func (r *resolver) only() string {
	if r.alone {
		return "ONLY "
	}
	return ""
}

// selected writes the columns that [query.each] expects after the number. There are bits
// for the first 62 keys; rows are always looked up by the others.
func (j *join) selected() {
	j.write(",1")
	for k := 1; k < min(len(j.keys), 62); k++ {
		if j.comparable(k) {
			j.write("+CASE WHEN ")
			j.match(k)
			j.write(" THEN ", strconv.FormatInt(1<<k, 10), " ELSE 0 END")
		}
	}
	j.write(",")
	j.filled()
}

// comparable reports whether the rows found can be compared in keys[k].
func (j *join) comparable(k int) bool {
	key := &j.keys[k]
	if j.fields == nil {
		return j.resolver.usable(j.row, *key)
	}
	return j.resolver.database.joins(key) && !slices.ContainsFunc(key.columns, func(c uniqueColumn) bool { return c.field == nil })
}

// chooseFields chooses the columns to join.
func (j *join) chooseFields() {
	add := func(f *schema.Field) {
		if f != nil && !slices.Contains(j.fields, f) {
			j.fields = append(j.fields, f)
		}
	}
	for k, key := range j.keys {
		for _, c := range key.columns {
			add(c.field)
		}
		for _, f := range j.tested[k] {
			add(f)
		}
	}
}

// values writes the rows as VALUES, after those that head writes, and the table to join them
// with. SQLite keeps to the order of a CROSS JOIN.
func (j *join) values(rows []int, head func()) {
	j.write("SELECT ")
	for n := range 1 + len(j.fields) {
		number := strconv.Itoa(n + 1)
		j.write([...]string{"", ","}[min(n, 1)], "column", number, " AS ", valueColumn, number)
	}
	j.write(" FROM (VALUES ")
	if head != nil {
		head()
	}
	for n, i := range rows {
		if n > 0 {
			j.write(",")
		}
		j.write("(")
		j.number(n)
		for _, f := range j.fields {
			j.write(",")
			j.bind(i, f)
		}
		j.write(")")
	}
	j.write(") AS snowkey_rows) AS ", valuesName, " CROSS JOIN ", j.resolver.only(), j.table())
}

// number writes n.
func (j *join) number(n int) { j.SQL.Write(strconv.AppendInt(make([]byte, 0, 20), int64(n), 10)) }

// form returns how f is compared.
func (j *join) form(f *schema.Field) (form dialect.Form) {
	for _, key := range j.keys {
		for _, c := range key.columns {
			if c.field == f {
				return c.form
			}
		}
	}
	return form
}

// castOf returns what a form writes before and after a value.
func castOf(form dialect.Form) [2]string {
	before, after, _ := strings.Cut(cmp.Or(form.SQL, "?"), "?")
	return [2]string{before, after}
}

// send adds what row i sends for f, in the form of its column, to the parameters.
func (j *join) send(i int, f *schema.Field) {
	v, _ := j.resolver.value(i, f)
	if form := j.form(f); form.Proves() {
		v, _ = form.Value(v)
	}
	j.AddVar(j, v)
}

// bind writes what row i sends for f, or NULL if that is not known.
func (j *join) bind(i int, f *schema.Field) {
	if !j.resolver.gives(i, f) {
		j.write("NULL")
		return
	}
	j.send(i, f)
}

// value writes the value of f to compare with.
func (j *join) value(f *schema.Field) {
	if j.fields == nil {
		j.send(j.row, f)
		return
	}
	j.write(valueColumn, strconv.Itoa(2+slices.Index(j.fields, f)))
}

// match writes the condition that the stored row equals the row of the statement in keys[k].
func (j *join) match(k int) {
	key := j.keys[k]
	for n, c := range key.columns {
		if n > 0 {
			j.write(" AND ")
		}
		j.compare(c, key.nullsEqual)
	}
	if key.where != nil {
		j.within(k)
	}
}

// compare writes the condition that a column of a unique key equals what it would store of
// the value.
func (j *join) compare(c uniqueColumn, nullsEqual bool) {
	column := clause.Column{Name: c.field.DBName}
	cast := castOf(c.form)
	if j.fields != nil && c.form.Proves() {
		cast = [2]string{} // mysqlUnion has cast the value
	}
	stored := func() {
		j.write(cast[0])
		j.value(c.field)
		j.write(cast[1])
	}
	if c.prefix > 0 && c.form.Proves() {
		for _, part := range c.form.Prefix {
			switch part {
			case '@':
				j.write(column)
			case '?':
				stored()
			case '#':
				j.write(strconv.Itoa(c.prefix))
			default:
				j.write(string(part))
			}
		}
		return
	}
	j.write(column)
	if nullsEqual && j.fields == nil {
		if v, _ := j.resolver.value(j.row, c.field); !isSQL(v) && isNull(v) {
			j.write(" IS NULL")
			return
		}
	}
	if c.collate != "" {
		j.write(" COLLATE ", c.collate)
	}
	j.write(" = ")
	stored()
}

// within writes the condition that a partial unique key covers the stored row and the row of
// the statement: a closed account does not conflict with the open one of the same address.
// To test the row of the statement, the query evaluates the key's condition over a subquery
// that has the name of the table, and the types of its columns. A row whose tested columns
// the database fills counts as covered.
func (j *join) within(k int) {
	key := j.keys[k]
	j.write(" AND (")
	key.where.Build(j.Statement)
	j.write(")")
	tested := j.tested[k]
	if len(tested) == 0 || j.fields == nil && !j.resolver.canTest(j.row, tested) {
		return
	}
	j.write(" AND EXISTS (SELECT 1 FROM (SELECT ")
	for n, f := range tested {
		j.write([...]string{"", ","}[min(n, 1)], clause.Column{Name: f.DBName})
	}
	j.write(" FROM ", j.table(), " WHERE 1 = 0 UNION ALL SELECT ")
	for n, f := range tested {
		j.write([...]string{"", ","}[min(n, 1)])
		j.value(f)
	}
	j.write(") AS ", clause.Table{Name: j.Table}, " WHERE ")
	key.where.Build(j.Statement)
	j.write(")")
}

// canTest reports whether row i has all values that a condition tests.
func (r *resolver) canTest(i int, tested []*schema.Field) bool {
	return !slices.ContainsFunc(tested, func(f *schema.Field) bool {
		_, named := r.value(i, f)
		return !named || !r.gives(i, f)
	})
}
