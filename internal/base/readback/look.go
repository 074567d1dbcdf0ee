package readback

import (
	"cmp"
	"database/sql"
	"database/sql/driver"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// How many rows one statement looks up: by key, and by a SELECT each, divided by the columns of the
// unique key. Old versions of SQLite accept 999 parameters and 500 parts of a UNION.
const (
	KeysPerQuery = 900
	rowsPerUnion = 128
)

// FewSizes returns the power of two, at most most, to which n values are filled up. It keeps the
// number of texts small, each of which pgx keeps prepared on the server.
func FewSizes(n, most int) int { return min(1<<bits.Len(uint(n-1)), most) }

// A Text is a SELECT that is being written.
type Text struct {
	strings.Builder
	Args []any

	s *Statement
}

func (f *finder) text() *Text { return &Text{s: f.Statement} }

func (t *Text) write(parts ...string) {
	for _, part := range parts {
		t.WriteString(part)
	}
}

func (t *Text) number(n int) { t.Write(strconv.AppendInt(make([]byte, 0, 20), int64(n), 10)) }

func (t *Text) name(name string) { t.WriteString(t.s.Quote(name)) }

func (t *Text) bind(v any) {
	if t.s.Bind != nil {
		t.s.Bind(t, v)
		return
	}
	t.Args = append(t.Args, v)
	t.WriteString(t.s.Dialect.Placeholder(len(t.Args)))
}

// columns writes the columns to be read.
func (t *Text) columns(d *database) {
	for n, name := range t.s.Columns {
		t.write([...]string{"", ", "}[min(n, 1)])
		t.result(d, name, "text") // which a key is read from as from a number
	}
}

// result writes a column of the result. Where results are cast, it has the type typ even after the
// column has got another type. PostgreSQL would refuse the query if it was prepared before: "cached
// plan must not change result type".
func (t *Text) result(d *database, name, typ string) {
	if d.castsResult {
		t.write("CAST(", t.s.Quote(name), " AS ", typ, ")")
	} else {
		t.name(name)
	}
}

// A foundFunc receives a stored row that equals row i of the statement: the columns that are read,
// followed by the key, and a bit for each unique key in which the two are equal.
type foundFunc func(i int, stored []any, same uint64)

// each runs a query and calls found for each row. The query returns the index of a row in list, the
// bits for found, or 0 in a look by key, and the columns.
func (f *finder) each(t *Text, list []int, found foundFunc) error {
	var n, same int64
	values, into := make([]any, len(f.Columns)), []any{&n, &same}
	for c := range values {
		into = append(into, &values[c])
	}
	return f.Query(t, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		stored, err := f.keep(values)
		switch {
		case err == nil:
			found(list[min(int(n), len(list)-1)], stored, uint64(same))
		case same == 0:
			return nil // a text such as "01010", which MySQL finds by the number, is none of the keys
		}
		return err
	})
}

// keep returns a stored row for foundFunc.
func (f *finder) keep(values []any) (stored []any, err error) {
	key, err := f.Key(values[0])
	return slices.Concat(values, []any{key}), err
}

// only returns what stands before the table in a look for rows that the upsert met.
func (f *finder) only() string {
	if f.listed != nil && f.listed.alone && f.d.inherits {
		return "ONLY "
	}
	return ""
}

// byKey finds the rows of list that are stored under the key with which they were sent, and returns
// the others. A trigger may have stored a row under a fresh key in another table, such as one that
// inherits.
func (f *finder) byKey(list []int) (rest []int, err error) {
	only := ""
	if slices.ContainsFunc(list, func(i int) bool { return !f.fresh[i] }) {
		if f.d.inherits {
			if err := f.catalog(); err != nil {
				return nil, err
			}
		}
		only = f.only()
	}
	keys := make([]any, len(list))
	for n, i := range list {
		keys[n] = f.keys[i]
	}
	keys = sorted(keys)
	stored := make(map[any][]any, len(list))
	ask := func(condition func(t *Text)) error {
		t := f.text()
		t.write("SELECT 0, 0, ")
		t.columns(f.d)
		t.write(" FROM ", only, f.Table, " WHERE ", f.Quote(f.Columns[0]))
		condition(t)
		return f.each(t, list, func(_ int, found []any, _ uint64) { stored[f.key(found)] = found })
	}
	if runs := runsOf(keys); runs != nil {
		if err := ask(func(t *Text) { t.inRuns(runs) }); err != nil {
			return nil, err
		}
		keys = nil
	}
	for chunk := range slices.Chunk(keys, KeysPerQuery) {
		err := ask(func(t *Text) {
			t.write(" IN (")
			for n := range FewSizes(len(chunk), KeysPerQuery) {
				t.write([...]string{"", ", "}[min(n, 1)])
				t.bind(chunk[min(n, len(chunk)-1)])
			}
			t.write(")")
		})
		if err != nil {
			return nil, err
		}
	}
	for _, i := range list {
		found, ok := stored[f.keys[i]]
		if !ok {
			rest = append(rest, i)
			continue
		}
		f.found[i] = f.foundOf(found)
		if f.fresh[i] && !f.Replaces { // a row that replaces is the later one
			f.inserted[f.keys[i]] = i
		}
	}
	return rest, nil
}

// sorted returns keys, all of one type, in order, for the index and for readers of logs, and each once.
func sorted(keys []any) []any {
	slices.SortFunc(keys, func(a, b any) int {
		if a, number := a.(int64); number {
			return cmp.Compare(a, b.(int64))
		}
		return cmp.Compare(a.(string), b.(string))
	})
	return slices.Compact(keys)
}

// A run is the ends of a sequence of keys without a gap.
type run struct{ first, last int64 }

// How many keys runs have on average, at least, to be used in place of a list, and how many runs a
// query has. SQLite accepts conditions to a depth of 1,000.
const (
	runLength = 10
	maxRuns   = 100
)

// runsOf returns sorted keys as runs, or nil if they are texts or form too many. Fresh keys follow
// each other, at least within a tick of the clock, and the ends of a run cost a fraction of a list of
// its keys. Of 10,000 rows without runs, the upsert of new ones takes 1.4 to 1.7 times the CPU time of
// bare GORM on MariaDB, and of which half are stored 2.0 to 2.2 times; with runs 1.2, and 1.2 to 1.5.
//
// A run has no gap, because its query would otherwise meet, and under SERIALIZABLE wait for, rows
// that others are inserting. Its keys are above zero and have the same number of digits, which makes
// the condition right in a column of text too.
func runsOf(keys []any) (runs []run) {
	if len(keys) < manyRows {
		return nil
	}
	for _, key := range keys {
		key, number := key.(int64)
		if !number {
			return nil
		}
		if n := len(runs) - 1; n >= 0 && key == runs[n].last+1 {
			runs[n].last = key
			continue
		}
		if len(runs) == min(len(keys)/runLength, maxRuns) {
			return nil
		}
		runs = append(runs, run{key, key})
	}
	if first, last := strconv.FormatInt(runs[0].first, 10), strconv.FormatInt(runs[len(runs)-1].last, 10); runs[0].first < 1 || len(first) != len(last) {
		return nil
	}
	return runs
}

// inRuns writes the condition that the key is in one of runs.
func (t *Text) inRuns(runs []run) {
	for n, run := range runs {
		if n > 0 {
			t.write(" OR ", t.s.Quote(t.s.Columns[0]))
		}
		t.write(" BETWEEN ")
		t.bind(run.first)
		t.write(" AND ")
		t.bind(run.last)
	}
}

// look calls found for each stored row that equals a row of list in the first of keys. It lists the
// values where that key stores them unchanged, and uses a SELECT for each of the other rows.
func (f *finder) look(list []int, keys []Key, found foundFunc) (err error) {
	if list, err = f.byList(list, keys, found); err != nil || len(list) == 0 {
		return err
	}
	l := &look{f: f, keys: keys, tested: f.testedBy(keys)}
	most := max(1, rowsPerUnion/len(keys[0].Columns))
	for chunk := range slices.Chunk(list, most) {
		l.Text = f.text()
		for n := range FewSizes(len(chunk), most) {
			if n > 0 {
				l.write(" UNION ALL ")
			}
			l.row = chunk[min(n, len(chunk)-1)] // asking for the last one again does no harm
			l.single(n)
		}
		if err := f.each(l.Text, chunk, found); err != nil {
			return err
		}
	}
	return nil
}

// A look compares the table with the values of rows, by a SELECT for each.
type look struct {
	*Text
	f      *finder
	keys   []Key      // the one to look by, and others in which the rows found are compared
	tested [][]string // for each of keys, the columns that its condition names
	row    int        // whose values are compared
}

// testedBy returns the columns that the conditions of keys name.
func (f *finder) testedBy(keys []Key) [][]string {
	tested := make([][]string, len(keys))
	for k, key := range keys {
		if key.Where == nil {
			continue
		}
		t := f.text()
		key.Where(t)
		tokens := Tokens(t.String())
		for _, name := range f.Names {
			if slices.ContainsFunc(tokens, func(token string) bool { return strings.EqualFold(unquote(token), name) }) {
				tested[k] = append(tested[k], name)
			}
		}
	}
	return tested
}

// single writes a SELECT for a row, which is number n of the statement.
func (l *look) single(n int) {
	lock := l.f.lock()
	if lock != "" {
		l.write("(")
	}
	l.write("SELECT ")
	l.number(n)
	l.selected()
	l.write(" FROM ", l.f.only(), l.f.Table, " WHERE ")
	l.match(0)
	if lock != "" {
		l.write(lock, ")")
	}
}

// lock returns the lock that a look takes on MySQL, where a plain SELECT under REPEATABLE READ
// reads an old snapshot, which may lack the row that the upsert met. The upsert has locked that row
// already: in share mode if it ignores, and for update otherwise. TiDB refuses LOCK IN SHARE MODE,
// or reads an old snapshot if it is told to take that for a comment. A look by key takes none,
// because that would lock the gap where a key that is not stored would be.
func (f *finder) lock() string {
	switch {
	case !f.d.locks:
		return ""
	case f.Ignores && !(f.listed != nil && f.listed.tidb):
		return " LOCK IN SHARE MODE"
	default:
		return " FOR UPDATE"
	}
}

// selected writes the columns that [finder.each] expects after the number. There are bits for the
// first 62 keys; rows are always looked up by the others.
func (l *look) selected() {
	l.write(", 1")
	for k := 1; k < min(len(l.keys), 62); k++ {
		if l.f.usable(l.row, &l.keys[k]) {
			l.write(" + CASE WHEN ")
			l.match(k)
			l.write(" THEN ", strconv.FormatInt(1<<k, 10), " ELSE 0 END")
		}
	}
	l.write(", ")
	l.columns(l.f.d)
}

// match writes the condition that the stored row equals the row of the statement in keys[k].
func (l *look) match(k int) {
	key := &l.keys[k]
	for n := range key.Columns {
		if n > 0 {
			l.write(" AND ")
		}
		l.compare(&key.Columns[n], key)
	}
	if key.Where != nil {
		l.within(k)
	}
}

// compare writes the condition that a column of a unique key equals what it would store of the
// value.
func (l *look) compare(c *Column, key *Key) {
	v, known := l.f.value(l.row, c.Name)
	null := known == Sent && isNull(v)
	if c.form.Proves() {
		v, _ = c.form.Value(v)
	}
	before, after, _ := strings.Cut(cmp.Or(c.form.SQL, "?"), "?")
	condition := "@ = ?"
	switch {
	case key.exact:
		condition = l.f.d.exact
	case c.Prefix > 0 && c.form.Proves():
		condition = c.form.Prefix
	case key.nullsEqual && null:
		condition = "@ IS NULL"
	case c.Collate != "":
		condition = "@ COLLATE " + c.Collate + " = ?"
	}
	for _, part := range condition {
		switch part {
		case '@':
			l.name(c.Name)
		case '?':
			l.write(before)
			l.bind(v)
			l.write(after)
		case '#':
			l.number(c.Prefix)
		default:
			l.WriteRune(part)
		}
	}
}

// within writes the condition that a partial unique key covers the stored row and the row of the
// statement: a closed account does not conflict with the open one of the same address. To test the
// row of the statement, the query evaluates the key's condition over a subquery that has the name
// of the table, and the types of its columns. A row whose tested columns the database fills counts
// as covered.
func (l *look) within(k int) {
	key, tested := &l.keys[k], l.tested[k]
	l.write(" AND (")
	key.Where(l.Text)
	l.write(")")
	if len(tested) == 0 || !l.f.canTest(l.row, tested) {
		return
	}
	l.write(" AND EXISTS (SELECT 1 FROM (SELECT ")
	for n, name := range tested {
		l.write([...]string{"", ", "}[min(n, 1)])
		l.name(name)
	}
	l.write(" FROM ", l.f.Table, " WHERE 1 = 0 UNION ALL SELECT ")
	for n, name := range tested {
		l.write([...]string{"", ", "}[min(n, 1)])
		v, _ := l.f.value(l.row, name)
		l.bind(v)
	}
	l.write(") AS ", l.f.Quote(TableNameOf(l.f.Table).Name), " WHERE ")
	key.Where(l.Text)
	l.write(")")
}

// canTest reports whether row i has all values that a condition tests.
func (f *finder) canTest(i int, tested []string) bool {
	return !slices.ContainsFunc(tested, func(name string) bool {
		_, known := f.value(i, name)
		return known == Nothing
	})
}

// converted returns v as database/sql sends it. It reports false if only the driver can.
func converted(v any) (any, bool) {
	sent, err := driver.DefaultParameterConverter.ConvertValue(v)
	return sent, err == nil
}
