package types

import (
	"math"
	"strconv"
)

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

// String returns s in decimal.
func (s Snowflake) String() string { return strconv.FormatInt(int64(s), 10) }

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

// String returns the ID in decimal, or "NULL".
func (n NullSnowflake) String() string {
	if !n.Valid {
		return "NULL"
	}
	return n.Snowflake.String()
}

// AppendText implements [encoding.TextAppender]: it appends the ID in decimal, or nothing when
// n is absent. Its errors are the same as those of [Snowflake.AppendText].
func (n NullSnowflake) AppendText(b []byte) ([]byte, error) {
	if !n.Valid {
		return b, nil
	}
	return n.Snowflake.AppendText(b)
}

// MarshalText returns the ID in decimal, or an empty text when n is absent.
func (n NullSnowflake) MarshalText() ([]byte, error) {
	return n.AppendText(make([]byte, 0, maxDigits))
}

// UnmarshalText makes n absent for an empty text, such as an empty query parameter or XML
// element, and otherwise accepts the texts that [Parse] accepts. On error n is unchanged.
func (n *NullSnowflake) UnmarshalText(text []byte) error {
	return storeNull(n, text, "unmarshal text")
}

// storeNull makes n absent for an empty src and otherwise parses src as store does.
func storeNull[S string | []byte](n *NullSnowflake, src S, op string) error {
	if n == nil {
		return store((*Snowflake)(nil), src, op, "NullSnowflake", wantDecimal)
	}
	if len(src) == 0 {
		*n = NullSnowflake{}
		return nil
	}
	var s Snowflake
	return n.set(&s, store(&s, src, op, "NullSnowflake", wantDecimal))
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
