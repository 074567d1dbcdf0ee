package readback

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// rowsPerJoin is how many rows one statement joins with the table.
const rowsPerJoin = 1000

// byJoin is look for the rows of list that a join of their values with the table compares as the
// upsert did. It returns the other rows. For 10,000 rows with a unique key of two columns, SELECTs
// alone take 3 to 10 times as long as the upsert without a look, and joins 2 to 3 times.
func (f *finder) byJoin(rows []int, keys []Key, found foundFunc) (rest []int, err error) {
	if len(rows) < 2 || f.d.joined == nil {
		return rows, nil
	}
	tested := f.testedBy(keys)
	var together []int
	for _, i := range rows {
		if f.joins(i, keys, tested) {
			together = append(together, i)
		} else {
			rest = append(rest, i)
		}
	}
	for chunk := range slices.Chunk(together, rowsPerJoin) {
		l := &look{Text: f.text(), f: f, keys: keys, tested: tested}
		l.together(chunk)
		switch err := f.each(l.Text, chunk, found); {
		case dialect.NoIndex(err): // the index is invisible, or ignored
			rest = append(rest, chunk...)
		case err != nil:
			return nil, err
		}
	}
	return rest, nil
}

// joins reports whether a join compares row i as its insert did, for which a joined value must have
// the type of its column. Values that are SQL, or that only the driver converts, are not joined,
// nor are rows whose columns in the condition of a key the database fills.
func (f *finder) joins(i int, keys []Key, tested [][]string) bool {
	if !f.joinable(&keys[0]) || f.d.forcesIndex && keys[0].index == "" {
		return false
	}
	for k := range keys {
		key := &keys[k]
		if !f.canTest(i, tested[k]) {
			return false
		}
		for _, c := range key.Columns {
			v, known := f.value(i, c.Name)
			switch _, ok := converted(v); {
			case known == Nothing:
			case f.listed.tidb && strings.Contains(c.typ, "binary"):
				return false // it has found rows whose values are only the beginning of those joined
			case known == SQL, !ok, key.nullsEqual && isNull(v): // no index finds IS NOT DISTINCT FROM
				return false
			}
		}
	}
	return true
}

// joinable reports whether the rows of a join find their stored rows by the index of key.
func (f *finder) joinable(key *Key) bool {
	return !key.exact && !(f.d.forcesIndex && slices.ContainsFunc(key.Columns, func(c Column) bool { return !c.form.Joins || c.Prefix > 0 }))
}

// together writes a look for rows by a join.
func (l *look) together(rows []int) {
	l.joined = rows
	l.fields = []string{}
	for k, key := range l.keys {
		for _, name := range append(key.names(), l.tested[k]...) {
			if l.f.isColumn(name) && !slices.Contains(l.fields, name) {
				l.fields = append(l.fields, name)
			}
		}
	}
	l.write("SELECT ", valueColumn, "1")
	l.selected()
	l.write(" FROM (")
	l.f.d.joined(l)
	l.write(" WHERE ")
	l.match(0)
	l.write(l.f.lock())
}

// isColumn reports whether rows may have values for a column.
func (f *finder) isColumn(name string) bool { return slices.Contains(f.Names, name) }

// values writes the rows as VALUES, after those that head writes, and the table to join them with.
// SQLite keeps to the order of a CROSS JOIN.
func (l *look) values(head func()) {
	l.write("SELECT ")
	for n := range 1 + len(l.fields) {
		number := strconv.Itoa(n + 1)
		l.write([...]string{"", ", "}[min(n, 1)], "column", number, " AS ", valueColumn, number)
	}
	l.write(" FROM (VALUES ")
	if head != nil {
		head()
	}
	for n, i := range l.joined {
		if n > 0 {
			l.write(", ")
		}
		l.write("(")
		l.number(n)
		for _, name := range l.fields {
			l.write(", ")
			l.bindField(i, name)
		}
		l.write(")")
	}
	l.write(") AS snowkey_rows) AS ", valuesName, " CROSS JOIN ", l.f.only(), l.f.Table)
}

// bindField writes what row i sends for a column, or NULL if that is not known.
func (l *look) bindField(i int, name string) {
	v, known := l.f.value(i, name)
	if known == Nothing {
		l.write("NULL")
		return
	}
	if form := l.formOf(name); form.Proves() {
		v, _ = form.Value(v)
	}
	l.bind(v)
}

// formOf returns how a column is compared.
func (l *look) formOf(name string) (form dialect.Form) {
	for _, key := range l.keys {
		for _, c := range key.Columns {
			if c.Name == name {
				return c.form
			}
		}
	}
	return form
}

// castOf returns what a form writes before and after a value.
func castOf(form dialect.Form) (before, after string) {
	before, after, _ = strings.Cut(cmp.Or(form.SQL, "?"), "?")
	return before, after
}
