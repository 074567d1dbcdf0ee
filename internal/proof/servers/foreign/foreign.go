// Package foreign has a table that somebody else has made, for tests of stores. It links no
// driver.
package foreign

import (
	"fmt"
	"strings"
)

// Segments returns statements that make a table of segments as somebody else might, with
// one row. A column has the given value in place of a good one: nil for NULL, an integer, a
// float64 or a string. If it is missing, the table does not have it.
func Segments(table, tag, column string, value any, missing bool) []string {
	columns := []string{"biz_tag VARCHAR(128) PRIMARY KEY", "description VARCHAR(256)", "update_time TIMESTAMP"}
	names, values := []string{"biz_tag"}, []string{"'" + tag + "'"}
	for _, c := range []struct {
		name string
		good int64
	}{{"max_id", 1}, {"step", 10}, {"version", 0}, {"number_offset", 0}, {"stride", 1}} {
		kind, text := "BIGINT", fmt.Sprint(c.good)
		if c.name == column {
			switch v := value.(type) {
			case nil:
				text = "NULL"
			case float64:
				kind, text = "DOUBLE PRECISION", fmt.Sprint(v)
			case string:
				kind, text = "VARCHAR(20)", "'"+v+"'"
			default:
				text = fmt.Sprint(v)
			}
			if missing {
				continue
			}
		}
		columns, names, values = append(columns, c.name+" "+kind), append(names, c.name), append(values, text)
	}
	return []string{
		"CREATE TABLE " + table + " (" + strings.Join(columns, ", ") + ")",
		"INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")",
	}
}
