package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// line writes a measurement as package testing writes a benchmark.
func (m measurement) line(name string) string {
	rows := float64(m.rows)
	text := fmt.Sprintf("BenchmarkInsert/%s\t1\t%d ns/op\t%.0f rows/s\t%.3f allocs/row\t%.3f client-us/row",
		name, m.elapsed.Nanoseconds(), m.rate(), float64(m.mallocs)/rows, float64(m.client.Nanoseconds())/1e3/rows)
	if m.server > 0 {
		text += fmt.Sprintf("\t%.3f server-us/row", float64(m.server.Nanoseconds())/1e3/rows)
	}
	return text + "\n"
}

// results are what a file of measurements holds.
type results struct {
	config map[string]string               // of the lines "key: value"
	values map[string]map[string][]float64 // by variant, then by unit: one value per round
	others []int                           // the percentage of the CPUs that other programs used, by round
}

var (
	configLine = regexp.MustCompile(`^([A-Za-z][\w-]*): (.+)$`)
	othersLine = regexp.MustCompile(`^# round \d+: before it, other programs used (\d+) % of the CPUs$`)
)

// parse reads what measure has written. A line that it does not know is an error,
// because a result that was overlooked would change the medians silently.
func parse(text string) (*results, error) {
	r := &results{config: map[string]string{}, values: map[string]map[string][]float64{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutPrefix(line, "BenchmarkInsert/"); ok {
			if err := r.add(strings.Fields(name)); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		} else if m := othersLine.FindStringSubmatch(line); m != nil {
			percent, err := strconv.Atoi(m[1])
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			r.others = append(r.others, percent)
		} else if m := configLine.FindStringSubmatch(line); m != nil {
			r.config[m[1]] = m[2]
		} else {
			return nil, fmt.Errorf("line %d is none of a measurement: %q", n, line)
		}
	}
	if len(r.values) == 0 {
		return nil, errors.New("no measurement in it")
	}
	return r, nil
}

// add adds the fields of a line: name, count, and pairs of a value and its unit.
func (r *results) add(fields []string) error {
	if len(fields) < 4 || len(fields)%2 != 0 {
		return fmt.Errorf("%d fields, want a name, a count, and values with units", len(fields))
	}
	units := r.values[fields[0]]
	if units == nil {
		units = map[string][]float64{}
		r.values[fields[0]] = units
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

func median(list []float64) (float64, bool) {
	if len(list) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2, true
}

func (r *results) median(name, unit string) (float64, bool) { return median(r.values[name][unit]) }

// A spread is the median of what the rounds gave, and within which bounds the
// middle half of them lies.
type spread struct{ median, low, high float64 }

// speed returns how many times as fast a is as b, from the ratios of each round,
// since what disturbs a round disturbs both sides of it.
func (r *results) speed(a, b string) (spread, bool) {
	x, y := r.values[a]["ns/op"], r.values[b]["ns/op"]
	if len(x) != len(y) || len(x) == 0 {
		return spread{}, false
	}
	ratios := make([]float64, len(x))
	for i := range x {
		ratios[i] = y[i] / x[i]
	}
	slices.Sort(ratios)
	m, _ := median(ratios)
	n := len(ratios)
	return spread{m, ratios[n/4], ratios[n-1-n/4]}, true
}

// limitOf returns the name of the fastest limit of a target, or "".
func (r *results) limitOf(t target, load string) string {
	best, name := 0.0, ""
	for _, v := range variants() {
		if !v.limit || v.load != load || !v.on(t) {
			continue
		}
		if ns, ok := r.median(nameOf(t, v), "ns/op"); ok && (name == "" || ns < best) {
			best, name = ns, nameOf(t, v)
		}
	}
	return name
}
