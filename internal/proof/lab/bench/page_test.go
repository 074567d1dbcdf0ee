package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page holds what the stored results give: medians, ratios, tables and verdicts of all suites.
func TestThePageShowsTheResults(t *testing.T) {
	sections, err := allSections("results")
	must(t, err)
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", page))
	must(t, err)
	if want, err := fill(string(text), sections); err != nil || want != string(text) {
		t.Errorf("docs/%s is not what the results give (%v): go run ./internal/proof/lab/bench", page, err)
	}
	for name, section := range sections {
		if !strings.Contains(string(text), markerStart+name+" -->") {
			t.Errorf("the page lacks the section %s", name)
		}
		// A benchmark that no page shows and no goal needs is not worth its time.
		if strings.Contains(section, "–|") || strings.Contains(section, "NaN") {
			t.Errorf("the section %s lacks a figure:\n%s", name, section)
		}
	}
}

func TestMedianOfAnEvenNumberOfRoundsIsTheMeanOfTheTwoMiddleValues(t *testing.T) {
	r, err := parse("BenchmarkNext/snowkey-2 1 9 ns/op\nBenchmarkNext/snowkey-2 1 5 ns/op\nBenchmarkNext/snowkey 1 1 ns/op\nBenchmarkNext/snowkey 1 6 ns/op\n")
	must(t, err)
	if got, ok := r.median("Next/snowkey", "ns/op"); got != 5.5 || !ok {
		t.Errorf("median = %v, %v; want 5.5, true", got, ok)
	}
}

func TestAFailedMalformedOrEmptyRunIsAnError(t *testing.T) {
	const sample = "BenchmarkNext/snowkey-2 100 35.0 ns/op\nPASS\n"
	for _, text := range []string{
		"",
		"goos: linux\nPASS\n",
		sample + "--- FAIL: BenchmarkContention/c=64/snowkey\n",
		sample + "FAIL\n",
		"BenchmarkNext/snowkey-2 100 fast ns/op\n",
		sample + "BenchmarkNext/snowkey-2 100\n",
		sample + "BenchmarkNext/snowkey-2 100 35 ns/op 7\n",
	} {
		if r, err := parse(text); err == nil {
			t.Errorf("parse(%q) = %v, nil; want an error", text, r.values)
		}
	}
}

func TestRatiosAreTakenOfAsManyRounds(t *testing.T) {
	r := &results{values: map[string]map[string][]float64{"a": {"ns/op": {10, 100}}, "b": {"ns/op": {1}}}}
	for _, other := range []string{"b", "missing"} {
		if s, ok := r.ratio("a", other, "ns/op"); ok {
			t.Errorf("ratio(a, %s) = %v, true; want none", other, s)
		}
	}
}

func TestAGoalThatLacksAResultIsNeitherReachedNorMissed(t *testing.T) {
	r, err := parse("BenchmarkSQLX/PostgreSQL-pgx/lines/snowkey 1 1 ns/op\nBenchmarkSQLX/PostgreSQL-pgx/lines/limit 1 1 ns/op\n")
	must(t, err)
	for _, s := range suites {
		for _, g := range s.goals() {
			if v := g.value(r); !math.IsNaN(v) {
				t.Errorf("%s, %s = %v; want it not measured", s.name, g.title, v)
			}
		}
	}
}

func TestFillRefusesMarkersWithoutEndOrSection(t *testing.T) {
	for _, page := range []string{
		"<!-- measured: z --><!-- /measured -->",
		"<!-- measured: a -->",
		"<!-- measured: a",
		"<!-- measured: a --> <!-- measured: a --> <!-- /measured -->",
	} {
		if got, err := fill(page, map[string]string{"a": "new\n"}); err == nil || got != "" {
			t.Errorf("fill(%q) = %q, %v; want an error", page, got, err)
		}
	}
}
