package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// page returns docs/sqlx-benchmarks.md.
func (r results) page() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`# How fast sqlxhelper inserts

In internal/sqlxbench, these commands measure and write the page from
[results](../internal/sqlxbench/results), which also have the CPU times and the allocations:

    go run . -rounds 21
    go run . -stream %d

"Lines" are 20,000 rows of six columns, into a table with a primary key and an index;
"graph" is 1,000 orders of five items each, under a foreign key. Each is one transaction on
an open connection and into empty tables, begin and commit included, and all rows are read
back and compared. Keys are `+"`int64`"+` and ascend. sqlxhelper assigns the keys, and in the
graph the foreign keys, within the measured time; the other rows have theirs before.

Every variant takes its turn in every round, in random order. Rates are medians of the
rounds, and a ratio is the median of the ratios of each round: above 1, the row is faster
than what it is compared with.
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
	b.WriteString(r.missedGoals())
	p(`
## Rates

In k rows/s. The number beside a rate is how many times as fast snowkey is. `+"`NamedExec`"+` and bun
insert slices of 1,000 rows, in the graph `+"`NamedExec`"+` each order and the slice of its items; GORM
uses batches of 1,000. In the graph, "parts" are two `+"`InsertMany`"+` of rows that have their keys.

### Lines: 20,000 rows

%s
### Graph: 1,000 orders of five items

%s`, r.table(lines), strings.TrimRight(r.table(graph), "\n"))
	p("\n%s", missed)
	p("\n## A sequence of %s rows\n\n%s", benchmark.Thousands(streamRows), strings.TrimRight(r.streams(), "\n"))
	p("\n`InsertSeq` inserts them in one transaction, once, in a process of its own. Memory is the peak of\nthe process less what it has when the connection is open.")
	return b.String()
}

// missedGoals says what the goals are, and which are missed.
func (r results) missedGoals() string {
	all := r.goals()
	missed := slices.DeleteFunc(slices.Clone(all), func(g benchmark.Goal) bool { return g.Reached })
	text := fmt.Sprintf(`
## Goals

The goals ask that 20,000 rows reach a share of the limit, the fastest way that the driver has:
%.2f on SQLite, %.2f on PostgreSQL (0.97 with pgxcopy) and %.2f on MariaDB; that they and the
graph are 1.5 times as fast as with `+"`NamedExec`"+` and with GORM; that the graph takes at most 1.05
times as long as two `+"`InsertMany`"+` of the same rows; and that a sequence of %s rows takes
at most %d MiB of memory.
%d of %d goals are reached, and these are missed, with the middle half of the rounds in
parentheses:
`, limitGoals["SQLite"], limitGoals["PostgreSQL-pgx"], limitGoals["MariaDB"],
		benchmark.Thousands(streamRows), streamMiB, len(all)-len(missed), len(all))
	return text + "\n" + benchmark.Goals(missed)
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

// table returns the rates of a load, with a row for each target and each way that
// snowkey has there.
func (r results) table(load string) string {
	head := []string{"", "snowkey", "limit"}
	if load == graph {
		head = append(head, "parts")
	}
	rows := [][]string{append(head, "`NamedExec`", "GORM", "bun")}
	for _, t := range targets {
		for _, v := range variants() {
			if v.load != load || !v.on(t) || v.name != "snowkey" && v.name != "snowkey-copy" {
				continue
			}
			title, base := t.title, t.name+"/"+load+"/"
			if v.name == "snowkey-copy" {
				title += ", with pgxcopy"
			}
			limit, _ := r.limitOf(t, load)
			row := []string{title, r.rate(base + v.name), r.beside(base+v.name, limit)}
			if limit != "" {
				row[2] += " (" + titleOf(t, limit) + ")"
			}
			if load == graph {
				row = append(row, r.beside(base+v.name, base+strings.Replace(v.name, "snowkey", "snowkey-two", 1)))
			}
			for _, peer := range []string{"NamedExec", "GORM", "bun"} {
				row = append(row, r.beside(base+v.name, base+peer))
			}
			rows = append(rows, row)
		}
	}
	return benchmark.Table(rows)
}

// titleOf returns what a limit is.
func titleOf(t target, limit string) string {
	for _, v := range variants() {
		if v.on(t) && nameOf(t, v) == limit {
			return strings.TrimPrefix(v.title, "**limit**: ")
		}
	}
	return ""
}

// rate writes the rate of a variant in thousands of rows.
func (r results) rate(name string) string {
	rate, ok := r.Median(name, "rows/s")
	if !ok {
		return "not measured"
	}
	return benchmark.Number(rate / 1e3)
}

// beside writes the rate of a variant, and how many times as fast ours is.
func (r results) beside(ours, name string) string {
	text := r.rate(name)
	if v, ok := r.speed(ours, name); ok {
		text += fmt.Sprintf(", %.2f ×", v.Median)
	}
	return text
}

// streams returns the table of all streams.
func (r results) streams() string {
	rows := [][]string{{"", "k rows/s", "memory, MiB"}}
	for _, t := range targets {
		for _, s := range streamsOf(t) {
			rate, ok := r.Median(s.name, "rows/s")
			if !ok || !r.streamed() {
				rows = append(rows, []string{s.title, "not measured", ""})
				continue
			}
			grown, _ := r.Median(s.name, "grown-MiB")
			rows = append(rows, []string{s.title, benchmark.Number(rate / 1e3), benchmark.Number(grown)})
		}
	}
	return benchmark.Table(rows)
}

// missed says what is behind the goals that are missed. It was measured by hand, and
// nothing here repeats it.
const missed = `## Where the goals are missed

Profiles of 2026-11-23 on two cores of an Intel Xeon that other machines disturbed.

- SQLite, in memory: 75 % of the CPU time of InsertMany is in mattn's driver and 8 % in the
  arguments of database/sql, whose transactions do not expose their connection. Reading and
  boxing fields takes 10 %, listing the rows 3 %.
- PostgreSQL by unnest: three quarters of the CPU time are the server's. Reading arrays as
  text costs it 2 µs of 5.7 µs per row; a binary COPY of a file takes 3.1 µs, and arrays in
  binary would need types of pgx.
- PostgreSQL with pgxcopy: the COPY takes 5 to 9 % longer than one by hand. Four more round
  trips, for the savepoint, for access to pgx and for the check of the types, and the list of
  rows take 5 to 6 ms of 90.
- MariaDB against NamedExec and GORM: all of them send VALUES, on which the server spends the
  same time, so only the client's part can shrink.

` + "`LOAD DATA`" + ` is no limit, because it takes duplicates, texts that are too long and text that is
not a number without an error.`
