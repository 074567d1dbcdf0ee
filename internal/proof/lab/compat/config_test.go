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
func configured(t *testing.T, format, text string, options ...viper.DecoderConfigOption) (order, error) {
	t.Helper()
	v := viper.New()
	v.SetConfigType(format)
	if err := v.ReadConfig(strings.NewReader(text)); err != nil {
		t.Fatalf("ReadConfig(%s) = %v; want nil", text, err)
	}
	var o order
	err := v.Unmarshal(&o, options...)
	return o, err
}

func TestViperReadsIDsExactly(t *testing.T) {
	want := order{ID: id, Parent: types.NullSnowflake{Snowflake: 5, Valid: true}}
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
}

// viper reads JSON numbers as float64, and would store 175928847299117056.
func TestViperRefusesARoundedJSONNumber(t *testing.T) {
	for _, text := range []string{
		`{"id": 175928847299117063}`, `{"parent": 175928847299117063}`, `{"id": 9007199254740992}`,
		`{"id": 9223372036854775808}`, `{"id": 1.5}`, `{"id": -1}`, `{"id": "007"}`, `{"id": "0x10"}`, `{"id": true}`, `{"id": ""}`,
	} {
		got, err := configured(t, "json", text)
		var ve *types.ValueError
		if got != (order{}) || !errors.As(err, &ve) {
			t.Errorf("Unmarshal(%s) = %+v, %v; want nothing and a *ValueError", text, got, err)
		}
	}
}

func TestViperLeavesNullAndEmptyParentAbsent(t *testing.T) {
	for _, text := range []string{`{"id": "5", "parent": null}`, `{"id": "5", "parent": ""}`, `{"id": "5"}`} {
		if got, err := configured(t, "json", text); got != (order{ID: 5}) || err != nil {
			t.Errorf("Unmarshal(%s) = %+v, %v; want an absent parent, nil", text, got, err)
		}
	}
}

// Versions before 2.5 do not look for the method, and round: docs/types.md warns
// of them.
func TestMapstructureWithoutTheMethodRounds(t *testing.T) {
	got, err := configured(t, "json", `{"id": 175928847299117063}`, func(c *mapstructure.DecoderConfig) { c.DisableUnmarshaler = true })
	if got.ID != 175928847299117056 || err != nil {
		t.Errorf("Unmarshal without the method = %+v, %v; want 175928847299117056, nil", got, err)
	}
}
