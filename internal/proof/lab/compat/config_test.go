package compat

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"

	"github.com/snowkey/snowkey/types"
)

var (
	_ mapstructure.Unmarshaler = (*types.Snowflake)(nil)
	_ mapstructure.Unmarshaler = (*types.NullSnowflake)(nil)
)

// configured reads the settings id and parent of a file in the format.
func configured(t *testing.T, format, text string, options ...viper.DecoderConfigOption) (order[types.Snowflake, types.NullSnowflake], error) {
	t.Helper()
	v := viper.New()
	v.SetConfigType(format)
	if err := v.ReadConfig(strings.NewReader(text)); err != nil {
		t.Fatalf("ReadConfig(%s) = %v; want nil", text, err)
	}
	var o order[types.Snowflake, types.NullSnowflake]
	err := v.Unmarshal(&o, options...)
	return o, err
}

// viper reads JSON numbers as float64, and would store 175928847299117056.
func TestViperReadsKeysExactlyOrNotAtAll(t *testing.T) {
	want := order[types.Snowflake, types.NullSnowflake]{id, untyped.null(5)}
	for _, c := range []struct{ format, text string }{
		{"json", `{"id": "175928847299117063", "parent": 5}`},
		{"yaml", "id: 175928847299117063\nparent: 5"},
		{"yaml", "id: '175928847299117063'\nparent: '5'"},
		{"toml", "id = 175928847299117063\nparent = 5"},
	} {
		for _, options := range [][]viper.DecoderConfigOption{
			nil, {viper.DecodeHook(mapstructure.TextUnmarshallerHookFunc())},
		} {
			if got, err := configured(t, c.format, c.text, options...); got != want || err != nil {
				t.Errorf("Unmarshal(%s) with %d options = %+v, %v; want %+v, nil", c.text, len(options), got, err, want)
			}
		}
	}
	for _, text := range []string{
		`{"id": 175928847299117063}`, `{"parent": 175928847299117063}`, `{"id": 9007199254740992}`,
		`{"id": 9223372036854775808}`, `{"id": 1.5}`, `{"id": -1}`, `{"id": "007"}`, `{"id": "0x10"}`, `{"id": true}`, `{"id": ""}`,
	} {
		got, err := configured(t, "json", text)
		if got.ID != 0 || got.Parent.Valid || !errors.As(err, new(*types.ValueError)) {
			t.Errorf("Unmarshal(%s) = %+v, %v; want nothing and a *ValueError", text, got, err)
		}
	}
}

// Among the inputs are keys of a program, in the types that it may have: mapstructure reads a struct by its
// fields, if it does not ask the method.
func TestMapstructureDecodesKeysOfEveryType(t *testing.T) { each(t, untyped.decodes, typed.decodes) }

func (k kind[K, N]) decodes(t *testing.T) {
	present := k.null(id)
	for _, parent := range []any{id.String(), id.Int64(), present, &present, untyped.null(id), k.key(id)} {
		want := order[K, N]{k.key(5), present}
		for _, first := range []any{"5", 5, 5.0, k.key(5)} {
			var got order[K, N]
			if err := mapstructure.Decode(map[string]any{"id": first, "parent": parent}, &got); got != want || err != nil {
				t.Errorf("Decode(%T %v and %T %v) = %+v, %v; want %+v, nil", first, first, parent, parent, got, err, want)
			}
		}
	}
	for _, input := range []map[string]any{{"id": 5, "parent": nil}, {"id": 5, "parent": ""}, {"id": 5}} {
		var got order[K, N]
		if err := mapstructure.Decode(input, &got); got != (order[K, N]{ID: k.key(5)}) || err != nil {
			t.Errorf("Decode(%v) = %+v, %v; want no parent, nil", input, got, err)
		}
	}
	for _, value := range []any{1e17, "007", -1, 1.5, true, types.NullID[order[K, N]]{ID: 5, Valid: true}} {
		for _, field := range []string{"id", "parent"} {
			before := order[K, N]{k.key(7), present}
			got := before
			if err := mapstructure.Decode(map[string]any{field: value}, &got); err == nil || got != before {
				t.Errorf("Decode(%s: %T %v) = %+v, %v; want an error and no change", field, value, value, got, err)
			}
		}
	}
}
