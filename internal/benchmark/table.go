package benchmark

import (
	"fmt"
	"strconv"
	"strings"
)

// A Goal is a bound, and what was measured against it.
type Goal struct {
	Title, Limit, Measured string
	Reached                bool
}

// Goals writes a table of goals.
func Goals(goals []Goal) string {
	rows := [][]string{{"", "goal", "measured", ""}}
	for _, g := range goals {
		mark := "**missed**"
		if g.Reached {
			mark = "reached"
		}
		rows = append(rows, []string{g.Title, g.Limit, g.Measured, mark})
	}
	return Table(rows)
}

// Table writes rows, the first of which is the head, as Markdown. All columns but
// the first are aligned right.
func Table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(row)-1) + "\n")
		}
	}
	return b.String()
}

// Number writes three digits or so: what was measured has no more.
func Number(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Thousands writes v without decimals, in groups of three digits.
func Thousands(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
