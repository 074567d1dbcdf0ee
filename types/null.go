package types

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

// set sets n to s, which was read, unless err is the error of that. It returns err.
func (n *NullSnowflake) set(s *Snowflake, err error) error {
	if err == nil {
		*n = NullSnowflake{Snowflake: *s, Valid: true}
	}
	return err
}

// IsZero reports whether n is absent, so that the JSON option omitzero omits it.
func (n NullSnowflake) IsZero() bool { return !n.Valid }
