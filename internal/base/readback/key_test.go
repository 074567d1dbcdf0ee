package readback

import (
	"slices"
	"strings"
	"testing"
)

// TestQuotesAndCommentsAreOneTokenEach keeps names apart from what is quoted.
func TestQuotesAndCommentsAreOneTokenEach(t *testing.T) {
	for _, test := range []struct {
		sql  string
		want []string
	}{
		{"state = 'a b'", []string{"state", " ", "=", " ", "'a b'"}},
		{"`a``b`<>\"c\"", []string{"`a``b`", "<", ">", "\"c\""}},
		{"[a b] -- c d", []string{"[a b]", " ", "-- c d"}},
		{"x/* y */IS  NULL", []string{"x", "/* y */", "IS", "  ", "NULL"}},
		{"'open", []string{"'open"}},
		{"", nil},
	} {
		if got := Tokens(test.sql); !slices.Equal(got, test.want) {
			t.Errorf("Tokens(%q) = %q; want %q", test.sql, got, test.want)
		}
	}
	for token, want := range map[string]string{"`a``b`": "a`b", `"a"`: "a", "[a]": "a", "'a'": "a", "a": "a", "`": "`", "": ""} {
		if got := unquote(token); got != want {
			t.Errorf("unquote(%q) = %q; want %q", token, got, want)
		}
	}
}

func FuzzScriptIsItsTokens(f *testing.F) {
	for _, sql := range []string{"", "CREATE TABLE `a``b` ([x] int, 'y' text) -- end", "/* open", "'open", "[open", "\"\"\"", "id int\x00é"} {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		tokens := Tokens(sql)
		if got := strings.Join(tokens, ""); got != sql || slices.Contains(tokens, "") {
			t.Errorf("tokens of %q = %q; want them to be it, and none empty", sql, tokens)
		}
	})
}
