package types

import (
	"encoding/binary"
	"math"
)

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
