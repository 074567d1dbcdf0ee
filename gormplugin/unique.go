package gormplugin

import (
	"database/sql"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A unique is a set of columns that no two rows share.
type unique struct {
	name    string
	columns []uniqueColumn
	where   clause.Expression // the rows that it covers; nil: all
	// hidden is true if the columns do not tell which rows are equal, as in an index on
	// an expression. A row that it met cannot be found.
	hidden bool
	index  string // the name by which MySQL can be told to use it
	// nullsEqual is true if NULL equals NULL: NULLS NOT DISTINCT of PostgreSQL.
	nullsEqual bool
}

type uniqueColumn struct {
	field   *schema.Field
	name    string // of the column, which may have no field
	typ     string // as the catalog writes it; empty if it was not asked
	collate string // SQL, if not that of the column
	prefix  int    // how many characters count; 0: all
	form    dialect.Form
	plain   plainness
}

// joins reports whether MySQL can join values with u.
func (u *unique) joins() bool {
	return !slices.ContainsFunc(u.columns, func(c uniqueColumn) bool { return !c.form.Joins || c.prefix > 0 })
}

// covers reports whether u is made of the columns of list, in any order.
func (u *unique) covers(list []*schema.Field) bool {
	return !u.hidden && len(u.columns) == len(list) &&
		!slices.ContainsFunc(u.columns, func(c uniqueColumn) bool { return !slices.Contains(list, c.field) })
}

// uniqueOf returns the unique key of fields, for all rows. It takes the columns of the
// one in list, if there is one.
func uniqueOf(list []unique, fields []*schema.Field) unique {
	for _, u := range list {
		if u.covers(fields) {
			u.name, u.where = "", nil
			return u
		}
	}
	var u unique
	for _, f := range fields {
		u.columns = append(u.columns, uniqueColumn{field: f, name: f.DBName})
	}
	return u
}

// declaredUniques returns the unique keys that the tags of s declare, without the
// primary key.
//
// It reads them from a second parse of the model. Schema.ParseIndexes writes to the
// fields, and those of s are shared.
func declaredUniques(s *schema.Schema, namer schema.Namer) []unique {
	var list []unique
	for _, name := range s.DBNames {
		if f := s.FieldsByDBName[name]; f.Unique && (!f.PrimaryKey || len(s.PrimaryFields) > 1) {
			list = append(list, unique{columns: []uniqueColumn{{field: f, name: name}}})
		}
	}
	own, err := schema.ParseWithSpecialTableName(reflect.New(s.ModelType).Interface(), &sync.Map{}, namer, s.Table)
	if err != nil {
		return list
	}
	for _, index := range own.ParseIndexes() {
		if !strings.EqualFold(index.Class, "UNIQUE") {
			continue
		}
		u := unique{name: index.Name}
		if index.Where != "" {
			u.where = clause.Expr{SQL: index.Where}
		}
		for _, option := range index.Fields {
			f := s.FieldsByDBName[option.DBName]
			u.hidden = u.hidden || f == nil || option.Expression != ""
			u.columns = append(u.columns, uniqueColumn{field: f, name: option.DBName, collate: option.Collate, prefix: option.Length})
		}
		list = append(list, u)
	}
	return list
}

// uniqueCatalogs holds the queries for the unique keys of a table. They return one row
// for each column. args gets the quoted table, its schema, which may be empty, and its
// name.
var uniqueCatalogs = map[string]struct {
	sql  string
	args func(quoted, space, name string) []any
}{
	// DO NOTHING also goes by exclusion constraints, but not by deferred ones.
	postgresName: {`SELECT c.relname, COALESCE(a.attname, ''),
		COALESCE((SELECT quote_ident(n.nspname) || '.' || quote_ident(o.collname) FROM pg_catalog.pg_collation o
			JOIN pg_catalog.pg_namespace n ON n.oid = o.collnamespace WHERE o.oid = k.coll AND k.coll <> a.attcollation), ''),
		0, COALESCE(format_type(a.atttypid, a.atttypmod), ''), COALESCE(pg_get_expr(i.indpred, i.indrelid), ''), false,
		a.attname IS NULL OR a.attgenerated <> '' OR i.indisexclusion, COALESCE(to_jsonb(i)->>'indnullsnotdistinct' = 'true', false)
		FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
		CROSS JOIN LATERAL unnest(CAST(i.indkey AS int2[]), CAST(i.indcollation AS oid[])) WITH ORDINALITY AS k (num, coll, place)
		LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num AND k.num <> 0
		WHERE i.indrelid = to_regclass($1) AND (i.indisunique OR i.indisexclusion) AND i.indimmediate AND k.place <= i.indnkeyatts
		ORDER BY c.oid, k.place`,
		func(quoted, _, _ string) []any { return []any{quoted} }},
	// Not joined by the names, see mysqlTable.
	mysqlName: {`SELECT s.index_name, COALESCE(s.column_name, ''),
		COALESCE(c.collation_name, ''), COALESCE(s.sub_part, 0), c.column_type, '', c.is_nullable = 'NO',
		s.column_name IS NULL OR COALESCE(c.generation_expression, '') <> '', false
		FROM information_schema.statistics s CROSS JOIN information_schema.columns c
		WHERE s.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND s.table_name = ? AND s.non_unique = 0
		AND c.table_schema = COALESCE(NULLIF(?, ''), DATABASE()) AND c.table_name = ?
		AND (c.column_name = s.column_name OR s.column_name IS NULL AND c.ordinal_position = 1)
		ORDER BY s.index_name, s.seq_in_index`,
		func(_, space, name string) []any { return []any{space, name, space, name} }},
	sqliteName: {`SELECT l.name, COALESCE(k.name, ''), '"' || k.coll || '"', 0, COALESCE((SELECT x.type FROM pragma_table_xinfo(?, ?) x WHERE x.cid = k.cid), ''),
		CASE WHEN l.partial AND ? = 'main' THEN (SELECT m.sql FROM sqlite_master m WHERE m.type = 'index' AND m.name = l.name) ELSE '' END, false,
		l.partial AND ? <> 'main' OR k.cid = -2 OR EXISTS (SELECT 1 FROM pragma_table_xinfo(?, ?) x WHERE x.cid = k.cid AND x.hidden > 1), false
		FROM pragma_index_list(?, ?) l CROSS JOIN pragma_index_xinfo(l.name, ?) k WHERE l."unique" AND k.key
		ORDER BY l.seq, k.seqno`,
		func(_, space, name string) []any {
			if space == "" {
				space = "main"
			}
			return []any{name, space, space, space, name, space, name, space, space}
		}},
}

// storedUniques returns the unique keys of the table, with the primary key, as the
// database has them. If it has none, as for a view, it returns those of the model. They
// are kept, until a row is not found by them.
func (r *reread) storedUniques() ([]unique, error) {
	q := r.query()
	q.write(q.table())
	quoted := q.SQL.String()
	if list, ok := r.model.stored.Load(quoted); ok {
		return list.([]unique), nil
	}
	r.asked = true
	tokens := tokensOf(quoted)
	if i := slices.IndexFunc(tokens, func(token string) bool { return strings.TrimSpace(token) == "" }); i >= 0 {
		tokens = tokens[:i] // an alias follows
	}
	list, err := q.catalogUniques(tokens)
	if err != nil {
		return nil, err
	}
	known := len(list) > 0
	if !known {
		for _, u := range r.model.indexes() {
			u.columns = slices.Clone(u.columns)
			list = append(list, u)
		}
	}
	// On SQLite the primary key may be the rowid, which is not an index.
	primary := r.model.schema.PrimaryFields
	if !slices.ContainsFunc(list, func(u unique) bool { return u.where == nil && u.covers(primary) }) {
		list = append([]unique{uniqueOf(nil, primary)}, list...)
	}
	if !known && r.db.Name() == mysqlName {
		if err = r.query().describe(strings.Join(tokens, ""), list); err != nil {
			return nil, err
		}
	}
	r.model.stored.Store(quoted, list)
	return list, nil
}

// forgetUniques makes storedUniques ask the catalog again.
func (r *reread) forgetUniques() {
	q := r.query()
	q.write(q.table())
	r.model.stored.Delete(q.SQL.String())
}

// catalogUniques reads the unique keys of a table from the catalog of the database.
func (q *query) catalogUniques(table []string) (list []unique, err error) {
	database := q.Dialector.Name()
	catalog, ok := uniqueCatalogs[database]
	if !ok {
		return nil, nil
	}
	name, space := unquote(table[len(table)-1]), ""
	if len(table) > 2 {
		space = unquote(table[len(table)-3])
	}
	q.SQL.Reset()
	q.write(catalog.sql)
	q.Vars = catalog.args(strings.Join(table, ""), space, name)
	err = q.rows(func(found *sql.Rows) error {
		var index, where string
		var c uniqueColumn
		var notNull, hidden, nullsEqual bool
		if err := found.Scan(&index, &c.name, &c.collate, &c.prefix, &c.typ, &where, &notNull, &hidden, &nullsEqual); err != nil {
			return err
		}
		if len(list) == 0 || list[len(list)-1].name != index {
			list = append(list, unique{name: index})
		}
		u := &list[len(list)-1]
		u.hidden, u.nullsEqual = u.hidden || hidden, nullsEqual
		if where != "" {
			if database == sqliteName { // the whole statement
				words := tokensOf(where)
				begin := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, "WHERE") })
				where = strings.Join(words[begin+1:], "")
			}
			u.where = clause.Expr{SQL: where}
		}
		c.field, c.form = fieldOf(q.Schema, c.name), dialect.FormOf(dialects[database], c.typ, c.collate)
		c.form.NotNull, c.plain = notNull, plainnessOf(database, &c)
		if database == mysqlName {
			u.index, c.collate = index, "" // which is that of the column
		}
		u.columns = append(u.columns, c)
		return nil
	})
	return list, err
}

// describe adds the types of the columns to the unique keys of a model. On MySQL a table
// that its catalog does not have, such as a temporary one, has them all the same.
func (q *query) describe(table string, list []unique) error {
	q.write("SHOW FULL COLUMNS FROM ", table)
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
					c.typ, c.form = typ, dialect.FormOf(dialects[mysqlName], typ, collation.String)
					c.form.NotNull = null == "NO"
				}
			}
		}
		return nil
	})
}

// fieldOf returns the field of a column, or nil if the model has none.
func fieldOf(s *schema.Schema, column string) *schema.Field {
	if f := s.FieldsByDBName[column]; f != nil {
		return f
	}
	for name, f := range s.FieldsByDBName { // SQLite and MySQL ignore case
		if strings.EqualFold(name, column) {
			return f
		}
	}
	return nil
}
