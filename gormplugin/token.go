package gormplugin

import (
	"strings"
)

// A sqlScript is a statement in tokens. Joined together they are the statement.
// They are words, quoted names and strings, spaces and comments, and single
// characters.
type sqlScript struct{ tokens []string }

func (s *sqlScript) String() string { return strings.Join(s.tokens, "") }

func parseSQL(sql string) *sqlScript {
	s := &sqlScript{}
	for len(sql) > 0 {
		n := tokenLength(sql)
		s.tokens, sql = append(s.tokens, sql[:n]), sql[n:]
	}
	return s
}

// tokenLength returns the length of the first token of sql, which is not empty.
func tokenLength(sql string) int {
	until := func(from int, end string) int {
		if i := strings.Index(sql[from:], end); i >= 0 {
			return from + i + len(end)
		}
		return len(sql)
	}
	span := func(in func(byte) bool) int {
		n := 1
		for n < len(sql) && in(sql[n]) {
			n++
		}
		return n
	}
	switch c := sql[0]; {
	case c == '"' || c == '\'' || c == '`':
		for n := 1; ; {
			n = until(n, string(c))
			if n >= len(sql) || sql[n] != c { // a doubled quote is one in the name
				return n
			}
			n++
		}
	case c == '[':
		return until(1, "]")
	case strings.HasPrefix(sql, "--"):
		return until(2, "\n")
	case strings.HasPrefix(sql, "/*"):
		return until(2, "*/")
	case isSpace(c):
		return span(isSpace)
	case isWord(c):
		return span(isWord)
	default:
		return 1
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// blank reports whether a token is a space or a comment, or was taken out.
func blank(token string) bool {
	return token == "" || isSpace(token[0]) || strings.HasPrefix(token, "--") || strings.HasPrefix(token, "/*")
}

// find returns the place of the first token from i on that is as wanted, or -1.
func (s *sqlScript) find(i int, wanted func(token string) bool) int {
	for ; i < len(s.tokens); i++ {
		if wanted(s.tokens[i]) {
			return i
		}
	}
	return -1
}

// seek looks for words that follow one another, outside of quotes and comments. It
// returns the place of the last of them where they first do, or -1.
func (s *sqlScript) seek(words ...string) int {
	run := 0
	for i, token := range s.tokens {
		switch {
		case blank(token):
		case strings.EqualFold(token, words[run]):
			if run++; run == len(words) {
				return i
			}
		default:
			run = 0
		}
	}
	return -1
}

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
