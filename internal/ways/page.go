package main

import (
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/benchmark"
)

//go:embed ways.md.txt
var text string

// writePage writes the page and the picture.
func writePage(r *benchmark.Results, docs string) error {
	picture, err := plot(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(docs, "ways.svg"), picture, 0o644); err != nil {
		return err
	}
	n, err := strconv.Atoi(r.Config["rows"])
	if err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	count := func(n int) string { return benchmark.Thousands(float64(n)) }
	page := strings.NewReplacer(
		"{{ids}}", idTable(r), "{{fetches}}", fetchTable(r), "{{burst}}", count(20*(1<<sequenceBits)),
		"{{rows}}", rowTable(r, "Rows", count(n)+" rows"),
		"{{references}}", rowTable(r, "References", count(n/4)+" rows"), "{{parents}}", count(n/2),
		"{{large}}", rowTable(r, "Large", count(5*n)+" rows and more"), "{{more}}", count(n/10),
		"{{cache}}", smallCache, "{{memory}}", smallMemory,
		"{{machine}}", machine(r),
	).Replace(text)
	return os.WriteFile(filepath.Join(docs, "ways.md"), []byte(page), 0o644)
}

func machine(r *benchmark.Results) string {
	var b strings.Builder
	for _, key := range []string{"date", "go", "cpu", "cores", "PostgreSQL", "MariaDB", "Redis"} {
		fmt.Fprintf(&b, "- %s: %s\n", key, r.Config[key])
	}
	return b.String()
}

// measured returns a median, or NaN if there is none.
func measured(r *benchmark.Results, callers int, w way, unit string) float64 {
	if v, ok := r.Median(fmt.Sprintf("Ways/c=%d/%s", callers, w.name), unit); ok {
		return v
	}
	return math.NaN()
}

func idTable(r *benchmark.Results) string {
	head := []string{"way"}
	for _, c := range callerCounts {
		head = append(head, "keys per second, c = "+strconv.Itoa(c))
	}
	rows := [][]string{append(head, "round trips per key", "CPU of the server, µs per key", "reveals")}
	for _, w := range ways() {
		row := []string{w.title}
		for _, c := range callerCounts {
			row = append(row, benchmark.Thousands(measured(r, c, w, "IDs/s")))
		}
		rows = append(rows, append(row, small(measured(r, 8, w, "trips/ID")), small(measured(r, 8, w, "server-µs/ID")), w.reveals))
	}
	return benchmark.Table(rows)
}

// small writes what may be far below one.
func small(v float64) string {
	switch {
	case v == 0:
		return "0"
	case math.IsNaN(v):
		return "–"
	case v < 0.01:
		return fmt.Sprintf("%.1e", v)
	}
	return benchmark.Number(v)
}

func fetchTable(r *benchmark.Results) string {
	rows := [][]string{{"a fetch of a segment", "round trips", "ms"}}
	for _, db := range []string{"PostgreSQL", "MariaDB"} {
		trips, _ := r.Median("Fetch/"+db, "trips/fetch")
		ns, _ := r.Median("Fetch/"+db, "ns/op")
		rows = append(rows, []string{db, benchmark.Number(trips), benchmark.Number(ns / 1e6)})
	}
	return benchmark.Table(rows)
}

func rowTable(r *benchmark.Results, name, title string) string {
	rows := [][]string{{title, "database", "rows per second", "times Snowflake's, of three rounds", "CPU of the server, µs per row", "table, MB", "indexes, MB"}}
	for _, kind := range rowKinds {
		for _, db := range []string{"PostgreSQL", "MariaDB"} {
			row := []string{kind.title, db}
			for _, unit := range []string{"rows/s", "server-µs/row", "table-MB", "index-MB"} {
				v, ok := r.Median(name+"/"+db+"/"+kind.name, unit)
				switch {
				case !ok && unit == "rows/s":
					row = append(row, "–", "–")
				case !ok:
					row = append(row, "–")
				case unit == "rows/s":
					s, _ := r.Ratio(name+"/"+db+"/"+kind.name, name+"/"+db+"/snowflake-fixed", unit)
					row = append(row, benchmark.Thousands(v), fmt.Sprintf("%.1f (%.1f to %.1f)", s.Median, s.Low, s.High))
				default:
					row = append(row, fmt.Sprintf("%.1f", v))
				}
			}
			rows = append(rows, row)
		}
	}
	return benchmark.Table(rows)
}
