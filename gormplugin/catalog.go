package gormplugin

import (
	"strings"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// A class is what of a type matters for keys.
type class int

const (
	classWide   class = iota // holds every key as a number
	classNarrow              // a number that does not hold every key
	classText
	classOther
)

// A table is a table of the database, as its catalog describes it.
type table struct {
	dialect *dialect
	quoted  string
	columns []tableColumn
	fixed   string   // what to do instead of altering the table, if it cannot be
	rowid   bool     // SQLite: there is a rowid, and the primary key is not it
	sql     string   // SQLite: the statement that made it
	more    []string // SQLite: those that made its indexes and triggers
}

// A tableColumn is a column of the database.
type tableColumn struct {
	name      string
	quoted    string
	typ       string // as the database writes it
	class     class
	unsigned  bool
	length    int    // of a text; 0: not limited
	counted   string // how the database counts, if it does
	sequence  string // PostgreSQL: the sequence that the column owns, quoted
	notNull   bool
	generated bool   // from other columns
	fixed     string // what to do instead of changing the type, if it cannot be
	key       int    // SQLite: the place in the primary key, from 1
}

// What to do where no statement helps.
const (
	fixView      = "it is a view: change the table that it reads"
	fixForeign   = "it is a foreign table: change the table on its server, then this one"
	fixGenerated = "it is generated: change its expression with its type"
	fixParent    = "it is inherited: change it in the parent table"
	fixPartition = "the table is partitioned by it: make a table of the right type and move the rows"
	fixFloat     = "it rounds, so its values may be wrong by now: add a column beside it, fill that from where they are right, and exchange the two"
	fixOther     = "no change of type converts its values: add a column beside it, fill that, and exchange the two, as docs/migrating.md does with UUIDs"
)

// A dialect is how the findings of a database are repaired.
type dialect struct {
	wide, text string
	folds      bool // names of columns are the same in any case
	retype     func(t *table, c *tableColumn, target string) (fix string, sql []string)
	uncount    func(t *table, c *tableColumn, target string) (fix string, sql []string)
}

func (t *table) column(name string) *tableColumn {
	for i := range t.columns {
		if c := &t.columns[i]; c.name == name || t.dialect.folds && strings.EqualFold(c.name, name) {
			return c
		}
	}
	return nil
}

// alone reports whether c is the primary key, and nothing else is part of it.
func (t *table) alone(c *tableColumn) bool {
	for i := range t.columns {
		if other := &t.columns[i]; other != c && other.key > 0 {
			return false
		}
	}
	return c.key > 0
}

// beside reports whether f is the primary key of a table of SQLite's, could be
// the rowid, and is not.
func (t *table) beside(f *schema.Field) bool {
	if !t.rowid || !canBeRowID(f) {
		return false
	}
	c := t.column(f.DBName)
	return c != nil && c.class == classWide && t.alone(c)
}

// canBeRowID reports whether f is a key of ours, alone, and a number.
func canBeRowID(f *schema.Field) bool {
	k, ok := kindOf(f.IndirectFieldType)
	return ok && k != text && f.PrimaryKey && len(f.Schema.PrimaryFields) == 1 && (ours(f) || tagged(f))
}

// catalogs read a table by the name of the dialect. A table without columns is
// none.
var catalogs = map[string]func(c *checker, name string) (*table, error){
	sqliteName:   sqliteTable,
	postgresName: postgresTable,
	mysqlName:    mysqlTable,
}

// PostgreSQL.

var onPostgres = &dialect{
	wide: "bigint", text: "text",
	retype: func(t *table, c *tableColumn, target string) (string, []string) {
		change := "ALTER TABLE " + t.quoted + " ALTER COLUMN " + c.quoted + " TYPE " + target
		if c.class == classText {
			change += " USING " + c.quoted + "::" + target
		}
		return "change its type, which rewrites the table under an exclusive lock; where it is text, drop its default and the foreign keys of it and to it before and add them after", []string{change}
	},
	uncount: func(t *table, c *tableColumn, _ string) (string, []string) {
		column := "ALTER TABLE " + t.quoted + " ALTER COLUMN " + c.quoted
		if strings.HasPrefix(c.counted, "GENERATED") {
			return "drop the identity", []string{column + " DROP IDENTITY"}
		}
		list := []string{column + " DROP DEFAULT"}
		if c.sequence != "" {
			list = append(list, "DROP SEQUENCE "+c.sequence)
		}
		return "drop the default, and the sequence if nothing else uses it", list
	},
}

// postgresTable finds the table as a statement would: by the search_path, and by
// the exact name. The type of a column is the one below all domains.
func postgresTable(c *checker, name string) (*table, error) {
	t := &table{dialect: onPostgres, quoted: c.db.Statement.Quote(clause.Table{Name: name})}
	var list []struct { // the tags are for a NamingStrategy that names otherwise
		Kind      string `gorm:"column:kind"`
		Name      string `gorm:"column:name"`
		Type      string `gorm:"column:type"`
		Category  string `gorm:"column:category"`
		Value     string `gorm:"column:value"`
		Identity  string `gorm:"column:identity"`
		Sequence  string `gorm:"column:sequence"`
		NotNull   bool   `gorm:"column:not_null"`
		Generated bool   `gorm:"column:generated"`
		Inherited bool   `gorm:"column:inherited"`
		Partition bool   `gorm:"column:partition"`
	}
	err := c.query(name, `WITH RECURSIVE below (num, type, mod) AS (
			SELECT attnum, atttypid, atttypmod FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped
			UNION ALL
			SELECT b.num, y.typbasetype, y.typtypmod FROM below b JOIN pg_catalog.pg_type y ON y.oid = b.type WHERE y.typtype = 'd'
		)
		SELECT CAST(r.relkind AS text) AS kind, a.attname AS name,
		format_type(b.type, b.mod) AS type,
		CAST(y.typcategory AS text) AS category,
		COALESCE(pg_get_expr(d.adbin, d.adrelid), '') AS value,
		CAST(a.attidentity AS text) AS identity,
		COALESCE(pg_get_serial_sequence(CAST(a.attrelid::regclass AS text), a.attname), '') AS sequence,
		a.attnotnull AS not_null,
		a.attgenerated <> '' AS generated,
		a.attinhcount > 0 AS inherited,
		EXISTS (SELECT FROM pg_catalog.pg_partitioned_table p WHERE p.partrelid = a.attrelid AND a.attnum = ANY (p.partattrs)) AS partition
		FROM below b
		JOIN pg_catalog.pg_type y ON y.oid = b.type AND y.typtype <> 'd'
		JOIN pg_catalog.pg_class r ON r.oid = to_regclass(?)
		JOIN pg_catalog.pg_attribute a ON a.attrelid = r.oid AND a.attnum = b.num
		LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
		ORDER BY a.attnum`, t.quoted, t.quoted).Scan(&list).Error
	for _, l := range list {
		switch l.Kind {
		case "v", "m":
			t.fixed = fixView
		case "f":
			t.fixed = fixForeign
		}
		col := tableColumn{
			name: l.Name, quoted: c.db.Statement.Quote(clause.Column{Name: l.Name}), typ: l.Type,
			sequence: l.Sequence, notNull: l.NotNull, generated: l.Generated,
		}
		base, precision, scale := typeParts(l.Type)
		switch base {
		case "bigint":
			col.class = classWide
		case "integer", "smallint":
			col.class = classNarrow
		case "real", "double precision":
			col.class, col.fixed = classNarrow, fixFloat
		case "numeric":
			col.class = decimalClass(precision, scale)
		case "character varying", "character":
			col.class, col.length = classText, precision
		default:
			col.class = classOther
			if l.Category == "S" { // text, and what compares like it: citext
				col.class = classText
			}
		}
		switch {
		case l.Inherited:
			col.fixed = fixParent
		case l.Partition:
			col.fixed = fixPartition
		case l.Generated:
			col.fixed = fixGenerated
		case col.class == classOther:
			col.fixed = fixOther
		}
		switch {
		case l.Identity == "a":
			col.counted = "GENERATED ALWAYS AS IDENTITY"
		case l.Identity == "d":
			col.counted = "GENERATED BY DEFAULT AS IDENTITY"
		case strings.Contains(l.Value, "nextval("):
			col.counted = "DEFAULT " + l.Value
		}
		t.columns = append(t.columns, col)
	}
	return t, err
}

// MySQL and MariaDB.

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

// decimalClass returns the class of a decimal number; a precision of 0 is not
// limited. With a scale a key comes back as 1.00, or, below zero, rounded.
func decimalClass(precision, scale int) class {
	switch {
	case scale != 0:
		return classOther
	case precision > 0 && precision < decimals:
		return classNarrow
	default:
		return classWide
	}
}
