package types_test

import (
	"reflect"
	"testing"

	"github.com/snowkey/snowkey/types"
)

// GORM, sqlx and encoding/json read these tags, and other programs rely on them.
func TestModelTagsTheKeyForGormSqlxAndJSON(t *testing.T) {
	typ := reflect.TypeFor[types.Model]()
	if n := typ.NumField(); n != 1 {
		t.Fatalf("Model has %d fields; want 1", n)
	}
	f := typ.Field(0)
	if f.Name != "ID" || f.Type != reflect.TypeFor[types.Snowflake]() || f.Anonymous {
		t.Errorf("Model's field = %s %v, embedded %v; want ID Snowflake, not embedded", f.Name, f.Type, f.Anonymous)
	}
	for key, want := range map[string]string{"gorm": "primaryKey", "db": "id", "json": "id"} {
		if got := f.Tag.Get(key); got != want {
			t.Errorf("Model.ID tag %s = %q; want %q", key, got, want)
		}
	}
}
