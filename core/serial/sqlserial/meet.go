package sqlserial

import (
	"regexp"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core/serial"
)

// zone is what of a definition has no part in its texts, and may be unknown on this machine.
var zone = regexp.MustCompile(`^(prefix "[^"]*", \w+ in ).*(, [0-9]+ digits from )`)

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
	other, err := serial.ParseDefinition("other", zone.ReplaceAllString(definition, "${1}UTC${2}"))
	if err != nil || other.Scope != s.Scope {
		return false
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
