package main

import (
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/benchmark"
)

const sample = `date: 2026-01-02
# round 1, ^BenchmarkNext$: others used 3 % of the CPUs
goos: linux
cpu: Some CPU @ 2.00GHz
BenchmarkNext/snowkey-2         	 100	        35.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
PASS
# round 2, ^BenchmarkNext$: others used 12 % of the CPUs
BenchmarkNext/snowkey-2         	 100	        39.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
BenchmarkNext/snowkey-2         	 100	        34.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
BenchmarkNext/google-v7         	 100	        95.0 ns/op
PASS
`

func mustParse(t *testing.T, raw string) *benchmark.Results {
	t.Helper()
	r, err := benchmark.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// goalNamed returns the goal whose text contains part.
func goalNamed(t *testing.T, part string) goal {
	t.Helper()
	for _, g := range goals() {
		if strings.Contains(g.text, part) {
			return g
		}
	}
	t.Fatalf("no goal contains %q", part)
	return goal{}
}

func TestVerdictsCompareMediansWithTheLimit(t *testing.T) {
	base := "BenchmarkNext/floor=Since+Add-2 1 30.0 ns/op\nBenchmarkNext/bwmarrin-2 1 40.0 ns/op\n" +
		"BenchmarkContention/c=64/bwmarrin-2 1 1 ns/op 90.0 ns/ID\n"
	for _, c := range []struct {
		goal, line, measured string
		reached              bool
	}{
		{"one goroutine, against the floor", "BenchmarkNext/snowkey-2 1 34.5 ns/op", "1.15 ×", true},
		{"one goroutine, against the floor", "BenchmarkNext/snowkey-2 1 34.8 ns/op", "1.16 ×", false},
		{"one goroutine, against bwmarrin", "BenchmarkNext/snowkey-2 1 36.0 ns/op", "0.90 ×", true},
		{"one goroutine, against bwmarrin", "BenchmarkNext/snowkey-2 1 36.4 ns/op", "0.91 ×", false},
		{"rate against bwmarrin's", "BenchmarkContention/c=64/snowkey-2 1 1 ns/op 30.0 ns/ID", "3.00 ×", true},
		{"rate against bwmarrin's", "BenchmarkContention/c=64/snowkey-2 1 1 ns/op 31.0 ns/ID", "2.90 ×", false},
	} {
		got := goalNamed(t, c.goal).verdict(mustParse(t, base+c.line+"\n"))
		if got.Measured != c.measured || got.Reached != c.reached {
			t.Errorf("%s with %q = %q, %v; want %q, %v", c.goal, c.line, got.Measured, got.Reached, c.measured, c.reached)
		}
	}
}

func TestTheWorstCountOfGoroutinesDecides(t *testing.T) {
	var raw strings.Builder
	for _, line := range []string{
		"c=1/snowkey-2 1 1 ns/op 100.0 %cap 19.0 %core", "c=2/snowkey-2 1 1 ns/op 99.8 %cap 18.0 %core",
		"c=8/snowkey-2 1 1 ns/op 99.95 %cap 20.5 %core", "c=64/snowkey-2 1 1 ns/op 100.0 %cap 24.0 %core",
	} {
		raw.WriteString("BenchmarkSaturation/alone/" + line + "\n")
	}
	r := mustParse(t, raw.String())
	for text, want := range map[string]string{
		"share of 4,096 per ms, worst": "99.80 %",
		"worst of 1, 2, 8 goroutines":  "20.5 %",
	} {
		if got := goalNamed(t, text).verdict(r); got.Measured != want || got.Reached {
			t.Errorf("%s = %q, %v; want %q, false", text, got.Measured, got.Reached, want)
		}
	}
}

func TestWhatWasNotMeasuredIsNotReached(t *testing.T) {
	r := mustParse(t, sample)
	for _, g := range goals() {
		if strings.Contains(g.text, "allocations per ID") {
			continue // the one that the sample has
		}
		if got := g.verdict(r); got.Reached || !strings.HasPrefix(got.Measured, "not measured: ") {
			t.Errorf("%s = %q, %v; want not measured, false", g.text, got.Measured, got.Reached)
		}
	}
}
