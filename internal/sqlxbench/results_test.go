package main

import (
	"math"
	"strings"
	"testing"
	"time"
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
		if got := r.values["SQLite/lines/GORM"][unit]; len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("values in %s = %v; want twice %v", unit, got, want)
		}
	}
	if r.config["date"] != "2026-01-02" || r.disturbed() != 7 {
		t.Errorf("parse = date %q, others %v; want 2026-01-02, at most 7", r.config["date"], r.others)
	}
}

func TestParseRefusesWhatItDoesNotKnow(t *testing.T) {
	good := "BenchmarkInsert/SQLite/lines/GORM\t1\t10 ns/op\n"
	if _, err := parse(good); err != nil {
		t.Fatalf("parse(%q) = %v; want no error", good, err)
	}
	for name, text := range map[string]string{
		"Nothing":      "date: 2026-01-02\n",
		"OtherLine":    good + "panic!\n",
		"OtherComment": good + "# round one\n",
		"NoValue":      good + "BenchmarkInsert/SQLite/lines/GORM\t1\n",
		"NoUnit":       good + "BenchmarkInsert/SQLite/lines/GORM\t1\t10\n",
		"LastNoUnit":   good + "BenchmarkInsert/SQLite/lines/GORM\t1\t10 ns/op\t7\n",
		"NoNumber":     good + "BenchmarkInsert/SQLite/lines/GORM\t1\tx ns/op\n",
	} {
		if r, err := parse(text); err == nil {
			t.Errorf("%s: parse(%q) = %v; want an error", name, text, r)
		}
	}
}

// fake returns results of three rounds, in ns/op.
func fake(rounds map[string][3]float64) *results {
	r := &results{config: map[string]string{}, values: map[string]map[string][]float64{}}
	for name, ns := range rounds {
		units := map[string][]float64{"ns/op": ns[:]}
		for _, v := range ns {
			units["rows/s"] = append(units["rows/s"], 20_000/v*1e9)
			units["allocs/row"] = append(units["allocs/row"], 1.5)
			units["client-us/row"] = append(units["client-us/row"], 2.25)
		}
		r.values[name] = units
	}
	return r
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	// In the second round the machine was ten times slower, in the last a bit.
	r := fake(map[string][3]float64{"a": {10, 100, 12}, "b": {20, 200, 36}})
	// The medians, 12 and 36, make 3.
	if s, ok := r.speed("a", "b"); !ok || s.median != 2 || s.low != 2 || s.high != 3 {
		t.Errorf("speed(a, b) = %+v, %v; want 2, from 2 to 3", s, ok)
	}
	if s, ok := r.speed("b", "a"); !ok || s.median != 0.5 || math.Abs(s.low-1.0/3) > 1e-9 || s.high != 0.5 {
		t.Errorf("speed(b, a) = %+v, %v; want 0.5, from 0.33 to 0.5", s, ok)
	}
}

func TestRatioOfWhatWasNotMeasuredEquallyOftenIsNone(t *testing.T) {
	r := fake(map[string][3]float64{"a": {1, 1, 1}, "b": {1, 1, 1}})
	r.values["b"]["ns/op"] = r.values["b"]["ns/op"][:2]
	for _, names := range [][2]string{{"a", "b"}, {"a", "missing"}, {"missing", "missing"}} {
		if s, ok := r.speed(names[0], names[1]); ok {
			t.Errorf("speed(%s, %s) = %v, true; want none", names[0], names[1], s)
		}
	}
}

func TestLimitIsTheFastestOfItsKind(t *testing.T) {
	sqlite := targets[0]
	r := fake(map[string][3]float64{"SQLite/lines/limit-50": {9, 5, 9}, "SQLite/lines/limit-1": {6, 8, 8}, "SQLite/lines/snowkey": {1, 1, 1}})
	if got := r.limitOf(sqlite, lines); got != "SQLite/lines/limit-1" {
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
			for _, name := range []string{"snowkey", "NamedExec", "GORM", "bun", "ent"} {
				if !seen[target.name+"/"+load+"/"+name] {
					t.Errorf("there is no %s/%s/%s", target.name, load, name)
				}
			}
		}
	}
}
