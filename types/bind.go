package types

import (
	"reflect"
	"strconv"
)

// Some libraries look for a method of a certain name before they look at the kind, and
// without it treat a Snowflake as an int64: gin and oapi-codegen accept "+5", "007" and "-1",
// mapstructure rounds a JSON number above 2^53, and jsonschema describes an integer although
// the JSON is a string.

// UnmarshalParam accepts the texts that [Parse] accepts. On error s is unchanged. gin and echo
// call it for parameters of the path, the query and forms.
func (s *Snowflake) UnmarshalParam(param string) error {
	return store(s, param, "unmarshal parameter", "Snowflake", wantDecimal)
}

// UnmarshalParam makes n absent for an empty parameter, and otherwise accepts the texts that
// [Parse] accepts. On error n is unchanged.
func (n *NullSnowflake) UnmarshalParam(param string) error {
	return storeNull(n, param, "unmarshal parameter")
}

// Bind is UnmarshalParam for query parameters in the code that oapi-codegen generates.
func (s *Snowflake) Bind(param string) error { return s.UnmarshalParam(param) }

// Bind is UnmarshalParam, as [Snowflake.Bind] is.
func (n *NullSnowflake) Bind(param string) error { return n.UnmarshalParam(param) }

// UnmarshalMapstructure accepts decimal text in the form that [Parse] accepts, every integer
// type, and a whole float64 below 2^53. A larger float64, which may have been rounded, returns
// an error that matches [ErrSyntax]. On error s is unchanged. mapstructure calls it from
// version 2.5 on, and so does viper.
func (s *Snowflake) UnmarshalMapstructure(input any) error {
	return s.unmarshalMapstructure(reflect.ValueOf(input), "Snowflake")
}

// UnmarshalMapstructure makes n absent for nil and for an empty text, and copies a
// NullSnowflake. Other input is treated as by [Snowflake.UnmarshalMapstructure]. On error n is
// unchanged.
func (n *NullSnowflake) UnmarshalMapstructure(input any) error {
	if n == nil {
		return (*Snowflake)(nil).unmarshalMapstructure(reflect.ValueOf(input), "NullSnowflake")
	}
	v := reflect.Indirect(reflect.ValueOf(input))
	if !v.IsValid() || v.Kind() == reflect.String && v.Len() == 0 {
		*n = NullSnowflake{}
		return nil
	}
	if null, ok := reflect.TypeAssert[NullSnowflake](v); ok {
		*n = null
		return nil
	}
	var s Snowflake
	return n.set(&s, s.unmarshalMapstructure(v, "NullSnowflake"))
}

// unmarshalMapstructure is UnmarshalMapstructure for s, which is all or part of a value of the
// named type. A decode hook may have made v a pointer.
func (s *Snowflake) unmarshalMapstructure(v reflect.Value, into string) error {
	v = reflect.Indirect(v)
	text, ok := textOf(v)
	switch {
	case ok:
	case v.Kind() == reflect.Float64 && v.Float() < 1<<53:
		text = strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case !v.IsValid():
		return fail("decode", into, "nil", wantMapstructure, ErrSyntax)
	default:
		return fail("decode", into, describe(v.Interface()), wantMapstructure, ErrSyntax)
	}
	return store(s, text, "decode", into, wantMapstructure)
}

// textOf returns an integer of any type, or a string, as text.
func textOf(v reflect.Value) (text string, ok bool) {
	switch {
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), true
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), true
	case v.Kind() == reflect.String:
		return v.String(), true
	default:
		return "", false
	}
}

// JSONSchemaAlias makes github.com/invopop/jsonschema describe s by its JSON form, a string.
func (Snowflake) JSONSchemaAlias() any { return "" }

// JSONSchemaAlias is the same as for [Snowflake.JSONSchemaAlias]. The field needs the tag
// jsonschema:"nullable" for the schema to allow null.
func (NullSnowflake) JSONSchemaAlias() any { return "" }
