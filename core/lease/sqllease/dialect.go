package sqllease

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
)

// A Dialect is the SQL that a database speaks. The zero value is none of them: a
// guess from the driver's type would be wrong for the first wrapper around it.
type Dialect uint8

// The dialects.
const (
	// SQLite is SQLite 3.16 or newer.
	SQLite Dialect = iota + 1
	// PostgreSQL is PostgreSQL 9.6 or newer, by any driver.
	PostgreSQL
	// MySQL is MySQL 5.7 and MariaDB 10.3, or newer.
	MySQL
)

// String returns the name of d, or "Dialect(n)" for a number that is none.
func (d Dialect) String() string {
	switch d {
	case SQLite:
		return "SQLite"
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// bind writes the parameters of a statement, each a '?' in text, as d has them.
// No statement of this package has a '?' for another reason.
func (d Dialect) bind(text string) string {
	if d != PostgreSQL {
		return text
	}
	parts := strings.Split(text, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

// quote puts a checked name, with its schema if it has one, into quotes: any word
// is then a name, and it keeps its case.
func (d Dialect) quote(name string) string {
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(name, ".", mark+"."+mark) + mark
}

const (
	metaSuffix = "_meta"
	// PostgreSQL takes 63 bytes and cuts what is longer, to the name of another
	// table in the worst case; MySQL takes 64.
	maxPart  = 63
	maxTable = maxPart - len(metaSuffix)
)

// checkTable refuses everything but plain names. Quoted, more would work, but a
// space or a quote in a table's name is a mistake or an attack.
func checkTable(name string) error {
	schema, table, ok := strings.Cut(name, ".")
	if !ok {
		schema, table = "x", name // no schema has nothing wrong
	}
	if plain(schema, maxPart) && plain(table, maxTable) {
		return nil
	}
	shown := name[:min(len(name), 64)]
	return &lease.ValueError{Package: "sqllease", Name: "Config.Table", Value: strconv.Quote(shown),
		Want: fmt.Sprintf("1..%d letters, digits and _ of ASCII, the first no digit; before it, if need be, a schema of the same form and a dot", maxTable)}
}

func plain(name string, longest int) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= longest
}
