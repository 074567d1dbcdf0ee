package gormplugin

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// indexedColumn is NULL if an index is on an expression, for which TiDB writes the text NULL.
const indexedColumn = "NULLIF(s.column_name, IF(VERSION() LIKE '%TiDB%', 'NULL', ''))"

// mysqlDatabase is MySQL, MariaDB and TiDB.
var mysqlDatabase = database{
	dialect:        dialect.MySQL,
	everyKey:       true,
	updatesNothing: true,
	countsChanges:  true,
	// Two views that are joined by the names of their tables are read whole.
	uniques: `SELECT s.index_name, COALESCE(` + indexedColumn + `, ''),
		COALESCE(c.collation_name, ''), COALESCE(s.sub_part, 0), c.column_type, '', c.is_nullable = 'NO',
		` + indexedColumn + ` IS NULL OR COALESCE(c.generation_expression, '') <> '', false, false, VERSION() LIKE '%TiDB%'
		FROM information_schema.statistics s CROSS JOIN information_schema.columns c
		WHERE s.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND s.table_name = ? AND s.non_unique = 0
		AND c.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND c.table_name = ?
		AND (c.column_name = s.column_name OR ` + indexedColumn + ` IS NULL AND c.ordinal_position = 1)
		ORDER BY s.index_name, s.seq_in_index`,
	args:        func(t tableName) []any { return []any{t.schema, t.name, t.schema, t.name} },
	describe:    mysqlDescribe,
	forcesIndex: true,
	locks:       true,
	joins: func(u *unique) bool {
		return !slices.ContainsFunc(u.columns, func(c uniqueColumn) bool { return !c.form.Joins || c.prefix > 0 })
	},
	joined: mysqlUnion,
	// A text that has to be converted to the character set of its column cannot use the index.
	stores: func(c *uniqueColumn) plainness {
		switch base, _, _ := strings.Cut(c.typ, "("); {
		case c.form.Whole:
			return plainNumbers
		case (base == "char" || base == "varchar") && strings.HasPrefix(c.collate, "utf8mb4_"):
			return plainText
		default:
			return 0
		}
	},
	listSize: valuesPerIn,
	listed: func(l *list, values []any) {
		l.write(" FROM ", l.table())
		l.force(l.keys[0])
		l.write(" WHERE ")
		l.comparedColumn()
		l.write(" IN (")
		for n, v := range values {
			if n > 0 {
				l.write(",")
			}
			l.AddVar(l, v)
		}
		l.write(")")
	},
}

// mysqlDescribe reads the types from SHOW COLUMNS, which also knows tables that the catalog
// does not list, such as temporary ones. MySQL has no partial unique keys.
func mysqlDescribe(q *query, t tableName, list []unique) error {
	q.write("SHOW FULL COLUMNS FROM ", t.quoted)
	for n := range list {
		list[n].where = nil
	}
	return q.rows(func(found *sql.Rows) error {
		var name, typ, null string
		var collation sql.NullString
		var rest [5]any // the key, the default, and comments
		if err := found.Scan(&name, &typ, &collation, &null, &rest[0], &rest[1], &rest[2], &rest[3], &rest[4]); err != nil {
			return err
		}
		for _, u := range list {
			for n := range u.columns {
				if c := &u.columns[n]; strings.EqualFold(c.name, name) {
					c.typ, c.form = typ, dialect.FormOf(dialect.MySQL, typ, collation.String)
					c.form.NotNull = null == "NO"
				}
			}
		}
		return nil
	})
}

// mysqlUnion writes the rows as a union of SELECTs, since MySQL and MariaDB do not agree on
// VALUES, and each value with the type and the collation of its column. Without the order
// and the index, MySQL may read, and lock, the whole of a small table.
func mysqlUnion(j *join, rows []int) {
	casts := make([][2]string, len(j.fields))
	for at, f := range j.fields {
		casts[at] = castOf(j.form(f))
	}
	for n, i := range rows {
		if n > 0 {
			j.write(" UNION ALL ")
		}
		j.write("SELECT ")
		j.number(n)
		if n == 0 {
			j.write(" AS ", valueColumn, "1")
		}
		for at, f := range j.fields {
			j.write(",", casts[at][0])
			j.bind(i, f)
			j.write(casts[at][1])
			if n == 0 {
				j.write(" AS ", valueColumn, strconv.Itoa(at+2))
			}
		}
	}
	j.write(") AS ", valuesName, " STRAIGHT_JOIN ", j.table())
	j.force(j.keys[0])
}
