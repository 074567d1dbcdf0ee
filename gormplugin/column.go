package gormplugin

import (
	"context"
	"database/sql"
	"reflect"
	"strconv"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

// A kind is a way to hold a key.
type kind int

const (
	integer  kind = iota // types.Snowflake, int64, and types made of it
	unsigned             // uint64, and types made of it
	text                 // string, and types made of it: the key in decimal
	nullable             // types.NullSnowflake, sql.Null[types.Snowflake]
)

var (
	snowflakeType = reflect.TypeFor[types.Snowflake]()
	nullTypes     = [...]reflect.Type{reflect.TypeFor[types.NullSnowflake](), reflect.TypeFor[sql.Null[types.Snowflake]]()}
)

// kindOf returns how t, which is no pointer, holds a key, if it can.
func kindOf(t reflect.Type) (kind, bool) {
	for _, n := range nullTypes {
		if t == n {
			return nullable, true
		}
	}
	switch t.Kind() {
	case reflect.Int64:
		return integer, true
	case reflect.Uint64:
		return unsigned, true
	case reflect.String:
		return text, true
	default:
		return 0, false
	}
}

// A column is a field that the plugin fills.
//
// Its values are passed as any, in forms that compare with ==. They are int64,
// string for a column of text, and nil for none (zero, empty, NULL).
type column struct {
	field *schema.Field
	kind  kind
	deep  bool // below an embedded pointer, which may be nil
	flat  bool // neither deep nor a pointer
	index []int
}

func newColumn(f *schema.Field, k kind) column {
	c := column{field: f, kind: k, index: f.StructField.Index}
	for _, i := range f.StructField.Index {
		c.deep = c.deep || i < 0 // GORM's mark for an embedded pointer
	}
	c.flat = !c.deep && f.FieldType.Kind() != reflect.Pointer
	return c
}

// of returns id in the form of the column.
func (c *column) of(id types.Snowflake) any {
	if c.kind == text {
		return id.String()
	}
	return id.Int64()
}

// A row is one element of what a statement creates: a struct or a map.
type row struct {
	fields reflect.Value  // the struct; invalid for a map
	values map[string]any // the map
}

// get returns what r has in c, in the form described at column.
func (c *column) get(ctx context.Context, r row) any {
	if r.values != nil {
		_, v := c.find(r.values)
		return c.normal(reflect.ValueOf(v))
	}
	if c.absent(ctx, r) {
		return nil
	}
	return c.normal(c.field.ReflectValueOf(ctx, r.fields))
}

// empty reports whether r lacks a value in c.
func (c *column) empty(ctx context.Context, r row) bool {
	if r.values != nil {
		_, v := c.find(r.values)
		return lacks(v)
	}
	// Not get, which would box a number. This runs for every row.
	var v reflect.Value
	if c.flat {
		v = c.place(r.fields)
	} else {
		if c.absent(ctx, r) {
			return true
		}
		v = c.field.ReflectValueOf(ctx, r.fields)
		for v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return true
			}
			v = v.Elem()
		}
	}
	switch {
	case c.kind == nullable:
		return !v.Field(1).Bool() // Valid: a present zero was put there on purpose
	case v.CanInt():
		return v.Int() == 0
	default:
		return v.IsZero()
	}
}

// place returns a flat column of a struct. Field.ReflectValueOf takes twice the time.
func (c *column) place(v reflect.Value) reflect.Value {
	for _, i := range c.index {
		v = v.Field(i)
	}
	return v
}

// absent reports whether c is below a nil embedded pointer. Field.ReflectValueOf would
// allocate it and so change the row.
func (c *column) absent(ctx context.Context, r row) bool {
	if !c.deep {
		return false
	}
	v, zero := c.field.ValueOf(ctx, r.fields)
	return v == nil && zero
}

// normal brings v into the form described at column; what is no key is nil.
func (c *column) normal(v reflect.Value) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	var n int64
	switch {
	case !v.IsValid():
		return nil
	case v.CanInt():
		n = v.Int()
	case v.CanUint():
		n = int64(v.Uint())
	case v.Kind() == reflect.String && c.kind == text:
		if v.Len() == 0 {
			return nil
		}
		return v.String()
	case v.Kind() == reflect.String: // a number in a map that came from JSON
		n, _ = strconv.ParseInt(v.String(), 10, 64)
	case isNullType(v.Type()):
		if v.Field(1).Bool() {
			n = v.Field(0).Int()
		}
	}
	switch {
	case n == 0:
		return nil
	case c.kind == text:
		return strconv.FormatInt(n, 10)
	default:
		return n
	}
}

// put stores v, in the form described at column, in r. nil empties the column.
// The struct of r must be addressable.
func (c *column) put(ctx context.Context, r row, v any) {
	if r.values != nil {
		key, _ := c.find(r.values)
		r.values[key] = c.boxed(v)
		return
	}
	if v != nil || !c.absent(ctx, r) {
		c.store(c.reach(ctx, r), v)
	}
}

// assign stores id in r. It is put without boxing a number, because it runs for every
// row.
func (c *column) assign(ctx context.Context, r row, id types.Snowflake) {
	if r.values != nil {
		c.put(ctx, r, c.of(id))
		return
	}
	c.number(c.reach(ctx, r), id.Int64())
}

// reach returns the place of c in the struct of r, behind pointers that it makes.
func (c *column) reach(ctx context.Context, r row) reflect.Value {
	if c.flat {
		return c.place(r.fields)
	}
	f := c.field.ReflectValueOf(ctx, r.fields)
	for f.Kind() == reflect.Pointer {
		if f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
		}
		f = f.Elem()
	}
	return f
}

// store sets f, which is no pointer, to v.
func (c *column) store(f reflect.Value, v any) {
	switch v := v.(type) {
	case string:
		f.SetString(v)
	case int64:
		c.number(f, v)
	default:
		f.SetZero()
	}
}

// number sets f, which is no pointer, to n.
func (c *column) number(f reflect.Value, n int64) {
	switch c.kind {
	case unsigned:
		f.SetUint(uint64(n))
	case text:
		f.SetString(strconv.FormatInt(n, 10))
	case nullable:
		f.Field(0).SetInt(n)
		f.Field(1).SetBool(true)
	default:
		f.SetInt(n)
	}
}

// boxed returns v as the type of the field, which the caller expects in his map.
func (c *column) boxed(v any) any {
	f := reflect.New(c.field.IndirectFieldType).Elem()
	c.store(f, v)
	return f.Interface()
}

// find returns the name under which m holds c and its value, or the name of the column
// and nil. If m has several such names, it returns the first in order.
func (c *column) find(m map[string]any) (key string, value any) {
	for k, v := range m {
		if names(k, c.field) && (key == "" || k < key) {
			key, value = k, v
		}
	}
	if key == "" {
		key = c.field.DBName
	}
	return key, value
}

// names reports whether k names f in a map, as "id", "ID" or "Id". GORM before 1.31 does
// not know "Id" and passes it to the database. SQLite and MySQL take it for id.
func names(k string, f *schema.Field) bool {
	return f.Schema.LookUpField(k) == f || strings.EqualFold(k, f.DBName)
}

// lacks reports whether v, found in a map, is empty. Other values, such as gorm.Expr,
// belong to the caller.
func lacks(v any) bool {
	f := reflect.ValueOf(v)
	for f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	switch {
	case !f.IsValid():
		return true
	case isNullType(f.Type()):
		return !f.Field(1).Bool()
	case f.CanInt(), f.CanUint(), f.CanFloat(), f.Kind() == reflect.String:
		return f.IsZero()
	default:
		return false
	}
}

func isNullType(t reflect.Type) bool { return t == nullTypes[0] || t == nullTypes[1] }
