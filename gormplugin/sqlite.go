package gormplugin

import (
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// UseRowIDs makes AutoMigrate and CreateTable declare the keys of models as
// integer on SQLite, so that the key is the rowid, by which SQLite stores a table.
// The package's key type says bigint, which elsewhere is right, but which SQLite
// keeps in an index beside the table: slower to insert and a larger file. On other
// databases it does nothing, so the same program migrates both:
//
//	models := []any{&Order{}, &Item{}}
//	err := errors.Join(gormplugin.UseRowIDs(db, models...), db.AutoMigrate(models...))
//
// A tag type:integer is no way: on PostgreSQL it means 32 bits.
//
// It concerns tables that are made from then on; AutoMigrate leaves the key of an
// existing one alone. For that, [Check] has the statements. Keys of several
// columns, of text, and those that are not of this package's kind stay as they are.
//
// It changes what db has learnt of the models. Call it with all models when the
// program starts, before they are used concurrently. The error is that of a model
// that GORM cannot parse, or gorm.ErrInvalidDB.
func UseRowIDs(db *gorm.DB, models ...any) error {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return fmt.Errorf("gormplugin: UseRowIDs: %w", gorm.ErrInvalidDB)
	}
	if db.Name() != sqliteName {
		return nil
	}
	var schemas []*schema.Schema
	for _, m := range models {
		stmt := &gorm.Statement{DB: db}
		if err := stmt.Parse(m); err != nil {
			return fmt.Errorf("gormplugin: UseRowIDs: %T: %w", m, err)
		}
		schemas = append(schemas, stmt.Schema)
	}
	// After all are parsed, because a foreign key copies the type of the key it
	// refers to, and the order of the models must not make a difference.
	for _, s := range schemas {
		for _, f := range s.PrimaryFields {
			if canBeRowID(f) && strings.EqualFold(string(f.DataType), "bigint") {
				f.DataType = "integer"
			}
		}
	}
	return nil
}

// A STRICT table takes few types, and bigint is none of them.
var onSQLite, onStrictSQLite = sqliteDialect("bigint"), sqliteDialect("integer")

func sqliteDialect(wide string) *dialect {
	return &dialect{
		wide: wide, text: "text", folds: true,
		retype: func(t *table, c *tableColumn, target string) (string, []string) {
			rowid := target == "integer" && t.alone(c)
			return rebuild(t, c, converted(c, target, rowid), func(s *sqlScript) bool {
				if rowid {
					s.remove("PRIMARY", "KEY", "DESC") // which makes it an index beside the table
				}
				return c.typ != "" && s.retype(c.name, c.typ, target)
			})
		},
		uncount: func(t *table, c *tableColumn, _ string) (string, []string) {
			return rebuild(t, c, c.quoted, func(s *sqlScript) bool { return s.remove("AUTOINCREMENT") })
		},
	}
}

// converted returns the expression with which a column is copied to one of type
// target, which may be the rowid. SQLite has no error for what it cannot convert:
// it keeps the text, rounds a large number, reads 1e3 as 1000, and gives a rowid
// that is NULL the next number. The sum overflows, and a rowid that is text is a
// mismatch; both are errors.
func converted(c *tableColumn, target string, rowid bool) string {
	value := c.quoted
	number := "CAST(" + c.quoted + " AS integer)"
	same := ""
	switch {
	case c.class == classText && target != "text":
		same = "CAST(" + number + " AS text) = " + c.quoted
	case c.class == classNarrow:
		same = number + " = " + c.quoted + " AND abs(" + c.quoted + ") <= 9007199254740992" // above, a float has rounded
	}
	if same != "" {
		value = number + " + abs(CASE WHEN " + c.quoted + " IS NULL OR " + same + " THEN 0 ELSE -9223372036854775808 END)"
	}
	if rowid {
		value = "COALESCE(" + value + ", 'NULL is no key')"
	}
	return value
}

func sqliteTable(c *checker, name string) (*table, error) {
	t := &table{dialect: onSQLite, quoted: c.db.Statement.Quote(clause.Table{Name: name})}
	space, bare, qualified := strings.Cut(name, ".")
	if !qualified {
		space, bare = "main", name
	}
	var list []struct {
		Name    string `gorm:"column:name"`
		Type    string `gorm:"column:type"`
		NotNull int    `gorm:"column:not_null"`
		Pk      int    `gorm:"column:pk"`
		Hidden  int    `gorm:"column:hidden"`
	}
	err := c.query(name, `SELECT name, type, "notnull" AS not_null, pk, hidden FROM pragma_table_xinfo(?, ?)`, bare, space).Scan(&list).Error
	if err != nil || len(list) == 0 {
		return t, err
	}
	var made []struct {
		Type string `gorm:"column:type"`
		SQL  string `gorm:"column:sql"`
	}
	master := c.db.Statement.Quote(clause.Table{Name: space + ".sqlite_master"})
	err = c.query(name, "SELECT type, sql FROM "+master+" WHERE tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL ORDER BY rowid", bare).Scan(&made).Error
	if err != nil {
		return nil, err
	}
	for _, m := range made {
		switch m.Type {
		case "table":
			t.sql = m.SQL
		case "view":
			t.fixed = fixView
		default:
			more := parseSQL(m.SQL)
			if qualified { // the name alone would be one of main
				more.qualify(c.db.Statement.Quote(clause.Table{Name: space}))
			}
			t.more = append(t.more, more.String())
		}
	}
	script := parseSQL(t.sql)
	if script.has("CREATE", "VIRTUAL", "TABLE") {
		t.fixed = "it is a virtual table: make it anew"
	}
	if script.options().has("STRICT") {
		t.dialect = onStrictSQLite
	}
	if t.sql != "" && t.fixed == "" && !script.options().has("WITHOUT", "ROWID") {
		// The type does not tell: INTEGER PRIMARY KEY DESC has an index as well.
		err = c.query(name, "SELECT COUNT(*) > 0 FROM pragma_index_list(?, ?) WHERE origin = 'pk'", bare, space).Scan(&t.rowid).Error
		if err != nil {
			return nil, err
		}
	}
	for _, l := range list {
		col := tableColumn{
			name: l.Name, quoted: c.db.Statement.Quote(clause.Column{Name: l.Name}), typ: strings.ToLower(l.Type),
			class: affinity(l.Type), notNull: l.NotNull != 0, key: l.Pk, generated: l.Hidden > 1,
		}
		if col.generated {
			col.fixed = fixGenerated
		}
		if l.Pk == 1 && script.has("AUTOINCREMENT") {
			col.counted = "AUTOINCREMENT"
		}
		t.columns = append(t.columns, col)
	}
	return t, nil
}

// affinity returns the class of a declared type, by SQLite's own rules, in their
// order. An integer of any width is one of 64 bits.
func affinity(typ string) class {
	typ = strings.ToUpper(typ)
	contains := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(typ, p) {
				return true
			}
		}
		return false
	}
	switch {
	case contains("INT"):
		return classWide
	case contains("CHAR", "CLOB", "TEXT"):
		return classText
	case typ == "" || contains("BLOB"):
		return classWide // stores what it is given
	case contains("REAL", "FLOA", "DOUBL"):
		return classNarrow
	default:
		return classWide
	}
}

// rebuild returns how to make t anew, changed by edit and with value in the place
// of c: SQLite alters no column. These are the steps that its documentation gives.
func rebuild(t *table, c *tableColumn, value string, edit func(*sqlScript) bool) (fix string, sql []string) {
	how := "rebuild the table, on one connection and outside a transaction; stop at the first error, then ROLLBACK, " +
		"PRAGMA legacy_alter_table = OFF and PRAGMA foreign_keys = ON; this leaves foreign keys switched on; " +
		"an integer overflow at pragma_foreign_keys means several connections"
	if value != c.quoted {
		how += "; at the INSERT, the errors integer overflow and datatype mismatch mean a value that is no key, such as NULL"
	}
	script := parseSQL(t.sql)
	body := script.find(0, func(token string) bool { return token == "(" })
	if body < 0 || !edit(script) {
		return how, nil
	}
	name := t.quoted[:len(t.quoted)-1] + "__new" + t.quoted[len(t.quoted)-1:] // within the quotes
	space, bare := "", t.quoted
	if i := strings.LastIndex(bare, "`.`"); i >= 0 {
		space, bare = bare[:i+2], bare[i+2:]
	}
	var names, values []string
	for i := range t.columns {
		other := &t.columns[i]
		if other.generated {
			continue
		}
		names = append(names, other.quoted)
		if other.name == c.name {
			values = append(values, value)
		} else {
			values = append(values, other.quoted)
		}
	}
	list := []string{
		"PRAGMA foreign_keys = OFF",
		"PRAGMA legacy_alter_table = ON", // or a view of the table stops the rename
		"BEGIN IMMEDIATE",
		// An integer overflow if they are on, because all this runs on several
		// connections: DROP TABLE would delete the rows that refer to the table.
		"SELECT abs(foreign_keys * -9223372036854775808) FROM pragma_foreign_keys",
		"CREATE TABLE " + name + " " + strings.Join(script.tokens[body:], ""),
		"INSERT INTO " + name + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(values, ", ") + " FROM " + t.quoted,
	}
	if script.has("AUTOINCREMENT") {
		// It counts on from the largest key that there ever was, not from the largest
		// that is left. The rename takes the row along.
		list = append(list,
			"DELETE FROM "+space+"sqlite_sequence WHERE name = "+quoteText(unquote(bare)+"__new"),
			"UPDATE "+space+"sqlite_sequence SET name = "+quoteText(unquote(bare)+"__new")+" WHERE name = "+quoteText(unquote(bare))+" COLLATE NOCASE")
	}
	list = append(list, "DROP TABLE "+t.quoted, "ALTER TABLE "+name+" RENAME TO "+bare)
	list = append(list, t.more...)
	return how, append(list, "COMMIT", "PRAGMA legacy_alter_table = OFF", "PRAGMA foreign_keys = ON")
}

func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// has reports whether words follow one another, outside of quotes and comments.
func (s *sqlScript) has(words ...string) bool { return s.seek(words...) >= 0 }

// remove takes out the last of words where they follow one another.
func (s *sqlScript) remove(words ...string) bool {
	i := s.seek(words...)
	if i >= 0 {
		s.tokens[i] = ""
	}
	return i >= 0
}

// options returns what follows the columns of a table.
func (s *sqlScript) options() *sqlScript {
	for i, token := range slices.Backward(s.tokens) {
		if token == ")" {
			return &sqlScript{s.tokens[i+1:]}
		}
	}
	return s
}

// qualify puts the index or trigger that s makes into the schema space.
func (s *sqlScript) qualify(space string) {
	i := s.find(0, func(token string) bool {
		return strings.EqualFold(token, "INDEX") || strings.EqualFold(token, "TRIGGER")
	})
	if i < 0 {
		return
	}
	if i = s.find(i+1, func(token string) bool { return !blank(token) }); i >= 0 {
		s.tokens[i] = space + "." + s.tokens[i]
	}
}

// retype replaces the type of a column, which is declared as from.
func (s *sqlScript) retype(column, from, to string) bool {
	depth, start := 0, false
	for i, token := range s.tokens {
		switch {
		case blank(token):
			continue
		case token == "(":
			depth++
			start = depth == 1
			continue
		case token == ")":
			depth--
		case token == "," && depth == 1:
			start = true
			continue
		case start && strings.EqualFold(unquote(token), column):
			return s.replace(i+1, from, to)
		}
		start = false
	}
	return false
}

// replace puts to in the place of the tokens from i on that make up from, spaces
// apart.
func (s *sqlScript) replace(i int, from, to string) bool {
	rest := strings.Join(strings.Fields(from), "")
	for first := true; rest != ""; i++ {
		if i >= len(s.tokens) {
			return false
		}
		token := s.tokens[i]
		if blank(token) {
			continue
		}
		if len(token) > len(rest) || !strings.EqualFold(rest[:len(token)], token) {
			return false
		}
		rest = rest[len(token):]
		s.tokens[i] = ""
		if first {
			s.tokens[i], first = to, false
		}
	}
	return true
}
