package types_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/cases/jsoncases"
	"github.com/snowkey/snowkey/types"
)

// 19 digits, the longest that there are.
const benchID = types.Snowflake(1541815603606036480)

// inTurns compares two functions in turns of 100 calls, so that both run under the same load. It
// reports the median of each for a call, and ratio, that of ours divided by that of theirs.
func inTurns(b *testing.B, ours, theirs string, our, their func()) {
	turn := func(call func()) time.Duration {
		start := time.Now()
		for range 100 {
			call()
		}
		return time.Since(start)
	}
	var x, y []time.Duration
	for b.Loop() {
		x = append(x, turn(our))
		y = append(y, turn(their))
	}
	slices.Sort(x)
	slices.Sort(y)
	mx, my := x[len(x)/2], y[len(y)/2]
	b.ReportMetric(float64(mx.Nanoseconds())/100, "ns/"+ours)
	b.ReportMetric(float64(my.Nanoseconds())/100, "ns/"+theirs)
	b.ReportMetric(float64(mx)/float64(my), "ratio")
}

func BenchmarkString(b *testing.B) {
	var text string
	inTurns(b, "String", "FormatInt",
		func() { text = benchID.String() },
		func() { text = strconv.FormatInt(int64(benchID), 10) })
	_ = text
}

// Each method of ID and NullID beside that of Snowflake and NullSnowflake.
func BenchmarkTypedKeys(b *testing.B) {
	for _, p := range pairs() {
		b.Run(p.name, func(b *testing.B) { inTurns(b, "typed", "untyped", p.typed, p.untyped) })
	}
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
		b.Run(c.Name, func(b *testing.B) {
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

func benchJSON(b *testing.B, c jsoncases.Engine, name string, in, out any) {
	b.Run("Marshal/"+name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Marshal(in); err != nil {
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
			if err := c.Unmarshal(doc, out); err != nil {
				b.Fatal(err)
			}
		}
	})
}
