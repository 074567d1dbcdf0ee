package types_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/snowkey/snowkey/types"
)

func TestErrorMessagesReadAsDocumented(t *testing.T) {
	var (
		id types.Snowflake
		n  types.NullSnowflake
	)
	_, parse := types.Parse("12x")
	_, base62 := types.ParseBase62("short")
	_, marshalText := types.Snowflake(-5).MarshalText()
	_, marshalBinary := types.Snowflake(-5).MarshalBinary()
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"Parse", parse, `types: cannot parse "12x" into Snowflake: want a decimal integer 0..9223372036854775807`},
		{"Scan text", id.Scan("12x"), `types: cannot scan "12x" into Snowflake: want a decimal integer 0..9223372036854775807`},
		{"Scan int64", id.Scan(int64(-1)), `types: cannot scan -1 into Snowflake: want a decimal integer 0..9223372036854775807`},
		{"Scan uint64", id.Scan(uint64(1 << 63)), `types: cannot scan 9223372036854775808 into Snowflake: want a decimal integer 0..9223372036854775807`},
		{"Scan float64", id.Scan(1.5), `types: cannot scan float64 1.5 into Snowflake: want int64, uint64, or decimal text, 0..9223372036854775807`},
		{"Scan bool", id.Scan(true), `types: cannot scan bool true into Snowflake: want int64, uint64, or decimal text, 0..9223372036854775807`},
		{"Scan NULL", id.Scan(nil), `types: cannot scan NULL into Snowflake: want a value that is not NULL, or a NullSnowflake to scan into`},
		{"NullSnowflake.Scan", n.Scan("12x"), `types: cannot scan "12x" into NullSnowflake: want a decimal integer 0..9223372036854775807`},
		{"UnmarshalText", id.UnmarshalText([]byte("12x")), `types: cannot unmarshal text "12x" into Snowflake: want a decimal integer 0..9223372036854775807`},
		{"UnmarshalJSON", id.UnmarshalJSON([]byte("1.0")), `types: cannot unmarshal JSON 1.0 into Snowflake: want a JSON string or integer 0..9223372036854775807`},
		{"UnmarshalJSON of a string", id.UnmarshalJSON([]byte(`"abc"`)), `types: cannot unmarshal JSON "abc" into Snowflake: want a JSON string or integer 0..9223372036854775807`},
		{"UnmarshalJSON of no text", id.UnmarshalJSON([]byte("\"a\n\"")), `types: cannot unmarshal JSON "\"a\n\"" into Snowflake: want a JSON string or integer 0..9223372036854775807`},
		{"UnmarshalJSON of nothing", id.UnmarshalJSON(nil), `types: cannot unmarshal JSON "" into Snowflake: want a JSON string or integer 0..9223372036854775807`},
		{"UnmarshalBinary", id.UnmarshalBinary([]byte{1}), `types: cannot unmarshal binary "\x01" into Snowflake: want 8 bytes, big-endian, first bit zero`},
		{"ParseBase62", base62, `types: cannot parse base62 "short" into Snowflake: want 00000000000..AzL8n0Y58m7, only the characters 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz`},
		{"MarshalText", marshalText, `types: cannot marshal Snowflake -5 into text: want 0..9223372036854775807`},
		{"MarshalBinary", marshalBinary, `types: cannot marshal Snowflake -5 into binary: want 0..9223372036854775807`},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%s error = %v; want %s", c.name, c.err, c.want)
		}
	}
}

// The cut may fall inside a character; the message stays valid UTF-8.
func TestErrorRepeatsAtMost64BytesOfTheInput(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"63 bytes", strings.Repeat("x", 63), strconv.Quote(strings.Repeat("x", 63))},
		{"64 bytes", strings.Repeat("x", 64), strconv.Quote(strings.Repeat("x", 64))},
		{"65 bytes", strings.Repeat("x", 65), strconv.Quote(strings.Repeat("x", 64)) + "… (65 bytes)"},
		{"a character across the cut", strings.Repeat("x", 63) + "é", strconv.Quote(strings.Repeat("x", 63)+"\xc3") + "… (65 bytes)"},
		{"a megabyte", strings.Repeat("\x00", 1<<20), strconv.Quote(strings.Repeat("\x00", 64)) + "… (1048576 bytes)"},
	} {
		_, err := types.Parse(c.text)
		var ve *types.ValueError
		if !errors.As(err, &ve) || ve.Value != c.want {
			t.Errorf("Parse(%s) error = %v; want Value %s", c.name, err, c.want)
		} else if !utf8.ValidString(err.Error()) {
			t.Errorf("Parse(%s) error = %q; want valid UTF-8", c.name, err)
		}
	}
}

func TestErrorOfBytesIsCutToo(t *testing.T) {
	megabyte := make([]byte, 1<<20)
	var id types.Snowflake
	var n types.NullSnowflake
	for name, err := range map[string]error{
		"Scan":                        id.Scan(megabyte),
		"UnmarshalText":               id.UnmarshalText(megabyte),
		"UnmarshalJSON":               id.UnmarshalJSON(megabyte),
		"UnmarshalBinary":             id.UnmarshalBinary(megabyte),
		"NullSnowflake.Scan":          n.Scan(megabyte),
		"NullSnowflake.UnmarshalText": n.UnmarshalText(megabyte),
		"NullSnowflake.UnmarshalJSON": n.UnmarshalJSON(megabyte),
	} {
		if err == nil || len(err.Error()) > 512 || !strings.Contains(err.Error(), "(1048576 bytes)") {
			t.Errorf("%s(1 MB) error = %v; want a message of at most 512 bytes that says how long the input was", name, err)
		}
	}
}

func TestErrorDoesNotKeepTheBytesItRepeats(t *testing.T) {
	buf := []byte("12x")
	var id types.Snowflake
	err := id.Scan(buf)
	copy(buf, "999")
	if err == nil || !strings.Contains(err.Error(), `"12x"`) {
		t.Errorf("Scan([]byte) error after the buffer changed = %v; want one that still says \"12x\"", err)
	}
}

func TestSentinelsAreToldApartAndNameThePackage(t *testing.T) {
	all := []error{types.ErrSyntax, types.ErrRange, types.ErrNull}
	for i, a := range all {
		if !strings.HasPrefix(a.Error(), "types: ") {
			t.Errorf("sentinel %d = %q; want it to begin with \"types: \"", i, a)
		}
		for j, b := range all {
			if errors.Is(a, b) != (i == j) {
				t.Errorf("errors.Is(%q, %q) = %v; want %v", a, b, errors.Is(a, b), i == j)
			}
		}
	}
}

func TestZeroValueErrorWrapsNothing(t *testing.T) {
	if got := new(types.ValueError).Unwrap(); got != nil {
		t.Errorf("new(ValueError).Unwrap() = %v; want nil", got)
	}
}
