package segment_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
)

// Whatever is out of range is refused by name, value and range. What stands in a table is
// in segmenttest and sqlsegment.
func TestValuesOutOfRangeAreRefused(t *testing.T) {
	store := &faulty{}
	open := func(c segment.Config) error { a, err := segment.New(store, c); return only(a == nil, err) }
	set := func(c segment.Config) error { s, err := segment.NewSet(store, c); return only(s == nil, err) }
	row := func(change func(*segment.Row)) error {
		r := segment.Row{Tag: "a", Next: 1, Step: 1, Stride: 1}
		change(&r)
		return r.Validate()
	}
	take := func(n segment.Take) error {
		before := segment.Row{Tag: "a", Next: 1, Step: 1, Stride: 1}
		after, r, err := before.Take(n)
		return only(after == before && r == segment.Range{}, err)
	}
	spread := func(list ...segment.Store) error { s, err := segment.Spread(list...); return only(s == nil, err) }
	restride := func(tag string, stride int64, n int) error {
		rows := make([]segment.Freezer, n)
		for i := range rows {
			rows[i] = store
		}
		return segment.Restride(t.Context(), tag, stride, rows...)
	}
	long := strings.Repeat("x", 129)
	for _, c := range []struct {
		err               error
		name, value, want string
	}{
		{open(segment.Config{}), "tag", `""`, "1 to 128"},
		{open(segment.Config{Tag: long}), "tag", "xxx", "1 to 128"},
		{open(segment.Config{Tag: "a\n"}), "tag", `"a\n"`, "printable"},
		{open(segment.Config{Tag: "a\x00"}), "tag", `"a\x00"`, "printable"},
		{open(segment.Config{Tag: "ü"}), "tag", "ü", "ASCII"},
		{open(segment.Config{Tag: "\x7f"}), "tag", `\x7f`, "printable"},
		{open(segment.Config{Tag: "a", Step: -1}), "Config.Step", "-1", "1 to 1000000"},
		{open(segment.Config{Tag: "a", Step: 11, MaxStep: 10}), "Config.Step", "11", "1 to 10"},
		{open(segment.Config{Tag: "a", Step: math.MaxInt64}), "Config.Step", "9223372036854775807", "1 to 1000000"},
		{open(segment.Config{Tag: "a", MaxStep: -1}), "Config.MaxStep", "-1", "1 to 2147483647"},
		{open(segment.Config{Tag: "a", MaxStep: segment.MaxCount + 1}), "Config.MaxStep", "2147483648", "1 to 2147483647"},
		{open(segment.Config{Tag: "a", Rule: 7}), "Config.Rule", "Rule(7)", "ByRate or Leaf"},
		{open(segment.Config{Tag: "a", Rule: -1}), "Config.Rule", "Rule(-1)", "ByRate or Leaf"},
		{open(segment.Config{Tag: "a", Last: -1}), "Config.Last", "-1", "at least 1"},
		{set(segment.Config{Tag: "a"}), "Config.Tag", "a", "empty"},
		{set(segment.Config{Step: -1}), "Config.Step", "-1", "1 to 1000000"},
		{row(func(r *segment.Row) { r.Tag = "" }), "tag", `""`, "1 to 128"},
		{row(func(r *segment.Row) { r.Next = -1 }), "Row.Next", "-1", "0 to 9223372036854775807"},
		{row(func(r *segment.Row) { r.Step = 0 }), "Row.Step", "0", "1 to 2147483647"},
		{row(func(r *segment.Row) { r.Step = -5 }), "Row.Step", "-5", "1 to 2147483647"},
		{row(func(r *segment.Row) { r.Step = math.MaxInt64 }), "Row.Step", "9223372036854775807", "1 to 2147483647"},
		{row(func(r *segment.Row) { r.Stride = 0 }), "Row.Stride", "0", "1 to 2147483647"},
		{row(func(r *segment.Row) { r.Stride = 1 << 31 }), "Row.Stride", "2147483648", "1 to 2147483647"},
		{row(func(r *segment.Row) { r.Offset = -1 }), "Row.Offset", "-1", "0 to 0"},
		{row(func(r *segment.Row) { r.Offset = 1 }), "Row.Offset", "1", "0 to 0"},
		{row(func(r *segment.Row) { r.Version = -1 }), "Row.Version", "-1", "0 to 9223372036854775806"},
		{row(func(r *segment.Row) { r.Version = math.MaxInt64 }), "Row.Version", "9223372036854775807", "0 to 9223372036854775806"},
		{row(func(r *segment.Row) { r.Description = strings.Repeat("x", 257) }), "Row.Description", "257 bytes", "at most 256"},
		{take(segment.Take{Tag: "a", Count: -1}), "Take.Count", "-1", "0 to 2147483647"},
		{take(segment.Take{Tag: "a", Count: segment.MaxCount + 1}), "Take.Count", "2147483648", "0 to 2147483647"},
		{spread(), "stores", "empty", "one store or more"},
		{spread(store, nil), "stores[1]", "nil", "a Store"},
		{restride("", 2, 2), "tag", `""`, "1 to 128"},
		{restride("a", 1, 2), "stride", "1", "2, the number of databases"},
		{restride("a", -3, 2), "stride", "-3", "2, the number of databases"},
		{restride("a", 1<<31, 2), "stride", "2147483648", "to 2147483647"},
	} {
		var value *core.ValueError
		if !errors.As(c.err, &value) || value.Name != c.name || !strings.Contains(fmt.Sprint(value.Value), c.value) || !strings.Contains(value.Want, c.want) {
			t.Errorf("error = %v; want a *core.ValueError of %s, which is %s, want %s", c.err, c.name, c.value, c.want)
		}
	}
	var value *core.ValueError
	if a, err := segment.New(nil, segment.Config{Tag: "a"}); a != nil || !errors.As(err, &value) || value.Name != "store" {
		t.Errorf("New without a store = %v; want a *core.ValueError of store", err)
	}
	if s, err := segment.NewSet(nil, segment.Config{}); s != nil || !errors.As(err, &value) || value.Name != "store" {
		t.Errorf("NewSet without a store = %v; want a *core.ValueError of store", err)
	}
	if err := row(func(r *segment.Row) { r.Tag = strings.Repeat("~", 128) }); err != nil {
		t.Errorf("a tag of 128 characters = %v; want nil", err)
	}
}

// only returns err if nothing else was returned.
func only(nothing bool, err error) error {
	if !nothing {
		return fmt.Errorf("a value beside the error %v", err)
	}
	return err
}

// A Store of somebody else may answer anything.
func TestRangesThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []struct {
		r    segment.Range
		name string
	}{
		{segment.Range{First: -1, Last: 5, Stride: 1}, "Range.First"},
		{segment.Range{First: 5, Last: 4, Stride: 1}, "Range.Last"},
		{segment.Range{First: 1, Last: 5}, "Range.Stride"},
		{segment.Range{First: 1, Last: 5, Stride: -1}, "Range.Stride"},
		{segment.Range{First: 1, Last: 5, Stride: 2, Offset: 2}, "Range.Offset"},
		{segment.Range{First: 1, Last: 5, Stride: 2, Offset: -1}, "Range.Offset"},
		{segment.Range{First: 1, Last: math.MaxInt64/2 + 1, Stride: 2}, "Range.Last"},
	} {
		bubble(t, fmt.Sprint(c.name, c.r), func(t *testing.T) {
			a := start(t, wrong{c.r}, segment.Config{})
			var value *core.ValueError
			if id, err := a.Next(t.Context()); id != 0 || !errors.As(err, &value) || value.Name != c.name {
				t.Errorf("Next = %d, %v; want 0, and a *core.ValueError of %s", id, err, c.name)
			}
		})
	}
}

type wrong struct{ r segment.Range }

func (w wrong) Take(context.Context, segment.Take) (segment.Range, error) { return w.r, nil }
func (wrong) GiveBack(context.Context, segment.GiveBack) error            { return nil }
