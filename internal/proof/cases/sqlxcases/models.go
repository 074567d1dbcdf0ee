package sqlxcases

import (
	"fmt"

	"github.com/snowkey/snowkey/types"
)

// row is a narrow row.
type row struct {
	ID types.Snowflake `db:"id"`
	N  int             `db:"n"`
	A  string          `db:"a"`
	B  string          `db:"b"`
	C  string          `db:"c"`
	D  string          `db:"d"`
}

const rowsTable = "CREATE TABLE many_rows (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, " +
	"a VARCHAR(20), b VARCHAR(20), c VARCHAR(20), d VARCHAR(20))"

// newRows returns n rows without keys that the table takes, numbered from 0.
func newRows(n int) []row {
	rows := make([]row, n)
	for i := range rows {
		rows[i] = row{N: i, A: fmt.Sprint("a", i), B: "b", C: "c", D: "d"}
	}
	return rows
}
