package schemacheck

import (
	"strings"
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
	name         string // as a model has it
	id           string // as the database has it, the schema included where that is needed
	quoted       string
	number, text string // the types that columns of keys should have
	folds        bool   // names of columns are the same in any case
	columns      []tableColumn
	fixed        string   // what to do instead of altering the table, if it cannot be
	rowid        bool     // SQLite: there is a rowid, and the primary key is not it
	counts       bool     // SQLite: by AUTOINCREMENT
	beside       []string // SQLite: its indexes and triggers
	views        []string // SQLite: those that may read it
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
	uncount   bool   // and should no longer, once the type is changed
	value     bool   // has a default that is not NULL
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

// A dialect reads the catalog of a database, and knows how its tables are altered.
type dialect interface {
	// read returns a table by the name that a model has for it. open returns it by
	// its id. One without columns is none.
	read(c *checker, name string) (*table, error)
	open(c *checker, id string) (*table, error)
	// foreignKeys returns those of t, and those to t.
	foreignKeys(c *checker, t *table) ([]*foreignKey, error)
	// expressions returns the names of the unique indexes of t on expressions.
	expressions(c *checker, t *table) ([]string, error)
	// binds reports whether columns that a foreign key binds to col change with it.
	binds(col *tableColumn, target string) bool
	// is reports whether col is of type target already.
	is(col *tableColumn, target string) bool
	// statements returns how to change places to target. Foreign keys are in their way.
	statements(c *checker, places []place, keys []*foreignKey, target string) (fix string, sql []string, err error)
	// uncount returns how to make p, which should be of type target, count no more.
	uncount(c *checker, p place, target string) (fix string, sql []string, err error)
}

// dialects has them by the names of GORM's dialectors.
var dialects = map[string]dialect{"sqlite": sqlite{}, "postgres": postgres{}, "mysql": mysql{}}

func (t *table) column(name string) *tableColumn {
	for i := range t.columns {
		if c := &t.columns[i]; c.name == name || t.folds && strings.EqualFold(c.name, name) {
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

// canBeRowID reports whether w is a primary key on SQLite that could be the rowid,
// and is not.
func (t *table) canBeRowID(w *wantedColumn) bool {
	f := w.field
	if !t.rowid || w.text || !f.PrimaryKey || len(f.Schema.PrimaryFields) != 1 || !w.filled && !ours(f) {
		return false
	}
	c := t.column(f.DBName)
	return c != nil && c.class == classWide && t.alone(c)
}

// decimalClass returns the class of a decimal number. A precision of 0 is not
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
