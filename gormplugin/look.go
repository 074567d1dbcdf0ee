package gormplugin

import (
	"cmp"
	"database/sql/driver"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// How many rows one statement looks up: joined, and by a SELECT for each. Old versions
// of SQLite take 500 parts of a UNION.
const (
	rowsPerJoin  = 1000
	rowsPerUnion = 100
)

// A look finds the stored rows that equal rows of the statement in a unique key.
//
// It joins the table with the values of the rows. The values of one row, and those
// that a join could compare otherwise than the insert, stand in a SELECT of their own.
type look struct {
	*query
	keys   []unique          // the one to look by, and others in which the rows found are compared
	tested [][]*schema.Field // for each of keys, the columns of the model that its condition names
	fields []*schema.Field   // the columns of the joined values, behind their number; nil: there is no join
	told   []int             // for each of keys, the column that says whether a row can be tested; 0: none
	width  int               // how many columns the joined values have
	row    int               // without a join, the row whose values are compared
}

// The names of the joined values and, before a number, of their columns. The table has
// none of these, so that no column is ambiguous.
const (
	valuesName  = "snowkey_values"
	valueColumn = "snowkey_value"
)

// look calls f for each stored row that equals a row of list in the first of keys. It
// passes the number of the row, the stored columns that the plugin fills, and a bit for
// each key in which the two rows are equal.
func (r *reread) look(list []int, keys []unique, f func(i int, stored []cell, same uint64)) error {
	list, err := r.exact(list, keys, f)
	if err != nil {
		return err
	}
	var together, apart []int
	for _, i := range list {
		if len(list) > 1 && r.joins(i, keys) {
			together = append(together, i)
		} else {
			apart = append(apart, i)
		}
	}
	for chunk := range slices.Chunk(together, rowsPerJoin) {
		l := r.newLook(keys)
		l.join(chunk)
		switch err := l.each(chunk, f); {
		case dialect.NoIndex(err):
			apart = append(apart, chunk...) // the index is invisible, or ignored
		case err != nil:
			return err
		}
	}
	for chunk := range slices.Chunk(apart, rowsPerUnion) {
		l := r.newLook(keys)
		for n, i := range chunk {
			if n > 0 {
				l.write(" UNION ALL ")
			}
			l.single(n, i)
		}
		if err := l.each(chunk, f); err != nil {
			return err
		}
	}
	return nil
}

func (r *reread) newLook(keys []unique) *look {
	l := &look{query: r.query(), keys: keys, tested: make([][]*schema.Field, len(keys))}
	for k, key := range keys {
		if key.where != nil {
			l.tested[k] = r.tested(key.where)
		}
	}
	return l
}

// tested returns the columns of the model that a condition names.
func (r *reread) tested(where clause.Expression) (list []*schema.Field) {
	q := r.query()
	where.Build(q.Statement)
	asked := tokensOf(q.SQL.String())
	for _, name := range q.Schema.DBNames {
		if slices.ContainsFunc(asked, func(token string) bool { return strings.EqualFold(unquote(token), name) }) {
			list = append(list, q.Schema.FieldsByDBName[name])
		}
	}
	return list
}

// joins reports whether a join compares row i as its insert did. The type of a joined
// value must be that of the column. On PostgreSQL and SQLite it is. On MySQL the form of the
// column sees to it, for some types. Values that are SQL, or that only the driver knows, are
// not joined either.
func (r *reread) joins(i int, keys []unique) bool {
	switch r.db.Name() {
	case postgresName, sqliteName:
	case mysqlName:
		if keys[0].index == "" || !keys[0].joins() {
			return false
		}
	default:
		return false
	}
	for _, key := range keys {
		for _, c := range key.columns {
			if c.field == nil || !r.gives(i, c.field) {
				continue
			}
			if v, _ := r.value(i, c.field); !simple(v) || key.nullsEqual && isNull(v) {
				return false // no index finds IS NOT DISTINCT FROM
			}
		}
	}
	return true
}

// simple reports whether v is a value that database/sql passes on by itself, and not SQL.
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

// join writes the look for the rows of list.
func (l *look) join(list []int) {
	l.describe()
	l.write("SELECT ", valueColumn, "1")
	l.selected()
	l.write(" FROM (")
	mysql := l.Dialector.Name() == mysqlName
	if mysql {
		l.union(list)
		l.write(") AS ", valuesName, " STRAIGHT_JOIN ", l.table())
		// Else it may read, and lock, the whole of a small table.
		l.write(" FORCE INDEX (", clause.Column{Name: l.keys[0].index}, ")")
	} else {
		l.values(list)
		// SQLite keeps to the order of a CROSS JOIN.
		l.write(") AS ", valuesName, " CROSS JOIN ", l.only(), l.table())
	}
	l.write(" WHERE ")
	l.match(0)
	if mysql {
		l.write(l.reread.lock())
	}
}

// single writes a SELECT for row i, which is number n of the statement.
func (l *look) single(n, i int) {
	l.row = i
	mysql := l.Dialector.Name() == mysqlName
	if mysql {
		l.write("(")
	}
	l.write("SELECT ", strconv.Itoa(n))
	l.selected()
	l.write(" FROM ", l.only(), l.table(), " WHERE ")
	l.match(0)
	if mysql {
		l.write(l.reread.lock(), ")")
	}
}

// lock returns the lock of a SELECT on MySQL. Under REPEATABLE READ a plain SELECT
// reads an old snapshot, which may lack the row that was met. The insert has locked that
// row already: in share mode if it ignores, else for update.
func (r *reread) lock() string {
	if r.upsert.ignores {
		return " LOCK IN SHARE MODE"
	}
	return " FOR UPDATE"
}

// selected writes what [query.each] expects behind the number. There is no more than one
// bit for each of the first 62 keys. The others are looked up in any case.
func (l *look) selected() {
	l.write(",1")
	for k := 1; k < min(len(l.keys), 62); k++ {
		if l.comparable(k) {
			l.write("+CASE WHEN ")
			l.match(k)
			l.write(" THEN ", strconv.FormatInt(1<<k, 10), " ELSE 0 END")
		}
	}
	l.write(",")
	l.columns()
}

// comparable reports whether a row found by another key can be compared in keys[k].
func (l *look) comparable(k int) bool {
	key := l.keys[k]
	switch {
	case l.fields == nil:
		return l.reread.usable(l.row, key)
	case l.Dialector.Name() == mysqlName:
		return key.joins()
	default:
		return !slices.ContainsFunc(key.columns, func(c uniqueColumn) bool { return c.field == nil })
	}
}

// describe chooses the columns of the joined values.
func (l *look) describe() {
	add := func(f *schema.Field) {
		if f != nil && !slices.Contains(l.fields, f) {
			l.fields = append(l.fields, f)
		}
	}
	for k, key := range l.keys {
		for _, c := range key.columns {
			add(c.field)
		}
		for _, f := range l.tested[k] {
			add(f)
		}
	}
	l.told = make([]int, len(l.keys))
	last := 1 + len(l.fields)
	for k := range l.keys {
		if len(l.tested[k]) > 0 {
			last++
			l.told[k] = last
		}
	}
	l.width = last
}

// values writes the joined values for PostgreSQL and SQLite.
func (l *look) values(list []int) {
	l.write("SELECT ")
	for n := range l.width {
		number := strconv.Itoa(n + 1)
		l.write([...]string{"", ","}[min(n, 1)], "column", number, " AS ", valueColumn, number)
	}
	l.write(" FROM (VALUES ")
	if l.Dialector.Name() == postgresName {
		// No row, but the types of the columns. A parameter takes the type of those
		// above it. So it is bound as in the insert.
		l.write("(-1")
		for _, f := range l.fields {
			l.write(",(SELECT ", clause.Column{Name: f.DBName}, " FROM ", l.table(), " WHERE 1 = 0)")
		}
		for _, column := range l.told {
			if column > 0 {
				l.write(",0")
			}
		}
		l.write("),")
	}
	for n, i := range list {
		if n > 0 {
			l.write(",")
		}
		l.write("(")
		l.number(n)
		for _, f := range l.fields {
			l.write(",")
			l.bind(i, f)
		}
		for k, column := range l.told {
			switch {
			case column == 0:
			case l.tells(i, k):
				l.write(",1")
			default:
				l.write(",0")
			}
		}
		l.write(")")
	}
	l.write(") AS snowkey_rows")
}

// union writes the joined values for MySQL, each with the type and the collation of its
// column. MySQL and MariaDB do not agree on VALUES.
func (l *look) union(list []int) {
	casts := make([][2]string, len(l.fields))
	for at, f := range l.fields {
		before, after, _ := strings.Cut(cmp.Or(l.form(f).SQL, "?"), "?")
		casts[at] = [2]string{before, after}
	}
	for n, i := range list {
		if n > 0 {
			l.write(" UNION ALL ")
		}
		l.write("SELECT ")
		l.number(n)
		if n == 0 {
			l.write(" AS ", valueColumn, "1")
		}
		for at, f := range l.fields {
			l.write(",", casts[at][0])
			l.bind(i, f)
			l.write(casts[at][1])
			if n == 0 {
				l.write(" AS ", valueColumn, strconv.Itoa(at+2))
			}
		}
	}
}

// number writes n.
func (l *look) number(n int) { l.SQL.Write(strconv.AppendInt(make([]byte, 0, 20), int64(n), 10)) }

// form returns how f is compared.
func (l *look) form(f *schema.Field) (form dialect.Form) {
	for _, key := range l.keys {
		for _, c := range key.columns {
			if c.field == f {
				return c.form
			}
		}
	}
	return form
}

// send adds what row i sends for f, as its form takes it, to the parameters.
func (l *look) send(i int, f *schema.Field) {
	v, _ := l.reread.value(i, f)
	if form := l.form(f); form.Proves() {
		v, _ = form.Value(v)
	}
	l.AddVar(l, v)
}

// bind writes what row i sends for f, or NULL if that is not known.
func (l *look) bind(i int, f *schema.Field) {
	if !l.reread.gives(i, f) {
		l.write("NULL")
		return
	}
	l.send(i, f)
}

// value writes the value of f to compare with.
func (l *look) value(f *schema.Field) {
	if l.fields == nil {
		l.send(l.row, f)
		return
	}
	l.write(valueColumn, strconv.Itoa(2+slices.Index(l.fields, f)))
}

// match writes that the stored row equals the row of the statement in keys[k].
func (l *look) match(k int) {
	key := l.keys[k]
	for n, c := range key.columns {
		if n > 0 {
			l.write(" AND ")
		}
		l.compare(c, key.nullsEqual)
	}
	if key.where != nil && l.Dialector.Name() != mysqlName { // which has no partial unique keys
		l.within(k)
	}
}

// compare writes that a column of a unique key equals what it would store of the value.
func (l *look) compare(c uniqueColumn, nullsEqual bool) {
	column := clause.Column{Name: c.field.DBName}
	before, after, _ := strings.Cut(cmp.Or(c.form.SQL, "?"), "?")
	if l.fields != nil && c.form.Proves() {
		before, after = "", "" // see union
	}
	stored := func() {
		l.write(before)
		l.value(c.field)
		l.write(after)
	}
	if c.prefix > 0 && c.form.Proves() {
		for _, part := range c.form.Prefix {
			switch part {
			case '@':
				l.write(column)
			case '?':
				stored()
			case '#':
				l.write(strconv.Itoa(c.prefix))
			default:
				l.write(string(part))
			}
		}
		return
	}
	l.write(column)
	if nullsEqual && l.fields == nil {
		if v, _ := l.reread.value(l.row, c.field); !isSQL(v) && isNull(v) {
			l.write(" IS NULL")
			return
		}
	}
	if c.collate != "" {
		l.write(" COLLATE ", c.collate)
	}
	l.write(" = ")
	stored()
}

// within writes that a partial unique key covers the stored row and the row of the
// statement. A closed account is not the open one of the same address. To test the row
// of the statement, the query puts it in the place of the table. The columns of the table
// give its values their types. If the database fills a column that is tested, the row
// counts as covered.
func (l *look) within(k int) {
	key := l.keys[k]
	l.write(" AND (")
	key.where.Build(l.Statement)
	l.write(")")
	tested := l.tested[k]
	if len(tested) == 0 || l.fields == nil && !l.tells(l.row, k) {
		return
	}
	l.write(" AND (")
	if l.fields != nil {
		l.write(valueColumn, strconv.Itoa(l.told[k]), " = 0 OR ")
	}
	l.write("EXISTS (SELECT 1 FROM (SELECT ")
	for n, f := range tested {
		l.write([...]string{"", ","}[min(n, 1)], clause.Column{Name: f.DBName})
	}
	l.write(" FROM ", l.table(), " WHERE 1 = 0 UNION ALL SELECT ")
	for n, f := range tested {
		l.write([...]string{"", ","}[min(n, 1)])
		l.value(f)
	}
	l.write(") AS ", clause.Table{Name: l.Table}, " WHERE ")
	key.where.Build(l.Statement)
	l.write("))")
}

// tells reports whether row i has all that the condition of keys[k] tests.
func (l *look) tells(i, k int) bool {
	return !slices.ContainsFunc(l.tested[k], func(f *schema.Field) bool {
		_, named := l.reread.value(i, f)
		return !named || !l.reread.gives(i, f)
	})
}
