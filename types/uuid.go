package types

import (
	"encoding/binary"
	"encoding/hex"
	"math"
)

// uuidMark ends the UUID of every key: "snowkey" in ASCII, so that a UUID of another program
// passes for one with a probability of 2^-60.
const uuidMark = "snowkey"

// UUID returns s as a UUID of version 8 (RFC 9562), for a column that has to be one, and for
// the way from keys to UUIDs. Text and bytes sort as the IDs do, and [FromUUID] reads them
// back. The text has the 16 hexadecimal digits of s in order, which are "k" here:
//
//	kkkkkkkk-kkkk-8kkk-9k73-6e6f776b6579
//
//	bits   0..47  bits 63..16 of s        bits  64..67  1001, the variant 10 and 01
//	bits  48..51  1000, the version       bits  68..71  bits 3..0 of s
//	bits  52..63  bits 15..4 of s         bits 72..127  "snowkey" in ASCII
//
// The two bits after the variant are not 00, because MariaDB's type UUID refuses a UUID of
// version 8 whose ninth byte is 0x80.
//
// Keys of two tables that are equal have equal UUIDs. FromUUID refuses that of a negative s.
// A library's own type is made by a conversion, such as google/uuid's by uuid.UUID(s.UUID());
// keysql.Column.UUID is the same in SQL.
func (s Snowflake) UUID() [16]byte {
	var u [16]byte
	n := uint64(s)
	binary.BigEndian.PutUint64(u[:], n&^0xFFFF|0x8000|n>>4&0xFFF)
	u[8] = 0x90 | byte(n&0xF)
	copy(u[9:], uuidMark)
	return u
}

// FromUUID returns the ID whose [Snowflake.UUID] is u. Any other UUID returns 0 and a
// [*ValueError].
func FromUUID(u [16]byte) (Snowflake, error) {
	upper := binary.BigEndian.Uint64(u[:])
	n := upper&^0xFFFF | upper&0xFFF<<4 | uint64(u[8]&0xF)
	err := ErrSyntax
	if Snowflake(n).UUID() == u {
		if n <= math.MaxInt64 {
			return Snowflake(n), nil
		}
		err = ErrRange
	}
	return 0, fail("read UUID", "Snowflake", hex.EncodeToString(u[:]),
		"00000000-0000-8000-9073-6e6f776b6579..7fffffff-ffff-8fff-9f73-6e6f776b6579, of a key", err)
}
