package sqlrow

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

// Bind returns a statement, whose parameters are '?', and its arguments as they take one round
// trip.
//
// Drivers prepare a statement that has arguments, which takes another trip, and lib/pq leaves it
// to a pooler in transaction mode whether both go to the same server. The arguments therefore
// become literals, except for SQLite, which is no trip away, and for pgx, which keeps statements
// prepared, unless a pooler has lost one.
func (d *DB) Bind(text string, args ...any) (string, []any, error) {
	pgx := strings.HasPrefix(fmt.Sprintf("%T", d.pool.Driver()), "*stdlib.")
	if c := d.config.Dialect; c == dialect.SQLite || c == dialect.PostgreSQL && pgx && !d.pooled.Load() {
		return c.Bind(text), args, nil
	}
	text, err := interpolate(d.config.Dialect, text, args)
	return text, nil, err
}

// interpolate replaces each '?' in text by a literal of PostgreSQL or MySQL. An argument is an
// int64 or a string of ASCII. Other strings are refused, because in some encodings of a connection a
// byte that is not ASCII takes the quotation mark or the backslash behind it along, and so are NUL,
// which PostgreSQL cannot store, and DEL.
func interpolate(d dialect.Dialect, text string, args []any) (string, error) {
	parts := strings.Split(text, "?")
	if len(parts) != len(args)+1 {
		return "", fmt.Errorf("%d arguments for %d parameters", len(args), len(parts)-1)
	}
	var b strings.Builder
	b.WriteString(parts[0])
	for i, arg := range args {
		switch arg := arg.(type) {
		case int64:
			b.WriteString(literalNumber(d, arg))
		case string:
			if strings.ContainsFunc(arg, func(r rune) bool { return r == 0 || r > '~' }) {
				return "", fmt.Errorf("argument %d is %.64q, want ASCII without NUL and DEL", i+1, arg)
			}
			b.WriteString(literalText(d, arg))
		default:
			return "", fmt.Errorf("argument %d is a %T, want an int64 or a string", i+1, arg)
		}
		b.WriteString(parts[i+1])
	}
	return b.String(), nil
}

// literalNumber quotes n for PostgreSQL, where a quoted literal gets its type from its place, as a
// parameter does. The parentheses keep two minus signs from beginning a comment.
func literalNumber(d dialect.Dialect, n int64) string {
	text := strconv.FormatInt(n, 10)
	switch {
	case d == dialect.PostgreSQL:
		return "'" + text + "'"
	case n < 0:
		return "(" + text + ")"
	}
	return text
}

// literalText writes s in a form that means the same under every setting: in PostgreSQL,
// standard_conforming_strings does not apply to E'…', and in MySQL, sql_mode not to
// hexadecimal digits.
func literalText(d dialect.Dialect, s string) string {
	if d == dialect.PostgreSQL {
		return "E'" + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), "'", "''") + "'"
	}
	return fmt.Sprintf("_ascii X'%x'", s)
}
