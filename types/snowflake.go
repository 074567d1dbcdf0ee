package types

import (
	"cmp"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// A Snowflake is a 64-bit primary key that is assigned before the insert. The meaning of its
// bits is not known here: core.Layout takes them apart.
//
// Store it in a signed 64-bit column: BIGINT, or INTEGER on SQLite. The zero value means "not
// assigned yet". For a column that may be NULL use [NullSnowflake].
//
// In JSON it is a string, so that JavaScript keeps every digit. There is no MarshalJSON,
// because the encoders use [Snowflake.AppendText] (see the package comment).
type Snowflake int64

// Parse parses the canonical decimal form: digits only, without a sign and without a leading
// zero except in "0" itself, 0..9223372036854775807. Anything else returns 0 and a
// [*ValueError].
func Parse(s string) (Snowflake, error) {
	n, err := parseDecimal(s)
	if err != nil {
		return 0, &ValueError{Op: "parse", Type: "Snowflake", Value: quote(s), Want: wantDecimal, Err: err}
	}
	return n, nil
}

// MustParse is like [Parse] but panics on an error. It is for values known to be good, such as
// constants in tests.
func MustParse(s string) Snowflake {
	id, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return id
}

// maxDigits is the length of 9223372036854775807.
const maxDigits = 19

// parseDecimal is the one decimal parser, for Parse, Scan, UnmarshalText and UnmarshalJSON.
// strconv.ParseInt would accept "+5", "-0" and "007", and takes twice as long.
func parseDecimal[S string | []byte](s S) (Snowflake, error) {
	if len(s) == 0 || len(s) > maxDigits || s[0] == '0' && len(s) > 1 {
		return 0, verdict(s)
	}
	var n uint64 // 19 digits fit
	for i := range len(s) {
		d := s[i] - '0' // wraps around for bytes below '0', and is then above 9
		if d > 9 {
			return 0, verdict(s)
		}
		n = n*10 + uint64(d)
	}
	if n > math.MaxInt64 {
		return 0, ErrRange
	}
	return Snowflake(n), nil
}

// verdict returns why s is not an ID: ErrRange for a whole number in canonical form, such as a
// negative one, and ErrSyntax otherwise.
func verdict[S string | []byte](s S) error {
	digits := s
	if len(s) > 0 && s[0] == '-' {
		digits = s[1:]
	}
	if len(digits) == 0 || digits[0] == '0' {
		return ErrSyntax
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return ErrSyntax
		}
	}
	return ErrRange
}

// Int64 returns s as an int64.
func (s Snowflake) Int64() int64 { return int64(s) }

// String returns s in decimal.
func (s Snowflake) String() string { return strconv.FormatInt(int64(s), 10) }

// IsZero reports whether s is zero, which means "not assigned yet". The JSON option omitzero
// and bun's nullzero call it; docs/types.md says where nullzero is appropriate.
func (s Snowflake) IsZero() bool { return s == 0 }

// Compare returns -1, 0 or +1 if s is smaller than, equal to or greater than o. It fits
// slices.SortFunc.
func (s Snowflake) Compare(o Snowflake) int { return cmp.Compare(s, o) }

// Add returns s + d. ent requires it of every integer type in GoType.
func (s Snowflake) Add(d Snowflake) Snowflake { return s + d }

// GormDataType makes the column a bigint without AUTO_INCREMENT, so that GORM does not
// overwrite the assigned key with one from the database.
func (Snowflake) GormDataType() string { return "bigint" }

// Value implements [driver.Valuer]. It returns an int64, never NULL. A negative s returns an
// error that matches [ErrRange], because once stored it would make Scan refuse the row. To find
// or repair such rows, pass an int64.
func (s Snowflake) Value() (driver.Value, error) {
	if s < 0 {
		return nil, s.negative("SQL")
	}
	return int64(s), nil
}

// Scan implements [database/sql.Scanner]. It accepts int64, uint64, and decimal text as string
// or []byte, each within 0..9223372036854775807, and does not retain the bytes. NULL returns an
// error that matches [ErrNull] and sets s to zero. Any other value returns a [*ValueError] and
// leaves s unchanged.
func (s *Snowflake) Scan(src any) error {
	return s.scan(src, "Snowflake")
}

// scan is Scan for s, which is all or part of a value of the named type.
func (s *Snowflake) scan(src any, into string) error {
	if s == nil {
		return fail("scan", into, fmt.Sprintf("%T", src), wantReceiver, ErrSyntax)
	}
	switch v := src.(type) {
	case int64:
		if v < 0 {
			return fail("scan", into, strconv.FormatInt(v, 10), wantDecimal, ErrRange)
		}
		*s = Snowflake(v)
	case uint64:
		if v > math.MaxInt64 {
			return fail("scan", into, strconv.FormatUint(v, 10), wantDecimal, ErrRange)
		}
		*s = Snowflake(v)
	case []byte:
		if v == nil { // a driver's way to say NULL, where it does not use nil itself
			*s = 0
			return fail("scan", into, "NULL", "a value that is not NULL, or a NullSnowflake to scan into", ErrNull)
		}
		return store(s, v, "scan", into, wantDecimal)
	case string:
		return store(s, v, "scan", into, wantDecimal)
	case nil:
		*s = 0
		return fail("scan", into, "NULL", "a value that is not NULL, or a NullSnowflake to scan into", ErrNull)
	default:
		return fail("scan", into, describe(src), "int64, uint64, or decimal text, 0..9223372036854775807", ErrSyntax)
	}
	return nil
}

// AppendText implements [encoding.TextAppender]: it appends s in decimal to b. All decimal
// forms use it. A negative s returns b unchanged and [ErrRange].
func (s Snowflake) AppendText(b []byte) ([]byte, error) {
	if s < 0 {
		return b, s.negative("text")
	}
	return strconv.AppendInt(b, int64(s), 10), nil
}

// MarshalText returns s in decimal, or [ErrRange] for a negative s. JSON, XML, YAML, flags and
// map keys use it.
func (s Snowflake) MarshalText() ([]byte, error) {
	b, err := s.AppendText(make([]byte, 0, maxDigits))
	if err != nil {
		return nil, err
	}
	return b, nil
}

// UnmarshalText accepts the texts that [Parse] accepts. On error s is unchanged.
func (s *Snowflake) UnmarshalText(text []byte) error {
	return store(s, text, "unmarshal text", "Snowflake", wantDecimal)
}

// UnmarshalJSON accepts a string in the form that [Parse] accepts, or the same digits as a
// number, without fraction, exponent or escapes. As everywhere in encoding/json, null leaves s
// unchanged, and so does an error.
func (s *Snowflake) UnmarshalJSON(data []byte) error {
	return s.unmarshalJSON(data, "Snowflake")
}

// unmarshalJSON is UnmarshalJSON for s, which is all or part of a value of the named type.
func (s *Snowflake) unmarshalJSON(data []byte, into string) error {
	if string(data) == "null" {
		return nil
	}
	digits := data
	if n := len(data); n >= 2 && data[0] == '"' && data[n-1] == '"' {
		digits = data[1 : n-1]
	}
	n, err := parseDecimal(digits)
	if err != nil {
		return fail("unmarshal JSON", into, quote(data), wantJSON, err)
	}
	if s == nil {
		return fail("unmarshal JSON", into, quote(data), wantReceiver, ErrSyntax)
	}
	*s = n
	return nil
}

// MarshalBinary returns s as 8 bytes, big-endian, so that the bytes sort as the IDs do. A
// negative s returns an error that matches [ErrRange]. encoding/gob uses it.
func (s Snowflake) MarshalBinary() ([]byte, error) { return s.AppendBinary(make([]byte, 0, 8)) }

// AppendBinary implements [encoding.BinaryAppender]: it appends the bytes of
// [Snowflake.MarshalBinary] to b. On error it returns b unchanged.
func (s Snowflake) AppendBinary(b []byte) ([]byte, error) {
	if s < 0 {
		return b, s.negative("binary")
	}
	return binary.BigEndian.AppendUint64(b, uint64(s)), nil
}

// UnmarshalBinary reads the 8 bytes of [Snowflake.MarshalBinary]. On error s is unchanged.
func (s *Snowflake) UnmarshalBinary(data []byte) error {
	const want = "8 bytes, big-endian, first bit zero"
	if s == nil {
		return fail("unmarshal binary", "Snowflake", quote(data), wantReceiver, ErrSyntax)
	}
	if len(data) != 8 {
		return fail("unmarshal binary", "Snowflake", quote(data), want, ErrSyntax)
	}
	n := binary.BigEndian.Uint64(data)
	if n > math.MaxInt64 {
		return fail("unmarshal binary", "Snowflake", quote(data), want, ErrRange)
	}
	*s = Snowflake(n)
	return nil
}

// store parses src and only then writes s.
func store[S string | []byte](s *Snowflake, src S, op, into, want string) error {
	if s == nil {
		return fail(op, into, quote(src), wantReceiver, ErrSyntax)
	}
	n, err := parseDecimal(src)
	if err != nil {
		return fail(op, into, quote(src), want, err)
	}
	*s = n
	return nil
}

func fail(op, into, value, want string, err error) error {
	return &ValueError{Op: op, Type: into, Value: value, Want: want, Err: err}
}

// negative is the error of Value and of every marshaler for a value that no parser would
// accept.
func (s Snowflake) negative(form string) error {
	return &ValueError{Op: "marshal Snowflake", Type: form, Value: s.String(), Want: "0..9223372036854775807", Err: ErrRange}
}

// describe returns a value of a type that Scan does not accept, as text.
func describe(src any) string {
	switch v := src.(type) {
	case float64:
		return "float64 " + strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return "bool " + strconv.FormatBool(v)
	default:
		// Not the value: its String method is not ours to trust with a
		// bounded, panic-free answer.
		return fmt.Sprintf("%.*s", maxQuoted, fmt.Sprintf("%T", src))
	}
}
