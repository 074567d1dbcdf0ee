//go:build go1.27 && goexperiment.jsonv2

package types_test

import (
	"bytes"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
	"errors"
	"testing"

	"github.com/snowkey/snowkey/internal/proof/cases/jsoncases"
	"github.com/snowkey/snowkey/types"
)

// Go 1.25 and 1.26 have v2 as an experiment whose API may differ, so they test encoding/json
// alone: see json_v1only_test.go.

func codecs() []jsoncases.Engine {
	return append(jsonV1(), jsoncases.Engine{
		Name: "encoding/json/v2", V2: true,
		Marshal:   func(v any) ([]byte, error) { return jsonv2.Marshal(v) },
		Unmarshal: func(data []byte, v any) error { return jsonv2.Unmarshal(data, v) },
	})
}

type order struct {
	types.Model
	Number string `json:"number"`
}

// A name in another case is no error: the ID stays what it was, which is zero in a new row.
func TestJSONv2IsStricterAboutNamesAndTexts(t *testing.T) {
	for _, c := range []struct {
		doc     string
		err     bool
		lenient jsonv2.Options
	}{
		{`{"ID":"3"}`, false, jsonv2.MatchCaseInsensitiveNames(true)},
		{`{"id":"1","id":2,"id":"3"}`, true, jsontext.AllowDuplicateNames(true)},
		{"{\"id\":\"3\",\"number\":\"\xff\"}", true, jsontext.AllowInvalidUTF8(true)},
	} {
		var o order
		if err := jsonv2.Unmarshal([]byte(c.doc), &o); (err != nil) != c.err || err == nil && o.ID != 0 {
			t.Errorf("Unmarshal(%q) = %d, %v; want an error: %v, else 0", c.doc, o.ID, err, c.err)
		}
		o = order{}
		if err := jsonv2.Unmarshal([]byte(c.doc), &o, c.lenient); o.ID != 3 || err != nil {
			t.Errorf("Unmarshal(%q) with the option = %d, %v; want 3, nil", c.doc, o.ID, err)
		}
	}
}

// omitempty goes by the JSON here: "0" is not empty, null is. encoding/json does
// the opposite in both. Use omitzero.
func TestJSONv2OmitemptyLeavesOutNullOnly(t *testing.T) {
	type doc struct {
		ID   types.Snowflake     `json:"id,omitempty"`
		Null types.NullSnowflake `json:"null,omitempty"`
		Ptr  *types.Snowflake    `json:"ptr,omitempty"`
	}
	if got, err := jsonv2.Marshal(doc{}); string(got) != `{"id":"0"}` || err != nil {
		t.Errorf("Marshal with omitempty = %s, %v; want {\"id\":\"0\"}, nil", got, err)
	}
}

// StringifyNumbers is what ",string" means here; the ID is one string under it.
func TestJSONv2StringifyNumbersChangesNothing(t *testing.T) {
	got, err := jsonv2.Marshal(map[types.Snowflake]any{7: types.Snowflake(8)}, jsonv2.StringifyNumbers(true))
	if string(got) != `{"7":"8"}` || err != nil {
		t.Errorf("Marshal with StringifyNumbers = %s, %v; want {\"7\":\"8\"}, nil", got, err)
	}
}

func TestJSONv2SaysWhereTheBadIDStands(t *testing.T) {
	var got struct {
		Items []order `json:"items"`
	}
	err := jsonv2.Unmarshal([]byte(`{"items":[{"id":"1"},{"id":"12x"}]}`), &got)
	var se *jsonv2.SemanticError
	if !errors.As(err, &se) || se.JSONPointer != "/items/1/id" || !errors.Is(err, types.ErrSyntax) {
		t.Errorf("Unmarshal error = %v; want ErrSyntax at /items/1/id", err)
	}
}

// A slice a hundred times as long costs not one allocation more, as for []int64.
// With MarshalJSON it would cost one for every ID. The encoder is the test's own,
// since what a pool hands out differs from run to run.
func TestJSONv2MarshalsASliceWithoutAnAllocationPerID(t *testing.T) {
	allocs := func(v any) float64 {
		var buf bytes.Buffer
		var enc jsontext.Encoder
		marshal := func() {
			buf.Reset()
			enc.Reset(&buf)
			if err := jsonv2.MarshalEncode(&enc, v); err != nil {
				t.Fatalf("MarshalEncode(%T) = %v; want nil", v, err)
			}
		}
		marshal() // grows the buffers
		return testing.AllocsPerRun(1000, marshal)
	}
	ids := func(n int) any {
		s := make([]types.Snowflake, n)
		for i := range s {
			s[i] = maxInt64 - types.Snowflake(i)
		}
		return s
	}
	ints := func(n int) any {
		s := make([]int64, n)
		for i := range s {
			s[i] = int64(maxInt64) - int64(i)
		}
		return s
	}
	for _, n := range []int{1, 10, 1000} {
		if got, want := allocs(ids(n)), allocs(ints(n)); got != want || got != allocs(ids(1)) {
			t.Errorf("MarshalEncode of %d IDs: %v allocations; want %v, as for int64, at every length", n, got, want)
		}
	}
}
