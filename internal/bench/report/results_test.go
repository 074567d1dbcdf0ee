package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

const sample = `date: 2026-01-02
# round 1, ^BenchmarkNext$: others used 3 % of the CPUs
goos: linux
cpu: Some CPU @ 2.00GHz
BenchmarkNext/snowkey-2         	 100	        35.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
BenchmarkNext/google-v4-2       	 100	        90.0 ns/op
BenchmarkNext/google-v7         	 100	        95.0 ns/op
PASS
# round 2, ^BenchmarkNext$: others used 12 % of the CPUs
BenchmarkNext/snowkey-2         	 100	        39.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
BenchmarkNext/snowkey-2         	 100	        34.0 ns/op	         0 dup/op	       0 B/op	       0 allocs/op
BenchmarkFill/n=10/snowkey      	 100	        50.0 ns/op	         5.0 ns/ID
BenchmarkFill/n=10/snowkey      	 100	        60.0 ns/op	         6.0 ns/ID
PASS
`

func mustParse(t *testing.T, raw string) results {
	t.Helper()
	r, err := parse(strings.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNamesLoseOnlyThePrefixAndTheProcessorCount(t *testing.T) {
	r := mustParse(t, sample)
	got := slices.Sorted(maps.Keys(r.values))
	if want := []string{"Fill/n=10/snowkey", "Next/google-v4", "Next/google-v7", "Next/snowkey"}; !slices.Equal(got, want) {
		t.Errorf("names = %q; want %q", got, want)
	}
}

func TestMedianIsTheMiddleOrTheMeanOfTheTwoMiddleValues(t *testing.T) {
	r := mustParse(t, sample)
	for _, c := range []struct {
		name, unit string
		want       float64
		ok         bool
	}{
		{"Next/snowkey", "ns/op", 35, true},
		{"Next/snowkey", "allocs/op", 0, true},
		{"Fill/n=10/snowkey", "ns/ID", 5.5, true},
		{"Fill/n=10/snowkey", "MB/s", 0, false},
		{"Next/nobody", "ns/op", 0, false},
	} {
		if got, ok := r.median(c.name, c.unit); got != c.want || ok != c.ok {
			t.Errorf("median(%s, %s) = %v, %v; want %v, %v", c.name, c.unit, got, ok, c.want, c.ok)
		}
	}
	if got := r.values["Next/snowkey"]["ns/op"]; !slices.Equal(got, []float64{35, 39, 34}) {
		t.Errorf("after median the values are %v; want them as they were read", got)
	}
}

func TestHeaderLinesAreKeptWithTheirColons(t *testing.T) {
	r := mustParse(t, sample)
	for key, want := range map[string]string{"date": "2026-01-02", "cpu": "Some CPU @ 2.00GHz", "goos": "linux"} {
		if got := r.config[key]; got != want {
			t.Errorf("config[%q] = %q; want %q", key, got, want)
		}
	}
	if len(r.comment) != 2 {
		t.Errorf("comments = %q; want the 2 lines that begin with #", r.comment)
	}
}

func TestAFailedOrEmptyRunIsAnError(t *testing.T) {
	for _, raw := range []string{
		"",
		"goos: linux\nPASS\n",
		sample + "--- FAIL: BenchmarkContention/c=64/snowkey\n",
		sample + "FAIL\n",
		"BenchmarkNext/snowkey-2 100 fast ns/op\n",
	} {
		if r, err := parse(strings.NewReader(raw)); err == nil {
			t.Errorf("parse(%q) = %v, nil; want an error", raw, r.values)
		}
	}
}
