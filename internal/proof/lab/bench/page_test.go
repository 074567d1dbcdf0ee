package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePageShowsTheResults(t *testing.T) {
	sections, err := allSections("results")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	if want, err := fill(string(text), sections); err != nil || want != string(text) {
		t.Errorf("docs/%s is not what the results give (%v): go run ./internal/proof/lab/bench", page, err)
	}
	for name := range sections {
		if !strings.Contains(string(text), markerStart+name+" -->") {
			t.Errorf("the page lacks the section %s", name)
		}
	}
}

func TestTheProgramFindsItsResults(t *testing.T) {
	here, err := folder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(here, "results", suites[0].name+".txt")); err != nil {
		t.Error(err)
	}
}

// A benchmark that no page shows and no goal needs is not worth its time.
func TestEveryTableIsMeasuredInFull(t *testing.T) {
	sections, err := allSections("results")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range sections {
		if strings.Contains(text, "–|") || strings.Contains(text, "NaN") {
			t.Errorf("the section %s lacks a figure:\n%s", name, text)
		}
	}
}

func TestFillReplacesTextBetweenMarkersOnly(t *testing.T) {
	page := "before\n<!-- measured: a -->\nold\n<!-- /measured -->\nbetween\n<!-- measured: b --><!-- /measured -->\nafter\n"
	sections := map[string]string{"a": "new a\n", "b": "new b\n", "c": "unused\n"}
	want := "before\n<!-- measured: a -->\nnew a\n<!-- /measured -->\nbetween\n<!-- measured: b -->\nnew b\n<!-- /measured -->\nafter\n"
	for range 2 { // a second time there is nothing to change
		got, err := fill(page, sections)
		if err != nil || got != want {
			t.Fatalf("fill(%q) = %q, %v; want %q", page, got, err, want)
		}
		page = got
	}
	for _, page := range []string{
		"<!-- measured: z --><!-- /measured -->",
		"<!-- measured: a -->",
		"<!-- measured: a",
		"<!-- measured: a --> <!-- measured: a --> <!-- /measured -->",
	} {
		if got, err := fill(page, sections); err == nil || got != "" {
			t.Errorf("fill(%q) = %q, %v; want an error", page, got, err)
		}
	}
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0000123: "1.2e-05", 1.5: "1.50", 15: "15.0", 150: "150", 1234567: "1,234,567"} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q; want %q", v, got, want)
		}
	}
}

func TestTablesCompareWithTheirBase(t *testing.T) {
	r := parsed(t, `
BenchmarkGORM/SQLite/one/auto-increment-2 1 10000000 ns/op
BenchmarkGORM/SQLite/one/snowkey-2 1 9000000 ns/op
BenchmarkGORM/SQLite/one/auto-increment-2 1 20000000 ns/op
BenchmarkGORM/SQLite/one/snowkey-2 1 22000000 ns/op
BenchmarkGORM/SQLite/one/auto-increment-2 1 50000000 ns/op
BenchmarkGORM/SQLite/one/snowkey-2 1 30000000 ns/op
BenchmarkUpsertWriters/PostgreSQL/plain-2 1 50000000 ns/op 4.000 deadlocks/op
BenchmarkUpsertWriters/PostgreSQL/plain-2 1 50000000 ns/op 0 deadlocks/op
BenchmarkSQLX/SQLite/lines/limit=50 1 20000000 ns/op 1000000 rows/s
BenchmarkSQLX/SQLite/lines/snowkey 1 25000000 ns/op 800000 rows/s
BenchmarkArticle/c=3/article-lockfree-2 1 1000000 ns/op 300 dup/op
BenchmarkSaturation/alone/c=1/snowkey-2 1 1 ns/op 99.9 %cap 17.1 %core
BenchmarkSaturation/hogs/c=1/snowkey-2 1 1 ns/op 98.1 %cap
`)
	for _, c := range []struct{ section, want string }{
		{gormSections(r)["gorm"], "auto-increment, ms|20.0|"},
		{gormSections(r)["gorm"], "|snowkey|1.10 (0.60–1.10)|"},
		{gormSections(r)["deadlocks"], "|plain|2.0 (50.0)|"},
		{sqlxSections(r)["sqlx-lines"], "|SQLite|800|1,000 (0.80 ×), mattn's driver, prepared for 50 rows|"},
		{segmentSections(r)["article"], "|1.0 %|"},
		{generatorSections(r)["saturation"], "|**snowkey**|99.90 / 17.1|"},
		{generatorSections(r)["saturation"], "|**snowkey**, with hogs|98.10|"},
	} {
		if !strings.Contains(c.section, c.want) {
			t.Errorf("the section lacks %q:\n%s", c.want, c.section)
		}
	}
}

func TestSuitesAreChosenByName(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  int // -1: an error
	}{{nil, 0}, {[]string{"sqlx", "gorm"}, 2}, {[]string{"all"}, len(suites)}, {[]string{"none"}, -1}} {
		got, err := choose(c.names)
		if (err != nil) != (c.want < 0) || err == nil && len(got) != c.want {
			t.Errorf("choose(%q) = %d suites, %v; want %d", c.names, len(got), err, c.want)
		}
	}
}
