package types

import (
	"database/sql/driver"
	"fmt"
	"math"
	"strconv"
)

// GormDataType makes the column a bigint without AUTO_INCREMENT, so that GORM does not
// overwrite the assigned key with one from the database.
func (Snowflake) GormDataType() string { return "bigint" }

// Value implements [driver.Valuer]. It returns an int64, never NULL. A negative s returns an
// error that matches [ErrRange], and its text as the value, because once stored it would make Scan refuse the row. To find
// or repair such rows, pass an int64.
func (s Snowflake) Value() (driver.Value, error) {
	if s < 0 {
		// In a condition that is a map or a struct, GORM drops the error and takes nil for NULL,
		// which finds other rows. A text goes on to database/sql, which returns the error.
		err := s.negative("SQL")
		return err.Error(), err
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

// GormDataType makes the column a bigint, as for [Snowflake.GormDataType].
func (NullSnowflake) GormDataType() string { return "bigint" }

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
	return n.set(&s, s.scan(src, "NullSnowflake"))
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
