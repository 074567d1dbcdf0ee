package schemacheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mysql is MySQL and MariaDB.
var mysql = database{
	number: "bigint", text: "varchar(20)", folds: true,
	table: `SELECT CONCAT(table_schema, '.', table_name) AS id, CASE WHEN table_type LIKE '%VIEW' THEN 'view' ELSE '' END AS kind
		FROM information_schema.tables
		WHERE table_schema = COALESCE(NULLIF(@space, ''), DATABASE()) AND table_name = @name`,
	// MariaDB writes a default of NULL as the word.
	columns: `SELECT column_name AS name, LOWER(column_type) AS type,
		COALESCE(column_default, '') AS value, COALESCE(column_default <> 'NULL', FALSE) AS has_default,
		CASE WHEN LOWER(extra) LIKE '%auto_increment%' THEN 'AUTO_INCREMENT' ELSE '' END AS counter,
		COALESCE(generation_expression <> '', FALSE) AS is_generated
		FROM information_schema.columns
		WHERE table_schema = COALESCE(NULLIF(@space, ''), DATABASE()) AND table_name = @name
		ORDER BY ordinal_position`,
	// TiDB writes the text NULL.
	expressions: `SELECT DISTINCT index_name FROM information_schema.statistics
		WHERE table_schema = COALESCE(NULLIF(@space, ''), DATABASE()) AND table_name = @name AND non_unique = 0
		AND NULLIF(column_name, IF(VERSION() LIKE '%TiDB%', 'NULL', '')) IS NULL ORDER BY 1`,
	foreignKeys: "SELECT CONCAT('`', REPLACE(constraint_name, '`', '``'), '`') AS name," + `
		CONCAT(table_schema, '.', table_name) AS child, CONCAT(referenced_table_schema, '.', referenced_table_name) AS parent,
		column_name AS from_column, referenced_column_name AS to_column
		FROM information_schema.key_column_usage
		WHERE table_schema IN @spaces AND referenced_table_name IS NOT NULL
		ORDER BY table_schema, table_name, constraint_name, ordinal_position`,
	class: func(typ string) (class, int) {
		typ, _, _ = strings.Cut(typ, " ") // such as unsigned
		return classify(typ, mysqlClasses)
	},
	binds:      func(*tableColumn, string) bool { return true }, // MODIFY fails where a foreign key is in the way
	statements: mysqlStatements,
	uncount:    (*checker).changeType,
	unsigned:   true,
	connection: mysqlStrict,
}

// mysqlStrict finds a connection without strict mode.
func mysqlStrict(c *checker) error {
	var mode string
	err := c.query(c.wanted[0].table(), "SELECT @@sql_mode", nil).Scan(&mode).Error
	if err != nil {
		return fmt.Errorf("read sql_mode: %w", err)
	}
	if !strings.Contains(mode, "STRICT_TRANS_TABLES") && !strings.Contains(mode, "STRICT_ALL_TABLES") {
		c.add(Finding{
			Problem: NotStrict, Is: fmt.Sprintf("sql_mode %q", mode), Want: "STRICT_TRANS_TABLES or STRICT_ALL_TABLES in it",
			Fix: "add STRICT_TRANS_TABLES to the present modes: sql_mode='" + strings.TrimPrefix(mode+",STRICT_TRANS_TABLES", ",") + "' in the parameters of the DSN, or on the server",
		})
	}
	return nil
}

var mysqlClasses = map[string]class{
	"bigint": classWide, "decimal": classDecimal, "float": classFloat, "double": classFloat,
	"tinyint": classNarrow, "smallint": classNarrow, "mediumint": classNarrow, "int": classNarrow, "year": classNarrow, "bit": classNarrow,
	"char": classText, "varchar": classText, "tinytext": classText, "text": classText, "mediumtext": classText, "longtext": classText,
}

func mysqlStatements(c *checker, changes []typeChange, keys []foreignKey, target string) (fix string, sql []string, err error) {
	fix = "modify the column, and drop the foreign keys of it and to it before and add them after"
	var checks []string
	var drops, modifies, adds []part
	for _, ch := range changes {
		rest, ok, err := mysqlDefinition(c, ch.ID, ch.col.quoted+" "+ch.col.Type)
		if err != nil || !ok {
			return fix, nil, err
		}
		modifies = append(modifies, part{ch.quoted, "MODIFY COLUMN " + ch.col.quoted + " " + target + ch.kept(rest, target)})
		if bad := unlike(ch.col, target == ch.text, strings.HasSuffix(target, "unsigned")); bad != "" {
			checks = append(checks, refuse(ch.place, bad))
		}
	}
	for _, k := range keys {
		definition, ok, err := mysqlDefinition(c, k.Child, "CONSTRAINT "+k.Name+" ")
		if err != nil || !ok {
			return fix, nil, err
		}
		table := c.quoteTable(k.Child)
		drops = append(drops, part{table, "DROP FOREIGN KEY " + k.Name})
		adds = append(adds, part{table, "ADD CONSTRAINT " + k.Name + " " + definition})
	}
	if len(checks) > 0 {
		fix += howRefused
	}
	// Otherwise MySQL may store the nearest value of what does not fit: 0 for text and for
	// a number below zero, the largest number, or a question mark. SHOW CREATE TABLE escapes
	// with backslashes in every mode.
	strict := []string{"SET @snowkey_sql_mode = @@sql_mode, SESSION sql_mode = CONCAT(REPLACE(@@sql_mode, 'NO_BACKSLASH_ESCAPES', ''), ',STRICT_ALL_TABLES')"}
	restored := []string{"SET SESSION sql_mode = @snowkey_sql_mode"}
	return fix, slices.Concat(checks, strict, alter(drops), alter(modifies), alter(adds), restored), nil
}

// mysqlToken matches a text or a name in SHOW CREATE TABLE. Double quotes are around names
// alone, with ANSI_QUOTES in sql_mode.
var mysqlToken = regexp.MustCompile("'(?:[^'\\\\]|\\\\.|'')*'|`[^`]*`|\"(?:[^\"]|\"\")*\"")

// backquoted returns made, of SHOW CREATE TABLE, with the names in backquotes, which are
// valid in every sql_mode.
func backquoted(made string) string {
	return mysqlToken.ReplaceAllStringFunc(made, func(token string) string {
		name, ok := strings.CutPrefix(token, `"`)
		if !ok {
			return token
		}
		name = strings.ReplaceAll(strings.TrimSuffix(name, `"`), `""`, `"`)
		return "`" + strings.ReplaceAll(name, "`", "``") + "`"
	})
}

// mysqlDefinition returns what follows prefix in the line of SHOW CREATE TABLE that begins
// with it. A line is a column or a constraint. Without sql_quote_show_create, the names in
// the line are bare.
func mysqlDefinition(c *checker, id, prefix string) (rest string, ok bool, err error) {
	var made struct {
		SQL string `gorm:"column:Create Table"`
	}
	if err := c.query(id, "SHOW CREATE TABLE "+c.quoteTable(id), nil).Scan(&made).Error; err != nil {
		return "", false, err
	}
	for line := range strings.SplitSeq(backquoted(made.SQL), "\n") {
		for _, prefix := range []string{prefix, strings.ReplaceAll(prefix, "`", "")} {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
				return strings.TrimSuffix(rest, ","), true, nil
			}
		}
	}
	return "", false, nil
}

// A character set and a collation follow the type, in SHOW CREATE TABLE.
var charset = regexp.MustCompile(`^( CHARACTER SET \w+)?( COLLATE \w+)?`)

// kept returns the part of rest that stays. It stands beside the type, and MODIFY would
// drop it.
func (ch typeChange) kept(rest, target string) string {
	if ch.col.class == classText && target != ch.text {
		rest = charset.ReplaceAllString(rest, "")
	}
	if ch.uncount {
		rest = strings.Replace(rest, " "+ch.col.Counter, "", 1)
	}
	return rest
}

// unlike returns the condition of values of c that another type would not keep, or "".
// MySQL turns the text 1e3 into 1000, even in strict mode.
func unlike(c *tableColumn, text, unsigned bool) string {
	switch {
	case text:
		return ""
	case c.class == classText:
		return strings.ReplaceAll("? = '' OR ? REGEXP '[^0-9]' OR ? LIKE '0_%' OR CHAR_LENGTH(?) > 19 OR CHAR_LENGTH(?) = 19 AND ? > '9223372036854775807'", "?", c.quoted)
	case unsigned && !c.unsigned():
		return c.quoted + " < 0"
	case !unsigned && c.unsigned() && c.class == classWide:
		return c.quoted + " > 9223372036854775807"
	default:
		return ""
	}
}
