package sqlxhelper

import (
	"reflect"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/types"
)

func TestPlanIsBuiltOnce(t *testing.T) {
	h := New(nil)
	m := sqlx.NewDb(nil, "").Mapper
	typ := reflect.TypeFor[types.Model]()
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := h.plan(typ, m); err != nil {
			t.Fatal(err)
		}
	}); n > 2 {
		t.Errorf("plan() makes %v allocations; want it to be found", n)
	}
}
