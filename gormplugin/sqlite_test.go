package gormplugin

import (
	"strings"
	"testing"
)

// TestScriptEditsOnlyWhatItMeans keeps quoted names, strings and comments apart
// from words.
func TestScriptEditsOnlyWhatItMeans(t *testing.T) {
	for _, test := range []struct{ sql, column, from, want string }{
		{"CREATE TABLE t (id bigint, n bigint)", "id", "bigint", "CREATE TABLE t (id integer, n bigint)"},
		{"CREATE TABLE t (n bigint, ID BIGINT)", "id", "bigint", "CREATE TABLE t (n bigint, ID integer)"},
		{"CREATE TABLE t (`id`bigint)", "id", "bigint", "CREATE TABLE t (`id`integer)"},
		{"CREATE TABLE id (\"i\"\"d\" big int NOT NULL)", `i"d`, "big int", "CREATE TABLE id (\"i\"\"d\" integer  NOT NULL)"},
		{"CREATE TABLE t (n text CHECK (id, id), [id] bigint(20) PRIMARY KEY)", "id", "bigint(20)", "CREATE TABLE t (n text CHECK (id, id), [id] integer PRIMARY KEY)"},
		{"CREATE TABLE t (n text DEFAULT ',id bigint' /* , id bigint */, id -- , id bigint\n bigint)", "id", "bigint", "CREATE TABLE t (n text DEFAULT ',id bigint' /* , id bigint */, id -- , id bigint\n integer)"},
		{"CREATE TABLE t (id int)", "id", "bigint", ""},
		{"CREATE TABLE t (id big", "id", "bigint", ""},
		{"CREATE TABLE t (n int)", "id", "int", ""},
		{"CREATE TABLE t (", "id", "int", ""},
		{"", "id", "int", ""},
	} {
		s := parseSQL(test.sql)
		ok := s.retype(test.column, test.from, "integer")
		if got := strings.Join(s.tokens, ""); ok != (test.want != "") || ok && got != test.want {
			t.Errorf("retype(%q, %q) of %s = %s, %v; want %s", test.column, test.from, test.sql, got, ok, test.want)
		}
	}
}

func FuzzScriptIsItsTokens(f *testing.F) {
	for _, sql := range []string{"", "CREATE TABLE `a``b` ([x] int, 'y' text) -- end", "/* open", "'open", "[open", "\"\"\"", "id int\x00é"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		s := parseSQL(sql)
		if got := strings.Join(s.tokens, ""); got != sql {
			t.Errorf("tokens of %q = %q; want them to be it", sql, s.tokens)
		}
		s.has("WITHOUT", "ROWID")
		s.retype("id", "bigint(20)", "integer")
		s.remove("AUTOINCREMENT")
		s.has("AUTOINCREMENT")
	})
}
