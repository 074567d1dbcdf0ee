package gormplugin

import (
	"reflect"
	"strings"

	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/pgtext"
)

var postgresDatabase = database{
	dialect:       dialect.PostgreSQL,
	countsInserts: true,
	// DO NOTHING also meets rows by exclusion constraints, but not by deferred ones. A
	// unique key of a table covers its partitions, and no other table that inherits from it.
	uniques: `SELECT c.relname, COALESCE(a.attname, ''),
		COALESCE((SELECT quote_ident(n.nspname) || '.' || quote_ident(o.collname) FROM pg_catalog.pg_collation o
			JOIN pg_catalog.pg_namespace n ON n.oid = o.collnamespace WHERE o.oid = k.coll AND k.coll <> a.attcollation), ''),
		0, COALESCE(format_type(a.atttypid, a.atttypmod), ''), COALESCE(pg_get_expr(i.indpred, i.indrelid), ''), false,
		a.attname IS NULL OR a.attgenerated <> '' OR i.indisexclusion, COALESCE(to_jsonb(i)->>'indnullsnotdistinct' = 'true', false),
		t.relkind <> 'p', false
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		CROSS JOIN LATERAL unnest(CAST(i.indkey AS int2[]), CAST(i.indcollation AS oid[])) WITH ORDINALITY AS k (num, coll, place)
		LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num AND k.num <> 0
		WHERE i.indrelid = to_regclass($1) AND (i.indisunique OR i.indisexclusion) AND i.indimmediate AND k.place <= i.indnkeyatts
		ORDER BY c.oid, k.place`,
	args:        func(t tableName) []any { return []any{t.quoted} },
	inherits:    true,
	castsResult: true,
	joins:       func(*unique) bool { return true },
	joined: func(j *join, rows []int) {
		// A first row, which is filtered out again, gives the columns the types of the
		// table. A parameter takes the type of the column above it, and is bound as in the
		// insert.
		j.values(rows, func() {
			j.write("(-1")
			for _, f := range j.fields {
				j.write(",(SELECT ", clause.Column{Name: f.DBName}, " FROM ", j.table(), " WHERE 1 = 0)")
			}
			j.write("),")
		})
	},
	stores: func(c *uniqueColumn) plainness {
		switch base, _, _ := strings.Cut(c.typ, "("); {
		case strings.HasSuffix(c.typ, "[]"):
			return 0
		case base == "bigint" || base == "integer" || base == "smallint":
			return plainNumbers
		case base == "text" || base == "character varying":
			return plainText
		default:
			return 0
		}
	},
	sends: func(v any) bool { // pgx has its own ways for some types
		k, _ := pgtext.KindOf(reflect.TypeOf(v))
		return k != 0
	},
	listSize: valuesPerArray,
	listed:   postgresList,
}

// postgresList sends the values as one array.
func postgresList(l *list, values []any) {
	l.write(" FROM ", l.resolver.only(), l.table(), " WHERE ")
	l.comparedColumn()
	array, typ, name := []byte(nil), pgtext.Text, "text"
	if _, number := values[0].(int64); number {
		typ, name = pgtext.Int8, "bigint"
	}
	for _, v := range values {
		array, _ = typ.AppendValue(append(array, ','), v, pgtext.Array)
	}
	array[0] = '{'
	l.write(" = ANY (CAST(")
	l.AddVar(l, string(append(array, '}')))
	l.write(" AS ", name, "[]))")
}
