package copies

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// allowPlugin lets the server load an output plugin, which newer versions must be told.
func (p postgres) allowPlugin(db *sql.DB, name string) {
	p.Helper()
	const query = "SELECT coalesce(current_setting('output_plugin_libraries', true), $1) LIKE '%' || $1"
	var allowed bool
	must(p, db.QueryRowContext(p.Context(), query, name).Scan(&allowed))
	if allowed {
		return
	}
	statements(p, db, "ALTER SYSTEM SET output_plugin_libraries = 'pgoutput', '"+name+"'", "SELECT pg_reload_conf()")
	for !allowed {
		time.Sleep(10 * time.Millisecond)
		must(p, db.QueryRowContext(p.Context(), query, name).Scan(&allowed))
	}
}

// wal2json writes a BIGINT as a number too.
func TestWal2jsonKeepsKeysInOurTypesAndLosesThemInAny(t *testing.T) {
	t.Parallel()
	p := newPostgres(t, "wal_level=logical")
	if _, err := os.Stat(filepath.Join(p.programs, "../lib/wal2json.so")); err != nil {
		servertest.Missing(t, "no wal2json: install Debian's package postgresql-15-wal2json")
	}
	s := p.published("shop")
	p.allowPlugin(s.db, "wal2json")
	statements(t, s.db, "SELECT pg_create_logical_replication_slot('wal2json', 'wal2json')")
	want := write(t, s.db)
	rows, err := s.db.QueryContext(t.Context(), `SELECT data FROM pg_logical_slot_get_changes('wal2json', NULL, NULL,
		'format-version', '2', 'include-transaction', 'false')`)
	must(t, err)
	defer func() { _ = rows.Close() }()
	lost := 0
	for _, c := range want {
		var text string
		if !rows.Next() {
			t.Fatalf("changes end before %+v: %v", c, rows.Err())
		}
		must(t, rows.Scan(&text))
		var typed struct {
			Columns, Identity []struct {
				Name  string
				Value json.RawMessage
			}
		}
		must(t, json.Unmarshal([]byte(text), &typed))
		key := append(typed.Columns, typed.Identity...)[0] // which a deleted row has alone
		var id types.Snowflake
		must(t, json.Unmarshal(key.Value, &id))
		if key.Name != "id" || id != c.ID || string(key.Value) != c.ID.String() {
			t.Errorf("change %s; want the id %d", text, c.ID)
		}
		var untyped float64
		must(t, json.Unmarshal(key.Value, &untyped))
		if strconv.FormatFloat(untyped, 'f', -1, 64) != c.ID.String() {
			lost++
		}
	}
	if rows.Next() || lost < 400 {
		t.Errorf("%d keys of %d changes are lost in an any; want 400 or more, and no more changes", lost, len(want))
	}
	must(t, rows.Close())
}

// A reader of CSV that guesses the type of a column takes doubles if a key is missing in it.
// pandas 1 does so even if it is told that the column has integers.
func TestPandasLosesKeysInAColumnWithGapsUnlessItReadsText(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3" // Debian's, which has Debian's pandas
	version, err := command(t, python, "-c", "import pandas; print(pandas.__version__)")
	if err != nil {
		servertest.Missing(t, "no pandas: install Debian's package python3-pandas: ", version)
	}
	file := filepath.Join(t.TempDir(), "orders.csv")
	lines := []string{"id,parent_id"}
	parent := ""
	for _, id := range keys() {
		lines = append(lines, id.String()+","+parent)
		parent = id.String()
	}
	must(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	for name, read := range map[string]struct {
		call string
		lost bool // in the column parent_id
	}{
		"guessed":              {"read_csv(file)", true},
		"Int64":                {"read_csv(file, dtype='Int64')", strings.HasPrefix(version, "1.")},
		"text":                 {"read_csv(file, dtype=str)", false},
		"Int64 made from text": {"read_csv(file, dtype=str).astype('Int64')", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := command(t, python, "-c", `
import pandas, sys
file = sys.argv[1]
table = pandas.`+read.call+`
print('id,parent_id')
for id, parent in zip(table['id'], table['parent_id']):
	print('%s,%s' % (id, '' if pandas.isna(parent) else int(parent)))`, file)
			if err != nil {
				t.Fatalf("pandas: %v\n%s", err, out)
			}
			got := strings.Split(strings.TrimSpace(out), "\n")
			if len(got) != len(lines) {
				t.Fatalf("pandas has read %d lines; want %d", len(got), len(lines))
			}
			ids, parents := 0, 0 // lost
			for i, line := range got {
				id, parent, _ := strings.Cut(lines[i], ",")
				if !strings.HasPrefix(line, id+",") {
					ids++
				}
				if !strings.HasSuffix(line, ","+parent) {
					parents++
				}
			}
			if ids > 0 || read.lost && parents < 400 || !read.lost && parents > 0 {
				t.Errorf("pandas %s has lost %d keys, and %d in the column with a gap, of %d; want 0, and there: %v", strings.TrimSpace(version), ids, parents, len(keys()), read.lost)
			}
		})
	}
}
