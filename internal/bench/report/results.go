package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results is what one file of benchmark output holds: every measured value by
// benchmark and unit, and the "key: value" lines.
type results struct {
	values  map[string]map[string][]float64
	config  map[string]string
	comment []string // lines that begin with "#", without it
}

// procs is the suffix that testing adds to a name for GOMAXPROCS, unless that is 1.
var procs = regexp.MustCompile(`-\d+$`)

// parse reads the format of go test -bench. Names are without "Benchmark" and
// without the GOMAXPROCS suffix. A failed benchmark, or a file with none, is an
// error.
func parse(raw io.Reader) (results, error) {
	r := results{values: map[string]map[string][]float64{}, config: map[string]string{}}
	lines := bufio.NewScanner(raw)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "#"):
			r.comment = append(r.comment, strings.TrimSpace(line[1:]))
		case strings.Contains(line, "--- FAIL"), line == "FAIL":
			return results{}, fmt.Errorf("line %d: a benchmark failed: %q", n, line)
		case strings.HasPrefix(line, "Benchmark") && len(fields) >= 4:
			name := procs.ReplaceAllString(strings.TrimPrefix(fields[0], "Benchmark"), "")
			if r.values[name] == nil {
				r.values[name] = map[string][]float64{}
			}
			for i := 2; i+1 < len(fields); i += 2 {
				v, err := strconv.ParseFloat(fields[i], 64)
				if err != nil {
					return results{}, fmt.Errorf("line %d: %w", n, err)
				}
				r.values[name][fields[i+1]] = append(r.values[name][fields[i+1]], v)
			}
		default:
			if key, value, ok := strings.Cut(line, ": "); ok && !strings.ContainsAny(key, " \t/") {
				r.config[key] = strings.TrimSpace(value)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return results{}, err
	}
	if len(r.values) == 0 {
		return results{}, fmt.Errorf("no benchmark results")
	}
	return r, nil
}

// median returns the median of the values of one benchmark and unit, and false if
// there are none.
func (r results) median(name, unit string) (float64, bool) {
	v := slices.Clone(r.values[name][unit])
	if len(v) == 0 {
		return 0, false
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2, true
	}
	return v[len(v)/2], true
}

// rounds returns the least and the greatest number of values that a benchmark has.
func (r results) rounds() (low, high int) {
	for _, units := range r.values {
		n := len(units["ns/op"])
		if low == 0 || n < low {
			low = n
		}
		high = max(high, n)
	}
	return low, high
}
