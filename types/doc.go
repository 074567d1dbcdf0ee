// Package types holds the ID itself: [Snowflake], a 64-bit primary key, and
// [NullSnowflake], the same for a column that may be NULL.
//
// Most programs embed [Model] or declare a field of type Snowflake, and never
// call anything here: database/sql, encoding/json, GORM and sqlx find the
// methods they need.
//
// # What is guaranteed
//
//   - A value that leaves as text, JSON, SQL or bytes comes back equal, or not
//     at all. Every form has one spelling: what the package would not write, it
//     does not read. There are two exceptions. JSON may have an integer number
//     instead of a string, because other systems write it. mapstructure may hand
//     over any type of integer, and a whole float64 below 2^53.
//   - JSON is a string. JavaScript keeps numbers as doubles, which hold 53 bits;
//     an ID has 63.
//   - The order of the decimal numbers, of the bytes of [Snowflake.MarshalBinary]
//     and of the short forms ([Snowflake.Base62], [Snowflake.Base58],
//     [Snowflake.Base32]) is the order of the IDs. Decimal text does not sort:
//     "9" > "10". Nor do base 62 and base 58 where case does not count: under
//     MySQL's default collations two of their texts can even be equal. Store
//     the number, or base 32.
//   - A failed parse, scan or unmarshal leaves the destination as it was and
//     returns a [*ValueError]. The exception is SQL NULL scanned into a
//     Snowflake: that is an error too, and sets the destination to zero, so that
//     the key of the previous row cannot pass for this row's.
//   - Nothing panics but [MustParse].
//
// # Under which conditions
//
// IDs are 0..9223372036854775807. Zero is a valid value that means "not
// assigned yet" to gormplugin and sqlxhelper. A negative Snowflake can be made
// by a conversion; it is written to SQL as it is, prints as it is, and is
// refused by every marshaler, because no parser would take it back.
//
// # Encoding and JSON
//
// Snowflake has no MarshalJSON, on purpose. encoding/json and encoding/json/v2
// both use its text methods and write the same string; without MarshalJSON the
// first is about twice as fast and the second allocates nothing. Only
// UnmarshalJSON exists, to read a number as well as a string.
//
// To leave out an ID that is not assigned use the option omitzero. What omitempty
// does differs between the two encoders.
//
// # Other libraries
//
// docs/types.md lists what web frameworks, encoders, ORMs and others do with the
// types: gin, echo, bun, go-redis, CBOR, MessagePack, viper, JSON schemas.
//
// The package imports only the standard library, and values are plain data:
// copy, compare and use them as map keys freely. Methods with a value receiver
// are safe for concurrent use; methods that store into their receiver are as
// safe as an assignment to it.
package types
