package sqlserial

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core/serial"
)

// written matches what [serial.Series.Definition] writes. The name of a zone may look like what
// follows it, so the longest one is taken.
var written = regexp.MustCompile(`^prefix ("[^"]*"), (Never|Yearly|Monthly|Daily) in .*, ([0-9]+) digits from [0-9]+, (NoCheck|Luhn|Mod11_10|Mod97_10)` +
	`(?:, chronological)?(?:, separator "([^"]*)")?(?:, years from [A-Z][a-z]+(?: by their end)?)?(?:, scope ([^ ,]+))?$`)

// form returns the texts of a series as one, with # for each digit of a period, a number or a
// check.
func form(s serial.Series) (string, error) {
	_, last := s.Bounds()
	n, err := s.Number(time.Unix(0, 0), last)
	if err != nil {
		return "", err
	}
	digits := func(n int) string { return strings.Repeat("#", n) }
	return s.Prefix + digits(len(n.Period)) + s.Separator + digits(len(n.Text)-len(s.Prefix)-len(n.Period)-len(s.Separator)), nil
}

// meet reports whether one text can belong both to s and to a series of the same Scope that has
// this definition. A20260001, for instance, is a text of the prefix A with a year and four digits,
// and of the prefix A with eight digits. Every # stands for any digit, so some series are taken to
// meet that never do, because no month is above 12. A text that is no definition meets none.
func meet(s serial.Series, definition string) bool {
	found := written.FindStringSubmatch(definition)
	if found == nil || found[6] != s.Scope {
		return false
	}
	other := serial.Series{Name: "other", Separator: found[5]}
	var err error
	if other.Prefix, err = strconv.Unquote(found[1]); err != nil {
		return false
	}
	if other.Digits, err = strconv.Atoi(found[3]); err != nil {
		return false
	}
	for p := serial.Never; p <= serial.Daily; p++ {
		if p.String() == found[2] {
			other.Period = p
		}
	}
	for c := serial.NoCheck; c <= serial.Mod97_10; c++ {
		if c.String() == found[4] {
			other.Check = c
		}
	}
	a, err := form(s)
	if err != nil {
		return false
	}
	b, err := form(other)
	return err == nil && formsMeet(a, b)
}

func formsMeet(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	isDigit := func(b byte) bool { return '0' <= b && b <= '9' }
	for i := range len(a) {
		x, y := a[i], b[i]
		if x != y && !(x == '#' && isDigit(y)) && !(y == '#' && isDigit(x)) {
			return false
		}
	}
	return true
}
