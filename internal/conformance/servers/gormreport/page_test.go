package main

import (
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/benchmark"
)

const sample = `date: 2026-01-02
rounds: 3
# round 1, load average 0.1
cpu: Some CPU
BenchmarkGORM
    gorm_bench_test.go:280: SQLite: 3.46.1
BenchmarkGORM/SQLite/one/auto-increment
BenchmarkGORM/SQLite/one/auto-increment-2         	       1	  10000000 ns/op	    600000 rows/s	        12.0 client-ms/op	 2934152 B/op	   68244 allocs/op
BenchmarkGORM/SQLite/one/snowkey-2                	       1	   9000000 ns/op	    666667 rows/s	 3438352 B/op	   61204 allocs/op
BenchmarkAssignment/free/structs/n=5000-2         	     300	        24.94 ns/row	   40960 B/op	       1 allocs/op
# round 2, load average 0.1
BenchmarkGORM/SQLite/one/auto-increment-2         	       1	  20000000 ns/op	    300000 rows/s	        12.0 client-ms/op	 2934152 B/op	   68244 allocs/op
BenchmarkGORM/SQLite/one/snowkey-2                	       1	  22000000 ns/op	    272727 rows/s	        13.0 client-ms/op	        3.0 server-ms/op	 3438352 B/op	   61204 allocs/op
BenchmarkAssignment/free/structs/n=5000-2         	     300	        26.00 ns/row	   40960 B/op	       1 allocs/op
BenchmarkAssignment/generator/structs/n=5000-2    	     300	        26.00 ns/row	   40960 B/op	       1 allocs/op
BenchmarkUpsert/SQLite/half/plain-2               	       1	  20000000 ns/op	        12.0 client-ms/op	 2934152 B/op	   68244 allocs/op
BenchmarkUpsert/SQLite/half/snowkey-2             	       1	  30000000 ns/op	        13.0 client-ms/op	 2934152 B/op	   61204 allocs/op
BenchmarkUpsertWriters/PostgreSQL/plain-2         	       1	  50000000 ns/op	        4.000 deadlocks/op
BenchmarkUpsertWriters/PostgreSQL/plain-2         	       1	  50000000 ns/op	        0 deadlocks/op
BenchmarkUpsertWriters/PostgreSQL/snowkey-2       	       1	  60000000 ns/op	        2.000 deadlocks/op
# round 3, load average 0.1
BenchmarkGORM/SQLite/one/auto-increment-2         	       1	  50000000 ns/op	    200000 rows/s	 2934152 B/op	   68244 allocs/op
BenchmarkGORM/SQLite/one/snowkey-2                	       1	  30000000 ns/op	    166667 rows/s	 3438352 B/op	   61204 allocs/op
BenchmarkAssignment/free/structs/n=5000-2         	     300	        24.00 ns/row	   40960 B/op	       1 allocs/op
`

func TestPageHasMediansTheirRatiosAndTheGoalsThatTheyMiss(t *testing.T) {
	r, err := benchmark.Parse(sample)
	if err != nil {
		t.Fatalf("Parse = %v; want no error", err)
	}
	page := results{r}.page()
	for _, want := range []string{
		"| SQLite | 3.46.1 |",
		"| cpu | Some CPU |",
		"|  | SQLite | PostgreSQL | MariaDB | MariaDB without RETURNING | MySQL |",
		"| auto-increment | 20.0 | not measured |",
		"| snowkey (≤ 1.03 ×) | 22.0, **1.10 ×** (0.60 to 1.10) | not measured |",
		"| half of them, snowkey (≤ 1.40 ×) | 30.0, **1.50 ×** (1.50 to 1.50) | not measured |",
		"| PostgreSQL | 2.0 | 2.0 | 50 | 60 |",
		"| Assignment/free/structs/n=5000 | 24.9 | 1 |",
		"| Assignment/generator/structs/n=5000 | **26.0** | 1 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %q:\n%s", want, page)
		}
	}
}
