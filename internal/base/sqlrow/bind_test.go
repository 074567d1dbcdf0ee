package sqlrow

import (
	"math"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

func TestLiteralsMeanTheSameUnderEverySetting(t *testing.T) {
	for _, test := range []struct {
		arg               any
		postgreSQL, mySQL string
	}{
		{int64(0), "'0'", "0"},
		{int64(math.MaxInt64), "'9223372036854775807'", "9223372036854775807"},
		{int64(math.MinInt64), "'-9223372036854775808'", "(-9223372036854775808)"},
		{"", "E''", "_ascii X''"},
		{"shop", "E'shop'", "_ascii X'73686f70'"},
		{`'; DROP TABLE x; -- ?`, `E'''; DROP TABLE x; -- ?'`, "_ascii X'273b2044524f50205441424c4520783b202d2d203f'"},
		{`\' \\ $1`, `E'\\'' \\\\ $1'`, `_ascii X'5c27205c5c202431'`},
		{"\x01\n~", "E'\x01\n~'", "_ascii X'010a7e'"},
	} {
		for d, want := range map[dialect.Dialect]string{dialect.PostgreSQL: test.postgreSQL, dialect.MySQL: test.mySQL} {
			if got, err := interpolate(d, "a - ?, ?", []any{test.arg, "x"}); err != nil || !strings.HasPrefix(got, "a - "+want+", ") {
				t.Errorf("%v: interpolate(%#v) = %s, %v; want %s", d, test.arg, got, err, want)
			}
		}
	}
}

func TestWhatIsNoLiteralIsRefused(t *testing.T) {
	for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.MySQL} {
		for _, args := range [][]any{
			{"a\x00b"}, {"\x7f"}, {"ü"}, {"\xbf'"}, {"\ufffd"}, {7}, {nil}, {[]byte("a")}, {1.5}, {true}, {}, {"a", "b"},
		} {
			if got, err := interpolate(d, "a = ?", args); err == nil || got != "" {
				t.Errorf("%v: interpolate(%q) = %q, %v; want an error", d, args, got, err)
			}
		}
	}
}
