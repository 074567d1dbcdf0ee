package keysql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
)

func TestFunctionsAreRefusedWhereNoneIsRight(t *testing.T) {
	for _, test := range []struct {
		dialect keysql.Dialect
		layout  core.Layout
		schema  string
		want    string
	}{
		{0, core.Default(), "", "Dialect(0)"},
		{keysql.SQLite, core.Default(), "", "SQLite: want PostgreSQL or MySQL"},
		{keysql.PostgreSQL, core.Layout{}, "", "Layout."},
		{keysql.PostgreSQL, core.Default(), "shop.keys", `"shop.keys"`},
		{keysql.PostgreSQL, core.Default(), `a"b`, `"a\"b"`},
		{keysql.MySQL, core.Default(), "a`b", "\"a`b\""},
		{keysql.MySQL, core.Default(), "a\x00", `"a\x00"`},
	} {
		statements, err := keysql.Functions(test.dialect, test.layout, test.schema)
		var value *core.ValueError
		if len(statements) > 0 || err == nil || !strings.Contains(err.Error(), test.want) || test.layout != (core.Layout{}) && !errors.As(err, &value) {
			t.Errorf("Functions(%v, …, %q) = %d statements, %v; want a ValueError with %s", test.dialect, test.schema, len(statements), err, test.want)
		}
	}
}

func TestAViewNeedsNamesThatCanBeQuoted(t *testing.T) {
	c, err := keysql.New(keysql.PostgreSQL, core.Default(), "id")
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range [][2]string{{"", "orders"}, {"v", ""}, {"shop.", "orders"}, {"v", `orders" UNION SELECT "1`}, {"v", "shop..orders"}} {
		if _, err := c.View(names[0], names[1]); err == nil || !strings.Contains(err.Error(), "without quotation marks") {
			t.Errorf("View(%q, %q) = %v; want an error", names[0], names[1], err)
		}
	}
	got, err := c.View("shop.select", "shop.Order")
	if want := "FROM \"shop\".\"Order\""; err != nil || len(got) != 1 || !strings.HasSuffix(got[0], want) || !strings.Contains(got[0], `VIEW "shop"."select" AS`) {
		t.Errorf("View(shop.select, shop.Order) = %q, %v; want %s", got, err, want)
	}
}

// The functions stand in a schema of their own, each with the layout in its comment.
func TestFunctionsSayWhoseKeysTheyRead(t *testing.T) {
	statements, err := keysql.Functions(keysql.PostgreSQL, core.Twitter(), "order")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(statements, ";\n")
	for _, name := range []string{"id_time", "id_worker", "id_sequence", "id_datacenter", "id_min", "id_max"} {
		if !strings.Contains(text, `CREATE OR REPLACE FUNCTION "order"."`+name+`"(`) || !strings.Contains(text, `COMMENT ON FUNCTION "order"."`+name+`"(`) {
			t.Errorf("Functions are without %s and its comment:\n%s", name, text)
		}
	}
	if n := strings.Count(text, "since 2010-11-04T01:42:54.657Z"); n != 6 {
		t.Errorf("comments with the layout = %d; want 6", n)
	}
}
