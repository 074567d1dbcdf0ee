package outcome

import (
	"reflect"
	"testing"

	"github.com/snowkey/snowkey/internal/base/dialect"
)

func TestLastInsertedKeyOfATableIsTheProof(t *testing.T) {
	orders, items := Place{dialect.PostgreSQL, "orders", "id"}, Place{dialect.PostgreSQL, "items", "id"}
	r := &Record{}
	if got := r.Proofs(); got != nil {
		t.Errorf("Proofs() of nothing = %v; want nil", got)
	}
	if !r.empty() {
		t.Error("a record of nothing is not empty")
	}
	r.Add(orders, 2)
	r.Add(items, 4)
	if r.empty() {
		t.Error("a record of keys is empty")
	}
	r.Add(orders, 5)
	r.Add(orders, 0) // upserted, it may be older than the transaction
	want := []Proof{{orders, 5}, {items, 4}}
	if got := r.Proofs(); !reflect.DeepEqual(got, want) {
		t.Errorf("Proofs() = %v; want %v", got, want)
	}
}
