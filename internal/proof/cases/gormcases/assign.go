package gormcases

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/types"
)

// errByDatabase stands for any error of the database.
var errByDatabase = errors.New("an error of the database")

// itemsOf returns the rows of a value in any form. A row that is nil or of other fields is left out.
func itemsOf(v reflect.Value) (list []Item) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return itemsOf(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			list = append(list, itemsOf(v.Index(i))...)
		}
	case reflect.Struct:
		if item := reflect.TypeFor[Item](); v.CanConvert(item) {
			list = append(list, v.Convert(item).Interface().(Item))
		}
	}
	return list
}

var assignCases = []testCase{
	{"RowsInEveryFormGetTheKeysThatTheyLackOrNoneWithAnError", func(e *env) {
		e.migrate(&Item{})
		type input Item // of the same fields
		pointer, twice, item := &Item{SKU: "A"}, &Item{SKU: "A"}, any(Item{SKU: "A"})
		for what, test := range map[string]struct {
			rows any
			want error
		}{
			"a struct":                       {&Item{SKU: "A"}, nil},
			"a struct with a key":            {&Item{ID: 42, SKU: "A"}, nil},
			"a struct with a key by value":   {Item{ID: 42, SKU: "A"}, nil},
			"a pointer to a pointer":         {&pointer, nil},
			"a type of the same fields":      {&input{SKU: "A"}, nil},
			"structs":                        {[]Item{{SKU: "A"}, {SKU: "B"}, {SKU: "C"}}, nil},
			"structs, of which one has keys": {&[]Item{{SKU: "A"}, {ID: 42, SKU: "B"}, {SKU: "C"}}, nil},
			"pointers":                       {&[]*Item{{SKU: "A"}, {SKU: "B"}}, nil},
			"an array":                       {&[2]Item{{SKU: "A"}, {SKU: "B"}}, nil},
			"an array of pointers by value":  {[2]*Item{{SKU: "A"}, {SKU: "B"}}, nil},
			"a struct by value":              {Item{SKU: "A"}, gorm.ErrInvalidValue},
			"an array by value":              {[2]Item{{SKU: "A"}, {SKU: "B"}}, gorm.ErrInvalidValue},
			"a nil pointer":                  {(*Item)(nil), gorm.ErrInvalidValue},
			"no rows":                        {&[]Item{}, gorm.ErrEmptySlice},
			"pointers, of which one is nil":  {&[]*Item{{SKU: "A"}, nil}, gorm.ErrInvalidData},
			"an interface":                   {&item, gorm.ErrInvalidData},
			"interfaces, where GORM panics":  {[]any{&Item{SKU: "A"}}, gorm.ErrInvalidData},
			"another struct, where it does":  {&struct{ SKU string }{"A"}, gorm.ErrInvalidData},
			"other structs, where it does":   {[]struct{ SKU string }{{"A"}}, gorm.ErrInvalidData},
			"the same pointer twice":         {[]*Item{twice, twice}, errByDatabase},
		} {
			e.must(e.db.Where("1 = 1").Delete(&Item{}))
			*e.src = counter{}
			before := itemsOf(reflect.ValueOf(test.rows))
			err := e.db.Model(&Item{}).Create(test.rows).Error
			after := itemsOf(reflect.ValueOf(test.rows))
			if test.want != nil {
				if e.count("items", 0); err == nil || test.want != errByDatabase && (!errors.Is(err, test.want) || e.src.given > 0 || !reflect.DeepEqual(after, before)) {
					e.Errorf("Create of %s = %v with %+v, %d keys asked for; want %v and no key", what, err, after, e.src.given, test.want)
				}
				continue
			}
			e.ok(fmt.Sprintf("Create of %s", what), err)
			missing := 0
			for i, row := range before {
				if row.ID == 0 {
					missing++
					row.ID = firstKey + types.Snowflake(missing)*keyStep
				}
				equal(e, fmt.Sprintf("row %d of %s", i, what), after[i], row)
				e.stored("items", "sku", row.SKU, row.ID)
			}
			equal(e, "keys asked for by "+what, e.src.given, missing)
			equal(e, "calls of Fill by "+what, e.src.fills, min(missing, 1))
		}
		err := e.db.Create([]*Item{{}, nil}).Error // as GORM says it
		equal(e, "error", fmt.Sprint(err), "slice data #1 is invalid: "+gorm.ErrInvalidData.Error())
	}},
}
