package serial

import (
	"regexp"
	"strconv"
	"strings"
)

// written matches what Definition writes. A zone may have any name, also one that looks like
// what follows it: so the longest one is taken.
var written = regexp.MustCompile(`^prefix ("[^"]*"), (Never|Yearly|Monthly|Daily) in .*, ([0-9]+) digits from [0-9]+, (NoCheck|Luhn|Mod11_10|Mod97_10)` +
	`(?:, chronological)?(?:, separator "([^"]*)")?(?:, years from [A-Z][a-z]+(?: by their end)?)?(?:, scope ([^ ,]+))?$`)

// form returns the texts of a series as one: with # for each digit of a period, a number or
// a check.
func (s Series) form() string {
	return s.Prefix + strings.Repeat("#", s.Period.width()) + s.Separator + strings.Repeat("#", s.Digits+s.Check.width())
}

// Meets reports whether a text may be both one of s and one of a series of the same Scope
// with the given definition, which [Series.Definition] has written. A20260001 is a text of the
// prefix A with a year and four digits, and of the prefix A with eight digits. Each digit of
// a period, a number or a check is taken for any: what is refused by that may still never
// meet, as the months 13 to 99. A text that is no definition meets none.
//
// A [Store] refuses to define a series that meets another one by [ErrMeets].
func (s Series) Meets(definition string) bool {
	found := written.FindStringSubmatch(definition)
	if found == nil {
		return false
	}
	prefix, err := strconv.Unquote(found[1])
	if err != nil || found[6] != s.Scope {
		return false
	}
	digits, err := strconv.Atoi(found[3])
	if err != nil || digits > maxDigits {
		return false
	}
	other := Series{Prefix: prefix, Separator: found[5], Digits: digits}
	for p := Never; p <= Daily; p++ {
		if p.String() == found[2] {
			other.Period = p
		}
	}
	for c := NoCheck; c <= Mod97_10; c++ {
		if c.String() == found[4] {
			other.Check = c
		}
	}
	return formsMeet(s.form(), other.form())
}

func formsMeet(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		x, y := a[i], b[i]
		if x != y && !(x == '#' && isDigit(y)) && !(y == '#' && isDigit(x)) {
			return false
		}
	}
	return true
}
