package benchmark

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Results are what one file of benchmark output holds.
type Results struct {
	Config   map[string]string               // the lines "key: value", and what benchmarks log in this form
	Comments []string                        // the lines that begin with "#", without it
	Values   map[string]map[string][]float64 // by benchmark, then by unit: one value per round
}

var (
	// testing adds GOMAXPROCS to a name, unless that is 1.
	procs = regexp.MustCompile(`-\d+$`)
	// a benchmark logs its file and line before the text.
	logged = regexp.MustCompile(`^\s+\w+\.go:\d+: `)
)

// Parse reads the output of go test -bench. Names are without "Benchmark" and without
// GOMAXPROCS. A benchmark that failed, a value that is not a number, and a text without
// benchmarks are errors. A result that was overlooked would change the medians.
func Parse(text string) (*Results, error) {
	r := &Results{Config: map[string]string{}, Values: map[string]map[string][]float64{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
			r.Comments = append(r.Comments, strings.TrimSpace(line[1:]))
		case strings.Contains(line, "--- FAIL"), line == "FAIL":
			return nil, fmt.Errorf("line %d: a benchmark failed: %q", n, line)
		case strings.HasPrefix(line, "Benchmark") && len(fields) > 1:
			if err := r.add(fields); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		default:
			line = logged.ReplaceAllString(line, "")
			if key, value, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(key, " \t/") {
				r.Config[key] = strings.TrimSpace(value)
			}
		}
	}
	if len(r.Values) == 0 {
		return nil, fmt.Errorf("no benchmark in %d lines", n)
	}
	return r, nil
}

// add adds a line: the name, the count, and values, each before its unit.
func (r *Results) add(fields []string) error {
	if len(fields) < 4 || len(fields)%2 != 0 {
		return fmt.Errorf("%d fields; want a name, a count, and values with units", len(fields))
	}
	name := procs.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
	units := r.Values[name]
	if units == nil {
		units = map[string][]float64{}
		r.Values[name] = units
	}
	for i := 2; i < len(fields); i += 2 {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return err
		}
		units[fields[i+1]] = append(units[fields[i+1]], v)
	}
	return nil
}

// Names returns the benchmarks in order.
func (r *Results) Names() []string { return slices.Sorted(maps.Keys(r.Values)) }

// Median returns the median of the rounds, and false if there are none.
func (r *Results) Median(name, unit string) (float64, bool) {
	list := r.Values[name][unit]
	if len(list) == 0 {
		return 0, false
	}
	return median(slices.Sorted(slices.Values(list))), true
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// A Spread is the median of what the rounds gave, and the bounds of the middle
// half of them.
type Spread struct{ Median, Low, High float64 }

// Ratio returns how many times as much a is as b, from the ratio of each round. What
// disturbs a round disturbs both sides of it. It returns false unless both were
// measured in the same number of rounds.
func (r *Results) Ratio(a, b, unit string) (Spread, bool) {
	x, y := r.Values[a][unit], r.Values[b][unit]
	if len(x) != len(y) || len(x) == 0 {
		return Spread{}, false
	}
	ratios := make([]float64, len(x))
	for i := range x {
		ratios[i] = x[i] / y[i]
	}
	slices.Sort(ratios)
	n := len(ratios)
	return Spread{median(ratios), ratios[n/4], ratios[n-1-n/4]}, true
}
