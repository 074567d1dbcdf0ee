package sqlxhelper

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/types"
)

// traitsOf returns the traits of a valid dialect.
func traitsOf(d Dialect) *traits { return (*traits)(dialect.TraitsOf(d)) }

// schemaOf returns the schema of calls with rows of type T.
func schemaOf[T any](t testing.TB, d Dialect, table string, deep bool) *schema {
	t.Helper()
	s, err := New(nil).schema(reflect.TypeFor[T](), &conn{mapper: sqlx.NewDb(nil, "").Mapper, dialect: traitsOf(d)}, table, deep)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newTestWriter returns the writer of a call with a batch.
func newTestWriter(t testing.TB, b batch, s *schema) *writer {
	t.Helper()
	r, err := newRows(b, s)
	if err != nil {
		t.Fatal(err)
	}
	loads, err := r.loads()
	if err != nil {
		t.Fatal(err)
	}
	return &writer{rows: r, loads: loads, config: &config{}}
}

func TestSchemaIsMadeOnce(t *testing.T) {
	h := New(nil)
	c := &conn{mapper: sqlx.NewDb(nil, "").Mapper, dialect: traitsOf(SQLite)}
	typ := reflect.TypeFor[types.Model]()
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := h.schema(typ, c, "t", true); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("schema() makes %v allocations; want it to be found", n)
	}
}

func TestFewSchemasAreKept(t *testing.T) {
	h := New(nil)
	c := &conn{mapper: sqlx.NewDb(nil, "").Mapper, dialect: traitsOf(SQLite)}
	for i := range 3 * maxSchemas {
		if _, err := h.schema(reflect.TypeFor[types.Model](), c, fmt.Sprint("t", i), false); err != nil {
			t.Fatal(err)
		}
		kept := 0
		h.schemas.cache.Range(func(any, any) bool { kept++; return kept <= maxSchemas })
		if kept > maxSchemas {
			t.Fatalf("schemas after %d tables = %d or more; want at most %d", i+1, kept, maxSchemas)
		}
	}
}
