package main

import (
	"strings"
	"testing"
)

const sample = `date: 2026-01-02
rounds: 3
# round 1, load average 0.1
cpu: Some CPU
BenchmarkGORM
    gorm_bench_test.go:280: SQLite: 3.46.1
BenchmarkGORM/SQLite/one/auto-increment
BenchmarkGORM/SQLite/one/auto-increment-2         	       1	  10000000 ns/op	    600000 rows/s	 2934152 B/op	   68244 allocs/op
BenchmarkGORM/SQLite/one/snowkey-2                	       1	   9000000 ns/op	    666667 rows/s	 3438352 B/op	   61204 allocs/op
BenchmarkAssignment/free/structs/n=5000-2         	     300	        24.94 ns/row	   40960 B/op	       1 allocs/op
# round 2, load average 0.1
BenchmarkGORM/SQLite/one/auto-increment-2         	       1	  20000000 ns/op	    300000 rows/s	 2934152 B/op	   68244 allocs/op
BenchmarkGORM/SQLite/one/snowkey-2                	       1	  22000000 ns/op	    272727 rows/s	 3438352 B/op	   61204 allocs/op
BenchmarkAssignment/free/structs/n=5000-2         	     300	        26.00 ns/row	   40960 B/op	       1 allocs/op
# round 3, load average 0.1
BenchmarkGORM/SQLite/one/auto-increment-2         	       1	  50000000 ns/op	    200000 rows/s	 2934152 B/op	   68244 allocs/op
BenchmarkGORM/SQLite/one/snowkey-2                	       1	  30000000 ns/op	    166667 rows/s	 3438352 B/op	   61204 allocs/op
BenchmarkAssignment/free/structs/n=5000-2         	     300	        24.00 ns/row	   40960 B/op	       1 allocs/op
`

func TestPageHasMediansTheirRatioAndThoseOfTheRounds(t *testing.T) {
	r, err := parse(sample)
	if err != nil {
		t.Fatalf("parse = %v; want no error", err)
	}
	page := r.page()
	for _, want := range []string{
		"| SQLite | 3.46.1 |",
		"| cpu | Some CPU |",
		"| SQLite | auto-increment | 20.0 | 300,000 |  |  | 68,244 |",
		"|  | snowkey | 22.0 | 272,727 | 1.10 × | 0.90 (0.60 to 1.10) | 61,204 |",
		"| SQLite: one Create, ahead of auto-increment, whose keys are read back | ≤ 1.00 × | 1.10 × | **missed** |",
		"| assignment of 5,000 rows, source free, ns per row | ≤ 25.0 | 24.9 | reached |",
		"| MariaDB | auto-increment | not measured | | | | |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %q:\n%s", want, page)
		}
	}
}

func TestWhatWasNotMeasuredIsNoGoalReached(t *testing.T) {
	r, err := parse(sample)
	if err != nil {
		t.Fatalf("parse = %v; want no error", err)
	}
	for _, g := range r.goals() {
		if (g.measured == "not measured") && g.reached {
			t.Errorf("goal %q is reached without having been measured", g.title)
		}
	}
}

func TestParseRefusesWhatHasNoBenchmark(t *testing.T) {
	if _, err := parse("PASS\n"); err == nil {
		t.Error("parse of no benchmark = nil; want an error")
	}
	if _, err := parse("BenchmarkX 1 x ns/op\n"); err == nil {
		t.Error("parse of a value that is no number = nil; want an error")
	}
}
