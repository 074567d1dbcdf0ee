package main

import (
	"fmt"
	"math"
	"strings"
)

func generatorSections(r *results) map[string]string {
	goroutines := counts("c", 1, 2, 8, 64)
	return map[string]string{
		"cost": grid("ns per ID", []entry{{"floor=Since+Add", "floor: `time.Since` + atomic Add"}, {"snowkey", "**snowkey**"}}, append([]entry{{"", "alone"}, {"allocs", "allocations"}}, counts("c", 2, 4, 8, 12, 64)...),
			func(source, column string) string {
				switch column {
				case "":
					return r.cell("Next/"+source, "ns/op")
				case "allocs":
					return r.cell("Next/"+source, "allocs/op")
				}
				return r.cell("Contention/"+column+"/"+source, "ns/ID")
			}),
		"saturation": grid("% of 4,096 per ms / CPU, % of a core", []entry{
			{"alone/snowkey", "**snowkey**"}, {"alone/snowkey-Fill(100)", "**snowkey**, `Fill` of 100"}, {"hogs/snowkey", "**snowkey**, with hogs"},
		}, goroutines, func(row, c string) string { return saturation(r, row, c) }),
		"fill": grid("ns per ID", []entry{{"floor=store", "floor: write n consecutive numbers"}, {"snowkey", "**snowkey**, `Fill`"}},
			counts("n", 1, 10, 100, 1000, 10_000), func(row, n string) string { return r.cell("Fill/"+n+"/"+row, "ns/ID") }),
	}
}

// saturation shows the share of the cap, and the CPU time unless the hogs are part of it.
func saturation(r *results, row, c string) string {
	beside, source, _ := strings.Cut(row, "/")
	name := "Saturation/" + beside + "/" + c + "/" + source
	share, ok := r.median(name, "%cap")
	if !ok {
		return "–"
	}
	text := fmt.Sprintf("%.2f", share)
	if core, ok := r.median(name, "%core"); ok {
		text += fmt.Sprintf(" / %.1f", core)
	}
	return text
}

func generatorGoals() []goal {
	return []goal{
		{"`Next`, one goroutine, above the floor, ns", true, 5, "%.1f", func(r *results) float64 {
			return r.of("Next/snowkey", "ns/op") - r.of("Next/floor=Since+Add", "ns/op")
		}},
		{"`Next`, allocations per ID", true, 0, "%.0f", func(r *results) float64 { return r.of("Next/snowkey", "allocs/op") }},
		{"64 goroutines, against the floor", true, 1.10, "%.2f ×", quotient("Contention/c=64/snowkey", "Contention/c=64/floor=Since+Add", "ns/ID")},
		{"a leased worker against a fixed one, one goroutine", true, 1.05, "%.2f ×", quotient("Lease/c=1/leased", "Lease/c=1/fixed", "ns/ID")},
		{"a leased worker against a fixed one, 64 goroutines", true, 1.05, "%.2f ×", quotient("Lease/c=64/leased", "Lease/c=64/fixed", "ns/ID")},
		{"duplicates in any contention run", true, 0, "%.0f", func(r *results) float64 {
			return r.extreme(math.Max, "dup/op", "Contention/c=%d/snowkey", 1, 2, 4, 8, 12, 64)
		}},
		{"share of the cap, worst of 1, 2, 8, 64 goroutines", false, 99.9, "%.2f %%", func(r *results) float64 {
			return r.extreme(math.Min, "%cap", "Saturation/alone/c=%d/snowkey", 1, 2, 8, 64)
		}},
		{"CPU of one core at the cap, worst of 1, 2, 8 goroutines", true, 20, "%.1f %%", func(r *results) float64 {
			return r.extreme(math.Max, "%core", "Saturation/alone/c=%d/snowkey", 1, 2, 8)
		}},
		{"CPU of one core at the cap, 64 goroutines", true, 25, "%.1f %%", func(r *results) float64 { return r.of("Saturation/alone/c=64/snowkey", "%core") }},
		{"share of the cap beside a spinning goroutine per CPU, worst", false, 98, "%.1f %%", func(r *results) float64 {
			return r.extreme(math.Min, "%cap", "Saturation/hogs/c=%d/snowkey", 1, 2, 8, 64)
		}},
		{"`Fill` of 100, ns per ID", true, 1.0, "%.2f", func(r *results) float64 { return r.of("Fill/n=100/snowkey", "ns/ID") }},
		{"`Fill` of 1,000 and 10,000, ns per ID, worst", true, 0.5, "%.2f", func(r *results) float64 {
			return r.extreme(math.Max, "ns/ID", "Fill/n=%d/snowkey", 1000, 10000)
		}},
	}
}
