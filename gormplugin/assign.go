package gormplugin

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/types"
)

// Where GORM remembers, in the settings of a statement and of all that it saves
// along the way, what it saved already. It is there when an association is
// created, and not when a caller creates.
const savedAssociations = "gorm:saved_association_map"

// Where a [creation] waits in the settings of its statement.
const creationSetting = "snowkey:creation"

// A creation is what the callbacks of one statement tell each other.
type creation struct {
	fresh  []types.Snowflake // the keys assigned by this statement
	nested bool              // an association of another statement
	active []column          // the columns that the statement writes; set by ensure
	sent   []any             // what it writes there, row by row; set by ensure
}

// at returns what is sent for row i in active column c.
func (s *creation) at(i, c int) any { return s.sent[i*len(s.active)+c] }

// assign is the first create callback: it gives a key to every row that lacks
// one. Associations are created by statements of their own, which come by here
// too, so the whole graph is covered without looking into it.
func (in *installation) assign(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || stmt.Schema == nil {
		return
	}
	fresh, err := in.fill(stmt)
	if err != nil {
		_ = db.AddError(err)
		return
	}
	if nested(stmt) {
		in.once(stmt, len(fresh))
	}
	if _, ok := upsertOf(stmt); ok {
		stmt.Settings.Store(creationSetting, &creation{fresh: fresh, nested: nested(stmt)})
	}
}

// once leaves a pointer that stands at several places of an association's slice at
// the first alone. GORM makes that slice, and tells rows apart by their keys if at
// all: one row to which several others point, and which has no key yet, is in it
// several times over. So would be, in the statement after that, each child of it, in
// an upsert that PostgreSQL refuses, for it may not update a row twice.
//
// The slice of a caller stays as it is: what is in it twice is to be created twice,
// and the database says what is wrong with that. fresh is how many keys the statement
// has assigned.
func (in *installation) once(stmt *gorm.Statement, fresh int) {
	v := stmt.ReflectValue
	if v.Kind() != reflect.Slice || v.Type().Elem().Kind() != reflect.Pointer {
		return
	}
	if fresh == v.Len()*len(in.model(stmt).plan().columns) {
		return // each got its keys just now, at its first place: it has no second
	}
	// A new slice and not a shorter one: that of GORM may yet be read.
	list, seen := reflect.MakeSlice(v.Type(), 0, v.Len()), make(map[uintptr]bool, v.Len())
	for i := range v.Len() {
		if p := v.Index(i); !seen[p.Pointer()] {
			seen[p.Pointer()] = true
			list = reflect.Append(list, p)
		}
	}
	if list.Len() < v.Len() {
		stmt.Dest, stmt.ReflectValue = list.Interface(), list
	}
}

// nested reports whether stmt saves an association of another statement.
func nested(stmt *gorm.Statement) bool {
	_, ok := stmt.Settings.Load(savedAssociations)
	return ok
}

// fill assigns the keys that are missing, all or none, and returns them.
func (in *installation) fill(stmt *gorm.Statement) ([]types.Snowflake, error) {
	p := in.model(stmt).plan()
	if p.err != nil || len(p.columns) == 0 {
		return nil, p.err
	}
	all, err := rowsOf(stmt)
	if err != nil || all.len() == 0 {
		return nil, err
	}
	columns := written(stmt, p.columns)
	missing := 0
	for i := range all.len() {
		r := all.at(i)
		for c := range columns {
			if columns[c].empty(stmt.Context, r) {
				missing++
			}
		}
	}
	if missing == 0 {
		return nil, nil
	}
	if !all.settable(0) { // nor is any other
		return nil, unaddressable(stmt.Schema)
	}
	ids, err := in.reserve(stmt, missing)
	if err != nil {
		return nil, err
	}
	next := 0
	for i := range all.len() {
		r := all.at(i)
		for c := range columns {
			// Asked again: one pointer may stand at two places, and is one row.
			if columns[c].empty(stmt.Context, r) {
				columns[c].assign(stmt.Context, r, ids[next])
				next++
			}
		}
	}
	return ids[:next], nil
}

func (in *installation) reserve(stmt *gorm.Statement, n int) ([]types.Snowflake, error) {
	ids, err := reserve(stmt.Context, in.src, n)
	if err != nil {
		return nil, fmt.Errorf("gormplugin: %d keys for %s: %w", n, stmt.Schema.Name, err)
	}
	return ids, nil
}

// written returns those of columns that stmt writes. A key that was neither
// selected nor omitted is selected: a row without it could not be stored, or,
// on SQLite, would be stored without the key that the caller then has in hand.
// Other columns, and an omitted key, stay as they are, since what is not written
// must not be assigned either.
func written(stmt *gorm.Statement, columns []column) []column {
	if len(stmt.Selects)+len(stmt.Omits) == 0 {
		return columns
	}
	selected, restricted := stmt.SelectAndOmitColumns(true, false)
	var list []column
	for _, c := range columns {
		on, named := selected[c.field.DBName]
		if !named && restricted && c.field.PrimaryKey {
			// A copy: the array behind Selects may be shared with the session
			// that the statement was made from.
			stmt.Selects = append(stmt.Selects[:len(stmt.Selects):len(stmt.Selects)], c.field.DBName)
			on, named = true, true
		}
		if on || !named && !restricted {
			list = append(list, c)
		}
	}
	return list
}

// rows are what one statement creates.
type rows struct {
	maps    []map[string]any
	structs reflect.Value // a struct, or a slice or an array of them or of pointers to them
}

// rowsOf returns the rows of stmt. It returns none where GORM has an error for
// what it is given, so that the caller reads GORM's; it returns an error where
// GORM would panic.
func rowsOf(stmt *gorm.Statement) (rows, error) {
	switch dest := stmt.Dest.(type) {
	case map[string]any:
		if dest == nil {
			return rows{}, fmt.Errorf("gormplugin: a nil map cannot receive a key for %s: %w", stmt.Schema.Name, gorm.ErrInvalidValue)
		}
		return rows{maps: []map[string]any{dest}}, nil
	case *map[string]any:
		if *dest == nil {
			*dest = map[string]any{}
		}
		return rows{maps: []map[string]any{*dest}}, nil
	case []map[string]any:
		return rows{maps: makeNil(dest)}, nil
	case *[]map[string]any:
		return rows{maps: makeNil(*dest)}, nil
	}
	v := stmt.ReflectValue
	switch v.Kind() {
	case reflect.Struct:
		if err := layoutOf(v.Type(), stmt.Schema); err != nil {
			return rows{}, err
		}
		return rows{structs: v}, nil
	case reflect.Slice, reflect.Array:
		elem := v.Type().Elem()
		pointers := elem.Kind() == reflect.Pointer
		if pointers {
			elem = elem.Elem()
		}
		if err := layoutOf(elem, stmt.Schema); err != nil {
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

// makeNil replaces the nil maps of list, to which nothing can be assigned.
// GORM takes them for rows of NULLs.
func makeNil(list []map[string]any) []map[string]any {
	for i := range list {
		if list[i] == nil {
			list[i] = map[string]any{}
		}
	}
	return list
}

// layoutOf returns an error unless the fields of s can be found in t, which is
// so for the model and for types of the same fields. GORM would look for them
// in any struct, by position.
func layoutOf(t reflect.Type, s *schema.Schema) error {
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

// settable reports whether row i can be written to: not if it is a struct, or in
// an array, that was passed by value.
func (r rows) settable(i int) bool {
	return r.maps != nil || r.at(i).fields.CanAddr()
}

func unaddressable(s *schema.Schema) error {
	return fmt.Errorf("gormplugin: %s passed by value cannot receive its key, pass a pointer: %w", s.Name, gorm.ErrInvalidValue)
}
