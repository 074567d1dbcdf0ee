package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain lets this program stand for go test: it says what a run would say, and counts the runs.
func TestMain(m *testing.M) {
	if file := os.Getenv("GATE_TEST_RUNS"); file != "" {
		os.Exit(play(file, os.Getenv("GATE_TEST_SCENARIO"), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// What go test says of a package p.
const (
	passes = "ok  \tp\t0.1s\n"
	fails  = "--- FAIL: TestLost (0.00s)\n    --- FAIL: TestLost/lost (0.00s)\n        a_test.go:7: too slow\nFAIL\nFAIL\tp\t0.1s\nFAIL\n"
)

// scenarios are what go test says in its runs, one after the other; what passes comes after these.
var scenarios = map[string][]string{
	"green":   {},
	"chance":  {fails},
	"again":   {fails, fails},
	"gone":    {fails, "ok  \tp\t0.1s [no tests to run]\n"},
	"promise": {strings.Replace(fails, "too slow", "key 7 was given twice", 1)},
	"race":    {"WARNING: DATA RACE\n" + fails},
	"panic":   {"--- FAIL: TestMissed (0.00s)\npanic: no\nFAIL\tp\t0.1s\nFAIL\n"},
	"build":   {"FAIL\tp [build failed]\nFAIL\n"},
	"others":  {"ok  \ta\t0.1s\n" + fails},
}

func play(file, scenario string, args []string) int {
	before, _ := os.ReadFile(file)
	if err := os.WriteFile(file, fmt.Appendln(before, strings.Join(args, " ")), 0o666); err != nil {
		panic(err)
	}
	says := passes
	if run := bytes.Count(before, []byte("\n")); run < len(scenarios[scenario]) {
		says = scenarios[scenario][run]
	}
	fmt.Print(says)
	return strings.Count(says, "FAIL\t")
}

func TestATestThatFailsByChanceIsRecordedAndOthersFailTheRun(t *testing.T) {
	const alone = "p -x -run=^TestLost$ -skip=^$"
	for _, test := range []struct {
		scenario, shows string
		runs            []string // after the first
		flaky, fails    bool
	}{
		{scenario: "green", shows: passes},
		{scenario: "chance", shows: "too slow", runs: []string{alone, alone}, flaky: true},
		{scenario: "others", shows: "too slow", runs: []string{alone, alone}, flaky: true},
		{scenario: "again", shows: "too slow", runs: []string{alone}, fails: true},
		{scenario: "gone", shows: "too slow", runs: []string{alone}, fails: true},
		{scenario: "promise", shows: "are not run again", fails: true},
		{scenario: "race", shows: "are not run again", fails: true},
		{scenario: "panic", shows: "panic: no", fails: true},
		{scenario: "build", shows: "build failed", fails: true},
	} {
		t.Run(test.scenario, func(t *testing.T) {
			runs := filepath.Join(t.TempDir(), "runs")
			t.Setenv("GATE_TEST_RUNS", runs)
			t.Setenv("GATE_TEST_SCENARIO", test.scenario)
			record := filepath.Join(t.TempDir(), "flaky")
			var out bytes.Buffer
			err := suite{packages: []string{"p"}, flags: []string{"-x"}, record: record, command: []string{os.Args[0]}, out: &out}.run(t.Context())
			if (err != nil) != test.fails {
				t.Errorf("run = %v; want an error: %v", err, test.fails)
			}
			if !strings.Contains(out.String(), test.shows) {
				t.Errorf("run prints %q; want %q in it", &out, test.shows)
			}
			text, _ := os.ReadFile(runs)
			if got := strings.Split(strings.TrimSpace(string(text)), "\n"); !slices.Equal(got, append([]string{"p -x"}, test.runs...)) {
				t.Errorf("runs = %q; want the first and %q", got, test.runs)
			}
			noted, _ := os.ReadFile(record)
			if got := strings.HasPrefix(string(noted), "p.TestLost 2"); got != test.flaky {
				t.Errorf("recorded %q; want a line: %v", noted, test.flaky)
			}
		})
	}
}
