package benchmark

import (
	"math"
	"slices"
	"testing"
)

const sample = `date: 2026-01-02
# round 1, ^BenchmarkNext$: others used 3 % of the CPUs
goos: linux
cpu: Some CPU @ 2.00GHz
BenchmarkNext
    gorm_bench_test.go:17: PostgreSQL: 15.1 (Debian)
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

func parsed(t *testing.T, text string) *Results {
	t.Helper()
	r, err := Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q) = %v; want no error", text, err)
	}
	return r
}

func TestNamesLoseOnlyThePrefixAndTheProcessorCount(t *testing.T) {
	got := parsed(t, sample).Names()
	if want := []string{"Fill/n=10/snowkey", "Next/google-v4", "Next/google-v7", "Next/snowkey"}; !slices.Equal(got, want) {
		t.Errorf("Names() = %q; want %q", got, want)
	}
}

func TestMedianIsTheMiddleOrTheMeanOfTheTwoMiddleValues(t *testing.T) {
	r := parsed(t, sample)
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
		if got, ok := r.Median(c.name, c.unit); got != c.want || ok != c.ok {
			t.Errorf("Median(%s, %s) = %v, %v; want %v, %v", c.name, c.unit, got, ok, c.want, c.ok)
		}
	}
	if got := r.Values["Next/snowkey"]["ns/op"]; !slices.Equal(got, []float64{35, 39, 34}) {
		t.Errorf("after Median the values are %v; want them as they were read", got)
	}
}

func TestHeaderAndLoggedLinesAreKeptWithTheirColons(t *testing.T) {
	r := parsed(t, sample)
	for key, want := range map[string]string{
		"date": "2026-01-02", "cpu": "Some CPU @ 2.00GHz", "goos": "linux", "PostgreSQL": "15.1 (Debian)",
	} {
		if got := r.Config[key]; got != want {
			t.Errorf("Config[%q] = %q; want %q", key, got, want)
		}
	}
	if len(r.Comments) != 2 {
		t.Errorf("Comments = %q; want the 2 lines that begin with #", r.Comments)
	}
}

func TestAFailedMalformedOrEmptyRunIsAnError(t *testing.T) {
	for _, text := range []string{
		"",
		"goos: linux\nPASS\n",
		sample + "--- FAIL: BenchmarkContention/c=64/snowkey\n",
		sample + "FAIL\n",
		"BenchmarkNext/snowkey-2 100 fast ns/op\n",
		sample + "BenchmarkNext/snowkey-2 100\n",
		sample + "BenchmarkNext/snowkey-2 100 35\n",
		sample + "BenchmarkNext/snowkey-2 100 35 ns/op 7\n",
	} {
		if r, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, nil; want an error", text, r.Values)
		}
	}
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	// In the second round the machine was ten times slower, in the last a bit.
	r := &Results{Values: map[string]map[string][]float64{
		"a": {"ns/op": {10, 100, 12}}, "b": {"ns/op": {20, 200, 36}},
	}}
	// The medians, 12 and 36, make 3.
	if s, ok := r.Ratio("b", "a", "ns/op"); !ok || s != (Spread{2, 2, 3}) {
		t.Errorf("Ratio(b, a) = %+v, %v; want 2, from 2 to 3", s, ok)
	}
	if s, ok := r.Ratio("a", "b", "ns/op"); !ok || s.Median != 0.5 || math.Abs(s.Low-1.0/3) > 1e-9 || s.High != 0.5 {
		t.Errorf("Ratio(a, b) = %+v, %v; want 0.5, from 0.33 to 0.5", s, ok)
	}
}

func TestRatioOfWhatWasNotMeasuredEquallyOftenIsNone(t *testing.T) {
	r := &Results{Values: map[string]map[string][]float64{"a": {"ns/op": {1, 1, 1}}, "b": {"ns/op": {1, 1}}}}
	for _, names := range [][2]string{{"a", "b"}, {"a", "missing"}, {"missing", "missing"}} {
		if s, ok := r.Ratio(names[0], names[1], "ns/op"); ok {
			t.Errorf("Ratio(%s, %s) = %v, true; want none", names[0], names[1], s)
		}
	}
}

func TestTablesShowWhichGoalsWereMissed(t *testing.T) {
	got := Goals([]Goal{{"speed", "≥ 2", Number(1.234) + " ×", false}, {"rows", "≥ 1", Thousands(1234567), true}})
	want := `|  | goal | measured |  |
|---|---:|---:|---:|
| speed | ≥ 2 | 1.23 × | **missed** |
| rows | ≥ 1 | 1,234,567 | reached |
`
	if got != want {
		t.Errorf("Goals() = %s; want %s", got, want)
	}
	for v, want := range map[float64]string{1.5: "1.50", 15: "15.0", 150: "150"} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %q; want %q", v, got, want)
		}
	}
}
