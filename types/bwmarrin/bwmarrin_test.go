package bwmarrin_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/types"
	"github.com/snowkey/snowkey/types/bwmarrin"
)

const alphabet = "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"

// spell writes n in the alphabet with math/big, and with its digits, 0-9a-zA-Z.
func spell(n *big.Int) string {
	const bigDigits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return strings.Map(func(r rune) rune { return rune(alphabet[strings.IndexRune(bigDigits, r)]) }, n.Text(58))
}

// internal/proof/lab/compat reads many more keys of what the library itself writes.
func TestTextsOfKnownKeysAreRead(t *testing.T) {
	for _, c := range []struct {
		id             types.Snowflake
		base58, base64 string
	}{
		{0, "1", "MA=="},
		{1, "2", "MQ=="},
		{57, "Z", "NTc="},
		{58, "21", "NTg="},
		{123, "38", "MTIz"},
		{1541815603606036480, spell(big.NewInt(1541815603606036480)), "MTU0MTgxNTYwMzYwNjAzNjQ4MA=="},
		{math.MaxInt64, "npL6MjP8Qfc", "OTIyMzM3MjAzNjg1NDc3NTgwNw=="},
	} {
		if got, err := bwmarrin.ParseBase58(c.base58); got != c.id || err != nil {
			t.Errorf("ParseBase58(%q) = %d, %v; want %d, nil", c.base58, got, err, c.id)
		}
		if got, err := bwmarrin.ParseBase64(c.base64); got != c.id || err != nil {
			t.Errorf("ParseBase64(%q) = %d, %v; want %d, nil", c.base64, got, err, c.id)
		}
	}
}

// in64 is the base 64 of a text that ID.Base64 would not write.
func in64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// RELIABILITY: the texts that no form may accept, and for base 64 also their base 64.
func TestWhatTheLibraryDoesNotWriteIsRefused(t *testing.T) {
	megabyte := 1 << 20
	above := new(big.Int).Add(big.NewInt(math.MaxInt64), big.NewInt(1))
	for _, c := range []struct {
		form, text string
		want       error
	}{
		{"base58", "", types.ErrSyntax},
		{"base58", "11", types.ErrSyntax}, // 007
		{"base58", "1Z", types.ErrSyntax},
		{"base58", " Z", types.ErrSyntax},
		{"base58", "Z ", types.ErrSyntax},
		{"base58", "Z\n", types.ErrSyntax},
		{"base58", "+5", types.ErrSyntax},
		{"base58", "-2", types.ErrSyntax},
		{"base58", "0", types.ErrSyntax},
		{"base58", "O", types.ErrSyntax},
		{"base58", "I", types.ErrSyntax},
		{"base58", "l", types.ErrSyntax},
		{"base58", "0x10", types.ErrSyntax},
		{"base58", "2_2", types.ErrSyntax},
		{"base58", "2.2", types.ErrSyntax},
		{"base58", "2\x002", types.ErrSyntax},
		{"base58", "\xff", types.ErrSyntax},
		{"base58", "５", types.ErrSyntax},
		{"base58", spell(above), types.ErrRange},
		{"base58", spell(new(big.Int).Lsh(big.NewInt(1), 64)), types.ErrRange},
		{"base58", spell(new(big.Int).Lsh(big.NewInt(58), 64)), types.ErrRange}, // the digit before the last makes 2^64, and the last 0
		{"base58", strings.Repeat("Z", 20), types.ErrRange},
		{"base58", strings.Repeat("Z", megabyte), types.ErrRange},
		{"base58", strings.Repeat("Z", megabyte) + "!", types.ErrSyntax},

		{"base64", "", types.ErrSyntax},
		{"base64", "MTIz\n", types.ErrSyntax},
		{"base64", "MT\r\nIz", types.ErrSyntax},
		{"base64", " MTIz", types.ErrSyntax},
		{"base64", "MQ", types.ErrSyntax},   // no padding
		{"base64", "MR==", types.ErrSyntax}, // other last bits
		{"base64", "MQ===", types.ErrSyntax},
		{"base64", "MQ==MQ==", types.ErrSyntax},
		{"base64", "M-_z", types.ErrSyntax}, // of URLs
		{"base64", "123", types.ErrSyntax},
		{"base64", "1234", types.ErrSyntax},
		{"base64", "\xff\xff\xff\xff", types.ErrSyntax},
		{"base64", in64(" 5"), types.ErrSyntax},
		{"base64", in64("5 "), types.ErrSyntax},
		{"base64", in64("+5"), types.ErrSyntax},
		{"base64", in64("-0"), types.ErrSyntax},
		{"base64", in64("007"), types.ErrSyntax},
		{"base64", in64("1_000"), types.ErrSyntax},
		{"base64", in64("0x10"), types.ErrSyntax},
		{"base64", in64("1e3"), types.ErrSyntax},
		{"base64", in64("1.0"), types.ErrSyntax},
		{"base64", in64("５"), types.ErrSyntax},
		{"base64", in64("1\x002"), types.ErrSyntax},
		{"base64", in64("\xff"), types.ErrSyntax},
		{"base64", in64("-1"), types.ErrRange},
		{"base64", in64("-9223372036854775808"), types.ErrRange},
		{"base64", in64("9223372036854775808"), types.ErrRange},
		{"base64", in64("18446744073709551621"), types.ErrRange},
		{"base64", in64(strings.Repeat("9", megabyte)), types.ErrRange},
		{"base64", strings.Repeat("A", megabyte), types.ErrSyntax},
	} {
		parse := bwmarrin.ParseBase58
		if c.form == "base64" {
			parse = bwmarrin.ParseBase64
		}
		shown := fmt.Sprintf("%.40q", c.text)
		got, err := parse(c.text)
		var ve *types.ValueError
		if got != 0 || !errors.Is(err, c.want) || !errors.As(err, &ve) {
			t.Errorf("%s: parse(%s) = %d, %v; want 0 and a *ValueError that matches %q", c.form, shown, got, err, c.want)
			continue
		}
		if ve.Op != "parse bwmarrin's "+c.form || len(err.Error()) > 512 || !strings.HasPrefix(err.Error(), "types: cannot parse bwmarrin's "+c.form+` "`) {
			t.Errorf("%s: parse(%s) error = %.600q; want at most 512 bytes that name the form and the text", c.form, shown, err)
		}
	}
}

// Each reader names the texts of the smallest and the greatest key.
func TestErrorsNameTheGreatestText(t *testing.T) {
	_, err := bwmarrin.ParseBase58("")
	if want := "1.." + spell(big.NewInt(math.MaxInt64)) + ", only the characters " + alphabet; !strings.Contains(err.Error(), want) {
		t.Errorf("ParseBase58(\"\") error = %v; want %q in it", err, want)
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	text := spell(big.NewInt(1541815603606036480))
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := bwmarrin.ParseBase58(text); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("ParseBase58: %v allocations; want none", n)
	}
}

// Law: a text is accepted if and only if it is the one of its key, by math/big.
func FuzzParseBase58(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		n, ok := new(big.Int), text != ""
		for i := range len(text) {
			d := strings.IndexByte(alphabet, text[i])
			ok = ok && d >= 0
			n.Add(n.Mul(n, big.NewInt(58)), big.NewInt(int64(max(d, 0))))
		}
		ok = ok && n.BitLen() <= 63 && spell(n) == text
		checkParse(t, "ParseBase58", bwmarrin.ParseBase58, text, n, ok)
	})
}

// Law: a text is accepted if and only if it is the one of its key, by math/big.
func FuzzParseBase64(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		decimal, err := base64.StdEncoding.Strict().DecodeString(text)
		n, ok := new(big.Int).SetString(string(decimal), 10)
		if !ok {
			n = new(big.Int)
		}
		ok = ok && err == nil && n.Sign() >= 0 && n.BitLen() <= 63 && in64(n.String()) == text
		checkParse(t, "ParseBase64", bwmarrin.ParseBase64, text, n, ok)
	})
}

func checkParse(t *testing.T, name string, parse func(string) (types.Snowflake, error), text string, want *big.Int, ok bool) {
	t.Helper()
	got, err := parse(text)
	if ok && (got.Int64() != want.Int64() || err != nil) {
		t.Fatalf("%s(%q) = %d, %v; want %v, nil", name, text, got, err, want)
	}
	var ve *types.ValueError
	if !ok && (got != 0 || !errors.As(err, &ve) || len(err.Error()) > 512) {
		t.Fatalf("%s(%q) = %d, %v; want 0 and a short *ValueError", name, text, got, err)
	}
}
