// Package bwmarrin reads the short texts that github.com/bwmarrin/snowflake has made of its IDs,
// so that links and files keep their meaning after a program has moved to package types.
//
// Each key has one text in each form, and the readers accept no other, where those of the library
// overflow into another key without an error: its ParseBase58 reads 20 times "Z" as
// -7300528153513951233, and the empty text as 0.
//
// Read a text only as the form in which it was written: nothing in it says which that is.
// [types.Snowflake.Base58] and [types.Snowflake.Base62] have the same letters in another order, so
// [types.ParseBase58] and [types.ParseBase62] accept texts of the library's Base58, and
// ParseBase58 accepts some of theirs, as other keys. For keys of 14 digits or more no other two
// readers, here and in package types, accept the same text.
//
// The other forms of the library need no reader: String, Bytes and JSON are the decimal text that
// package types reads and writes, IntBytes are the bytes of [types.Snowflake.MarshalBinary], and
// Base2 and Base36 agree with [strconv.ParseInt].
//
// This package is stable.
package bwmarrin

import (
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/snowkey/snowkey/types"
)

// base58 is the library's alphabet: that of Flickr, with lower case first.
const base58 = "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ"

// ParseBase58 parses the texts that the library's ID.Base58 returns for 0..9223372036854775807:
// 1 to 11 characters, without a leading "1" except in "1" itself, which is 0. Any other text
// returns 0 and a [*types.ValueError].
func ParseBase58(text string) (types.Snowflake, error) {
	const want = "1..npL6MjP8Qfc, only the characters " + base58 + ", no leading 1"
	bad := func(err error) (types.Snowflake, error) { return refuse("base58", text, want, err) }
	if text == "" || text[0] == base58[0] && len(text) > 1 {
		return bad(types.ErrSyntax)
	}
	var n uint64
	tooBig := false
	for i := range len(text) {
		d := strings.IndexByte(base58, text[i])
		if d < 0 {
			return bad(types.ErrSyntax)
		}
		// Above this the next digit could carry n past 2^64 and back into range.
		tooBig = tooBig || n > math.MaxInt64/58
		n = n*58 + uint64(d)
	}
	if tooBig || n > math.MaxInt64 {
		return bad(types.ErrRange)
	}
	return types.Snowflake(n), nil
}

// ParseBase64 parses the texts that the library's ID.Base64 returns for 0..9223372036854775807:
// the base 64 of the decimal text, with padding. Any other text returns 0 and a
// [*types.ValueError].
func ParseBase64(text string) (types.Snowflake, error) {
	const want = "the base 64 of a decimal integer 0..9223372036854775807"
	decimal, err := base64.StdEncoding.DecodeString(text)
	// The decoder skips line breaks, and ignores the last bits before the padding.
	if err != nil || base64.StdEncoding.EncodeToString(decimal) != text {
		return refuse("base64", text, want, types.ErrSyntax)
	}
	id, err := types.Parse(string(decimal))
	if e := (*types.ValueError)(nil); errors.As(err, &e) {
		return refuse("base64", text, want, e.Err)
	}
	return id, nil
}

// refuse returns the error for a text, which is cut, as types cuts what it repeats.
func refuse(form, text, want string, err error) (types.Snowflake, error) {
	const most = 64
	value := strconv.Quote(text[:min(len(text), most)])
	if len(text) > most {
		value += "… (" + strconv.Itoa(len(text)) + " bytes)"
	}
	return 0, &types.ValueError{Op: "parse bwmarrin's " + form, Type: "Snowflake", Value: value, Want: want, Err: err}
}
