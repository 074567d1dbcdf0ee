package types

import (
	"database/sql/driver"
)

// A NullSnowflake is a [Snowflake] that may be absent: SQL NULL, JSON null. Use it
// for every column that may be NULL. The zero value is absent. A present zero is
// {0, true}, and is another thing.
//
// Two other types also hold a key that may be NULL. With *Snowflake, the JSON
// option omitzero drops a key that points to zero. sql.Null[Snowflake] becomes an
// object in JSON.
type NullSnowflake struct {
	Snowflake Snowflake // the ID; zero where Valid is false
	Valid     bool      // whether there is one
}

// GormDataType makes the column a bigint, as for [Snowflake.GormDataType].
func (NullSnowflake) GormDataType() string { return "bigint" }

// IsZero reports whether n is absent, so that the JSON option omitzero leaves
// it out.
func (n NullSnowflake) IsZero() bool { return !n.Valid }

// String returns the ID in decimal, or "NULL".
func (n NullSnowflake) String() string {
	if !n.Valid {
		return "NULL"
	}
	return n.Snowflake.String()
}

// Value implements [driver.Valuer]: an int64, or nil for NULL. A negative ID is an error,
// as in [Snowflake.Value].
func (n NullSnowflake) Value() (driver.Value, error) {
	if !n.Valid {
		return nil, nil
	}
	return n.Snowflake.Value()
}

// Scan implements [database/sql.Scanner]: NULL makes n absent, all else is as
// in [Snowflake.Scan]. On error n stays as it was.
func (n *NullSnowflake) Scan(src any) error {
	if n == nil {
		return (*Snowflake)(nil).scan(src, "NullSnowflake")
	}
	if b, ok := src.([]byte); src == nil || ok && b == nil {
		*n = NullSnowflake{}
		return nil
	}
	var s Snowflake
	if err := s.scan(src, "NullSnowflake"); err != nil {
		return err
	}
	*n = NullSnowflake{Snowflake: s, Valid: true}
	return nil
}

// MarshalJSON writes null, or the string that a [Snowflake] is. A negative ID
// is an error that matches [ErrRange].
func (n NullSnowflake) MarshalJSON() ([]byte, error) {
	if !n.Valid {
		return []byte("null"), nil
	}
	b, err := n.Snowflake.AppendText(append(make([]byte, 0, maxDigits+2), '"'))
	if err != nil {
		return nil, err
	}
	return append(b, '"'), nil
}

// UnmarshalJSON makes n absent for null, and for the empty string that an absent key
// of a map is; all else is as in [Snowflake.UnmarshalJSON]. On error n stays as it was.
func (n *NullSnowflake) UnmarshalJSON(data []byte) error {
	if n == nil {
		return (*Snowflake)(nil).unmarshalJSON(data, "NullSnowflake")
	}
	// encoding/json hands over a name and a value alike, so the empty string is read
	// as either.
	if string(data) == "null" || string(data) == `""` {
		*n = NullSnowflake{}
		return nil
	}
	var s Snowflake
	if err := s.unmarshalJSON(data, "NullSnowflake"); err != nil {
		return err
	}
	*n = NullSnowflake{Snowflake: s, Valid: true}
	return nil
}

// AppendText appends the ID in decimal, or nothing at all when n is absent. It
// implements [encoding.TextAppender]; its error is that of
// [Snowflake.AppendText].
func (n NullSnowflake) AppendText(b []byte) ([]byte, error) {
	if !n.Valid {
		return b, nil
	}
	return n.Snowflake.AppendText(b)
}

// MarshalText returns the ID in decimal, and an empty text when n is absent.
func (n NullSnowflake) MarshalText() ([]byte, error) {
	return n.AppendText(make([]byte, 0, maxDigits))
}

// UnmarshalText makes n absent for an empty text, as in an empty query parameter or
// XML element. It reads all else as [Parse] does. On error n stays as it was.
func (n *NullSnowflake) UnmarshalText(text []byte) error {
	return storeNull(n, text, "unmarshal text")
}

// storeNull makes n absent for an empty src, and else parses it as store does.
func storeNull[S string | []byte](n *NullSnowflake, src S, op string) error {
	if n == nil {
		return store((*Snowflake)(nil), src, op, "NullSnowflake", wantDecimal)
	}
	if len(src) == 0 {
		*n = NullSnowflake{}
		return nil
	}
	var s Snowflake
	if err := store(&s, src, op, "NullSnowflake", wantDecimal); err != nil {
		return err
	}
	*n = NullSnowflake{Snowflake: s, Valid: true}
	return nil
}
