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

// A unique is a unique key: columns in which no two rows of the table are equal.
type unique struct {
	name    string
	columns []uniqueColumn
	where   clause.Expression // the rows that a partial key covers; nil: all
	// hidden reports that the columns do not tell which rows conflict, as in an index on an
	// expression. The row that conflicts with it cannot be found.
	hidden bool
	index  string // the name of the index, if a look-up has to force it
	// nullsEqual reports that NULL equals NULL: NULLS NOT DISTINCT of PostgreSQL.
	nullsEqual bool
}

type uniqueColumn struct {
	field   *schema.Field // nil if the model has none
	name    string
	typ     string // as the catalog writes it; "" if the catalog was not asked
	collate string // the collation to compare by, as SQL, if not the column's own
	prefix  int    // how many characters are compared; 0: all
	form    dialect.Form
	plain   plainness
}

// covers reports whether u consists of the columns of list, in any order.
func (u *unique) covers(list []*schema.Field) bool {
	return !u.hidden && len(u.columns) == len(list) &&
		!slices.ContainsFunc(u.columns, func(c uniqueColumn) bool { return !slices.Contains(list, c.field) })
}

// uniqueOf returns the unique key of fields, for all rows. It takes what list knows of
// these columns.
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

// declaredUniques returns the unique keys that the tags of s declare, without the primary
// key. It parses the model a second time, because Schema.ParseIndexes writes to the fields,
// and those of s are shared.
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

// A table is what the catalog says of the table of an upsert.
type table struct {
	uniques []unique // with the primary key
	// alone reports that an upsert meets only rows of the table itself, and a SELECT would
	// read the tables that inherit from it as well. The rows of a partitioned table are in
	// its partitions.
	alone bool
	// tidb reports that the server is TiDB, which has no shared locks on rows and joins binary
	// strings wrongly.
	tidb bool
}

// A tableName is the name of a table in a statement, without an alias.
type tableName struct {
	quoted       string // as SQL
	schema, name string
}

// tableNameOf returns the name at the beginning of the SQL text.
func tableNameOf(text string) tableName {
	tokens := tokensOf(text)
	if i := slices.IndexFunc(tokens, func(token string) bool { return strings.TrimSpace(token) == "" }); i >= 0 {
		tokens = tokens[:i] // an alias follows
	}
	t := tableName{quoted: strings.Join(tokens, ""), name: unquote(tokens[len(tokens)-1])}
	if len(tokens) > 2 {
		t.schema = unquote(tokens[len(tokens)-3])
	}
	return t
}

// catalog returns what the catalog says of the table of the statement. It is read in the
// statement that needs it and never kept for another one, because a new release may alter the
// table at any time, and by an old type or without a new index a row would get the key of
// another. A table that the catalog does not list, such as a view, has the unique keys of the
// model.
func (c *creation) catalog() (*table, error) {
	if c.listed != nil {
		return c.listed, nil
	}
	q := c.query()
	q.write(q.table())
	name := tableNameOf(q.SQL.String())
	t, err := c.readCatalog(name)
	if err != nil {
		return nil, err
	}
	listed := len(t.uniques) > 0
	if !listed {
		for _, u := range c.model.indexes() {
			u.columns = slices.Clone(u.columns)
			t.uniques = append(t.uniques, u)
		}
	}
	// The primary key of SQLite may be the rowid, which is not an index.
	primary := c.model.schema.PrimaryFields
	if !slices.ContainsFunc(t.uniques, func(u unique) bool { return u.where == nil && u.covers(primary) }) {
		t.uniques = append([]unique{uniqueOf(nil, primary)}, t.uniques...)
	}
	if !listed && c.database.describe != nil {
		if err = c.database.describe(c.query(), name, t.uniques); err != nil {
			return nil, err
		}
	}
	c.listed = t
	return t, nil
}

// readCatalog asks the catalog for the unique keys of a table. The catalog's answer has a row
// for each column: index, column, collation, length of the prefix, type, condition, whether
// the column is NOT NULL, whether the key is hidden, whether NULL equals NULL, whether the
// table stands alone, and whether the server is TiDB.
func (c *creation) readCatalog(name tableName) (*table, error) {
	t, d := &table{}, c.database
	if d.uniques == "" {
		return t, nil
	}
	q := c.query()
	q.write(d.uniques)
	q.Vars = d.args(name)
	err := q.rows(func(found *sql.Rows) error {
		var index, where string
		var c uniqueColumn
		var notNull, hidden, nullsEqual bool
		if err := found.Scan(&index, &c.name, &c.collate, &c.prefix, &c.typ, &where, &notNull, &hidden, &nullsEqual, &t.alone, &t.tidb); err != nil {
			return err
		}
		if n := len(t.uniques); n == 0 || t.uniques[n-1].name != index {
			t.uniques = append(t.uniques, unique{name: index})
		}
		u := &t.uniques[len(t.uniques)-1]
		u.hidden, u.nullsEqual = u.hidden || hidden, nullsEqual
		if where != "" && d.condition != nil {
			where = d.condition(where)
		}
		if where != "" {
			u.where = clause.Expr{SQL: where}
		}
		c.field, c.form = fieldOf(q.Schema, c.name), dialect.FormOf(d.dialect, c.typ, c.collate)
		c.form.NotNull = notNull
		if d.stores != nil {
			c.plain = d.stores(&c)
		}
		if d.forcesIndex {
			u.index, c.collate = index, "" // the form compares by the collation
		}
		u.columns = append(u.columns, c)
		return nil
	})
	return t, err
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
