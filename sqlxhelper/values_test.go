package sqlxhelper

import (
	"database/sql/driver"
	"reflect"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/types"
)

// large is a small value whose text is not.
type large int

func (l large) Value() (driver.Value, error) { return strings.Repeat("x", int(l)), nil }

// It is what Value returns that is sent. A row is never left behind for its size.
func TestChunkHoldsNoMoreThanItsBytes(t *testing.T) {
	type sized struct {
		types.Model
		A large
		B any
	}
	p, err := newPlan(reflect.TypeFor[sized](), sqlx.NewDb(nil, "").Mapper, false)
	if err != nil {
		t.Fatal(err)
	}
	limit := large(traitsOf(MySQL).bytes)
	rows := []sized{{A: limit + 1}, {A: 1}, {B: limit / 2}, {A: limit / 2}, {A: limit / 4}, {B: limit / 4}, {A: limit / 4}, {B: limit / 4}}
	l := &load{group: group{table: &table{plan: p, columns: p.columns}}}
	for i := range rows {
		l.rows = append(l.rows, reflect.ValueOf(rows).Index(i))
	}
	v := values{writer: &writer{dialect: traitsOf(MySQL)}, load: l}
	var got []int
	for first := 0; first < len(rows); {
		n, err := v.take(first)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
		first += n
	}
	if want := []int{1, 2, 2, 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows by chunk = %v; want %v", got, want)
	}
}
