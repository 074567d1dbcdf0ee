package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/benchmark"
)

func TestParseReadsWhatIsWritten(t *testing.T) {
	m := measurement{
		rows: 1000, elapsed: 20 * time.Millisecond, mallocs: 2500, client: 3 * time.Millisecond,
		server: 500 * time.Microsecond, others: 250 * time.Microsecond, grown: 3 << 19,
	}
	text := "date: 2026-01-02\n# round 1: before it, other programs used 7 % of the CPUs\n" + m.line("SQLite/lines/GORM") +
		"# round 2: before it, other programs used 3 % of the CPUs\n" + m.line("SQLite/lines/GORM")
	r := readFiles(t, map[string]string{"SQLite.txt": text})
	for unit, want := range map[string]float64{
		"ns/op": 20e6, "rows/s": 50_000, "allocs/row": 2.5, "client-us/row": 3, "server-us/row": 0.5, "others-us/row": 0.25, "grown-MiB": 1.5,
	} {
		if got := r.Values["SQLite/lines/GORM"][unit]; len(got) != 2 || got[0] != want || got[1] != want {
			t.Errorf("values in %s = %v; want twice %v", unit, got, want)
		}
	}
	if r.Config["date"] != "2026-01-02" || r.disturbed() != 7 {
		t.Errorf("results = date %q, others %d %%; want 2026-01-02, at most 7", r.Config["date"], r.disturbed())
	}
}

// readFiles writes files of results and reads them.
func readFiles(t *testing.T, files map[string]string) results {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := readResults(folder)
	if err != nil {
		t.Fatalf("readResults = %v; want no error", err)
	}
	return r
}

func TestResultsOfSeveralRunsKeepTheirDates(t *testing.T) {
	m := measurement{rows: 1, elapsed: time.Second}
	r := readFiles(t, map[string]string{
		"SQLite.txt":         "date: 2026-01-02\ncpu: A\n# round 1: before it, other programs used 1 % of the CPUs\n" + m.line("SQLite/lines/GORM"),
		"MariaDB.txt":        "date: 2026-01-03\ncpu: A\n" + m.line("MariaDB/lines/GORM"),
		"MariaDB-stream.txt": "date: 2026-01-03\ncpu: A\n# round 1: before it, other programs used 4 % of the CPUs\n" + m.line("MariaDB/stream/snowkey"),
	})
	if want := "2026-01-02 (SQLite); 2026-01-03 (MariaDB, MariaDB-stream)"; r.Config["date"] != want || r.Config["cpu"] != "A" {
		t.Errorf("date %q, cpu %q; want %q, A", r.Config["date"], r.Config["cpu"], want)
	}
	for _, name := range []string{"SQLite/lines/GORM", "MariaDB/lines/GORM", "MariaDB/stream/snowkey"} {
		if _, ok := r.Median(name, "ns/op"); !ok {
			t.Errorf("there is no %s", name)
		}
	}
	if r.disturbed() != 4 {
		t.Errorf("disturbed() = %d; want the most of all files, 4", r.disturbed())
	}
}

func TestFileThatIsNoResultsIsAnError(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "MariaDB.txt"), []byte("BenchmarkMariaDB/lines/GORM\t1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readResults(folder); err == nil || !strings.HasPrefix(err.Error(), "MariaDB: ") {
		t.Errorf("readResults = %v; want an error that names the file", err)
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
	if got, complete := r.limitOf(sqlite, lines); got != "SQLite/lines/limit=1" || !complete {
		t.Errorf("limitOf(lines) = %q, %v; want the one with the median of 8, and that it is complete", got, complete)
	}
	if got, complete := r.limitOf(sqlite, graph); got != "" || complete {
		t.Errorf("limitOf(graph) = %q, %v; want none", got, complete)
	}
	delete(r.Values, "SQLite/lines/limit=1")
	if got, complete := r.limitOf(sqlite, lines); got != "SQLite/lines/limit=50" || complete {
		t.Errorf("limitOf(lines) = %q, %v; want the one that was measured, and that it is not complete", got, complete)
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
