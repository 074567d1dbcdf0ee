package gormcases

import "time"

// An oracleType is a type of a column, with values that some types store alike and others
// do not. All values are of one Go type.
type oracleType struct {
	sql    string
	values []any
	text   bool // can be compared by a prefix, in another collation or in lower case
	prefix bool // MySQL indexes no more than a prefix
	odd    bool // its key may stay hidden: the stored form of a value is not known
}

// kind returns the first letter of the fields that take the values.
func (t oracleType) kind() string {
	switch t.values[0].(type) {
	case string:
		return "S"
	case int64:
		return "N"
	case float64:
		return "F"
	case time.Time:
		return "T"
	default:
		return "B"
	}
}

var (
	wordValues   = []any{"a", "b", "A", "a ", "ä", "ß", "ss", "ab", "aB", "abcd", "", "%", "日本"}
	numeralTexts = []any{"1", "6", "6.4", "6.5", "1.0", "01", "7", "-1", "6.44"}
	timeTexts    = []any{"10:00:00", "00:00:00", "10:00:00.4", "10:00:00.6", "10:00:01", "36:00:00", "100000"}
	dateTexts    = []any{"2026-03-01", "2026-03-02", "2026-03-01 10:00:00", "2026-03-01 10:00:00.4", "2026-03-01 10:00:00.6", "2026-03-01 10:00:01"}
	integers     = []any{int64(1), int64(2), int64(21), int64(0), int64(6), int64(2000), int64(2021), int64(100000)}
	floats       = []any{1.0, 6.5, 6.4, 6.44, 0.1, 6.0, 1e15 / 3}
	moments      = []any{
		time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 3, 1, 10, 0, 0, 400_000_000, time.UTC), time.Date(2026, 3, 1, 10, 0, 0, 400_100_000, time.UTC),
		time.Date(2026, 3, 1, 10, 0, 0, 600_000_000, time.UTC), time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 7200)),
	}
	byteValues = []any{[]byte("a"), []byte("b"), []byte("A"), []byte("a\x00"), []byte("a "), []byte{0xff}}
	flags      = []any{int64(0), int64(1)}
)

func textType(sql string) oracleType { return oracleType{sql: sql, values: wordValues, text: true} }

var oracleTypes = map[string][]oracleType{
	"sqlite": {
		textType("text"), textType("text COLLATE NOCASE"), textType("text COLLATE RTRIM"), textType("varchar(3)"),
		{sql: "numeric", values: numeralTexts}, {sql: "integer", values: numeralTexts}, {sql: "real", values: numeralTexts}, {sql: "blob", values: numeralTexts},
		{sql: "datetime", values: dateTexts},
		{sql: "bigint", values: integers}, {sql: "text", values: integers}, {sql: "real", values: integers}, {sql: "boolean", values: flags},
		{sql: "double", values: floats}, {sql: "integer", values: floats}, {sql: "text", values: floats},
		{sql: "datetime", values: moments}, {sql: "text", values: moments}, {sql: "date", values: moments},
		{sql: "blob", values: byteValues}, {sql: "text", values: byteValues},
	},
	"postgres": {
		textType("text"), textType("varchar(3)"), textType("char(3)"), textType(`text COLLATE "C"`),
		{sql: "numeric(4,1)", values: numeralTexts}, {sql: "numeric", values: numeralTexts}, {sql: "double precision", values: numeralTexts}, {sql: "real", values: numeralTexts},
		{sql: "time(0)", values: timeTexts}, {sql: "time", values: timeTexts}, {sql: "interval", values: timeTexts}, {sql: "interval(0)", values: timeTexts},
		{sql: "date", values: dateTexts}, {sql: "timestamp(0)", values: dateTexts}, {sql: "timestamptz", values: dateTexts},
		{sql: "uuid", values: []any{"6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b811-9dad-11d1-80b4-00c04fd430c8"}},
		{sql: "inet", values: []any{"10.0.0.1", "10.0.0.1/32", "10.0.0.2"}},
		{sql: "jsonb", values: []any{`{"a":1}`, `{"a": 1}`, `{"a":1.0}`, `{}`}},
		{sql: "bigint", values: integers}, {sql: "smallint", values: integers}, {sql: "numeric(6,2)", values: integers}, {sql: "real", values: integers},
		{sql: "real", values: floats}, {sql: "double precision", values: floats}, {sql: "numeric(5,1)", values: floats},
		{sql: "timestamptz", values: moments}, {sql: "timestamp(0)", values: moments}, {sql: "timestamptz(3)", values: moments}, {sql: "date", values: moments},
		{sql: "bytea", values: byteValues},
	},
	"mysql": {
		textType("varchar(5)"), textType("varchar(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"), textType("char(5)"), textType("varchar(5) CHARACTER SET latin1"),
		textType("varchar(5) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
		{sql: "text", values: wordValues, prefix: true}, {sql: "blob", values: wordValues, prefix: true},
		{sql: "enum('a','b','ab')", values: wordValues[:4], odd: true}, {sql: "set('a','b')", values: []any{"a", "b", "a,b", "b,a", "A", ""}, odd: true},
		{sql: "int", values: numeralTexts, odd: true}, {sql: "decimal(5,1)", values: numeralTexts, odd: true}, {sql: "double", values: numeralTexts, odd: true},
		{sql: "time", values: timeTexts, odd: true}, {sql: "time(1)", values: timeTexts, odd: true},
		{sql: "date", values: dateTexts, odd: true}, {sql: "datetime", values: dateTexts, odd: true}, {sql: "datetime(1)", values: dateTexts, odd: true},
		{sql: "year", values: []any{"0", "21", "2021", "2000", "00"}, odd: true},
		{sql: "bigint", values: integers}, {sql: "mediumint unsigned", values: integers}, {sql: "decimal(7,1)", values: integers, odd: true}, {sql: "float", values: integers, odd: true},
		{sql: "bit(20)", values: integers, odd: true}, {sql: "year", values: integers[:7], odd: true}, {sql: "time", values: integers, odd: true}, {sql: "boolean", values: flags},
		{sql: "double", values: floats, odd: true}, {sql: "float", values: floats, odd: true}, {sql: "decimal(5,1)", values: floats[:6], odd: true}, {sql: "float(5,1)", values: floats[:6], odd: true}, {sql: "double(5,1)", values: floats[:6], odd: true},
		{sql: "int", values: floats[:6], odd: true},
		{sql: "datetime", values: moments}, {sql: "datetime(3)", values: moments}, {sql: "timestamp NULL", values: moments, odd: true}, {sql: "date", values: moments, odd: true}, {sql: "time", values: moments, odd: true},
		{sql: "varbinary(5)", values: byteValues}, {sql: "binary(3)", values: byteValues, odd: true}, {sql: "blob", values: byteValues, prefix: true},
	},
}
