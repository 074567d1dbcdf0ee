package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// line writes a measurement as package testing writes a benchmark.
func (m measurement) line(name string) string {
	rows := float64(m.rows)
	text := fmt.Sprintf("Benchmark%s\t1\t%d ns/op\t%.0f rows/s\t%.3f allocs/row\t%.3f client-us/row",
		name, m.elapsed.Nanoseconds(), m.rate(), float64(m.mallocs)/rows, float64(m.client.Nanoseconds())/1e3/rows)
	if m.server > 0 {
		text += fmt.Sprintf("\t%.3f server-us/row\t%.3f others-us/row", float64(m.server.Nanoseconds())/1e3/rows, float64(m.others.Nanoseconds())/1e3/rows)
	}
	if m.grown > 0 {
		text += fmt.Sprintf("\t%.1f grown-MiB", float64(m.grown)/(1<<20))
	}
	return text + "\n"
}

// results are what was measured, of all targets together.
type results struct{ *benchmark.Results }

// readResults reads a folder of results. Each target has a file, and one for its streams.
// They may be of different days and commits. What was not measured has no file.
func readResults(folder string) (results, error) {
	all := results{&benchmark.Results{Config: map[string]string{}, Values: map[string]map[string][]float64{}}}
	said := map[string]map[string][]string{} // by key and value, the files that say so
	for _, t := range targets {
		for _, name := range []string{t.name, t.name + "-stream"} {
			text, err := os.ReadFile(filepath.Join(folder, name+".txt"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return results{}, err
			}
			one, err := benchmark.Parse(string(text))
			if err != nil {
				return results{}, fmt.Errorf("%s: %w", name, err)
			}
			maps.Copy(all.Values, one.Values)
			all.Comments = append(all.Comments, one.Comments...)
			for key, value := range one.Config {
				if said[key] == nil {
					said[key] = map[string][]string{}
				}
				said[key][value] = append(said[key][value], name)
			}
		}
	}
	for key, values := range said {
		all.Config[key] = joined(values)
	}
	return all, nil
}

// joined returns the value on which all files agree, or each with those that say it.
func joined(values map[string][]string) string {
	var parts []string
	for _, value := range slices.Sorted(maps.Keys(values)) {
		if len(values) == 1 {
			return value
		}
		parts = append(parts, value+" ("+strings.Join(values[value], ", ")+")")
	}
	return strings.Join(parts, "; ")
}

// speed returns how many times as fast a is as b.
func (r results) speed(a, b string) (benchmark.Spread, bool) { return r.Ratio(b, a, "ns/op") }

// limitOf returns the name of the fastest limit of a target, or "". complete tells
// whether all of its limits were measured.
func (r results) limitOf(t target, load string) (name string, complete bool) {
	best, complete := 0.0, true
	for _, v := range variants() {
		if !v.limit || v.load != load || !v.on(t) {
			continue
		}
		ns, ok := r.Median(nameOf(t, v), "ns/op")
		complete = complete && ok
		if ok && (name == "" || ns < best) {
			best, name = ns, nameOf(t, v)
		}
	}
	return name, complete
}
