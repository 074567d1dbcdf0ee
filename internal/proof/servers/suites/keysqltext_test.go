package servers

import (
	"bytes"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
	"github.com/snowkey/snowkey/internal/proof/cases/keysqlcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// longKey has more digits than a double, and than a spreadsheet.
const longKey = types.Snowflake(1234567890123456789)

func TestJSONMadeBySQLChangesTheLastDigitsOfANumberAndNotOfAText(t *testing.T) {
	for name, db := range map[string]struct {
		driver, dsn string
		dialect     keysql.Dialect
		objects     []string // of a text and a number
	}{
		"PostgreSQL": {"pgx", servertest.PostgreSQL(t), keysql.PostgreSQL, []string{
			"json_build_object('text', %s, 'number', id)", "jsonb_build_object('text', %s, 'number', id)",
			"(SELECT row_to_json(v) FROM (SELECT %s AS text, id AS number) AS v)",
		}},
		"MariaDB": {"mysql", servertest.MariaDB(t), keysql.MySQL, []string{"JSON_OBJECT('text', %s, 'number', id)"}},
	} {
		t.Run(name, func(t *testing.T) {
			numberAndText(t, openSqlx(t, db.driver, db.dsn).DB, db.dialect, db.objects)
		})
	}
	t.Run("MySQL", func(t *testing.T) {
		numberAndText(t, openSqlx(t, "mysql", servertest.MySQL(t)).DB, keysql.MySQL, []string{"JSON_OBJECT('text', %s, 'number', id)"})
	})
}

func numberAndText(t *testing.T, db *sql.DB, d keysql.Dialect, objects []string) {
	for _, object := range objects {
		query := "SELECT " + fmt.Sprintf(object, keyColumn(t, d).Text()) + fmt.Sprintf(" FROM (SELECT %d AS id) AS orders", longKey)
		var text string
		must(t, db.QueryRowContext(t.Context(), query).Scan(&text))
		var exact struct{ Text, Number types.Snowflake }
		must(t, json.Unmarshal([]byte(text), &exact))
		if exact.Text != longKey || exact.Number != longKey {
			t.Errorf("%s = %s, of which Go reads %+v; want both whole", query, text, exact)
		}
		// As JavaScript, which has no other number.
		var double map[string]any
		must(t, json.Unmarshal([]byte(text), &double))
		number, _ := double["number"].(float64)
		if digits := strconv.FormatFloat(number, 'f', 0, 64); digits != "1234567890123456768" || double["text"] != longKey.String() {
			t.Errorf("%s = %s, of which a reader of doubles has %s and %v; want the number changed, and the text not",
				query, text, digits, double["text"])
		}
	}
}

// spreadsheet is whether LibreOffice reads the file too. Its package is 90 MB.
var spreadsheet = flag.Bool("keysql.spreadsheet", false, "open the CSV of a key in LibreOffice, which must be installed")

// What helps against the fifteen digits is a form that is no number. Quotation marks are not part
// of it: CSV has them around any field.
func TestASpreadsheetKeepsFifteenDigitsOfAKeyUnlessItIsAFormula(t *testing.T) {
	file := copyToCSV(t, `COPY (SELECT id, `+
		`'''' || id AS apostrophe, E'\t' || id AS tab, ' ' || id AS space, 'k' || id AS letter, `+
		`'="' || `+keyColumn(t, keysql.PostgreSQL).Text()+` || '"' AS formula, `+keyColumn(t, keysql.PostgreSQL).UUID()+` AS uuid `+
		`FROM orders) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE *)`)
	rows := readCSV(t, file)
	want := map[string]string{
		"id": "1.23456789012346E+18", "space": "1.23456789012346E+18",
		"apostrophe": "'1234567890123456789", "tab": "\t1234567890123456789", "letter": "k1234567890123456789",
		"formula": "1234567890123456789", "uuid": "112210f4-7de9-8811-9573-6e6f776b6579",
	}
	for i, form := range rows[0] {
		if got := asSpreadsheet(rows[1][i]); got != want[form] {
			t.Errorf("%s: a spreadsheet makes %q of %q; want %q", form, got, rows[1][i], want[form])
		}
	}
	if !*spreadsheet {
		t.Log("by the arithmetic alone: -keysql.spreadsheet asks LibreOffice")
		return
	}
	opened := readCSV(t, inLibreOffice(t, file))
	for i, form := range opened[0] {
		// It has three digits of the exponent.
		if got := strings.Replace(opened[1][i], "E+0", "E+", 1); got != want[form] {
			t.Errorf("%s: LibreOffice makes %q of %q; want %q", form, got, rows[1][i], want[form])
		}
	}
}

// The statements of docs/reading.md.
func TestTheCSVOfThePageKeepsTheKey(t *testing.T) {
	t.Run("PostgreSQL", func(t *testing.T) {
		rows := readCSV(t, copyToCSV(t, strings.TrimSuffix(keysqlcases.CSV(keysql.PostgreSQL), ";\n")))
		if got := asSpreadsheet(rows[1][0]); got != longKey.String() || !slices.Equal(rows[0], []string{"id", "number"}) {
			t.Errorf("%q in a spreadsheet has the key %q; want %d", rows, got, longKey)
		}
	})
	t.Run("MariaDB", func(t *testing.T) { // MySQL writes files only where its configuration says so
		conn, err := openSqlx(t, "mysql", servertest.MariaDB(t)).Conn(t.Context())
		must(t, err)
		defer func() { must(t, conn.Close()) }()
		var folder, text string
		must(t, conn.QueryRowContext(t.Context(), "SELECT COALESCE(@@secure_file_priv, @@tmpdir)").Scan(&folder))
		name := filepath.Join(folder, fmt.Sprintf("snowkey-%x.csv", rand.Uint64()))
		t.Cleanup(func() { _ = os.Remove(name) }) // if the server has it where we do
		for _, statement := range []string{
			"CREATE TEMPORARY TABLE orders (id BIGINT PRIMARY KEY, number VARCHAR(20))",
			fmt.Sprintf("INSERT INTO orders VALUES (%d, 'A, \"B\"')", longKey),
			strings.Replace(strings.TrimSuffix(keysqlcases.CSV(keysql.MySQL), ";\n"), "/tmp/orders.csv", name, 1),
		} {
			_, err := conn.ExecContext(t.Context(), statement)
			must(t, err)
		}
		must(t, conn.QueryRowContext(t.Context(), "SELECT LOAD_FILE(?)", name).Scan(&text))
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		must(t, err)
		if got := asSpreadsheet(rows[0][0]); got != longKey.String() || rows[0][1] != `A, "B"` {
			t.Errorf("%q in a spreadsheet has the key %q; want %d and the text as it is", rows, got, longKey)
		}
	})
}

func keyColumn(t *testing.T, d keysql.Dialect) keysql.Column {
	c, err := keysql.New(d, core.Default(), "id")
	must(t, err)
	return c
}

// copyToCSV stores an order of longKey and runs a COPY of PostgreSQL, into a file.
func copyToCSV(t *testing.T, statement string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), servertest.PostgreSQL(t))
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), "CREATE TEMPORARY TABLE orders (id bigint PRIMARY KEY, number text)")
	must(t, err)
	_, err = conn.Exec(t.Context(), "INSERT INTO orders VALUES ($1, 'A')", longKey)
	must(t, err)
	var b bytes.Buffer
	_, err = conn.PgConn().CopyTo(t.Context(), &b, statement)
	must(t, err)
	name := filepath.Join(t.TempDir(), "orders.csv")
	must(t, os.WriteFile(name, b.Bytes(), 0o644))
	return name
}

func readCSV(t *testing.T, name string) [][]string {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	must(t, err)
	if len(rows) != 2 {
		t.Fatalf("%s has %d rows; want a head and an order:\n%s", name, len(rows), text)
	}
	return rows
}

// asSpreadsheet returns the text of the cell that a spreadsheet makes of a field of a CSV file. A
// field that reads as a number becomes a double, of which the cell has 15 digits: Excel since
// https://learn.microsoft.com/en-us/office/troubleshoot/excel/last-digits-changed-to-zeros, and
// LibreOffice.
func asSpreadsheet(field string) string {
	if text, ok := strings.CutPrefix(field, `="`); ok {
		return strings.TrimSuffix(text, `"`)
	}
	if number, err := strconv.ParseFloat(strings.Trim(field, " "), 64); err == nil {
		return strconv.FormatFloat(number, 'E', 14, 64)
	}
	return field
}

// inLibreOffice opens a CSV file and saves it under another name.
func inLibreOffice(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "soffice", "-env:UserInstallation=file://"+filepath.Join(dir, "profile"),
		"--headless", "--convert-to", "csv", "--outdir", dir, name).CombinedOutput()
	if err != nil {
		t.Fatalf("soffice = %v, %s", err, out)
	}
	return filepath.Join(dir, filepath.Base(name))
}
