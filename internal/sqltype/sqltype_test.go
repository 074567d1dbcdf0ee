package sqltype

import (
	"testing"

	"github.com/snowkey/snowkey/internal/dialect"
)

func TestPartsAreReadAsCatalogsWriteThem(t *testing.T) {
	for typ, want := range map[string]struct {
		base             string
		precision, scale int
	}{
		"bigint":            {"bigint", 0, 0},
		"varchar(40)":       {"varchar", 40, 0},
		"numeric(20,0)":     {"numeric", 20, 0},
		"decimal(10,2)":     {"decimal", 10, 2},
		"enum('a','b')":     {"enum", 0, 0},
		"int(10) unsigned":  {"int", 10, 0},
		"timestamp without": {"timestamp without", 0, 0},
	} {
		base, precision, scale := Parts(typ)
		if base != want.base || precision != want.precision || scale != want.scale {
			t.Errorf("Parts(%q) = %q, %d, %d; want %q, %d, %d", typ, base, precision, scale, want.base, want.precision, want.scale)
		}
	}
}

func TestStoredIsWhatAColumnKeepsOfAValue(t *testing.T) {
	for _, test := range []struct {
		dialect   dialect.Dialect
		typ, want string
	}{
		{dialect.SQLite, "decimal(10,2)", ""},
		{dialect.PostgreSQL, "", ""},
		{dialect.PostgreSQL, "numeric(10,2)", "CAST(? AS numeric(10,2))"},
		{dialect.MySQL, "decimal(10,2) unsigned", "CAST(? AS DECIMAL(10,2))"},
		{dialect.MySQL, "datetime", "CAST(? AS DATETIME(0))"},
		{dialect.MySQL, "timestamp(3)", "CAST(? AS DATETIME(3))"},
		{dialect.MySQL, "date", "CAST(CAST(? AS DATETIME) AS DATE)"},
		{dialect.MySQL, "varchar(40)", "LEFT(?, 40)"},
		{dialect.MySQL, "bigint(20)", ""},
		{dialect.MySQL, "text", ""},
	} {
		if got := Stored(test.dialect, test.typ); got != test.want {
			t.Errorf("Stored(%v, %q) = %q; want %q", test.dialect, test.typ, got, test.want)
		}
	}
}
