package types

import "cmp"

// A Snowflake is a 64-bit primary key that is assigned before the insert. Its bits have no
// meaning in this package; core.Layout takes them apart.
//
// Store it in a signed 64-bit column: BIGINT, or INTEGER on SQLite. The zero value means "not
// assigned yet". For a column that may be NULL use [NullSnowflake].
//
// In JSON it is a string, so that JavaScript keeps every digit. The encoders write it by
// [Snowflake.AppendText]; json.go says why there is no MarshalJSON.
type Snowflake int64

// Int64 returns s as an int64.
func (s Snowflake) Int64() int64 { return int64(s) }

// IsZero reports whether s is zero, which means "not assigned yet". The JSON option omitzero
// and bun's nullzero call it; docs/types.md says where nullzero is appropriate.
func (s Snowflake) IsZero() bool { return s == 0 }

// Compare returns -1, 0 or +1 if s is smaller than, equal to or greater than o. It fits
// slices.SortFunc.
func (s Snowflake) Compare(o Snowflake) int { return cmp.Compare(s, o) }

// Add returns s + d. ent requires it of every integer type in GoType.
func (s Snowflake) Add(d Snowflake) Snowflake { return s + d }
