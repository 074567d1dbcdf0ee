package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMain lets this program stand for go test -json: it prints the events of a run and counts
// the runs.
func TestMain(m *testing.M) {
	if file := os.Getenv("GATE_TEST_RUNS"); file != "" {
		os.Exit(play(file, os.Getenv("GATE_TEST_SCENARIO"), os.Args[1:]))
	}
	os.Exit(m.Run())
}

func play(file, scenario string, args []string) int {
	before, _ := os.ReadFile(file)
	if err := os.WriteFile(file, fmt.Appendln(before, strings.Join(args, " ")), 0o666); err != nil {
		panic(err)
	}
	run := bytes.Count(before, []byte("\n"))
	say := func(action, test, output string) {
		line, err := json.Marshal(event{Action: action, Package: "p", Test: test, Output: output})
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
	fail := func(test, message string) {
		say("run", test, "")
		say("output", test, message+"\n")
		say("output", test, "--- FAIL: "+test+" (0.00s)\n")
		say("fail", test, "")
	}
	ok := func(test string) {
		say("run", test, "")
		say("output", test, "--- PASS: "+test+" (0.00s)\n")
		say("pass", test, "")
	}
	end := func(pass bool) int {
		if pass {
			say("output", "", "PASS\n")
			say("output", "", "ok  \tp\t0.1s\n")
			say("pass", "", "")
			return 0
		}
		say("output", "", "FAIL\n")
		say("output", "", "FAIL\tp\t0.1s\n")
		say("fail", "", "")
		return 1
	}
	switch {
	case scenario == "green":
		ok("TestA")
		return end(true)
	case scenario == "build":
		fmt.Println(`{"ImportPath":"p","Action":"build-output","Output":"p.go:1: no\n"}`)
		say("output", "", "FAIL\tp [build failed]\n")
		say("fail", "", "")
		return 1
	case scenario == "panic" && run == 0:
		say("run", "TestMissed", "")
		say("output", "TestMissed", "panic: no\n")
		say("fail", "TestMissed", "")
		say("output", "", "FAIL\tp\t0.1s\n")
		say("fail", "", "")
		return 1
	case scenario == "promise" && run == 0:
		fail("TestLost", "key 7 was given twice")
		return end(false)
	case scenario == "race" && run == 0:
		fail("TestA", "WARNING: DATA RACE")
		return end(false)
	case scenario == "chance" && run == 0, scenario == "again" && run < 3, scenario == "gone" && run == 0:
		ok("TestB")
		say("run", "TestLost/lost", "")
		fail("TestLost", "too slow")
		return end(false)
	case scenario == "gone":
		return end(true)
	}
	ok("TestLost")
	return end(true)
}

func TestATestThatFailsByChanceIsRecordedAndOthersFailTheRun(t *testing.T) {
	alone := "p -x -run=^TestLost$ -skip=^$"
	for _, test := range []struct {
		scenario, shows string
		runs            []string // after the first
		flaky, fails    bool
	}{
		{scenario: "green", shows: "ok  \tp\t0.1s\n"},
		{scenario: "chance", shows: "too slow", runs: []string{alone, alone}, flaky: true},
		{scenario: "again", shows: "too slow", runs: []string{alone}, fails: true},
		{scenario: "gone", shows: "too slow", runs: []string{alone}, fails: true},
		{scenario: "promise", shows: "is not run again", fails: true},
		{scenario: "race", shows: "is not run again", fails: true},
		{scenario: "panic", shows: "panic: no", fails: true},
		{scenario: "build", shows: "p.go:1: no", fails: true},
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

func TestATestThatFailedByChanceTwiceIsNamed(t *testing.T) {
	once := "# comment\n# comment\np.TestA 2026-11-27 # load 3\np.TestB 2026-11-27\n"
	if err := repeated(once); err != nil {
		t.Errorf("repeated = %v; want nil where each test has one line", err)
	}
	if err := repeated(once + "p.TestB 2026-11-28\n"); err == nil || !strings.Contains(err.Error(), "p.TestB") || strings.Contains(err.Error(), "p.TestA") {
		t.Errorf("repeated = %v; want an error that names p.TestB alone", err)
	}
}
