package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// The numbers of goroutines, and the names of BenchmarkSegmentNext in the order of the
// table.
var (
	segmentCounts = []int{1, 2, 8, 64}
	segmentNames  = []struct{ name, shown string }{
		{"floor", "a bare atomic addition, again"},
		{"snowkey-without-look", "**snowkey**, without the look at ctx"},
		{"snowkey", "**snowkey**, `context.Background`"},
		{"snowkey-ctx", "**snowkey**, a context that can end"},
		{"wuid", "wuid's addition"},
		{"cosid", "CosId's chain"},
		{"mutex", "a lock"},
		{"leaf", "Leaf's read lock"},
	}
)

func segmentNext(goroutines int, name string) string {
	return fmt.Sprintf("SegmentNext/c=%d/%s", goroutines, name)
}

// segmentTables are the sections of the page of segments.
func segmentTables(r *benchmark.Results) []table {
	return []table{
		{"machine", machine(r)},
		{"goals", goalTable(r, segmentGoals())},
		{"next", segmentNextTable(r)},
		{"fill", segmentFillTable(r)},
		{"latency", latencyTable(r)},
		{"latency-real", realLatencyTable(r)},
		{"article", articleTable(r)},
	}
}

func segmentGoals() []goal {
	worst := func(name string) func(*medians) float64 {
		return func(m *medians) float64 {
			return m.extreme(math.Max, "×floor", "SegmentNext/c=%d/"+name, segmentCounts...)
		}
	}
	against := func(peer string) func(*medians) float64 {
		return func(m *medians) (worst float64) {
			for _, c := range segmentCounts {
				worst = max(worst, m.of(segmentNext(c, "snowkey-without-look"), "×floor")/m.of(segmentNext(c, peer), "×floor"))
			}
			return worst
		}
	}
	const at100 = "SegmentSimulated/store=100ms/"
	of := func(name, unit string) func(*medians) float64 {
		return func(m *medians) float64 { return m.of(at100+name, unit) }
	}
	share := func(name, unit string) func(*medians) float64 {
		return func(m *medians) float64 { return m.of(at100+name, unit) / m.of(at100+"leaf", unit) }
	}
	return []goal{
		{"`Next` without the look at ctx, against a bare atomic addition, worst of 1, 2, 8, 64 goroutines", true, 1.12, "%.2f ×", worst("snowkey-without-look")},
		{"`Next` with the look at ctx, `context.Background`, worst", true, 1.25, "%.2f ×", worst("snowkey")},
		{"`Next` with the look at a context that can end, worst", true, 1.40, "%.2f ×", worst("snowkey-ctx")},
		{"`Next` without the look at ctx, against CosId's chain, worst", true, 1, "%.2f ×", against("cosid")},
		{"`Next` without the look at ctx, against wuid's addition, worst", true, 1, "%.2f ×", against("wuid")},
		{"`Next` without the look at ctx, against a lock, worst", true, 1, "%.2f ×", against("mutex")},
		{"`Next` without the look at ctx, against Leaf's read lock, worst", true, 1, "%.2f ×", against("leaf")},
		{"`Fill` of 1,000, ns per number", true, 0.5, "%.2f", func(m *medians) float64 { return m.of("SegmentFill/n=1000/snowkey", "ns/ID") }},
		{"`Next` and `Fill`, allocations", true, 0, "%.0f", func(m *medians) float64 {
			return max(m.of(segmentNext(1, "snowkey-ctx"), "allocs/ID"), m.of("SegmentFill/n=1000/snowkey", "allocs/fill"))
		}},
		{"by rate, store of 100 ms: calls that waited while the load was steady", true, 0, "%.0f", of("by-rate-10s", "waits-slow")},
		{"by rate, store of 100 ms: the longest call after the first jump, in fetches", true, 1.5, "%.2f", of("by-rate-10s", "jump1/fetch")},
		{"by rate, store of 100 ms: calls that waited after the second jump", true, 0, "%.0f", of("by-rate-10s", "waits-jump2")},
		{"by rate, store of 100 ms: fetches, against Leaf's rule, `Hold` of 10 s", true, 0.5, "%.2f ×", share("by-rate-10s", "fetches")},
		{"by rate, store of 100 ms: fetches, against Leaf's rule, `Hold` of 10 min", true, 0.5, "%.2f ×", share("by-rate", "fetches")},
		{"by rate, store of 100 ms: p99 against Leaf's rule, `Hold` of 10 s", true, 0.5, "%.2f ×", share("by-rate-10s", "p99-µs")},
	}
}

func segmentNextTable(r *benchmark.Results) string {
	head := []string{"× a bare atomic addition (ns per number)"}
	for _, c := range segmentCounts {
		head = append(head, "c = "+strconv.Itoa(c))
	}
	rows := [][]string{head}
	for _, s := range segmentNames {
		row := []string{s.shown}
		for _, c := range segmentCounts {
			name := segmentNext(c, s.name)
			times, ok := r.Median(name, "×floor")
			if !ok {
				row = append(row, "–")
				continue
			}
			row = append(row, fmt.Sprintf("%.2f (%s)", times, cell(r, name, "ns/ID")))
		}
		rows = append(rows, row)
	}
	return benchmark.Table(rows)
}

func segmentFillTable(r *benchmark.Results) string {
	sizes := []int{1, 10, 100, 1000, 10000}
	head, row, times := []string{"ns per number"}, []string{"`Fill`"}, []string{"× writing n consecutive numbers"}
	for _, n := range sizes {
		name := fmt.Sprintf("SegmentFill/n=%d/snowkey", n)
		head = append(head, "n = "+strconv.Itoa(n))
		row = append(row, cell(r, name, "ns/ID"))
		times = append(times, cell(r, name, "×floor"))
	}
	return benchmark.Table([][]string{head, row, times})
}

// The rules of the latencies, in the order of the tables.
var segmentRules = []struct{ name, shown string }{
	{"no-prefetch", "no prefetch"}, {"leaf", "Leaf's"}, {"by-rate-10s", "**by rate**, 10 s"}, {"by-rate", "**by rate**, 10 min"},
}

// latencyTable has the latencies in simulated time, with a store of 100 ms.
func latencyTable(r *benchmark.Results) string {
	rows := [][]string{{"", "p50", "p99", "p99.99", "after jump 1, in fetches", "after jump 2", "calls that waited", "fetches"}}
	for _, rule := range segmentRules {
		name := "SegmentSimulated/store=100ms/" + rule.name
		row := []string{rule.shown}
		for _, unit := range []string{"p50-µs", "p99-µs", "p99.99-µs"} {
			row = append(row, duration(r, name, unit))
		}
		waits := 0.0
		for _, unit := range []string{"waits-slow", "waits-jump1", "waits-jump2"} {
			v, _ := r.Median(name, unit)
			waits += v
		}
		row = append(row, cell(r, name, "jump1/fetch"), cell(r, name, "jump2/fetch"), fmt.Sprintf("%.0f", waits))
		fetches, _ := r.Median(name, "fetches")
		rows = append(rows, append(row, fmt.Sprintf("%.0f", fetches)))
	}
	return benchmark.Table(rows)
}

// realLatencyTable has the latencies on the machine, and its own share of them.
func realLatencyTable(r *benchmark.Results) string {
	stores := []string{"1ms", "10ms", "100ms"}
	rows := [][]string{{"p99 on the machine"}}
	for _, store := range stores {
		rows[0] = append(rows[0], "store of "+store)
	}
	for _, rule := range append(slices.Clone(segmentRules), struct{ name, shown string }{"machine", "no fetches: the machine"}) {
		row := []string{rule.shown}
		for _, store := range stores {
			row = append(row, duration(r, "SegmentLatency/store="+store+"/"+rule.name, "p99-µs"))
		}
		rows = append(rows, row)
	}
	return benchmark.Table(rows)
}

// duration shows a median in µs as milliseconds, or as µs if it is small.
func duration(r *benchmark.Results, name, unit string) string {
	v, ok := r.Median(name, unit)
	switch {
	case !ok:
		return "–"
	case v < 100:
		return fmt.Sprintf("%.1f µs", v)
	}
	return fmt.Sprintf("%.1f ms", v/1e3)
}

func articleTable(r *benchmark.Results) string {
	counts := []int{1, 2, 3, 4, 6, 8, 10, 12} // one of them may have the most duplicates
	head := []string{"total ms for c × 10,000 numbers"}
	for _, c := range counts {
		head = append(head, "c = "+strconv.Itoa(c))
	}
	rows := [][]string{append(head, "numbers twice, at most")}
	for _, name := range []string{"snowkey", "article-mutex", "mutex+Since", "article-lockfree"} {
		row, most := []string{shown(name)}, 0.0
		for _, c := range counts {
			of := fmt.Sprintf("Article/c=%d/%s", c, name)
			v, _ := r.Median(of, "ns/op")
			row = append(row, fmt.Sprintf("%.2f", v/1e6))
			dup, _ := r.Median(of, "dup/op")
			most = max(most, 100*dup/float64(c*10_000))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.1f %%", most)))
	}
	return benchmark.Table(rows)
}
