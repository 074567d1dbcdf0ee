package copies

import (
	"bytes"
	"cmp"
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

// An envelope is what Debezium's connectors write with Kafka Connect's JSON converter. A BIGINT
// is an int64 of the schema and a number of the JSON: see the data type mappings and the change
// events in the documentation of the connector. Debezium itself is not run here.
type envelope[Row any] struct {
	Schema  schema `json:"schema"`
	Payload struct {
		Before *Row   `json:"before"`
		After  *Row   `json:"after"`
		Op     string `json:"op"`
	} `json:"payload"`
}

type schema struct {
	Type     string   `json:"type"`
	Fields   []schema `json:"fields,omitempty"`
	Optional bool     `json:"optional"`
	Field    string   `json:"field,omitempty"`
}

// A debeziumRow is a row as the converter writes it.
type debeziumRow struct {
	ID     int64  `json:"id"`
	Parent *int64 `json:"parent_id"`
	Text   string `json:"note"`
}

func debezium(r *row) *debeziumRow {
	if r == nil {
		return nil
	}
	d := &debeziumRow{ID: r.ID.Int64(), Text: r.Text}
	if r.Parent.Valid {
		n := r.Parent.Snowflake.Int64()
		d.Parent = &n
	}
	return d
}

// event returns the JSON of a change.
func event(t *testing.T, c change) []byte {
	t.Helper()
	var e envelope[debeziumRow]
	row := schema{Type: "struct", Optional: true, Fields: []schema{
		{Type: "int64", Field: "id"}, {Type: "int64", Optional: true, Field: "parent_id"}, {Type: "string", Optional: true, Field: "note"}}}
	before, after := row, row
	before.Field, after.Field = "before", "after"
	e.Schema = schema{Type: "struct", Fields: []schema{before, after, {Type: "string", Field: "op"}}}
	e.Payload.Op = map[string]string{"insert": "c", "update": "u", "delete": "d"}[c.Kind]
	e.Payload.Before, e.Payload.After = debezium(c.Old), debezium(c.New)
	text, err := json.Marshal(e)
	must(t, err)
	return text
}

// From the database's log to a program that reads Debezium's JSON.
func TestDebeziumsJSONKeepsKeysInOurTypesAndLosesThemInAny(t *testing.T) {
	t.Parallel()
	p := newPostgres(t, "wal_level=logical")
	s := p.published("shop")
	statements(t, s.db, "ALTER TABLE notes REPLICA IDENTITY FULL")
	changes := p.stream(s.name, "proto_version '1'")
	want := write(t, s.db, true)
	lost := 0
	for i, c := range changes.changes(len(want)) {
		text := event(t, c)
		var e envelope[row]
		must(t, json.Unmarshal(text, &e))
		compareChanges(t, []change{{c.Kind, e.Payload.Before, e.Payload.After}}, want[i:i+1])

		// What a program in JavaScript reads, and one in Go without types.
		var untyped envelope[map[string]any]
		must(t, json.Unmarshal(text, &untyped))
		var exact envelope[map[string]any]
		numbers := json.NewDecoder(bytes.NewReader(text))
		numbers.UseNumber()
		must(t, numbers.Decode(&exact))
		if c.New == nil {
			continue
		}
		if f := (*untyped.Payload.After)["id"].(float64); strconv.FormatFloat(f, 'f', -1, 64) != c.New.ID.String() {
			lost++
		}
		if n := (*exact.Payload.After)["id"].(json.Number); n.String() != c.New.ID.String() {
			t.Errorf("UseNumber of %s = %s; want %d", text, n, c.New.ID)
		}
	}
	if lost < 400 {
		t.Errorf("%d keys of %d changes are lost in an any; want 400 or more", lost, len(want))
	}
}

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
	want := write(t, s.db, false)
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
		columns, id := typed.Columns, types.Snowflake(0)
		if c.New == nil {
			columns = typed.Identity
		}
		must(t, json.Unmarshal(columns[0].Value, &id))
		wanted := cmp.Or(c.New, c.Old).ID
		if columns[0].Name != "id" || id != wanted || string(columns[0].Value) != wanted.String() {
			t.Errorf("change %s; want the id %d", text, wanted)
		}
		var untyped float64
		must(t, json.Unmarshal(columns[0].Value, &untyped))
		if strconv.FormatFloat(untyped, 'f', -1, 64) != wanted.String() {
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
			ids, parents := 0, 0
			for i, line := range got {
				id, parent, _ := strings.Cut(line, ",")
				wantID, wantParent, _ := strings.Cut(lines[i], ",")
				if id != wantID {
					ids++
				}
				if parent != wantParent {
					parents++
				}
			}
			if ids > 0 || read.lost && parents < 400 || !read.lost && parents > 0 {
				t.Errorf("pandas %s has lost %d keys, and %d in the column with a gap, of %d; want 0, and there: %v", strings.TrimSpace(version), ids, parents, len(keys()), read.lost)
			}
		})
	}
}
