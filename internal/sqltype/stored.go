package sqltype

import (
	"fmt"
	"strings"

	"github.com/snowkey/snowkey/internal/dialect"
)

// Stored returns SQL for what a column of type typ stores of a value, "?". It is empty
// if the column stores the value unchanged. So do those of SQLite, as far as a comparison
// can tell: it converts the value by the same rules. The form may cut what an insert would
// refuse, because it is for values that were inserted.
func Stored(d dialect.Dialect, typ string) string {
	switch {
	case typ == "" || d == dialect.SQLite:
		return ""
	case d == dialect.PostgreSQL:
		return "CAST(? AS " + typ + ")"
	}
	base, precision, scale := Parts(typ)
	switch base {
	case "date": // a cast alone cuts the hours off, where MySQL rounds the seconds first
		return "CAST(CAST(? AS DATETIME) AS DATE)"
	case "datetime", "timestamp":
		return fmt.Sprintf("CAST(? AS DATETIME(%d))", precision)
	case "time":
		return fmt.Sprintf("CAST(? AS TIME(%d))", precision)
	case "decimal":
		return fmt.Sprintf("CAST(? AS DECIMAL(%d,%d))", precision, scale)
	case "float":
		return "CAST(? AS FLOAT)"
	case "binary":
		return fmt.Sprintf("CAST(? AS BINARY(%d))", precision)
	case "char":
		return fmt.Sprintf("RTRIM(LEFT(?, %d))", precision)
	case "varchar", "varbinary": // INSERT IGNORE cuts off what is too long
		return fmt.Sprintf("LEFT(?, %d)", precision)
	default:
		return ""
	}
}

// Joined returns as, which is that of [Stored], or the value where it is empty, in the
// type and the collation of a column of type typ on MySQL. It is empty where a value in a
// join could be compared otherwise than one that stands alone. whole is true for
// integers: the cast is exact only for integer values.
func Joined(typ, as, collation string) (cast string, whole bool) {
	base, _, _ := Parts(strings.TrimSuffix(typ, " unsigned"))
	switch base {
	case "tinyint", "smallint", "mediumint", "int", "bigint":
		return "CAST(? AS SIGNED)", true
	case "double":
		return "(? + 0e0)", false
	case "char", "varchar":
		charset, name, _ := strings.Cut(collation, " ")
		if name == "" {
			return "", false
		}
		return "CONVERT(" + as + " USING " + charset + ") COLLATE " + name, false
	case "varbinary":
		return "CAST(" + as + " AS BINARY)", false
	case "date", "datetime", "timestamp", "time", "decimal", "float", "binary":
		return as, false
	default:
		return "", false
	}
}
