package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// page returns docs/sqlx-benchmarks.md.
func (r results) page() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`# How fast sqlxhelper inserts

For those who compare ways to insert many rows. A program writes this page from its
measurements in [results](../internal/sqlxbench/results). To repeat it, in
internal/sqlxbench:

    go run . -rounds 21
    go run . -stream %d

"Lines" are 20,000 rows of six columns, into a table with a primary key and an index.
"Graph" is 1,000 orders of five items each, under a foreign key. Each is one
transaction, begin and commit included, on an open connection and into empty tables.
After every run all rows are read back and compared.

Keys are `+"`int64`"+` and ascend. sqlxhelper assigns them within the measured time, from a
source that only counts. In the graph it assigns the foreign keys too. The others get
rows that have their keys.

Every variant takes its turn in every round, in random order. Rates, CPU and allocations
are medians of the rounds. A ratio of rates is taken within each round. The table has the
median of these. Above 1, the row is faster than what it is compared with. At the goals,
the middle half of the rounds lies within the bounds in parentheses.
`, streamRows)
	if most := r.disturbed(); most > busyLimit {
		p("**A draft: other programs used up to %d %% of the CPUs before a round.**\n", most)
	}
	p("| | |\n|---|---|")
	for _, key := range []string{"date", "cpu", "cores", "go", "modules"} {
		p("| %s | %s |", key, r.Config[key])
	}
	for _, t := range targets {
		if version, ok := r.Config[t.name]; ok {
			p("| %s | %s |", t.title, version)
		}
	}
	p("| commit | %s |\n| rounds | %s |", r.Config["commit"], r.Config["rounds"])
	p("| other programs before a round | at most %d %% of the CPUs |", r.disturbed())
	p("\n## Goals\n\n%s", strings.TrimRight(benchmark.Goals(r.goals()), "\n"))
	for _, load := range []string{lines, graph} {
		p("\n## %s", map[string]string{lines: "Lines: 20,000 rows", graph: "Graph: 1,000 orders of five items"}[load])
		for _, t := range targets {
			p("\n### %s\n\n%s", t.title, r.table(t, load))
		}
	}
	p("\n%s", missed)
	p("\n## A sequence of %s rows\n\n%s", benchmark.Thousands(streamRows), strings.TrimRight(r.streams(), "\n"))
	p(`
` + "`InsertSeq`" + ` inserts them in one transaction, once, in a process of its own. Memory is what the
process grows by at most: its peak, less what it has when the connection is open.

CPU is client + connection + the rest of the server. The client is all of this program.
The connection is the process or thread that serves it. The rest is the server's other
processes and threads, until the commit is answered. A server that was measured without
its rest has two numbers. SQLite is in the client.

` + "`LOAD DATA`" + ` is no limit, since it loses data. It takes duplicates, texts that are too
long, and text that is not a number, without an error.`)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// disturbed returns the percentage of the CPUs that other programs used before a
// round, at most.
func (r results) disturbed() int {
	most := 0
	for _, comment := range r.Comments {
		_, used, _ := strings.Cut(comment, "other programs used ")
		if percent, err := strconv.Atoi(strings.TrimSuffix(used, " % of the CPUs")); err == nil {
			most = max(most, percent)
		}
	}
	return most
}

// table returns the table of a target.
func (r results) table(t target, load string) string {
	var b strings.Builder
	b.WriteString("| | k rows/s | ÷ limit | ÷ NamedExec | ÷ GORM | CPU, µs per row | allocations per row |\n|---|---:|---:|---:|---:|---:|---:|\n")
	limit, _ := r.limitOf(t, load)
	base := t.name + "/" + load + "/"
	for _, v := range variants() {
		if v.load != load || !v.on(t) {
			continue
		}
		name := nameOf(t, v)
		rate, ok := r.Median(name, "rows/s")
		if !ok {
			fmt.Fprintf(&b, "| %s | not measured | | | | | |\n", v.title)
			continue
		}
		allocs, _ := r.Median(name, "allocs/row")
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", v.title, benchmark.Number(rate/1e3),
			r.ratio(name, limit), r.ratio(name, base+"NamedExec"), r.ratio(name, base+"GORM"), r.cpu(name), benchmark.Number(allocs))
	}
	return strings.TrimRight(b.String(), "\n")
}

// ratio writes how many times as fast a is as b.
func (r results) ratio(a, b string) string {
	v, ok := r.speed(a, b)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%.2f", v.Median)
}

// streams returns the table of all streams.
func (r results) streams() string {
	rows := [][]string{{"", "k rows/s", "memory, MiB", "CPU, µs per row", "allocations per row"}}
	for _, t := range targets {
		for _, s := range streamsOf(t) {
			rate, ok := r.Median(s.name, "rows/s")
			if !ok || !r.streamed() {
				rows = append(rows, []string{s.title, "not measured", "", "", ""})
				continue
			}
			grown, _ := r.Median(s.name, "grown-MiB")
			allocs, _ := r.Median(s.name, "allocs/row")
			rows = append(rows, []string{s.title, benchmark.Number(rate / 1e3), benchmark.Number(grown), r.cpu(s.name), benchmark.Number(allocs)})
		}
	}
	return benchmark.Table(rows)
}

// cpu writes the CPU time of a row, of the client and of the server if it is known.
func (r results) cpu(name string) string {
	var parts []string
	for _, unit := range []string{"client-us/row", "server-us/row", "others-us/row"} {
		if used, ok := r.Median(name, unit); ok {
			parts = append(parts, benchmark.Number(used))
		}
	}
	return strings.Join(parts, " + ")
}

// missed says what is behind the goals that are missed. It was measured by hand, and
// nothing here repeats it.
const missed = `## Where the goals are missed

Profiles and trials of 2026-11-23, by hand, on two cores of an Intel Xeon that other
machines disturbed.

SQLite, in memory. Of the CPU time of InsertMany, 75 % is in mattn's driver, and 8 % in the
arguments of database/sql. Fields are read and boxed in 10 %, and rows listed in 3 %. A
transaction of database/sql does not give out its connection. So database/sql prepared
for 50 rows is the floor. Three trials gained nothing:

- values that are boxed many at a time;
- 25, 100 or 200 rows per statement: 48, 47 and 48 ms, where 50 took 44;
- the values of the next statement made meanwhile: slower by 16 %.

PostgreSQL by unnest. Three quarters of the CPU time are the server's. It took these times
per row:

| | µs |
|---|---:|
| binary COPY of a file | 3.1 |
| INSERT … SELECT from another table | 3.4 to 4.0 |
| INSERT … SELECT unnest of arrays in memory | 3.5 to 4.0 |
| INSERT … SELECT unnest of arrays as text | 5.7 |

So 2 µs go into reading arrays. Arrays in binary would need types of pgx. One trial of
three is kept: the next arrays are made while the server works. It took 0.91 of the time,
as the median of 51 rounds in one run. Statements of other sizes and times as bigint
gained nothing.

PostgreSQL with pgxcopy. The COPY itself takes 5 to 9 % longer than one by hand. The call has 4
round trips more: two for the savepoint, one that hands the COPY to pgx, and one that
reads the types again. They and the list of rows take 5 to 6 ms, of 90.
At 50,000 rows the ratio was 1.03 and 0.96, with and without the check of the types. A
COPY by hand under a savepoint was no slower.

MariaDB against NamedExec and GORM. All of them send VALUES, and the server takes as long
for each. Only the client's part can be less.`
