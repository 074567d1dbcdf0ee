package sqllease

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/dialect"
)

// A Dialect is the SQL that a database speaks. The zero value is none of them: a
// guess from the driver's type would be wrong for the first wrapper around it.
type Dialect = dialect.Dialect

// The dialects.
const (
	// SQLite is SQLite 3.16 or newer.
	SQLite = dialect.SQLite
	// PostgreSQL is PostgreSQL 9.6 or newer, by any driver.
	PostgreSQL = dialect.PostgreSQL
	// MySQL is MySQL 5.7 and MariaDB 10.3, or newer.
	MySQL = dialect.MySQL
)

const (
	metaSuffix = "_meta"
	// PostgreSQL takes 63 bytes and cuts what is longer, in the worst case to the name
	// of another table. MySQL takes 64.
	maxPart  = 63
	maxTable = maxPart - len(metaSuffix)
)

// checkTable refuses everything but plain names. Quoted, more would work. But a space
// or a quote in a table's name is a mistake or an attack.
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
