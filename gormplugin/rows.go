package gormplugin

import (
	"fmt"
	"reflect"

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
	switch v.Kind() {
	case reflect.Struct:
		if err := checkType(v.Type(), stmt.Schema); err != nil {
			return rows{}, err
		}
		return rows{structs: v}, nil
	case reflect.Slice, reflect.Array:
		elem := v.Type().Elem()
		pointers := elem.Kind() == reflect.Pointer
		if pointers {
			elem = elem.Elem()
		}
		if err := checkType(elem, stmt.Schema); err != nil {
			return rows{}, err
		}
		for i := 0; pointers && i < v.Len(); i++ {
			if v.Index(i).IsNil() {
				return rows{}, nil // gorm.ErrInvalidData, with the index
			}
		}
		return rows{structs: v}, nil
	default:
		return rows{}, nil
	}
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

// checkType returns an error unless t is the model of s or has the same fields. GORM
// would look for the fields in any struct, by position.
func checkType(t reflect.Type, s *schema.Schema) error {
	if t == s.ModelType || t.Kind() == reflect.Struct && t.ConvertibleTo(s.ModelType) {
		return nil
	}
	return fmt.Errorf("gormplugin: cannot create %s from %s: %w", s.ModelType, t, gorm.ErrInvalidData)
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

// settable reports whether row i can be changed. A struct or array by value cannot.
func (r rows) settable(i int) bool {
	return r.maps != nil || r.at(i).fields.CanAddr()
}

func unaddressable(s *schema.Schema) error {
	return fmt.Errorf("gormplugin: %s passed by value cannot receive its key, pass a pointer: %w", s.Name, gorm.ErrInvalidValue)
}
