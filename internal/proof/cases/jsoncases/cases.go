// Package jsoncases tests what a JSON engine makes of an ID. types runs the tests with the
// standard library, and package compat with engines of others.
package jsoncases

import (
	"database/sql"
	"encoding/json"
	"errors"
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
	// some numbers with white space behind them. docs/types.md says which.
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
		{"UseNumberKeepsEveryDigit", Engine.useNumber},
	} {
		t.Run(e.Name+"/"+c.name, func(t *testing.T) { c.run(e, t) })
	}
}

// A written has fields with an option.
type written struct {
	Zero types.Snowflake     `json:"zero,omitzero"`
	Null types.NullSnowflake `json:"null,omitzero"`
	// A pointer to a zero ID goes too, because the engines ask the pointer's IsZero, which is the
	// ID's. NullSnowflake is the type that keeps a present zero.
	Ptr       *types.Snowflake    `json:"ptr,omitzero"`
	Typed     types.ID[order]     `json:"typed,omitzero"`
	TypedNull types.NullID[order] `json:"typed_null,omitzero"`
	Quoted    types.Snowflake     `json:"quoted,string,omitzero"` // by one pair of quotes
}

// An emptied goes by the kind of the Go value: a zero ID disappears, and a NullSnowflake, which is
// a struct, never does. Use omitzero.
type emptied struct {
	ID        types.Snowflake     `json:"id,omitempty"`
	Null      types.NullSnowflake `json:"null,omitempty"`
	Ptr       *types.Snowflake    `json:"ptr,omitempty"`
	Typed     types.ID[order]     `json:"typed,omitempty"`
	TypedNull types.NullID[order] `json:"typed_null,omitempty"`
}

func (e Engine) writes(t *testing.T) {
	everything, zero, one, negative := everywhereValue(), types.Snowflake(0), types.Snowflake(1), types.Snowflake(-5)
	for _, c := range []struct {
		value any
		want  string // none: an error that matches ErrRange
	}{
		{everything, everywhereJSON},
		{&everything, everywhereJSON},
		{order{types.Model{ID: 5}, "A-1"}, `{"id":"5","number":"A-1"}`},
		{map[string]any{"id": types.Snowflake(1234567890123456789)}, `{"id":"1234567890123456789"}`},
		{sql.Null[types.Snowflake]{V: 5, Valid: true}, `{"V":"5","Valid":true}`}, // which is why NullSnowflake exists
		{written{}, `{}`},
		{written{Null: stale, TypedNull: types.NullID[order]{ID: 5}}, `{}`},
		{written{Null: presentZero, Ptr: &zero, TypedNull: types.NullID[order]{Valid: true}}, `{"null":"0","typed_null":"0"}`},
		{written{1, presentFive, &one, 2, types.NullID[order]{ID: 6, Valid: true}, maxInt64},
			`{"zero":"1","null":"5","ptr":"1","typed":"2","typed_null":"6","quoted":"9223372036854775807"}`},
		{emptied{}, `{"null":null,"typed_null":null}`},
		{emptied{ID: 1, Null: presentZero, Ptr: &zero}, `{"id":"1","null":"0","ptr":"0","typed_null":null}`},
		{negative, ""},
		{&negative, ""},
		{[]types.Snowflake{1, negative}, ""},
		{map[string]types.Snowflake{"a": negative}, ""},
		{map[string]any{"a": negative}, ""},
		{order{Model: types.Model{ID: negative}}, ""},
		{presentNeg, ""},
		{&presentNeg, ""},
		{[]types.NullSnowflake{presentNeg}, ""},
		{types.ID[order](negative), ""},
		{types.NullID[order]{ID: -5, Valid: true}, ""},
	} {
		if _, is := c.value.(emptied); is && e.V2 { // which goes by the JSON
			continue
		}
		got, err := e.Marshal(c.value)
		if c.want != "" && (string(got) != c.want || err != nil) {
			t.Errorf("Marshal(%+v) = %s, %v; want %s, nil", c.value, got, err, c.want)
		}
		if c.want == "" && (!errors.Is(err, types.ErrRange) || !errors.As(err, new(*types.ValueError))) {
			t.Errorf("Marshal(%T of -5) error = %v; want a *ValueError that matches ErrRange", c.value, err)
		}
	}
	// encoding/json keeps the message of an error in a key, not the error.
	if _, err := e.Marshal(map[types.Snowflake]int{negative: 1}); err == nil || !strings.Contains(err.Error(), "-5") {
		t.Errorf("Marshal(map with the key -5) error = %v; want one that shows -5", err)
	}
}

// A nullable has a field of each type that a null empties or leaves.
type nullable struct {
	ID   types.Snowflake     `json:"id"`
	Null types.NullSnowflake `json:"null"`
	Ptr  *types.Snowflake    `json:"ptr"`
}

func (e Engine) reads(t *testing.T) {
	everything, five := everywhereValue(), types.Snowflake(5)
	everything.Any = "10" // nothing in the document says that it is an ID
	was := order{Model: types.Model{ID: before}}
	quoted := written{Quoted: before}
	for _, c := range []struct {
		doc     string
		before  any
		want    any
		err     error
		forgive bool // encoding/json/v2 does not, and has a test of its own
	}{
		{doc: everywhereJSON, before: everywhere{}, want: everything},
		{doc: everywhereNumbers, before: everywhere{}, want: everything},
		{doc: strings.NewReplacer(`:`, " :\t", `,`, "\r\n, ", `{`, "{ ", `]`, " ]").Replace(everywhereJSON), before: everywhere{}, want: everything},
		{doc: `null`, before: before, want: before},
		{doc: `null`, before: presentFive, want: absent},
		{doc: `null`, before: &five, want: (*types.Snowflake)(nil)},
		{doc: `{"id":null,"null":null,"ptr":null}`, before: nullable{before, presentFive, &five}, want: nullable{ID: before}},
		{doc: `["1",null,"2"]`, before: []types.Snowflake(nil), want: []types.Snowflake{1, 0, 2}},
		{doc: `{"number":"A-1"}`, before: was, want: order{was.Model, "A-1"}},
		{doc: `{"id":"5","number":"A-1"}`, before: was, want: order{types.Model{ID: 5}, "A-1"}},
		{doc: `{"quoted":"9223372036854775807"}`, before: quoted, want: written{Quoted: maxInt64}},
		// A number read into any, as in JavaScript, is a float64, which can be the ID of another row.
		{doc: `1234567890123456789`, before: any(nil), want: float64(1234567890123456768)},
		{doc: `"1234567890123456789"`, before: any(nil), want: "1234567890123456789"},
		{doc: `{"ID":"3"}`, before: was, want: order{Model: types.Model{ID: 3}}, forgive: true},
		{doc: `{"iD":3}`, before: was, want: order{Model: types.Model{ID: 3}}, forgive: true},
		{doc: `{"id":"1","id":2,"ID":"3"}`, before: was, want: order{Model: types.Model{ID: 3}}, forgive: true},
		{doc: "{\"id\":\"3\",\"number\":\"\xff\"}", before: was.Model, want: types.Model{ID: 3}, forgive: true}, // of which Sonic makes another text
		{doc: `{"id":"4","id":"x"}`, before: was, want: order{Model: types.Model{ID: 4}}, err: types.ErrSyntax, forgive: true},
	} {
		if c.forgive && e.V2 {
			continue
		}
		got := reflect.New(reflect.TypeOf(&c.before).Elem())
		if c.before != nil {
			got = reflect.New(reflect.TypeOf(c.before))
			got.Elem().Set(reflect.ValueOf(c.before))
		}
		if err := e.Unmarshal([]byte(c.doc), got.Interface()); !errors.Is(err, c.err) || !reflect.DeepEqual(got.Elem().Interface(), c.want) {
			t.Errorf("Unmarshal(%s, %T) = %+v, %v; want %+v, %v", c.doc, c.before, got.Elem(), err, c.want, c.err)
		}
	}
	// "007" beside "7" would be two keys for one row.
	for key, sentinel := range map[string]error{
		"": types.ErrSyntax, "x": types.ErrSyntax, "007": types.ErrSyntax, "-1": types.ErrRange, " 7": types.ErrSyntax,
		"1.0": types.ErrSyntax, "null": types.ErrSyntax, "9223372036854775808": types.ErrRange,
	} {
		var got map[types.Snowflake]int
		if err := e.Unmarshal([]byte(`{"`+key+`":1}`), &got); !errors.Is(err, sentinel) || len(got) != 0 {
			t.Errorf("Unmarshal({%q:1}) = %v, %v; want no entry and an error that matches %q", key, got, err, sentinel)
		}
	}
	for _, bad := range []string{`"007"`, `""`, `"-1"`, `"9223372036854775808"`, `" 5"`} {
		got := quoted
		if err := e.Unmarshal([]byte(`{"quoted":`+bad+`}`), &got); got != quoted || err == nil {
			t.Errorf("Unmarshal(%s) with \",string\" = %+v, %v; want %+v and an error", bad, got, err, quoted)
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
	for _, doc := range slices.Concat(syntax, outOfRange) {
		sentinel := types.ErrSyntax
		if slices.Contains(outOfRange, doc) {
			sentinel = types.ErrRange
		}
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
