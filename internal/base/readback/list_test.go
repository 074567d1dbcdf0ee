package readback

import (
	"math"
	"testing"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

func TestStoredValuesAreReadAsThoseThatAreSent(t *testing.T) {
	const both = verbatimText | verbatimNumbers
	for _, test := range []struct {
		takes  verbatim
		stored any
		want   any
	}{
		{verbatimText, "a", "a"},
		{verbatimText, []byte("a"), "a"},
		{verbatimNumbers, int64(7), int64(7)},
		{verbatimNumbers, uint64(7), int64(7)}, // an unsigned column of MySQL
		{verbatimNumbers, uint64(math.MaxInt64 + 1), nil},
		{verbatimNumbers, []byte("-7"), int64(-7)},
		{verbatimNumbers, []byte("7.0"), nil},
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
		dialect        dialect.Dialect
		typ, collation string
		want           verbatim
	}{
		{dialect.SQLite, "", "", verbatimText | verbatimNumbers},
		{dialect.PostgreSQL, "text", "", verbatimText},
		{dialect.PostgreSQL, "character varying(40)", "", verbatimText},
		{dialect.PostgreSQL, "character varying(40)[]", "", 0},
		{dialect.PostgreSQL, "text[]", "", 0},
		{dialect.PostgreSQL, "character(4)", "", 0},
		{dialect.PostgreSQL, "citext", "", 0},
		{dialect.PostgreSQL, "bigint", "", verbatimNumbers},
		{dialect.PostgreSQL, "numeric(6,2)", "", 0},
		{dialect.MySQL, "varchar(40)", "utf8mb4_general_ci", verbatimText},
		{dialect.MySQL, "varchar(40)", "latin1_swedish_ci", 0},
		{dialect.MySQL, "varbinary(40)", "", 0},
		{dialect.MySQL, "bigint(20) unsigned", "", verbatimNumbers},
		{dialect.MySQL, "datetime(3)", "", 0},
	} {
		c := Column{typ: test.typ, Collate: test.collation, form: dialect.FormOf(test.dialect, test.typ, test.collation)}
		if got := databases[test.dialect].stores(&c); got != test.want {
			t.Errorf("%s on %v, %q: %d; want %d", test.typ, test.dialect, test.collation, got, test.want)
		}
	}
}

func TestTuplesAreEqualOnlyIfTheirValuesAre(t *testing.T) {
	seen := map[any][]any{}
	for _, values := range [][]any{
		{"a"}, {int64(1)}, {"1"}, {"a", "b"}, {"ab", ""}, {"", "ab"}, {"1:a", "b"}, {"a", "1:b"},
		{int64(1), "a"}, {"1", "a"}, {int64(11), int64(1)}, {int64(1), int64(11)}, {int64(1), "1:a"}, {nil, "a"},
	} {
		if other, met := seen[tupleOf(values)]; met {
			t.Errorf("tupleOf(%q) and of %q are equal", values, other)
		}
		seen[tupleOf(values)] = values
	}
}
