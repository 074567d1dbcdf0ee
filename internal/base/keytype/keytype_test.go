package keytype_test

import (
	"database/sql"
	"reflect"
	"testing"

	"github.com/snowkey/snowkey/internal/base/keytype"
	"github.com/snowkey/snowkey/types"
)

type (
	order    struct{ ID types.ID[order] }
	own      types.ID[order]
	ID       int64
	pointer  *types.ID[order]
	embedder struct{ types.NullID[order] }
)

func TestUntypedTellsKeysFromOtherTypes(t *testing.T) {
	for _, c := range [][2]reflect.Type{
		{reflect.TypeFor[types.ID[order]](), reflect.TypeFor[types.Snowflake]()},
		{reflect.TypeFor[types.ID[map[string]int]](), reflect.TypeFor[types.Snowflake]()},
		{reflect.TypeFor[types.Snowflake](), reflect.TypeFor[types.Snowflake]()},
		{reflect.TypeFor[*types.ID[order]](), reflect.TypeFor[*types.Snowflake]()},
		{reflect.TypeFor[types.NullID[order]](), reflect.TypeFor[types.NullSnowflake]()},
		{reflect.TypeFor[sql.Null[types.ID[order]]](), reflect.TypeFor[sql.Null[types.Snowflake]]()},
	} {
		got := keytype.Untyped(c[0])
		if got != c[1] {
			t.Errorf("Untyped(%v) = %v; want %v", c[0], got, c[1])
		}
		if got.Size() != c[0].Size() || got.Align() != c[0].Align() {
			t.Errorf("%v has size %d and alignment %d; want those of %v", got, got.Size(), got.Align(), c[0])
		}
		for i := 0; got.Kind() == reflect.Struct && i < got.NumField(); i++ {
			if got.Field(i).Offset != c[0].Field(i).Offset || got.Field(i).Type.Kind() != c[0].Field(i).Type.Kind() {
				t.Errorf("field %d of %v is laid out otherwise than that of %v", i, got, c[0])
			}
		}
	}
	for _, other := range []reflect.Type{
		reflect.TypeFor[int64](), reflect.TypeFor[ID](), reflect.TypeFor[own](), reflect.TypeFor[order](), reflect.TypeFor[embedder](),
		reflect.TypeFor[pointer](), reflect.TypeFor[**types.ID[order]](), reflect.TypeFor[*types.NullID[order]](), reflect.TypeFor[[]types.ID[order]](),
		reflect.TypeFor[sql.Null[int64]](), reflect.TypeFor[sql.NullInt64](), reflect.TypeFor[types.Model](), reflect.TypeFor[string](),
	} {
		if got := keytype.Untyped(other); got != other {
			t.Errorf("Untyped(%v) = %v; want it as it is", other, got)
		}
	}
}
