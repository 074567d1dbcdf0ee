package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

var (
	start = time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	space = leasestore.Space{Namespace: "memory", Workers: 16, Layout: "layout"}
)

func claimAt(now time.Time, n int) leasestore.Claim {
	return leasestore.Claim{
		Space: space, Owner: fmt.Sprintf("%032x", n), Nonce: fmt.Sprintf("%032x", n),
		Window: 1000, Now: leasestore.MillisOf(now), Skew: 100,
	}
}

func rowsOf(t *testing.T, m *leasetest.Memory) []leasestore.Row {
	t.Helper()
	rows, _, err := m.Rows(t.Context(), space)
	if err != nil {
		t.Fatalf("Rows = error %v; want rows", err)
	}
	return rows
}

func TestMemoryAnswersTheSameToTheSameTokens(t *testing.T) {
	run := func(seed int) (replies []leasestore.Reply) {
		now := start
		m := leasetest.NewMemory(func() time.Time { return now })
		for n := range 40 {
			r, err := m.Claim(t.Context(), claimAt(now, 1000*seed+n))
			if err != nil {
				t.Fatalf("Claim %d = error %v; want a row", n, err)
			}
			replies = append(replies, r)
			now = now.Add(100 * time.Millisecond) // so that 10 of 16 rows are held
		}
		return replies
	}
	if a, b := run(1), run(1); !slices.Equal(a, b) {
		t.Errorf("two runs with the same tokens = %+v and %+v; want the same", a, b)
	}
	if a, b := run(1), run(2); slices.Equal(a, b) {
		t.Errorf("runs with other tokens = %+v, both; want another order", a)
	}
}

func TestZeroMemoryIsReadyToUse(t *testing.T) {
	var m leasetest.Memory
	if rows := rowsOf(t, &m); len(rows) != 0 {
		t.Errorf("Rows of a zero Memory = %+v; want none", rows)
	}
	m.Delete(space, 3)
	before := leasestore.MillisOf(time.Now())
	r, err := m.Claim(t.Context(), claimAt(time.Now(), 1))
	if err != nil || r.Now < before || r.Now > leasestore.MillisOf(time.Now()) {
		t.Errorf("Claim on a zero Memory = %+v, error %v; want a row, and the system's clock", r, err)
	}
}

func TestRestoreLosesTheWritesSince(t *testing.T) {
	m := leasetest.NewMemory(func() time.Time { return start })
	empty := m.Snapshot()
	first, err := m.Claim(t.Context(), claimAt(start, 1))
	if err != nil {
		t.Fatalf("Claim = error %v; want a row", err)
	}
	one, rows := m.Snapshot(), rowsOf(t, m)
	renewal := leasestore.Renewal{
		Space: space, Worker: first.Row.Worker, Epoch: 1, Owner: first.Row.Owner,
		Known: []string{first.Row.Nonce}, Nonce: "fresh", Window: 5000, Now: leasestore.MillisOf(start), Until: first.Row.Until,
	}
	write := func() {
		t.Helper()
		if _, err := m.Renew(t.Context(), renewal); err != nil {
			t.Fatalf("Renew = error %v; want it renewed", err)
		}
		if _, err := m.Claim(t.Context(), claimAt(start, 2)); err != nil {
			t.Fatalf("Claim = error %v; want a row", err)
		}
	}
	for range 2 { // a snapshot may be restored twice, so later writes must not change it
		write()
		if got := rowsOf(t, m); slices.Equal(got, rows) {
			t.Fatalf("Rows after a renewal and a claim = %+v; want them changed", got)
		}
		m.Restore(one)
		if got := rowsOf(t, m); !slices.Equal(got, rows) {
			t.Fatalf("Rows after Restore = %+v; want %+v", got, rows)
		}
	}
	for _, s := range []leasetest.Snapshot{empty, {}} {
		m.Restore(s)
		if got := rowsOf(t, m); len(got) != 0 {
			t.Errorf("Rows after Restore of an empty store = %+v; want none", got)
		}
		other := claimAt(start, 3)
		other.Space.Layout = "another"
		if _, err := m.Claim(t.Context(), other); err != nil {
			t.Errorf("Claim with another layout after Restore of an empty store = error %v; want a row", err)
		}
	}
}

func TestSetMakesTheSpace(t *testing.T) {
	m := leasetest.NewMemory(func() time.Time { return start })
	row := leasestore.Row{Worker: 5, Epoch: 7, Until: leasestore.MillisOf(start), Renewals: 9}
	m.Set(space, row)
	rows := rowsOf(t, m)
	if len(rows) != 16 || rows[5] != row || rows[4] != (leasestore.Row{Worker: 4}) {
		t.Errorf("Rows after Set(%+v) = %+v; want 16 rows, the others new", row, rows)
	}
}

func TestDeletedRowsAreNotMadeAnew(t *testing.T) {
	m := leasetest.NewMemory(func() time.Time { return start })
	m.Set(space, leasestore.Row{})
	for worker := range space.Workers {
		m.Delete(space, worker)
	}
	if r, err := m.Claim(t.Context(), claimAt(start, 1)); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim when all rows were deleted = %+v, error %v; want it to match lease.ErrNoFreeWorker", r, err)
	}
}

func TestMemoryWrapsTheContextError(t *testing.T) {
	m := leasetest.NewMemory(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, claim := m.Claim(ctx, claimAt(time.Now(), 1))
	_, renew := m.Renew(ctx, leasestore.Renewal{Space: space})
	_, _, rows := m.Rows(ctx, space)
	for call, err := range map[string]error{"Claim": claim, "Renew": renew, "Release": m.Release(ctx, leasestore.Release{Space: space}), "Rows": rows} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that is done = error %v; want it to match context.Canceled", call, err)
		}
	}
}

func ExampleMemory() {
	now := time.Date(2025, 6, 1, 12, 0, 0, 0, time.UTC)
	store := leasetest.NewMemory(func() time.Time { return now })
	space := leasestore.Space{Namespace: "orders", Workers: 1, Layout: "ours"}
	claim := leasestore.Claim{
		Space: space, Owner: "0a", Nonce: "0b",
		Window: 10_000, Now: leasestore.MillisOf(now), Skew: 1_000,
	}
	reply, err := store.Claim(context.Background(), claim)
	fmt.Println(reply.Row.Worker, reply.Row.Epoch, reply.Row.Until.Time().Format(time.TimeOnly), err)

	now = now.Add(4 * time.Second)
	claim.Owner, claim.Now = "1a", leasestore.MillisOf(now)
	_, err = store.Claim(context.Background(), claim)
	fmt.Println(err)
	// Output:
	// 0 1 12:00:10 <nil>
	// lease: no worker number is free: all 1 of namespace "orders", datacenter 0 are reserved; the earliest is free at 2025-06-01T12:00:10Z, in 6s, unless it is renewed
}
