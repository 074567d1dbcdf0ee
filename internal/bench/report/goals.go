package main

import (
	"fmt"
	"math"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// A goal is a bound on something computed from medians.
type goal struct {
	text   string
	atMost bool // else at least
	limit  float64
	format string
	value  func(*medians) float64
}

// medians looks medians up and remembers whether one was missing. So the formulas of
// the goals need no checks.
type medians struct {
	*benchmark.Results
	missing string
}

func (m *medians) of(name, unit string) float64 {
	v, ok := m.Median(name, unit)
	if !ok && m.missing == "" {
		m.missing = name + " " + unit
	}
	return v
}

// extreme returns pick (math.Min, math.Max) over the medians of
// format applied to each value.
func (m *medians) extreme(pick func(a, b float64) float64, unit, format string, values ...int) float64 {
	out := m.of(fmt.Sprintf(format, values[0]), unit)
	for _, v := range values[1:] {
		out = pick(out, m.of(fmt.Sprintf(format, v), unit))
	}
	return out
}

func goals() []goal {
	ratio := func(a, b, unit string) func(*medians) float64 {
		return func(m *medians) float64 { return m.of(a, unit) / m.of(b, unit) }
	}
	return []goal{
		{"`Next`, one goroutine, against the floor", true, 1.15, "%.2f ×",
			ratio("Next/snowkey", "Next/floor=Since+Add", "ns/op")},
		{"`Next`, one goroutine, against bwmarrin", true, 0.90, "%.2f ×",
			ratio("Next/snowkey", "Next/bwmarrin", "ns/op")},
		{"`Next`, allocations per ID", true, 0, "%.0f",
			func(m *medians) float64 { return m.of("Next/snowkey", "allocs/op") }},
		{"64 goroutines, against the floor", true, 1.10, "%.2f ×",
			ratio("Contention/c=64/snowkey", "Contention/c=64/floor=Since+Add", "ns/ID")},
		{"64 goroutines, rate against bwmarrin's", false, 3, "%.2f ×",
			ratio("Contention/c=64/bwmarrin", "Contention/c=64/snowkey", "ns/ID")},
		{"a leased worker against a fixed one, one goroutine", true, 1.05, "%.2f ×",
			ratio("Lease/c=1/leased", "Lease/c=1/fixed", "ns/ID")},
		{"a leased worker against a fixed one, 64 goroutines", true, 1.05, "%.2f ×",
			ratio("Lease/c=64/leased", "Lease/c=64/fixed", "ns/ID")},
		{"duplicates in any contention run", true, 0, "%.0f",
			func(m *medians) float64 {
				return m.extreme(math.Max, "dup/op", "Contention/c=%d/snowkey", 1, 2, 4, 8, 12, 64)
			}},
		{"12 bits saturated, share of 4,096 per ms, worst of 1, 2, 8, 64 goroutines", false, 99.9, "%.2f %%",
			func(m *medians) float64 {
				return m.extreme(math.Min, "%cap", "Saturation/alone/c=%d/snowkey", 1, 2, 8, 64)
			}},
		{"12 bits saturated, CPU of one core, worst of 1, 2, 8 goroutines", true, 20, "%.1f %%",
			func(m *medians) float64 {
				return m.extreme(math.Max, "%core", "Saturation/alone/c=%d/snowkey", 1, 2, 8)
			}},
		{"12 bits saturated, CPU of one core, 64 goroutines", true, 25, "%.1f %%",
			func(m *medians) float64 { return m.of("Saturation/alone/c=64/snowkey", "%core") }},
		{"12 bits saturated, share with a spinning goroutine per CPU beside it, worst of 1, 2, 8, 64", false, 98, "%.1f %%",
			func(m *medians) float64 {
				return m.extreme(math.Min, "%cap", "Saturation/hogs/c=%d/snowkey", 1, 2, 8, 64)
			}},
		{"`Fill` of 100, ns per ID", true, 1.0, "%.2f",
			func(m *medians) float64 { return m.of("Fill/n=100/snowkey", "ns/ID") }},
		{"`Fill` of 1,000 and 10,000, ns per ID, worst", true, 0.5, "%.2f",
			func(m *medians) float64 { return m.extreme(math.Max, "ns/ID", "Fill/n=%d/snowkey", 1000, 10000) }},
		{"JSON, marshal a slice, against bwmarrin", true, 0.6, "%.2f ×",
			ratio("JSON/Marshal/snowkey", "JSON/Marshal/bwmarrin", "ns/op")},
		{"JSON v2, marshal a slice of 100, allocations more than for `[]int64`", true, 0, "%.0f",
			func(m *medians) float64 {
				return m.of("JSONv2/Marshal/snowkey", "allocs/op") - m.of("JSONv2/Marshal/int64", "allocs/op")
			}},
		{"parse decimal text, against bwmarrin", true, 0.5, "%.2f ×",
			ratio("Text/Parse/snowkey", "Text/Parse/bwmarrin", "ns/op")},
	}
}

// notMeasured begins what a verdict says of a goal without results.
const notMeasured = "not measured: "

// verdict compares the goal with what was measured. What was not measured was not
// reached.
func (g goal) verdict(r *benchmark.Results) benchmark.Goal {
	m := &medians{Results: r}
	v := g.value(m)
	sign, reached := "≥ ", v >= g.limit
	if g.atMost {
		sign, reached = "≤ ", v <= g.limit
	}
	out := benchmark.Goal{Title: g.text, Limit: sign + fmt.Sprintf(g.format, g.limit), Measured: fmt.Sprintf(g.format, v), Reached: reached}
	if m.missing != "" {
		out.Measured, out.Reached = notMeasured+m.missing, false
	}
	return out
}
