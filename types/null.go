package types

import (
	"database/sql/driver"
)

// A NullSnowflake is a [Snowflake] that may be absent: SQL NULL, JSON null. Use it for every
// column that may be NULL. The zero value is absent and differs from a present zero, which is
// {0, true}.
//
// Prefer it to the two other types that can hold a nullable key: the JSON option omitzero drops
// a *Snowflake that points to zero, and sql.Null[Snowflake] becomes an object in JSON.
type NullSnowflake struct {
	Snowflake Snowflake // the ID; zero if Valid is false
	Valid     bool      // whether the ID is present
}

// GormDataType makes the column a bigint, as for [Snowflake.GormDataType].
func (NullSnowflake) GormDataType() string { return "bigint" }

// IsZero reports whether n is absent, so that the JSON option omitzero omits it.
func (n NullSnowflake) IsZero() bool { return !n.Valid }

// String returns the ID in decimal, or "NULL".
func (n NullSnowflake) String() string {
	if !n.Valid {
		return "NULL"
	}
	return n.Snowflake.String()
}

// Value implements [driver.Valuer]. It returns an int64, or nil for NULL. A negative ID is an
// error, as in [Snowflake.Value].
func (n NullSnowflake) Value() (driver.Value, error) {
	if !n.Valid {
		return nil, nil
	}
	return n.Snowflake.Value()
}

// Scan implements [database/sql.Scanner]. NULL makes n absent; other values are treated as by
// [Snowflake.Scan]. On error n is unchanged.
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

// MarshalJSON returns null, or the JSON string of the [Snowflake]. A negative ID returns an
// error that matches [ErrRange].
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

// UnmarshalJSON makes n absent for null, and for the empty string, which is how an absent map
// key is written. Other input is treated as by [Snowflake.UnmarshalJSON]. On error n is
// unchanged.
func (n *NullSnowflake) UnmarshalJSON(data []byte) error {
	if n == nil {
		return (*Snowflake)(nil).unmarshalJSON(data, "NullSnowflake")
	}
	// encoding/json passes names and values alike, so the empty string is accepted as both.
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
	if err := store(&s, src, op, "NullSnowflake", wantDecimal); err != nil {
		return err
	}
	*n = NullSnowflake{Snowflake: s, Valid: true}
	return nil
}
