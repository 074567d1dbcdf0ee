package lease_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/types"
)

var errAway = errors.New("the store is away")

// now is the clock of the tests in a bubble. A bubble begins in the year 2000, before the
// epochs of the layouts.
func now() time.Time { return time.Now().AddDate(30, 0, 0) }

// A store is a Memory whose requests and replies may go wrong.
type store struct {
	*leasetest.Memory
	lossy bool

	mu     sync.Mutex
	fault  fault
	calls  []string
	tokens []string // of all requests, which must never be seen in a log
}

// A fault does a request by do, or does not, or does more.
type fault func(ctx context.Context, op string, do func() error) error

func newStore() *store { return &store{Memory: leasetest.NewMemory(now)} }

func (s *store) LosesWrites() bool { return s.lossy }

// set makes f the fault of all later requests; nil: none.
func (s *store) set(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// count returns the number of requests so far, by name.
func (s *store) count(op string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c == op {
			n++
		}
	}
	return n
}

func (s *store) call(ctx context.Context, op string, tokens []string, do func() error) error {
	s.mu.Lock()
	f := s.fault
	s.calls = append(s.calls, op)
	s.tokens = append(s.tokens, tokens...)
	s.mu.Unlock()
	if f == nil {
		return do()
	}
	return f(ctx, op, do)
}

func (s *store) Claim(ctx context.Context, c leasestore.Claim) (r leasestore.Reply, err error) {
	err = s.call(ctx, "claim", []string{c.Owner, c.Nonce}, func() error { r, err = s.Memory.Claim(context.WithoutCancel(ctx), c); return err })
	return r, err
}

func (s *store) Renew(ctx context.Context, q leasestore.Renewal) (r leasestore.Reply, err error) {
	err = s.call(ctx, "renew", []string{q.Nonce}, func() error { r, err = s.Memory.Renew(context.WithoutCancel(ctx), q); return err })
	return r, err
}

func (s *store) Release(ctx context.Context, r leasestore.Release) error {
	return s.call(ctx, "release", []string{r.Nonce}, func() error { return s.Memory.Release(ctx, r) })
}

// The faults.
func away(context.Context, string, func() error) error { return errAway }

func hangs(ctx context.Context, _ string, _ func() error) error { <-ctx.Done(); return ctx.Err() }

func losesReplies(_ context.Context, _ string, do func() error) error { _ = do(); return errAway }

// only returns f for one kind of request.
func only(op string, f fault) fault {
	return func(ctx context.Context, got string, do func() error) error {
		if got == op {
			return f(ctx, got, do)
		}
		return do()
	}
}

// space returns the space of the tests' leases.
func space(t *testing.T) leasestore.Space {
	return leasestore.Space{Namespace: namespace(t), Workers: 1024}
}

// namespace returns that of a test, or of a bubble of testing/synctest in it. Each bubble
// begins in the year 2000 anew. Package core remembers where the generators of a namespace
// stopped. In the next bubble that would be in the future.
func namespace(t *testing.T) string {
	name, known := namespaces.LoadOrStore(t, fmt.Sprintf("test-%d", namespaceCount.Add(1)))
	if !known {
		lease.SeedLuck(t)
	}
	return name.(string)
}

var (
	namespaces     sync.Map // from *testing.T to string
	namespaceCount atomic.Int64
)

// row returns the row of a worker.
func (s *store) row(t *testing.T, worker int64) leasestore.Row {
	t.Helper()
	rows, _, err := s.Rows(t.Context(), space(t))
	if err != nil || int64(len(rows)) <= worker {
		t.Fatalf("Rows() = %d rows, %v; want one for worker %d", len(rows), err, worker)
	}
	return rows[worker]
}

// A logbook keeps what is written to it.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// count returns how many records have all of the words.
func (l *logbook) count(words ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}

// A holder is a process with a lease and a generator.
type holder struct {
	*testing.T
	*lease.Lease
	gen  *core.Generator
	log  *logbook
	last types.Snowflake
}

// hold acquires a lease and makes a generator with it.
func hold(t *testing.T, s lease.Store, c lease.Config) *holder {
	t.Helper()
	h := &holder{T: t, log: new(logbook)}
	c.Namespace, c.Now, c.Logger = namespace(t), now, slog.New(slog.NewTextHandler(h.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l, err := lease.Acquire(t.Context(), s, c)
	if err != nil {
		t.Fatalf("Acquire() = %v; want a lease", err)
	}
	h.Lease = l
	if h.gen, err = core.New(core.Config{Worker: l}); err != nil {
		t.Fatalf("New() = %v; want a generator", err)
	}
	return h
}

// id returns the next ID, which must be larger than the last.
func (h *holder) id() types.Snowflake {
	h.Helper()
	id, err := h.gen.Next(h.Context())
	if err != nil {
		h.Fatalf("Next() = %v; status %+v", err, h.Status())
	}
	if id <= h.last {
		h.Fatalf("Next() = %d after %d; want a larger one", id, h.last)
	}
	h.last = id
	return id
}

// close closes the generator, and with it the lease.
func (h *holder) close() {
	h.Helper()
	if err := h.gen.Close(h.Context()); err != nil {
		h.Errorf("Close() = %v; want nil", err)
	}
}

func TestGeneratorHasTheWorkerOfItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, b := hold(t, s, lease.Config{}), hold(t, s, lease.Config{})
		for range 100 {
			for _, h := range []*holder{a, b} {
				p := core.Default().Parts(h.id())
				if st := h.Status(); p.Worker != st.Worker || !p.Time.Before(st.Limit) || !st.Held || st.Err != nil {
					t.Fatalf("Next() = an ID of %+v; status %+v", p, st)
				}
			}
			time.Sleep(7 * time.Second)
		}
		if a.Status().Worker == b.Status().Worker {
			t.Error("two leases have one worker number")
		}
		st := a.Status()
		if st.Claims != 1 || st.Renewals < 700/15 || st.Renewals > 1+700/15 || st.Failures != 0 || st.Losses != 0 {
			t.Errorf("Status() = %+v after 700 s; want 1 claim, a first renewal within 15 s, and one every 15 s", st)
		}
		if got := now().Sub(st.Renewed); got < 0 || got >= 15*time.Second {
			t.Errorf("Status().Renewed is %v ago; want less than 15s", got)
		}
		a.close()
		b.close()
		if st := a.Status(); st.Held {
			t.Errorf("Status() after Close = %+v; want nothing held", st)
		}
		if n := a.log.count("level=DEBUG", "claimed a worker number", "namespace="+namespace(t)); n != 1 {
			t.Errorf("%d records of the claim; want 1", n)
		}
		if all, debug := a.log.count(), a.log.count("level=DEBUG"); all != debug {
			t.Errorf("log = %s; want nothing above DEBUG where nothing has failed", a.log.buf.String())
		}
	})
}

func TestCloseGivesTheRowBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var last types.Snowflake
		for i := range 20 {
			h := hold(t, s, lease.Config{Workers: []int64{5}})
			h.last = last // a new lease goes on above the one before
			for range 10 {
				last = h.id()
			}
			if i%2 == 0 { // the lease alone: the generator is of no use then, but does no harm
				if err := h.Close(t.Context()); err != nil {
					t.Errorf("Close() = %v; want nil", err)
				}
				if id, err := h.gen.Next(t.Context()); id != 0 || !errors.Is(err, core.ErrClosed) {
					t.Errorf("Next() after the lease is closed = %d, %v; want 0, core.ErrClosed", id, err)
				}
			}
			h.close()
			row, at := s.row(t, 5), core.Default().Parts(last).Time
			if row.Owner != "" || row.Until.Time() != at.Add(time.Millisecond) {
				t.Fatalf("row after Close: %+v, until %v; want it free just after the last ID, %v", row, row.Until.Time(), at)
			}
		}
	})
}

// A closed lease gives no more numbers, so its generator must not go on waiting for one.
func TestCloseOfALeaseEndsTheWaitOfItsGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{Workers: []int64{7}})
		h.id()
		s.Set(space(t), leasestore.Row{Worker: 7, Epoch: 9, Owner: "another", Until: leasestore.MillisOf(now().Add(time.Hour))})
		time.Sleep(16 * time.Second) // the lease is lost
		began := time.Now()
		done := make(chan error)
		go func() {
			_, err := h.gen.Next(context.Background())
			done <- err
		}()
		synctest.Wait()
		if err := h.Close(t.Context()); err != nil {
			t.Errorf("Close() = %v; want nil", err)
		}
		if err := <-done; !errors.Is(err, core.ErrClosed) || time.Since(began) > 0 {
			t.Errorf("Next() = %v after %v; want ErrClosed as soon as the lease is closed", err, time.Since(began))
		}
		if err := h.gen.Close(t.Context()); err != nil {
			t.Errorf("Generator.Close() = %v; want nil", err)
		}
	})
}

func TestCloseWithoutAGeneratorGivesTheRowBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		l, err := lease.Acquire(t.Context(), s, lease.Config{Namespace: namespace(t), Workers: []int64{5}, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		from := now()
		time.Sleep(time.Minute)
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close() = %v; want nil", err)
		}
		if row := s.row(t, 5); row.Owner != "" || row.Until.Time() != from.UTC() {
			t.Errorf("row = %+v, until %v; want it free from %v, as it was found", row, row.Until.Time(), from)
		}
		if _, err := core.New(core.Config{Worker: l}); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("New(closed lease) = %v; want ErrClosed", err)
		}
	})
}

func TestClosingTwiceReturnsTheSame(t *testing.T) {
	for _, fault := range []fault{nil, only("release", away)} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			h := hold(t, s, lease.Config{})
			s.set(fault)
			errs := make([]error, 20)
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() { errs[i] = h.Close(t.Context()) })
			}
			all.Wait()
			errs = append(errs, h.Close(t.Context()), h.gen.Close(t.Context()))
			for _, err := range errs {
				if errors.Is(err, errAway) != (fault != nil) || !errors.Is(err, errs[0]) {
					t.Fatalf("Close() = %v, another %v; want the same, the store's error if it has one", errs[0], err)
				}
			}
			if n := s.count("release"); n != 1 {
				t.Errorf("%d releases; want 1", n)
			}
			if fault != nil && !strings.Contains(errs[0].Error(), "is free at 20") {
				t.Errorf("Close() = %v; want it to say when the worker is free", errs[0])
			}
		})
	}
}

// A store keeps to its word to give up when ctx ends.
func TestCloseEndsACallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{})
		s.set(only("renew", hangs))
		time.Sleep(16 * time.Second)
		began := time.Now()
		h.close()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close() with a renewal under way took %v; want no time", took)
		}
		if n := h.log.count("not renewed"); n != 0 {
			t.Errorf("%d records of a failed renewal; want none: it was Close that ended it", n)
		}
	})
}

func TestCloseReturnsWhenItsContextEnds(t *testing.T) {
	for name, fault := range map[string]func(stuck chan struct{}) fault{
		"release hangs": func(chan struct{}) fault { return only("release", hangs) },
		"the store ignores the context": func(stuck chan struct{}) fault {
			return only("renew", func(context.Context, string, func() error) error { <-stuck; return errAway })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				h := hold(t, s, lease.Config{})
				id := h.id()
				stuck := make(chan struct{})
				s.set(fault(stuck))
				time.Sleep(16 * time.Second)
				if st := h.Status(); !st.Held { // no lock is held by the call
					t.Errorf("Status() = %+v; want it held", st)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				began := time.Now()
				err := h.gen.Close(ctx)
				if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 2*time.Second {
					t.Errorf("Close(2s) = %v after %v; want the context's error after 2s", err, took)
				}
				if again := h.Close(t.Context()); !errors.Is(again, err) {
					t.Errorf("second Close() = %v; want %v", again, err)
				}
				if _, err := h.gen.Next(t.Context()); !errors.Is(err, core.ErrClosed) {
					t.Errorf("Next() = %v; want ErrClosed", err)
				}
				close(stuck)
				worker := h.Status().Worker
				if row := s.row(t, worker); row.Until.Time().Before(core.Default().Parts(id).Time) || row.Owner == "" {
					t.Errorf("row = %+v; want it busy until its limit", row)
				}
			})
		})
	}
}

func TestCloseWithAnEndedContextStillEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.gen.Close(ctx); !errors.Is(err, context.Canceled) || s.count("release") != 0 {
			t.Errorf("Close(ended) = %v, %d releases; want the context's error and none", err, s.count("release"))
		}
	})
}

func TestCloseOfALostRowIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.set(only("renew", away)) // it is Close that finds the loss
		h := hold(t, s, lease.Config{})
		row := s.row(t, h.Status().Worker)
		row.Epoch++
		row.Owner = "another"
		s.Set(space(t), row)
		h.close()
		if got := s.row(t, row.Worker); got != row {
			t.Errorf("row = %+v; want the other's, %+v", got, row)
		}
		if n := h.log.count("level=WARN", "was lost before"); n != 1 {
			t.Errorf("%d records; want 1 that says the row was lost", n)
		}
	})
}

// A claim that Close interrupts may have been done. If its answer comes all the same, the
// row is given back, and the generator does not get it.
func TestCloseGivesBackARowThatItsClaimHasJustWon(t *testing.T) {
	for _, leaseFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			h := hold(t, s, lease.Config{Workers: []int64{5, 6}})
			h.id()
			lost := h.Status().Worker
			row := s.row(t, lost)
			row.Epoch++
			row.Owner = "another"
			s.Set(space(t), row)
			claiming := make(chan time.Time, 1)
			s.set(only("claim", func(ctx context.Context, _ string, do func() error) error {
				claiming <- now().Truncate(time.Millisecond)
				<-ctx.Done()
				return do()
			}))
			at := <-claiming // once a renewal has found the row lost
			if leaseFirst {
				if err := h.Close(t.Context()); err != nil {
					t.Errorf("Close() = %v; want nil", err)
				}
				if id, err := h.gen.Next(t.Context()); err == nil {
					t.Errorf("Next() = %d of a row that was given back", id)
				}
			}
			h.close()
			if won := s.row(t, 11-lost); won.Epoch != 2 || won.Owner != "" || won.Until.Time().Before(at) {
				t.Errorf("row = %+v; want it claimed and given back, from its claim on", won)
			}
		})
	}
}

// No ID has a time that the released row gives to the next owner.
func TestCloseRacingNextNeverSharesAnID(t *testing.T) {
	t.Parallel()
	s := &store{Memory: leasetest.NewMemory(nil)}
	var mu sync.Mutex
	var seen []types.Snowflake
	for range 10 {
		l, err := lease.Acquire(t.Context(), s, lease.Config{Namespace: namespace(t), Workers: []int64{8}, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		g, err := core.New(core.Config{Worker: l})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				var ids []types.Snowflake
				for {
					id, err := g.Next(t.Context())
					if err != nil {
						if !errors.Is(err, core.ErrClosed) {
							t.Errorf("Next() = %v; want ErrClosed", err)
						}
						break
					}
					if ids = append(ids, id); i == 0 && len(ids) == 100 {
						all.Go(func() {
							if err := g.Close(t.Context()); err != nil {
								t.Errorf("Close() = %v", err)
							}
						})
					}
				}
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, ids...)
			})
		}
		all.Wait()
		until := s.row(t, 8).Until.Time()
		if at := core.Default().Parts(slices.Max(seen)).Time; !at.Before(until) {
			t.Fatalf("an ID has time %v; the row was given back from %v", at, until)
		}
	}
	taken := len(seen)
	slices.Sort(seen)
	if n := len(slices.Compact(seen)); n != taken {
		t.Errorf("%d IDs, %d of them distinct; want all", taken, n)
	}
}

// Once it is back, callers may wait for the next attempt to renew. They get no error.
func TestStoreAwayForThreeQuartersOfAWindowIsNotNoticed(t *testing.T) {
	const outage = 44 * time.Second // of a window of 60
	for phase := time.Duration(0); phase < 15*time.Second; phase += 300 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			h := hold(t, s, lease.Config{})
			time.Sleep(phase)
			s.set(away)
			for range outage / (100 * time.Millisecond) {
				began := time.Now()
				h.id()
				if took := time.Since(began); took != 0 {
					t.Fatalf("phase %v: Next() took %v; want no time", phase, took)
				}
				time.Sleep(100 * time.Millisecond)
			}
			s.set(nil)
			for range 300 {
				began := time.Now()
				h.id()
				if took := time.Since(began); took != 0 {
					t.Fatalf("phase %v: Next() after the store is back took %v; want no time", phase, took)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if st := h.Status(); st.Losses != 0 || st.Claims != 1 || st.Failures == 0 || st.Err != nil {
				t.Errorf("phase %v: Status() = %+v; want failures that are over, and the same row", phase, st)
			}
			if n := h.log.count("level=INFO", "renewed again"); n != 1 {
				t.Errorf("phase %v: %d records of the recovery; want 1", phase, n)
			}
			h.close()
		})
	}
}

func TestIDsEndWithTheWindowAndGoOnWhenTheStoreIsBack(t *testing.T) {
	for name, fault := range map[string]fault{"refuses": away, "hangs": hangs, "loses replies": losesReplies} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				h := hold(t, s, lease.Config{})
				time.Sleep(15 * time.Second) // the first renewal, at a random moment
				synctest.Wait()              // and the second, if the first came at once
				s.set(fault)
				limit := h.Status().Limit
				for now().Before(limit) {
					h.id()
					time.Sleep(100 * time.Millisecond)
				}
				// A caller gets what is left under the limit, and then waits.
				ids := make([]types.Snowflake, 4096*101)
				err := h.gen.Fill(t.Context(), ids)
				if waited := now().Sub(limit); !errors.Is(err, core.ErrReservationExhausted) || waited < 5*time.Second {
					t.Fatalf("Fill(more than is left) = %v, %v after the limit; want ErrReservationExhausted after 5s", err, waited)
				}
				st := h.Status()
				if st.Err == nil || st.Limit != limit || !st.Held || st.Failures == 0 {
					t.Errorf("Status() = %+v; want the store's error, and the limit still %v", st, limit)
				}
				if n := h.log.count("level=WARN", "nearly used up"); n != 1 {
					t.Errorf("%d records that the limit is near; want 1", n)
				}

				s.set(nil)
				time.Sleep(30 * time.Second)
				id := h.id()
				if p := core.Default().Parts(id); p.Time.Before(now().Add(-time.Second)) || p.Worker != st.Worker {
					t.Errorf("Next() = an ID of %+v; want the present time, and the worker as before", p)
				}
				if st := h.Status(); st.Losses != 0 || st.Err != nil {
					t.Errorf("Status() = %+v; want it as new", st)
				}
				h.close()
			})
		})
	}
}

// Failures are logged the first time, the second, the fourth and so on, and from time to
// time. The log never has a secret of the lease's row.
func TestLogIsShortAndHasNoTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{})
		s.set(only("renew", losesReplies))
		time.Sleep(10 * time.Minute)
		failures := h.Status().Failures
		if n := h.log.count("level=WARN", "not renewed"); failures < 100 || n > 25 {
			t.Errorf("%d records of %d failed renewals; want at most 25", n, failures)
		}
		h.close()
		for _, token := range s.tokens {
			if h.log.count(token) != 0 {
				t.Fatalf("a token is in the log:\n%s", h.log.buf.String())
			}
		}
	})
}

// An outage of an hour, or a wrong setting, must not vanish from the log.
func TestAStoreThatStaysAwayIsLoggedEachMinute(t *testing.T) {
	for _, window := range []time.Duration{3 * time.Second, 10 * time.Second, time.Minute, 10 * time.Minute} {
		for name, f := range map[string]fault{"away": away, "hangs": hangs} {
			if name == "hangs" && window > time.Minute {
				continue // each failure takes a quarter of the window
			}
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				h := hold(t, s, lease.Config{Window: window})
				s.set(f)
				time.Sleep(2 * max(window, time.Minute))
				for minute := range 30 {
					before := h.log.count("level=WARN", "not renewed", "failures=", "for=")
					time.Sleep(time.Minute)
					if n := h.log.count("level=WARN", "not renewed", "failures=", "for=") - before; n < 1 || n > 3 {
						t.Fatalf("window %v, %s: %d records in minute %d; want 1..3", window, name, n, minute)
					}
				}
				s.set(nil)
				h.close()
			})
		}
	}
}

// A time that begins after its end would puzzle a reader.
func TestLogOfAGuardedClaimIsNoEmptyRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.lossy = true
		h := hold(t, s, lease.Config{})
		h.id()
		synctest.Wait() // another goroutine logs when IDs begin
		if h.log.count("claimed a worker number", "until=") != 0 || h.log.count("claimed a worker number", "from=") != 1 {
			t.Errorf("log = %s; want a claim that says from when, and not until when", h.log.buf.String())
		}
		if h.log.count("IDs begin", "from=", "until=") != 1 {
			t.Errorf("log = %s; want it to say when IDs begin", h.log.buf.String())
		}
		h.close()
	})
}

// A clock is set back by two hours, and the store has no other, as on one host. Time may
// not be reserved so far ahead of it, so IDs end. Errors, status and log must say so.
func TestStepFarBackOfTheOneClockIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64 // a Duration
		clock := func() time.Time { return now().Add(-time.Duration(back.Load())) }
		log := new(logbook)
		s := leasetest.NewMemory(clock)
		few := core.Layout{Epoch: now().AddDate(-1, 0, 0), Unit: time.Millisecond, TimeBits: 41, WorkerBits: 8, SequenceBits: 1}
		config := lease.Config{Namespace: namespace(t), Layout: few, Window: 4 * time.Second, Now: clock, Logger: slog.New(slog.NewTextHandler(log, nil))}
		l, err := lease.Acquire(t.Context(), s, config)
		if err != nil {
			t.Fatal(err)
		}
		gen, err := core.New(core.Config{Layout: few, Worker: l, MaxLeaseWait: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		works := func() bool { _, err := gen.Next(t.Context()); return err == nil }
		if !works() || l.Check(t.Context()) != nil {
			t.Fatalf("Check() = %v; want nil", l.Check(t.Context()))
		}

		synctest.Wait()
		back.Store(int64(59 * time.Minute))
		for range 500 {
			time.Sleep(time.Second)
			if !works() || l.Check(t.Context()) != nil || l.Status().Failures != 0 {
				t.Fatalf("59 min back: Check() = %v, %+v; want IDs", l.Check(t.Context()), l.Status())
			}
		}
		synctest.Wait()
		back.Store(int64(3 * time.Hour))
		for n := 0; works(); n++ {
			if n > 10_000 {
				t.Fatalf("%d IDs, 3 h back; want no more than fit into a window", n)
			}
		}
		time.Sleep(10 * time.Minute)
		st := l.Status()
		var ahead *lease.AheadError
		if works() || !st.Held || st.Failures < 10 || !errors.As(st.Err, &ahead) || ahead.Max != time.Hour {
			t.Errorf("3 h back: Status() = %+v; want an AheadError, and failures", st)
		}
		if err := l.Check(t.Context()); !errors.Is(err, lease.ErrAhead) {
			t.Errorf("3 h back: Check() = %v; want it to match %v", err, lease.ErrAhead)
		}
		if n := log.count("level=ERROR", "no more time can be reserved", "failures=", "clock shows"); n < 5 {
			t.Errorf("%d records in 10 minutes; want at least 5:\n%s", n, log.buf.String())
		}

		// A new process takes another number, and is well.
		other, err := lease.Acquire(t.Context(), s, config)
		if err != nil || other.Check(t.Context()) != nil {
			t.Errorf("Acquire() = %v; want a lease that is well", err)
		} else {
			_ = other.Close(t.Context())
		}

		synctest.Wait()
		back.Store(0)
		time.Sleep(time.Minute)
		if st := l.Status(); !works() || l.Check(t.Context()) != nil || st.Err != nil {
			t.Errorf("clock right again: Check() = %v, Status() = %+v; want it well", l.Check(t.Context()), st)
		}
		_ = gen.Close(t.Context())
	})
}

func TestCheckSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.lossy = true
		h := hold(t, s, lease.Config{})
		want := func(when string, words ...string) {
			t.Helper()
			err := h.Check(t.Context())
			if len(words) == 0 && err != nil {
				t.Errorf("%s: Check() = %v; want nil", when, err)
			}
			for _, w := range words {
				if err == nil || !strings.HasPrefix(err.Error(), "lease: ") || !strings.Contains(err.Error(), w) {
					t.Errorf("%s: Check() = %v; want %q in it", when, err, w)
				}
			}
		}
		want("before the guard has passed", "no time is reserved", "the limit is 2030-01-01T00:00:10Z")
		time.Sleep(15 * time.Second)
		want("well")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.Check(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Check(ended) = %v; want %v", err, context.Canceled)
		}

		renewed := h.Status().Renewed
		s.set(away)
		time.Sleep(renewed.Add(7400 * time.Millisecond).Sub(now()))
		want("away for less than three quarters of a window")
		time.Sleep(200 * time.Millisecond)
		want("away for longer", "last renewed 7.", "three quarters", errAway.Error())
		if err := h.Check(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("Check() = %v; want it to wrap the store's error", err)
		}
		time.Sleep(time.Minute)
		want("lapsed", "no worker number is held", errAway.Error())
		s.set(nil)
		time.Sleep(30 * time.Second)
		want("the store is back")

		h.close()
		if err := h.Check(t.Context()); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("Check() after Close = %v; want %v", err, lease.ErrClosed)
		}
	})
}

func TestLostRowIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		lost := make(chan *lease.LostError, 1)
		h := hold(t, s, lease.Config{OnLost: func(e *lease.LostError) { lost <- e }})
		before := core.Default().Parts(h.id())
		row := s.row(t, before.Worker)
		row.Epoch += 2
		row.Owner, row.Nonce = "another", "another"
		row.Until += 1000_000
		s.Set(space(t), row)

		e := <-lost
		if e.Worker != before.Worker || e.Epoch != 1 || e.Reason != leasestore.TakenOver {
			t.Errorf("OnLost(%+v); want worker %d, epoch 1, taken over", e, before.Worker)
		}
		synctest.Wait()
		after := core.Default().Parts(h.id()) // larger, which id checks
		if after.Worker == before.Worker {
			t.Errorf("Next() = an ID of worker %d; want another", after.Worker)
		}
		if st := h.Status(); st.Losses != 1 || st.Claims != 2 || !st.Held || st.Worker != after.Worker || st.Err != nil {
			t.Errorf("Status() = %+v; want 1 loss, 2 claims", st)
		}
		if n := h.log.count("level=ERROR", "lost the worker number", "another lease"); n != 1 {
			t.Errorf("%d records of the loss; want 1", n)
		}
		if n := h.log.count("level=INFO", "claimed a worker number"); n != 1 {
			t.Errorf("%d records of the claim after the loss; want 1", n)
		}
		h.close()
		if got := s.row(t, before.Worker); got != row {
			t.Errorf("row = %+v; want the other's untouched, %+v", got, row)
		}
	})
}

// Between two rows callers wait, as they do at the limit, and go on by themselves.
func TestCallersWaitWhileARowIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		workers := []int64{5}
		h := hold(t, s, lease.Config{Workers: workers})
		workers[0] = 6 // the lease has its own copy
		h.id()
		row := s.row(t, 5)
		row.Epoch, row.Owner, row.Until = row.Epoch+1, "another", leasestore.MillisOf(now().Add(20*time.Second))
		s.Set(space(t), row)
		time.Sleep(16 * time.Second)
		if st := h.Status(); st.Held || !errors.Is(st.Err, lease.ErrNoFreeWorker) {
			t.Errorf("Status() = %+v; want none held, and no free worker", st)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.gen.Next(ctx); !errors.Is(err, core.ErrReservationExhausted) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next(1s) = %v; want both errors", err)
		}
		h.id()
		if row := s.row(t, 5); row.Epoch != 3 {
			t.Errorf("row = %+v; want it claimed again", row)
		}
		if n := h.log.count("level=WARN", "cannot claim"); n == 0 {
			t.Error("no record of the failed claims")
		}
		h.close()
	})
}

// A row may be lost before there is a generator.
func TestGeneratorMadeBetweenTwoRowsGetsTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		l, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		lost := l.Status().Worker
		s.Delete(space(t), lost)
		s.set(only("claim", away))
		time.Sleep(16 * time.Second)
		g, err := core.New(core.Config{Worker: l, MaxLeaseWait: time.Minute})
		if err != nil {
			t.Fatalf("New() = %v; want a generator that waits", err)
		}
		s.set(nil)
		id, err := g.Next(t.Context())
		if p := core.Default().Parts(id); err != nil || p.Worker == lost || p.Worker != l.Status().Worker {
			t.Errorf("Next() = an ID of %+v, %v; want one of worker %d", p, err, l.Status().Worker)
		}
		_ = g.Close(t.Context())
	})
}

// The store's clock steps while a row is held. The lease goes by its own clock, and the
// row does not follow the wrong one.
func TestStepOfTheStoresClockIsSurvived(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 24 * 365 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var by atomic.Int64
			s := &store{Memory: leasetest.NewMemory(func() time.Time { return now().Add(time.Duration(by.Load())) })}
			h := hold(t, s, lease.Config{})
			by.Store(int64(step))
			for range 300 {
				h.id()
				time.Sleep(time.Second)
			}
			if st := h.Status(); st.Losses != 0 || st.Failures != 0 || st.Limit.Before(now()) || st.Limit.After(now().Add(time.Minute)) {
				t.Errorf("step %v: Status() = %+v; want a limit within a window of %v", step, st, now())
			}
			h.close()
		})
	}
}

func TestOnLostMayCloseTheGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		ready, done := make(chan *holder, 1), make(chan error)
		h := hold(t, s, lease.Config{OnLost: func(*lease.LostError) {
			h := <-ready
			done <- h.gen.Close(h.Context())
		}})
		ready <- h
		s.Delete(space(t), h.Status().Worker)
		if err := <-done; err != nil {
			t.Errorf("Close() in OnLost = %v; want nil", err)
		}
	})
}

// A process is stopped for longer than its window: another takes its worker number,
// and then it goes on. All IDs are different.
func TestPausedHolderRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		paused := hold(t, s, lease.Config{Workers: []int64{5}, Window: 10 * time.Second})
		seen := map[types.Snowflake]string{}
		take := func(who string, h *holder) {
			if was, ok := seen[h.id()]; ok {
				t.Fatalf("ID %d of %s was returned to %s before", h.last, who, was)
			}
			seen[h.last] = who
		}
		take("the paused", paused)
		stuck := make(chan struct{})
		s.set(only("renew", func(_ context.Context, _ string, do func() error) error { <-stuck; return do() }))
		time.Sleep(10*time.Second + 500*time.Millisecond) // past its limit, by less than MaxBehind

		other := hold(t, s, lease.Config{Workers: []int64{5}, Window: 10 * time.Second})
		for range 2000 {
			take("the paused", paused) // still below its limit
			take("the other", other)
		}
		if limit := paused.Status().Limit; !core.Default().Parts(paused.last).Time.Before(limit) ||
			core.Default().Parts(other.last).Time.Before(limit) {
			t.Errorf("the paused is at %v, the other at %v; want them on both sides of %v",
				core.Default().Parts(paused.last).Time, core.Default().Parts(other.last).Time, limit)
		}
		s.set(nil)
		close(stuck)
		synctest.Wait()
		if st := paused.Status(); st.Held || st.Losses != 1 {
			t.Errorf("Status() of the paused = %+v; want its row lost", st)
		}
		other.close()
		time.Sleep(3 * time.Second)
		for range 2000 {
			take("the paused", paused)
		}
		paused.close()
	})
}

func TestLateRenewalOfALostRowHasNoEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{Workers: []int64{5}})
		var late []func() error
		s.set(only("renew", func(_ context.Context, _ string, do func() error) error {
			late = append(late, do)
			return errAway
		}))
		time.Sleep(30 * time.Second)
		s.set(nil)
		h.close()
		row := s.row(t, 5)
		for _, do := range late {
			if err := do(); err == nil {
				t.Error("a renewal after the release was done; want it refused")
			}
		}
		if got := s.row(t, 5); got != row || len(late) == 0 {
			t.Errorf("row after %d late renewals = %+v; want %+v", len(late), got, row)
		}
	})
}

func TestLoweredRowIsSetRightAndLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{})
		limit := h.Status().Limit
		row := s.row(t, h.Status().Worker)
		row.Until -= 50_000
		s.Set(space(t), row)
		time.Sleep(16 * time.Second)
		if st := h.Status(); st.Limit.Before(limit) || st.Losses != 0 {
			t.Errorf("Status() = %+v; want the row kept and a limit after %v", st, limit)
		}
		if n := h.log.count("level=ERROR", "reserved less", "missing=50s"); n != 1 {
			t.Errorf("%d records of it; want 1", n)
		}
		h.close()
	})
}

// Another layout appears in the namespace while a row is being replaced.
func TestLayoutErrorOfALaterClaimIsLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		h := hold(t, s, lease.Config{})
		s.set(only("claim", func(context.Context, string, func() error) error { return &lease.LayoutError{Namespace: "shop"} }))
		s.Delete(space(t), h.Status().Worker)
		time.Sleep(10 * time.Minute)
		if n := h.log.count("level=ERROR", "cannot claim", "layout"); n < 2 || s.count("claim") > 25 {
			t.Errorf("%d records of %d claims in 10 min; want a few", n, s.count("claim"))
		}
		s.set(nil)
		time.Sleep(2 * time.Minute)
		h.id()
		h.close()
	})
}

func TestErrClosedIsThatOfCore(t *testing.T) {
	if !errors.Is(lease.ErrClosed, core.ErrClosed) {
		t.Error("errors.Is(lease.ErrClosed, core.ErrClosed) = false; want true")
	}
}
