// Package types defines the ID: [Snowflake], a 64-bit primary key, and [NullSnowflake] for
// columns that may be NULL.
//
// Most programs embed [Model] or declare a field of type Snowflake and call nothing in this
// package, because database/sql, encoding/json, GORM and sqlx find the methods that they
// need.
//
// # Guarantees
//
//   - A value that is written as text, JSON, SQL or bytes is read back equal. Every form has
//     one spelling, and no other is read, with three exceptions: JSON may have an integer
//     number instead of a string, because other systems write it; an absent NullSnowflake is
//     null as a JSON value and the empty string as the name of a JSON member, and either is
//     read in both places; and mapstructure may pass any integer type, or a whole float64
//     below 2^53.
//   - JSON is a string, because JavaScript keeps numbers as doubles, which hold 53 bits, while
//     an ID has 63.
//   - The decimal numbers, the bytes of [Snowflake.MarshalBinary] and the short forms
//     ([Snowflake.Base62], [Snowflake.Base58], [Snowflake.Base32]) sort as the IDs do. Decimal
//     text does not ("9" > "10"), and neither do base 62 and base 58 under a collation that
//     ignores case, such as MySQL's default, where two of their texts can even be equal. Store
//     the number, or base 32.
//   - A failed parse, scan or unmarshal returns a [*ValueError] and leaves the destination
//     unchanged. The exception is SQL NULL scanned into a Snowflake: besides the error it sets
//     the destination to zero, so that the previous row's key does not stay there.
//   - Only [MustParse] panics.
//
// # Conditions
//
// IDs are 0..9223372036854775807. Zero is a valid value, which gormplugin and sqlxhelper take
// to mean "not assigned yet". A conversion can produce a negative Snowflake; Value and every
// marshaler refuse it, because it could not be read back, and only String writes it.
//
// # Encoding and JSON
//
// Snowflake deliberately has no MarshalJSON. Without it, encoding/json and encoding/json/v2
// use the text methods and write the same string; the former is about twice as fast and the
// latter does not allocate. UnmarshalJSON exists only to read a number as well as a string.
//
// To omit an ID that is not assigned, use the option omitzero; the effect of omitempty
// differs between the two encoders.
//
// encoding/json/v2 matches names in their case: {"ID":"5"} leaves the ID of [Model] as it was,
// without an error, where encoding/json reads it. It also refuses an object that has a name
// twice, and text that is not UTF-8. Its options MatchCaseInsensitiveNames,
// jsontext.AllowDuplicateNames and jsontext.AllowInvalidUTF8 read what encoding/json does.
// That encoding/json is built on v2 since Go 1.27 changes none of this.
//
// # Other libraries
//
// docs/types.md lists what gin, echo, bun, go-redis, CBOR, MessagePack, viper and JSON
// schemas do with the types.
//
// The package imports only the standard library. Its values are plain data, to be copied,
// compared and used as map keys. Methods with a value receiver are safe for concurrent use;
// methods that store into their receiver are as safe as an assignment.
package types
