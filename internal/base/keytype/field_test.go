package keytype_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/internal/base/keytype"
	"github.com/snowkey/snowkey/types"
)

// Types of integers, with and without methods.
type (
	plain   uint64
	valued  uint64
	pointed int64
	scanned int64
	copied  types.Snowflake // has none of the methods
	code    string
	loop    *loop
)

func (v valued) Value() (driver.Value, error) { return int64(v) + 1, nil }

func (p *pointed) Value() (driver.Value, error) { return int64(*p) + 1, nil }

func (s *scanned) Scan(any) error { *s = 7; return nil }

// What a type is by itself, and with Integers and Texts beside it.
const (
	never   = iota
	always  // it holds keys
	integer // if integers do
	texts   // if texts do
)

func TestFieldOfTellsWhatHoldsAKey(t *testing.T) {
	type want struct {
		holds          int
		plain, pointer bool
		says           string // of the error with both
	}
	wants := map[reflect.Type]want{
		reflect.TypeFor[types.Snowflake]():           {holds: always, plain: true},
		reflect.TypeFor[types.ID[order]]():           {holds: always, plain: true},
		reflect.TypeFor[*types.Snowflake]():          {holds: always, pointer: true},
		reflect.TypeFor[pointer]():                   {holds: always, pointer: true},
		reflect.TypeFor[**types.ID[order]]():         {holds: always, pointer: true},
		reflect.TypeFor[types.NullSnowflake]():       {holds: always},
		reflect.TypeFor[types.NullID[order]]():       {holds: always},
		reflect.TypeFor[*types.NullID[order]]():      {holds: always, pointer: true},
		reflect.TypeFor[sql.Null[types.Snowflake]](): {holds: always},
		reflect.TypeFor[sql.Null[types.ID[order]]](): {holds: always},
		reflect.TypeFor[int64]():                     {holds: integer, plain: true},
		reflect.TypeFor[uint64]():                    {holds: integer, plain: true},
		reflect.TypeFor[copied]():                    {holds: integer, plain: true},
		reflect.TypeFor[plain]():                     {holds: integer, plain: true},
		reflect.TypeFor[*uint64]():                   {holds: integer, pointer: true},
		reflect.TypeFor[sql.NullInt64]():             {holds: integer},
		reflect.TypeFor[sql.Null[plain]]():           {holds: integer},
		reflect.TypeFor[string]():                    {holds: texts},
		reflect.TypeFor[code]():                      {holds: texts},
		reflect.TypeFor[*code]():                     {holds: texts, pointer: true},
		reflect.TypeFor[int32]():                     {says: "int32 cannot hold a key of 64 bits"},
		reflect.TypeFor[*uint8]():                    {says: "*uint8 cannot hold a key of 64 bits"},
		reflect.TypeFor[sql.NullInt32]():             {says: "sql.NullInt32 cannot hold a key of 64 bits"},
		reflect.TypeFor[sql.Null[int16]]():           {says: "cannot hold a key of 64 bits"},
		reflect.TypeFor[valued]():                    {says: "valued has a Value or Scan method"},
		reflect.TypeFor[*pointed]():                  {says: "pointed has a Value or Scan method"},
		reflect.TypeFor[scanned]():                   {says: "scanned has a Value or Scan method"},
		reflect.TypeFor[sql.Null[valued]]():          {says: "has a Value or Scan method"},
		reflect.TypeFor[sql.NullString]():            {says: "holds no key"},
		reflect.TypeFor[sql.Null[*int64]]():          {says: "holds no key"},
		reflect.TypeFor[struct {
			N     int64
			Valid bool
		}](): {says: "holds no key"},
		reflect.TypeFor[embedder]():          {says: "holds no key"},
		reflect.TypeFor[types.Model]():       {says: "holds no key"},
		reflect.TypeFor[float64]():           {says: "holds no key"},
		reflect.TypeFor[uintptr]():           {says: "holds no key"},
		reflect.TypeFor[[]types.Snowflake](): {says: "holds no key"},
		reflect.TypeFor[loop]():              {says: "holds no key"},
	}
	if word := reflect.TypeFor[int](); word.Bits() == 64 { // run it with GOARCH=386
		wants[word] = want{holds: integer, plain: true}
	} else {
		wants[word] = want{says: "int cannot hold a key of 64 bits"}
	}
	for typ, want := range wants {
		for _, also := range []keytype.Also{0, keytype.Integers, keytype.Texts, keytype.Integers | keytype.Texts} {
			f, err := keytype.FieldOf(typ, also), keytype.Check(typ, also)
			holds := want.holds == always || want.holds == integer && also&keytype.Integers != 0 || want.holds == texts && also&keytype.Texts != 0
			if f.Holds() != holds || holds != (err == nil) {
				t.Errorf("FieldOf(%v, %b) = %+v, %v; want that it holds a key: %v", typ, also, f, err, holds)
			}
			if text := want.holds == texts && holds; f.Text() != text || f.Number() != (holds && !text) || f.Plain() != (holds && want.plain) || f.Pointer() != (holds && want.pointer) {
				t.Errorf("FieldOf(%v, %b) = %+v; want text %v, plain %v and behind a pointer %v", typ, also, f, text, want.plain, want.pointer)
			}
			if also == keytype.Integers|keytype.Texts && err != nil && !strings.Contains(err.Error(), want.says) {
				t.Errorf("FieldOf(%v, %b) = %v; want that it says %q", typ, also, err, want.says)
			}
		}
	}
}

func TestAKeyIsReadBackFromEveryFieldThatItWasSetIn(t *testing.T) {
	for _, row := range []any{
		new(types.Snowflake), new(types.ID[order]), new(int64), new(uint64), new(plain), new(copied),
		new(*types.Snowflake), new(pointer), new(**types.ID[order]), new(*uint64),
		new(types.NullSnowflake), new(types.NullID[order]), new(*types.NullSnowflake), new(sql.Null[types.ID[order]]), new(sql.NullInt64), new(sql.Null[uint64]),
	} {
		v := reflect.ValueOf(row).Elem()
		f := keytype.FieldOf(v.Type(), keytype.Integers)
		if id, null := f.Key(v); id != 0 || null == f.Plain() {
			t.Errorf("Key of a zero %T = %d, %v; want 0, and NULL where it is none", row, id, null)
		}
		for _, want := range []types.Snowflake{1, 0, math.MaxInt64} {
			f.Set(v, want)
			if id, null := f.Key(v); id != want || null {
				t.Errorf("Key of a %T set to %d = %d, %v; want it back", row, want, id, null)
			}
			if f.Plain() && *keytype.At(v) != want {
				t.Errorf("At(%T set to %d) = %d; want that key", row, want, *keytype.At(v))
			}
		}
		if f.Plain() {
			*keytype.At(v) = 9
			if id, _ := f.Key(v); id != 9 {
				t.Errorf("Key of a %T set to 9 by At = %d; want 9", row, id)
			}
		}
	}
	s := code("")
	if keytype.FieldOf(reflect.TypeOf(s), keytype.Texts).Set(reflect.ValueOf(&s).Elem(), 77); s != "77" {
		t.Errorf("Set of a %T to 77 = %q; want it in decimal", s, s)
	}
}

func TestANumberThatIsNoKeyIsBelowZero(t *testing.T) {
	for _, row := range []any{int64(-5), uint64(math.MaxInt64 + 1), sql.NullInt64{Int64: -1, Valid: true}, sql.Null[uint64]{V: math.MaxUint64, Valid: true}} {
		if id, null := keytype.FieldOf(reflect.TypeOf(row), keytype.Integers).Key(reflect.ValueOf(row)); id >= 0 || null {
			t.Errorf("Key(%T %v) = %d, %v; want a number below zero", row, row, id, null)
		}
	}
}

func TestAFieldReadsTheKeysThatFitAndNoOthers(t *testing.T) {
	for _, c := range []struct {
		field  any
		signed bool
	}{
		{types.Snowflake(0), false}, {types.ID[order](0), false}, {types.NullSnowflake{}, false}, {types.NullID[order]{}, false}, {sql.Null[types.ID[order]]{}, false},
		{new(types.Snowflake), false}, {uint64(0), false}, {sql.Null[uint64]{}, false}, {new(plain), false},
		{int64(0), true}, {copied(0), true}, {new(int64), true}, {sql.NullInt64{}, true}, {sql.Null[int64]{}, true},
	} {
		f := keytype.FieldOf(reflect.TypeOf(c.field), keytype.Integers)
		if !f.Fits(0) || !f.Fits(math.MaxInt64) || f.Fits(-1) != c.signed {
			t.Errorf("Fits of a %T = %v for 0, %v for the greatest, %v for -1; want true, true, %v", c.field, f.Fits(0), f.Fits(math.MaxInt64), f.Fits(-1), c.signed)
		}
		for _, stored := range []any{int64(7), uint64(7), "7", []byte("7")} {
			if id, null, err := f.Scan(stored); id != 7 || null || err != nil {
				t.Errorf("Scan(%T %v) of a %T = %d, %v, %v; want 7", stored, stored, c.field, id, null, err)
			}
		}
		if id, null, err := f.Scan(nil); id != 0 || !null || err != nil {
			t.Errorf("Scan(nil) of a %T = %d, %v, %v; want NULL", c.field, id, null, err)
		}
		for _, stored := range []any{int64(-7), "-7", []byte("-7")} {
			id, null, err := f.Scan(stored)
			if c.signed && (id != -7 || null || err != nil) || !c.signed && (id != 0 || !errors.Is(err, types.ErrRange)) {
				t.Errorf("Scan(%T %v) of a %T = %d, %v, %v; want it where it fits, and types.ErrRange elsewhere", stored, stored, c.field, id, null, err)
			}
		}
		for _, stored := range []any{uint64(math.MaxInt64 + 1), "9223372036854775808", 7.5, "x"} {
			if id, _, err := f.Scan(stored); id != 0 || err == nil {
				t.Errorf("Scan(%T %v) of a %T = %d, %v; want an error", stored, stored, c.field, id, err)
			}
		}
	}
}

func TestSetReplacesAPointerAndNeverWritesThroughIt(t *testing.T) {
	shared := types.Snowflake(5)
	at := &shared
	rows := []struct {
		One *types.Snowflake
		Two **types.Snowflake
	}{{at, &at}}
	v := reflect.ValueOf(&rows[0]).Elem()
	for i := range v.NumField() {
		keytype.FieldOf(v.Field(i).Type(), 0).Set(v.Field(i), 6)
	}
	if shared != 5 || at != &shared || *rows[0].One != 6 || **rows[0].Two != 6 {
		t.Errorf("after Set to 6 the rows have %d and %d, and the shared memory %d; want 6, 6 and 5", *rows[0].One, **rows[0].Two, shared)
	}
}
