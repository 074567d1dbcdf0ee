package readback

import (
	"math"
	"testing"
)

func TestNextDigitIsTheFirstLongerNumber(t *testing.T) {
	for n, want := range map[int64]int64{
		-5: -4, 0: 1, 1: 10, 9: 10, 10: 100, 99: 100, 100: 1000,
		999_999_999_999_999_999:   1_000_000_000_000_000_000,
		1_000_000_000_000_000_000: math.MaxInt64, // which no generator reaches
		math.MaxInt64:             math.MaxInt64,
	} {
		if got := nextDigit(n); got != want {
			t.Errorf("nextDigit(%d) = %d; want %d", n, got, want)
		}
	}
}

func TestRunsHaveNoGapsAndOneLength(t *testing.T) {
	span := func(first, last int64) (keys []any) {
		for key := last; key >= first; key-- {
			keys = append(keys, key)
		}
		return keys
	}
	for name, test := range map[string]struct {
		keys []any
		want []run
	}{
		"one":           {span(11, 60), []run{{11, 60}}},
		"a gap":         {append(span(11, 30), span(32, 51)...), []run{{11, 30}, {32, 51}}},
		"longer keys":   {span(80, 119), []run{{80, 99}, {100, 119}}},
		"a key twice":   {append(span(11, 40), int64(20)), []run{{11, 40}}},
		"few":           {span(11, 29), nil},
		"too many gaps": {append(span(11, 31), int64(40), int64(50), int64(60)), nil},
	} {
		got := runsOf(sorted(test.keys))
		if len(got) != len(test.want) {
			t.Errorf("%s: %v; want %v", name, got, test.want)
			continue
		}
		for n := range got {
			if got[n] != test.want[n] {
				t.Errorf("%s: %v; want %v", name, got, test.want)
			}
		}
	}
}
