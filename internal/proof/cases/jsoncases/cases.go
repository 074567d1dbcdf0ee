// Package jsoncases tests what a JSON engine makes of an ID. types runs the tests with the
// standard library, and package compat with engines of others.
package jsoncases

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// An Engine is a JSON package, or one of its settings.
type Engine struct {
	Name      string
	Marshal   func(any) ([]byte, error)
	Unmarshal func([]byte, any) error

	// V2 says that it has the rules of encoding/json/v2 for omitempty, for repeated names and
	// those in another case, and for text that is not UTF-8. Those of encoding/json forgive.
	V2 bool

	// Prefix says that it reads the value at the front of a malformed text, Tight that it refuses
	// some numbers with white space behind them. Tests of that engine alone show which.
	Prefix, Tight bool

	// UseNumber unmarshals numbers in any as text. It is nil if the engine has no such option.
	UseNumber func([]byte, any) error
}

// Run runs all cases.
func Run(t *testing.T, e Engine) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(Engine, *testing.T)
	}{
		{"AnIDIsAStringWhereverItStands", Engine.writes},
		{"AnIDComesBackWhereverItStands", Engine.reads},
		{"AnIDAloneIsAStringAndComesBack", Engine.single},
		{"WhatIsNoIDIsAnErrorAndStoresNothing", Engine.refuses},
		{"WhatIsTruncatedOrMalformedIsAnErrorAndStoresNothing", Engine.malformed},
		{"NullLeavesASnowflakeAndEmptiesTheNullableTypes", Engine.null},
		{"AFieldThatIsMissingLeavesTheID", Engine.missing},
		{"KeysOfMapsAreTheDecimalText", Engine.keys},
		{"AKeyThatIsNoIDIsAnError", Engine.badKeys},
		{"AnAbsentNullSnowflakeComesBackAsAKey", Engine.absentKeys},
		{"ANegativeIDIsRefusedWhereverItStands", Engine.negative},
		{"OmitzeroLeavesOutWhatIsNotAssignedAndKeepsAPresentZero", Engine.omitzero},
		{"TheOptionStringChangesNothing", Engine.stringOption},
		{"ANumberThroughAnyLosesDigitsAndAStringDoesNot", Engine.throughAny},
		{"SQLNullOfASnowflakeIsAnObject", Engine.sqlNull},
		{"AnEmbeddedModelIsOneFieldOfTheObject", Engine.embedded},
		{"NamesAndTextsAreForgiven", Engine.forgives},
		{"TheLastOfRepeatedNamesIsTaken", Engine.repeated},
		{"OmitemptyLeavesOutAZeroIDOnly", Engine.omitempty},
		{"UseNumberKeepsEveryDigit", Engine.useNumber},
	} {
		t.Run(e.Name+"/"+c.name, func(t *testing.T) { c.run(e, t) })
	}
}

func (e Engine) writes(t *testing.T) {
	v := everywhereValue()
	for _, in := range []any{v, &v} {
		if got, err := e.Marshal(in); string(got) != everywhereJSON || err != nil {
			t.Errorf("Marshal(%T) = %s, %v; want %s, nil", in, got, err, everywhereJSON)
		}
	}
}

func (e Engine) reads(t *testing.T) {
	want := everywhereValue()
	want.Any = "10" // nothing in the document says that it is an ID
	for name, doc := range map[string]string{
		"strings":     everywhereJSON,
		"numbers":     everywhereNumbers,
		"white space": strings.NewReplacer(`:`, " :\t", `,`, "\r\n, ", `{`, "{ ", `]`, " ]").Replace(everywhereJSON),
	} {
		var got everywhere
		if err := e.Unmarshal([]byte(doc), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("Unmarshal(%s) = %+v, %v; want %+v, nil", name, got, err, want)
		}
	}
}

func (e Engine) single(t *testing.T) {
	for _, id := range ids() {
		want := `"` + id.String() + `"`
		if got, err := e.Marshal(id); string(got) != want || err != nil {
			t.Fatalf("Marshal(Snowflake(%d)) = %s, %v; want %s, nil", id, got, err, want)
		}
		for _, doc := range []string{want, id.String(), " \t\r\n" + want + " \n", "\n" + id.String() + "\t"} {
			if e.Tight && doc != strings.TrimSpace(doc) {
				continue
			}
			got, null := before, absent
			if err := e.Unmarshal([]byte(doc), &got); got != id || err != nil {
				t.Fatalf("Unmarshal(%q) = %d, %v; want %d, nil", doc, got, err, id)
			}
			if err := e.Unmarshal([]byte(doc), &null); null != (types.NullSnowflake{Snowflake: id, Valid: true}) || err != nil {
				t.Fatalf("Unmarshal(%q) = %+v, %v; want {%d true}, nil", doc, null, err, id)
			}
		}
	}
}

func (e Engine) refuses(t *testing.T) {
	for doc, sentinel := range refused() {
		id, null, typed, typedNull := before, presentFive, types.ID[order](before), types.NullID[order]{ID: 5, Valid: true}
		field := struct {
			ID types.Snowflake `json:"id"`
		}{before}
		ptr := &[]types.Snowflake{before}[0]
		embedded := order{Model: types.Model{ID: before}}
		for _, try := range []struct {
			doc  string
			dest any
		}{
			{doc, &id}, {doc, &null}, {doc, &ptr}, {doc, &typed}, {doc, &typedNull},
			{`{"id":` + doc + `}`, &field}, {`{"id":` + doc + `}`, &embedded},
			{`[` + doc + `]`, new([]types.Snowflake)}, {`{"a":` + doc + `}`, new(map[string]types.Snowflake)},
			{`[1,` + doc + `]`, new([2]types.ID[order])}, {`{"5":` + doc + `}`, new(map[types.ID[order]]types.ID[order])},
		} {
			if doc == `""` && (try.dest == &null || try.dest == &typedNull) {
				continue // absent, as it is as a name
			}
			err := e.Unmarshal([]byte(try.doc), try.dest)
			var ve *types.ValueError
			if !errors.Is(err, sentinel) || !errors.As(err, &ve) {
				t.Errorf("Unmarshal(%s, %T) error = %v; want a *ValueError that matches %q", try.doc, try.dest, err, sentinel)
			}
		}
		if id != before || null != presentFive || typed != types.ID[order](before) || typedNull.NullSnowflake() != presentFive ||
			ptr == nil || *ptr != before || field.ID != before || embedded.ID != before {
			t.Errorf("Unmarshal(%s) left %d, %+v, %d, %+v, %v, %d, %d; want all as they were", doc, id, null, typed, typedNull, ptr, field.ID, embedded.ID)
		}
	}
}

func (e Engine) malformed(t *testing.T) {
	for _, doc := range []string{
		``, ` `, `"`, `"12`, `-`, `1.`, `1e`, `nul`, `+5`,
		`{`, `[`, `'5'`, "\"5\x00\"", "\"5\n\"", "\"5\xff\"", `NaN`, `NULL`, "\ufeff5", "５",
	} {
		id, null := before, presentFive
		errID, errNull := e.Unmarshal([]byte(doc), &id), e.Unmarshal([]byte(doc), &null)
		if errID == nil || errNull == nil || id != before || null != presentFive {
			t.Errorf("Unmarshal(%q) = %d, %v and %+v, %v; want two errors and nothing stored", doc, id, errID, null, errNull)
		}
	}
	// encoding/json checks the whole document first. v2 stores the ID before it
	// reads what follows.
	for _, doc := range []string{
		`12"`, `nulll`, `007`, `00`, `0x10`, `1_000`, `5 5`, `"5" "5"`, `"5",`, "5\x00",
	} {
		if e.Prefix {
			break
		}
		var id types.Snowflake
		var null types.NullSnowflake
		errID, errNull := e.Unmarshal([]byte(doc), &id), e.Unmarshal([]byte(doc), &null)
		if errID == nil || errNull == nil {
			t.Errorf("Unmarshal(%q) = %v and %v; want two errors", doc, errID, errNull)
		}
	}
	for _, doc := range []string{`{"id":`, `{"id":"12`, `{"id":12`, `{"id":"12"`, `{"id" "12"}`, `{"id":12"}`} {
		var o order
		if err := e.Unmarshal([]byte(doc), &o); err == nil {
			t.Errorf("Unmarshal(%q) = %+v, nil; want an error", doc, o)
		}
	}
}

func (e Engine) null(t *testing.T) {
	id, null, ptr := before, presentFive, new(types.Snowflake)
	for _, try := range []struct {
		name string
		dest any
	}{{"*Snowflake", &id}, {"*NullSnowflake", &null}, {"**Snowflake", &ptr}} {
		if err := e.Unmarshal([]byte("null"), try.dest); err != nil {
			t.Errorf("Unmarshal(null, %s) = %v; want nil", try.name, err)
		}
	}
	if id != before || null != absent || ptr != nil {
		t.Errorf("Unmarshal(null) left %d, %+v, %v; want %d, absent, nil", id, null, ptr, before)
	}

	field := struct {
		ID   types.Snowflake     `json:"id"`
		Null types.NullSnowflake `json:"null"`
		Ptr  *types.Snowflake    `json:"ptr"`
	}{before, presentFive, &id}
	if err := e.Unmarshal([]byte(`{"id":null,"null":null,"ptr":null}`), &field); err != nil || field.ID != before || field.Null != absent || field.Ptr != nil {
		t.Errorf("Unmarshal of null fields = %+v, %v; want {%d absent nil}, nil", field, err, before)
	}
	var ids []types.Snowflake
	if err := e.Unmarshal([]byte(`["1",null,"2"]`), &ids); err != nil || !slices.Equal(ids, []types.Snowflake{1, 0, 2}) {
		t.Errorf("Unmarshal([1,null,2]) = %v, %v; want [1 0 2], nil", ids, err)
	}
}

func (e Engine) missing(t *testing.T) {
	o := order{Model: types.Model{ID: before}}
	if err := e.Unmarshal([]byte(`{"number":"A-1"}`), &o); o.ID != before || o.Number != "A-1" || err != nil {
		t.Errorf("Unmarshal without id = %+v, %v; want ID %d, nil", o, err, before)
	}
}

func (e Engine) keys(t *testing.T) {
	want := map[types.Snowflake]string{0: "a", 9007199254740993: "b", maxInt64: "c"}
	doc, err := e.Marshal(want)
	if err != nil {
		t.Fatalf("Marshal(%v) = %v; want nil", want, err)
	}
	for id := range want {
		if !bytes.Contains(doc, []byte(`"`+id.String()+`":`)) {
			t.Errorf("Marshal(%v) = %s; want the key %q in it", want, doc, id)
		}
	}
	var got map[types.Snowflake]string
	if err := e.Unmarshal(doc, &got); !maps.Equal(got, want) || err != nil {
		t.Errorf("Unmarshal(%s) = %v, %v; want %v, nil", doc, got, err, want)
	}
	nulls := map[types.NullSnowflake]string{presentZero: "a", presentFive: "b"}
	doc, err = e.Marshal(nulls)
	if err != nil {
		t.Fatalf("Marshal(%v) = %v; want nil", nulls, err)
	}
	var gotNulls map[types.NullSnowflake]string
	if err := e.Unmarshal(doc, &gotNulls); !maps.Equal(gotNulls, nulls) || err != nil {
		t.Errorf("Unmarshal(%s) = %v, %v; want %v, nil", doc, gotNulls, err, nulls)
	}
}

// badKeys: "007" beside "7" would be two keys for one row.
func (e Engine) badKeys(t *testing.T) {
	for key, sentinel := range map[string]error{
		"": types.ErrSyntax, "x": types.ErrSyntax, "007": types.ErrSyntax, "-1": types.ErrRange, " 7": types.ErrSyntax,
		"1.0": types.ErrSyntax, "null": types.ErrSyntax, "9223372036854775808": types.ErrRange,
	} {
		var got map[types.Snowflake]int
		err := e.Unmarshal([]byte(`{"`+key+`":1}`), &got)
		if !errors.Is(err, sentinel) || len(got) != 0 {
			t.Errorf("Unmarshal({%q:1}) = %v, %v; want no entry and an error that matches %q", key, got, err, sentinel)
		}
	}
}

func (e Engine) absentKeys(t *testing.T) {
	want := map[types.NullSnowflake]map[types.NullSnowflake]types.NullSnowflake{
		absent: {absent: absent, presentFive: presentZero}, presentZero: {absent: presentFive},
	}
	doc, err := e.Marshal(want)
	if err != nil {
		t.Fatalf("Marshal(%v) = %v; want nil", want, err)
	}
	var got map[types.NullSnowflake]map[types.NullSnowflake]types.NullSnowflake
	if err := e.Unmarshal(doc, &got); !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("Unmarshal(%s) = %v, %v; want %v, nil", doc, got, err, want)
	}
}

func (e Engine) negative(t *testing.T) {
	neg := types.Snowflake(-5)
	for _, v := range []any{
		neg, &neg, []types.Snowflake{1, neg}, map[string]types.Snowflake{"a": neg}, order{Model: types.Model{ID: neg}},
		presentNeg, &presentNeg, []types.NullSnowflake{presentNeg}, map[string]any{"a": neg},
		types.ID[order](neg), types.NullID[order]{ID: -5, Valid: true},
	} {
		_, err := e.Marshal(v)
		var ve *types.ValueError
		if !errors.Is(err, types.ErrRange) || !errors.As(err, &ve) {
			t.Errorf("Marshal(%T of -5) error = %v; want a *ValueError that matches ErrRange", v, err)
		}
	}
	// encoding/json keeps the message of an error in a key, not the error.
	_, err := e.Marshal(map[types.Snowflake]int{neg: 1})
	if err == nil || !strings.Contains(err.Error(), "-5") {
		t.Errorf("Marshal(map with the key -5) error = %v; want one that shows -5", err)
	}
}

// omitzero: a pointer to a zero ID goes too, because the engines ask the pointer's IsZero, which
// is the ID's. NullSnowflake is the type that keeps a present zero.
func (e Engine) omitzero(t *testing.T) {
	type doc struct {
		ID   types.Snowflake     `json:"id,omitzero"`
		Null types.NullSnowflake `json:"null,omitzero"`
		Ptr  *types.Snowflake    `json:"ptr,omitzero"`

		Typed     types.ID[order]     `json:"typed,omitzero"`
		TypedNull types.NullID[order] `json:"typed_null,omitzero"`
	}
	zero, one := types.Snowflake(0), types.Snowflake(1)
	for _, try := range []struct {
		in   doc
		want string
	}{
		{doc{}, `{}`},
		{doc{Null: stale, TypedNull: types.NullID[order]{ID: 5}}, `{}`},
		{doc{Null: presentZero, Ptr: &zero, TypedNull: types.NullID[order]{Valid: true}}, `{"null":"0","typed_null":"0"}`},
		{
			doc{1, presentFive, &one, 2, types.NullID[order]{ID: 6, Valid: true}},
			`{"id":"1","null":"5","ptr":"1","typed":"2","typed_null":"6"}`,
		},
	} {
		if got, err := e.Marshal(try.in); string(got) != try.want || err != nil {
			t.Errorf("Marshal(%+v) = %s, %v; want %s, nil", try.in, got, err, try.want)
		}
	}
}

// stringOption: the option must not put a second pair of quotes around the ID.
func (e Engine) stringOption(t *testing.T) {
	type doc struct {
		ID types.Snowflake `json:"id,string"`
	}
	const want = `{"id":"9223372036854775807"}`
	if got, err := e.Marshal(doc{maxInt64}); string(got) != want || err != nil {
		t.Errorf("Marshal with \",string\" = %s, %v; want %s, nil", got, err, want)
	}
	got := doc{before}
	if err := e.Unmarshal([]byte(want), &got); got.ID != maxInt64 || err != nil {
		t.Errorf("Unmarshal(%s) with \",string\" = %d, %v; want %d, nil", want, got.ID, err, maxInt64)
	}
	for _, bad := range []string{`{"id":"007"}`, `{"id":""}`, `{"id":"-1"}`, `{"id":"9223372036854775808"}`, `{"id":" 5"}`} {
		got := doc{before}
		if err := e.Unmarshal([]byte(bad), &got); got.ID != before || err == nil {
			t.Errorf("Unmarshal(%s) with \",string\" = %d, %v; want %d and an error", bad, got.ID, err, before)
		}
	}
}

// throughAny: JSON is a string because a number read into any, as in JavaScript, is a float64.
// That can be the ID of another row.
func (e Engine) throughAny(t *testing.T) {
	const id = types.Snowflake(1234567890123456789)
	var number, text any
	if err := errors.Join(e.Unmarshal([]byte(`1234567890123456789`), &number), e.Unmarshal([]byte(`"1234567890123456789"`), &text)); err != nil {
		t.Fatalf("Unmarshal into any = %v; want nil", err)
	}
	f, ok := number.(float64)
	if !ok || int64(f) != 1234567890123456768 {
		t.Errorf("number through any = %T %v; want the float64 1234567890123456768, which is not the ID", number, number)
	}
	s, ok := text.(string)
	if got, err := types.Parse(s); !ok || got != id || err != nil {
		t.Errorf("string through any = %T %v, read as %d, %v; want %d, nil", text, text, got, err, id)
	}
	doc, err := e.Marshal(map[string]any{"id": id})
	if string(doc) != `{"id":"1234567890123456789"}` || err != nil {
		t.Errorf("Marshal(map[string]any) = %s, %v; want a string", doc, err)
	}
}

// sqlNull is why NullSnowflake exists.
func (e Engine) sqlNull(t *testing.T) {
	got, err := e.Marshal(sql.Null[types.Snowflake]{V: 5, Valid: true})
	if string(got) != `{"V":"5","Valid":true}` || err != nil {
		t.Errorf("Marshal(sql.Null[Snowflake]) = %s, %v; want an object", got, err)
	}
}

func (e Engine) embedded(t *testing.T) {
	in := order{types.Model{ID: 5}, "A-1"}
	const want = `{"id":"5","number":"A-1"}`
	if got, err := e.Marshal(in); string(got) != want || err != nil {
		t.Errorf("Marshal(%+v) = %s, %v; want %s, nil", in, got, err, want)
	}
	var got order
	if err := e.Unmarshal([]byte(want), &got); got != in || err != nil {
		t.Errorf("Unmarshal(%s) = %+v, %v; want %+v, nil", want, got, err, in)
	}
}

func (e Engine) forgives(t *testing.T) {
	if e.V2 {
		t.Skip("encoding/json/v2 has a test of its own")
	}
	for _, doc := range []string{
		`{"ID":"3"}`, `{"iD":3}`, `{"id":"1","id":2,"id":"3"}`, `{"id":"1","ID":"3"}`, "{\"id\":\"3\",\"number\":\"\xff\"}",
	} {
		var o order
		if err := e.Unmarshal([]byte(doc), &o); o.ID != 3 || err != nil {
			t.Errorf("Unmarshal(%q) = %d, %v; want 3, nil", doc, o.ID, err)
		}
	}
}

func (e Engine) repeated(t *testing.T) {
	if e.V2 {
		t.Skip("encoding/json/v2 refuses repeated names")
	}
	var o order
	if err := e.Unmarshal([]byte(`{"id":"1","id":2,"id":"3"}`), &o); o.ID != 3 || err != nil {
		t.Errorf("Unmarshal of three ids = %d, %v; want 3, nil", o.ID, err)
	}
	if err := e.Unmarshal([]byte(`{"id":"4","id":"x"}`), &o); o.ID != 4 || !errors.Is(err, types.ErrSyntax) {
		t.Errorf("Unmarshal of a good and a bad id = %d, %v; want 4, ErrSyntax", o.ID, err)
	}
}

// omitempty goes by the kind of the Go value. A zero ID disappears; a NullSnowflake, a struct,
// never does. Use omitzero.
func (e Engine) omitempty(t *testing.T) {
	if e.V2 {
		t.Skip("omitempty goes by the JSON in encoding/json/v2")
	}
	type doc struct {
		ID        types.Snowflake     `json:"id,omitempty"`
		Null      types.NullSnowflake `json:"null,omitempty"`
		Ptr       *types.Snowflake    `json:"ptr,omitempty"`
		Typed     types.ID[order]     `json:"typed,omitempty"`
		TypedNull types.NullID[order] `json:"typed_null,omitempty"`
	}
	zero := types.Snowflake(0)
	for in, want := range map[doc]string{
		{}:                                     `{"null":null,"typed_null":null}`,
		{ID: 1, Null: presentZero, Ptr: &zero}: `{"id":"1","null":"0","ptr":"0","typed_null":null}`,
	} {
		if got, err := e.Marshal(in); string(got) != want || err != nil {
			t.Errorf("Marshal with omitempty = %s, %v; want %s, nil", got, err, want)
		}
	}
}

func (e Engine) useNumber(t *testing.T) {
	if e.UseNumber == nil {
		t.Skip("there is no such option")
	}
	var v any
	if err := e.UseNumber([]byte(`9223372036854775807`), &v); err != nil {
		t.Fatalf("Unmarshal = %v; want nil", err)
	}
	n, ok := v.(json.Number)
	if got, err := types.Parse(n.String()); !ok || got != maxInt64 || err != nil {
		t.Errorf("Parse(%T %v) = %d, %v; want %d, nil", v, v, got, err, maxInt64)
	}
}
