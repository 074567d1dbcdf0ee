package sqlxhelper

import (
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/types"
)

var errValue = errors.New("no value")

// failing is a Valuer that fails, panicking or for a nil pointer.
type failing struct{ err error }

func (f failing) Value() (driver.Value, error) {
	if f.err != nil {
		return nil, f.err
	}
	panic("mine")
}

// argumentOf returns what is bound for the field F of a row.
func argumentOf(t *testing.T, row any) (any, error) {
	t.Helper()
	v := reflect.ValueOf(row).Elem()
	p, err := newPlan(v.Type(), sqlx.NewDb(nil, "").Mapper, false)
	if err != nil {
		t.Fatal(err)
	}
	return p.columns[p.indexOf("f")].argument(v)
}

// database/sql would pass the panic on, and lib/pq has one for a nil pointer to a
// pointer.
func TestValuerIsAskedWhereverItIs(t *testing.T) {
	type of[T any] struct {
		types.Model
		F T
	}
	type circle *circle
	var around circle
	around = &around
	var itself any
	itself = &itself
	null, bad, panics := (*failing)(nil), &failing{errValue}, &failing{}
	var text *string
	const none = "<nil>"
	for name, c := range map[string]struct {
		row any
		has string // of the error, or none for NULL
	}{
		"Value":                   {&of[failing]{}, "panic in Value: mine"},
		"Error":                   {&of[failing]{F: *bad}, "no value"},
		"Pointer":                 {&of[*failing]{F: panics}, "panic in Value: mine"},
		"NilPointer":              {&of[*failing]{}, none},
		"PointerToPointer":        {&of[**failing]{F: &panics}, "panic in Value: mine"},
		"PointerToNil":            {&of[**failing]{F: &null}, none},
		"NilPointerToPointer":     {&of[**failing]{}, none},
		"Any":                     {&of[any]{F: failing{}}, "panic in Value: mine"},
		"AnyPointer":              {&of[any]{F: bad}, "no value"},
		"AnyNilPointer":           {&of[any]{F: null}, none},
		"AnyPointerToNil":         {&of[any]{F: &null}, none},
		"AnyNilPointerToPointer":  {&of[any]{F: (**string)(nil)}, none},
		"AnyPointerToNilPointer":  {&of[any]{F: &text}, none},
		"NilAny":                  {&of[any]{}, none},
		"Interface":               {&of[driver.Valuer]{F: failing{}}, "panic in Value: mine"},
		"InterfaceWithNilPointer": {&of[driver.Valuer]{F: null}, none},
		"Circle":                  {&of[circle]{F: around}, "more than 8 pointers"},
		"AnyCircle":               {&of[any]{F: itself}, "more than 8 pointers"},
		"NilInterface":            {&of[driver.Valuer]{}, none},
		"PointerToAny":            {&of[*any]{F: func() *any { v := any(panics); return &v }()}, "panic in Value: mine"},
	} {
		v, err := argumentOf(t, c.row)
		switch {
		case c.has != none:
			if err == nil || !strings.Contains(err.Error(), c.has) {
				t.Errorf("argument(%s) = %v, %v; want an error with %q", name, v, err, c.has)
			}
		case err != nil || v != nil && !reflect.ValueOf(v).IsNil():
			t.Errorf("argument(%s) = %v, %v; want NULL", name, v, err)
		}
	}
}

func TestSizesAreNotUnderestimated(t *testing.T) {
	type text string
	long := strings.Repeat("x", 1000)
	half := long[:500]
	for _, v := range []any{
		long, []byte(long), text(long), &long, [1000]byte{}, make([]int64, 125),
		[]string{half, half}, []*string{&half, nil, &half}, [2]string{half, half}, [][]byte{[]byte(half), []byte(half)}, []any{half, half},
		map[string]string{"k": long}, map[string]any{long: nil},
		struct{ text string }{long}, []struct{ text []byte }{{[]byte(half)}, {[]byte(half)}},
	} {
		if got := sizeOf(v); got < 1000 {
			t.Errorf("sizeOf(%T of 1000 bytes) = %d; want at least 1000", v, got)
		}
	}
	around := []any{nil}
	around[0] = around
	if got := sizeOf(around); got > 1000 {
		t.Errorf("sizeOf(list in itself) = %d; want an end", got)
	}
	for _, v := range []any{nil, 1, true, (*string)(nil), 1.5} {
		if got := sizeOf(v); got != fixedSize {
			t.Errorf("sizeOf(%v) = %d; want %d", v, got, fixedSize)
		}
	}
}
