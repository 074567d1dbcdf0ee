package sqlrow

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// maxName is the greatest length of a name. PostgreSQL accepts 63 bytes and truncates longer names,
// in the worst case to the name of another table; MySQL accepts 64.
const maxName = 63

// plainName matches a table, with its schema if need be. Other names would work if quoted, but a space
// or a quote in the name of a table is a mistake or an attack.
var plainName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?([A-Za-z_][A-Za-z0-9_]*)$`)

// CheckTable reports whether name is accepted as the name of a table, to which the caller may add
// spare bytes. If it is not, want describes what is.
func CheckTable(name string, spare int) (want string, ok bool) {
	found := plainName.FindStringSubmatch(name)
	if found != nil && len(found[2]) <= maxName-spare {
		return "", true
	}
	return fmt.Sprintf("1..%d letters, digits and _ of ASCII, the first no digit; before it, if need be, a schema of the same form and a dot", maxName-spare), false
}

// A Name is the name of a table. Without a schema, each connection looks for the table where its
// search_path or its default database says.
type Name struct{ Schema, Table string }

// NameOf returns the parts of a name that [CheckTable] has accepted. On SQLite the schema defaults to
// main, because without one a temporary table of the same name would be found first.
func NameOf(d dialect.Dialect, table string) Name {
	schema, name, qualified := strings.Cut(table, ".")
	switch {
	case qualified:
		return Name{schema, name}
	case d == dialect.SQLite:
		return Name{"main", table}
	}
	return Name{"", table}
}

// String returns the name for people.
func (n Name) String() string {
	if n.Schema == "" {
		return n.Table
	}
	return n.Schema + "." + n.Table
}

// Quote returns the name for statements. The schema may be one that the database has named, with any
// characters.
func (n Name) Quote(d dialect.Dialect) string {
	mark := d.QuoteMark()
	quote := func(part string) string { return mark + strings.ReplaceAll(part, mark, mark+mark) + mark }
	if n.Schema == "" {
		return quote(n.Table)
	}
	return quote(n.Schema) + "." + quote(n.Table)
}

// Quote is [Name.Quote] of a name that [CheckTable] has accepted.
func Quote(d dialect.Dialect, table string) string { return NameOf(d, table).Quote(d) }

// CreateTable returns a statement that creates a table unless it exists. The table is quoted. Each
// column is its name, type and constraints; the last of them may be the key of the table. BIGINT and
// VARCHAR(n) are types of every dialect.
//
// On MySQL the engine is InnoDB, because MyISAM has no transactions, and texts are compared by bytes,
// as in Go, because to the default collation "Shop" equals "shop".
func CreateTable(d dialect.Dialect, table string, columns ...string) string {
	text := "CREATE TABLE IF NOT EXISTS " + table + " (" + strings.Join(columns, ", ") + ")"
	if d == dialect.MySQL {
		text += " ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin"
	}
	return text
}
