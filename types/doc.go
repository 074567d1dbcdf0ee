// Package types defines the ID: [Snowflake], a 64-bit primary key, and
// [NullSnowflake] for columns that may be NULL.
//
// Most programs embed [Model] or declare a field of type Snowflake, and call
// nothing here. database/sql, encoding/json, GORM and sqlx find the methods that
// they need.
//
// # What is guaranteed
//
//   - A value that is written as text, JSON, SQL or bytes is read back equal, or
//     with an error. Every form has one spelling, and no other is read. There are
//     three exceptions. JSON may have an integer number instead of a string, because
//     other systems write it. An absent NullSnowflake is null as a value and the
//     empty string as a name in JSON, and either is read in both places. mapstructure may hand over any type of integer, and a
//     whole float64 below 2^53.
//   - JSON is a string. JavaScript keeps numbers as doubles, which hold 53 bits;
//     an ID has 63.
//   - The order of the decimal numbers, of the bytes of [Snowflake.MarshalBinary]
//     and of the short forms ([Snowflake.Base62], [Snowflake.Base58],
//     [Snowflake.Base32]) is the order of the IDs. Decimal text does not sort:
//     "9" > "10". Nor do base 62 and base 58 where case does not count: under
//     MySQL's default collations two of their texts can even be equal. Store
//     the number, or base 32.
//   - A failed parse, scan or unmarshal leaves the destination as it was and
//     returns a [*ValueError]. SQL NULL scanned into a Snowflake is the exception:
//     the error also sets the destination to zero. So the previous row's key does
//     not stay in it.
//   - Nothing panics but [MustParse].
//
// # Under which conditions
//
// IDs are 0..9223372036854775807. Zero is a valid value that means "not assigned
// yet" to gormplugin and sqlxhelper. A conversion can make a negative Snowflake.
// Value and every marshaler refuse it, because nothing would read it back. Only String
// writes it as it is.
//
// # Encoding and JSON
//
// Snowflake has no MarshalJSON, on purpose. encoding/json and encoding/json/v2 use
// its text methods and write the same string. Without MarshalJSON the first is
// about twice as fast, and the second allocates nothing. Only UnmarshalJSON exists,
// to read a number as well as a string.
//
// To leave out an ID that is not assigned use the option omitzero. What omitempty
// does differs between the two encoders.
//
// # Other libraries
//
// docs/types.md lists what gin, echo, bun, go-redis, CBOR, MessagePack, viper and
// JSON schemas do with the types.
//
// The package imports only the standard library, and values are plain data: copy,
// compare and use them as map keys freely. Methods with a value receiver are safe
// for concurrent use. Methods that store into their receiver are as safe as an
// assignment.
package types
