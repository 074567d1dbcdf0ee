package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results are what one file of benchmark output holds.
type results struct {
	config map[string]string               // the lines "key: value"
	values map[string]map[string][]float64 // by benchmark, then by unit: one value per round
	busy   []int                           // percentages of the CPUs that other programs used
}

var (
	// testing adds GOMAXPROCS to a name, unless it is 1.
	procs = regexp.MustCompile(`-\d+$`)
	used  = regexp.MustCompile(`other programs used (\d+) % of the CPUs$`)
)

// parse reads the output of go test -bench. Names lose "Benchmark" and GOMAXPROCS. A
// benchmark that failed, a value that is not a number, and a text without benchmarks are
// errors, because a result that was overlooked would change the medians.
func parse(text string) (*results, error) {
	r := &results{config: map[string]string{}, values: map[string]map[string][]float64{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
			if m := used.FindStringSubmatch(line); m != nil {
				percent, _ := strconv.Atoi(m[1]) // digits alone
				r.busy = append(r.busy, percent)
			}
		case strings.Contains(line, "--- FAIL"), line == "FAIL":
			return nil, fmt.Errorf("line %d: a benchmark failed: %q", n, line)
		case strings.HasPrefix(line, "Benchmark") && len(fields) > 1:
			if err := r.add(fields); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		default:
			if key, value, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(key, " \t/") {
				r.config[key] = strings.TrimSpace(value)
			}
		}
	}
	if len(r.values) == 0 {
		return nil, fmt.Errorf("no benchmark in %d lines", n)
	}
	return r, nil
}

// add adds a line: the name, the count, and values, each before its unit.
func (r *results) add(fields []string) error {
	if len(fields) < 4 || len(fields)%2 != 0 {
		return fmt.Errorf("%d fields; want a name, a count, and values with units", len(fields))
	}
	name := procs.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
	units := r.values[name]
	if units == nil {
		units = map[string][]float64{}
		r.values[name] = units
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

// median returns the median of the rounds, and false if there are none.
func (r *results) median(name, unit string) (float64, bool) {
	list := r.values[name][unit]
	if len(list) == 0 {
		return 0, false
	}
	return middle(slices.Clone(list)), true
}

// middle returns the median of a list, which it sorts.
func middle(list []float64) float64 {
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}

// A spread is the median of what the rounds gave, and the bounds of the middle half of
// them.
type spread struct{ median, low, high float64 }

// ratio returns how many times as much a is as b, from the ratio of each round, because
// what disturbs a round disturbs both sides of it. It returns false unless both were
// measured in the same number of rounds.
func (r *results) ratio(a, b, unit string) (spread, bool) {
	x, y := r.values[a][unit], r.values[b][unit]
	if len(x) != len(y) || len(x) == 0 {
		return spread{}, false
	}
	ratios := make([]float64, len(x))
	for i := range x {
		ratios[i] = x[i] / y[i]
	}
	median, n := middle(ratios), len(ratios)
	return spread{median, ratios[n/4], ratios[n-1-n/4]}, true
}
