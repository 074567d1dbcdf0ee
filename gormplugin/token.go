package gormplugin

import (
	"regexp"
	"strings"
)

// sqlToken matches a quoted name or string, a comment, spaces, a word, or a single
// character. Together the tokens of a statement are the statement. A doubled quote is
// one in the name. A quote that nothing closes ends with the statement.
var sqlToken = regexp.MustCompile(`(?s)"(?:[^"]|"")*"?|'(?:[^']|'')*'?|` + "`(?:[^`]|``)*`?" +
	`|\[[^\]]*\]?|--[^\n]*\n?|/\*.*?(?:\*/|$)|\s+|[\w$\x{80}-\x{10ffff}]+|.`)

func tokensOf(sql string) []string { return sqlToken.FindAllString(sql, -1) }

// unquote returns the name in a token. A token without quotes is returned as it is.
func unquote(token string) string {
	if len(token) < 2 {
		return token
	}
	switch q := token[0]; q {
	case '"', '`', '\'':
		return strings.ReplaceAll(token[1:len(token)-1], string(q)+string(q), string(q))
	case '[':
		return token[1 : len(token)-1]
	default:
		return token
	}
}
