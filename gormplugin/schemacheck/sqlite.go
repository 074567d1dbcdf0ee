package schemacheck

import (
	"regexp"
	"strings"

	"gorm.io/gorm/clause"
)

type sqlite struct{}

func (sqlite) open(*checker, string) (*table, error)               { return nil, nil } // foreignKeys has none
func (sqlite) foreignKeys(*checker, *table) ([]*foreignKey, error) { return nil, nil }
func (sqlite) binds(*tableColumn, string) bool                     { return false }
func (sqlite) is(*tableColumn, string) bool                        { return false }

func (sqlite) statements(_ *checker, places []place, _ []*foreignKey, target string) (string, []string, error) {
	t, c := places[0].table, places[0].col
	rowid := target != t.text && t.alone(c)
	if rowid {
		target = "INTEGER PRIMARY KEY"
	}
	return anew(t, "with the column "+c.quoted+" as "+target, unfit(c, target, rowid)), nil, nil
}

func (sqlite) uncount(_ *checker, p place, _ string) (string, []string, error) {
	return anew(p.table, "without the word AUTOINCREMENT", ""), nil, nil
}

func (sqlite) expressions(c *checker, t *table) (names []string, err error) {
	space, bare := sqliteName(t.name)
	err = c.query(t.name, `SELECT l.name FROM pragma_index_list(?, ?) l
		WHERE l."unique" AND EXISTS (SELECT 1 FROM pragma_index_xinfo(l.name, ?) x WHERE x.cid = -2)`, bare, space, space).Scan(&names).Error
	return names, err
}

// sqliteName takes the name of a table apart.
func sqliteName(name string) (space, bare string) {
	space, bare, qualified := strings.Cut(name, ".")
	if !qualified {
		return "main", name
	}
	return space, bare
}

// anew returns how to change t in words, because SQLite alters no column. The steps
// are those of its documentation. bad is the condition of rows that have to be mended
// before, if there may be any.
func anew(t *table, change, bad string) string {
	space, bare := "", t.quoted
	if i := strings.LastIndex(bare, "`.`"); i >= 0 {
		space, bare = bare[:i+2], bare[i+2:]
	}
	name := bare[:len(bare)-1] + "_new`" // within the quotes
	steps := []string{
		"SQLite changes no column, so make the table anew as https://www.sqlite.org/lang_altertable.html#otheralter describes, on one connection while nothing else writes",
		"PRAGMA foreign_keys = OFF", "BEGIN IMMEDIATE",
	}
	if bad != "" {
		steps = append(steps, "stop here if SELECT * FROM "+t.quoted+" WHERE "+bad+" finds a row: its value is no key")
	}
	steps = append(steps,
		"CREATE TABLE "+space+name+" as in the sql of "+space+"sqlite_master, "+change,
		"INSERT INTO "+space+name+" every column FROM "+t.quoted)
	if t.counts {
		steps = append(steps, "take the seq of "+bare+" in sqlite_sequence over, if the new table counts")
	}
	steps = append(steps, "DROP TABLE "+t.quoted, "ALTER TABLE "+space+name+" RENAME TO "+bare)
	if len(t.beside) > 0 {
		steps = append(steps, "make anew by their sql: "+strings.Join(t.beside, ", "))
	}
	if len(t.views) > 0 {
		steps = append(steps, "PRAGMA legacy_alter_table = ON before the RENAME and OFF after it, for the views that read the table: "+strings.Join(t.views, ", "))
	}
	steps = append(steps, "PRAGMA foreign_key_check has to find nothing", "COMMIT, or ROLLBACK after any error", "PRAGMA foreign_keys = ON")
	return strings.Join(steps, "; ")
}

// unfit returns the condition of values of c that a column of type target would not
// take as they are, or "". SQLite has no error for what it cannot convert. It keeps
// the text, rounds a large number and reads 1e3 as 1000. A rowid that is NULL gets the
// next number.
func unfit(c *tableColumn, target string, rowid bool) string {
	var bad []string
	switch {
	case c.class == classText && target != "text":
		bad = append(bad, "CAST(CAST("+c.quoted+" AS integer) AS text) <> "+c.quoted+" OR "+c.quoted+" LIKE '-%'")
	case c.class == classNarrow:
		bad = append(bad, "CAST("+c.quoted+" AS integer) <> "+c.quoted+" OR abs("+c.quoted+") > 9007199254740992") // above, a float has rounded
	}
	if rowid {
		bad = append(bad, c.quoted+" IS NULL")
	}
	return strings.Join(bad, " OR ")
}

// autoincrement finds the word where SQLite reads it. It ignores comments, names
// and defaults.
var autoincrement = regexp.MustCompile(`(?i)\bPRIMARY\s+KEY\b[\s\w]*\bAUTOINCREMENT\b`)

func (sqlite) read(c *checker, name string) (*table, error) {
	space, bare := sqliteName(name)
	t := &table{name: name, id: space + "." + bare, quoted: c.db.Statement.Quote(clause.Table{Name: name}), number: "bigint", text: "text", folds: true}
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
	var kind struct {
		Type   string `gorm:"column:type"`
		Wr     int    `gorm:"column:wr"`
		Strict int    `gorm:"column:strict"`
		Beside int    `gorm:"column:beside"`
	}
	// The type of the key is not enough. INTEGER PRIMARY KEY DESC has an index as well.
	err = c.query(name, `SELECT type, wr, strict, (SELECT COUNT(*) FROM pragma_index_list(?, ?) WHERE origin = 'pk') AS beside
		FROM pragma_table_list WHERE name = ? COLLATE NOCASE AND schema = ? COLLATE NOCASE`, bare, space, bare, space).Scan(&kind).Error
	if err != nil {
		return nil, err
	}
	switch kind.Type {
	case "view":
		t.fixed = fixView
	case "virtual":
		t.fixed = "it is a virtual table: make it anew"
	}
	if kind.Strict != 0 {
		t.number = "integer" // it takes few types, and bigint is none of them
	}
	t.rowid = kind.Type == "table" && kind.Wr == 0 && kind.Beside != 0
	var made []struct {
		Type string `gorm:"column:type"`
		Name string `gorm:"column:name"`
		SQL  string `gorm:"column:sql"`
	}
	master := c.db.Statement.Quote(clause.Table{Name: space + ".sqlite_master"})
	err = c.query(name, "SELECT type, name, sql FROM "+master+" WHERE sql IS NOT NULL AND (tbl_name = ? COLLATE NOCASE OR type = 'view' AND instr(lower(sql), lower(?)) > 0) ORDER BY rowid", bare, bare).Scan(&made).Error
	if err != nil {
		return nil, err
	}
	for _, m := range made {
		quoted := c.db.Statement.Quote(clause.Column{Name: m.Name})
		switch m.Type {
		case "table":
			t.counts = autoincrement.MatchString(m.SQL)
		case "view":
			t.views = append(t.views, quoted)
		default:
			t.beside = append(t.beside, m.Type+" "+quoted)
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
		if l.Pk == 1 && t.counts {
			col.counted = "AUTOINCREMENT"
		}
		t.columns = append(t.columns, col)
	}
	return t, nil
}

// affinity returns the class of a declared type, by SQLite's own rules in their
// order. An integer of any width has 64 bits.
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
