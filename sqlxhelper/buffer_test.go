package sqlxhelper

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"math/big"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/types"
)

// Reading a value early, or copying it, costs time, so it is not done for types that need
// neither.
func TestOnlyWhatRefersToMemoryIsHeld(t *testing.T) {
	type fields struct {
		types.Model
		Int    int                 `db:"f0"`
		Text   string              `db:"f1"`
		At     time.Time           `db:"f2"`
		Null   types.NullSnowflake `db:"f3"`
		String sql.NullString      `db:"f4"`
		Of     sql.Null[time.Time] `db:"f5"`
		Array  [16]byte            `db:"f6"`
		Bytes  []byte              `db:"f7"`
		TextAt *string             `db:"f8"`
		JSON   json.RawMessage     `db:"f9"`
		Any    any                 `db:"f10"`
		Owner  *types.Snowflake    `db:"f11"`
		OfRefs sql.Null[[]byte]    `db:"f12"`
		Tags   []string            `db:"f13"`
		Map    map[string]int      `db:"f14"`
		Valuer asValuer            `db:"f15"`
		Addr   netip.Addr          `db:"f16"`
	}
	p, err := newPlan(reflect.TypeFor[fields](), sqlx.NewDb(nil, "").Mapper, false)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]hold{
		"Model.ID": asCopied, "Int": asCopied, "Text": asCopied, "At": asCopied, "Null": asCopied, "String": asCopied, "Of": asCopied, "Array": asCopied,
		"Bytes": byCopy, "TextAt": byCopy,
		"JSON": byArgument, "Any": byArgument, "Owner": byArgument, "OfRefs": byArgument, "Tags": byArgument, "Map": byArgument, "Valuer": byArgument, "Addr": byArgument,
	} {
		for i := range p.columns {
			if c := &p.columns[i]; c.field == field && c.hold != want {
				t.Errorf("hold of %s %v = %d; want %d", c.field, c.typ, c.hold, want)
			}
		}
	}
	if p.held != 8 {
		t.Errorf("held columns = %d; want 8", p.held)
	}
}

type asValuer int

func (asValuer) Value() (driver.Value, error) { return nil, nil }

func TestCopyOfAValueSharesNoMemoryWithIt(t *testing.T) {
	type inner struct {
		List  []string
		Where *time.Location
		own   *int // not exported
	}
	number, text := 1, "a"
	values := func() map[string]any {
		return map[string]any{
			"bytes": []byte("a"), "lists": [][]string{{"a"}, nil, {}}, "map": map[string][]int{"a": {1}},
			"struct": &inner{[]string{"a"}, time.Local, &number}, "array": [2]*string{&text, nil}, "any": []any{[]byte("a"), 1, nil},
			"big": big.NewInt(7), "nil": []string(nil), "nil map": map[string]int(nil), "nil pointer": (*inner)(nil), "text": "a",
		}
	}
	for name, v := range values() {
		got := apart(reflect.ValueOf(v), 0).Interface()
		if !reflect.DeepEqual(got, v) || reflect.TypeOf(got) != reflect.TypeOf(v) {
			t.Errorf("apart(%s) = %#v; want %#v", name, got, v)
		}
		spoil(reflect.ValueOf(v))
		if want := values()[name]; !reflect.DeepEqual(got, want) && name != "array" {
			t.Errorf("apart(%s) = %#v after its memory was written over; want %#v", name, got, want)
		}
	}
	s := &inner{Where: time.Local, own: &number}
	if got := apart(reflect.ValueOf(s), 0).Interface().(*inner); got == s || got.Where != time.Local || got.own != s.own {
		t.Errorf("apart(%+v) = %+v; want another struct with the same location, and what is not exported as it is", s, got)
	}
	texts := [1]*string{&text}
	got := apart(reflect.ValueOf(texts), 0).Interface().([1]*string)
	if got[0] == &text || *got[0] != "a" {
		t.Errorf("apart(%v) = %v; want another pointer", texts, got)
	}
	type loop struct{ Next *loop }
	l := &loop{}
	l.Next = l
	if got := apart(reflect.ValueOf(l), 0).Interface().(*loop); got == l {
		t.Error("apart(a circle) is the circle; want a copy")
	}
}

// spoil writes over the memory to which v refers.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		for i := range v.Len() {
			spoil(v.Index(i))
			v.Index(i).SetZero()
		}
	case reflect.Map:
		v.Clear()
	case reflect.Pointer:
		if n, ok := reflect.TypeAssert[*big.Int](v); ok {
			n.SetInt64(0)
		} else if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Struct:
		spoil(v.FieldByName("List"))
	case reflect.Interface:
		spoil(v.Elem())
	}
}
