package answers

import (
	"context"
	"testing"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
)

// A table is a row with the last number, and what a transaction that is open made of it.
type table struct{ committed, last int64 }

func (r *table) begin()      { r.last = r.committed }
func (r *table) next() int64 { r.last++; return r.last }

// Two callers read the row before either writes it: SELECT, then UPDATE, without a lock.
func TestReadThenWriteGivesANumberTwice(t *testing.T) {
	var row table
	a := row.committed + 1 // A: SELECT
	b := row.committed + 1 // B: SELECT
	row.committed = a      // A: UPDATE, COMMIT
	row.committed = b      // B: UPDATE, COMMIT
	if a != b {
		t.Errorf("A gets %d and B %d; want one number twice", a, b)
	}

	store := rowOf(t, 1, 1, 0)
	x, y := takeOne(t, store), takeOne(t, store)
	if x == y {
		t.Errorf("two calls of Take give %d; want two numbers", x)
	}
}

// The number is taken in the caller's transaction. The caller prints it, and rolls back.
func TestARollbackGivesANumberAgainThatIsInUseOutside(t *testing.T) {
	var row table
	row.begin()
	printed := row.next() // on an invoice, in a message, in another database
	// ROLLBACK
	row.begin()
	if again := row.next(); again != printed {
		t.Errorf("the next transaction gets %d; want %d again", again, printed)
	}
}

func rowOf(t *testing.T, next, stride, offset int64) segment.Store {
	store := new(segmenttest.Memory)
	err := store.Create(t.Context(), segment.Row{Tag: "a", Next: next, Step: 1, Stride: stride, Offset: offset})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func takeOne(t *testing.T, s segment.Store) int64 {
	r, err := s.Take(context.Background(), segment.Take{Tag: "a"})
	if err != nil {
		t.Fatal(err)
	}
	return r.First*r.Stride + r.Offset
}
