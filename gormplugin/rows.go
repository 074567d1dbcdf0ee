package gormplugin

import (
	"fmt"
	"reflect"
	"strconv"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// rows are what one statement creates.
type rows struct {
	maps    []map[string]any
	structs reflect.Value // a struct, or a slice or an array of them or of pointers to them
}

// rowsOf returns the rows of stmt. It returns none where GORM will report an error, and
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
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		for i := range v.Len() {
			if v.Index(i).IsNil() {
				return rows{}, nil // gorm.ErrInvalidData, with the index
			}
		}
	}
	// GORM would look for the fields in any struct, by position.
	if m := stmt.Schema.ModelType; t != m && (t.Kind() != reflect.Struct || !t.ConvertibleTo(m)) {
		return rows{}, fmt.Errorf("gormplugin: cannot create %s from %s, pass the model or a struct with its fields: %w", m, t, gorm.ErrInvalidData)
	}
	return rows{structs: v}, nil
}

// replaceNil replaces the nil maps of list by empty ones, so that they can take a key.
// GORM takes both for rows of NULLs.
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

// settable reports whether row i can be changed. A struct or array by value cannot.
func (r rows) settable(i int) bool {
	return r.maps != nil || r.at(i).fields.CanAddr()
}

func unaddressable(s *schema.Schema) error {
	return fmt.Errorf("gormplugin: %s passed by value cannot receive its key, pass a pointer: %w", s.Name, gorm.ErrInvalidValue)
}
