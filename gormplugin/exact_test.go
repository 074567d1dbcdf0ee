package gormplugin

import (
	"math"
	"testing"
)

func TestStoredValuesAreReadAsThoseThatAreSent(t *testing.T) {
	const both = plainText | plainNumbers
	for _, test := range []struct {
		takes  plainness
		stored any
		want   any
	}{
		{plainText, "a", "a"},
		{plainText, []byte("a"), "a"},
		{plainNumbers, int64(7), int64(7)},
		{plainNumbers, uint64(7), int64(7)}, // an unsigned column of MySQL
		{plainNumbers, uint64(math.MaxInt64 + 1), nil},
		{plainNumbers, []byte("-7"), int64(-7)},
		{plainNumbers, []byte("7.0"), nil},
		{both, "7", "7"},
		{both, int64(7), int64(7)},
		{both, []byte("7"), nil}, // a BLOB of SQLite equals no text
		{both, 7.0, nil},
		{both, nil, nil},
	} {
		if got := test.takes.read(test.stored); got != test.want {
			t.Errorf("read(%#v) in a column that takes %d = %#v; want %#v", test.stored, test.takes, got, test.want)
		}
	}
}

func TestColumnsThatStoreValuesAsTheyAreSentAreKnown(t *testing.T) {
	for _, test := range []struct {
		dialect, typ, collation string
		want                    plainness
	}{
		{sqliteName, "", "", plainText | plainNumbers},
		{postgresName, "text", "", plainText},
		{postgresName, "character varying(40)", "", plainText},
		{postgresName, "character varying(40)[]", "", 0},
		{postgresName, "text[]", "", 0},
		{postgresName, "character(4)", "", 0},
		{postgresName, "citext", "", 0},
		{postgresName, "bigint", "", plainNumbers},
		{postgresName, "numeric(6,2)", "", 0},
		{mysqlName, "varchar(40)", "utf8mb4 utf8mb4_general_ci", plainText},
		{mysqlName, "varchar(40)", "latin1 latin1_swedish_ci", 0},
		{mysqlName, "varbinary(40)", "", 0},
		{mysqlName, "bigint(20) unsigned", "", plainNumbers},
		{mysqlName, "datetime(3)", "", 0},
	} {
		c := uniqueColumn{collate: test.collation}
		if test.dialect == mysqlName {
			_, c.whole = castForm(test.typ, "", test.collation)
		}
		if got := plainnessOf(test.dialect, test.typ, &c); got != test.want {
			t.Errorf("%s on %s, %q: %d; want %d", test.typ, test.dialect, test.collation, got, test.want)
		}
	}
}
