package schemacheck

import (
	"fmt"
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
	dialect *dialect
	quoted  string
	columns []tableColumn
	fixed   string   // what to do instead of altering the table, if it cannot be
	rowid   bool     // SQLite: there is a rowid, and the primary key is not it
	counts  bool     // SQLite: by AUTOINCREMENT
	beside  []string // SQLite: its indexes and triggers
	views   []string // SQLite: those that may read it
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

// canBeRowID reports whether w is the primary key of a table of SQLite's, could be
// the rowid, and is not.
func (t *table) canBeRowID(w *wantedColumn) bool {
	f := w.field
	if !t.rowid || w.text || !f.PrimaryKey || len(f.Schema.PrimaryFields) != 1 || !w.filled && !ours(f) {
		return false
	}
	c := t.column(f.DBName)
	return c != nil && c.class == classWide && t.alone(c)
}

// catalogs read a table by the name of the dialect. A table without columns is
// none.
var catalogs = map[string]func(c *checker, name string) (*table, error){
	"sqlite":   sqliteTable,
	"postgres": postgresTable,
	"mysql":    mysqlTable,
}

// typeParts takes "numeric(20,0)" apart.
func typeParts(typ string) (base string, precision, scale int) {
	base, rest, ok := strings.Cut(typ, "(")
	if ok {
		inside, _, _ := strings.Cut(rest, ")")
		if n, _ := fmt.Sscanf(inside, "%d,%d", &precision, &scale); n == 0 {
			precision = 0
		}
	}
	return strings.TrimSpace(base), precision, scale
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
