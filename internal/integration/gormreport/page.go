package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// results are the output of the benchmarks.
type results struct{ *benchmark.Results }

// ratio returns the ratio of two medians: the one of the two times that the page
// shows.
func (r results) ratio(a, b string) (float64, bool) {
	x, okX := r.Median(a, "ns/op")
	y, okY := r.Median(b, "ns/op")
	return x / y, okX && okY
}

// rounds returns the ratios of the single rounds: their median, and in brackets
// the bounds of the middle half.
func (r results) rounds(a, b string) string {
	s, ok := r.Ratio(a, b, "ns/op")
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", s.Median, s.Low, s.High)
}

// The databases, whether GORM reads counted keys back from them, and whether rows may go
// as arrays.
var databases = []struct {
	name, title    string
	reads, unnests bool
}{
	{"SQLite", "SQLite", true, false},
	{"PostgreSQL", "PostgreSQL", true, true},
	{"MariaDB", "MariaDB", true, false},
	{"MariaDBWithoutReturning", "MariaDB without RETURNING, as MySQL", false, false},
}

// A shape is a way to store the rows.
type shape struct {
	name, title string
	variants    []string
}

var shapes = []shape{
	{"one", "one Create", []string{"auto-increment", "snowkey", "snowkey-unnest", "uuid-v7", "snowkey-assign"}},
	{"each", "1,000 Creates in one transaction", []string{"auto-increment", "snowkey", "uuid-v7"}},
}

var titles = map[string]string{
	"auto-increment": "auto-increment",
	"snowkey":        "snowkey",
	"snowkey-unnest": "snowkey, `WithUnnest`",
	"uuid-v7":        "UUIDv7",
	"snowkey-assign": "snowkey, `Assign` and one statement per table",
}

// page returns docs/gorm-benchmarks.md.
func (r results) page() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`# What keys cost with GORM

For those who compare kinds of keys with GORM. A program writes this page from the output
of benchmarks in [results.txt](../internal/integration/gormreport/results.txt). To repeat
it, in internal/integration:

    go run ./gormreport -rounds %s

One operation stores 1,000 orders of 5 items each, 6,000 rows. It is one `+"`Create`"+` of a
slice, or 1,000 `+"`Create`"+`s of one order each in one transaction. The models are the same
but for the key:

- `+"`uint`"+`, counted by the database;
- `+"`types.Snowflake`"+` with the plugin and a `+"`core.Generator`"+`;
- a UUID of version 7 from a `+"`BeforeCreate`"+` hook, as `+"`uuid`, `binary(16)` or `blob`"+`.

Every benchmark takes its turn in every round. The times are medians of the rounds.
"against auto-increment" divides the two medians. "in single rounds" divides the two
times of each round. It shows the median of these ratios, and the middle half of them.
The machine is faster in some rounds than in others, so the two need not agree. If they
lie on different sides of 1, the benchmark does not tell which is faster. The goals are
about the medians of the times.
`, r.Config["rounds"])
	p("| | |\n|---|---|")
	for _, key := range []string{"date", "cpu", "cores", "go", "modules", "SQLite", "PostgreSQL", "MariaDB", "commit", "rounds"} {
		p("| %s | %s |", key, r.Config[key])
	}
	p("\n## Goals\n\n%s", strings.TrimRight(benchmark.Goals(r.goals()), "\n"))
	p(`
The CPU of the client is a small part of these times, and the plugin a small part of
that. An assigned key is one more parameter per row. A counted key has to come back.`)
	for _, s := range shapes {
		b.WriteString(r.table(s))
	}
	p(`
## The assignment alone

Without a database. It is what the plugin does in a ` + "`Create`" + ` of n rows before GORM goes
on, and ` + "`Assign`" + ` of orders with 5 items each. "free" is a source that only counts,
"generator" a ` + "`core.Generator`" + `.

At commit 4de9257 the plugin wrote keys through unsafe pointers. It uses reflection alone
since. Then 5,000 rows take about 35 ns per row as structs and 41 as pointers, measured
without the rest of this page. That misses the goal of 25 ns.

| | ns per row | allocations in all |
|---|---:|---:|`)
	for _, name := range r.Names() {
		if ns, ok := r.Median(name, "ns/row"); ok {
			allocs, _ := r.Median(name, "allocs/op")
			p("| %s | %.1f | %s |", name, ns, benchmark.Thousands(allocs))
		}
	}
	return b.String()
}

// table returns the section about the databases for one shape.
func (r results) table(s shape) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("\n## %s\n\n| | | ms | rows/s | against auto-increment | in single rounds | allocations |\n|---|---|---:|---:|---:|---:|---:|", strings.ToUpper(s.title[:1])+s.title[1:])
	for _, d := range databases {
		title, base := d.title, "GORM/"+d.name+"/"+s.name+"/"
		for _, v := range s.variants {
			if v == "snowkey-unnest" && !d.unnests {
				continue
			}
			p("| %s | %s | %s |", title, titles[v], r.cells(base+v, base+"auto-increment"))
			title = ""
		}
	}
	return b.String()
}

// cells returns the measured columns of a benchmark, compared with the benchmark base.
func (r results) cells(name, base string) string {
	ns, ok := r.Median(name, "ns/op")
	if !ok {
		return "not measured | | | |"
	}
	rate, _ := r.Median(name, "rows/s")
	allocs, _ := r.Median(name, "allocs/op")
	compared, rounds := "", ""
	if x, ok := r.ratio(name, base); ok && name != base {
		compared, rounds = fmt.Sprintf("%.2f ×", x), r.rounds(name, base)
	}
	return fmt.Sprintf("%.1f | %s | %s | %s | %s", ns/1e6, benchmark.Thousands(rate), compared, rounds, benchmark.Thousands(allocs))
}

// goals returns the goals. What was not measured was not reached.
func (r results) goals() []benchmark.Goal {
	var list []benchmark.Goal
	add := func(title, format string, limit, v float64, ok bool) {
		g := benchmark.Goal{Title: title, Limit: "≤ " + fmt.Sprintf(format, limit), Measured: "not measured"}
		if ok {
			g.Measured, g.Reached = fmt.Sprintf(format, v), v <= limit
		}
		list = append(list, g)
	}
	for _, s := range shapes {
		for _, d := range databases {
			base := "GORM/" + d.name + "/" + s.name + "/"
			v, ok := r.ratio(base+"snowkey", base+"auto-increment")
			title, limit := "never slower than auto-increment, but for noise", 1.03
			if d.reads {
				title, limit = "ahead of auto-increment, whose keys are read back", 1
			}
			add(fmt.Sprintf("%s: %s, %s", d.title, s.title, title), "%.2f ×", limit, v, ok)
			if d.unnests && slices.Contains(s.variants, "snowkey-unnest") {
				v, ok = r.ratio(base+"snowkey-unnest", base+"auto-increment")
				add(fmt.Sprintf("%s: %s, `WithUnnest`, ahead of auto-increment", d.title, s.title), "%.2f ×", 0.8, v, ok)
			}
		}
	}
	for _, source := range []string{"free", "generator"} {
		name := "Assignment/" + source + "/structs/n=5000"
		v, ok := r.Median(name, "ns/row")
		add("assignment of 5,000 rows, source "+source+", ns per row", "%.1f", 25, v, ok)
		v, ok = r.Median(name, "allocs/op")
		add("assignment of 5,000 rows, source "+source+", allocations per row", "%.4f", 0.001, v/5000, ok)
	}
	return list
}
