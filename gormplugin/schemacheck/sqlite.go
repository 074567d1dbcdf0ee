package schemacheck

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

var sqlite = database{
	number: "bigint", text: "text", folds: true, space: "main",
	// The type of the key does not say whether it is the rowid. INTEGER PRIMARY KEY DESC
	// has an index as well.
	table: `SELECT schema || '.' || name AS id, type AS kind, strict,
		type = 'table' AND NOT wr AND EXISTS (SELECT 1 FROM pragma_index_list(@name, @space) WHERE origin = 'pk') AS row_id
		FROM pragma_table_list
		WHERE name = @name COLLATE NOCASE AND schema = @space COLLATE NOCASE`,
	columns: `SELECT name, lower(type) AS type, hidden > 1 AS is_generated, pk AS primary_key
		FROM pragma_table_xinfo(@name, @space)`,
	expressions: `SELECT l.name FROM pragma_index_list(@name, @space) l
		WHERE l."unique" AND EXISTS (SELECT 1 FROM pragma_index_xinfo(l.name, @space) x WHERE x.cid = -2)`,
	class: affinity,
	complete: func(c *checker, t *table) error {
		var made string
		err := c.ask(t, "SELECT sql FROM "+c.beside(t, "sqlite_master")+" WHERE type = 'table' AND name = @name COLLATE NOCASE").Scan(&made).Error
		for i := range t.columns {
			if t.columns[i].Key == 1 && autoincrement.MatchString(made) {
				t.columns[i].Counter = "AUTOINCREMENT"
			}
		}
		return err
	},
	binds: func(*tableColumn, string) bool { return false }, // nothing changes but in words
	statements: func(c *checker, changes []typeChange, _ []foreignKey, target string) (string, []string, error) {
		t, col := changes[0].table, changes[0].col
		rowid := target != t.text && t.alone(col)
		if rowid {
			target = "INTEGER PRIMARY KEY"
		}
		fix, err := rebuild(c, t, "with the column "+col.quoted+" as "+target, unfit(col, target, rowid))
		return fix, nil, err
	},
	uncount: sqliteUncount,
}

// autoincrement finds the word where SQLite reads it. It ignores comments, names
// and defaults.
var autoincrement = regexp.MustCompile(`(?i)\bPRIMARY\s+KEY\b[\s\w]*\bAUTOINCREMENT\b`)

// sqliteUncount sets the counter to its end, at which SQLite refuses a row without a key
// and accepts any key that is given. Removing the word AUTOINCREMENT would not help, since
// the table would then count from its largest key.
func sqliteUncount(c *checker, p place, _ string) (string, []string, error) {
	var last []int64 // none, if no row was stored yet
	counters := c.beside(p.table, "sqlite_sequence")
	if err := c.ask(p.table, "SELECT seq FROM "+counters+" WHERE name = @name COLLATE NOCASE").Scan(&last).Error; err != nil {
		return "", nil, err
	}
	if slices.Contains(last, math.MaxInt64) {
		return "", nil, nil
	}
	_, name, _ := strings.Cut(p.ID, ".")
	name = "'" + strings.ReplaceAll(name, "'", "''") + "'"
	const fix = "set the counter to the end, so that a row without a key is SQLITE_FULL, database or disk is full; a rebuild of the table, as by AutoMigrate, starts it again"
	if len(last) == 0 {
		return fix, []string{fmt.Sprintf("INSERT INTO %s (name, seq) VALUES (%s, %d)", counters, name, int64(math.MaxInt64))}, nil
	}
	return fix, []string{fmt.Sprintf("UPDATE %s SET seq = %d WHERE name = %s", counters, int64(math.MaxInt64), name)}, nil
}

// affinity returns the class of a declared type, by SQLite's own rules in their order. An
// integer of any width has 64 bits, and a length means nothing.
func affinity(typ string) (class, int) {
	for _, rule := range []struct {
		parts string
		class class
	}{
		{"int", classWide}, {"char|clob|text", classText}, {"blob", classWide}, {"real|floa|doubl", classNarrow},
	} {
		for part := range strings.SplitSeq(rule.parts, "|") {
			if strings.Contains(typ, part) {
				return rule.class, 0
			}
		}
	}
	return classWide, 0 // stores what it is given
}

// beside returns a table of SQLite's own in the schema of t.
func (c *checker) beside(t *table, name string) string {
	space, _, _ := strings.Cut(t.ID, ".")
	return c.quoteTable(space + "." + name)
}

// rebuild returns in words how to change t, with the steps of the documentation of SQLite,
// which cannot alter a column. bad is the condition of rows that have to be mended before,
// or "".
func rebuild(c *checker, t *table, change, bad string) (string, error) {
	var beside, views []string // the names of its indexes and triggers, and of views that may read it
	const name = "'`' || replace(name, '`', '``') || '`'"
	err := errors.Join(
		c.ask(t, "SELECT type || ' ' || "+name+" FROM "+c.beside(t, "sqlite_master")+" WHERE type IN ('index', 'trigger') AND sql IS NOT NULL AND tbl_name = @name COLLATE NOCASE ORDER BY rowid").Scan(&beside).Error,
		c.ask(t, "SELECT "+name+" FROM "+c.beside(t, "sqlite_master")+" WHERE type = 'view' AND instr(lower(sql), lower(@name)) > 0 ORDER BY rowid").Scan(&views).Error)
	space, bare := "", t.quoted
	if i := strings.LastIndex(bare, "`.`"); i >= 0 {
		space, bare = bare[:i+2], bare[i+2:]
	}
	fresh := space + bare[:len(bare)-1] + "_new`" // within the quotes
	steps := []string{
		"SQLite changes no column, so build the table again as https://www.sqlite.org/lang_altertable.html#otheralter describes, on one connection while nothing else writes",
		"PRAGMA foreign_keys = OFF", "BEGIN IMMEDIATE",
	}
	if bad != "" {
		steps = append(steps, "stop here if SELECT * FROM "+t.quoted+" WHERE "+bad+" finds a row: its value is no key")
	}
	steps = append(steps,
		"CREATE TABLE "+fresh+" as in the sql of "+space+"sqlite_master, "+change,
		"INSERT INTO "+fresh+" every column FROM "+t.quoted)
	if slices.ContainsFunc(t.columns, func(col tableColumn) bool { return col.Counter != "" }) {
		steps = append(steps, "copy the seq of "+bare+" in sqlite_sequence, if the new table counts")
	}
	steps = append(steps, "DROP TABLE "+t.quoted, "ALTER TABLE "+fresh+" RENAME TO "+bare)
	if len(beside) > 0 {
		steps = append(steps, "create again by their sql: "+strings.Join(beside, ", "))
	}
	if len(views) > 0 {
		steps = append(steps, "PRAGMA legacy_alter_table = ON before the RENAME and OFF after it, for the views that read the table: "+strings.Join(views, ", "))
	}
	steps = append(steps, "PRAGMA foreign_key_check has to find nothing", "COMMIT, or ROLLBACK after any error", "PRAGMA foreign_keys = ON")
	return strings.Join(steps, "; "), err
}

// unfit returns the condition of values of c that a column of type target would not store
// unchanged, or "". SQLite has no error for a value that it cannot convert: it keeps the
// text, rounds a large number and reads 1e3 as 1000. A rowid that is NULL gets the next
// number.
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
