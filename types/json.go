package types

// Snowflake has no MarshalJSON. Without it, encoding/json and encoding/json/v2 write the string by
// AppendText, the former about twice as fast and the latter without an allocation; both would
// prefer MarshalJSON if there was one. NullSnowflake needs it to write null.

// UnmarshalJSON accepts a string in the form that [Parse] accepts, or the same digits as a
// number, without fraction, exponent or escapes. As everywhere in encoding/json, null leaves s
// unchanged, and so does an error.
func (s *Snowflake) UnmarshalJSON(data []byte) error {
	return s.unmarshalJSON(data, "Snowflake")
}

// unmarshalJSON is UnmarshalJSON for s, which is all or part of a value of the named type.
//
// The error is no *json.UnmarshalTypeError, to which encoding/json would add the path of the field.
// That type wraps nothing before Go 1.27, so that no caller could match ErrSyntax or find the
// *ValueError, and encoding/json completes no error that wraps one. encoding/json/v2 wraps this
// error in a *json.SemanticError with the path.
func (s *Snowflake) unmarshalJSON(data []byte, into string) error {
	if string(data) == "null" {
		return nil
	}
	digits := data
	if n := len(data); n >= 2 && data[0] == '"' && data[n-1] == '"' {
		digits = data[1 : n-1]
	}
	n, err := parseDecimal(digits)
	if err != nil {
		return fail("unmarshal JSON", into, quoteJSON(data), wantJSON, err)
	}
	if s == nil {
		return fail("unmarshal JSON", into, quoteJSON(data), wantReceiver, ErrSyntax)
	}
	*s = n
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
	return n.set(&s, s.unmarshalJSON(data, "NullSnowflake"))
}
