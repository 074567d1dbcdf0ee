package main

import (
	"fmt"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// line writes a measurement as package testing writes a benchmark.
func (m measurement) line(name string) string {
	rows := float64(m.rows)
	text := fmt.Sprintf("Benchmark%s\t1\t%d ns/op\t%.0f rows/s\t%.3f allocs/row\t%.3f client-us/row",
		name, m.elapsed.Nanoseconds(), m.rate(), float64(m.mallocs)/rows, float64(m.client.Nanoseconds())/1e3/rows)
	if m.server > 0 {
		text += fmt.Sprintf("\t%.3f server-us/row", float64(m.server.Nanoseconds())/1e3/rows)
	}
	return text + "\n"
}

// results are what a file of measurements holds.
type results struct{ *benchmark.Results }

// parse reads what measure has written.
func parse(text string) (results, error) {
	r, err := benchmark.Parse(text)
	return results{r}, err
}

// speed returns how many times as fast a is as b.
func (r results) speed(a, b string) (benchmark.Spread, bool) { return r.Ratio(b, a, "ns/op") }

// limitOf returns the name of the fastest limit of a target, or "".
func (r results) limitOf(t target, load string) string {
	best, name := 0.0, ""
	for _, v := range variants() {
		if !v.limit || v.load != load || !v.on(t) {
			continue
		}
		if ns, ok := r.Median(nameOf(t, v), "ns/op"); ok && (name == "" || ns < best) {
			best, name = ns, nameOf(t, v)
		}
	}
	return name
}
