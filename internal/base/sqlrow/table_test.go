package sqlrow

import (
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

func TestTableNameIsPlain(t *testing.T) {
	for _, name := range []string{"a", "_", "Leases2", "app.leases", "ORDER", strings.Repeat("x", 58), strings.Repeat("s", 63) + "." + strings.Repeat("x", 58)} {
		if want, ok := CheckTable(name, 5); !ok || want != "" {
			t.Errorf("CheckTable(%q, 5) = %q, %v; want it accepted", name, want, ok)
		}
	}
	for _, name := range []string{"", " ", "a b", `a"b`, "a`b", "a'b", "a;b", "a;DROP TABLE x", "a--", "1a", "a.", ".a", "a.b.c", "a$", "a?", "ä", "a\x00", "a\n", strings.Repeat("x", 59), strings.Repeat("s", 64) + ".x", strings.Repeat("x", 1<<20)} {
		want, ok := CheckTable(name, 5)
		if ok || !strings.HasPrefix(want, "1..58 letters, digits and _ of ASCII") {
			t.Errorf("CheckTable(%.70q, 5) = %q, %v; want it refused, and what is accepted", name, want, ok)
		}
	}
}

// The law: a name that is accepted appears in the statements in quotes and cannot
// end them.
func FuzzTableName(f *testing.F) {
	for _, seed := range []string{"snowkey_leases", "app.leases", `x" (y) --`, "`", "a.b.c", "", "Ünïcode", "a\x00b", "x;DROP TABLE orders", "?", "$1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		schema, table, qualified := strings.Cut(name, ".")
		if !qualified {
			schema, table = "x", name // no schema has nothing wrong
		}
		want := plain(schema, 63) && plain(table, 58)
		if _, ok := CheckTable(name, 5); ok != want {
			t.Fatalf("CheckTable(%q, 5) = %v; want %v", name, ok, want)
		}
		if !want {
			return
		}
		for _, d := range []dialect.Dialect{dialect.SQLite, dialect.PostgreSQL, dialect.MySQL} {
			quoted := 1 + strings.Count(name, ".")
			if d == dialect.SQLite {
				quoted = 2 // always with its schema
			}
			text := CreateTable(d, Quote(d, name), "n BIGINT")
			if marks := strings.Count(text, d.QuoteMark()); marks != 2*quoted {
				t.Errorf("%v: %d quotes in %q; want those around the name", d, marks, text)
			}
		}
	})
}

// plain says in other words what a name may be.
func plain(name string, longest int) bool {
	for i := range len(name) {
		c := name[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= longest
}

func TestTablesAreCreatedAsEachDialectNeedsIt(t *testing.T) {
	for d, want := range map[dialect.Dialect]string{
		dialect.SQLite:     `CREATE TABLE IF NOT EXISTS "main"."t" (a VARCHAR(9), PRIMARY KEY (a))`,
		dialect.PostgreSQL: `CREATE TABLE IF NOT EXISTS "t" (a VARCHAR(9), PRIMARY KEY (a))`,
		dialect.MySQL:      "CREATE TABLE IF NOT EXISTS `t` (a VARCHAR(9), PRIMARY KEY (a)) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
	} {
		if got := CreateTable(d, Quote(d, "t"), "a VARCHAR(9)", "PRIMARY KEY (a)"); got != want {
			t.Errorf("CreateTable(%v) = %s; want %s", d, got, want)
		}
	}
}
