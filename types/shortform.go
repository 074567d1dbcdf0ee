package types

import "math"

// The short forms are for URLs, file names and people. Each has a fixed width and an
// alphabet in ASCII order, so that the texts sort as the IDs do. Each ID has one spelling,
// and the parser accepts no other, so that no two URLs name one row.
var (
	// base62 is 0-9, A-Z, a-z: 11 characters, letters and digits only.
	base62 = newAlphabet("base62", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11)
	// base58 is base62 without 0, O, I and l, which look like others
	// (Bitcoin's alphabet, Satoshi Nakamoto, base58.h): 11 characters.
	base58 = newAlphabet("base58", "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", 11)
	// base32 is Douglas Crockford's (crockford.com/base32.html), upper case
	// only: 13 characters that survive systems that fold case.
	base32 = newAlphabet("base32", "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13)
)

// An alphabet is a positional number system of fixed width, most significant
// digit first.
type alphabet struct {
	name   string
	digits string
	width  int
	value  [256]byte // the digit that a byte stands for, 0xFF for none
}

func newAlphabet(name, digits string, width int) *alphabet {
	a := &alphabet{name: name, digits: digits, width: width}
	for i := range a.value {
		a.value[i] = 0xFF
	}
	for i := range len(digits) {
		a.value[digits[i]] = byte(i)
	}
	return a
}

// append writes the bits of s as an unsigned number. Every width has room for 64 bits, so a
// negative s does not panic, and the parser refuses its text.
func (a *alphabet) append(b []byte, s Snowflake) []byte {
	var buf [13]byte
	base, n := uint64(len(a.digits)), uint64(s)
	for i := a.width - 1; i >= 0; i-- {
		buf[i] = a.digits[n%base]
		n /= base
	}
	return append(b, buf[:a.width]...)
}

func (a *alphabet) parse(text string) (Snowflake, error) {
	bad := func(err error) (Snowflake, error) {
		return 0, fail("parse "+a.name, "Snowflake", quote(text),
			a.text(0)+".."+a.text(math.MaxInt64)+", only the characters "+a.digits, err)
	}
	if len(text) != a.width {
		return bad(ErrSyntax)
	}
	base := uint64(len(a.digits))
	var n uint64
	tooBig := false
	for i := range len(text) {
		d := a.value[text[i]]
		if d == 0xFF {
			return bad(ErrSyntax)
		}
		// Above this the next digit could carry n past 2^64 and back into range.
		tooBig = tooBig || n > math.MaxInt64/base
		n = n*base + uint64(d)
	}
	if tooBig || n > math.MaxInt64 {
		return bad(ErrRange)
	}
	return Snowflake(n), nil
}

func (a *alphabet) text(s Snowflake) string { return string(a.append(nil, s)) }

// Base62 returns s as 11 characters of 0-9A-Za-z. The texts of non-negative IDs sort as the IDs
// do; no parser accepts the text of a negative s.
func (s Snowflake) Base62() string { return base62.text(s) }

// AppendBase62 appends the text of [Snowflake.Base62] to b.
func (s Snowflake) AppendBase62(b []byte) []byte { return base62.append(b, s) }

// ParseBase62 parses the texts of [Snowflake.Base62] and no others; the error is a
// [*ValueError].
func ParseBase62(text string) (Snowflake, error) { return base62.parse(text) }

// Base58 returns s as 11 characters of base62 less 0, O, I and l, in Bitcoin's alphabet. The
// texts of non-negative IDs sort as the IDs do; no parser accepts the text of a negative s.
func (s Snowflake) Base58() string { return base58.text(s) }

// AppendBase58 appends the text of [Snowflake.Base58] to b.
func (s Snowflake) AppendBase58(b []byte) []byte { return base58.append(b, s) }

// ParseBase58 parses the texts of [Snowflake.Base58] and no others; the error is a
// [*ValueError].
func ParseBase58(text string) (Snowflake, error) { return base58.parse(text) }

// Base32 returns s as 13 characters of Crockford's base 32, in upper case. The texts of
// non-negative IDs sort as the IDs do; no parser accepts the text of a negative s.
func (s Snowflake) Base32() string { return base32.text(s) }

// AppendBase32 appends the text of [Snowflake.Base32] to b.
func (s Snowflake) AppendBase32(b []byte) []byte { return base32.append(b, s) }

// ParseBase32 parses the texts of [Snowflake.Base32] and no others, neither lower case nor the
// letters that Crockford allows in place of digits. The error is a [*ValueError].
func ParseBase32(text string) (Snowflake, error) { return base32.parse(text) }
