package types_test

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

// A codec is one of the two JSON packages. Each test below runs under both when
// the tests are built with Go 1.27, and asks the same of them.
type codec struct {
	name      string
	marshal   func(any) ([]byte, error)
	unmarshal func([]byte, any) error
}

func jsonV1() codec { return codec{"encoding/json", json.Marshal, json.Unmarshal} }

type order struct {
	types.Model
	Number string `json:"number"`
}

type everywhere struct {
	ID     types.Snowflake                     `json:"id"`
	Ptr    *types.Snowflake                    `json:"ptr"`
	Nil    *types.Snowflake                    `json:"nil"`
	Parent types.NullSnowflake                 `json:"parent"`
	Absent types.NullSnowflake                 `json:"absent"`
	Slice  []types.Snowflake                   `json:"slice"`
	Array  [2]types.Snowflake                  `json:"array"`
	ByID   map[types.Snowflake]types.Snowflake `json:"by_id"`
	ByName map[string]*types.Snowflake         `json:"by_name"`
	Any    any                                 `json:"any"`
	Nulls  []types.NullSnowflake               `json:"nulls"`
	Order  order                               `json:"order"`
}

const everywhereJSON = `{"id":"9223372036854775807","ptr":"0","nil":null,"parent":"5","absent":null,` +
	`"slice":["0","9007199254740993"],"array":["1","2"],"by_id":{"7":"8"},"by_name":{"a":"9"},"any":"10",` +
	`"nulls":[null,"0"],"order":{"id":"175928847299117063","number":"A-1"}}`

func everywhereValue() everywhere {
	zero, nine := types.Snowflake(0), types.Snowflake(9)
	return everywhere{
		ID: maxInt64, Ptr: &zero, Parent: presentFive,
		Slice: []types.Snowflake{0, 9007199254740993}, Array: [2]types.Snowflake{1, 2},
		ByID:   map[types.Snowflake]types.Snowflake{7: 8},
		ByName: map[string]*types.Snowflake{"a": &nine},
		Any:    types.Snowflake(10),
		Nulls:  []types.NullSnowflake{absent, presentZero},
		Order:  order{types.Model{ID: 175928847299117063}, "A-1"},
	}
}

func TestJSONIsAStringWhereverTheIDStands(t *testing.T) {
	for _, c := range codecs() {
		v := everywhereValue()
		for _, in := range []any{v, &v} {
			if got, err := c.marshal(in); string(got) != everywhereJSON || err != nil {
				t.Errorf("%s: Marshal(%T) = %s, %v; want %s, nil", c.name, in, got, err, everywhereJSON)
			}
		}
	}
}

func TestJSONComesBackWhereverTheIDStands(t *testing.T) {
	for _, c := range codecs() {
		want := everywhereValue()
		want.Any = "10" // nothing in the document says that it is an ID
		for name, doc := range map[string]string{
			"strings": everywhereJSON,
			// The keys of objects are always strings, and so is what goes to any.
			"numbers": `{"id":9223372036854775807,"ptr":0,"nil":null,"parent":5,"absent":null,` +
				`"slice":[0,9007199254740993],"array":[1,2],"by_id":{"7":8},"by_name":{"a":9},"any":"10",` +
				`"nulls":[null,0],"order":{"id":175928847299117063,"number":"A-1"}}`,
			"white space": strings.NewReplacer(`:`, " :\t", `,`, "\r\n, ", `{`, "{ ", `]`, " ]").Replace(everywhereJSON),
		} {
			var got everywhere
			if err := c.unmarshal([]byte(doc), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: Unmarshal(%s) = %+v, %v; want %+v, nil", c.name, name, got, err, want)
			}
		}
	}
}

func TestJSONOfSingleIDs(t *testing.T) {
	for _, c := range codecs() {
		for _, id := range sortedIDs() {
			want := `"` + id.String() + `"`
			if got, err := c.marshal(id); string(got) != want || err != nil {
				t.Fatalf("%s: Marshal(Snowflake(%d)) = %s, %v; want %s, nil", c.name, id, got, err, want)
			}
			for _, doc := range []string{want, id.String(), " \t\r\n" + want + " \n", "\n" + id.String() + "\t"} {
				got, null := before, absent
				if err := c.unmarshal([]byte(doc), &got); got != id || err != nil {
					t.Fatalf("%s: Unmarshal(%q) = %d, %v; want %d, nil", c.name, doc, got, err, id)
				}
				if err := c.unmarshal([]byte(doc), &null); null != (types.NullSnowflake{Snowflake: id, Valid: true}) || err != nil {
					t.Fatalf("%s: Unmarshal(%q) = %+v, %v; want {%d true}, nil", c.name, doc, null, err, id)
				}
			}
		}
	}
}

// refusedJSON are complete JSON values that are no ID.
func refusedJSON() map[string]error {
	return map[string]error{
		`1.0`:                          types.ErrSyntax,
		`0.0`:                          types.ErrSyntax,
		`1.5`:                          types.ErrSyntax,
		`1e18`:                         types.ErrSyntax,
		`1E3`:                          types.ErrSyntax,
		`0e0`:                          types.ErrSyntax,
		`-0`:                           types.ErrSyntax,
		`-1`:                           types.ErrRange,
		`-9223372036854775808`:         types.ErrRange,
		`9223372036854775808`:          types.ErrRange,
		`18446744073709551616`:         types.ErrRange,
		`18446744073709551621`:         types.ErrRange,
		`1e400`:                        types.ErrSyntax,
		`true`:                         types.ErrSyntax,
		`false`:                        types.ErrSyntax,
		`{}`:                           types.ErrSyntax,
		`[]`:                           types.ErrSyntax,
		`[5]`:                          types.ErrSyntax,
		`["5"]`:                        types.ErrSyntax,
		`{"id":"5"}`:                   types.ErrSyntax,
		`{"Snowflake":5,"Valid":true}`: types.ErrSyntax,
		`""`:                           types.ErrSyntax,
		`" "`:                          types.ErrSyntax,
		`" 5"`:                         types.ErrSyntax,
		`"5 "`:                         types.ErrSyntax,
		`"+5"`:                         types.ErrSyntax,
		`"-0"`:                         types.ErrSyntax,
		`"-1"`:                         types.ErrRange,
		`"007"`:                        types.ErrSyntax,
		`"1.0"`:                        types.ErrSyntax,
		`"1e3"`:                        types.ErrSyntax,
		`"0x10"`:                       types.ErrSyntax,
		`"1_000"`:                      types.ErrSyntax,
		`"null"`:                       types.ErrSyntax,
		`"9223372036854775808"`:        types.ErrRange,
		`"\u0031"`:                     types.ErrSyntax,
		`"1\u0032"`:                    types.ErrSyntax,
		`"\"5\""`:                      types.ErrSyntax,
		`"5\n"`:                        types.ErrSyntax,
		`"5\u0000"`:                    types.ErrSyntax,
		`"\uff15"`:                     types.ErrSyntax,
		`"５"`:                          types.ErrSyntax,
	}
}

func TestJSONThatIsNoIDIsAnErrorAndStoresNothing(t *testing.T) {
	for _, c := range codecs() {
		for doc, sentinel := range refusedJSON() {
			id, null := before, presentFive
			field := struct {
				ID types.Snowflake `json:"id"`
			}{before}
			ptr := &[]types.Snowflake{before}[0]
			embedded := order{Model: types.Model{ID: before}}
			for _, try := range []struct {
				doc  string
				dest any
			}{
				{doc, &id}, {doc, &null}, {doc, &ptr},
				{`{"id":` + doc + `}`, &field}, {`{"id":` + doc + `}`, &embedded},
				{`[` + doc + `]`, new([]types.Snowflake)}, {`{"a":` + doc + `}`, new(map[string]types.Snowflake)},
			} {
				if try.dest == &null && doc == `""` {
					continue // absent, as it is as a name
				}
				err := c.unmarshal([]byte(try.doc), try.dest)
				var ve *types.ValueError
				if !errors.Is(err, sentinel) || !errors.As(err, &ve) {
					t.Errorf("%s: Unmarshal(%s, %T) error = %v; want a *ValueError that matches %q", c.name, try.doc, try.dest, err, sentinel)
				}
			}
			if id != before || null != presentFive || *ptr != before || field.ID != before || embedded.ID != before {
				t.Errorf("%s: Unmarshal(%s) left %d, %+v, %d, %d, %d; want all as they were", c.name, doc, id, null, *ptr, field.ID, embedded.ID)
			}
		}
	}
}

func TestTruncatedOrMalformedJSONIsAnErrorAndStoresNothing(t *testing.T) {
	for _, c := range codecs() {
		for _, doc := range []string{
			``, ` `, `"`, `"12`, `-`, `1.`, `1e`, `nul`, `+5`,
			`{`, `[`, `'5'`, "\"5\x00\"", "\"5\n\"", "\"5\xff\"", `NaN`, `NULL`, "\ufeff5", "５",
		} {
			id, null := before, presentFive
			errID, errNull := c.unmarshal([]byte(doc), &id), c.unmarshal([]byte(doc), &null)
			if errID == nil || errNull == nil || id != before || null != presentFive {
				t.Errorf("%s: Unmarshal(%q) = %d, %v and %+v, %v; want two errors and nothing stored", c.name, doc, id, errID, null, errNull)
			}
		}
		// encoding/json checks the whole document first. v2 stores the ID before it
		// reads what follows.
		for _, doc := range []string{
			`12"`, `nulll`, `007`, `00`, `0x10`, `1_000`, `5 5`, `"5" "5"`, `"5",`, "5\x00",
		} {
			var id types.Snowflake
			var null types.NullSnowflake
			errID, errNull := c.unmarshal([]byte(doc), &id), c.unmarshal([]byte(doc), &null)
			if errID == nil || errNull == nil {
				t.Errorf("%s: Unmarshal(%q) = %v and %v; want two errors", c.name, doc, errID, errNull)
			}
		}
		for _, doc := range []string{`{"id":`, `{"id":"12`, `{"id":12`, `{"id":"12"`, `{"id" "12"}`, `{"id":12"}`} {
			var o order
			if err := c.unmarshal([]byte(doc), &o); err == nil {
				t.Errorf("%s: Unmarshal(%q) = %+v, nil; want an error", c.name, doc, o)
			}
		}
	}
}

// Decoders hand over one complete value; a direct caller may hand over anything.
func TestUnmarshalJSONCalledDirectlyChecksAllItIsGiven(t *testing.T) {
	for _, doc := range []string{
		``, `"`, `"""`, `"5`, `5"`, `"12`, `12"`, `""5""`, `" 5"`, ` 5`, `5 `, ` "5"`, `"5" `, `'5'`, ` null`, `null `, `NULL`, `nul`, `"null"`, `5,`, `5}`, "5\x00",
	} {
		id, null := before, presentFive
		errID, errNull := id.UnmarshalJSON([]byte(doc)), null.UnmarshalJSON([]byte(doc))
		if !errors.Is(errID, types.ErrSyntax) || !errors.Is(errNull, types.ErrSyntax) || id != before || null != presentFive {
			t.Errorf("UnmarshalJSON(%q) = %d, %v and %+v, %v; want ErrSyntax twice and nothing stored", doc, id, errID, null, errNull)
		}
	}
}

func TestUnmarshalJSONKeepsAndChangesNoBytes(t *testing.T) {
	buf := []byte(`"175928847299117063"`)
	var id types.Snowflake
	var null types.NullSnowflake
	if err := errors.Join(id.UnmarshalJSON(buf), null.UnmarshalJSON(buf)); err != nil || string(buf) != `"175928847299117063"` {
		t.Fatalf("UnmarshalJSON = %v, and its input is now %s; want nil and no change", err, buf)
	}
	clear(buf)
	if id != 175928847299117063 || null.Snowflake != id {
		t.Errorf("after the buffer changed: %d and %d; want 175928847299117063 twice", id, null.Snowflake)
	}
}

func TestJSONNullLeavesASnowflakeAndEmptiesTheNullableTypes(t *testing.T) {
	for _, c := range codecs() {
		id, null, ptr := before, presentFive, new(types.Snowflake)
		for _, try := range []struct {
			name string
			dest any
		}{{"*Snowflake", &id}, {"*NullSnowflake", &null}, {"**Snowflake", &ptr}} {
			if err := c.unmarshal([]byte("null"), try.dest); err != nil {
				t.Errorf("%s: Unmarshal(null, %s) = %v; want nil", c.name, try.name, err)
			}
		}
		if id != before || null != absent || ptr != nil {
			t.Errorf("%s: Unmarshal(null) left %d, %+v, %v; want %d, absent, nil", c.name, id, null, ptr, before)
		}

		field := struct {
			ID   types.Snowflake     `json:"id"`
			Null types.NullSnowflake `json:"null"`
			Ptr  *types.Snowflake    `json:"ptr"`
		}{before, presentFive, &id}
		if err := c.unmarshal([]byte(`{"id":null,"null":null,"ptr":null}`), &field); err != nil || field.ID != before || field.Null != absent || field.Ptr != nil {
			t.Errorf("%s: Unmarshal of null fields = %+v, %v; want {%d absent nil}, nil", c.name, field, err, before)
		}
		var ids []types.Snowflake
		if err := c.unmarshal([]byte(`["1",null,"2"]`), &ids); err != nil || !slices.Equal(ids, []types.Snowflake{1, 0, 2}) {
			t.Errorf("%s: Unmarshal([1,null,2]) = %v, %v; want [1 0 2], nil", c.name, ids, err)
		}
	}
}

func TestJSONFieldThatIsMissingLeavesTheID(t *testing.T) {
	for _, c := range codecs() {
		o := order{Model: types.Model{ID: before}}
		if err := c.unmarshal([]byte(`{"number":"A-1"}`), &o); o.ID != before || o.Number != "A-1" || err != nil {
			t.Errorf("%s: Unmarshal without id = %+v, %v; want ID %d, nil", c.name, o, err, before)
		}
	}
}

func TestJSONKeysOfMapsAreTheDecimalText(t *testing.T) {
	for _, c := range codecs() {
		want := map[types.Snowflake]string{0: "a", 9007199254740993: "b", maxInt64: "c"}
		doc, err := c.marshal(want)
		if err != nil {
			t.Fatalf("%s: Marshal(%v) = %v; want nil", c.name, want, err)
		}
		for id := range want {
			if !bytes.Contains(doc, []byte(`"`+id.String()+`":`)) {
				t.Errorf("%s: Marshal(%v) = %s; want the key %q in it", c.name, want, doc, id)
			}
		}
		var got map[types.Snowflake]string
		if err := c.unmarshal(doc, &got); !maps.Equal(got, want) || err != nil {
			t.Errorf("%s: Unmarshal(%s) = %v, %v; want %v, nil", c.name, doc, got, err, want)
		}
		nulls := map[types.NullSnowflake]string{presentZero: "a", presentFive: "b"}
		doc, err = c.marshal(nulls)
		if err != nil {
			t.Fatalf("%s: Marshal(%v) = %v; want nil", c.name, nulls, err)
		}
		var gotNulls map[types.NullSnowflake]string
		if err := c.unmarshal(doc, &gotNulls); !maps.Equal(gotNulls, nulls) || err != nil {
			t.Errorf("%s: Unmarshal(%s) = %v, %v; want %v, nil", c.name, doc, gotNulls, err, nulls)
		}
	}
}

// "007" beside "7" would be two keys for one row.
func TestJSONKeyThatIsNoIDIsAnError(t *testing.T) {
	for _, c := range codecs() {
		for key, sentinel := range map[string]error{
			"": types.ErrSyntax, "x": types.ErrSyntax, "007": types.ErrSyntax, "-1": types.ErrRange, " 7": types.ErrSyntax,
			"1.0": types.ErrSyntax, "null": types.ErrSyntax, "9223372036854775808": types.ErrRange,
		} {
			var got map[types.Snowflake]int
			err := c.unmarshal([]byte(`{"`+key+`":1}`), &got)
			if !errors.Is(err, sentinel) || len(got) != 0 {
				t.Errorf("%s: Unmarshal({%q:1}) = %v, %v; want no entry and an error that matches %q", c.name, key, got, err, sentinel)
			}
		}
	}
}

func TestAbsentNullSnowflakeComesBackAsAJSONKey(t *testing.T) {
	for _, c := range codecs() {
		want := map[types.NullSnowflake]map[types.NullSnowflake]types.NullSnowflake{
			absent: {absent: absent, presentFive: presentZero}, presentZero: {absent: presentFive},
		}
		doc, err := c.marshal(want)
		if err != nil {
			t.Errorf("%s: Marshal(%v) = %v; want nil", c.name, want, err)
			continue
		}
		var got map[types.NullSnowflake]map[types.NullSnowflake]types.NullSnowflake
		if err := c.unmarshal(doc, &got); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%s: Unmarshal(%s) = %v, %v; want %v, nil", c.name, doc, got, err, want)
		}
	}
}

func TestJSONRefusesANegativeIDWhereverItStands(t *testing.T) {
	neg := types.Snowflake(-5)
	for _, c := range codecs() {
		for _, v := range []any{
			neg, &neg, []types.Snowflake{1, neg}, map[string]types.Snowflake{"a": neg}, order{Model: types.Model{ID: neg}},
			presentNeg, &presentNeg, []types.NullSnowflake{presentNeg}, map[string]any{"a": neg},
		} {
			_, err := c.marshal(v)
			var ve *types.ValueError
			if !errors.Is(err, types.ErrRange) || !errors.As(err, &ve) {
				t.Errorf("%s: Marshal(%T of -5) error = %v; want a *ValueError that matches ErrRange", c.name, v, err)
			}
		}
		// encoding/json keeps the message of an error in a key, not the error.
		_, err := c.marshal(map[types.Snowflake]int{neg: 1})
		if err == nil || !strings.Contains(err.Error(), "-5") {
			t.Errorf("%s: Marshal(map with the key -5) error = %v; want one that shows -5", c.name, err)
		}
	}
}

// A pointer to a zero ID goes too: encoding/json asks the pointer's IsZero,
// which is the ID's. NullSnowflake is the type that keeps a present zero.
func TestOmitzeroLeavesOutWhatIsNotAssignedAndKeepsAPresentZero(t *testing.T) {
	type doc struct {
		ID   types.Snowflake     `json:"id,omitzero"`
		Null types.NullSnowflake `json:"null,omitzero"`
		Ptr  *types.Snowflake    `json:"ptr,omitzero"`
	}
	zero, one := types.Snowflake(0), types.Snowflake(1)
	for _, c := range codecs() {
		for _, try := range []struct {
			in   doc
			want string
		}{
			{doc{}, `{}`},
			{doc{0, stale, nil}, `{}`},
			{doc{0, presentZero, &zero}, `{"null":"0"}`},
			{doc{1, presentFive, &one}, `{"id":"1","null":"5","ptr":"1"}`},
		} {
			if got, err := c.marshal(try.in); string(got) != try.want || err != nil {
				t.Errorf("%s: Marshal(%+v) = %s, %v; want %s, nil", c.name, try.in, got, err, try.want)
			}
		}
	}
}

// encoding/json, on v1 as on v2, forgives what encoding/json/v2 does not: see
// TestJSONv2IsStricterAboutNamesAndTexts.
func TestJSONForgivesNamesAndTexts(t *testing.T) {
	for _, doc := range []string{
		`{"ID":"3"}`, `{"iD":3}`, `{"id":"1","id":2,"id":"3"}`, `{"id":"1","ID":"3"}`, "{\"id\":\"3\",\"number\":\"\xff\"}",
	} {
		var o order
		if err := json.Unmarshal([]byte(doc), &o); o.ID != 3 || err != nil {
			t.Errorf("Unmarshal(%q) = %d, %v; want 3, nil", doc, o.ID, err)
		}
	}
}

// The option ",string" must not put a second pair of quotes around the ID.
func TestStringOptionChangesNothing(t *testing.T) {
	type doc struct {
		ID types.Snowflake `json:"id,string"`
	}
	for _, c := range codecs() {
		const want = `{"id":"9223372036854775807"}`
		if got, err := c.marshal(doc{maxInt64}); string(got) != want || err != nil {
			t.Errorf("%s: Marshal with \",string\" = %s, %v; want %s, nil", c.name, got, err, want)
		}
		got := doc{before}
		if err := c.unmarshal([]byte(want), &got); got.ID != maxInt64 || err != nil {
			t.Errorf("%s: Unmarshal(%s) with \",string\" = %d, %v; want %d, nil", c.name, want, got.ID, err, maxInt64)
		}
		for _, bad := range []string{`{"id":"007"}`, `{"id":""}`, `{"id":"-1"}`, `{"id":"9223372036854775808"}`, `{"id":" 5"}`} {
			got := doc{before}
			if err := c.unmarshal([]byte(bad), &got); got.ID != before || err == nil {
				t.Errorf("%s: Unmarshal(%s) with \",string\" = %d, %v; want %d and an error", c.name, bad, got.ID, err, before)
			}
		}
	}
}

// JSON is a string because a number read into any, as in JavaScript, is a float64.
// That can be the ID of another row.
func TestNumberThroughAnyLosesDigitsAndStringDoesNot(t *testing.T) {
	const id = types.Snowflake(1234567890123456789)
	for _, c := range codecs() {
		var number, text any
		if err := errors.Join(c.unmarshal([]byte(`1234567890123456789`), &number), c.unmarshal([]byte(`"1234567890123456789"`), &text)); err != nil {
			t.Fatalf("%s: Unmarshal into any = %v; want nil", c.name, err)
		}
		f, ok := number.(float64)
		if !ok || int64(f) != 1234567890123456768 {
			t.Errorf("%s: number through any = %T %v; want the float64 1234567890123456768, which is not the ID", c.name, number, number)
		}
		s, ok := text.(string)
		if got, err := types.Parse(s); !ok || got != id || err != nil {
			t.Errorf("%s: string through any = %T %v, read as %d, %v; want %d, nil", c.name, text, text, got, err, id)
		}
		doc, err := c.marshal(map[string]any{"id": id})
		if string(doc) != `{"id":"1234567890123456789"}` || err != nil {
			t.Errorf("%s: Marshal(map[string]any) = %s, %v; want a string", c.name, doc, err)
		}
	}
}

// Why NullSnowflake exists.
func TestSQLNullOfSnowflakeIsAnObjectInJSON(t *testing.T) {
	for _, c := range codecs() {
		got, err := c.marshal(sql.Null[types.Snowflake]{V: 5, Valid: true})
		if string(got) != `{"V":"5","Valid":true}` || err != nil {
			t.Errorf("%s: Marshal(sql.Null[Snowflake]) = %s, %v; want an object", c.name, got, err)
		}
	}
}

func TestEmbeddedModelIsOneFieldOfTheObject(t *testing.T) {
	for _, c := range codecs() {
		in := order{types.Model{ID: 5}, "A-1"}
		const want = `{"id":"5","number":"A-1"}`
		if got, err := c.marshal(in); string(got) != want || err != nil {
			t.Errorf("%s: Marshal(%+v) = %s, %v; want %s, nil", c.name, in, got, err, want)
		}
		var got order
		if err := c.unmarshal([]byte(want), &got); got != in || err != nil {
			t.Errorf("%s: Unmarshal(%s) = %+v, %v; want %+v, nil", c.name, want, got, err, in)
		}
	}
}

func TestJSONv1TakesTheLastOfDuplicateNames(t *testing.T) {
	var o order
	if err := json.Unmarshal([]byte(`{"id":"1","id":2,"id":"3"}`), &o); o.ID != 3 || err != nil {
		t.Errorf("json.Unmarshal of three ids = %d, %v; want 3, nil", o.ID, err)
	}
	if err := json.Unmarshal([]byte(`{"id":"4","id":"x"}`), &o); o.ID != 4 || !errors.Is(err, types.ErrSyntax) {
		t.Errorf("json.Unmarshal of a good and a bad id = %d, %v; want 4, ErrSyntax", o.ID, err)
	}
}

// omitempty goes by the kind of the Go value here. A zero ID disappears; a
// NullSnowflake, a struct, never does. Use omitzero.
func TestJSONv1OmitemptyLeavesOutAZeroIDOnly(t *testing.T) {
	type doc struct {
		ID   types.Snowflake     `json:"id,omitempty"`
		Null types.NullSnowflake `json:"null,omitempty"`
		Ptr  *types.Snowflake    `json:"ptr,omitempty"`
	}
	if got, err := json.Marshal(doc{}); string(got) != `{"null":null}` || err != nil {
		t.Errorf("json.Marshal with omitempty = %s, %v; want {\"null\":null}, nil", got, err)
	}
}

func TestJSONNumberKeepsEveryDigit(t *testing.T) {
	dec := json.NewDecoder(strings.NewReader(`9223372036854775807`))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("Decode = %v; want nil", err)
	}
	n, ok := v.(json.Number)
	if got, err := types.Parse(n.String()); !ok || got != maxInt64 || err != nil {
		t.Errorf("Parse(%T %v) = %d, %v; want %d, nil", v, v, got, err, maxInt64)
	}
}
