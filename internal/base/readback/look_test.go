package readback

import (
	"slices"
	"testing"
)

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
		"longer keys":   {span(80, 119), nil},
		"a key twice":   {append(span(11, 40), int64(20)), []run{{11, 40}}},
		"few":           {span(11, 29), nil},
		"below zero":    {span(-60, -31), nil}, // "-60" is after "-31"
		"too many gaps": {append(span(11, 31), int64(40), int64(50), int64(60)), nil},
	} {
		if got := runsOf(sorted(test.keys)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v; want %v", name, got, test.want)
		}
	}
}
