package dialect

import (
	"fmt"
	"strconv"
	"strings"
)

// A Dialect is the SQL of a database. The zero value is not a valid one.
type Dialect uint8

// The dialects.
const (
	// SQLite is SQLite 3, and libSQL and others that share its SQL.
	SQLite Dialect = iota + 1
	// PostgreSQL is PostgreSQL, by any driver.
	PostgreSQL
	// MySQL is MySQL and MariaDB.
	MySQL
	// DuckDB, ClickHouse and BigQuery have copies of tables, so only keysql writes their SQL. They
	// are not Valid.
	DuckDB
	ClickHouse
	BigQuery
)

// Valid reports whether d is a database that the application writes to: SQLite, PostgreSQL or
// MySQL.
func (d Dialect) Valid() bool { return SQLite <= d && d <= MySQL }

// String returns the name of d, or "Dialect(n)" for a number without a name.
func (d Dialect) String() string {
	if SQLite <= d && d <= BigQuery {
		return [...]string{SQLite: "SQLite", PostgreSQL: "PostgreSQL", MySQL: "MySQL", DuckDB: "DuckDB", ClickHouse: "ClickHouse", BigQuery: "BigQuery"}[d]
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// Quote quotes a name, which may be qualified, as in schema.table. The caller has checked that it
// contains no quotation mark.
func (d Dialect) Quote(name string) string {
	mark := d.QuoteMark()
	return mark + strings.ReplaceAll(name, ".", mark+"."+mark) + mark
}

// QuoteMark returns the character that encloses a name.
func (d Dialect) QuoteMark() string {
	switch d {
	case MySQL, ClickHouse, BigQuery:
		return "`"
	}
	return `"`
}

// Placeholder returns the n-th parameter of a statement, counted from 1.
func (d Dialect) Placeholder(n int) string { return string(d.AppendPlaceholder(nil, n)) }

// AppendPlaceholder appends Placeholder(n).
func (d Dialect) AppendPlaceholder(b []byte, n int) []byte {
	if d == PostgreSQL {
		return strconv.AppendInt(append(b, '$'), int64(n), 10)
	}
	return append(b, '?')
}

// Bind replaces every '?' in text with d's placeholders. Each '?' must be a parameter.
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
