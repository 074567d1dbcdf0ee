package leasetest

import (
	"math"
	"testing"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// write is an operation that changes nonce from to nonce to.
func write(call, ret int64, from, to string) op {
	return op{call: call, ret: ret, next: func(s state) (state, bool) {
		ok := s.row.Nonce == from
		s.row.Nonce = to
		s.row.Renewals++
		return s, ok
	}}
}

// refused is an operation that was refused because the nonce differed.
func refused(call, ret int64, nonce string) op {
	return op{call: call, ret: ret, next: func(s state) (state, bool) { return s, s.row.Nonce != nonce }}
}

func read(call, ret int64, nonce string) op {
	return op{call: call, ret: ret, next: func(s state) (state, bool) { return s, s.row.Nonce == nonce }}
}

func unknown(o op) op {
	o.may, o.ret = true, math.MaxInt64
	return o
}

func numbered(o op, n int64) op {
	o.left = leasestore.Row{Renewals: n}
	return o
}

func TestLinearizableFindsOrders(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []op
		want verdict
	}{
		{"nothing", nil, ordered},
		{"one after the other", []op{write(1, 2, "", "a"), write(3, 4, "a", "b"), read(5, 6, "b")}, ordered},
		{"the wrong way round", []op{write(1, 2, "a", "b"), write(3, 4, "", "a")}, disorder},
		{"at the same time, the other first", []op{write(1, 4, "a", "b"), write(2, 3, "", "a")}, ordered},
		{"two winners", []op{write(1, 4, "", "a"), write(2, 3, "", "b")}, disorder},
		{"a stale read", []op{write(1, 2, "", "a"), write(3, 4, "a", "b"), read(5, 6, "a")}, disorder},
		{"a read during the write", []op{write(1, 2, "", "a"), write(3, 6, "a", "b"), read(4, 5, "a")}, ordered},
		{"a lost write", []op{write(1, 2, "", "a"), read(3, 4, "")}, disorder},
		{"unknown, done", []op{unknown(write(1, 0, "", "a")), read(3, 4, "a")}, ordered},
		{"unknown, not done", []op{unknown(write(1, 0, "", "a")), read(3, 4, "")}, ordered},
		{"unknown, done later", []op{unknown(write(1, 0, "", "a")), read(3, 4, ""), read(5, 6, "a")}, ordered},
		{"unknown, undone", []op{unknown(write(1, 0, "", "a")), read(3, 4, "a"), read(5, 6, "")}, disorder},
		{"unknown, before its call", []op{read(1, 2, "a"), unknown(write(3, 0, "", "a"))}, disorder},
		{"a refusal for no reason", []op{write(1, 2, "", "a"), refused(3, 4, "a")}, disorder},
		{"a refusal before the write that it would need", []op{write(1, 4, "", "a"), refused(2, 3, "a")}, ordered},
		{"a refusal after all", []op{refused(1, 6, ""), write(2, 3, "", "a"), read(4, 5, "a")}, ordered},
		{"reads of two that exclude each other", []op{unknown(write(1, 0, "", "a")), unknown(write(1, 0, "", "b")), read(2, 20, "a"), read(3, 20, "b")}, disorder},
		{"numbers that fit", []op{numbered(write(1, 4, "", "a"), 1), numbered(write(2, 3, "a", "b"), 2)}, ordered},
	} {
		if got := linearizable(c.ops); got != c.want {
			t.Errorf("linearizable(%s) = %q; want %q", c.name, got, c.want)
		}
	}
}

func TestLinearizableGivesUp(t *testing.T) {
	// A dozen writes in any order and number, and a read that no order explains.
	var ops []op
	for i := range 14 {
		name := string(rune('a' + i))
		ops = append(ops, unknown(op{call: 1, next: func(s state) (state, bool) {
			s.row.Nonce += name
			return s, true
		}}))
	}
	ops = append(ops, read(1, 2, "none"))
	if got := linearizable(ops); got != undecided {
		t.Errorf("linearizable(%d writes of unknown outcome) = %q; want %q", len(ops)-1, got, undecided)
	}
}
