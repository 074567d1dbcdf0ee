package zklease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// An operation is one call of a Store, on a row that is held.
type operation struct {
	name string
	do   func(ctx context.Context, s *Store) error
}

// operations returns one operation of each kind, all for the row that c has won with r.
func operations(c leasestore.Claim, r leasestore.Reply) []operation {
	return []operation{
		{"Claim", func(ctx context.Context, s *Store) error {
			_, err := s.Claim(ctx, claimOf(c.Space, "other"))
			return err
		}},
		{"first Claim", func(ctx context.Context, s *Store) error {
			sp := c.Space
			sp.Namespace = "new"
			_, err := s.Claim(ctx, claimOf(sp, "other"))
			return err
		}},
		{"Renew", func(ctx context.Context, s *Store) error {
			_, err := s.Renew(ctx, renewalOf(c, r, "n1"))
			return err
		}},
		{"Release", func(ctx context.Context, s *Store) error { return s.Release(ctx, releaseOf(c, r, "n1")) }},
		{"Rows", func(ctx context.Context, s *Store) error { _, _, err := s.Rows(ctx, c.Space); return err }},
		{"Claim of worker 2", func(ctx context.Context, s *Store) error {
			_, err := s.Claim(ctx, claimOf(c.Space, "other", 2))
			return err
		}},
	}
}

// Each call of each operation fails once in each way: without effect, or with an effect and
// without a reply.
func TestFailedCallIsNeverARefusalNorSuccess(t *testing.T) {
	for i := range operations(leasestore.Claim{}, leasestore.Reply{}) {
		for _, failure := range unsure {
			for _, f := range []fault{{lost: failure}, {reply: failure}} {
				for n, more := 0, true; more; n++ {
					more = failOnce(t, i, n, f, failure)
				}
			}
		}
	}
}

// failOnce makes the n-th call of the i-th operation fail, and returns false if there were not
// that many.
func failOnce(t *testing.T, i, n int, f fault, failure error) bool {
	t.Helper()
	sv := newServer()
	well, _ := sv.open(t)
	c := claimOf(four, "me", 1)
	r := hold(t, well, c)

	s, conn := sv.open(t)
	swapped := false // the failing call writes a row, which a claim repeats
	hook, count := nth(n, f, func(string, string) bool { return true })
	conn.inject(func(op, name string) fault {
		f := hook(op, name)
		if f != (fault{}) {
			swapped = op == "multi"
		}
		return f
	})
	op := operations(c, r)[i]
	err := op.do(t.Context(), s)
	if count() <= n {
		if err != nil {
			t.Errorf("%s = error %v; want none", op.name, err)
		}
		return false
	}
	call := fmt.Sprintf("%s whose call %d is %+v", op.name, n, f)
	if err != nil && (definite(err) || !errors.Is(err, failure)) {
		t.Errorf("%s = error %v; want one that matches %v and says nothing of the row", call, err, failure)
	}
	if err != nil && !strings.HasPrefix(err.Error(), "zklease: ") {
		t.Errorf("%s = error %q; want it to begin with the package", call, err)
	}
	claimed := func(sp leasestore.Space) bool {
		rows, _, err := well.Rows(t.Context(), sp)
		return err == nil && slices.ContainsFunc(rows, func(row leasestore.Row) bool { return row.Owner == "other" })
	}
	switch {
	case err != nil:
	case op.name == "first Claim": // it does not need the rows that it reads, which may not exist yet
	case strings.HasPrefix(op.name, "Claim") && swapped && claimed(four):
	default:
		t.Errorf("%s = nil; want an error", call)
	}

	// Whatever the outcome, a fresh claim, renewal or release succeeds.
	row, _ := rowOf(t, well, four, 1)
	switch op.name {
	case "Renew":
		if _, err := s.Renew(t.Context(), renewalOf(c, r, "n2", "n1")); err != nil {
			t.Errorf("Renew after %s = error %v; want it renewed", call, err)
		}
	case "Release":
		err := s.Release(t.Context(), releaseOf(c, r, "n2", "n1"))
		if done := row.Owner == ""; done != errors.Is(err, leasestore.ErrLost) || !done && err != nil {
			t.Errorf("Release after %s, row %+v, = error %v; want it lost if and only if it was released", call, row, err)
		}
	case "first Claim":
		sp := four
		sp.Namespace = "new"
		hold(t, s, claimOf(sp, "again"))
		if rows, _, _ := s.Rows(t.Context(), sp); len(rows) != 4 {
			t.Errorf("Rows after %s and another = %+v; want 4", call, rows)
		}
	default:
		hold(t, s, claimOf(four, "again"))
		if row.Owner != "me" {
			t.Errorf("row 1 after %s = %+v; want it held as before", call, row)
		}
	}
	return true
}

// takeOver gives a row to another owner by hand.
func takeOver(sv *server, path string, change func(*leasestore.Row)) {
	sv.poke(func(nodes map[string]znode) {
		n := nodes[path]
		row, _ := decodeRow([]byte(n.data))
		change(&row)
		n.data, n.version = string(encodeRow(row)), n.version+1
		nodes[path] = n
	})
}

func TestConflictIsDecidedByWhatIsThere(t *testing.T) {
	const path = "/s/shop/3/1"
	other := func(row *leasestore.Row) { row.Epoch, row.Owner, row.Nonce = row.Epoch+1, "thief", "t" }
	own := func(row *leasestore.Row) { row.Nonce, row.Until = "n1", row.Until+5 }
	copied := func(row *leasestore.Row) { row.Nonce = "copy" }
	for _, test := range []struct {
		name   string
		change func(*leasestore.Row)
		want   leasestore.Reason
	}{
		{"another has claimed it", other, leasestore.TakenOver},
		{"a renewal of its own has come late", own, ""},
		{"a copy has renewed it", copied, leasestore.Copied},
	} {
		for i, call := range []string{"Renew", "Release"} {
			sv := newServer()
			s, conn := sv.open(t)
			c := claimOf(four, "me", 1)
			r := hold(t, s, c)
			meanwhile := sync.OnceFunc(func() { takeOver(sv, path, test.change) })
			conn.inject(func(op, name string) fault {
				if op == "multi" && name == path {
					meanwhile()
				}
				return fault{}
			})
			var err error
			if i == 0 {
				_, err = s.Renew(t.Context(), renewalOf(c, r, "n2", "n1"))
			} else {
				err = s.Release(t.Context(), releaseOf(c, r, "n2", "n1"))
			}
			var lost *leasestore.LostError
			if errors.As(err, &lost) != (test.want != "") || lost != nil && lost.Reason != test.want || lost == nil && err != nil {
				t.Errorf("%s while %s = error %v; want reason %q", call, test.name, err, test.want)
			}
		}
	}
}

func TestClaimThatIsTooLateTakesAnotherRow(t *testing.T) {
	sv := newServer()
	s, conn := sv.open(t)
	hold(t, s, claimOf(four, "first", 0))
	var mu sync.Mutex
	stolen := map[string]bool{}
	conn.inject(func(op, name string) fault { // one row is taken just before the claim takes it, and one deleted
		mu.Lock()
		defer mu.Unlock()
		if op == "multi" && strings.HasPrefix(name, "/") && len(stolen) < 2 {
			if len(stolen) == 0 {
				takeOver(sv, name, func(row *leasestore.Row) {
					row.Owner, row.Until = "thief", leasestore.MillisOf(time.Now())+window
				})
			} else {
				sv.poke(func(nodes map[string]znode) { delete(nodes, name) })
			}
			stolen[name] = true
		}
		return fault{}
	})
	r := hold(t, s, claimOf(four, "me"))
	if got := fmt.Sprintf("/s/shop/3/%d", r.Row.Worker); stolen[got] || len(stolen) != 2 {
		t.Errorf("Claim = %+v after %v were taken or deleted; want the one that is left", r, stolen)
	}
	_, err := s.Claim(t.Context(), claimOf(four, "late"))
	var full *leasestore.NoFreeWorkerError
	if !errors.As(err, &full) || full.Rows != 3 {
		t.Errorf("Claim when all are taken = error %v; want a *lease.NoFreeWorkerError for the 3 rows that are there", err)
	}
}

// Somebody empties the namespace, and gives it another layout, between a claim's reading and its writing.
func TestClaimThatReadAnotherLayoutWritesNothing(t *testing.T) {
	sv := newServer()
	s, conn := sv.open(t)
	hold(t, s, claimOf(four, "first", 0))
	var given sync.Once
	conn.inject(func(op, _ string) fault {
		if op == "multi" {
			given.Do(func() {
				sv.poke(func(nodes map[string]znode) {
					n := nodes["/s/shop"]
					n.data, n.version = string(encodeLayout("another")), n.version+1
					nodes["/s/shop"] = n
				})
			})
		}
		return fault{}
	})
	if r, err := s.Claim(t.Context(), claimOf(four, "me", 1)); !errors.Is(err, leasestore.ErrLayout) {
		t.Errorf("Claim while the layout becomes another = %+v, %v; want a *lease.LayoutError", r, err)
	}
	four := four
	four.Layout = "another"
	if row, _ := rowOf(t, s, four, 1); row.Owner != "" {
		t.Errorf("the row after that claim = %+v; want it free", row)
	}
}

// A holder's session expires, and its next one is at a server that lags, which shows states of
// the row in which the holder would have lost it.
func TestOldReadIsNoRefusal(t *testing.T) {
	for i, past := range []string{"before there was anything", "before the claim", "before the last renewal"} {
		for _, call := range []string{"Renew", "Release"} {
			sv := newServer()
			s, _ := sv.open(t)
			old, behind := sv.open(t)
			if i == 0 {
				behind.lag()
			}
			hold(t, s, claimOf(four, "somebody", 0))
			if i == 1 {
				behind.lag()
			}
			c := claimOf(four, "me", 1)
			r := hold(t, s, c)
			if i == 2 {
				behind.lag()
			}
			if _, err := s.Renew(t.Context(), renewalOf(c, r, "n1")); err != nil {
				t.Fatalf("Renew = error %v; want it renewed", err)
			}
			c.Nonce = "n1" // the confirmed one

			var err error
			if call == "Renew" {
				_, err = old.Renew(t.Context(), renewalOf(c, r, "n2"))
			} else {
				err = old.Release(t.Context(), releaseOf(c, r, "n2"))
			}
			if err != nil {
				t.Errorf("%s by a server that shows the row as %s = error %v; want it done", call, past, err)
			}
		}
	}
}

func TestOldReadIsNoClaim(t *testing.T) {
	sv := newServer()
	s, _ := sv.open(t)
	old, behind := sv.open(t)
	hold(t, s, claimOf(four, "a"))
	behind.lag()
	for _, owner := range []string{"b", "c", "d"} {
		hold(t, s, claimOf(four, owner))
	}
	if r, err := old.Claim(t.Context(), claimOf(four, "late")); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim by a server that shows three rows free = %+v, %v; want a *lease.NoFreeWorkerError", r, err)
	}

	empty, behind := newServer(), &session{}
	behind.server = empty
	behind.lag()
	s, _ = empty.open(t)
	old = newStore(t, behind, Config{Prefix: "/s"})
	hold(t, s, claimOf(four, "a"))
	sp := four
	sp.Layout = "another"
	if r, err := old.Claim(t.Context(), claimOf(sp, "late")); !errors.Is(err, leasestore.ErrLayout) {
		t.Errorf("Claim by a server that shows no layout = %+v, %v; want a *lease.LayoutError", r, err)
	}
}

// A write that the client kept while it had no connection is sent at last, when another owner
// has the row.
func TestLateWriteHasNoEffect(t *testing.T) {
	for i, op := range operations(claimOf(four, "me", 1), leasestore.Reply{})[:4] {
		if op.name == "first Claim" {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			sv := newServer()
			well, _ := sv.open(t)
			sp := four
			sp.Workers = 1
			c := claimOf(sp, "me")
			r := hold(t, well, c)
			if op.name == "Claim" { // the late claim must find the row free
				if err := well.Release(t.Context(), releaseOf(c, r, "n1")); err != nil {
					t.Fatalf("Release = error %v; want none", err)
				}
			}
			s, conn := sv.open(t)
			connected := make(chan struct{})
			conn.inject(func(op, _ string) fault {
				if op == "multi" { // also those by which a claim finds out about its first one
					return fault{until: connected}
				}
				return fault{}
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := operations(c, r)[i].do(ctx, s); !errors.Is(err, context.DeadlineExceeded) || definite(err) {
				t.Errorf("%s without a connection = error %v; want context.DeadlineExceeded", op.name, err)
			}
			time.Sleep(window.Duration() + time.Second) // until the row is free
			want := hold(t, well, claimOf(sp, "next")).Row
			close(connected)
			synctest.Wait()
			if got, _ := rowOf(t, well, sp, 0); got != want {
				t.Errorf("row after the late write of %s = %+v; want %+v", op.name, got, want)
			}
		})
	}
}

// All calls hang. The operation ends with ctx, and its goroutines end with the calls, or the
// bubble would not end before them.
func TestOperationEndsWithItsContext(t *testing.T) {
	for i, op := range operations(claimOf(four, "me"), leasestore.Reply{}) {
		synctest.Test(t, func(t *testing.T) {
			sv := newServer()
			well, _ := sv.open(t)
			c := claimOf(four, "me", 1)
			r := hold(t, well, c)
			s, conn := sv.open(t)
			end := make(chan struct{})
			conn.inject(func(string, string) fault { return fault{until: end} })
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			began := time.Now()
			err := operations(c, r)[i].do(ctx, s)
			if !errors.Is(err, context.DeadlineExceeded) || definite(err) {
				t.Errorf("%s = error %v; want context.DeadlineExceeded", op.name, err)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("%s took %v; want 3s at most, as ctx", op.name, took)
			}
			synctest.Wait()
			conn.log()
			close(end)
			synctest.Wait()
			if calls := conn.log(); len(calls) != 0 {
				t.Errorf("%s calls %q after its context has ended; want nothing", op.name, calls)
			}
		})
	}
}

func TestDoneContextSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conn := newServer().open(t)
		c := claimOf(four, "me")
		r := hold(t, s, c)
		synctest.Wait() // until the claim's first reads, before there were rows, are answered
		conn.log()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, op := range operations(c, r) {
			if err := op.do(ctx, s); !errors.Is(err, context.Canceled) {
				t.Errorf("%s with a done context = error %v; want context.Canceled", op.name, err)
			}
		}
		synctest.Wait()
		if calls := conn.log(); len(calls) != 0 {
			t.Errorf("calls = %q; want none", calls)
		}
	})
}

func TestCallsStopBetweenTheStepsOfOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, conn := newServer().open(t) // without a base: the clock has to be made
		end := make(chan struct{})
		conn.inject(func(string, string) fault { return fault{until: end} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := s.Rows(ctx, four); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Rows = error %v; want context.DeadlineExceeded", err)
		}
		close(end)
		synctest.Wait()
		if calls := conn.log(); !slices.Equal(calls, []string{"set /s/@clock"}) {
			t.Errorf("calls = %q; want one, and nothing after the context has ended", calls)
		}
	})
}

// Rows beyond the first few are found as often, or all claimants would meet there.
func TestClaimsSpreadOverALargeSpace(t *testing.T) {
	sp := four
	sp.Workers = 1024
	s, _ := newServer().open(t)
	high := false
	for i := range probes { // further claims would find the first few rows held
		r := hold(t, s, claimOf(sp, fmt.Sprintf("p%d", i)))
		high = high || r.Row.Worker >= 128
	}
	if !high { // once in 16 million runs
		t.Errorf("%d claims won none of the workers 128..1023; want some to", probes)
	}
}

// With calls that take a second each, the duration of an operation counts its round trips.
func TestOperationsTakeFewRoundTrips(t *testing.T) {
	large := four
	large.Workers = 1024
	for _, test := range []struct {
		name  string
		space leasestore.Space
		held  int64 // besides the row of the operation
		op    int
		want  time.Duration
	}{
		{"Claim, all free", large, 0, 0, 2},
		{"Claim, one free", large, 1022, 0, 6}, // at most: it stops at the first free row
		{"Claim of one that is free", large, 0, 5, 2},
		{"Renew", large, 0, 2, 3},
		{"Release", large, 0, 3, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv := newServer()
			well, _ := sv.open(t)
			c := claimOf(test.space, "me", 0)
			r := hold(t, well, c)
			sv.poke(func(nodes map[string]znode) {
				for worker := range test.held {
					name := fmt.Sprintf("/s/shop/3/%d", worker+1)
					nodes[name] = znode{data: string(encodeRow(leasestore.Row{Worker: worker + 1, Owner: "x", Until: r.Now + window}))}
				}
			})
			s, conn := sv.open(t)
			conn.inject(func(string, string) fault { time.Sleep(time.Second); return fault{} })
			began := time.Now()
			if err := operations(c, r)[test.op].do(t.Context(), s); err != nil {
				t.Fatalf("%s = error %v; want none", test.name, err)
			}
			trips := time.Since(began) / time.Second
			if trips > test.want || trips < test.want && test.held == 0 {
				t.Errorf("%s takes %d round trips; want %d", test.name, trips, test.want)
			}
			writes := slices.DeleteFunc(conn.log(), func(call string) bool { return strings.HasPrefix(call, "get ") })
			if want := 2; len(writes) > want {
				t.Errorf("%s writes %q; want at most %d", test.name, writes, want)
			}
		})
	}
}

func TestForeignPayloadIsNamed(t *testing.T) {
	foreign := func(sv *server, path string) {
		sv.poke(func(nodes map[string]znode) {
			n := nodes[path]
			n.data, n.version = "v2 "+strings.Repeat("x", 100), n.version+1
			nodes[path] = n
		})
	}
	isDamaged := func(call string, err error, path string) {
		t.Helper()
		lost := call == "Renew" || call == "Release" // its lease takes another row
		if !errors.Is(err, ErrDamaged) || errors.Is(err, leasestore.ErrLost) != lost || !strings.Contains(err.Error(), path) || len(err.Error()) > 500 {
			t.Errorf("%s = error %v; want one that matches ErrDamaged and names %s, lost: %v", call, err, path, lost)
		}
	}
	sv := newServer()
	s, _ := sv.open(t)
	c := claimOf(four, "me", 1)
	r := hold(t, s, c)
	foreign(sv, "/s/shop/3/1")
	_, err := s.Renew(t.Context(), renewalOf(c, r, "n1"))
	isDamaged("Renew", err, "/s/shop/3/1")
	isDamaged("Release", s.Release(t.Context(), releaseOf(c, r, "n1")), "/s/shop/3/1")
	_, _, err = s.Rows(t.Context(), four)
	isDamaged("Rows", err, "/s/shop/3/1")
	for _, owner := range []string{"b", "c", "d"} { // the other rows are still usable
		hold(t, s, claimOf(four, owner))
	}
	_, err = s.Claim(t.Context(), claimOf(four, "late"))
	isDamaged("Claim", err, "/s/shop/3/1")
	var full *leasestore.NoFreeWorkerError
	if !errors.As(err, &full) || full.Rows != 3 {
		t.Errorf("Claim when three rows are held and one is foreign = error %v; want a *lease.NoFreeWorkerError for 3 rows too", err)
	}
	for _, path := range []string{"/s/shop/3", "/s/shop"} {
		foreign(sv, path)
		_, err = s.Claim(t.Context(), claimOf(four, "late"))
		isDamaged("Claim", err, path)
	}

	// A claim passes over all of these.
	large := four
	large.Workers = 100
	sv = newServer()
	s, _ = sv.open(t)
	hold(t, s, claimOf(large, "me", 0))
	for worker := range int64(99) {
		foreign(sv, fmt.Sprintf("/s/shop/3/%d", worker))
	}
	hold(t, s, claimOf(large, "last"))

	// A row in another one's place is foreign too.
	sv = newServer()
	s, _ = sv.open(t)
	r = hold(t, s, c)
	sv.poke(func(nodes map[string]znode) { nodes["/s/shop/3/1"] = nodes["/s/shop/3/2"] })
	_, err = s.Renew(t.Context(), renewalOf(c, r, "n1"))
	isDamaged("Renew", err, "/s/shop/3/1")
	_, _, err = s.Rows(t.Context(), four)
	isDamaged("Rows", err, "/s/shop/3/1")
}

// Version -1 would mean "any version" in the write that follows.
func TestNegativeVersionIsNotWritten(t *testing.T) {
	sv := newServer()
	s, _ := sv.open(t)
	c := claimOf(four, "me", 1)
	r := hold(t, s, c)
	sv.poke(func(nodes map[string]znode) {
		n := nodes["/s/shop/3/1"]
		n.version = -1
		nodes["/s/shop/3/1"] = n
	})
	if _, err := s.Renew(t.Context(), renewalOf(c, r, "n1")); !errors.Is(err, errVersions) || definite(err) {
		t.Errorf("Renew at version -1 = error %v; want %v", err, errVersions)
	}
}

// A first claim is cut off after each of its transactions, and the next claim completes the
// space.
func TestHalfMadeSpaceIsCompleted(t *testing.T) {
	sp := four
	sp.Workers = 300
	for n := range 3 {
		for _, f := range []fault{{lost: zk.ErrConnectionClosed}, {reply: zk.ErrConnectionClosed}} {
			sv := newServer()
			broken, conn := sv.open(t)
			conn.fault, _ = nth(n, f, func(op, _ string) bool { return op == "multi" })
			if _, err := broken.Claim(t.Context(), claimOf(sp, "broken")); !errors.Is(err, zk.ErrConnectionClosed) {
				t.Fatalf("Claim = error %v; want %v", err, zk.ErrConnectionClosed)
			}
			if got, _ := sv.peek("/s/shop/3"); got != "v1 workers=300 state=filling" {
				t.Errorf("/s/shop/3 = %q; want it to be filling", got)
			}
			sv.poke(func(nodes map[string]znode) { delete(nodes, "/s/shop/3/7") }) // still zero, if it exists
			s, _ := sv.open(t)
			hold(t, s, claimOf(sp, "me"))
			rows, _, err := s.Rows(t.Context(), sp)
			if err != nil || len(rows) != 300 {
				t.Errorf("Rows = %d rows, %v; want 300", len(rows), err)
			}
		}
	}
}

// A slow maker of rows sends its request long after the space was complete and a row that was
// once held has been deleted by hand.
func TestLateMakerMakesNoRow(t *testing.T) {
	for _, kept := range []string{"multi 5", "set /s/shop/3"} {
		sv := newServer()
		slow, conn := sv.open(t)
		goOn, asked := make(chan struct{}), make(chan struct{})
		conn.inject(func(op, name string) fault {
			if op+" "+name == kept {
				close(asked)
				return fault{until: goOn}
			}
			return fault{}
		})
		done := make(chan error, 1)
		go func() {
			_, err := slow.Claim(t.Context(), claimOf(four, "slow", 2))
			done <- err
		}()
		<-asked
		s, _ := sv.open(t)
		hold(t, s, claimOf(four, "me", 1))
		sv.poke(func(nodes map[string]znode) { delete(nodes, "/s/shop/3/1") })
		close(goOn)
		if err := <-done; err != nil {
			t.Errorf("Claim by the slow maker = error %v; want a row", err)
		}
		if got, ok := sv.peek("/s/shop/3/1"); ok {
			t.Errorf("/s/shop/3/1 = %q; want it to stay gone", got)
		}
		if got, want := sv.nodes["/s/shop/3"], "v1 workers=4 state=complete"; got.data != want || got.version != 1 {
			t.Errorf("/s/shop/3 = %q, version %d; want %q, version 1", got.data, got.version, want)
		}
	}
}

// Two processes make rows at once. A batch that begins in what the other process has made fails
// as a whole, and what is still missing is made afterwards.
func TestRowsOfAnotherMakerAreKept(t *testing.T) {
	sv := newServer()
	s, conn := sv.open(t)
	meanwhile := sync.OnceFunc(func() {
		sv.poke(func(nodes map[string]znode) {
			nodes["/s/shop/3/2"] = znode{data: string(encodeRow(leasestore.Row{Worker: 2}))}
		})
	})
	conn.inject(func(op, _ string) fault {
		if op == "multi" {
			meanwhile()
		}
		return fault{}
	})
	hold(t, s, claimOf(four, "me"))
	if rows, _, err := s.Rows(t.Context(), four); err != nil || len(rows) != 4 {
		t.Errorf("Rows = %+v, %v; want 4", rows, err)
	}
}

// A process whose layout has more workers than before finds the existing rows. If it made rows,
// a deleted one would be made anew without what it had reserved.
func TestClaimOfMoreWorkersMakesNoRow(t *testing.T) {
	sv := newServer()
	s, _ := sv.open(t)
	r := hold(t, s, claimOf(four, "me"))
	sv.poke(func(nodes map[string]znode) { delete(nodes, fmt.Sprintf("/s/shop/3/%d", r.Row.Worker)) })
	more := four
	more.Workers = 8
	c := claimOf(more, "more")
	c.Only = []int64{r.Row.Worker, 5}
	if got, err := s.Claim(t.Context(), c); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim(%+v) = %+v, %v; want a *lease.NoFreeWorkerError: worker %d was deleted, and 5 never made", c, got, err, r.Row.Worker)
	}
	if rows, _, err := s.Rows(t.Context(), more); len(rows) != 3 || err != nil {
		t.Errorf("Rows = %+v, %v; want the 3 that are left", rows, err)
	}
}

// No row is claimed as long as rows may still be made.
func TestClaimWaitsUntilTheSpaceIsComplete(t *testing.T) {
	sv := newServer()
	s, conn := sv.open(t)
	conn.inject(once("set", "/3", fault{lost: zk.ErrConnectionClosed})) // everything exists except the mark
	for _, want := range []error{zk.ErrConnectionClosed, nil} {
		if _, err := s.Claim(t.Context(), claimOf(four, "me")); !errors.Is(err, want) {
			t.Errorf("Claim = error %v; want %v", err, want)
		}
	}
	if got, _ := sv.peek("/s/shop/3"); got != "v1 workers=4 state=complete" {
		t.Errorf("/s/shop/3 = %q when a row is claimed; want it to be complete", got)
	}
}

// A user who may create only in the base must not need more rights.
func TestOnlyMissingZnodesAreCreated(t *testing.T) {
	sv := newServer()
	sv.nodes["/a"], sv.nodes["/a/b"] = znode{}, znode{}
	conn := &session{server: sv}
	conn.inject(func(op, name string) fault {
		if op == "create" && (name == "/a" || name == "/a/b") {
			return fault{lost: zk.ErrNoAuth}
		}
		return fault{}
	})
	hold(t, newStore(t, conn, Config{Prefix: "/a/b"}), claimOf(four, "me"))
}

func TestForbiddenIsNamed(t *testing.T) {
	sv := newServer()
	conn := &session{server: sv}
	conn.inject(func(op, name string) fault {
		if op == "create" && name == "/a" {
			return fault{lost: zk.ErrNoAuth}
		}
		return fault{}
	})
	s := newStore(t, conn, Config{Prefix: "/a/b", ACL: zk.DigestACL(zk.PermAll, "user", "sesame")})
	_, err := s.Claim(t.Context(), claimOf(four, "me"))
	if want := "zklease: set /a/b/@clock: create /a: zk: not authenticated"; !errors.Is(err, zk.ErrNoAuth) || err.Error() != want {
		t.Errorf("Claim = error %v; want %s", err, want)
	}
}

// A first claim that is refused because of the clock leaves no space behind.
func TestClockSkewMakesNoSpace(t *testing.T) {
	sv := newServer()
	s, _ := sv.open(t)
	sv.clock = func() time.Time { return time.Now().Add(time.Hour) }
	if _, err := s.Claim(t.Context(), claimOf(four, "me")); !errors.Is(err, leasestore.ErrClockSkew) {
		t.Errorf("Claim = error %v; want a *lease.ClockSkewError", err)
	}
	if got, want := slices.Sorted(maps.Keys(sv.nodes)), []string{"/", "/s", "/s/@clock"}; !slices.Equal(got, want) {
		t.Errorf("znodes = %q; want %q", got, want)
	}
}

// A claim that accepts none of the numbers is refused before anything is made, and leaves what
// others have begun to make.
func TestFirstClaimOfNoWorkerMakesNothing(t *testing.T) {
	for _, only := range [][]int64{{}, {4}, {-1, 99}} {
		for _, before := range []map[string]znode{
			{},
			{"/s/shop": {data: string(encodeLayout(four.Layout))}},
			{"/s/shop": {data: string(encodeLayout(four.Layout))}, "/s/shop/3": {data: string(meta{4, filling}.encode())}},
		} {
			sv := newServer()
			s, _ := sv.open(t)
			maps.Copy(sv.nodes, map[string]znode{"/s": {}, "/s/@clock": {}})
			maps.Copy(sv.nodes, before)
			want := slices.Sorted(maps.Keys(sv.nodes))
			c := claimOf(four, "me")
			c.Only = only
			_, err := s.Claim(t.Context(), c)
			var full *leasestore.NoFreeWorkerError
			if !errors.As(err, &full) || full.Rows != 0 {
				t.Errorf("Claim(Only %v) with %d znodes = error %v; want a *lease.NoFreeWorkerError about 0 rows", only, len(before), err)
			}
			if got := slices.Sorted(maps.Keys(sv.nodes)); !slices.Equal(got, want) {
				t.Errorf("znodes after Claim(Only %v) = %q; want %q", only, got, want)
			}
		}
	}
}

// Each call takes two seconds, so that a first claim, which makes its rows in several
// transactions, takes longer than the skew; or the first call waits for a connection for longer
// than that. A wrong clock is refused nonetheless.
func TestSlowClaimIsRefusedOnlyForItsClock(t *testing.T) {
	for _, test := range []struct {
		name  string
		calls time.Duration // each
		first time.Duration // besides
		apart time.Duration // the store's clock is ahead by this
		want  error
	}{
		{"slow calls", 2 * time.Second, 0, 0, nil},
		{"no connection at first", 0, 20 * time.Second, 0, nil},
		{"slow calls, clock ahead", 2 * time.Second, 0, time.Minute, leasestore.ErrClockSkew},
		{"slow calls, clock behind", 2 * time.Second, 0, -time.Minute, leasestore.ErrClockSkew},
		{"no connection at first, clock behind", 0, 20 * time.Second, -time.Minute, leasestore.ErrClockSkew},
	} {
		synctest.Test(t, func(t *testing.T) {
			sv := newServer()
			sv.clock = func() time.Time { return time.Now().Add(test.apart) }
			s, conn := sv.open(t)
			connected := time.Now().Add(test.first)
			conn.inject(func(string, string) fault {
				time.Sleep(max(0, time.Until(connected)) + test.calls)
				return fault{}
			})
			began := time.Now()
			if _, err := s.Claim(t.Context(), claimOf(four, "me")); !errors.Is(err, test.want) {
				t.Errorf("%s: Claim = error %v; want %v", test.name, err, test.want)
			}
			if took := time.Since(began); test.want == nil && took <= skew.Duration() {
				t.Errorf("%s: Claim took %v; want more than the skew, or this shows nothing", test.name, took)
			}
		})
	}
}
