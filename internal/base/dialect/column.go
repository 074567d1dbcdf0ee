package dialect

import (
	"fmt"
	"strings"
)

// Parts takes a column type such as "numeric(20,0)" apart. A missing number is 0.
func Parts(typ string) (base string, precision, scale int) {
	base, rest, ok := strings.Cut(typ, "(")
	if ok {
		inside, _, _ := strings.Cut(rest, ")")
		if n, _ := fmt.Sscanf(inside, "%d,%d", &precision, &scale); n == 0 {
			precision = 0
		}
	}
	return strings.TrimSpace(base), precision, scale
}
