package types_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/snowkey/snowkey/types"
)

// 19 digits, the longest that there are.
const benchID = types.Snowflake(1541815603606036480)

// BenchmarkString compares String with strconv.FormatInt in turns of 100 calls,
// so that both get the same memory and the same share of a busy machine. ratio is
// that of the medians: String takes as long as FormatInt where it is 1.
func BenchmarkString(b *testing.B) {
	turn := func(text func() string) time.Duration {
		start := time.Now()
		for range 100 {
			_ = text()
		}
		return time.Since(start)
	}
	own := func() string { return benchID.String() }
	format := func() string { return strconv.FormatInt(int64(benchID), 10) }
	var ours, theirs []time.Duration
	for b.Loop() {
		ours = append(ours, turn(own))
		theirs = append(theirs, turn(format))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	x, y := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(x.Nanoseconds())/100, "ns/String")
	b.ReportMetric(float64(y.Nanoseconds())/100, "ns/FormatInt")
	b.ReportMetric(float64(x)/float64(y), "ratio")
}

func BenchmarkAppendDecimal(b *testing.B) {
	buf := make([]byte, 0, 32)
	b.Run("Snowflake", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := benchID.AppendText(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("strconv", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			strconv.AppendInt(buf, int64(benchID), 10)
		}
	})
}

func BenchmarkParseDecimal(b *testing.B) {
	text := benchID.String()
	b.Run("Snowflake", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := types.Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("strconv", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := strconv.ParseInt(text, 10, 64); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkShortForms(b *testing.B) {
	buf := make([]byte, 0, 32)
	for _, f := range shortForms() {
		text := f.text(benchID)
		b.Run("Append"+f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.append(benchID, buf)
			}
		})
		b.Run("Parse"+f.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// One operation is a slice of 100.
func BenchmarkJSON100(b *testing.B) {
	for _, c := range codecs() {
		b.Run(c.name, func(b *testing.B) {
			ids, ints := make([]types.Snowflake, 100), make([]int64, 100)
			nulls := make([]types.NullSnowflake, 100)
			for i := range ids {
				ids[i] = benchID + types.Snowflake(i)
				ints[i] = int64(ids[i])
				nulls[i] = types.NullSnowflake{Snowflake: ids[i], Valid: true}
			}
			benchJSON(b, c, "Snowflake", ids, new([]types.Snowflake))
			benchJSON(b, c, "NullSnowflake", nulls, new([]types.NullSnowflake))
			benchJSON(b, c, "int64", ints, new([]int64))
		})
	}
}

func benchJSON(b *testing.B, c codec, name string, in, out any) {
	b.Run("Marshal/"+name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.marshal(in); err != nil {
				b.Fatal(err)
			}
		}
	})
	doc, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Unmarshal/"+name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := c.unmarshal(doc, out); err != nil {
				b.Fatal(err)
			}
		}
	})
}
