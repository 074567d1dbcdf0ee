package dialect

import (
	"testing"
	"time"
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

func TestAFormIsWhatAColumnKeepsOfAValue(t *testing.T) {
	for _, test := range []struct {
		dialect        Dialect
		typ, collation string
		want           string
	}{
		{SQLite, "decimal(10,2)", "", ""},
		{PostgreSQL, "", "", ""},
		{PostgreSQL, "numeric(10,2)", "", "CAST(? AS numeric(10,2))"},
		{MySQL, "decimal(10,2) unsigned", "", "CAST(? AS DECIMAL(10,2))"},
		{MySQL, "datetime", "", "CAST(CAST(? AS CHAR) AS DATETIME(0))"},
		{MySQL, "timestamp(3)", "", "CAST(CAST(? AS CHAR) AS DATETIME(3))"},
		{MySQL, "varchar(40)", "latin1_swedish_ci", "LEFT(CONVERT(? USING latin1), 40) COLLATE latin1_swedish_ci"},
		{MySQL, "bigint(20)", "", "CAST(? AS SIGNED)"},
		{MySQL, "bigint unsigned", "", "CAST(? AS UNSIGNED)"},
		{MySQL, "int(10) unsigned zerofill", "", "CAST(? AS UNSIGNED)"},
		{MySQL, "set('a','b')", "latin1_swedish_ci", ""},
	} {
		if got := FormOf(test.dialect, test.typ, test.collation).SQL; got != test.want {
			t.Errorf("FormOf(%v, %q, %q).SQL = %q; want %q", test.dialect, test.typ, test.collation, got, test.want)
		}
	}
}

// The database stores something for each of the values that are refused, but what that is depends
// on the protocol and the SQL mode of MySQL, or has not been tested.
func TestAFormTakesOnlyValuesThatAreStoredAsTheyAreCompared(t *testing.T) {
	for _, test := range []struct {
		typ string
		v   any
		ok  bool
	}{
		{"int", 42, true}, {"int", "42", true}, {"int", "6.4", false}, {"int", 6.4, false}, {"int", 7.0, true}, {"tinyint", 128, false}, {"tinyint", -128, true}, {"tinyint unsigned", -1, false},
		{"bigint", uint64(1) << 63, false}, {"bigint unsigned", uint64(1) << 63, true}, {"int", nil, true}, {"int", []byte(nil), true}, {"int", true, true}, {"int", time.Time{}, false},
		{"year(4)", 21, false}, {"year(4)", "0", false}, {"year(4)", 0, false}, {"year(4)", 2021, true}, {"year(4)", "2021", true},
		{"float(7,3)", 1.0, false}, {"double(7,3)", 1.0, false}, {"float", 0.1, true}, {"float", 1e39, false}, {"double unsigned", -1.0, false}, {"decimal(10,2)", "1e2", true}, {"decimal(10,2)", "1e31", false}, {"decimal(10,2)", ".", false}, {"decimal(10,2)", "\t7", false}, {"decimal(10,2)", "0x10", false}, {"int", "-1e-1", false}, {"double", "1e99", true}, {"double", "1e400", false},
		{"set('a','b')", "a", false}, {"enum('a','b''c')", "b'c", true}, {"enum('a','b')", "A", false}, {"enum('a','b')", "", false}, {"enum('a','b')", 1, false},
		{"bit(1)", true, true}, {"bit(1)", 2, false}, {"bit(8)", "ab", false}, {"bit(8)", "a", true},
		{"time", "10:00:00", true}, {"time", "10:00", false}, {"time", "900:00:00", false}, {"time", "2024-02-29 10:00:00", false}, {"timestamp", "2050-01-01", false}, {"datetime", "2050-01-01", true}, {"datetime", "20500101", false},
		{"date", "0000-00-00", false}, {"geometry", "x", false}, {"varchar(5)", "日本", true}, {"varchar(5)", "\xff", false}, {"varchar(5)", 0.1, true}, {"varchar(5)", 16777217.0, false},
	} {
		f := FormOf(MySQL, test.typ, "utf8mb4_general_ci")
		if _, ok := f.Value(test.v); ok != test.ok {
			t.Errorf("%s takes %T %v: %v; want %v", test.typ, test.v, test.v, ok, test.ok)
		}
	}
	f := FormOf(MySQL, "decimal(10,2)", "")
	for sent, want := range map[string]string{".5": "0.5", "-.5": "-0.5", "5.": "5", "1e2": "100", "1.25E1": "12.5", "-12.5e-2": "-0.125", "4e-3": "0.004", "+3": "3", "  7 ": "7", "007": "007"} {
		if got, ok := f.Value(sent); got != want || !ok {
			t.Errorf("Value(%q) = %v, %v; want %q", sent, got, ok, want)
		}
	}
	f = FormOf(MySQL, "int", "")
	f.NotNull = true
	if _, ok := f.Value((*int)(nil)); ok {
		t.Error("int NOT NULL takes nil: true; want false, as MySQL may store 0")
	}
}
