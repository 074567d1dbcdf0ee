package main

import (
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/benchmark"
)

func TestParseReadsWhatIsWritten(t *testing.T) {
	m := measurement{rows: 1000, elapsed: 20 * time.Millisecond, mallocs: 2500, client: 3 * time.Millisecond, server: 500 * time.Microsecond}
	text := "date: 2026-01-02\n# round 1: before it, other programs used 7 % of the CPUs\n" + m.line("SQLite/lines/GORM") +
		"# round 2: before it, other programs used 3 % of the CPUs\n" + m.line("SQLite/lines/GORM")
	r, err := parse(text)
	if err != nil {
		t.Fatalf("parse(%q) = %v; want no error", text, err)
	}
	for unit, want := range map[string]float64{"ns/op": 20e6, "rows/s": 50_000, "allocs/row": 2.5, "client-us/row": 3, "server-us/row": 0.5} {
		if got := r.Values["SQLite/lines/GORM"][unit]; len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("values in %s = %v; want twice %v", unit, got, want)
		}
	}
	if r.Config["date"] != "2026-01-02" || r.disturbed() != 7 {
		t.Errorf("parse = date %q, others %d %%; want 2026-01-02, at most 7", r.Config["date"], r.disturbed())
	}
}

// fake returns results of three rounds, in ns/op.
func fake(rounds map[string][3]float64) results {
	r := results{&benchmark.Results{Config: map[string]string{}, Values: map[string]map[string][]float64{}}}
	for name, ns := range rounds {
		units := map[string][]float64{"ns/op": ns[:]}
		for _, v := range ns {
			units["rows/s"] = append(units["rows/s"], 20_000/v*1e9)
			units["allocs/row"] = append(units["allocs/row"], 1.5)
			units["client-us/row"] = append(units["client-us/row"], 2.25)
		}
		r.Values[name] = units
	}
	return r
}

func TestLimitIsTheFastestOfItsKind(t *testing.T) {
	sqlite := targets[0]
	r := fake(map[string][3]float64{"SQLite/lines/limit=50": {9, 5, 9}, "SQLite/lines/limit=1": {6, 8, 8}, "SQLite/lines/snowkey": {1, 1, 1}})
	if got := r.limitOf(sqlite, lines); got != "SQLite/lines/limit=1" {
		t.Errorf("limitOf(lines) = %q; want the one with the median of 8", got)
	}
	if got := r.limitOf(sqlite, graph); got != "" {
		t.Errorf("limitOf(graph) = %q; want none", got)
	}
}

func TestNamesOfVariantsDiffer(t *testing.T) {
	for _, target := range targets {
		seen := map[string]bool{}
		for _, v := range variants() {
			if name := nameOf(target, v); v.on(target) {
				if seen[name] || strings.ContainsAny(name, " \t") {
					t.Errorf("name %q is there twice or has a space", name)
				}
				seen[name] = true
			}
		}
		for _, load := range []string{lines, graph} {
			for _, name := range []string{"snowkey", "NamedExec", "GORM", "bun"} {
				if !seen[target.name+"/"+load+"/"+name] {
					t.Errorf("there is no %s/%s/%s", target.name, load, name)
				}
			}
		}
	}
}
