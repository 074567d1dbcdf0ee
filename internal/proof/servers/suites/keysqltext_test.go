package servers

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// The statements of docs/reading.md write a formula, which a spreadsheet turns into the text of the
// key. Of a number it keeps fifteen digits.
func TestTheCSVOfThePageKeepsTheKey(t *testing.T) {
	_, blocks := onPage(t, "reading.md")
	const row = "(1234567890123456789, 'A, \"B\"')"
	formula := []string{`="1234567890123456789"`, `A, "B"`}
	wantCSV := func(t *testing.T, text string, want ...[]string) {
		t.Helper()
		if rows, err := csv.NewReader(strings.NewReader(text)).ReadAll(); err != nil || !reflect.DeepEqual(rows, want) {
			t.Errorf("the file has %q, %v; want %q", rows, err, want)
		}
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), servertest.PostgreSQL(t))
		must(t, err)
		defer func() { must(t, conn.Close(t.Context())) }()
		_, err = conn.Exec(t.Context(), "CREATE TEMPORARY TABLE orders (id bigint PRIMARY KEY, number text)")
		must(t, err)
		_, err = conn.Exec(t.Context(), "INSERT INTO orders VALUES "+row)
		must(t, err)
		var b bytes.Buffer
		_, err = conn.PgConn().CopyTo(t.Context(), &b, strings.TrimSuffix(blocks[0], ";\n"))
		must(t, err)
		wantCSV(t, b.String(), []string{"id", "number"}, formula)
	})
	t.Run("MariaDB", func(t *testing.T) { // MySQL writes files only where its configuration says so
		db := openSqlx(t, "mysql", servertest.MariaDB(t))
		db.SetMaxOpenConns(1)
		var folder, text string
		must(t, db.Get(&folder, "SELECT COALESCE(@@secure_file_priv, @@tmpdir)"))
		name := filepath.Join(folder, fmt.Sprintf("snowkey-%x.csv", rand.Uint64()))
		t.Cleanup(func() { _ = os.Remove(name) }) // if the server has it where we do
		execSqlx(t, db, "CREATE TEMPORARY TABLE orders (id BIGINT PRIMARY KEY, number VARCHAR(20))")
		execSqlx(t, db, "INSERT INTO orders VALUES "+row)
		execSqlx(t, db, strings.Replace(strings.TrimSuffix(blocks[1], ";\n"), "/tmp/orders.csv", name, 1))
		must(t, db.Get(&text, "SELECT LOAD_FILE(?)", name))
		wantCSV(t, text, formula)
	})
}
