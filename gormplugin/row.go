package gormplugin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/keytype"
	"github.com/snowkey/snowkey/types"
)

// rows are the rows that one statement creates.
type rows struct {
	maps    []map[string]any
	structs reflect.Value // a struct, or a slice or an array of them or of pointers to them
	fixed   bool          // they cannot be changed: a struct or an array by value
}

// rowsOf returns the rows of stmt. It returns no rows where GORM will report an error, and
// an error where GORM would panic.
func rowsOf(stmt *gorm.Statement) (rows, error) {
	switch dest := stmt.Dest.(type) {
	case map[string]any:
		if dest == nil {
			return rows{}, fmt.Errorf("gormplugin: a nil map cannot receive a key for %s, pass a made map: %w", stmt.Schema.Name, gorm.ErrInvalidValue)
		}
		return rows{maps: []map[string]any{dest}}, nil
	case *map[string]any:
		if *dest == nil {
			*dest = map[string]any{}
		}
		return rows{maps: []map[string]any{*dest}}, nil
	case []map[string]any:
		return rows{maps: replaceNil(dest)}, nil
	case *[]map[string]any:
		return rows{maps: replaceNil(*dest)}, nil
	}
	v := stmt.ReflectValue
	var t reflect.Type
	switch v.Kind() {
	case reflect.Struct:
		t = v.Type()
	case reflect.Slice, reflect.Array:
		t = v.Type().Elem()
	default:
		return rows{}, nil
	}
	fixed := v.Kind() != reflect.Slice && !v.CanAddr()
	if t.Kind() == reflect.Pointer {
		t, fixed = t.Elem(), false
		for i := range v.Len() {
			if v.Index(i).IsNil() {
				return rows{}, nil // gorm.ErrInvalidData, with the index
			}
		}
	}
	// GORM would read the fields of any struct, by position.
	if m := stmt.Schema.ModelType; t != m && (t.Kind() != reflect.Struct || !t.ConvertibleTo(m)) {
		return rows{}, fmt.Errorf("gormplugin: cannot create %s from %s, pass the model or a struct with its fields: %w", m, t, gorm.ErrInvalidData)
	}
	return rows{structs: v, fixed: fixed}, nil
}

// replaceNil replaces the nil maps of list by empty ones, which can take a key. GORM takes
// both for rows of NULLs.
func replaceNil(list []map[string]any) []map[string]any {
	for i := range list {
		if list[i] == nil {
			list[i] = map[string]any{}
		}
	}
	return list
}

func (r rows) len() int {
	switch {
	case r.maps != nil:
		return len(r.maps)
	case !r.structs.IsValid():
		return 0
	case r.structs.Kind() == reflect.Struct:
		return 1
	default:
		return r.structs.Len()
	}
}

func (r rows) at(i int) row {
	switch {
	case r.maps != nil:
		return row{values: r.maps[i]}
	case r.structs.Kind() == reflect.Struct:
		return row{fields: r.structs}
	default:
		return row{fields: reflect.Indirect(r.structs.Index(i))}
	}
}

// path names row i: Order[2], or Order if it is the only one.
func (r rows) path(s *schema.Schema, i int) string {
	if len(r.maps) == 1 || r.maps == nil && r.structs.Kind() == reflect.Struct {
		return s.Name
	}
	return s.Name + "[" + strconv.Itoa(i) + "]"
}

func unaddressable(s *schema.Schema) error {
	return fmt.Errorf("gormplugin: %s passed by value cannot receive its key, pass a pointer: %w", s.Name, gorm.ErrInvalidValue)
}

// A cell is the key of a row in a column: a number, or a text in a column of text. It is not present
// where the row has NULL, a nil pointer, or something that is no key. Cells compare with ==.
type cell struct {
	number  types.Snowflake
	text    string
	present bool
}

// value returns the cell as a number or a text, or nil if it is not present, or if it does not fit
// in its column.
func (c cell) value(k keytype.Field) any {
	switch {
	case !c.present || !k.Fits(c.number):
		return nil
	case k.Text():
		return c.text
	default:
		return c.number.Int64()
	}
}

// A column is a field that the plugin fills.
type column struct {
	field *schema.Field
	key   keytype.Field // of field, if it can hold a key
	deep  bool          // below an embedded pointer, which may be nil
	index []int
}

func newColumn(f *schema.Field) column {
	c := associationColumn(f)
	c.key = keytype.FieldOf(f.FieldType, keytype.Integers|keytype.Texts)
	return c
}

// associationColumn returns the column of a field that holds rows and no key.
func associationColumn(f *schema.Field) column {
	// GORM marks an embedded pointer with a negative index.
	deep := slices.ContainsFunc(f.StructField.Index, func(i int) bool { return i < 0 })
	return column{field: f, deep: deep, index: f.StructField.Index}
}

// numeric reports whether f can hold a key as a number.
func numeric(f *schema.Field) bool {
	return keytype.FieldOf(f.FieldType, keytype.Integers).Holds()
}

// of returns id in the form of the column.
func (c *column) of(id types.Snowflake) cell {
	if c.key.Text() {
		return cell{text: id.String(), present: true}
	}
	return cell{number: id, present: true}
}

// A row is one element of what a statement creates: a struct or a map.
type row struct {
	fields reflect.Value  // the struct; invalid for a map
	values map[string]any // the map
}

// locate returns the field of c in a struct, and makes the embedded pointers above it.
func (c *column) locate(ctx context.Context, fields reflect.Value) reflect.Value {
	if c.deep {
		return c.field.ReflectValueOf(ctx, fields)
	}
	for _, i := range c.index { // half the time of ReflectValueOf
		fields = fields.Field(i)
	}
	return fields
}

// absent reports whether c, which is deep, is below an embedded pointer that is nil.
func (c *column) absent(ctx context.Context, fields reflect.Value) bool {
	v, zero := c.field.ValueOf(ctx, fields)
	return v == nil && zero
}

// empty reports whether r lacks a value in c. A present zero in a nullable column was put
// there on purpose, unless the column is a key.
func (c *column) empty(ctx context.Context, r row) bool {
	switch {
	case r.values != nil:
		return c.emptyIn(r.values)
	case c.deep && c.absent(ctx, r.fields):
		return true
	case c.key.Text():
		return c.get(ctx, r).text == ""
	}
	id, null := c.key.Key(c.locate(ctx, r.fields))
	return null || id == 0 && (c.field.PrimaryKey || !c.key.Nullable())
}

// get returns the key that r has in c.
func (c *column) get(ctx context.Context, r row) cell {
	switch {
	case r.values != nil:
		_, v, _ := mapField(r.values, c.field)
		return c.cell(driverValue(v))
	case !c.key.Holds(), c.deep && c.absent(ctx, r.fields):
		return cell{}
	}
	f := c.locate(ctx, r.fields)
	if !c.key.Text() {
		id, null := c.key.Key(f)
		return cell{number: id, present: !null}
	}
	for f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	if !f.IsValid() {
		return cell{}
	}
	return cell{text: f.String(), present: true}
}

// value returns what r has in c, a column of numbers, or nil for NULL.
func (c *column) value(ctx context.Context, r row) any {
	if r.values != nil {
		_, v, _ := mapField(r.values, c.field)
		return driverValue(v)
	}
	if is := c.get(ctx, r); is.present {
		return is.number.Int64()
	}
	return nil
}

// cell returns v, which is a driver.Value or a uint64, in the form of the column.
func (c *column) cell(v any) cell {
	switch v := v.(type) {
	case int64:
		return c.of(types.Snowflake(v))
	case uint64:
		return c.of(types.Snowflake(v))
	case []byte:
		return c.cell(string(v))
	case string:
		if c.key.Text() {
			return cell{text: v, present: true}
		}
		if n, err := strconv.ParseInt(v, 10, 64); err == nil { // as in a map that came from JSON
			return c.of(types.Snowflake(n))
		}
	}
	return cell{}
}

// scan returns what was read from the column. A number that the field cannot hold is an error. A
// text in another form is none: MySQL finds '01010' among the keys from 1001 to 1025, in a row that
// no row of the statement has met.
func (c *column) scan(stored any) (cell, error) {
	if c.key.Text() {
		return c.cell(stored), nil
	}
	id, null, err := c.key.Scan(stored)
	if errors.Is(err, types.ErrSyntax) {
		return c.cell(stored), nil
	}
	return cell{number: id, present: !null}, err
}

// put stores v in r. A struct must be addressable.
func (c *column) put(ctx context.Context, r row, v cell) {
	var f reflect.Value
	switch {
	case r.values != nil: // the caller expects the type of the field in his map
		f = reflect.New(c.field.IndirectFieldType).Elem()
	case v.present || !c.deep || !c.absent(ctx, r.fields):
		f = c.locate(ctx, r.fields)
	default:
		return
	}
	switch {
	case !v.present:
		f.SetZero()
	case c.key.Text():
		c.key.Renew(f).SetString(v.text)
	default:
		c.key.Set(f, v.number)
	}
	if r.values != nil {
		key, _, _ := mapField(r.values, c.field)
		r.values[key] = f.Interface()
	}
}

// mapField returns the name under which m holds f, and its value. If m has several such names,
// it returns the first in order; if it has none, the name of the column.
func mapField(m map[string]any, f *schema.Field) (key string, value any, ok bool) {
	for k, v := range m {
		if names(k, f) && (!ok || k < key) {
			key, value, ok = k, v, true
		}
	}
	if !ok {
		key = f.DBName
	}
	return key, value, ok
}

// names reports whether k names f in a map, as "id", "ID" or "Id". GORM before 1.31 does
// not know "Id" and passes it to the database, where SQLite and MySQL take it for id.
func names(k string, f *schema.Field) bool {
	return f.Schema.LookUpField(k) == f || strings.EqualFold(k, f.DBName)
}

// isKeyType reports whether t is types.Snowflake or a types.ID.
func isKeyType(t reflect.Type) bool { return keytype.Untyped(t) == keytype.Snowflake }
