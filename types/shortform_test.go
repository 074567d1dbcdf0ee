package types_test

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// A shortForm is one of the forms. Its alphabet and width are repeated here, so
// that a change of either fails.
type shortForm struct {
	name   string
	digits string
	width  int
	text   func(types.Snowflake) string
	append func(types.Snowflake, []byte) []byte
	parse  func(string) (types.Snowflake, error)
}

func shortForms() []shortForm {
	return []shortForm{
		{
			"Base62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11,
			types.Snowflake.Base62, types.Snowflake.AppendBase62, types.ParseBase62,
		},
		{
			"Base58", "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 11,
			types.Snowflake.Base58, types.Snowflake.AppendBase58, types.ParseBase58,
		},
		{
			"Base32", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13,
			types.Snowflake.Base32, types.Snowflake.AppendBase32, types.ParseBase32,
		},
	}
}

// spell writes n in the form's alphabet with math/big. It replaces each digit of
// big.Int.Text, which uses 0-9a-zA-Z.
func (f shortForm) spell(n *big.Int) string {
	const bigDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	s := strings.Map(func(r rune) rune {
		return rune(f.digits[strings.IndexRune(bigDigits, r)])
	}, n.Text(len(f.digits)))
	return strings.Repeat(f.digits[:1], max(0, f.width-len(s))) + s
}

func pow2(n uint) *big.Int { return new(big.Int).Lsh(big.NewInt(1), n) }

// The vectors were computed by a program in another language.
func TestShortFormsOfKnownIDs(t *testing.T) {
	for _, c := range []struct {
		id                     types.Snowflake
		base62, base58, base32 string
	}{
		{0, "00000000000", "11111111111", "0000000000000"},
		{1, "00000000001", "11111111112", "0000000000001"},
		{31, "0000000000V", "1111111111Y", "000000000000Z"},
		{32, "0000000000W", "1111111111Z", "0000000000010"},
		{57, "0000000000v", "1111111111z", "000000000001S"},
		{58, "0000000000w", "11111111121", "000000000001T"},
		{61, "0000000000z", "11111111124", "000000000001X"},
		{62, "00000000010", "11111111125", "000000000001Y"},
		{175928847299117063, "0Czks0tP37X", "1QgmVVkniES", "04W86BB0G4007"},
		{1541815603606036480, "1ptWyK4WgZU", "4aaW4SzAyQK", "1ASD13XH1F800"},
		{1 << 53, "00fFgnDxSe8", "12DLNrMSKuh", "0080000000000"},
		{1 << 62, "5UfZOVH2ZO4", "Bht3tfQZv87", "4000000000000"},
		{maxInt64, "AzL8n0Y58m7", "NQm6nKp8qFC", "7ZZZZZZZZZZZZ"},
	} {
		if got := c.id.Base62(); got != c.base62 {
			t.Errorf("Snowflake(%d).Base62() = %q; want %q", c.id, got, c.base62)
		}
		if got := c.id.Base58(); got != c.base58 {
			t.Errorf("Snowflake(%d).Base58() = %q; want %q", c.id, got, c.base58)
		}
		if got := c.id.Base32(); got != c.base32 {
			t.Errorf("Snowflake(%d).Base32() = %q; want %q", c.id, got, c.base32)
		}
		for text, parse := range map[string]func(string) (types.Snowflake, error){
			c.base62: types.ParseBase62, c.base58: types.ParseBase58, c.base32: types.ParseBase32,
		} {
			if got, err := parse(text); got != c.id || err != nil {
				t.Errorf("parse of the short form %q = %d, %v; want %d, nil", text, got, err, c.id)
			}
		}
	}
}

func TestShortFormsAgreeWithBigIntAndComeBack(t *testing.T) {
	for _, f := range shortForms() {
		for _, id := range sortedIDs() {
			want := f.spell(big.NewInt(id.Int64()))
			if got := f.text(id); got != want {
				t.Fatalf("Snowflake(%d).%s() = %q; want %q", id, f.name, got, want)
			}
			if got, err := f.parse(want); got != id || err != nil {
				t.Fatalf("Parse%s(%q) = %d, %v; want %d, nil", f.name, want, got, err, id)
			}
		}
	}
}

func TestShortFormsHaveOneWidthAndSortAsTheIDs(t *testing.T) {
	for _, f := range shortForms() {
		last := ""
		for _, id := range sortedIDs() {
			text := f.text(id)
			if len(text) != f.width {
				t.Fatalf("Snowflake(%d).%s() = %q; want %d characters", id, f.name, text, f.width)
			}
			if text <= last {
				t.Fatalf("Snowflake(%d).%s() = %q; want more than %q, the text of the ID before", id, f.name, text, last)
			}
			last = text
		}
	}
}

func TestAppendShortKeepsWhatIsThere(t *testing.T) {
	for _, f := range shortForms() {
		if got, want := string(f.append(175928847299117063, []byte("id="))), "id="+f.text(175928847299117063); got != want {
			t.Errorf("Append%s(\"id=\") = %q; want %q", f.name, got, want)
		}
		if got, want := string(f.append(maxInt64, nil)), f.text(maxInt64); got != want {
			t.Errorf("Append%s(nil) = %q; want %q", f.name, got, want)
		}
	}
}

func TestShortFormOfANegativeIDIsReadByNoParser(t *testing.T) {
	for _, f := range shortForms() {
		for _, id := range []types.Snowflake{-1, -2, -58, -62, math.MinInt64, math.MinInt64 + 1} {
			text := f.text(id)
			if len(text) != f.width {
				t.Errorf("Snowflake(%d).%s() = %q; want %d characters", id, f.name, text, f.width)
			}
			if got, err := f.parse(text); got != 0 || !errors.Is(err, types.ErrRange) {
				t.Errorf("Parse%s(%q) = %d, %v; want 0, ErrRange: it is Snowflake(%d)", f.name, text, got, err, id)
			}
		}
	}
}

// What fits the width but not the ID. Above 2^64 the sum wraps around, and a
// parser that looks only at the result takes it for a small ID.
func TestShortFormsAboveMaxInt64AreOutOfRange(t *testing.T) {
	for _, f := range shortForms() {
		base := big.NewInt(int64(len(f.digits)))
		all := new(big.Int).Exp(base, big.NewInt(int64(f.width)), nil) // the first that does not fit the width
		spellings := []*big.Int{
			pow2(63), new(big.Int).Add(pow2(63), big.NewInt(1)),
			new(big.Int).Sub(pow2(64), big.NewInt(1)), pow2(64), new(big.Int).Add(pow2(64), big.NewInt(5)),
			new(big.Int).Sub(all, big.NewInt(1)), new(big.Int).Sub(all, base),
		}
		// k·2^64 + 5 wraps to 5 for every k.
		for k := int64(2); ; k++ {
			n := new(big.Int).Add(new(big.Int).Mul(pow2(64), big.NewInt(k)), big.NewInt(5))
			if n.Cmp(all) >= 0 {
				break
			}
			spellings = append(spellings, n)
		}
		for _, n := range spellings {
			text := f.spell(n)
			if len(text) != f.width {
				t.Fatalf("the test spells %v as %q; want %d characters", n, text, f.width)
			}
			if got, err := f.parse(text); got != 0 || !errors.Is(err, types.ErrRange) {
				t.Errorf("Parse%s(%q) = %d, %v; want 0, ErrRange: it is %v", f.name, text, got, err, n)
			}
		}
	}
}

func TestShortFormsOfAnyOtherSpellingAreSyntaxErrors(t *testing.T) {
	for _, f := range shortForms() {
		good := f.text(175928847299117063)
		bad := map[string]string{
			"empty":                  "",
			"one short":              good[1:],
			"one long":               f.digits[:1] + good,
			"only the last digit":    good[f.width-1:],
			"space before":           " " + good[1:],
			"space after":            good[:f.width-1] + " ",
			"newline behind":         good + "\n",
			"hyphen":                 good[:4] + "-" + good[5:],
			"underscore":             good[:4] + "_" + good[5:],
			"slash":                  good[:4] + "/" + good[5:],
			"NUL":                    good[:4] + "\x00" + good[5:],
			"byte 0xFF":              good[:4] + "\xff" + good[5:],
			"plus":                   "+" + good[1:],
			"two-byte character":     good[:f.width-2] + "é",
			"full width, in bytes":   strings.Repeat("é", f.width),
			"decimal":                "175928847299117063",
			"a megabyte":             strings.Repeat(f.digits[:1], 1<<20),
			"bad behind an overflow": strings.Repeat(f.digits[len(f.digits)-1:], f.width-1) + "!",
		}
		for name, text := range bad {
			got, err := f.parse(text)
			var ve *types.ValueError
			if got != 0 || !errors.Is(err, types.ErrSyntax) || !errors.As(err, &ve) {
				t.Errorf("Parse%s(%s) = %d, %v; want 0 and a *ValueError that matches ErrSyntax (%s)", f.name, short(text), got, err, name)
				continue
			}
			if len(err.Error()) > 512 {
				t.Errorf("Parse%s(%s) message has %d bytes; want at most 512", f.name, short(text), len(err.Error()))
			}
			if want := f.text(0) + ".." + f.text(maxInt64) + ", only the characters " + f.digits; ve.Want != want || ve.Type != "Snowflake" || ve.Op != "parse "+strings.ToLower(f.name) {
				t.Errorf("Parse%s(%s) error = %+v; want Op \"parse %s\", Type \"Snowflake\", Want %q", f.name, short(text), *ve, strings.ToLower(f.name), want)
			}
		}
	}
}

// Every byte at every place: 256 less the alphabet are errors.
func TestShortFormsTakeOnlyTheirAlphabet(t *testing.T) {
	for _, f := range shortForms() {
		zero := f.text(0)
		for at := range f.width {
			for b := range 256 {
				text := zero[:at] + string([]byte{byte(b)}) + zero[at+1:]
				got, err := f.parse(text)
				if strings.IndexByte(f.digits, byte(b)) < 0 {
					if got != 0 || !errors.Is(err, types.ErrSyntax) {
						t.Fatalf("Parse%s(%q) = %d, %v; want 0, ErrSyntax", f.name, text, got, err)
					}
				} else if errors.Is(err, types.ErrSyntax) || err == nil && f.text(got) != text {
					t.Fatalf("Parse%s(%q) = %d, %v; want the ID with this text, or ErrRange", f.name, text, got, err)
				}
			}
		}
	}
}

// Crockford's decoder folds case and takes I, L and O for digits; two URLs
// would then name one row.
func TestBase32TakesNeitherLowerCaseNorLookalikes(t *testing.T) {
	for _, text := range []string{
		"04w86bb0g4007", "04W86Bb0G4007", "O4W86BB0G4007", "o4W86BB0G4007",
		"04W86BB0G400I", "04W86BB0G400i", "04W86BB0G400L", "04W86BB0G400l",
		"04W86BB0G400U", "04W8-6BB0-G40", "04W86BB0G400*", "04W86BB0G400=",
	} {
		if got, err := types.ParseBase32(text); got != 0 || !errors.Is(err, types.ErrSyntax) {
			t.Errorf("ParseBase32(%q) = %d, %v; want 0, ErrSyntax", text, got, err)
		}
	}
}

// A text says by its width or its letters which form it is, where it can. Other
// people's alphabets of the same letters (base62 with lower case first, Flickr's
// base58) cannot be told apart, and read as another ID.
func TestShortFormsOfOneBaseAreNotReadAsAnother(t *testing.T) {
	for _, c := range []struct {
		name, text string
		parse      func(string) (types.Snowflake, error)
	}{
		{"base62 as base58", "0Czks0tP37X", types.ParseBase58},
		{"base62 as base32", "0Czks0tP37X", types.ParseBase32},
		{"base58 as base32", "1QgmVVkniES", types.ParseBase32},
		{"base32 as base62", "04W86BB0G4007", types.ParseBase62},
		{"base32 as base58", "04W86BB0G4007", types.ParseBase58},
		{"the letter O in base58", "1QgmVVkniEO", types.ParseBase58},
		{"the letter I in base58", "1QgmVVkniEI", types.ParseBase58},
		{"the letter l in base58", "1QgmVVkniEl", types.ParseBase58},
		{"the digit 0 in base58", "1QgmVVkniE0", types.ParseBase58},
	} {
		if got, err := c.parse(c.text); got != 0 || !errors.Is(err, types.ErrSyntax) {
			t.Errorf("%s: parse(%q) = %d, %v; want 0, ErrSyntax", c.name, c.text, got, err)
		}
	}
}
