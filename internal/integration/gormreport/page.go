package main

import (
	"fmt"
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

// The databases.
var databases = []struct{ name, title string }{
	{"SQLite", "SQLite"},
	{"PostgreSQL", "PostgreSQL"},
	{"MariaDB", "MariaDB"},
	{"MariaDBWithoutReturning", "MariaDB without RETURNING"},
	{"MySQL", "MySQL"},
}

// A shape is a way to store rows, and by how much keys that are known before may be
// slower than counted ones, or 0.
type shape struct {
	name, title string
	variants    []string
	limit       float64
}

const unnest = "snowkey-unnest" // of which only PostgreSQL knows

var shapes = []shape{
	{"one", "1,000 orders of 5 items, one Create", []string{"auto-increment", "snowkey", unnest, "preset", "uuid-v7", "snowkey-assign"}, 1.03},
	{"each", "1,000 Creates of an order of 5 items, one transaction", []string{"auto-increment", "snowkey", "preset", "uuid-v7"}, 0.95},
	{"save", "1,000 orders of 5 items, one Save", []string{"auto-increment", "snowkey", unnest}, 0},
	{"belongs", "1,000 shipments with a new customer each, one Create", []string{"auto-increment", "snowkey", unnest}, 0},
	{"many", "1,000 articles with two new tags each, one Create", []string{"auto-increment", "snowkey", unnest}, 0},
}

var titles = map[string]string{
	"auto-increment": "auto-increment",
	"snowkey":        "snowkey",
	unnest:           "snowkey, `WithUnnest`",
	"preset":         "no plugin, keys set before",
	"uuid-v7":        "UUIDv7",
	"snowkey-assign": "snowkey, `Assign` and one statement per table",
}

// The upserts, by how many of their rows are stored already.
var upserts = []struct {
	name, title string
	limit       float64
}{
	{"all", "all rows stored", 1.6},
	{"half", "half of them", 1.4},
	{"none", "none", 1.05},
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

The models of a comparison are the same but for the key:

- `+"`uint`"+`, counted by the database;
- `+"`types.Snowflake`"+` with the plugin and a `+"`core.Generator`"+`;
- a UUID of version 7 from a `+"`BeforeCreate`"+` hook, as `+"`uuid`, `binary(16)` or `blob`"+`.

Every benchmark takes its turn in every round. The times are medians of the rounds.
"against auto-increment" divides the two medians. "in single rounds" divides the two
times of each round. It shows the median of these ratios, and the middle half of them.
The machine is faster in some rounds than in others, so the two need not agree. If they
lie on different sides of 1, the benchmark does not tell which is faster. The goals are
about the medians of the times.

"client" is the CPU time of the program, in milliseconds. "server" is that of the process
or thread that serves its connection. SQLite works in the program.
`, r.Config["rounds"])
	p("| | |\n|---|---|")
	for _, key := range []string{"date", "cpu", "cores", "go", "modules", "SQLite", "PostgreSQL", "MariaDB", "MySQL", "commit", "rounds"} {
		p("| %s | %s |", key, r.Config[key])
	}
	p("\n## Goals\n\n%s", strings.TrimRight(benchmark.Goals(r.goals()), "\n"))
	p(`
Assigning keys is a small part of the client's CPU time; it is measured alone at the end.
An assigned key is one more parameter per row. A counted key has to come back. "no plugin,
keys set before" is GORM alone. No plugin can be much faster while GORM sends the rows.`)
	for _, s := range shapes {
		b.WriteString(r.table(s))
	}
	b.WriteString(r.upserts())
	p("\n%s", missed)
	p(`
## The assignment alone

Without a database. It is what the plugin does in a ` + "`Create`" + ` of n rows before GORM goes
on, and ` + "`Assign`" + ` of orders with 5 items each. "free" is a source that only counts,
"generator" a ` + "`core.Generator`" + `.

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

// head is the head of a table of times.
const head = "| %s | | ms | against %s | in single rounds | client | server | allocations |\n|---|---|---:|---:|---:|---:|---:|---:|"

// table returns the section about the databases for one shape.
func (r results) table(s shape) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("\n## %s\n\n"+head, s.title, "", "auto-increment")
	for _, d := range databases {
		title, base := d.title, "GORM/"+d.name+"/"+s.name+"/"
		for _, v := range s.variants {
			if v == unnest && d.name != "PostgreSQL" {
				continue
			}
			p("| %s | %s | %s |", title, titles[v], r.cells(base+v, base+"auto-increment"))
			title = ""
		}
	}
	return b.String()
}

// upserts returns the section about rows that may be stored already.
func (r results) upserts() string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`
## Upserts

10,000 rows with two unique columns, in one ` + "`Create`" + ` with ` + "`DoNothing`" + `. "plain" has no
plugin, and keys that are set before. Its rows keep keys that are not stored, if the row
was there. The plugin gives each row the key of the stored one.
`)
	p(head, "", "plain")
	for _, d := range databases {
		title := d.title
		for _, u := range upserts {
			base := "Upsert/" + d.name + "/" + u.name + "/"
			p("| %s | %s, plain | %s |", title, u.title, r.cells(base+"plain", base+"plain"))
			p("|  | %s, snowkey | %s |", u.title, r.cells(base+"snowkey", base+"plain"))
			title = ""
		}
	}
	p(`
16 writers send the same rows at one time, each 10 statements of 40 rows, in an order of
its own. The database refuses some of the 160 because of a deadlock. PostgreSQL looks for
one after 10 ms here, and by default after a second.

| | plain, deadlocks | snowkey, deadlocks | plain, ms | snowkey, ms |
|---|---:|---:|---:|---:|`)
	for _, d := range databases {
		base := "UpsertWriters/" + d.name + "/"
		plain, ok := r.mean(base+"plain", "deadlocks/op")
		keyed, ok2 := r.mean(base+"snowkey", "deadlocks/op")
		if ok && ok2 {
			slow, _ := r.Median(base+"plain", "ns/op")
			slow2, _ := r.Median(base+"snowkey", "ns/op")
			p("| %s | %.1f | %.1f | %.0f | %.0f |", d.title, plain, keyed, slow/1e6, slow2/1e6)
		}
	}
	return b.String()
}

// mean returns the mean of what was measured. Few rounds have a deadlock, so a median
// would hide them.
func (r results) mean(name, unit string) (float64, bool) {
	all := r.Values[name][unit]
	var sum float64
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all)), len(all) > 0
}

// cells returns the measured columns of a benchmark, compared with the benchmark base.
func (r results) cells(name, base string) string {
	ns, ok := r.Median(name, "ns/op")
	if !ok {
		return "not measured | | | | |"
	}
	allocs, _ := r.Median(name, "allocs/op")
	compared, rounds, server := "", "", ""
	if x, ok := r.ratio(name, base); ok && name != base {
		compared, rounds = fmt.Sprintf("%.2f ×", x), r.rounds(name, base)
	}
	client, _ := r.Median(name, "client-ms/op")
	if ms, ok := r.Median(name, "server-ms/op"); ok && ms > 0 {
		server = fmt.Sprintf("%.0f", ms)
	}
	return fmt.Sprintf("%.1f | %s | %s | %.0f | %s | %s", ns/1e6, compared, rounds, client, server, benchmark.Thousands(allocs))
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
			if v, ok := r.ratio(base+"snowkey", base+"auto-increment"); s.limit > 0 {
				add(fmt.Sprintf("%s: %s, against auto-increment", d.title, s.title), "%.2f ×", s.limit, v, ok)
			}
			if v, ok := r.ratio(base+unnest, base+"auto-increment"); s.name == "one" && d.name == "PostgreSQL" {
				add(fmt.Sprintf("%s: %s, `WithUnnest`, against auto-increment", d.title, s.title), "%.2f ×", 0.8, v, ok)
			}
		}
	}
	for _, d := range databases {
		for _, u := range upserts {
			base := "Upsert/" + d.name + "/" + u.name + "/"
			v, ok := r.ratio(base+"snowkey", base+"plain")
			add(fmt.Sprintf("%s: upsert, %s, against no plugin", d.title, u.title), "%.2f ×", u.limit, v, ok)
		}
	}
	for _, d := range databases[1:] { // SQLite has one writer
		plain, ok := r.mean("UpsertWriters/"+d.name+"/plain", "deadlocks/op")
		keyed, ok2 := r.mean("UpsertWriters/"+d.name+"/snowkey", "deadlocks/op")
		if ok && ok2 && plain == 0 && keyed == 0 {
			plain, keyed = 1, 1 // no deadlock in either
		}
		add(d.title+": deadlocks of 16 writers, against no plugin", "%.2f ×", 1.1, keyed/plain, ok && ok2)
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

// missed says what is behind the goals that are missed. It was measured by hand, and
// nothing here repeats it.
const missed = `## Where the goals are missed

Creates on MariaDB without RETURNING and on MySQL. Auto-increment sends one value less per
row, and reads no key back: the driver counts from the first. Compare "no plugin, keys set
before". It and the plugin differ by less than the rounds do.

Upserts on SQLite. The insert that meets 10,000 stored rows takes 20 to 25 ms. They have
to be looked up besides. Of the look, 40 % is SQLite's own work and 15 % that of the
driver. The rest makes the list and compares. Queries for all rows took, in one run:

| | ms |
|---|---:|
| a join with VALUES, in parts of 1,000 rows | 22 to 35 |
| a list in JSON, after IN | 18 to 31 |
| a list of pairs in JSON, joined, other column compared by SQLite | 26 to 44 |
| the same, with all keys in one text | 16 to 27 |
| a list in JSON, joined, other column not read | 12 to 18 |

The last one is used, and the other column is read and compared. The look then takes about
three quarters of the time that it took with IN. A join alone makes 1.5 to 1.8 ×.

The assignment. It reads and sets a field of each row by reflection. Earlier runs on a
faster machine took 43 ns.`
