package main

import (
	"strings"
	"testing"
)

func TestFillReplacesTextBetweenMarkersOnly(t *testing.T) {
	page := "before\n<!-- measured: a -->\nold\n<!-- /measured -->\nbetween\n<!-- measured: b --><!-- /measured -->\nafter\n"
	tables := []table{{"a", "new a\n"}, {"b", "new b\n"}, {"c", "unused\n"}}
	want := "before\n<!-- measured: a -->\nnew a\n<!-- /measured -->\nbetween\n<!-- measured: b -->\nnew b\n<!-- /measured -->\nafter\n"
	for range 2 { // a second time there is nothing to change
		got, err := fill(page, tables)
		if err != nil || got != want {
			t.Fatalf("fill(%q) = %q, %v; want %q", page, got, err, want)
		}
		page = got
	}
}

func TestFillRefusesAMarkerWithoutTableOrEnd(t *testing.T) {
	tables := []table{{"a", "new\n"}}
	for _, page := range []string{
		"<!-- measured: z --><!-- /measured -->",
		"<!-- measured: a -->",
		"<!-- measured: a",
		"<!-- measured: a --> <!-- measured: a --> <!-- /measured -->",
	} {
		if got, err := fill(page, tables); err == nil || got != "" {
			t.Errorf("fill(%q) = %q, %v; want an error", page, got, err)
		}
	}
}

func TestDuplicatesOfAPeerAreShown(t *testing.T) {
	got := costTable(mustParse(t, "BenchmarkNext/floor=Since+Add-2 1 25.0 ns/op 0 allocs/op\n"+
		"BenchmarkNext/snowkey-2 1 50.0 ns/op 0 allocs/op\n"+
		"BenchmarkContention/c=64/article-lockfree-2 1 1000000 ns/op 6400 dup/op 50.0 ns/ID\n"+
		"BenchmarkContention/c=64/snowkey-2 1 2000000 ns/op 0 dup/op 30.0 ns/ID\n"))
	for _, want := range []string{
		"| article, lock-free: **duplicates** | – | – | – | 50.0 | **6400 (1.00 %)** |\n",
		"| **snowkey** | 50.0 | 2.00 | 0 | 30.0 | 0 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("costTable = %s; want a line %s", got, want)
		}
	}
}

func TestThePageListsTheGoalsThatAreMissed(t *testing.T) {
	named := func(text string, value float64, measured bool) goal {
		return goal{text, true, 1, "%.0f", func(m *medians) float64 {
			if !measured {
				m.missing = "Next/x ns/op"
			}
			return value
		}}
	}
	got := goalTable(mustParse(t, sample), []goal{named("reached", 1, true), named("missed", 2, true), named("unknown", 0, false)})
	want := "1 of 3 goals are reached. Not measured: unknown. Missed:\n\n|  | goal | measured |  |\n|---|---:|---:|---:|\n| missed | ≤ 1 | 2 | **missed** |\n"
	if got != want {
		t.Errorf("goalTable = %q; want %q", got, want)
	}
}

func TestTheMachineSectionTellsOfDisturbance(t *testing.T) {
	got := machine(mustParse(t, sample+"# gate given up: 150 s were spent, others use 40 %\n"))
	for _, want := range []string{
		"- cpu: Some CPU @ 2.00GHz\n",
		"above 10 % of the CPUs in 1 of 2 steps, at most 12 %\n",
		"- gate given up: 150 s",
		"- rounds: 1 to 3\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("machine = %s; want %q in it", got, want)
		}
	}
}
