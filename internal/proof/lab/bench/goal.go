package main

import "fmt"

// A goal is a bound on something that is computed from medians.
type goal struct {
	title  string
	atMost bool // else at least
	limit  float64
	format string
	value  func(*medians) float64
}

// medians looks medians up and remembers the first that is missing, so that the formulas
// of the goals need no checks.
type medians struct {
	*results
	missing string
}

func (m *medians) of(name, unit string) float64 {
	v, ok := m.median(name, unit)
	if !ok && m.missing == "" {
		m.missing = name + " " + unit
	}
	return v
}

// ofRounds is the median of the ratios of the rounds.
func (m *medians) ofRounds(a, b, unit string) float64 {
	v, ok := m.ratio(a, b, unit)
	if !ok && m.missing == "" {
		m.missing = a + " against " + b
	}
	return v.median
}

// extreme returns pick (math.Min, math.Max) over the medians of format applied to each
// value.
func (m *medians) extreme(pick func(a, b float64) float64, unit, format string, values ...int) float64 {
	out := m.of(fmt.Sprintf(format, values[0]), unit)
	for _, v := range values[1:] {
		out = pick(out, m.of(fmt.Sprintf(format, v), unit))
	}
	return out
}

// quotient is the value of a goal that compares two medians.
func quotient(a, b, unit string) func(*medians) float64 {
	return func(m *medians) float64 { return m.of(a, unit) / m.of(b, unit) }
}

// A verdict is what was measured against a goal.
type verdict struct {
	limit, measured string
	reached, known  bool
}

// judge compares the goal with what was measured. What was not measured was not reached.
func (g goal) judge(r *results) verdict {
	m := &medians{results: r}
	v := g.value(m)
	sign, reached := "≥ ", v >= g.limit
	if g.atMost {
		sign, reached = "≤ ", v <= g.limit
	}
	out := verdict{sign + fmt.Sprintf(g.format, g.limit), fmt.Sprintf(g.format, v), reached, true}
	if m.missing != "" {
		out.measured, out.reached, out.known = "not measured: "+m.missing, false, false
	}
	return out
}

// missedGoals says how many goals are reached, how many were not measured, and which were
// missed.
func missedGoals(all map[string]*results) string {
	rows := [][]string{{"missed", "goal", "measured"}}
	reached, known, count := 0, 0, 0
	for _, s := range suites {
		for _, g := range s.goals() {
			v := g.judge(all[s.name])
			count++
			if v.known {
				known++
			}
			if v.reached {
				reached++
			} else if v.known {
				rows = append(rows, []string{s.title + ": " + g.title, v.limit, v.measured})
			}
		}
	}
	return fmt.Sprintf("%d of %d goals are reached, %d were not measured.\n\n%s", reached, count, count-known, table(rows))
}
