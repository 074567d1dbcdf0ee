package main

import (
	"fmt"
	"strconv"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// atLeast makes a goal that something is so many times as fast as something else.
func (r results) atLeast(title string, limit float64, a, b string) benchmark.Goal {
	v, ok := r.speed(a, b)
	return newGoal(title, "≥", limit, v, ok, v.Median >= limit)
}

// inTime makes a goal that something takes at most so many times as long.
func (r results) inTime(title string, limit float64, a, b string) benchmark.Goal {
	v, ok := r.speed(b, a)
	return newGoal(title, "≤", limit, v, ok, v.Median <= limit)
}

// newGoal makes a goal. What was not measured was not reached. Three digits behind
// the point, so that none looks like its limit and misses it.
func newGoal(title, sign string, limit float64, v benchmark.Spread, measured, reached bool) benchmark.Goal {
	g := benchmark.Goal{Title: title, Limit: fmt.Sprintf("%s %.2f ×", sign, limit), Measured: "not measured"}
	if measured {
		g.Measured = fmt.Sprintf("%.3f × (%.3f to %.3f)", v.Median, v.Low, v.High)
		g.Reached = reached
	}
	return g
}

// limitGoals says how much of the limit is to be reached, and limitTitles of what.
var (
	limitGoals  = map[string]float64{"SQLite": 0.85, "PostgreSQL-pgx": 0.62, "PostgreSQL-pq": 0.62, "MariaDB": 0.95}
	limitTitles = map[string]string{"SQLite": "the driver alone", "PostgreSQL-pgx": "`COPY`", "PostgreSQL-pq": "`COPY`", "MariaDB": "a prepared statement"}
)

// goals returns all goals, whether they were measured or not.
func (r results) goals() []benchmark.Goal {
	var list []benchmark.Goal
	for _, t := range targets {
		ours := t.name + "/" + lines + "/snowkey"
		limit, complete := r.limitOf(t, lines)
		if !complete {
			limit = "" // the one that is missing may be faster
		}
		list = append(list, r.atLeast(t.title+": 20,000 rows against "+limitTitles[t.name], limitGoals[t.name], ours, limit))
		if t.name == "PostgreSQL-pgx" {
			list = append(list, r.atLeast(t.title+": 20,000 rows with pgxcopy, against `COPY`", 0.97, ours+"-copy", limit))
		}
	}
	for _, t := range targets {
		for _, load := range []string{lines, graph} {
			what := map[string]string{lines: "20,000 rows", graph: "the graph"}[load]
			base := t.name + "/" + load + "/"
			list = append(list,
				r.atLeast(t.title+": "+what+" against `NamedExec`", 1.5, base+"snowkey", base+"NamedExec"),
				r.atLeast(t.title+": "+what+" against GORM", 1.5, base+"snowkey", base+"GORM"))
		}
	}
	for _, t := range targets {
		base := t.name + "/" + graph + "/"
		list = append(list, r.inTime(t.title+": time of the graph against two bulk loads", 1.05, base+"snowkey", base+"snowkey-two"))
		if t.name == "PostgreSQL-pgx" {
			list = append(list, r.inTime(t.title+": time of the graph against two bulk loads, with pgxcopy", 1.05, base+"snowkey-copy", base+"snowkey-two-copy"))
		}
	}
	for _, t := range targets {
		for _, s := range streamsOf(t) {
			list = append(list, r.inMemory(s))
		}
	}
	return list
}

// streamRows is how many rows a sequence has to have for its goal, and streamMiB by how
// much the program may grow.
const (
	streamRows = 10_000_000
	streamMiB  = 64
)

// inMemory makes the goal of a stream.
func (r results) inMemory(s stream) benchmark.Goal {
	g := benchmark.Goal{
		Title:    s.title + ": memory for a sequence of " + benchmark.Thousands(streamRows) + " rows",
		Limit:    fmt.Sprintf("≤ %d MiB", streamMiB),
		Measured: "not measured",
	}
	if grown, ok := r.Median(s.name, "grown-MiB"); ok && r.streamed() {
		g.Measured = fmt.Sprintf("%.1f MiB", grown)
		g.Reached = grown <= streamMiB
	}
	return g
}

// streamed tells whether the sequences had as many rows as the page says.
func (r results) streamed() bool { return r.Config["stream"] == strconv.Itoa(streamRows) }
