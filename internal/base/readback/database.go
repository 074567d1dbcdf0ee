package readback

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// A database holds everything in which looks differ between the databases. The zero value is
// another database, whose catalog is not read.
type database struct {
	// exact is the condition that the column "@" has the very value "?", which the two are by the
	// rules of any column and index then. "": values are not compared as they were sent.
	exact string

	ignoresCase bool // in the names of columns
	nullsEqual  bool // in some unique keys NULL equals NULL
	inherits    bool // a SELECT also reads the tables that inherit from the one it names
	castsResult bool // results are cast, so that a prepared query outlives a change of type
	forcesIndex bool // a look compares by the column's collation
	locks       bool // a look locks, because a plain SELECT may read an old snapshot

	// uniques asks the catalog for the columns of the unique keys of a table: index, column,
	// collation, length of the prefix, type, condition, whether the column is NOT NULL, whether
	// the key is hidden, whether NULL equals NULL, the quoted names for table.nulls, whether the table
	// stands alone, and whether the server is TiDB. args returns its parameters.
	uniques string
	args    func(t TableName) []any
	// condition returns the condition of a partial unique key from what uniques returns for it. If
	// nil, the two are the same.
	condition func(text string) string
	// describe asks for the columns of a table of which the catalog lists no unique key, or not
	// that of the target, see finder.describe. It may be nil.
	describe func(q *Text, t TableName)
	// hides asks whether row level security is active. "": there is none.
	hides string

	// stores says which values a column stores unchanged, so that they can be listed. If nil, it
	// stores none so.
	stores func(c *Column) verbatim
	// sends reports whether the driver sends v as database/sql would. If nil, it does.
	sends func(v any) bool
	// listSize is how many values a list has, and listed writes the tables and the condition of
	// the query for them, which are those of one row after another. With listPlaces the query returns
	// the place, from 1 on, of each row that it finds a stored one for.
	listSize   int
	listed     func(l *list, values []any)
	listPlaces bool
}

var databases = map[dialect.Dialect]*database{dialect.SQLite: &sqlite, dialect.PostgreSQL: &postgreSQL, dialect.MySQL: &mySQL}

func databaseOf(d dialect.Dialect) *database {
	if known := databases[d]; known != nil {
		return known
	}
	return &database{}
}

// same reports whether two names are of one column.
func (d *database) same(name, other string) bool {
	return name == other || d.ignoresCase && strings.EqualFold(name, other)
}

var sqlite = database{
	exact:       "@ = ? AND @ = ? COLLATE BINARY",
	ignoresCase: true,
	uniques: `SELECT l.name, COALESCE(k.name, ''), '"' || k.coll || '"', 0, COALESCE((SELECT x.type FROM pragma_table_xinfo(?, ?) x WHERE x.cid = k.cid), ''),
		CASE WHEN l.partial AND ? = 'main' THEN (SELECT m.sql FROM sqlite_master m WHERE m.type = 'index' AND m.name = l.name) ELSE '' END, false,
		l.partial AND ? <> 'main' OR k.cid = -2 OR EXISTS (SELECT 1 FROM pragma_table_xinfo(?, ?) x WHERE x.cid = k.cid AND x.hidden > 1), false,
		COALESCE((SELECT group_concat('"' || replace(x.name, '"', '""') || '"', ' ') FROM pragma_table_xinfo(?, ?) x WHERE x.dflt_value IS NULL AND x.hidden = 0 AND x.pk = 0), ''),
		false, false
		FROM pragma_index_list(?, ?) l CROSS JOIN pragma_index_xinfo(l.name, ?) k WHERE l."unique" AND k.key
		ORDER BY l.seq, k.seqno`,
	args: func(t TableName) []any {
		if t.Schema == "" {
			t.Schema = "main"
		}
		return []any{t.Name, t.Schema, t.Schema, t.Schema, t.Name, t.Schema, t.Name, t.Schema, t.Name, t.Schema, t.Schema}
	},
	condition: func(text string) string { // from CREATE UNIQUE INDEX … WHERE …
		words := Tokens(text)
		where := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, "WHERE") })
		return strings.Join(words[where+1:], "")
	},
	// The types of SQLite convert values, but in a comparison as in an insert.
	stores:     func(*Column) verbatim { return verbatimText | verbatimNumbers },
	listSize:   valuesPerArray,
	listed:     sqliteList,
	listPlaces: true,
}

// sqliteList joins the values, sent as JSON, so that SQLite compares them by the rules of the
// columns and the texts need not come back.
func sqliteList(l *list, values []any) {
	listed := l.keys[0].Columns
	// An operator and a function take value's affinity away, with which a number would equal no text.
	// SQLite keeps to the order of a CROSS JOIN.
	l.write(" FROM (SELECT key + 1 AS ", placeColumn)
	if len(listed) == 1 {
		l.write(", +value AS ", valueColumn, "0")
	} else {
		for n := range listed {
			number := strconv.Itoa(n)
			l.write(", json_extract(value, '$[", number, "]') AS ", valueColumn, number)
		}
	}
	l.write(" FROM json_each(")
	l.bind(jsonArray(values, len(listed)))
	l.write(")) AS ", valuesName, " CROSS JOIN ", l.f.Table, " WHERE ")
	l.equalsListed()
}

// jsonArray returns texts and integers as a JSON array, or as one of arrays of width values.
func jsonArray(values []any, width int) string {
	var list any = values
	if width > 1 {
		list = slices.Collect(slices.Chunk(values, width))
	}
	text, _ := json.Marshal(list) // of texts and integers: no error
	return string(text)
}

var postgreSQL = database{
	// COALESCE gives the parameter the type of the column. Values of one text are one value, also
	// where a collation takes different texts for equal.
	exact:       `@ = ? AND CAST(@ AS text) COLLATE "C" = CAST(COALESCE(?, @) AS text) COLLATE "C"`,
	nullsEqual:  true,
	inherits:    true,
	castsResult: true,
	// DO NOTHING also meets rows by exclusion constraints, but not by deferred ones. A unique key
	// of a table covers its partitions, and no other table that inherits from it.
	uniques: `SELECT c.relname, COALESCE(a.attname, ''),
		COALESCE((SELECT quote_ident(n.nspname) || '.' || quote_ident(o.collname) FROM pg_catalog.pg_collation o
			JOIN pg_catalog.pg_namespace n ON n.oid = o.collnamespace WHERE o.oid = k.coll AND k.coll <> a.attcollation), ''),
		0, COALESCE(format_type(a.atttypid, a.atttypmod), ''), COALESCE(pg_get_expr(i.indpred, i.indrelid), ''), false,
		a.attname IS NULL OR a.attgenerated <> '' OR i.indisexclusion, COALESCE(to_jsonb(i)->>'indnullsnotdistinct' = 'true', false),
		COALESCE((SELECT string_agg(quote_ident(n.attname), ' ') FROM pg_catalog.pg_attribute n JOIN pg_catalog.pg_type y ON y.oid = n.atttypid
			WHERE n.attrelid = t.oid AND n.attnum > 0 AND NOT n.attisdropped AND NOT n.atthasdef AND n.attidentity = '' AND y.typtype <> 'd'
			AND t.relkind <> 'p'
			AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_trigger g WHERE g.tgrelid = t.oid AND g.tgtype & 7 = 7)), ''),
		t.relkind <> 'p', false
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
		CROSS JOIN LATERAL unnest(CAST(i.indkey AS int2[]), CAST(i.indcollation AS oid[])) WITH ORDINALITY AS k (num, coll, place)
		LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num AND k.num <> 0
		WHERE i.indrelid = to_regclass($1) AND (i.indisunique OR i.indisexclusion) AND i.indimmediate AND k.place <= i.indnkeyatts
		ORDER BY c.oid, k.place`,
	args:  func(t TableName) []any { return []any{t.Quoted} },
	hides: "SELECT pg_catalog.row_security_active(CAST(pg_catalog.to_regclass($1) AS OID))",
	describe: func(q *Text, t TableName) {
		q.write("SELECT attname, format_type(atttypid, atttypmod), NULL, '' FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0")
		q.Args = []any{t.Quoted}
	},
	stores: func(c *Column) verbatim {
		switch base, _, _ := strings.Cut(c.typ, "("); {
		case strings.HasSuffix(c.typ, "[]"):
			return 0
		case base == "bigint" || base == "integer" || base == "smallint":
			return verbatimNumbers
		case base == "text" || base == "character varying":
			return verbatimText
		default:
			return 0
		}
	},
	sends: func(v any) bool { // pgx has its own ways for some types
		k, _ := pgtext.KindOf(reflect.TypeOf(v))
		return k != 0
	},
	listSize:   valuesPerArray,
	listed:     postgresList,
	listPlaces: true,
}

// postgresList joins the values, sent as an array of each column. A plan that PostgreSQL has kept from
// when the table was small may read the whole table. In a join it then compares by hashes. It would
// compare each row with each value of "= ANY", and even of "IN (SELECT unnest", if it took the table
// for one row: 15 seconds for 10,000 values, until the next ANALYZE.
func postgresList(l *list, values []any) {
	listed := l.keys[0].Columns
	l.write(" FROM unnest(")
	for column := range listed {
		typ, name := pgtext.Text, "text"
		if _, number := values[column].(int64); number {
			typ, name = pgtext.Int8, "bigint"
		}
		var array []byte
		for n := column; n < len(values); n += len(listed) {
			array, _ = typ.AppendValue(append(array, ','), values[n], pgtext.Array)
		}
		array[0] = '{'
		l.write([...]string{"", ", "}[min(column, 1)], "CAST(")
		l.bind(string(append(array, '}')))
		l.write(" AS ", name, "[])")
	}
	l.write(") WITH ORDINALITY AS ", valuesName, " (")
	for n := range listed {
		l.write(valueColumn, strconv.Itoa(n), ", ")
	}
	l.write(placeColumn, ") JOIN ", l.f.only(), l.f.Table, " ON ")
	l.equalsListed()
}

// indexedColumn is NULL if an index is on an expression, for which TiDB writes the text NULL.
const indexedColumn = "NULLIF(s.column_name, IF(VERSION() LIKE '%TiDB%', 'NULL', ''))"

// mySQL is MySQL, MariaDB and TiDB.
var mySQL = database{
	ignoresCase: true,
	forcesIndex: true,
	locks:       true,
	// Two views that are joined by the names of their tables are read whole.
	uniques: `SELECT s.index_name, COALESCE(` + indexedColumn + `, ''),
		COALESCE(c.collation_name, ''), COALESCE(s.sub_part, 0), c.column_type, '', c.is_nullable = 'NO',
		` + indexedColumn + ` IS NULL OR COALESCE(c.generation_expression, '') <> '', false, '', false, VERSION() LIKE '%TiDB%'
		FROM information_schema.statistics s CROSS JOIN information_schema.columns c
		WHERE s.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND s.table_name = ? AND s.non_unique = 0
		AND c.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND c.table_name = ?
		AND (c.column_name = s.column_name OR ` + indexedColumn + ` IS NULL AND c.ordinal_position = 1)
		ORDER BY s.index_name, s.seq_in_index`,
	args:     func(t TableName) []any { return []any{t.Schema, t.Name, t.Schema, t.Name} },
	describe: func(q *Text, t TableName) { q.write("SHOW FULL COLUMNS FROM ", t.Quoted) }, // which, unlike the catalog, shows temporary tables
	// A text that has to be converted to the character set of its column cannot use the index.
	stores: func(c *Column) verbatim {
		switch base, _, _ := strings.Cut(c.typ, "("); {
		case c.form.Whole:
			return verbatimNumbers
		case (base == "char" || base == "varchar") && strings.HasPrefix(c.Collate, "utf8mb4_"):
			return verbatimText
		default:
			return 0
		}
	},
	listSize: valuesPerIn,
	listed: func(l *list, values []any) {
		l.write(" FROM ", l.f.Table)
		l.force(&l.keys[0])
		l.write(" WHERE ")
		l.comparedColumns()
		l.write(" IN (")
		width := len(l.keys[0].Columns)
		for n, v := range values {
			if n > 0 {
				l.write(", ")
			}
			if width > 1 && n%width == 0 {
				l.write("(")
			}
			l.bind(v)
			if width > 1 && n%width == width-1 {
				l.write(")")
			}
		}
		l.write(")")
	},
}

// force makes a look use the index of key.
func (t *Text) force(key *Key) { t.write(" FORCE INDEX (", t.s.Quote(key.index), ")") }
