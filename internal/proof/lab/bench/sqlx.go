package main

import (
	"fmt"
	"path"
)

// sqlxDatabases are the databases by driver, with the name and the titles of their limit.
var sqlxDatabases = []struct {
	entry
	limit, lines, graph string
	copies              bool // has pgxcopy
}{
	{entry{"SQLite", "SQLite"}, "limit=50", "mattn's driver, prepared for 50 rows", "the same, twice", false},
	{entry{"PostgreSQL-pgx", "PostgreSQL, pgx"}, "limit=binary", "binary `COPY` through pgconn", "binary `COPY` through pgconn", true},
	{entry{"PostgreSQL-pq", "PostgreSQL, lib/pq"}, "limit", "`COPY` of lib/pq", "two `COPY`", false},
	{entry{"MariaDB", "MariaDB"}, "limit", "database/sql, prepared for 500 rows", "the same, twice", false},
}

func sqlxSections(r *results) map[string]string {
	sections := map[string]string{}
	for _, load := range []string{"lines", "graph"} {
		head := []string{"k rows/s", "snowkey", "limit"}
		if load == "graph" {
			head = append(head, "parts")
		}
		rows := [][]string{head}
		for _, d := range sqlxDatabases {
			limit := d.lines
			if load == "graph" {
				limit = d.graph
			}
			for _, ours := range []entry{{"snowkey", d.title}, {"snowkey-copy", d.title + ", pgxcopy"}} {
				if ours.name == "snowkey-copy" && !d.copies {
					continue
				}
				name := "SQLX/" + d.name + "/" + load + "/" + ours.name
				row := []string{ours.title, r.scaled(name, "rows/s", 1e3), r.beside(name, d.limit) + ", " + limit}
				if load == "graph" {
					row = append(row, r.beside(name, "snowkey-two"+ours.name[len("snowkey"):]))
				}
				rows = append(rows, row)
			}
		}
		sections["sqlx-"+load] = table(rows)
	}
	var streams []entry
	for _, d := range sqlxDatabases {
		streams = append(streams, entry{d.name + "/snowkey", d.title})
		if d.copies {
			streams = append(streams, entry{d.name + "/snowkey-copy", d.title + ", pgxcopy"})
		}
	}
	sections["sqlx-stream"] = grid("", []entry{{"rows/s", "k rows/s"}, {"grown-MiB", "memory, MiB"}}, streams, func(unit, name string) string {
		return r.scaled("Stream/"+name, unit, map[string]float64{"rows/s": 1e3, "grown-MiB": 1}[unit])
	})
	return sections
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
	for _, d := range sqlxDatabases {
		fasterThan := func(title string, limit float64, name, other string) {
			list = append(list, goal{d.title + ", " + title, false, limit, "%.2f ×", func(m *medians) float64 {
				return m.ofRounds(sibling(name, other), name, "ns/op")
			}})
		}
		lines, graph := "SQLX/"+d.name+"/lines/", "SQLX/"+d.name+"/graph/"
		fasterThan("20,000 rows against the limit", 1/1.25, lines+"snowkey", d.limit)
		fasterThan("the graph against its parts", 1/1.05, graph+"snowkey", "snowkey-two")
		inMemory := func(title, name string) {
			list = append(list, goal{d.title + title, true, 64, "%.0f MiB", func(m *medians) float64 { return m.of("Stream/"+d.name+"/"+name, "grown-MiB") }})
		}
		inMemory(", memory of 10,000,000 rows", "snowkey")
		if d.copies {
			fasterThan("20,000 rows by pgxcopy against the limit", 0.97, lines+"snowkey-copy", d.limit)
			fasterThan("the graph by pgxcopy against its parts", 1/1.05, graph+"snowkey-copy", "snowkey-two-copy")
			inMemory(", memory of 10,000,000 rows by pgxcopy", "snowkey-copy")
		}
	}
	return list
}
