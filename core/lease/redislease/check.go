package redislease

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/core/lease"
)

func invalid(name, value, want string) *lease.ValueError {
	return &lease.ValueError{Package: "redislease", Name: name, Value: value, Want: want}
}

// plainPrefix reports whether a prefix is one. Braces would send the keys of a
// namespace to several servers of a cluster.
func plainPrefix(prefix string) bool {
	for _, c := range []byte(prefix) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && strings.IndexByte("._-:/", c) < 0 {
			return false
		}
	}
	return 1 <= len(prefix) && len(prefix) <= 64
}

// A number and a token of a request, by their names.
type (
	number struct {
		name  string
		value int64
	}
	token struct{ name, value string }
)

// check returns a *lease.ValueError if a request must not be sent: it would be for no
// space, spoil a row, claim it for nobody, or have numbers that Lua rounds.
func check(request string, space lease.Space, tokens []token, numbers ...number) error {
	if err := space.Check(); err != nil {
		return err
	}
	for _, t := range tokens {
		if t.value == "" || len(t.value) > 64 || strings.Contains(t.value, ",") {
			return invalid(request+"."+t.name, strconv.Quote(cut(t.value)), "32 hexadecimal digits")
		}
	}
	for _, n := range numbers {
		if n.value < -most || n.value > most {
			return invalid(request+"."+n.name, strconv.FormatInt(n.value, 10),
				fmt.Sprintf("%d..%d, which Lua's numbers hold exactly", int64(-most), int64(most)))
		}
	}
	return nil
}
