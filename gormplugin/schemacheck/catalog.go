package schemacheck

import (
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// A table is a table of the database.
type table struct {
	tableRow
	name    string // as a model has it
	quoted  string
	columns []tableColumn
	number  string // the type that a column of keys should have
	text    string // the same for keys that are text
	folds   bool   // names of columns are the same in any case
	indexed bool   // its unique indexes were looked at
}

// A tableRow is what a dialect's query returns of a table. Fields that a dialect does not
// have stay zero. The tags serve databases with a NamingStrategy that names columns
// otherwise.
type tableRow struct {
	ID     string `gorm:"column:id"`     // the name in the catalog, with a schema where one is needed
	Kind   string `gorm:"column:kind"`   // as in fixes
	Strict bool   `gorm:"column:strict"` // SQLite: takes few types
	RowID  bool   `gorm:"column:row_id"` // SQLite: there is a rowid, and the primary key is not it
}

// A tableColumn is a column of the database. The query of a dialect sets the exported
// fields.
type tableColumn struct {
	Name       string `gorm:"column:name"`
	Type       string `gorm:"column:type"`        // as the database writes it
	Textual    bool   `gorm:"column:textual"`     // compares like text, whatever its type
	Value      string `gorm:"column:value"`       // the default
	HasDefault bool   `gorm:"column:has_default"` // one that is not NULL
	Counter    string `gorm:"column:counter"`     // how the database counts, if it does
	Sequence   string `gorm:"column:sequence"`    // PostgreSQL: the sequence that the column owns, quoted
	Generated  bool   `gorm:"column:is_generated"`
	Kind       string `gorm:"column:kind"`        // as in fixes
	Key        int    `gorm:"column:primary_key"` // SQLite: the place in the primary key, from 1
	quoted     string
	class      class
	length     int // of a text; 0: not limited
}

// A class is the part of a type that matters for keys.
type class int

const (
	classOther   class = iota
	classWide          // holds every key as a number
	classNarrow        // a number that does not hold every key
	classFloat         // one that rounds
	classDecimal       // in a list of types: as its digits say
	classText
)

// decimals is the number of digits of the largest key.
const decimals = 19

// fixes says what to do where no statement helps, by the kind of a table or column.
var fixes = map[string]string{
	"view":          "it is a view: change the table that it reads",
	"foreign table": "it is a foreign table: change the table on its server, then this one",
	"virtual":       "it is a virtual table: create it again with another key",
	"generated":     "it is generated: change its expression with its type",
	"inherited":     "it is inherited: change it in the parent table",
	"partition key": "the table is partitioned by it: make a table of the right type and move the rows",
	"float":         "it rounds, so its values may be wrong by now: add a column beside it, fill that from where they are right, and exchange the two",
	"other":         "no change of type converts its values: add a column beside it, fill that, and exchange the two, as docs/migrating.md does with UUIDs",
}

func (t *table) column(name string) *tableColumn {
	for i := range t.columns {
		if c := &t.columns[i]; c.Name == name || t.folds && strings.EqualFold(c.Name, name) {
			return c
		}
	}
	return nil
}

// alone reports whether c is the whole primary key on SQLite.
func (t *table) alone(c *tableColumn) bool {
	return c.Key > 0 && !slices.ContainsFunc(t.columns, func(o tableColumn) bool { return o.Key > 0 && o.Name != c.Name })
}

func (c *tableColumn) unsigned() bool { return strings.Contains(c.Type, "unsigned") }

// longEnough reports whether c, a text, holds every key.
func (c *tableColumn) longEnough() bool { return c.length == 0 || c.length >= decimals }

// classify looks typ up in classes, and returns the length of a text.
func classify(typ string, classes map[string]class) (class, int) {
	base, precision, scale := dialect.Parts(typ)
	switch found := classes[base]; {
	case found == classText:
		return classText, precision
	case found != classDecimal:
		return found, 0
	case scale != 0: // a key comes back as 1.00, or, below zero, rounded
		return classOther, 0
	case precision > 0 && precision < decimals:
		return classNarrow, 0
	default:
		return classWide, 0
	}
}

// finish sets the fields that follow from what the catalog says of a column.
func (c *checker) finish(col *tableColumn) {
	col.quoted = c.quoteColumn(col.Name)
	if col.class, col.length = c.database.class(col.Type); col.Textual && col.class == classOther {
		col.class = classText
	}
	if strings.Contains(strings.ToLower(col.Value), "nextval(") && col.Counter == "" {
		col.Counter = "DEFAULT " + col.Value
	}
	switch {
	case col.Kind != "":
	case col.Generated:
		col.Kind = "generated"
	case col.class == classFloat:
		col.Kind = "float"
	case col.class == classOther:
		col.Kind = "other"
	}
}

// ask runs a query of a dialect about t. Its parameters are @quoted, the name of t as SQL,
// and @space and @name, its parts.
func (c *checker) ask(t *table, query string) *gorm.DB {
	space, name, qualified := strings.Cut(t.name, ".")
	if !qualified {
		space, name = c.database.space, t.name
	}
	return c.query(t.name, query, map[string]any{"quoted": t.quoted, "space": space, "name": name})
}

// describe reads a table from the catalog, or returns nil if there is none.
func (c *checker) describe(name, quoted string) (*table, error) {
	t := &table{name: name, quoted: quoted, number: c.database.number, text: c.database.text, folds: c.database.folds}
	if err := c.ask(t, c.database.table).Scan(&t.tableRow).Error; err != nil || t.ID == "" {
		return nil, err
	}
	if t.Strict { // bigint is none of the types that it takes
		t.number = "integer"
	}
	err := c.ask(t, c.database.columns).Scan(&t.columns).Error
	for i := range t.columns {
		c.finish(&t.columns[i])
	}
	if err == nil && c.database.complete != nil {
		err = c.database.complete(c, t)
	}
	return t, err
}

// load returns a table by the name in a model or by its ID, or nil if there is none.
func (c *checker) load(name, quoted string) (*table, error) {
	if t, ok := c.tables[name]; ok {
		return t, nil
	}
	t, err := c.describe(name, quoted)
	if err != nil {
		return nil, err
	}
	if t != nil {
		if same := c.tables[t.ID]; same != nil { // by another name
			t = same
		}
		c.tables[t.ID] = t
	}
	c.tables[name] = t
	return t, nil
}

// A place is a column of a table.
type place struct {
	*table
	col *tableColumn
}

func (p place) String() string { return p.name + "." + p.col.Name }

// place returns a column of a table by its ID.
func (c *checker) place(id, column string) (p place, err error) {
	quoted := id // by the catalog
	if !c.database.quotedIDs {
		quoted = c.quoteTable(id)
	}
	if p.table, err = c.load(id, quoted); p.table != nil {
		p.col = p.column(column)
	}
	return p, err
}

// A foreignKey is a pair of columns that a foreign key of the database binds. A foreign key
// of several columns has several pairs.
type foreignKey struct {
	Name   string `gorm:"column:name"`   // quoted
	Child  string `gorm:"column:child"`  // the ID of a table
	Parent string `gorm:"column:parent"` // the ID of a table
	From   string `gorm:"column:from_column"`
	To     string `gorm:"column:to_column"`

	// What PostgreSQL says: FOREIGN KEY (…) REFERENCES …, the quoted comment, and the
	// changed states of its triggers as rows of VALUES. The last two may be empty.
	Definition string `gorm:"column:definition"`
	Comment    string `gorm:"column:comment"`
	Triggers   string `gorm:"column:triggers"`
}

// binds reports whether p is one of the two columns.
func (k *foreignKey) binds(p place) bool {
	return k.Child == p.ID && p.column(k.From) == p.col || k.Parent == p.ID && p.column(k.To) == p.col
}

// foreignKeys returns the foreign keys of all tables that may matter.
func (c *checker) foreignKeys() ([]foreignKey, error) {
	if c.keys != nil {
		return c.keys, nil
	}
	var spaces []string // of MySQL
	for id := range c.tables {
		space, _, _ := strings.Cut(id, ".")
		spaces = append(spaces, space)
	}
	err := c.query(c.wanted[0].table(), c.database.foreignKeys, map[string]any{"spaces": spaces}).Scan(&c.keys).Error
	return c.keys, err
}
