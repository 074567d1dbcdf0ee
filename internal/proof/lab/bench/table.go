package main

import (
	"fmt"
	"strconv"
	"strings"
)

// table writes rows as Markdown, with the first row as the head. Columns that begin with a
// number are aligned right.
func table(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		b.WriteString("|" + strings.Join(row, "|") + "|\n")
		if i == 0 {
			b.WriteString("|")
			for c := range row {
				if len(rows) > 1 && strings.ContainsAny(rows[1][c][:min(1, len(rows[1][c]))], "0123456789") {
					b.WriteString("---:|")
				} else {
					b.WriteString("---|")
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// number writes three significant digits or so; measurements have no more.
func number(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return thousands(v)
}

// thousands writes v without decimals, in groups of three digits.
func thousands(v float64) string {
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// cell returns a median, or a dash where there is none.
func (r *results) cell(name, unit string) string { return r.scaled(name, unit, 1) }

// scaled returns a median divided by a power of ten.
func (r *results) scaled(name, unit string, by float64) string {
	v, ok := r.median(name, unit)
	switch {
	case !ok:
		return "–"
	case strings.HasPrefix(unit, "allocs"), strings.HasPrefix(unit, "dup"), unit == "fetches":
		return fmt.Sprintf("%.0f", v)
	}
	return number(v / by)
}

// A column or a row of a table: its title, and the part of the names of benchmarks.
type entry struct{ name, title string }

// counts are a column for each n, with names such as "c=8".
func counts(letter string, list ...int) (columns []entry) {
	for _, n := range list {
		columns = append(columns, entry{fmt.Sprintf("%s=%d", letter, n), letter + " = " + strconv.Itoa(n)})
	}
	return columns
}

// grid makes a table of rows and columns, by what cell says of each pair.
func grid(corner string, rows, columns []entry, cell func(row, column string) string) string {
	head := []string{corner}
	for _, c := range columns {
		head = append(head, c.title)
	}
	all := [][]string{head}
	for _, r := range rows {
		line := []string{r.title}
		for _, c := range columns {
			line = append(line, cell(r.name, c.name))
		}
		all = append(all, line)
	}
	return table(all)
}

const (
	markerStart = "<!-- measured: "
	markerEnd   = "<!-- /measured -->"
)

// fill returns page with the sections that its markers name between these. A name without
// a section and a marker without an end are errors.
func fill(page string, sections map[string]string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(page, markerStart)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, ok := strings.Cut(rest, " -->")
		if !ok {
			return "", fmt.Errorf("marker %q without -->", markerStart)
		}
		old, after, ok := strings.Cut(rest, markerEnd)
		if !ok || strings.Contains(old, markerStart) {
			return "", fmt.Errorf("marker %q without %s", name, markerEnd)
		}
		content, ok := sections[name]
		if !ok {
			return "", fmt.Errorf("marker %q names no section", name)
		}
		b.WriteString(markerStart + name + " -->\n" + content + markerEnd)
		page = after
	}
}
