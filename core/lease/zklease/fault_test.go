package zklease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// An operation is one call of a Store, for the row that c has won with r.
type operation func(ctx context.Context, s *Store, c leasestore.Claim, r leasestore.Reply) error

// operations has one of each kind.
var operations = map[string]operation{
	"Claim": func(ctx context.Context, s *Store, c leasestore.Claim, _ leasestore.Reply) error {
		_, err := s.Claim(ctx, claimOf(c.Space, "other"))
		return err
	},
	"Claim of worker 2": func(ctx context.Context, s *Store, c leasestore.Claim, _ leasestore.Reply) error {
		_, err := s.Claim(ctx, claimOf(c.Space, "other", 2))
		return err
	},
	"first Claim": func(ctx context.Context, s *Store, c leasestore.Claim, _ leasestore.Reply) error {
		c.Space.Namespace = "new"
		_, err := s.Claim(ctx, claimOf(c.Space, "other"))
		return err
	},
	"Renew": func(ctx context.Context, s *Store, c leasestore.Claim, r leasestore.Reply) error {
		_, err := s.Renew(ctx, renewalOf(c, r, "n1"))
		return err
	},
	"Release": func(ctx context.Context, s *Store, c leasestore.Claim, r leasestore.Reply) error {
		return s.Release(ctx, releaseOf(c, r, "n1"))
	},
	"Rows": func(ctx context.Context, s *Store, c leasestore.Claim, _ leasestore.Reply) error {
		_, _, err := s.Rows(ctx, c.Space)
		return err
	},
}

// definite reports whether an error says that an operation was not done.
func definite(err error) bool {
	return errors.Is(err, leasestore.ErrNoFreeWorker) || errors.Is(err, leasestore.ErrLost) ||
		errors.Is(err, leasestore.ErrLayout) || errors.Is(err, leasestore.ErrClockSkew)
}

// Each call of each operation fails once in each way: without effect, or with an effect and
// without a reply.
func TestFailedCallIsNeverARefusalNorSuccess(t *testing.T) {
	failures := map[string]struct {
		fault fault
		err   error
	}{
		"is not sent":     {unsent(zk.ErrConnectionClosed), zk.ErrConnectionClosed},
		"is not answered": {unanswered(zk.ErrConnectionClosed), zk.ErrConnectionClosed},
		"is forbidden":    {unsent(zk.ErrNoAuth), zk.ErrNoAuth},
	}
	root := newSite(t)
	tries := 0
	try := func(do operation, h hook) (site, error) {
		tries++
		p := root.below(fmt.Sprintf("/%d", tries))
		c := claimOf(four, "me", 1)
		r := hold(t, p.store(), c)
		return p, do(t.Context(), p.open(h), c, r)
	}
	for name, do := range operations {
		for _, call := range callsOf(t, func(h hook) error { _, err := try(do, h); return err }) {
			for way, failure := range failures {
				what := fmt.Sprintf("%s whose call %q %s", name, call, way)
				p, err := try(do, at(call, failure.fault))
				switch {
				case err != nil:
					if definite(err) || !errors.Is(err, failure.err) || !strings.HasPrefix(err.Error(), "zklease: ") {
						t.Errorf("%s = error %v; want one of this package that matches %v and says nothing of the row", what, err, failure.err)
					}
				case name == "first Claim": // which need not read all of a space that is not there
				case strings.HasPrefix(name, "Claim") && strings.HasPrefix(call, "swap "): // which a claim repeats
				default:
					t.Errorf("%s = nil; want an error", what)
				}
				if name != "first Claim" {
					continue
				}
				sp := four
				sp.Namespace = "new"
				hold(t, p.store(), claimOf(sp, "again"))
				if rows, _, err := p.store().Rows(t.Context(), sp); len(rows) != 4 || err != nil {
					t.Errorf("Rows after %s and another = %+v, %v; want 4", what, rows, err)
				}
			}
		}
	}
}

// callsOf returns the names of the calls that are made by do, which must succeed.
func callsOf(t *testing.T, do func(h hook) error) []string {
	t.Helper()
	var mu sync.Mutex
	var calls []string
	err := do(func(name string, call func() error) error {
		mu.Lock()
		calls = append(calls, name)
		mu.Unlock()
		return call()
	})
	if err != nil {
		t.Fatalf("an operation = error %v; want none", err)
	}
	mu.Lock() // an operation need not wait for all of its calls
	defer mu.Unlock()
	return slices.Clone(calls)
}

// A claim meets a row that is taken, and one that is deleted, between its reading and its writing.
func TestClaimThatIsTooLateTakesAnotherRow(t *testing.T) {
	p := newSite(t)
	hold(t, p.store(), claimOf(four, "first", 0))
	var mu sync.Mutex
	var gone []string
	s := p.open(func(name string, call func() error) error {
		mu.Lock()
		defer mu.Unlock()
		row, swaps := strings.CutPrefix(name, "swap ")
		switch {
		case !swaps || len(gone) == 2:
			return call()
		case len(gone) == 0:
			p.change(row, func(row *leasestore.Row) {
				row.Owner, row.Until = "thief", leasestore.MillisOf(time.Now())+window
			})
		default:
			p.remove(row)
		}
		gone = append(gone, row)
		return call()
	})
	r := hold(t, s, claimOf(four, "me"))
	if got := fmt.Sprintf("/shop/3/%d", r.Row.Worker); len(gone) != 2 || slices.Contains(gone, got) {
		t.Errorf("Claim = %+v after %q were taken and deleted; want the one that is left", r, gone)
	}
	_, err := s.Claim(t.Context(), claimOf(four, "late"))
	var full *leasestore.NoFreeWorkerError
	if !errors.As(err, &full) || full.Rows != 3 {
		t.Errorf("Claim when all are taken = error %v; want a *lease.NoFreeWorkerError for the 3 rows that are there", err)
	}
}

// Somebody empties the namespace, and gives it another layout, between a claim's reading and its writing.
func TestClaimThatReadAnotherLayoutWritesNothing(t *testing.T) {
	p := newSite(t)
	hold(t, p.store(), claimOf(four, "first", 0))
	s := p.open(at("swap /shop/3/1", after(func() { p.set("/shop", encodeLayout("another")) })))
	if r, err := s.Claim(t.Context(), claimOf(four, "me", 1)); !errors.Is(err, leasestore.ErrLayout) {
		t.Errorf("Claim while the layout becomes another = %+v, %v; want a *lease.LayoutError", r, err)
	}
	if data, _ := p.get("/shop/3/1"); data != string(encodeRow(leasestore.Row{Worker: 1})) {
		t.Errorf("the row after that claim = %s; want it free", data)
	}
}

// A holder's session is replaced right after the clock was written, by one at a server that lags:
// until the next write, the rows are missing there.
func TestOldReadIsNoRefusal(t *testing.T) {
	for _, name := range []string{"Renew", "Release"} {
		conn, c, r := holding(four, 1)
		var ticks atomic.Int64
		s := newStore(t, faulty{conn, func(name string, call func() error) error {
			switch {
			case strings.HasPrefix(name, "set "):
				ticks.Add(1)
				conn.session.Store(2)
			case strings.HasPrefix(name, "get ") && ticks.Load() < 2:
				return zk.ErrNoNode
			}
			return call()
		}}, Config{})
		if err := operations[name](t.Context(), s, c, r); err != nil {
			t.Errorf("%s by a server that shows no row at first = error %v; want it done", name, err)
		}
	}
}

// All calls hang until the context has ended, or it has ended before. The operation ends with it and
// sends nothing afterwards. Its goroutines end with the calls, or the bubble would not end before them.
func TestOperationEndsWithItsContext(t *testing.T) {
	conn, c, r := holding(four, 1)
	for _, patience := range []time.Duration{0, 3 * time.Second} {
		for name, do := range operations {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				end := make(chan struct{})
				s := newStore(t, faulty{conn, func(string, func() error) error {
					calls.Add(1)
					<-end
					return zk.ErrNoNode // after which the znodes that are missing would be made
				}}, Config{})
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				err := do(ctx, s, c, r)
				if !errors.Is(err, context.DeadlineExceeded) || definite(err) {
					t.Errorf("%s = error %v; want context.DeadlineExceeded", name, err)
				}
				if took := time.Since(began); took > patience {
					t.Errorf("%s took %v; want %v at most, as its context", name, took, patience)
				}
				synctest.Wait()
				sent := calls.Load()
				close(end)
				synctest.Wait()
				if now := calls.Load(); now > sent || (patience == 0) != (now == 0) {
					t.Errorf("%s with %v calls %d times, and %d times after that; want none after its context has ended", name, patience, sent, now-sent)
				}
			})
		}
	}
}

// With calls that take a second each, the duration of an operation counts its round trips.
func TestOperationsTakeFewRoundTrips(t *testing.T) {
	large := four
	large.Workers = 1024
	for _, test := range []struct {
		name string
		held int64 // rows of 1024
		want time.Duration
	}{
		{"Claim", 1, 2},
		{"Claim", 1023, 6}, // at most: it stops at the first free row
		{"Claim of worker 2", 1, 2},
		{"Renew", 1, 3},
		{"Release", 1, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, c, r := holding(large, test.held)
			var writes atomic.Int64
			s := newStore(t, faulty{conn, func(name string, call func() error) error {
				if !strings.HasPrefix(name, "get ") {
					writes.Add(1)
				}
				time.Sleep(time.Second)
				return call()
			}}, Config{})
			began := time.Now()
			if err := operations[test.name](t.Context(), s, c, r); err != nil {
				t.Fatalf("%s = error %v; want none", test.name, err)
			}
			trips := time.Since(began) / time.Second
			if trips > test.want || trips < test.want && test.held == 1 {
				t.Errorf("%s when %d rows are held takes %d round trips; want %d", test.name, test.held, trips, test.want)
			}
			if got := writes.Load(); got > 2 {
				t.Errorf("%s writes %d times; want 2 at most", test.name, got)
			}
		})
	}
}

// Version -1 would mean "any version" in the write that follows.
func TestNegativeVersionIsNotWritten(t *testing.T) {
	conn, c, r := holding(four, 1)
	conn.version = -1
	if _, err := newStore(t, conn, Config{}).Renew(t.Context(), renewalOf(c, r, "n1")); !errors.Is(err, errVersions) || definite(err) {
		t.Errorf("Renew at version -1 = error %v; want %v", err, errVersions)
	}
}

func TestForeignPayloadIsNamed(t *testing.T) {
	p := newSite(t)
	s := p.store()
	isDamaged := func(call string, err error, path string) {
		t.Helper()
		lost := call == "Renew" || call == "Release" // its lease takes another row
		if !errors.Is(err, ErrDamaged) || errors.Is(err, leasestore.ErrLost) != lost || !strings.Contains(err.Error(), p.config.Prefix+path+" ") || len(err.Error()) > 500 {
			t.Errorf("%s = error %v; want one that matches ErrDamaged and names %s, lost: %v", call, err, path, lost)
		}
	}
	foreign := []byte("v2 " + strings.Repeat("x", 100))
	c := claimOf(four, "me", 1)
	r := hold(t, s, c)
	other, _ := p.get("/shop/3/2")
	for _, data := range [][]byte{[]byte(other), foreign} { // a row in another one's place is foreign too
		p.set("/shop/3/1", data)
		_, err := s.Renew(t.Context(), renewalOf(c, r, "n1"))
		isDamaged("Renew", err, "/shop/3/1")
		isDamaged("Release", s.Release(t.Context(), releaseOf(c, r, "n1")), "/shop/3/1")
		_, _, err = s.Rows(t.Context(), four)
		isDamaged("Rows", err, "/shop/3/1")
	}
	for _, owner := range []string{"b", "c", "d"} { // the other rows are still usable
		hold(t, s, claimOf(four, owner))
	}
	_, err := s.Claim(t.Context(), claimOf(four, "late"))
	isDamaged("Claim", err, "/shop/3/1")
	var full *leasestore.NoFreeWorkerError
	if !errors.As(err, &full) || full.Rows != 3 {
		t.Errorf("Claim when three rows are held and one is foreign = error %v; want a *lease.NoFreeWorkerError for 3 rows too", err)
	}
	for _, path := range []string{"/shop/3", "/shop"} {
		p.set(path, foreign)
		_, err = s.Claim(t.Context(), claimOf(four, "late"))
		isDamaged("Claim", err, path)
		_, _, err = s.Rows(t.Context(), four)
		isDamaged("Rows", err, path)
		_, err = s.Spaces(t.Context())
		isDamaged("Spaces", err, path)
	}
}

// A claim that finds only foreign rows at first passes over all of them.
func TestClaimPassesOverForeignRows(t *testing.T) {
	large := four
	large.Workers = 100
	p := newSite(t)
	if err := p.store().Register().Make(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	for worker := range int64(99) {
		p.set(fmt.Sprintf("/shop/3/%d", worker), []byte("v2"))
	}
	if r := hold(t, p.store(), claimOf(large, "last")); r.Row.Worker != 99 {
		t.Errorf("Claim = %+v; want worker 99", r)
	}
}

// A first claim is cut off before each of the transactions that make rows, and before the space is
// marked as complete. The next claim completes it.
func TestHalfMadeSpaceIsCompleted(t *testing.T) {
	sp := four
	sp.Workers = 2*batch + 1
	for _, call := range []string{"make /shop/3/0", "make /shop/3/128", "make /shop/3/256", "set /shop/3"} {
		p := newSite(t)
		broken := p.open(at(call, unsent(zk.ErrConnectionClosed)))
		if _, err := broken.Claim(t.Context(), claimOf(sp, "broken")); !errors.Is(err, zk.ErrConnectionClosed) {
			t.Fatalf("Claim without %q = error %v; want %v", call, err, zk.ErrConnectionClosed)
		}
		if got, _ := p.get("/shop/3"); got != "v1 workers=257 state=filling" {
			t.Errorf("/shop/3 without %q = %q; want it to be filling", call, got)
		}
		p.remove("/shop/3/7") // still zero, if it exists
		hold(t, p.store(), claimOf(sp, "me"))
		if rows, _, err := p.store().Rows(t.Context(), sp); err != nil || len(rows) != 257 {
			t.Errorf("Rows after another claim = %d rows, %v; want 257", len(rows), err)
		}
		if got, _ := p.get("/shop/3"); got != "v1 workers=257 state=complete" {
			t.Errorf("/shop/3 when a row is claimed = %q; want it to be complete", got)
		}
	}
}

// A slow maker of a space sends its request long after the space was complete and a row that was
// once held has been deleted by hand.
func TestLateMakerMakesNoRow(t *testing.T) {
	for _, late := range []string{"create /shop", "create /shop/3", "make /shop/3/0", "set /shop/3"} {
		p := newSite(t)
		slow := p.open(at(late, after(func() {
			if _, err := p.store().Claim(t.Context(), claimOf(four, "me", 1)); err != nil {
				t.Errorf("Claim = error %v; want a row", err)
			}
			p.remove("/shop/3/1")
		})))
		if _, err := slow.Claim(t.Context(), claimOf(four, "slow", 2)); err != nil {
			t.Errorf("Claim whose %q is late = error %v; want a row", late, err)
		}
		if got, _ := p.get("/shop/3/1"); got != "" {
			t.Errorf("/shop/3/1 after a late %q = %q; want it to stay gone", late, got)
		}
		if got, version := p.get("/shop/3"); got != "v1 workers=4 state=complete" || version != 1 {
			t.Errorf("/shop/3 after a late %q = %q, version %d; want it completed once", late, got, version)
		}
	}
}

// Two processes make rows at once. A batch that begins in what the other process has made fails
// as a whole, and what is still missing is made afterwards.
func TestRowsOfAnotherMakerAreKept(t *testing.T) {
	p := newSite(t)
	s := p.open(at("make /shop/3/0", after(func() {
		p.create("/shop/3/2", encodeRow(leasestore.Row{Worker: 2}))
	})))
	hold(t, s, claimOf(four, "me"))
	if rows, _, err := s.Rows(t.Context(), four); err != nil || len(rows) != 4 {
		t.Errorf("Rows = %+v, %v; want 4", rows, err)
	}
}

// A process whose layout has more workers than before finds the existing rows. If it made rows,
// a deleted one would be made anew without what it had reserved.
func TestClaimOfMoreWorkersMakesNoRow(t *testing.T) {
	p := newSite(t)
	s := p.store()
	hold(t, s, claimOf(four, "me", 1))
	p.remove("/shop/3/1")
	more := four
	more.Workers = 8
	c := claimOf(more, "more", 1, 5)
	if got, err := s.Claim(t.Context(), c); !errors.Is(err, leasestore.ErrNoFreeWorker) {
		t.Errorf("Claim(%+v) = %+v, %v; want a *lease.NoFreeWorkerError: worker 1 was deleted, and 5 never made", c, got, err)
	}
	if rows, _, err := s.Rows(t.Context(), more); len(rows) != 3 || err != nil {
		t.Errorf("Rows = %+v, %v; want the 3 that are left", rows, err)
	}
}

// A user who may create only below a znode must not need more rights, and learns which are missing.
func TestOnlyMissingZnodesAreCreated(t *testing.T) {
	p := newSite(t)
	p.create("", nil)
	p.create("/open", nil)
	if _, err := p.conn.SetACL(p.config.Prefix, zk.WorldACL(zk.PermRead|zk.PermDelete), -1); err != nil {
		t.Fatalf("SetACL = error %v; want none", err)
	}
	hold(t, p.below("/open").store(), claimOf(four, "me"))
	_, err := p.below("/closed/deep").store().Claim(t.Context(), claimOf(four, "me"))
	want := fmt.Sprintf("zklease: set %[1]s/closed/deep/@clock: create %[1]s/closed: zk: not authenticated", p.config.Prefix)
	if !errors.Is(err, zk.ErrNoAuth) || err.Error() != want {
		t.Errorf("Claim = error %v; want %s", err, want)
	}
}

// A first claim that is refused because of the clock, or because it accepts no worker that there is,
// leaves no space behind.
func TestRefusedFirstClaimMakesNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(c *leasestore.Claim)
		want   error
	}{
		{"with a clock that is behind", func(c *leasestore.Claim) { c.Now -= 2 * window }, leasestore.ErrClockSkew},
		{"with a clock that is ahead", func(c *leasestore.Claim) { c.Now += 2 * window }, leasestore.ErrClockSkew},
		{"of no worker", func(c *leasestore.Claim) { c.Only = []int64{} }, leasestore.ErrNoFreeWorker},
		{"of workers that the space has not", func(c *leasestore.Claim) { c.Only = []int64{-1, 4, 99} }, leasestore.ErrNoFreeWorker},
	} {
		p := newSite(t)
		c := claimOf(four, "me")
		test.change(&c)
		if _, err := p.store().Claim(t.Context(), c); !errors.Is(err, test.want) {
			t.Errorf("first Claim %s = error %v; want %v", test.name, err, test.want)
		}
		if got := p.names(""); len(got) > 1 || len(got) == 1 && got[0] != clockName {
			t.Errorf("znodes after a first Claim %s = %q; want at most the clock", test.name, got)
		}
	}
}
