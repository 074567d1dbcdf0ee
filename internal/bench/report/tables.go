package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/internal/benchmark"
)

// A table is one marked section of the page.
type table struct{ name, markdown string }

// tablesOf returns all sections, each made of nothing but the results.
func tablesOf(r *benchmark.Results) []table {
	if _, ok := r.Values[segmentNext(1, "snowkey")]; ok {
		return segmentTables(r)
	}
	return []table{
		{"machine", machine(r)},
		{"goals", goalTable(r, goals())},
		{"cost", costTable(r)},
		{"saturation", saturationTable(r)},
		{"fill", fillTable(r)},
		{"text", textTable(r)},
		{"json", jsonTable(r)},
	}
}

func machine(r *benchmark.Results) string {
	var b strings.Builder
	for _, key := range []string{"date", "go", "cpu", "cores", "kernel", "commit", "peers"} {
		if v := r.Config[key]; v != "" {
			fmt.Fprintf(&b, "- %s: %s\n", key, v)
		}
	}
	if low, high := rounds(r); low == high {
		fmt.Fprintf(&b, "- rounds: %d\n", low)
	} else {
		fmt.Fprintf(&b, "- rounds: %d to %d\n", low, high)
	}
	if steps, most, over := disturbance(r.Comments); steps > 0 {
		fmt.Fprintf(&b, "- other programs on the machine: above 10 %% of the CPUs in %d of %d steps, at most %d %%\n", over, steps, most)
	}
	for _, c := range r.Comments {
		if strings.HasPrefix(c, "gate given up") {
			fmt.Fprintf(&b, "- %s\n", c)
		}
	}
	return b.String()
}

// rounds returns the least and the greatest number of values that a benchmark has.
func rounds(r *benchmark.Results) (low, high int) {
	for _, units := range r.Values {
		n := len(units["ns/op"])
		if low == 0 || n < low {
			low = n
		}
		high = max(high, n)
	}
	return low, high
}

// disturbance reads the lines "round 1, …: others used 3 % of the CPUs".
func disturbance(comments []string) (steps, most, over int) {
	for _, c := range comments {
		_, rest, ok := strings.Cut(c, "others used ")
		if !ok {
			continue
		}
		percent, err := strconv.Atoi(strings.Fields(rest)[0])
		if err != nil {
			continue
		}
		steps++
		most = max(most, percent)
		if percent > 10 {
			over++
		}
	}
	return steps, most, over
}

// goalTable counts the goals that are reached, names those that were not measured, and
// lists those that are missed.
func goalTable(r *benchmark.Results, goals []goal) string {
	var missed []benchmark.Goal
	var unknown []string
	for _, g := range goals {
		switch v := g.verdict(r); {
		case strings.HasPrefix(v.Measured, notMeasured):
			unknown = append(unknown, v.Title)
		case !v.Reached:
			missed = append(missed, v)
		}
	}
	text := fmt.Sprintf("%d of %d goals are reached.", len(goals)-len(missed)-len(unknown), len(goals))
	if len(unknown) > 0 {
		text += " Not measured: " + strings.Join(unknown, "; ") + "."
	}
	if len(missed) > 0 {
		text += " Missed:\n\n" + benchmark.Goals(missed)
	}
	return strings.TrimRight(text, "\n") + "\n"
}

// names of the sources of Next and Contention, in the order of the tables.
var names = []string{
	"floor=Since+Add", "snowkey", "mutex+Since", "article-mutex", "article-lockfree", "bwmarrin", "sonyflake",
	"xid", "ulid", "ksuid", "google-v4", "google-v7", "gofrs-v7",
}

// shown is how a name reads in a table.
func shown(name string) string {
	switch name {
	case "floor=Since+Add":
		return "floor: `time.Since` + atomic Add"
	case "snowkey":
		return "**snowkey**"
	case "mutex+Since":
		return "own mutex + `time.Since`"
	case "article-mutex":
		return "article, mutex"
	case "article-lockfree":
		return "article, lock-free: **duplicates**"
	}
	return name
}

// counts are the numbers of goroutines of the contention curve.
var counts = []int{1, 2, 4, 8, 12, 64}

// costTable compares one goroutine and 64. The picture has the numbers between.
func costTable(r *benchmark.Results) string {
	rows := [][]string{{"", "ns per ID", "× floor", "allocations", "ns per ID, 64 goroutines", "duplicates at 64"}}
	floor, _ := r.Median("Next/floor=Since+Add", "ns/op")
	for _, name := range names {
		one, many := "Next/"+name, "Contention/c=64/"+name
		times := "–"
		if ns, ok := r.Median(one, "ns/op"); ok && floor > 0 {
			times = fmt.Sprintf("%.2f", ns/floor)
		}
		dup := "0"
		if v, _ := r.Median(many, "dup/op"); v > 0 {
			dup = fmt.Sprintf("**%.0f (%.2f %%)**", v, 100*v/(64*10_000))
		}
		rows = append(rows, []string{shown(name), cell(r, one, "ns/op"), times, cell(r, one, "allocs/op"), cell(r, many, "ns/ID"), dup})
	}
	return benchmark.Table(rows)
}

func saturationTable(r *benchmark.Results) string {
	goroutines := []int{1, 2, 8, 64}
	head := []string{"share of 4,096 per ms / CPU of one core"}
	for _, c := range goroutines {
		head = append(head, "c = "+strconv.Itoa(c))
	}
	rows := [][]string{head}
	for _, s := range []struct{ beside, name, shown string }{
		{"alone", "snowkey", "**snowkey**"},
		{"alone", "snowkey-Fill(100)", "**snowkey**, `Fill` of 100"},
		{"alone", "bwmarrin", "bwmarrin"},
		{"alone", "sonyflake", "sonyflake"},
		{"hogs", "snowkey", "**snowkey**, with hogs"},
		{"hogs", "bwmarrin", "bwmarrin, with hogs"},
	} {
		row := []string{s.shown}
		for _, c := range goroutines {
			name := fmt.Sprintf("Saturation/%s/c=%d/%s", s.beside, c, s.name)
			share, ok := r.Median(name, "%cap")
			if !ok {
				break
			}
			cell := fmt.Sprintf("%.2f %%", share)
			if core, ok := r.Median(name, "%core"); ok {
				cell += fmt.Sprintf(" / %.1f %%", core)
			}
			row = append(row, cell)
		}
		if len(row) == len(head) {
			rows = append(rows, row)
		}
	}
	return benchmark.Table(rows)
}

func fillTable(r *benchmark.Results) string {
	sizes := []int{1, 10, 100, 1000, 10000}
	head := []string{"ns per ID"}
	for _, n := range sizes {
		head = append(head, "n = "+strconv.Itoa(n))
	}
	rows := [][]string{head}
	for _, s := range []struct{ name, shown string }{
		{"floor=store", "floor: write n consecutive numbers"},
		{"snowkey", "**snowkey**, `Fill`"},
		{"bwmarrin", "bwmarrin, a loop"},
	} {
		row := []string{s.shown}
		for _, n := range sizes {
			row = append(row, cell(r, fmt.Sprintf("Fill/n=%d/%s", n, s.name), "ns/ID"))
		}
		rows = append(rows, row)
	}
	return benchmark.Table(rows)
}

func textTable(r *benchmark.Results) string {
	rows := [][]string{{"one ID of 19 digits", "ns", "allocations"}}
	for _, op := range []string{"String", "Parse"} {
		for _, name := range []string{"snowkey", "bwmarrin", "disgoorg"} {
			key := "Text/" + op + "/" + name
			rows = append(rows, []string{"`" + op + "`, " + shown(name), cell(r, key, "ns/op"), cell(r, key, "allocs/op")})
		}
	}
	return benchmark.Table(rows)
}

func jsonTable(r *benchmark.Results) string {
	rows := [][]string{{"slice of 100: µs (allocations)", "v1 marshal", "v1 unmarshal", "v2 marshal", "v2 unmarshal"}}
	for _, name := range []string{"snowkey", "bwmarrin", "disgoorg", "int64"} {
		row := []string{shown(name)}
		for _, bench := range []string{"JSON/Marshal/", "JSON/Unmarshal/", "JSONv2/Marshal/", "JSONv2/Unmarshal/"} {
			v, ok := r.Median(bench+name, "ns/op")
			shown := "–"
			if ok {
				shown = fmt.Sprintf("%.1f (%s)", v/1e3, cell(r, bench+name, "allocs/op"))
			}
			row = append(row, shown)
		}
		rows = append(rows, row)
	}
	return benchmark.Table(rows)
}

// cell returns a median, or a dash where there is none.
func cell(r *benchmark.Results, name, unit string) string {
	v, ok := r.Median(name, unit)
	if !ok {
		return "–"
	}
	if unit == "allocs/op" {
		return fmt.Sprintf("%.0f", v)
	}
	return benchmark.Number(v)
}

const (
	markerStart = "<!-- measured: "
	markerEnd   = "<!-- /measured -->"
)

// fill returns page with the tables that its markers name between these. A name without
// a table and a marker without an end are errors.
func fill(page string, tables []table) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(page, markerStart)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, ok := strings.Cut(rest, " -->")
		if !ok {
			return "", fmt.Errorf("marker %q without -->", markerStart)
		}
		old, after, ok := strings.Cut(rest, markerEnd)
		if !ok || strings.Contains(old, markerStart) {
			return "", fmt.Errorf("marker %q without %s", name, markerEnd)
		}
		content, ok := "", false
		for _, t := range tables {
			if t.name == name {
				content, ok = t.markdown, true
			}
		}
		if !ok {
			return "", fmt.Errorf("marker %q names no table", name)
		}
		b.WriteString(markerStart + name + " -->\n" + content + markerEnd)
		page = after
	}
}
