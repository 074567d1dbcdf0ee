package sqlxhelper

import (
	"database/sql/driver"
	"reflect"
	"strings"
	"testing"

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
	const limit = statementBytes
	rows := []sized{{A: limit + 1}, {A: 1}, {B: large(limit / 2)}, {A: limit / 2}, {A: limit / 4}, {B: large(limit / 4)}, {A: limit / 4}, {B: large(limit / 4)}}
	b, err := manyRows("InsertMany", rows)
	if err != nil {
		t.Fatal(err)
	}
	w := newTestWriter(t, b, schemaOf[sized](t, MySQL, "t", false))
	v := values{attempt: &attempt{writer: w}, load: &w.loads[0]}
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
