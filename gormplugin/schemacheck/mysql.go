package schemacheck

import (
	"strings"

	"gorm.io/gorm/clause"
)

var onMySQL = &dialect{
	wide: "bigint", text: "varchar(20)", folds: true,
	retype:  mysqlModify,
	uncount: mysqlModify,
}

func mysqlModify(t *table, c *tableColumn, target string) (string, []string) {
	change := "ALTER TABLE " + t.quoted + " MODIFY COLUMN " + c.quoted + " " + target
	if c.notNull {
		change += " NOT NULL"
	}
	return "modify the column: drop the foreign keys of it and to it before and add them after, and repeat a comment, a default or a collation that it has", []string{
		// Else MySQL may put something near in the place of what does not fit: 0 for
		// text and for a number below zero, the largest one, a question mark.
		"SET @snowkey_sql_mode = @@sql_mode, SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
		change,
		"SET SESSION sql_mode = @snowkey_sql_mode",
	}
}

func mysqlTable(c *checker, name string) (*table, error) {
	t := &table{dialect: onMySQL, quoted: c.db.Statement.Quote(clause.Table{Name: name})}
	space, bare, qualified := strings.Cut(name, ".")
	if !qualified {
		space, bare = "", name
	}
	var list []struct {
		Kind     string `gorm:"column:kind"`
		Name     string `gorm:"column:name"`
		Full     string `gorm:"column:full"`
		Base     string `gorm:"column:base"`
		Extra    string `gorm:"column:extra"`
		Value    string `gorm:"column:value"`
		Nullable string `gorm:"column:nullable"`
	}
	// Not joined by the names, or MariaDB no longer sees that both sides are of one
	// table: it opens those of all databases, and waits for whoever changes one.
	err := c.query(name, `SELECT t.table_type AS kind, c.column_name AS name, c.column_type AS full, c.data_type AS base,
		c.extra AS extra, COALESCE(c.column_default, '') AS value, c.is_nullable AS nullable
		FROM information_schema.columns c
		CROSS JOIN information_schema.tables t
		WHERE c.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND c.table_name = ?
		AND t.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND t.table_name = ?
		ORDER BY c.ordinal_position`, space, bare, space, bare).Scan(&list).Error
	for _, l := range list {
		if strings.HasSuffix(l.Kind, "VIEW") {
			t.fixed = fixView
		}
		full, extra := strings.ToLower(l.Full), strings.ToLower(l.Extra)
		col := tableColumn{
			name: l.Name, quoted: c.db.Statement.Quote(clause.Column{Name: l.Name}), typ: full,
			unsigned: strings.Contains(full, "unsigned"), notNull: strings.EqualFold(l.Nullable, "NO"),
			// Not DEFAULT_GENERATED, which is a default that is an expression.
			generated: strings.Contains(extra, "virtual generated") || strings.Contains(extra, "stored generated"),
		}
		_, precision, scale := typeParts(full)
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

