package readback

import (
	"database/sql"
	"regexp"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A Key is a unique key: columns in which no two rows of the table are equal.
type Key struct {
	Name    string
	Columns []Column
	Where   func(t *Text) // writes the condition for the rows that it covers; nil: all
	// Hidden reports that the columns do not tell which rows conflict, as in an index on an
	// expression. The row that conflicts with it cannot be found.
	Hidden bool

	index      string // the name of the index, if a look has to force it
	nullsEqual bool   // NULL equals NULL: NULLS NOT DISTINCT of PostgreSQL
	exact      bool   // a look finds only rows with the very values that are sent
}

// A Column is one of a Key.
type Column struct {
	Name    string
	Collate string // the collation to compare by, as SQL, if not the column's own
	Prefix  int    // how many characters are compared; 0: all

	typ      string // as the catalog writes it; "" if the catalog was not asked
	form     dialect.Form
	verbatim verbatim
}

// KeyOf returns the unique key of columns, for all rows.
func KeyOf(names ...string) Key {
	var key Key
	for _, name := range names {
		key.Columns = append(key.Columns, Column{Name: name})
	}
	return key
}

// covers reports whether key consists of the columns called names, in any order.
func (f *finder) covers(key *Key, names []string) bool {
	return !key.Hidden && len(key.Columns) == len(names) && !slices.ContainsFunc(key.Columns, func(c Column) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return f.d.same(name, c.Name) })
	})
}

// primary returns the primary key, with what is known of its columns.
func (f *finder) primary() Key {
	if f.listed != nil {
		for _, key := range f.listed.keys {
			if key.Where == nil && f.covers(&key, f.Primary) {
				return key
			}
		}
	}
	return KeyOf(f.Primary...)
}

// targets returns the unique keys that the target stands for, as the catalog has them, or a hidden
// one alone. The columns of a target stand for all unique keys of these columns, and with a
// condition also for partial ones. A row that met a stored one in a key for which the target does
// not stand would have been an error.
//
// rest are further keys, for rows that equal no stored one in keys.
func (f *finder) targets() (keys, rest []Key) {
	if f.Target.Hidden {
		return []Key{*f.Target}, nil
	}
	names := f.Target.names()
	var partial []Key
	for _, key := range f.listed.keys {
		switch {
		case names == nil && key.Name == f.Target.Name:
			keys = append(keys, key)
		case names == nil || !f.covers(&key, names):
		case key.Where == nil:
			keys = append(keys, key)
		case f.Target.Where != nil:
			partial = append(partial, key)
		}
	}
	// Of several partial ones it stands for those whose conditions follow from its own, which only
	// the database can tell. A row that fulfils the target's condition has met one that does too.
	// The others equal no stored row in any of them, except one that they have met.
	if len(partial) > 1 {
		own := partial
		partial = []Key{partial[0]}
		partial[0].Where = f.Target.Where
		return append(keys, partial...), own
	}
	if keys = append(keys, partial...); len(keys) == 0 {
		return []Key{{Hidden: true}}, nil
	}
	return keys, nil
}

func (k *Key) names() (names []string) {
	for _, c := range k.Columns {
		names = append(names, c.Name)
	}
	return names
}

// A table is what the catalog says of the table of an upsert.
type table struct {
	keys []Key // with the primary key
	// nulls are the columns that are NULL in a row whose INSERT does not name them: they have no
	// default, and are neither generated nor set by a trigger. Those of partitions are not known,
	// which have triggers of their own.
	nulls []string
	// alone reports that an upsert meets only rows of the table itself, and a SELECT would read
	// the tables that inherit from it as well. The rows of a partitioned table are in its
	// partitions.
	alone bool
	// tidb reports that the server is TiDB, which has no shared locks on rows.
	tidb bool
}

// A TableName is the name of a table.
type TableName struct {
	Quoted       string // as SQL
	Schema, Name string
}

// TableNameOf returns the name at the beginning of a text.
func TableNameOf(text string) TableName {
	tokens := Tokens(text)
	if i := slices.IndexFunc(tokens, func(token string) bool { return strings.TrimSpace(token) == "" }); i >= 0 {
		tokens = tokens[:i] // an alias follows
	}
	t := TableName{Quoted: strings.Join(tokens, ""), Name: unquote(tokens[len(tokens)-1])}
	if len(tokens) > 2 {
		t.Schema = unquote(tokens[len(tokens)-3])
	}
	return t
}

// Hides reports whether the user may not see all rows of the table of s. An error means no.
func Hides(s *Statement) (hides bool) {
	f := &finder{Statement: s, d: databaseOf(s.Dialect)}
	if f.d.hides == "" {
		return false
	}
	t := f.text()
	t.write(f.d.hides)
	t.Args = f.d.args(TableNameOf(s.Table))
	err := f.Query(t, func(rows *sql.Rows) error { return rows.Scan(&hides) })
	return hides && err == nil
}

// UniqueKeys returns how many unique keys the table of s has.
func UniqueKeys(s *Statement) (int, error) {
	f := &finder{Statement: s, d: databaseOf(s.Dialect)}
	if err := f.catalog(); err != nil {
		return 0, err
	}
	return len(f.listed.keys), nil
}

// catalog reads what the catalog says of the table. A table that it does not list, such as a view,
// has the unique keys that are declared.
func (f *finder) catalog() error {
	if f.listed != nil {
		return nil
	}
	name, t := TableNameOf(f.Table), &table{}
	// Where the target is not what rows are met by, the upsert itself has made sure that they are.
	if f.d.uniques != "" && !(dialect.TraitsOf(f.Dialect).OnDuplicateKey && f.Target != nil) {
		if err := f.readKeys(name, t); err != nil {
			return err
		}
	}
	listed := len(t.keys) > 0
	if !listed {
		for _, key := range f.Declared {
			key.Columns = slices.Clone(key.Columns)
			t.keys = append(t.keys, key)
		}
	}
	lacks := func(names []string, partial bool) bool {
		return len(names) > 0 && !slices.ContainsFunc(t.keys, func(key Key) bool { return (partial || key.Where == nil) && f.covers(&key, names) })
	}
	if lacks(f.Primary, false) { // that of SQLite may be the rowid, which is not an index
		t.keys = append([]Key{KeyOf(f.Primary...)}, t.keys...)
	}
	if f.Target != nil && lacks(f.Target.names(), f.Target.Where != nil) {
		key := KeyOf(f.Target.names()...)
		key.Where, listed = f.Target.Where, false
		t.keys = append([]Key{key}, t.keys...)
	}
	f.listed = t
	if !listed && f.d.describe != nil {
		return f.describe(name, t.keys)
	}
	return nil
}

// readKeys asks the catalog for the unique keys of a table, see database.uniques.
func (f *finder) readKeys(name TableName, t *table) error {
	q := f.text()
	q.write(f.d.uniques)
	q.Args = f.d.args(name)
	return f.Query(q, func(found *sql.Rows) error {
		var index, where, nulls string
		var c Column
		var notNull, hidden, nullsEqual bool
		if err := found.Scan(&index, &c.Name, &c.Collate, &c.Prefix, &c.typ, &where, &notNull, &hidden, &nullsEqual, &nulls, &t.alone, &t.tidb); err != nil {
			return err
		}
		if t.nulls == nil {
			for _, name := range Tokens(nulls) {
				if name = f.columnNamed(unquote(name)); slices.Contains(f.Names, name) {
					t.nulls = append(t.nulls, name)
				}
			}
		}
		c.Name = f.columnNamed(c.Name)
		if n := len(t.keys); n == 0 || t.keys[n-1].Name != index {
			t.keys = append(t.keys, Key{Name: index})
		}
		key := &t.keys[len(t.keys)-1]
		key.Hidden, key.nullsEqual = key.Hidden || hidden, nullsEqual
		if where != "" && f.d.condition != nil {
			where = f.d.condition(where)
		}
		if where != "" {
			key.Where = func(t *Text) { t.write(where) }
		}
		c.form = dialect.FormOf(f.Dialect, c.typ, c.Collate)
		c.form.NotNull = notNull
		if f.d.stores != nil {
			c.verbatim = f.d.stores(&c)
		}
		if f.d.forcesIndex {
			key.index, c.Collate = index, "" // the form compares by the collation
		}
		key.Columns = append(key.Columns, c)
		return nil
	})
}

// columnNamed returns a name of the catalog as the rows know it, where case is ignored. Whatever
// compares names after this may therefore take equal ones alone for the same.
func (f *finder) columnNamed(name string) string {
	if i := slices.IndexFunc(f.Names, func(other string) bool { return f.d.same(name, other) }); i >= 0 {
		return f.Names[i]
	}
	return name
}

// describe adds the types of the columns to keys. The database's answer has a row for each column:
// name, type, collation, "NO" if it is NOT NULL, and others.
func (f *finder) describe(name TableName, keys []Key) error {
	q := f.text()
	f.d.describe(q, name)
	return f.Query(q, func(found *sql.Rows) error {
		names, err := found.Columns()
		if err != nil {
			return err
		}
		var column, typ, null string
		var collation sql.NullString
		into := []any{&column, &typ, &collation, &null}
		for range names[len(into):] {
			into = append(into, new(any))
		}
		if err := found.Scan(into...); err != nil {
			return err
		}
		for _, key := range keys {
			for n := range key.Columns {
				if c := &key.Columns[n]; c.typ == "" && f.d.same(c.Name, column) {
					c.typ, c.form = typ, dialect.FormOf(f.Dialect, typ, collation.String)
					c.form.NotNull = null == "NO"
				}
			}
		}
		return nil
	})
}

// token matches a quoted name or string, a comment, white space, a word, or any other character.
// The tokens of a statement, put together, are the statement. A doubled quote is part of the name,
// and a quote that is never closed ends with the statement.
var token = regexp.MustCompile(`(?s)"(?:[^"]|"")*"?|'(?:[^']|'')*'?|` + "`(?:[^`]|``)*`?" +
	`|\[[^\]]*\]?|--[^\n]*\n?|/\*.*?(?:\*/|$)|\s+|[\w$\x{80}-\x{10ffff}]+|.`)

// Tokens returns the tokens of a text of SQL.
func Tokens(text string) []string { return token.FindAllString(text, -1) }

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
