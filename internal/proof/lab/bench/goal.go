package main

import (
	"fmt"
	"math"
)

// A goal is a bound on something that is computed from medians.
type goal struct {
	title  string
	atMost bool // else at least
	limit  float64
	format string
	value  func(*results) float64 // NaN if something of it was not measured
}

// of returns a median, or NaN, so that the formulas of the goals need no checks.
func (r *results) of(name, unit string) float64 {
	if v, ok := r.median(name, unit); ok {
		return v
	}
	return math.NaN()
}

// extreme returns pick (math.Min, math.Max) over the medians of format applied to each
// value.
func (r *results) extreme(pick func(a, b float64) float64, unit, format string, values ...int) float64 {
	out := r.of(fmt.Sprintf(format, values[0]), unit)
	for _, v := range values[1:] {
		out = pick(out, r.of(fmt.Sprintf(format, v), unit))
	}
	return out
}

// quotient is the value of a goal that compares two medians.
func quotient(a, b, unit string) func(*results) float64 {
	return func(r *results) float64 { return r.of(a, unit) / r.of(b, unit) }
}

// missedGoals says how many goals are reached, how many were not measured, and which were
// missed.
func missedGoals(all map[string]*results) string {
	rows := [][]string{{"missed", "goal", "measured"}}
	count, unknown := 0, 0
	for _, s := range suites {
		for _, g := range s.goals() {
			count++
			v, sign := g.value(all[s.name]), "≥ "
			if g.atMost {
				sign = "≤ "
			}
			switch {
			case math.IsNaN(v):
				unknown++
			case g.atMost && v > g.limit, !g.atMost && v < g.limit:
				rows = append(rows, []string{s.title + ": " + g.title, sign + fmt.Sprintf(g.format, g.limit), fmt.Sprintf(g.format, v)})
			}
		}
	}
	reached := count - unknown - (len(rows) - 1)
	return fmt.Sprintf("%d of %d goals are reached, %d were not measured.\n\n%s", reached, count, unknown, table(rows))
}
