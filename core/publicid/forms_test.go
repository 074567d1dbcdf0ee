package publicid_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/publicid"
	"github.com/snowkey/snowkey/types"
)

// A form of an ID as a text.
type form struct {
	name  string
	write func(types.Snowflake) string
	read  func(string) (types.Snowflake, error)
}

func forms(t *testing.T) []form {
	c := newCodec(t, "order", testKey(1))
	return []form{
		{"public", c.Encode, c.Decode},
		{"decimal", types.Snowflake.String, types.Parse},
		{"base62", types.Snowflake.Base62, types.ParseBase62},
		{"base58", types.Snowflake.Base58, types.ParseBase58},
		{"base32", types.Snowflake.Base32, types.ParseBase32},
	}
}

func TestNoOtherFormIsReadAsAPublicFormNorAPublicFormAsAnother(t *testing.T) {
	// The forms of types have no mark of their own. Where width and letters agree, a text is read as
	// another ID: the package comment says so, and what to do about it.
	want := map[string]bool{
		"decimal as base62": true, "decimal as base58": true, // 11 digits
		"decimal as base32": true,                                                       // 13 digits
		"base62 as decimal": true, "base58 as decimal": true, "base32 as decimal": true, // no letter in it
		"base62 as base58": true, "base58 as base62": true, // no 0, O, I and l; not too large
	}
	ids := append(someIDs(2000), 12345678912, 1234567891234, 98765432198, 5<<60|1)
	for _, form := range forms(t)[2:] { // texts without a letter
		if id, err := form.read(strings.Repeat("1", len(form.write(0)))); err == nil {
			ids = append(ids, id)
		}
	}
	got := map[string]bool{}
	for _, writer := range forms(t) {
		for _, reader := range forms(t) {
			for _, id := range ids {
				text := writer.write(id)
				read, err := reader.read(text)
				if writer.name != reader.name && err == nil {
					got[writer.name+" as "+reader.name] = true
				}
				if writer.name == reader.name && (read != id || err != nil) {
					t.Fatalf("%s: read(%q) = %d, %v; want %d, nil", reader.name, text, read, err, id)
				}
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("texts are read as another form: %v; want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// What no form accepts, and what a client may send in place of a public form.
func badTexts(good string) map[string]string {
	return map[string]string{
		"empty": "", "space": " ", "space before": " " + good, "space after": good + " ", "newline after": good + "\n",
		"plus": "+5", "minus zero": "-0", "minus": "-1", "leading zeros": "007", "underscore": "1_000", "hexadecimal": "0x10",
		"exponent": "1e3", "fraction": "1.0", "fullwidth": "order_１２３４５６７８", "Arabic": "٣", "zero": "0", "decimal": "250134256414617600",
		"NUL inside": good[:9] + "\x00" + good[10:], "NUL after": good + "\x00", "max + 1": "9223372036854775808", "20 digits": "18446744073709551616",
		"a megabyte": strings.Repeat("a", 1<<20), "a megabyte behind the prefix": "order_" + strings.Repeat("0", 1<<20),
		"invalid UTF-8": good[:9] + "\xff" + good[10:], "two-byte character": good[:len(good)-2] + "é",
		"prefix alone": "order", "prefix and underscore": "order_", "no block": good[:7], "no prefix": good[6:], "no underscore": "order" + good[6:],
		"two underscores": "order__" + good[7:], "two prefixes": "order_" + good, "hyphen for underscore": "order-" + good[6:], "upper case": strings.ToUpper(good),
		"escaped": strings.Replace(good, "_", "%5F", 1), "with a slash": good + "/", "path": "../" + good, "quoted": `"` + good + `"`,
		"largest digits": good[:7] + strings.Repeat("z", 22), "least digits": good[:7] + strings.Repeat("0", 22),
		"URL-safe base64": good[:20] + "-" + good[21:], "null": "null", "a UUID": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
	}
}

func TestBadInputIsRefusedAndQuotedInPart(t *testing.T) {
	c := newCodec(t, "order", testKey(1))
	good := c.Encode(orderID)
	for name, text := range badTexts(good) {
		refuses(t, c, text, name)
		before := publicid.Of(types.ID[Order](7))
		for reader, err := range map[string]error{
			"UnmarshalText": before.UnmarshalText([]byte(text)), "UnmarshalParam": before.UnmarshalParam(text),
		} {
			if !errors.Is(err, publicid.ErrInvalid) || before.Key() != 7 {
				t.Errorf("%s(%.80q) = %v, and the ID is %d; want ErrInvalid and 7, as before: %s", reader, text, err, before.Key(), name)
			}
		}
		if id, err := publicid.Parse[Order](text); !id.IsZero() || !errors.Is(err, publicid.ErrInvalid) {
			t.Errorf("Parse(%.80q) = %v, %v; want the zero ID, ErrInvalid: %s", text, id, err, name)
		}
	}
	for _, e := range []struct{ text, want string }{
		{"12x", `publicid: invalid text "12x": want order_ and the 23 characters of 0-9A-Za-z that Encode writes`},
		{strings.Repeat("x", 65), `publicid: invalid text "` + strings.Repeat("x", 64) + `"… (65 bytes): want order_`},
		{good[:len(good)-1] + "!", `publicid: invalid text "` + good[:len(good)-1] + `!": want order_`},
		{good[:len(good)-12] + "!" + good[len(good)-11:], `: want order_`},
		{good[:len(good)-1] + "a", `: it is mistyped, or was written for another prefix or with another key`},
		{"order_0" + good[7:], `: no key has the name '0'; it is mistyped, or its key was removed`},
	} {
		if _, err := c.Decode(e.text); err == nil || !strings.Contains(err.Error(), e.want) {
			t.Errorf("Decode(%q) = %v; want an error with %s", e.text, err, e.want)
		}
	}
}
