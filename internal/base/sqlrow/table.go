package sqlrow

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// maxName is how long a name may be. PostgreSQL takes 63 bytes and cuts what is longer,
// in the worst case to the name of another table. MySQL takes 64.
const maxName = 63

// plainName is a table, and before it a schema if need be. Quoted, other names would
// work. But a space or a quote in a table's name is a mistake or an attack.
var plainName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]{0,62}\.)?([A-Za-z_][A-Za-z0-9_]*)$`)

// CheckTable reports whether a table may have a name that a program gives. If not, want
// says what is accepted. spare is how many bytes the caller adds to the name.
func CheckTable(name string, spare int) (want string, ok bool) {
	found := plainName.FindStringSubmatch(name)
	if found != nil && len(found[2]) <= maxName-spare {
		return "", true
	}
	return fmt.Sprintf("1..%d letters, digits and _ of ASCII, the first no digit; before it, if need be, a schema of the same form and a dot", maxName-spare), false
}

// withSchema returns the name of a table on SQLite with its schema. Without one it is in
// main: an attached or temporary table of the same name could come first.
func withSchema(table string) string {
	if strings.Contains(table, ".") {
		return table
	}
	return "main." + table
}

// Quote returns the name of a table that [CheckTable] has passed, for statements. On
// SQLite it is the table in the file that Do looks at.
func Quote(d dialect.Dialect, table string) string {
	if d == dialect.SQLite {
		table = withSchema(table)
	}
	return d.Quote(table)
}

// CreateTable returns a statement that creates a table unless it is there. Each column
// is its name, type and constraints; the last of them may be the key of the table.
// BIGINT and VARCHAR(n) are types of every dialect.
//
// Texts are compared byte by byte, as Go does: MySQL's default collation takes "Shop"
// and "shop" for one. MyISAM has no transactions.
func CreateTable(d dialect.Dialect, table string, columns ...string) string {
	text := "CREATE TABLE IF NOT EXISTS " + Quote(d, table) + " (" + strings.Join(columns, ", ") + ")"
	if d == dialect.MySQL {
		text += " ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin"
	}
	return text
}
