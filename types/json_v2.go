//go:build go1.27 && goexperiment.jsonv2

package types

import "encoding/json/jsontext"

// MarshalJSONTo implements the MarshalerTo of encoding/json/v2. It writes the same as
// MarshalJSON, except for an absent n that is the name of an object's member, which is the
// empty string. encoding/json takes names from [NullSnowflake.MarshalText], while
// encoding/json/v2 would take null and refuse it.
func (n NullSnowflake) MarshalJSONTo(e *jsontext.Encoder) error {
	if !n.Valid {
		if in, members := e.StackIndex(e.StackDepth()); in == '{' && members%2 == 0 {
			return e.WriteToken(jsontext.String(""))
		}
		return e.WriteToken(jsontext.Null)
	}
	b, err := n.MarshalJSON()
	if err != nil {
		return err
	}
	return e.WriteValue(b)
}

// MarshalJSONTo implements the MarshalerTo of encoding/json/v2, as
// [NullSnowflake.MarshalJSONTo] does.
func (n NullID[T]) MarshalJSONTo(e *jsontext.Encoder) error {
	return marked[T](n.NullSnowflake().MarshalJSONTo(e))
}
