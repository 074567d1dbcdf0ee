package main

import "fmt"

// segmentSources are the names of SegmentNext, in the order of the table.
var segmentSources = []entry{
	{"floor", "a bare atomic addition, again"}, {"snowkey", "**snowkey**, `context.Background`"}, {"snowkey-ctx", "**snowkey**, a context that can end"},
}

// simulated begins the names of the latencies in simulated time, with a store that takes
// 100 ms.
const simulated = "SegmentSimulated/store=100ms/"

func segmentSections(r *results) map[string]string {
	return map[string]string{
		"segment-next": grid("× a bare addition (ns per number)", segmentSources, counts("c", 1, 2, 8, 64), func(source, c string) string {
			name := "SegmentNext/" + c + "/" + source
			return r.cell(name, "×floor") + " (" + r.cell(name, "ns/ID") + ")"
		}),
		"latency": grid("store of 100 ms", []entry{
			{"no-prefetch", "no prefetch"}, {"leaf", "Leaf's rule"}, {"by-rate-10s", "**by rate**, `Hold` 10 s"}, {"by-rate", "**by rate**, 10 min"},
		}, []entry{
			{"p50-µs", "p50, ms"}, {"p99-µs", "p99, ms"}, {"p99.99-µs", "p99.99, ms"}, {"jump1/fetch", "longest call after jump 1, in fetches"},
			{"jump2/fetch", "after jump 2"}, {"waits", "calls that waited"}, {"fetches", "fetches"},
		}, func(rule, column string) string {
			switch column {
			case "p50-µs", "p99-µs", "p99.99-µs":
				return r.scaled(simulated+rule, column, 1e3)
			case "waits":
				waits := 0.0
				for _, phase := range []string{"waits-slow", "waits-jump1", "waits-jump2"} {
					v, _ := r.median(simulated+rule, phase)
					waits += v
				}
				return fmt.Sprintf("%.0f", waits)
			}
			return r.cell(simulated+rule, column)
		}),
	}
}

func segmentGoals() []goal {
	goroutines := []int{1, 2, 8, 64}
	above := func(caller string) func(*results) float64 {
		return func(r *results) (worst float64) {
			for _, c := range goroutines {
				name := fmt.Sprintf("SegmentNext/c=%d/%s", c, caller)
				worst = max(worst, r.of(name, "ns/ID")-r.of(name, "floor-ns/ID"))
			}
			return worst
		}
	}
	of := func(name, unit string) func(*results) float64 {
		return func(r *results) float64 { return r.of(simulated+name, unit) }
	}
	share := func(name, unit string) func(*results) float64 {
		return quotient(simulated+name, simulated+"leaf", unit)
	}
	return []goal{
		{"`Next` with `context.Background`, above a bare addition, worst of 1, 2, 8, 64 goroutines, ns", true, 3, "%.1f", above("snowkey")},
		{"… with a context that can end, which is asked whether it has", true, 5, "%.1f", above("snowkey-ctx")},
		{"`Fill` of 1,000, ns per number", true, 0.5, "%.2f", func(r *results) float64 { return r.of("SegmentFill/n=1000/snowkey", "ns/ID") }},
		{"`Next` and `Fill`, allocations", true, 0, "%.0f", func(r *results) float64 {
			return max(r.of("SegmentNext/c=1/snowkey-ctx", "allocs/ID"), r.of("SegmentFill/n=1000/snowkey", "allocs/fill"))
		}},
		{"by rate, calls that waited under steady load", true, 0, "%.0f", of("by-rate-10s", "waits-slow")},
		{"by rate, longest call after the first jump, in fetches", true, 1.5, "%.2f", of("by-rate-10s", "jump1/fetch")},
		{"by rate, calls that waited after the second jump", true, 0, "%.0f", of("by-rate-10s", "waits-jump2")},
		{"by rate, fetches against Leaf's rule, `Hold` of 10 s", true, 0.5, "%.2f ×", share("by-rate-10s", "fetches")},
		{"by rate, fetches against Leaf's rule, `Hold` of 10 min", true, 0.5, "%.2f ×", share("by-rate", "fetches")},
		{"by rate, p99 against Leaf's rule, `Hold` of 10 s", true, 0.5, "%.2f ×", share("by-rate-10s", "p99-µs")},
	}
}
