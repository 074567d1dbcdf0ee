// Package types defines the ID: [Snowflake], a 64-bit primary key, and [NullSnowflake] for
// columns that may be NULL.
//
//	type Order struct {
//		types.Model // ID types.Snowflake: the column id, and "id" in JSON
//		CustomerID  types.Snowflake
//		ParentID    types.NullSnowflake
//	}
//
//	id, err := gen.Next(ctx)                    // of a core.Generator: this package makes no IDs
//	id, err = types.Parse("177026472345612305") // any other spelling is an error
//	text := id.String()                         // 177026472345612305
//	data, err := json.Marshal(id)               // "177026472345612305", a string
//	short := id.Base62()                        // 0D4mYJlnCkr, for URLs
//	assigned := id != 0
//
// [ID] and [NullID] are the same with a mark: the table that the key is of, so that keys of two
// tables do not mix.
//
// Most programs embed [Model] or declare a field of type Snowflake and call nothing in this
// package, because database/sql, encoding/json, GORM and sqlx find the methods that they need.
//
// An ID is 0..9223372036854775807. Zero is a valid value, which gormplugin and sqlxhelper take to
// mean "not assigned yet". A conversion can produce a negative Snowflake; Value and every
// marshaler refuse it, because it could not be read back, and only String writes it.
//
// # Guarantees
//
//   - A value that is written as text, JSON, SQL or bytes is read back equal. Every form has one
//     spelling, and no other is read, with three exceptions: JSON may have an integer number
//     instead of a string, because other systems write it; an absent NullSnowflake is null as a
//     JSON value and the empty string as the name of a JSON member, and either is read in both
//     places; and mapstructure may pass any integer type, or a whole float64 below 2^53.
//   - The numbers, the bytes of [Snowflake.MarshalBinary], those of [Snowflake.UUID] and the
//     short forms ([Snowflake.Base62], [Snowflake.Base58], [Snowflake.Base32]) sort as the IDs
//     do. Decimal text does not ("9" > "10"), and neither do base 62 and base 58 under a
//     collation that ignores case, such as MySQL's default, where two of their texts can even be
//     equal. Store the number, or base 32.
//   - A text does not tell its form, and 11 digits are an ID in decimal and another one
//     in base 62. Let a column or a parameter have one form, instead of trying several parsers.
//   - A failed parse, scan or unmarshal returns a [*ValueError] and leaves the destination
//     unchanged, except that SQL NULL sets a Snowflake to zero besides the error, so that the
//     previous row's key does not stay there.
//   - Only [MustParse] panics.
//
// # JSON
//
// In JSON an ID is a string, because JavaScript keeps numbers as doubles, which hold 53 bits,
// while an ID has 63. Snowflake deliberately has no MarshalJSON: encoding/json and
// encoding/json/v2 write the same string by [Snowflake.AppendText], and faster. UnmarshalJSON
// reads a number as well as a string.
//
// To omit an ID that is not assigned, use the option omitzero; the effect of omitempty differs
// between the two encoders. encoding/json/v2 matches names in their case, so {"ID":"5"} leaves the
// ID of [Model] unchanged without an error, and it refuses repeated names and text that is not
// UTF-8. Its options MatchCaseInsensitiveNames, jsontext.AllowDuplicateNames and
// jsontext.AllowInvalidUTF8 restore the behaviour of encoding/json, which is the same with Go
// 1.27, where it is built on v2.
//
// The package imports only the standard library. Its values are plain data, to be copied,
// compared and used as map keys. Methods with a value receiver are safe for concurrent use;
// methods that store into their receiver are as safe as an assignment. docs/types.md lists what
// gin, echo, gqlgen, bun, ent, sqlc, go-redis, CBOR, MessagePack, viper and JSON schemas do with
// the types.
//
// This package is stable.
package types
