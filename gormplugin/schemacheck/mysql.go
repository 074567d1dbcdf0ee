package schemacheck

import (
	"regexp"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/sqltype"
)

// mysql is MySQL and MariaDB.
type mysql struct{}

// binds holds for any change: MODIFY fails where a foreign key is in the way.
func (mysql) binds(*tableColumn, string) bool { return true }

func (mysql) is(col *tableColumn, target string) bool {
	if target == "varchar(20)" {
		return col.class == classText && (col.length == 0 || col.length >= decimals)
	}
	return strings.HasPrefix(col.typ, "bigint") && col.unsigned == strings.HasSuffix(target, "unsigned")
}

// A character set and a collation follow the type, in SHOW CREATE TABLE.
var charset = regexp.MustCompile(`^( CHARACTER SET \w+)?( COLLATE \w+)?`)

func (mysql) statements(c *checker, places []place, keys []*foreignKey, target string) (fix string, sql []string, err error) {
	fix = "modify the column, and drop the foreign keys of it and to it before and add them after"
	lines := map[string][]string{} // of SHOW CREATE TABLE: a column or a constraint each
	quote := func(id string) string { return c.db.Statement.Quote(clause.Table{Name: id}) }
	// line returns what follows prefix, where a line begins with it.
	line := func(id, prefix string) (rest string, ok bool, err error) {
		if lines[id] == nil {
			var made struct {
				SQL string `gorm:"column:Create Table"`
			}
			if err := c.query(id, "SHOW CREATE TABLE "+quote(id)).Scan(&made).Error; err != nil {
				return "", false, err
			}
			lines[id] = strings.Split(made.SQL, "\n")
		}
		for _, l := range lines[id] {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(l), prefix); ok {
				return strings.TrimSuffix(rest, ","), true, nil
			}
		}
		return "", false, nil
	}
	var checks []string
	parts := map[*table][]string{}
	for _, p := range places {
		// What stands beside the type stays. MODIFY would drop it.
		rest, ok, err := line(p.id, p.col.quoted+" "+p.col.typ)
		if err != nil || !ok {
			return fix, nil, err
		}
		if p.col.class == classText && target != p.text {
			rest = charset.ReplaceAllString(rest, "")
		}
		if p.col.uncount {
			rest = strings.Replace(rest, " "+p.col.counted, "", 1)
		}
		parts[p.table] = append(parts[p.table], "MODIFY COLUMN "+p.col.quoted+" "+target+rest)
		if bad := unlike(p.col, target == p.text, strings.HasSuffix(target, "unsigned")); bad != "" {
			checks = append(checks, refuse(p, bad))
		}
	}
	for _, k := range keys {
		definition, ok, err := line(k.table, "CONSTRAINT "+k.name+" ")
		if err != nil || !ok {
			return fix, nil, err
		}
		k.definition = definition
	}
	// Otherwise MySQL may store something near for what does not fit. That is 0 for
	// text and for a number below zero, the largest number, or a question mark.
	sql = append(checks, "SET @snowkey_sql_mode = @@sql_mode, SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')")
	sql = append(sql, alter(quote, keys, func(k *foreignKey) string { return "DROP FOREIGN KEY " + k.name })...)
	for _, t := range tablesOf(places) {
		sql = append(sql, "ALTER TABLE "+t.quoted+" "+strings.Join(parts[t], ", "))
	}
	sql = append(sql, alter(quote, keys, func(k *foreignKey) string { return "ADD CONSTRAINT " + k.name + " " + k.definition })...)
	if len(checks) > 0 {
		fix += howRefused
	}
	return fix, append(sql, "SET SESSION sql_mode = @snowkey_sql_mode"), nil
}

// unlike returns the condition of values of c that another type would not keep, or
// "". MySQL makes 1000 of the text 1e3, even in strict mode.
func unlike(c *tableColumn, text, unsigned bool) string {
	switch {
	case text:
		return ""
	case c.class == classText:
		return strings.ReplaceAll("? = '' OR ? REGEXP '[^0-9]' OR ? LIKE '0_%' OR CHAR_LENGTH(?) > 19 OR CHAR_LENGTH(?) = 19 AND ? > '9223372036854775807'", "?", c.quoted)
	case unsigned && !c.unsigned:
		return c.quoted + " < 0"
	case !unsigned && c.unsigned && c.class == classWide:
		return c.quoted + " > 9223372036854775807"
	default:
		return ""
	}
}

func (mysql) uncount(c *checker, p place, target string) (string, []string, error) {
	return c.change(p, target)
}

// foreignKeys looks at the databases in which the models have tables.
func (mysql) foreignKeys(c *checker, t *table) (keys []*foreignKey, err error) {
	if c.keys == nil {
		var spaces []string
		for _, w := range c.wanted {
			t, err := c.load(w.table())
			if err != nil {
				return nil, err
			}
			if t != nil {
				space, _, _ := strings.Cut(t.id, ".")
				spaces = append(spaces, space)
			}
		}
		var list []struct {
			Name   string `gorm:"column:name"`
			Child  string `gorm:"column:child"`
			Parent string `gorm:"column:parent"`
			From   string `gorm:"column:from_column"`
			To     string `gorm:"column:to_column"`
		}
		err = c.query(t.name, `SELECT constraint_name AS name, CONCAT(table_schema, '.', table_name) AS child, CONCAT(referenced_table_schema, '.', referenced_table_name) AS parent,
			column_name AS from_column, referenced_column_name AS to_column
			FROM information_schema.key_column_usage
			WHERE table_schema IN ? AND referenced_table_name IS NOT NULL
			ORDER BY table_schema, table_name, constraint_name, ordinal_position`, spaces).Scan(&list).Error
		if err != nil {
			return nil, err
		}
		c.keys = []*foreignKey{}
		for _, l := range list {
			name := "`" + strings.ReplaceAll(l.Name, "`", "``") + "`"
			if n := len(c.keys); n == 0 || c.keys[n-1].name != name || c.keys[n-1].table != l.Child {
				c.keys = append(c.keys, &foreignKey{name: name, table: l.Child, other: l.Parent})
			}
			k := c.keys[len(c.keys)-1]
			k.columns, k.refers = append(k.columns, l.From), append(k.refers, l.To)
		}
	}
	for _, k := range c.keys {
		if k.table == t.id || k.other == t.id {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

func (mysql) expressions(c *checker, t *table) (names []string, err error) {
	space, bare, _ := strings.Cut(t.id, ".")
	err = c.query(t.name, `SELECT DISTINCT index_name FROM information_schema.statistics
		WHERE table_schema = ? AND table_name = ? AND non_unique = 0 AND column_name IS NULL ORDER BY 1`, space, bare).Scan(&names).Error
	return names, err
}

func (m mysql) open(c *checker, id string) (*table, error) { return m.read(c, id) }

func (mysql) read(c *checker, name string) (*table, error) {
	t := &table{name: name, quoted: c.db.Statement.Quote(clause.Table{Name: name}), number: "bigint", text: "varchar(20)", folds: true}
	space, bare, qualified := strings.Cut(name, ".")
	if !qualified {
		space, bare = "", name
	}
	var list []struct {
		ID       string `gorm:"column:id"`
		Kind     string `gorm:"column:kind"`
		Name     string `gorm:"column:name"`
		Full     string `gorm:"column:full"`
		Base     string `gorm:"column:base"`
		Extra    string `gorm:"column:extra"`
		Value    string `gorm:"column:value"`
		Default  bool   `gorm:"column:has_default"`
		Nullable string `gorm:"column:nullable"`
	}
	// Do not join by the names. MariaDB would no longer see that both sides are of
	// one table. It would open those of all databases, and wait for whoever changes
	// one.
	err := c.query(name, `SELECT CONCAT(c.table_schema, '.', c.table_name) AS id, t.table_type AS kind, c.column_name AS name, c.column_type AS full, c.data_type AS base,
		c.extra AS extra, COALESCE(c.column_default, '') AS value, COALESCE(c.column_default <> 'NULL', FALSE) AS has_default, c.is_nullable AS nullable
		FROM information_schema.columns c
		CROSS JOIN information_schema.tables t
		WHERE c.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND c.table_name = ?
		AND t.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND t.table_name = ?
		ORDER BY c.ordinal_position`, space, bare, space, bare).Scan(&list).Error
	for _, l := range list {
		t.id = l.ID
		if strings.HasSuffix(l.Kind, "VIEW") {
			t.fixed = fixView
		}
		full, extra := strings.ToLower(l.Full), strings.ToLower(l.Extra)
		col := tableColumn{
			name: l.Name, quoted: c.db.Statement.Quote(clause.Column{Name: l.Name}), typ: full,
			unsigned: strings.Contains(full, "unsigned"), value: l.Default, notNull: strings.EqualFold(l.Nullable, "NO"),
			// Not DEFAULT_GENERATED, which is a default that is an expression.
			generated: strings.Contains(extra, "virtual generated") || strings.Contains(extra, "stored generated"),
		}
		_, precision, scale := sqltype.Parts(full)
		switch strings.ToLower(l.Base) {
		case "bigint":
			col.class = classWide
		case "tinyint", "smallint", "mediumint", "int", "year", "bit":
			col.class = classNarrow
		case "float", "double":
			col.class, col.fixed = classNarrow, fixFloat
		case "decimal":
			col.class = decimalClass(precision, scale)
		case "char", "varchar":
			col.class, col.length = classText, precision
		case "tinytext", "text", "mediumtext", "longtext":
			col.class = classText
		default:
			col.class = classOther
		}
		switch {
		case col.generated:
			col.fixed = fixGenerated
		case col.class == classOther:
			col.fixed = fixOther
		}
		switch {
		case strings.Contains(extra, "auto_increment"):
			col.counted = "AUTO_INCREMENT"
		case strings.Contains(strings.ToLower(l.Value), "nextval("): // a sequence of MariaDB's
			col.counted = "DEFAULT " + l.Value
		}
		t.columns = append(t.columns, col)
	}
	return t, err
}
