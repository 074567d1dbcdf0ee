package main

import (
	"strings"
	"testing"
)

// ideal returns results in which every variant takes its share of 1 s.
func ideal() results {
	rounds := map[string][3]float64{}
	for _, target := range targets {
		for _, v := range variants() {
			share := 1.0
			switch {
			case !v.on(target):
				continue
			case v.limit:
				share = 0.25
			case strings.HasPrefix(v.name, "snowkey"):
				share = 0.25
			}
			rounds[nameOf(target, v)] = [3]float64{share * 1e9, share * 2e9, share * 3e9}
		}
	}
	for _, target := range targets {
		for _, s := range streamsOf(target) {
			rounds[s.name] = [3]float64{1e9, 1e9, 1e9}
		}
	}
	r := fake(rounds)
	r.Config["stream"] = "10000000"
	for _, target := range targets {
		for _, s := range streamsOf(target) {
			r.Values[s.name]["grown-MiB"] = []float64{64}
		}
	}
	return r
}

func TestGoalsAreReachedAtTheirLimits(t *testing.T) {
	for _, g := range ideal().goals() {
		if !g.Reached {
			t.Errorf("goal %q = %s; want it reached", g.Title, g.Measured)
		}
	}
	for _, test := range []struct {
		slower string // takes so many times as long as the limit, or as what it is compared with
		factor float64
		goal   string
		want   bool
	}{
		{"SQLite/lines/snowkey", 1 / 0.851, "SQLite, mattn: 20,000 rows against the driver alone", true},
		{"SQLite/lines/snowkey", 1 / 0.849, "SQLite, mattn: 20,000 rows against the driver alone", false},
		{"PostgreSQL-pgx/lines/snowkey", 1 / 0.621, "PostgreSQL, pgx: 20,000 rows against `COPY`", true},
		{"PostgreSQL-pgx/lines/snowkey", 1 / 0.619, "PostgreSQL, pgx: 20,000 rows against `COPY`", false},
		{"PostgreSQL-pgx/lines/snowkey-copy", 1 / 0.969, "PostgreSQL, pgx: 20,000 rows with pgxcopy, against `COPY`", false},
		{"PostgreSQL-pq/lines/snowkey", 1 / 0.619, "PostgreSQL, lib/pq: 20,000 rows against `COPY`", false},
		{"MariaDB/lines/snowkey", 1 / 0.949, "MariaDB: 20,000 rows against a prepared statement", false},
		{"MariaDB/lines/snowkey", 4 / 1.49, "MariaDB: 20,000 rows against GORM", false},
		{"MariaDB/lines/snowkey", 4 / 1.51, "MariaDB: 20,000 rows against GORM", true},
		{"SQLite/graph/snowkey", 4 / 1.49, "SQLite, mattn: the graph against `NamedExec`", false},
		{"SQLite/graph/snowkey", 1.049, "SQLite, mattn: time of the graph against two bulk loads", true},
		{"SQLite/graph/snowkey", 1.051, "SQLite, mattn: time of the graph against two bulk loads", false},
		{"PostgreSQL-pgx/graph/snowkey-copy", 1.051, "PostgreSQL, pgx: time of the graph against two bulk loads, with pgxcopy", false},
	} {
		r := ideal()
		ns := r.Values[test.slower]["ns/op"]
		for i := range ns {
			ns[i] *= test.factor
		}
		found := false
		for _, g := range r.goals() {
			if g.Title == test.goal {
				found = true
				if g.Reached != test.want {
					t.Errorf("%s at %.3f of the time: goal %q, %s = %v; want %v", test.slower, test.factor, g.Title, g.Measured, g.Reached, test.want)
				}
			}
		}
		if !found {
			t.Errorf("there is no goal %q", test.goal)
		}
	}
}

func TestGoalAgainstALimitNeedsAllLimits(t *testing.T) {
	r := ideal()
	delete(r.Values, "PostgreSQL-pgx/lines/limit=binary")
	for _, g := range r.goals() {
		if missing := strings.HasPrefix(g.Title, "PostgreSQL, pgx: ") && strings.Contains(g.Title, "`COPY`"); g.Reached == missing || (g.Measured == "not measured") != missing {
			t.Errorf("goal %q = %s, %v; want it measured unless it is against COPY", g.Title, g.Measured, g.Reached)
		}
	}
}

func TestMemoryOfASequenceIsAGoal(t *testing.T) {
	for _, test := range []struct {
		rows     string
		grown    float64
		measured string
		reached  bool
	}{
		{"10000000", 64, "64.0 MiB", true},
		{"10000000", 64.1, "64.1 MiB", false},
		{"1000", 3, "not measured", false},
	} {
		r := ideal()
		r.Config["stream"] = test.rows
		r.Values["MariaDB/stream/snowkey"]["grown-MiB"] = []float64{test.grown}
		if shown := !strings.Contains(r.streams(), "| MariaDB | not measured |"); shown != (test.measured != "not measured") {
			t.Errorf("the table of %s rows = %s; want a row of MariaDB only for 10,000,000", test.rows, r.streams())
		}
		found := false
		for _, g := range r.goals() {
			if g.Title == "MariaDB: memory for a sequence of 10,000,000 rows" {
				found = true
				if g.Measured != test.measured || g.Reached != test.reached {
					t.Errorf("%v MiB for %s rows = %q, %v; want %q, %v", test.grown, test.rows, g.Measured, g.Reached, test.measured, test.reached)
				}
			}
		}
		if !found {
			t.Error("there is no such goal")
		}
	}
}

func TestWhatWasNotMeasuredIsNoGoalReached(t *testing.T) {
	r := fake(map[string][3]float64{"SQLite/lines/snowkey": {1, 1, 1}})
	for _, g := range r.goals() {
		if g.Reached || g.Measured != "not measured" {
			t.Errorf("goal %q = %q, %v; want it not measured", g.Title, g.Measured, g.Reached)
		}
	}
}

func TestPageHasMediansAndRatios(t *testing.T) {
	r := fake(map[string][3]float64{
		"SQLite/lines/limit=1":   {20e6, 25e6, 40e6},
		"SQLite/lines/limit=50":  {16e6, 20e6, 32e6},
		"SQLite/lines/snowkey":   {20e6, 25e6, 40e6},
		"SQLite/lines/NamedExec": {40e6, 40e6, 80e6},
		"SQLite/lines/GORM":      {60e6, 60e6, 60e6},
		"MariaDB/stream/snowkey": {100e6, 100e6, 100e6},
	})
	r.Values["MariaDB/stream/snowkey"]["grown-MiB"] = []float64{12}
	r.Config = map[string]string{"stream": "10000000", "SQLite": "3.54.1", "cpu": "Some CPU"}
	r.Comments = []string{"round 1: before it, other programs used 2 % of the CPUs", "round 2: before it, other programs used 10 % of the CPUs"}
	page := r.page()
	for _, want := range []string{
		"    go run . -rounds 21\n    go run . -stream 10000000\n",
		"| MariaDB | 200 | 12.0 |",
		"| SQLite, mattn | not measured |  |",
		"\n3 of 31 goals are reached,",
		"| SQLite, mattn | 3.54.1 |",
		"| cpu | Some CPU |",
		"| other programs before a round | at most 10 % of the CPUs |",
		"|  | snowkey | limit | `NamedExec` | GORM | bun |",
		"| SQLite, mattn | 800 | 1000, 0.80 × (mattn's driver, prepared for 50 rows) | 500, 2.00 × | 333, 2.40 × | not measured |",
		"| MariaDB | not measured | not measured | not measured | not measured | not measured |",
		"| SQLite, mattn: 20,000 rows against the driver alone | ≥ 0.85 × | 0.800 × (0.800 to 0.800) | **missed** |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "| reached |") {
		t.Error("the page lists goals that are reached; want those that are missed")
	}
	if strings.Contains(page, "draft") {
		t.Error("page of a quiet machine calls itself a draft")
	}
}

func TestPageOfADisturbedMachineIsADraft(t *testing.T) {
	r := ideal()
	r.Comments = []string{"round 2: before it, other programs used 11 % of the CPUs"}
	if page := r.page(); !strings.Contains(page, "**A draft: other programs used up to 11 % of the CPUs before a round.**") {
		t.Errorf("page does not call itself a draft:\n%s", page)
	}
}
