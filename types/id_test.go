package types_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// Models whose keys are typed by themselves.
type (
	typedCustomer struct {
		ID types.ID[typedCustomer] `json:"id"`
	}
	typedOrder struct {
		ID         types.ID[typedOrder]                     `json:"id"`
		CustomerID types.ID[typedCustomer]                  `json:"customer_id"`
		ParentID   types.NullID[typedOrder]                 `json:"parent_id"`
		Related    map[types.ID[typedOrder]]string          `json:"related,omitempty"`
		Omitted    types.NullID[typedCustomer]              `json:"omitted,omitzero"`
		Several    []types.ID[typedCustomer]                `json:"several,omitempty"`
		Optional   map[types.NullID[typedOrder]]types.Model `json:"optional,omitempty"`
	}
)

func TestAKeyOfOneTableIsNotAssignableToThatOfAnother(t *testing.T) {
	order, customer := reflect.TypeFor[types.ID[typedOrder]](), reflect.TypeFor[types.ID[typedCustomer]]()
	for _, other := range []reflect.Type{customer, reflect.TypeFor[types.Snowflake](), reflect.TypeFor[int64](), reflect.TypeFor[types.NullID[typedOrder]]()} {
		if order.AssignableTo(other) || other.AssignableTo(order) {
			t.Errorf("%v and %v are assignable; want only a conversion", order, other)
		}
	}
	id := types.ID[typedOrder](types.Snowflake(7))
	if got := id.Snowflake(); got != 7 {
		t.Errorf("ID(7).Snowflake() = %d; want 7", got)
	}
	if got := types.ID[typedOrder](int64(8)).Int64(); got != 8 {
		t.Errorf("ID(8).Int64() = %d; want 8", got)
	}
}

// The signature of a method, with the types of Snowflake written as those of ID.
func signature(m reflect.Method) string {
	mark := reflect.TypeFor[typedOrder]().PkgPath() + ".typedOrder"
	var text []string
	for i := 1; i < m.Type.NumIn(); i++ {
		text = append(text, m.Type.In(i).String())
	}
	text = append(text, "→")
	for i := range m.Type.NumOut() {
		text = append(text, m.Type.Out(i).String())
	}
	return m.Name + strings.NewReplacer("types.ID["+mark+"]", "types.Snowflake").Replace(fmt.Sprint(text))
}

func methods(of reflect.Type, but ...string) []string {
	var names []string
	for i := range of.NumMethod() {
		if m := of.Method(i); !slices.Contains(but, m.Name) {
			names = append(names, signature(m))
		}
	}
	return names
}

func TestTypedKeysHaveTheMethodsOfTheUntyped(t *testing.T) {
	for _, c := range []struct {
		untyped, typed reflect.Type
		way            string // back to the untyped one
	}{
		{reflect.TypeFor[types.Snowflake](), reflect.TypeFor[types.ID[typedOrder]](), "Snowflake"},
		{reflect.TypeFor[*types.Snowflake](), reflect.TypeFor[*types.ID[typedOrder]](), "Snowflake"},
		{reflect.TypeFor[types.NullSnowflake](), reflect.TypeFor[types.NullID[typedOrder]](), "NullSnowflake"},
		{reflect.TypeFor[*types.NullSnowflake](), reflect.TypeFor[*types.NullID[typedOrder]](), "NullSnowflake"},
	} {
		if got, want := methods(c.typed, c.way), methods(c.untyped); !slices.Equal(got, want) {
			t.Errorf("methods of %v = %q; want those of %v, %q", c.typed, got, c.untyped, want)
		}
		if _, ok := c.typed.MethodByName(c.way); !ok {
			t.Errorf("%v has no method %s", c.typed, c.way)
		}
	}
}

// sameOutcome fails the test unless the typed call ended as the untyped one did: both without
// an error, or with the same one, which names the typed key.
func sameOutcome(t *testing.T, call string, got, want error) {
	t.Helper()
	if want == nil && got == nil {
		return
	}
	var typed, untyped *types.ValueError
	if !errors.As(got, &typed) || !errors.As(want, &untyped) {
		t.Errorf("%s error = %v; want %v", call, got, want)
		return
	}
	named := func(text string) string { return strings.ReplaceAll(text, "Snowflake", "ID[typedOrder]") }
	marked := *untyped
	marked.Op, marked.Type, marked.Want = named(untyped.Op), named(untyped.Type), named(untyped.Want)
	if *typed != marked || got.Error() != marked.Error() {
		t.Errorf("%s error = %q; want %q", call, got, &marked)
	}
}

type reader interface {
	Scan(any) error
	UnmarshalText([]byte) error
	UnmarshalJSON([]byte) error
	UnmarshalParam(string) error
	Bind(string) error
	UnmarshalMapstructure(any) error
	UnmarshalGQLContext(context.Context, any) error
}

// readAlike fails the test unless every method that reads treats input as that of the untyped
// key does, and leaves the destination in the same state.
func readAlike(t *testing.T, input any) {
	t.Helper()
	text, ok := input.([]byte)
	if !ok {
		text = []byte(fmt.Sprint(input))
	}
	for name, read := range map[string]func(reader) error{
		"Scan":                  func(d reader) error { return d.Scan(input) },
		"UnmarshalText":         func(d reader) error { return d.UnmarshalText(text) },
		"UnmarshalJSON":         func(d reader) error { return d.UnmarshalJSON(text) },
		"UnmarshalParam":        func(d reader) error { return d.UnmarshalParam(string(text)) },
		"Bind":                  func(d reader) error { return d.Bind(string(text)) },
		"UnmarshalMapstructure": func(d reader) error { return d.UnmarshalMapstructure(input) },
		"UnmarshalGQLContext":   func(d reader) error { return d.UnmarshalGQLContext(t.Context(), input) },
		"UnmarshalBinary": func(d reader) error {
			if b, ok := d.(interface{ UnmarshalBinary([]byte) error }); ok {
				return b.UnmarshalBinary(text)
			}
			return nil
		},
	} {
		call := fmt.Sprintf("%s(%T %q)", name, input, text)
		id, s := types.ID[typedOrder](99), types.Snowflake(99)
		sameOutcome(t, "ID."+call, read(&id), read(&s))
		if id.Snowflake() != s {
			t.Errorf("after ID.%s = %d; want %d", call, id, s)
		}
		n, ns := types.NullID[typedOrder]{ID: 99, Valid: true}, types.NullSnowflake{Snowflake: 99, Valid: true}
		sameOutcome(t, "NullID."+call, read(&n), read(&ns))
		if n.NullSnowflake() != ns {
			t.Errorf("after NullID.%s = %+v; want %+v", call, n, ns)
		}
		sameOutcome(t, "nil ID."+call, read((*types.ID[typedOrder])(nil)), read((*types.Snowflake)(nil)))
		sameOutcome(t, "nil NullID."+call, read((*types.NullID[typedOrder])(nil)), read((*types.NullSnowflake)(nil)))
	}
}

func TestTypedKeysReadWhatTheUntypedDo(t *testing.T) {
	for _, input := range []any{
		nil, int64(5), int64(-1), int64(math.MaxInt64), uint64(7), uint64(math.MaxUint64), 1.5, float64(9), true, []byte(nil), []byte{}, []byte("42"),
		"", "0", "42", "007", "+5", "-1", " 1", "1.0", "9223372036854775807", "9223372036854775808", "null", `""`, `"42"`, `"x"`, "x", strings.Repeat("9", 99),
		"\x00\x00\x00\x00\x00\x00\x00\x09", "\xff\x00\x00\x00\x00\x00\x00\x09",
		types.Snowflake(6), types.NullSnowflake{}, types.NullSnowflake{Snowflake: 6, Valid: true}, new(types.Snowflake), int32(3), uint8(4),
	} {
		readAlike(t, input)
	}
}

// writeAlike fails the test unless every method that writes s, or a NullID of it, does as that of
// the untyped key does.
func writeAlike(t *testing.T, s types.Snowflake) {
	t.Helper()
	id := types.ID[typedOrder](s)
	for _, null := range []types.NullSnowflake{{Snowflake: s, Valid: true}, {Snowflake: s}} {
		n := types.NullID[typedOrder]{ID: types.ID[typedOrder](null.Snowflake), Valid: null.Valid}
		for name, pair := range map[string][2]func() (any, error){
			"ID.Value":                 {func() (any, error) { return id.Value() }, func() (any, error) { return s.Value() }},
			"ID.MarshalText":           {func() (any, error) { return id.MarshalText() }, func() (any, error) { return s.MarshalText() }},
			"ID.MarshalBinary":         {func() (any, error) { return id.MarshalBinary() }, func() (any, error) { return s.MarshalBinary() }},
			"ID.AppendText":            {func() (any, error) { return id.AppendText([]byte("x")) }, func() (any, error) { return s.AppendText([]byte("x")) }},
			"ID.AppendBinary":          {func() (any, error) { return id.AppendBinary([]byte("x")) }, func() (any, error) { return s.AppendBinary([]byte("x")) }},
			"ID.String":                {func() (any, error) { return id.String(), nil }, func() (any, error) { return s.String(), nil }},
			"ID.IsZero":                {func() (any, error) { return id.IsZero(), nil }, func() (any, error) { return s.IsZero(), nil }},
			"ID.Compare":               {func() (any, error) { return id.Compare(5), nil }, func() (any, error) { return s.Compare(5), nil }},
			"ID.Base62":                {func() (any, error) { return id.Base62(), nil }, func() (any, error) { return s.Base62(), nil }},
			"ID.Base58":                {func() (any, error) { return id.Base58(), nil }, func() (any, error) { return s.Base58(), nil }},
			"ID.Base32":                {func() (any, error) { return id.Base32(), nil }, func() (any, error) { return s.Base32(), nil }},
			"ID.AppendBase62":          {func() (any, error) { return id.AppendBase62(nil), nil }, func() (any, error) { return s.AppendBase62(nil), nil }},
			"ID.AppendBase58":          {func() (any, error) { return id.AppendBase58(nil), nil }, func() (any, error) { return s.AppendBase58(nil), nil }},
			"ID.AppendBase32":          {func() (any, error) { return id.AppendBase32(nil), nil }, func() (any, error) { return s.AppendBase32(nil), nil }},
			"ID.GormDataType":          {func() (any, error) { return id.GormDataType(), nil }, func() (any, error) { return s.GormDataType(), nil }},
			"ID.JSONSchemaAlias":       {func() (any, error) { return id.JSONSchemaAlias(), nil }, func() (any, error) { return s.JSONSchemaAlias(), nil }},
			"ID.MarshalGQLContext":     {func() (any, error) { return written(id) }, func() (any, error) { return written(s) }},
			"NullID.Value":             {func() (any, error) { return n.Value() }, func() (any, error) { return null.Value() }},
			"NullID.MarshalJSON":       {func() (any, error) { return n.MarshalJSON() }, func() (any, error) { return null.MarshalJSON() }},
			"NullID.MarshalText":       {func() (any, error) { return n.MarshalText() }, func() (any, error) { return null.MarshalText() }},
			"NullID.AppendText":        {func() (any, error) { return n.AppendText([]byte("x")) }, func() (any, error) { return null.AppendText([]byte("x")) }},
			"NullID.String":            {func() (any, error) { return n.String(), nil }, func() (any, error) { return null.String(), nil }},
			"NullID.IsZero":            {func() (any, error) { return n.IsZero(), nil }, func() (any, error) { return null.IsZero(), nil }},
			"NullID.MarshalGQLContext": {func() (any, error) { return written(n) }, func() (any, error) { return written(null) }},
			"NullID.GormDataType":      {func() (any, error) { return n.GormDataType(), nil }, func() (any, error) { return null.GormDataType(), nil }},
			"json.Marshal(ID)":         {func() (any, error) { return json.Marshal(id) }, func() (any, error) { return json.Marshal(s) }},
			"json.Marshal(NullID)":     {func() (any, error) { return json.Marshal(n) }, func() (any, error) { return json.Marshal(null) }},
		} {
			got, err := pair[0]()
			want, wantErr := pair[1]()
			if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) {
				t.Errorf("%s of %d = %v, %v; want %v, %v", name, s, got, err, want, wantErr)
			}
			if !strings.HasPrefix(name, "json") {
				sameOutcome(t, name, err, wantErr)
			}
		}
	}
}

func TestTypedKeysWriteWhatTheUntypedDo(t *testing.T) {
	for _, s := range []types.Snowflake{0, 1, 1541815603606036480, math.MaxInt64, -5} {
		writeAlike(t, s)
	}
	if got := types.ID[typedOrder](3).Add(4); got != 7 {
		t.Errorf("ID(3).Add(4) = %d; want 7", got)
	}
}

func TestTypedKeysAreStringsInJSON(t *testing.T) {
	order := typedOrder{
		ID: 1541815603606036480, CustomerID: 2, Related: map[types.ID[typedOrder]]string{9007199254740993: "x"},
		Several:  []types.ID[typedCustomer]{3, 9007199254740993},
		Optional: map[types.NullID[typedOrder]]types.Model{{}: {ID: 1}, {ID: 4, Valid: true}: {ID: 2}},
	}
	const want = `{"id":"1541815603606036480","customer_id":"2","parent_id":null,"related":{"9007199254740993":"x"},` +
		`"several":["3","9007199254740993"],"optional":{"":{"id":"1"},"4":{"id":"2"}}}`
	text, err := json.Marshal(order)
	if string(text) != want || err != nil {
		t.Errorf("Marshal = %s, %v; want %s", text, err, want)
	}
	var back typedOrder
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, order) {
		t.Errorf("Unmarshal(Marshal) = %+v, %v; want %+v", back, err, order)
	}
	if err := json.Unmarshal([]byte(`{"id":7,"parent_id":"8"}`), &back); err != nil || back.ID != 7 || back.ParentID != (types.NullID[typedOrder]{ID: 8, Valid: true}) {
		t.Errorf("Unmarshal of a number and a string = %+v, %v; want 7 and 8", back, err)
	}
}

// The trap that docs/types.md names, and the alias that is none.
func TestADefinedTypeOfASnowflakeIsANumberInJSON(t *testing.T) {
	type (
		defined types.Snowflake
		alias   = types.ID[typedOrder]
	)
	for _, c := range []struct {
		key  any
		want string
	}{{defined(5), `5`}, {alias(5), `"5"`}} {
		if got, err := json.Marshal(c.key); string(got) != c.want || err != nil {
			t.Errorf("Marshal(%T 5) = %s, %v; want %s, nil", c.key, got, err, c.want)
		}
	}
	if n := reflect.TypeFor[*defined]().NumMethod(); n != 0 {
		t.Errorf("a type defined as Snowflake has %d methods; want none", n)
	}
}

func TestMapstructureCopiesANullIDOfTheSameMark(t *testing.T) {
	want := types.NullID[typedOrder]{ID: 5, Valid: true}
	for _, input := range []any{want, &want} {
		var n types.NullID[typedOrder]
		if err := n.UnmarshalMapstructure(input); err != nil || n != want {
			t.Errorf("UnmarshalMapstructure(%T) = %+v, %v; want %+v", input, n, err, want)
		}
	}
	var other types.NullID[typedCustomer]
	if err := other.UnmarshalMapstructure(want); err == nil {
		t.Errorf("UnmarshalMapstructure of another mark = %+v; want an error", other)
	}
}

// A pair is a call of a method of a typed key, and the same call of the untyped one.
type pair struct {
	name           string
	typed, untyped func()
}

// pairs returns a pair for every method that Snowflake and NullSnowflake have.
func pairs() []pair {
	var (
		s      = types.Snowflake(1541815603606036480)
		id     = types.ID[typedOrder](s)
		ns     = types.NullSnowflake{Snowflake: s, Valid: true}
		n      = types.NullID[typedOrder]{ID: id, Valid: true}
		text   = []byte("1541815603606036480")
		param  = string(text)
		quoted = []byte(`"1541815603606036480"`)
		eight  = []byte{0x15, 0x65, 0x9f, 0x2a, 0x2d, 0x96, 0x70, 0x00}
		buf    = make([]byte, 0, 64)
		src    any // int64, as drivers have it
		ctx    = context.Background()
		to     struct { // keeps the results, so that no call is compiled away
			bytes  []byte
			word   string
			order  int
			zero   bool
			number int64
			value  any
			uuid   [16]byte
		}
	)
	src = s.Int64()
	return []pair{
		{"ID.Add", func() { id = id.Add(0) }, func() { s = s.Add(0) }},
		{"ID.AppendBase32", func() { to.bytes = id.AppendBase32(buf) }, func() { to.bytes = s.AppendBase32(buf) }},
		{"ID.AppendBase58", func() { to.bytes = id.AppendBase58(buf) }, func() { to.bytes = s.AppendBase58(buf) }},
		{"ID.AppendBase62", func() { to.bytes = id.AppendBase62(buf) }, func() { to.bytes = s.AppendBase62(buf) }},
		{"ID.AppendBinary", func() { to.bytes, _ = id.AppendBinary(buf) }, func() { to.bytes, _ = s.AppendBinary(buf) }},
		{"ID.AppendText", func() { to.bytes, _ = id.AppendText(buf) }, func() { to.bytes, _ = s.AppendText(buf) }},
		{"ID.Base32", func() { to.word = id.Base32() }, func() { to.word = s.Base32() }},
		{"ID.Base58", func() { to.word = id.Base58() }, func() { to.word = s.Base58() }},
		{"ID.Base62", func() { to.word = id.Base62() }, func() { to.word = s.Base62() }},
		{"ID.Bind", func() { _ = id.Bind(param) }, func() { _ = s.Bind(param) }},
		{"ID.Compare", func() { to.order = id.Compare(5) }, func() { to.order = s.Compare(5) }},
		{"ID.GormDataType", func() { to.word = id.GormDataType() }, func() { to.word = s.GormDataType() }},
		{"ID.Int64", func() { to.number = id.Int64() }, func() { to.number = s.Int64() }},
		{"ID.IsZero", func() { to.zero = id.IsZero() }, func() { to.zero = s.IsZero() }},
		{"ID.JSONSchemaAlias", func() { to.value = id.JSONSchemaAlias() }, func() { to.value = s.JSONSchemaAlias() }},
		{"ID.MarshalBinary", func() { to.bytes, _ = id.MarshalBinary() }, func() { to.bytes, _ = s.MarshalBinary() }},
		{"ID.MarshalGQLContext", func() { _ = id.MarshalGQLContext(ctx, io.Discard) }, func() { _ = s.MarshalGQLContext(ctx, io.Discard) }},
		{"ID.MarshalText", func() { to.bytes, _ = id.MarshalText() }, func() { to.bytes, _ = s.MarshalText() }},
		{"ID.Scan", func() { _ = id.Scan(src) }, func() { _ = s.Scan(src) }},
		{"ID.String", func() { to.word = id.String() }, func() { to.word = s.String() }},
		{"ID.UUID", func() { to.uuid = id.UUID() }, func() { to.uuid = s.UUID() }},
		{"ID.UnmarshalBinary", func() { _ = id.UnmarshalBinary(eight) }, func() { _ = s.UnmarshalBinary(eight) }},
		{"ID.UnmarshalGQLContext", func() { _ = id.UnmarshalGQLContext(ctx, param) }, func() { _ = s.UnmarshalGQLContext(ctx, param) }},
		{"ID.UnmarshalJSON", func() { _ = id.UnmarshalJSON(quoted) }, func() { _ = s.UnmarshalJSON(quoted) }},
		{"ID.UnmarshalMapstructure", func() { _ = id.UnmarshalMapstructure(src) }, func() { _ = s.UnmarshalMapstructure(src) }},
		{"ID.UnmarshalParam", func() { _ = id.UnmarshalParam(param) }, func() { _ = s.UnmarshalParam(param) }},
		{"ID.UnmarshalText", func() { _ = id.UnmarshalText(text) }, func() { _ = s.UnmarshalText(text) }},
		{"ID.Value", func() { to.value, _ = id.Value() }, func() { to.value, _ = s.Value() }},
		{"NullID.AppendText", func() { to.bytes, _ = n.AppendText(buf) }, func() { to.bytes, _ = ns.AppendText(buf) }},
		{"NullID.Bind", func() { _ = n.Bind(param) }, func() { _ = ns.Bind(param) }},
		{"NullID.GormDataType", func() { to.word = n.GormDataType() }, func() { to.word = ns.GormDataType() }},
		{"NullID.IsZero", func() { to.zero = n.IsZero() }, func() { to.zero = ns.IsZero() }},
		{"NullID.JSONSchemaAlias", func() { to.value = n.JSONSchemaAlias() }, func() { to.value = ns.JSONSchemaAlias() }},
		{"NullID.MarshalGQLContext", func() { _ = n.MarshalGQLContext(ctx, io.Discard) }, func() { _ = ns.MarshalGQLContext(ctx, io.Discard) }},
		{"NullID.MarshalJSON", func() { to.bytes, _ = n.MarshalJSON() }, func() { to.bytes, _ = ns.MarshalJSON() }},
		{"NullID.MarshalText", func() { to.bytes, _ = n.MarshalText() }, func() { to.bytes, _ = ns.MarshalText() }},
		{"NullID.Scan", func() { _ = n.Scan(src) }, func() { _ = ns.Scan(src) }},
		{"NullID.String", func() { to.word = n.String() }, func() { to.word = ns.String() }},
		{"NullID.UnmarshalGQLContext", func() { _ = n.UnmarshalGQLContext(ctx, param) }, func() { _ = ns.UnmarshalGQLContext(ctx, param) }},
		{"NullID.UnmarshalJSON", func() { _ = n.UnmarshalJSON(quoted) }, func() { _ = ns.UnmarshalJSON(quoted) }},
		{"NullID.UnmarshalMapstructure", func() { _ = n.UnmarshalMapstructure(src) }, func() { _ = ns.UnmarshalMapstructure(src) }},
		{"NullID.UnmarshalParam", func() { _ = n.UnmarshalParam(param) }, func() { _ = ns.UnmarshalParam(param) }},
		{"NullID.UnmarshalText", func() { _ = n.UnmarshalText(text) }, func() { _ = ns.UnmarshalText(text) }},
		{"NullID.Value", func() { to.value, _ = n.Value() }, func() { to.value, _ = ns.Value() }},
	}
}

func TestTypedKeysAllocateAsTheUntypedDo(t *testing.T) {
	var names []string
	for _, p := range pairs() {
		names = append(names, p.name)
		if got, want := testing.AllocsPerRun(1000, p.typed), testing.AllocsPerRun(1000, p.untyped); got != want {
			t.Errorf("%s allocates %v times; want %v, as the untyped one", p.name, got, want)
		}
	}
	var want []string
	for prefix, of := range map[string]reflect.Type{"ID.": reflect.TypeFor[*types.Snowflake](), "NullID.": reflect.TypeFor[*types.NullSnowflake]()} {
		for i := range of.NumMethod() {
			if name := of.Method(i).Name; name != "MarshalJSONTo" { // of Go 1.27, with an encoder that allocates as it likes
				want = append(want, prefix+name)
			}
		}
	}
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("methods whose allocations are compared = %q; want all, %q", names, want)
	}
}
