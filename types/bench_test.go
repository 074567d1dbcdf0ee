package types_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// 19 digits, the longest that there are.
const benchID = types.Snowflake(1541815603606036480)

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
