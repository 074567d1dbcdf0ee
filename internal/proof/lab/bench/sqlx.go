package main

import (
	"fmt"
	"math"
	"path"
)

// sqlxWays are the ways to insert rows, each into a database by a driver: the names of ours, of its parts, and
// of the limit, with the titles of that.
var sqlxWays = []struct{ title, database, ours, parts, limit, lines, graph string }{
	{"SQLite", "SQLite", "snowkey", "snowkey-two", "limit=50", "mattn's driver, prepared for 50 rows", "the same, twice"},
	{"PostgreSQL, pgx", "PostgreSQL-pgx", "snowkey", "snowkey-two", "limit=binary", "binary `COPY` through pgconn", "binary `COPY` through pgconn"},
	{"PostgreSQL, pgx, pgxcopy", "PostgreSQL-pgx", "snowkey-copy", "snowkey-two-copy", "limit=binary", "binary `COPY` through pgconn", "binary `COPY` through pgconn"},
	{"PostgreSQL, lib/pq", "PostgreSQL-pq", "snowkey", "snowkey-two", "limit", "`COPY` of lib/pq", "two `COPY`"},
	{"MariaDB", "MariaDB", "snowkey", "snowkey-two", "limit", "database/sql, prepared for 500 rows", "the same, twice"},
}

func sqlxSections(r *results) map[string]string {
	lines, graph := [][]string{{"k rows/s", "snowkey", "limit"}}, [][]string{{"k rows/s", "snowkey", "limit", "parts"}}
	var streams []entry
	for _, w := range sqlxWays {
		name := "SQLX/" + w.database + "/lines/" + w.ours
		lines = append(lines, []string{w.title, r.scaled(name, "rows/s", 1e3), r.beside(name, w.limit) + ", " + w.lines})
		name = "SQLX/" + w.database + "/graph/" + w.ours
		graph = append(graph, []string{w.title, r.scaled(name, "rows/s", 1e3), r.beside(name, w.limit) + ", " + w.graph, r.beside(name, w.parts)})
		streams = append(streams, entry{"Stream/" + w.database + "/" + w.ours, w.title})
	}
	return map[string]string{
		"sqlx-lines": table(lines), "sqlx-graph": table(graph),
		"sqlx-stream": grid("", []entry{{"rows/s", "k rows/s"}, {"grown-MiB", "memory, MiB"}}, streams, func(unit, name string) string {
			return r.scaled(name, unit, map[string]float64{"rows/s": 1e3, "grown-MiB": 1}[unit])
		}),
	}
}

// sibling returns the name of another variant of the same load.
func sibling(name, variant string) string { return path.Dir(name) + "/" + variant }

// beside shows the rate of another variant, and how many times as fast ours is: the median
// of the ratios of the rounds.
func (r *results) beside(ours, other string) string {
	name := sibling(ours, other)
	s, ok := r.ratio(name, ours, "ns/op")
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%s (%.2f ×)", r.scaled(name, "rows/s", 1e3), s.median)
}

func sqlxGoals() []goal {
	var list []goal
	for _, w := range sqlxWays {
		fasterThan := func(title string, limit float64, load, other string) {
			list = append(list, goal{w.title + ", " + title, false, limit, "%.2f ×", func(r *results) float64 {
				name := "SQLX/" + w.database + "/" + load + "/" + w.ours
				s, ok := r.ratio(sibling(name, other), name, "ns/op")
				if !ok {
					return math.NaN()
				}
				return s.median
			}})
		}
		limit := 1 / 1.25
		if w.ours == "snowkey-copy" {
			limit = 0.97
		}
		fasterThan("20,000 rows against the limit", limit, "lines", w.limit)
		fasterThan("the graph against its parts", 1/1.05, "graph", w.parts)
		list = append(list, goal{w.title + ", memory of 10,000,000 rows", true, 64, "%.0f MiB", func(r *results) float64 {
			return r.of("Stream/"+w.database+"/"+w.ours, "grown-MiB")
		}})
	}
	return list
}
