package dialect

import (
	"fmt"
	"strconv"
	"strings"
)

// A Dialect is the SQL that a database speaks. The zero value is none of them.
type Dialect uint8

// The dialects.
const (
	// SQLite is SQLite 3 and what speaks its SQL, such as libSQL.
	SQLite Dialect = iota + 1
	// PostgreSQL is PostgreSQL, by any driver.
	PostgreSQL
	// MySQL is MySQL and MariaDB.
	MySQL
)

// Valid reports whether d is one of the constants.
func (d Dialect) Valid() bool { return SQLite <= d && d <= MySQL }

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

// Quote returns a name in quotes. A table may have its schema before it, with a
// dot between. The caller has checked that the name holds no quote.
func (d Dialect) Quote(name string) string {
	mark := d.QuoteMark()
	return mark + strings.ReplaceAll(name, ".", mark+"."+mark) + mark
}

// QuoteMark returns the character that stands around a name.
func (d Dialect) QuoteMark() string {
	if d == MySQL {
		return "`"
	}
	return `"`
}

// Placeholder returns the n-th parameter of a statement, counted from 1.
func (d Dialect) Placeholder(n int) string {
	if d == PostgreSQL {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// Bind writes the parameters of a statement as d has them. In text each one is
// a '?', and no '?' stands for anything else.
func (d Dialect) Bind(text string) string {
	if d != PostgreSQL {
		return text
	}
	parts := strings.Split(text, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString(d.Placeholder(i))
		}
		b.WriteString(part)
	}
	return b.String()
}
