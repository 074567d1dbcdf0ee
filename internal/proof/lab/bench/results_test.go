package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

const sample = `date: 2026-01-02
# round 1, ^BenchmarkNext$: before it, other programs used 3 % of the CPUs
goos: linux
cpu: Some CPU @ 2.00GHz
PostgreSQL: 15.1 (Debian)
BenchmarkNext
BenchmarkNext/snowkey-2         	 100	        35.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
BenchmarkNext/google-v4-2       	 100	        90.0 ns/op
BenchmarkNext/google-v7         	 100	        95.0 ns/op
PASS
# round 2, ^BenchmarkNext$: before it, other programs used 12 % of the CPUs
BenchmarkNext/snowkey-2         	 100	        39.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
BenchmarkNext/snowkey-2         	 100	        34.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
BenchmarkFill/n=10/snowkey      	 100	        50.0 ns/op	         5.0 ns/ID
BenchmarkFill/n=10/snowkey      	 100	        60.0 ns/op	         6.0 ns/ID
PASS
`

func parsed(t *testing.T, text string) *results {
	t.Helper()
	r, err := parse(text)
	if err != nil {
		t.Fatalf("parse(%q) = %v; want no error", text, err)
	}
	return r
}

func TestMedianIsTheMiddleOrTheMeanOfTheTwoMiddleValues(t *testing.T) {
	r := parsed(t, sample)
	for _, c := range []struct {
		name, unit string // without the prefix and the number of processors
		want       float64
		ok         bool
	}{
		{"Next/snowkey", "ns/op", 35, true},
		{"Next/snowkey", "allocs/op", 0, true},
		{"Next/google-v4", "ns/op", 90, true},
		{"Next/google-v7", "ns/op", 95, true},
		{"Fill/n=10/snowkey", "ns/ID", 5.5, true},
		{"Fill/n=10/snowkey", "MB/s", 0, false},
		{"Next/missing", "ns/op", 0, false},
	} {
		if got, ok := r.median(c.name, c.unit); got != c.want || ok != c.ok {
			t.Errorf("median(%s, %s) = %v, %v; want %v, %v", c.name, c.unit, got, ok, c.want, c.ok)
		}
	}
	if got := r.values["Next/snowkey"]["ns/op"]; !slices.Equal(got, []float64{35, 39, 34}) {
		t.Errorf("after median the values are %v; want them as they were read", got)
	}
}

func TestHeaderKeepsItsColonsAndCommentsTellOfDisturbance(t *testing.T) {
	r := parsed(t, sample)
	for key, want := range map[string]string{
		"date": "2026-01-02", "cpu": "Some CPU @ 2.00GHz", "goos": "linux", "PostgreSQL": "15.1 (Debian)",
	} {
		if got := r.config[key]; got != want {
			t.Errorf("config[%q] = %q; want %q", key, got, want)
		}
	}
	if !slices.Equal(r.busy, []int{3, 12}) {
		t.Errorf("busy = %v; want 3 and 12", r.busy)
	}
}

func TestAFailedMalformedOrEmptyRunIsAnError(t *testing.T) {
	for _, text := range []string{
		"",
		"goos: linux\nPASS\n",
		sample + "--- FAIL: BenchmarkContention/c=64/snowkey\n",
		sample + "FAIL\n",
		"BenchmarkNext/snowkey-2 100 fast ns/op\n",
		sample + "BenchmarkNext/snowkey-2 100\n",
		sample + "BenchmarkNext/snowkey-2 100 35\n",
		sample + "BenchmarkNext/snowkey-2 100 35 ns/op 7\n",
	} {
		if r, err := parse(text); err == nil {
			t.Errorf("parse(%q) = %v, nil; want an error", text, r.values)
		}
	}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	// In the second round the machine was ten times slower, in the last a bit.
	r := &results{values: map[string]map[string][]float64{
		"a": {"ns/op": {10, 100, 12}}, "b": {"ns/op": {20, 200, 36}}, "c": {"ns/op": {1, 1}},
	}}
	// The medians, 12 and 36, make 3.
	if s, ok := r.ratio("b", "a", "ns/op"); !ok || s != (spread{2, 2, 3}) {
		t.Errorf("ratio(b, a) = %+v, %v; want 2, from 2 to 3", s, ok)
	}
	if s, ok := r.ratio("a", "b", "ns/op"); !ok || s.median != 0.5 || math.Abs(s.low-1.0/3) > 1e-9 || s.high != 0.5 {
		t.Errorf("ratio(a, b) = %+v, %v; want 0.5, from 0.33 to 0.5", s, ok)
	}
	for _, names := range [][2]string{{"a", "c"}, {"a", "missing"}, {"missing", "missing"}} {
		if s, ok := r.ratio(names[0], names[1], "ns/op"); ok {
			t.Errorf("ratio(%s, %s) = %v, true; want none, since they were not measured equally often", names[0], names[1], s)
		}
	}
}

// named returns the goal of a suite whose title contains part.
func named(t *testing.T, goals []goal, part string) goal {
	t.Helper()
	i := slices.IndexFunc(goals, func(g goal) bool { return strings.Contains(g.title, part) })
	if i < 0 {
		t.Fatalf("no goal contains %q", part)
	}
	return goals[i]
}

func TestVerdictsCompareMediansWithTheLimit(t *testing.T) {
	base := `
BenchmarkNext/floor=Since+Add-2 1 30.0 ns/op
BenchmarkContention/c=64/floor=Since+Add-2 1 1 ns/op 30.0 ns/ID
BenchmarkSaturation/alone/c=1/snowkey-2 1 1 ns/op 100.0 %cap
BenchmarkSaturation/alone/c=8/snowkey-2 1 1 ns/op 99.95 %cap
BenchmarkSaturation/alone/c=64/snowkey-2 1 1 ns/op 100.0 %cap
BenchmarkGORM/SQLite/one/preset-2 1 100 ns/op
BenchmarkUpsertWriters/MySQL/plain-2 1 1 ns/op 0 deadlocks/op
BenchmarkUpsertWriters/MySQL/plain-2 1 1 ns/op 4 deadlocks/op
BenchmarkSQLX/PostgreSQL-pgx/lines/limit-2 1 70 ns/op
BenchmarkSQLX/PostgreSQL-pgx/lines/limit=binary-2 1 62 ns/op
BenchmarkSQLX/MariaDB/graph/snowkey-two-2 1 100 ns/op
`
	for _, c := range []struct {
		goals                func() []goal
		goal, line, measured string
		reached              bool
	}{
		{generatorGoals, "one goroutine, above the floor", "Next/snowkey-2 1 35.0 ns/op", "5.0", true},
		{generatorGoals, "one goroutine, above the floor", "Next/snowkey-2 1 35.5 ns/op", "5.5", false},
		{generatorGoals, "64 goroutines, against the floor", "Contention/c=64/snowkey-2 1 1 ns/op 33.0 ns/ID", "1.10 ×", true},
		{generatorGoals, "64 goroutines, against the floor", "Contention/c=64/snowkey-2 1 1 ns/op 33.5 ns/ID", "1.12 ×", false},
		{generatorGoals, "share of the cap, worst", "Saturation/alone/c=2/snowkey-2 1 1 ns/op 99.8 %cap", "99.80 %", false},
		{gormGoals, "one `Create` against", "GORM/SQLite/one/snowkey-2 1 103 ns/op", "1.03 ×", true},
		{gormGoals, "one `Create` against", "GORM/SQLite/one/snowkey-2 1 104 ns/op", "1.04 ×", false},
		{gormGoals, "MySQL, deadlocks", "UpsertWriters/MySQL/snowkey-2 1 1 ns/op 2.2 deadlocks/op", "1.10 ×", true},
		{gormGoals, "(generator), ns per row", "Assignment/generator/structs/n=5000-2 1 26 ns/row 3 allocs/op", "26", false},
		{sqlxGoals, "pgx, 20,000 rows against the limit", "SQLX/PostgreSQL-pgx/lines/snowkey-2 1 77 ns/op", "0.81 ×", true},
		{sqlxGoals, "pgx, 20,000 rows against the limit", "SQLX/PostgreSQL-pgx/lines/snowkey-2 1 78 ns/op", "0.79 ×", false},
		{sqlxGoals, "MariaDB, the graph against its parts", "SQLX/MariaDB/graph/snowkey-2 1 105 ns/op", "0.95 ×", true},
		{sqlxGoals, "MariaDB, the graph against its parts", "SQLX/MariaDB/graph/snowkey-2 1 106 ns/op", "0.94 ×", false},
		{sqlxGoals, "lib/pq, memory", "Stream/PostgreSQL-pq/snowkey-2 1 1 ns/op 64 grown-MiB", "64 MiB", true},
		{sqlxGoals, "lib/pq, memory", "Stream/PostgreSQL-pq/snowkey-2 1 1 ns/op 65 grown-MiB", "65 MiB", false},
	} {
		got := named(t, c.goals(), c.goal).judge(parsed(t, base+"Benchmark"+c.line+"\n"))
		if got.measured != c.measured || got.reached != c.reached || !got.known {
			t.Errorf("%s with %q = %+v; want %q, %v", c.goal, c.line, got, c.measured, c.reached)
		}
	}
}

func TestAGoalThatLacksAResultIsNeitherReachedNorMissed(t *testing.T) {
	r := parsed(t, "BenchmarkOther 1 1 ns/op\nBenchmarkSQLX/PostgreSQL-pgx/lines/snowkey 1 1 ns/op\nBenchmarkSQLX/PostgreSQL-pgx/lines/limit 1 1 ns/op\n")
	all := map[string]*results{}
	count := 0
	for _, s := range suites {
		all[s.name] = r
		for _, g := range s.goals() {
			count++
			if v := g.judge(r); v.reached || v.known {
				t.Errorf("%s, %s = %+v; want it not measured", s.name, g.title, v)
			}
		}
	}
	want := "0 of " + number(float64(count)) + " goals are reached, " + number(float64(count)) + " were not measured.\n\n|missed|goal|measured|\n|---|---|---|\n"
	if got := missedGoals(all); count < 60 || got != strings.ReplaceAll(want, ".0", "") {
		t.Errorf("missedGoals = %q; want %q", got, want)
	}
}
