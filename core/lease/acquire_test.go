package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/types"
)

func quiet(t *testing.T, c lease.Config) lease.Config {
	c.Now, c.Logger = now, slog.New(slog.DiscardHandler)
	if c.Namespace == "" {
		c.Namespace = namespace(t)
	}
	return c
}

func TestAcquireWithAnEndedContextDoesNoIO(t *testing.T) {
	s := newStore()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l, err := lease.Acquire(ctx, s, quiet(t, lease.Config{}))
	if l != nil || !errors.Is(err, context.Canceled) || s.count("claim") != 0 {
		t.Errorf("Acquire(ended) = %v, %v, %d claims; want the context's error and none", l, err, s.count("claim"))
	}
}

func TestAcquireTriesAFewTimes(t *testing.T) {
	for _, test := range []struct {
		err    error
		claims int
	}{
		{errAway, 4},
		{&lease.ClockSkewError{}, 4},
		{&lease.LayoutError{}, 1},
		{leasestore.Permanent(errAway), 1},
		{&lease.NoFreeWorkerError{}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.set(func(context.Context, string, func() error) error { return test.err })
			l, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{}))
			if l != nil || !errors.Is(err, test.err) || s.count("claim") != test.claims || !strings.HasPrefix(err.Error(), "lease: ") {
				t.Errorf("Acquire() = %v, %v after %d claims; want %v after %d", l, err, s.count("claim"), test.err, test.claims)
			}
		})
	}
}

// Acquire waits for a store that starts later than the program. It does not wait for one
// that says that the failure is permanent.
func TestAcquireWaitsForAStoreThatIsNotUpYet(t *testing.T) {
	for _, down := range []fault{away, hangs} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.set(down)
			go func() {
				time.Sleep(3 * time.Minute)
				s.set(nil)
			}()
			l, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{AcquireWait: 4 * time.Minute}))
			if err != nil {
				t.Fatalf("Acquire() = %v; want a lease", err)
			}
			_ = l.Close(t.Context())

			s.set(down)
			began := time.Now()
			_, err = lease.Acquire(t.Context(), s, quiet(t, lease.Config{AcquireWait: 4 * time.Minute}))
			// An attempt that is under way when AcquireWait ends may take half of Window longer.
			if took := time.Since(began); err == nil || took < 4*time.Minute || took > 4*time.Minute+30*time.Second {
				t.Errorf("Acquire() = %v after %v; want the store's error when AcquireWait is over", err, took)
			}

			s.set(func(context.Context, string, func() error) error { return leasestore.Permanent(errAway) })
			began = time.Now()
			_, err = lease.Acquire(t.Context(), s, quiet(t, lease.Config{AcquireWait: -1}))
			if took := time.Since(began); !errors.Is(err, lease.ErrPermanent) || !errors.Is(err, errAway) || took > 0 {
				t.Errorf("Acquire() = %v after %v; want the permanent error at once", err, took)
			}
		})
	}
}

func TestAcquireSurvivesAShortFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		n := 0
		s.set(func(_ context.Context, _ string, do func() error) error {
			if n++; n <= 3 {
				_ = do() // performed, but the reply is lost, so the row stays taken by an unused token
				return errAway
			}
			return do()
		})
		l, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{}))
		if err != nil {
			t.Fatalf("Acquire() = %v; want a lease at the fourth attempt", err)
		}
		s.set(nil)
		rows, _, _ := s.Rows(t.Context(), space(t))
		taken := 0
		for _, r := range rows {
			if r.Owner != "" {
				taken++
			}
		}
		if st := l.Status(); taken != 4 || st.Failures != 3 || st.Claims != 1 || st.Err != nil {
			t.Errorf("%d rows taken, Status() = %+v; want 4, and 3 failures before the claim", taken, st)
		}
		_ = l.Close(t.Context())
	})
}

func TestAcquireReturnsWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.set(hangs)
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		began := time.Now()
		_, err := lease.Acquire(ctx, s, quiet(t, lease.Config{}))
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 40*time.Second || s.count("claim") != 2 {
			t.Errorf("Acquire(40s) = %v after %v, %d claims; want the context's error after 40s and 2: each has half of the window", err, took, s.count("claim"))
		}
	})
}

// The lease outlives the context of Acquire.
func TestContextOfAcquireDoesNotEndTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		ctx, cancel := context.WithCancel(t.Context())
		l, err := lease.Acquire(ctx, s, quiet(t, lease.Config{}))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(5*time.Minute + time.Second)
		if st := l.Status(); st.Renewals/2 != 10 || st.Failures != 0 {
			t.Errorf("Status() = %+v after 5 min; want 20 or 21 renewals, as the first one comes at a random time", st)
		}
		_ = l.Close(t.Context())
	})
}

func TestAcquireWaitsForAFreeWorkerForAsLongAsItMay(t *testing.T) {
	for _, test := range []struct {
		name     string
		wait     time.Duration
		ctx      time.Duration // when its context ends
		released time.Duration // when the holder gives the row back
		took     time.Duration // at most; and exactly if it fails
		err      error
	}{
		{"it does not wait", 0, time.Hour, time.Hour, 0, lease.ErrNoFreeWorker},
		{"it waits as long as it may", 20 * time.Second, time.Hour, time.Hour, 20 * time.Second, lease.ErrNoFreeWorker},
		{"it takes a row given back", 20 * time.Second, time.Hour, 3 * time.Second, 3*time.Second + 7500*time.Millisecond, nil},
		{"it waits until the context ends", -1, 30 * time.Minute, time.Hour, 30 * time.Minute, context.DeadlineExceeded},
		{"it waits for long", -1, time.Hour, 10 * time.Minute, 10*time.Minute + 7500*time.Millisecond, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore()
				holder, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{Workers: []int64{5}}))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), test.ctx)
				defer cancel()
				stop := time.AfterFunc(test.released, func() { _ = holder.Close(t.Context()) })
				began := time.Now()
				l, err := lease.Acquire(ctx, s, quiet(t, lease.Config{Workers: []int64{5}, AcquireWait: test.wait}))
				took := time.Since(began)
				if !errors.Is(err, test.err) || took > test.took || err != nil && took != test.took {
					t.Errorf("Acquire() = %v after %v; want %v after %v", err, took, test.err, test.took)
				}
				if none := (*lease.NoFreeWorkerError)(nil); err != nil && (!errors.As(err, &none) || none.Rows != 1 || none.Earliest.IsZero()) {
					t.Errorf("Acquire() = %v; want it to say when the one row is free", err)
				}
				if l != nil {
					_ = l.Close(t.Context())
				}
				stop.Stop()
				_ = holder.Close(t.Context())
			})
		})
	}
}

// Not in a bubble: there no time passes before the wait is added to it.
func TestAcquireMayWaitForTheLongestDuration(t *testing.T) {
	s := newStore()
	holder, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{Workers: []int64{5}}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Close(t.Context()) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	s.set(only("claim", func(_ context.Context, _ string, do func() error) error {
		if asked++; asked == 2 {
			cancel()
		}
		return do()
	}))
	_, err = lease.Acquire(ctx, s, quiet(t, lease.Config{Workers: []int64{5}, AcquireWait: math.MaxInt64}))
	s.set(nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire() = %v; want it to wait until its context ends", err)
	}
}

func TestAcquireSaysWhatTheStoreWaitedForWhenItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.set(func(ctx context.Context, _ string, _ func() error) error {
			<-ctx.Done()
			return fmt.Errorf("all connections are in use: %w", ctx.Err())
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := lease.Acquire(ctx, s, quiet(t, lease.Config{}))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "all connections are in use") {
			t.Errorf("Acquire() = %v; want the end of its context, and what the store says", err)
		}
	})
}

func TestAcquireWaitEndsWithARowThatExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.set(losesReplies) // of a claimant that then crashed
		_, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{Workers: []int64{5}}))
		if err == nil {
			t.Fatal("Acquire() = nil; want an error")
		}
		s.set(nil)
		until := s.row(t, 5).Until.Time()
		l, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{Workers: []int64{5}, AcquireWait: 2 * time.Minute}))
		if late := now().Sub(until); err != nil || late < 0 || late > 200*time.Millisecond {
			t.Errorf("Acquire() = %v, %v after the row was free; want it then", err, late)
		}
		_ = l.Close(t.Context())
	})
}

func TestOneLeaseHasOneGenerator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		twitter := core.Twitter()
		l, err := lease.Acquire(t.Context(), newStore(), quiet(t, lease.Config{Layout: twitter, Datacenter: 3}))
		if err != nil {
			t.Fatal(err)
		}
		moved := twitter
		moved.Epoch = moved.Epoch.Add(time.Millisecond)
		for _, test := range []struct {
			config core.Config
			words  []string
		}{
			{core.Config{Layout: core.Default(), Worker: l}, []string{"core.Config.Layout", "bits 41/0/10/12", "bits 41/5/5/12"}},
			{core.Config{Layout: moved, Datacenter: 3, Worker: l}, []string{"core.Config.Layout", "54.658Z", "54.657Z"}},
			{core.Config{Layout: twitter, Datacenter: 4, Worker: l}, []string{"core.Config.Datacenter", "is 4", "want 3"}},
		} {
			var bad *core.ValueError
			_, err := core.New(test.config)
			if !errors.As(err, &bad) {
				t.Errorf("New() = %v; want a *core.ValueError", err)
				continue
			}
			for _, w := range test.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("New() = %v; want %q in it", err, w)
				}
			}
		}
		same := twitter
		same.Epoch = same.Epoch.In(time.FixedZone("", 3600))
		g, err := core.New(core.Config{Layout: same, Datacenter: 3, Worker: l})
		if err != nil {
			t.Fatalf("New() = %v; want a generator", err)
		}
		id, err := g.Next(t.Context())
		if p := twitter.Parts(id); err != nil || p.Datacenter != 3 || p.Worker != l.Status().Worker {
			t.Errorf("Next() = an ID of %+v, %v; want datacenter 3 and worker %d", p, err, l.Status().Worker)
		}
		if _, err := core.New(core.Config{Layout: twitter, Datacenter: 3, Worker: l}); !errors.Is(err, lease.ErrBound) {
			t.Errorf("second New() = %v; want ErrBound", err)
		}
		_ = g.Close(t.Context())
	})
}

func TestEveryConfigErrorNamesOptionValueAndRange(t *testing.T) {
	layout := func(change func(*core.Layout)) core.Layout {
		l := core.Default()
		change(&l)
		return l
	}
	for _, test := range []struct {
		config lease.Config
		words  string // separated by |
	}{
		{lease.Config{}, `Config.Namespace is ""|1..64`},
		{lease.Config{Namespace: "a b"}, `Config.Namespace is "a b"`},
		{lease.Config{Namespace: "a/b"}, `Config.Namespace is "a/b"`},
		{lease.Config{Namespace: ".."}, `Config.Namespace is ".."`},
		{lease.Config{Namespace: "é"}, `Config.Namespace is "é"`},
		{lease.Config{Namespace: "a\x00"}, `Config.Namespace is "a\x00"`},
		{lease.Config{Namespace: strings.Repeat("x", 65)}, "Config.Namespace is|65 bytes"},
		{lease.Config{Namespace: strings.Repeat("x", 1<<20)}, "Config.Namespace is|1048576 bytes"},
		{lease.Config{Namespace: "n", Layout: core.Layout{TimeBits: 41}}, "Config.Layout.SequenceBits is 0"},
		{lease.Config{Namespace: "n", Layout: layout(func(l *core.Layout) { l.WorkerBits = 40 })}, "Config.Layout.TimeBits + |at most 63"},
		{lease.Config{Namespace: "n", Layout: layout(func(l *core.Layout) { l.TimeBits, l.WorkerBits, l.SequenceBits = 36, 17, 10 })}, "Config.Layout.WorkerBits is 17|at most 16"},
		{lease.Config{Namespace: "n", Datacenter: 1}, "Config.Datacenter is 1|0..0"},
		{lease.Config{Namespace: "n", Datacenter: -1}, "Config.Datacenter is -1|0..0"},
		{lease.Config{Namespace: "n", Workers: []int64{}}, "Config.Workers is empty|at least one"},
		{lease.Config{Namespace: "n", Workers: []int64{0, 1024}}, "Config.Workers[1] is 1024|0..1023"},
		{lease.Config{Namespace: "n", Workers: []int64{-1}}, "Config.Workers[0] is -1|0..1023"},
		{lease.Config{Namespace: "n", Window: 2999 * time.Millisecond}, "Config.Window is 2.999s|3s..10m0s"},
		{lease.Config{Namespace: "n", Window: -time.Second}, "Config.Window is -1s|3s..10m0s"},
		{lease.Config{Namespace: "n", Window: 10*time.Minute + 1}, "Config.Window is 10m0.000000001s|3s..10m0s"},
		{lease.Config{Namespace: "n", Window: 3 * time.Second, Layout: layout(func(l *core.Layout) { l.Unit = time.Second })}, "Config.Window is 3s|4s..10m0s"},
		{lease.Config{Namespace: "n", MaxClockSkew: -1}, "Config.MaxClockSkew is -1ns|1ms..1h"},
		{lease.Config{Namespace: "n", MaxClockSkew: 1}, "Config.MaxClockSkew is 1ns|1ms..1h"},
		{lease.Config{Namespace: "n", MaxClockSkew: time.Hour + 1}, "Config.MaxClockSkew is 1h0m0.000000001s|1ms..1h"},
		{lease.Config{Namespace: "n", LossGuard: 9 * time.Millisecond}, "Config.LossGuard is 9ms|10ms..2.5s"},
		{lease.Config{Namespace: "n", LossGuard: 16 * time.Second, Window: 8 * time.Second}, "Config.LossGuard is 16s|10ms..2.5s"},
		{lease.Config{Namespace: "n", LossGuard: time.Second, Window: 10*time.Second + 1}, "Config.Window is 10.000000001s|3s..10s|what another process may have reserved"},
	} {
		s := newStore()
		_, err := lease.Acquire(t.Context(), s, test.config)
		var bad *core.ValueError
		if !errors.As(err, &bad) || s.count("claim") != 0 || len(err.Error()) > 400 {
			t.Errorf("Acquire(%.100v) = %.400v, %d claims; want a *core.ValueError and none", test.config, err, s.count("claim"))
			continue
		}
		for w := range strings.SplitSeq("lease: |"+test.words, "|") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("Acquire() = %v; want %q in it", err, w)
			}
		}
	}
	if _, err := lease.Acquire(t.Context(), nil, lease.Config{Namespace: "n"}); err == nil || !strings.Contains(err.Error(), "store is nil") {
		t.Errorf("Acquire(nil store) = %v; want an error that says so", err)
	}
}

// asked returns what a lease with config asks of its store first.
func asked(t *testing.T, s *store, config lease.Config) (c leasestore.Claim) {
	t.Helper()
	caught := &catcher{store: s}
	l, err := lease.Acquire(t.Context(), caught, quiet(t, config))
	if err != nil {
		t.Fatalf("Acquire() = %v", err)
	}
	_ = l.Close(t.Context())
	return caught.claim
}

type catcher struct {
	*store
	claim leasestore.Claim
}

func (c *catcher) Claim(ctx context.Context, q leasestore.Claim) (leasestore.Reply, error) {
	c.claim = q
	return c.store.Claim(ctx, q)
}

func workerBits(n int) core.Layout {
	l := core.Default()
	l.WorkerBits, l.SequenceBits = n, l.WorkerBits+l.SequenceBits-n
	return l
}

func TestDefaultsAreThoseOfTheComments(t *testing.T) {
	fourTicks := core.Default()
	fourTicks.Unit, fourTicks.TimeBits = time.Second, 31
	for _, test := range []struct {
		name   string
		lossy  bool
		config lease.Config
		want   leasestore.Claim
	}{
		{"10 worker bits", false, lease.Config{}, leasestore.Claim{Window: 60_000, Skew: 5000}},
		{"9 worker bits", false, lease.Config{Layout: workerBits(9)}, leasestore.Claim{Window: 60_000, Skew: 5000}},
		{"8 worker bits", false, lease.Config{Layout: workerBits(8)}, leasestore.Claim{Window: 10_000, Skew: 5000}},
		{"5 worker bits", false, lease.Config{Layout: core.Twitter(), Datacenter: 2}, leasestore.Claim{Window: 10_000, Skew: 5000}},
		{"lossy", true, lease.Config{}, leasestore.Claim{Window: 10_000, Skew: 500, Guard: 500}},
		{"lossy, guard off", true, lease.Config{LossGuard: -1}, leasestore.Claim{Window: 10_000, Skew: 5000}},
		{"guard", false, lease.Config{LossGuard: 100 * time.Millisecond}, leasestore.Claim{Window: 10_000, Skew: 100, Guard: 100}},
		{"guard off", false, lease.Config{LossGuard: -1}, leasestore.Claim{Window: 60_000, Skew: 5000}},
		{"greatest guard", false, lease.Config{LossGuard: 2 * time.Second, Window: 8 * time.Second}, leasestore.Claim{Window: 10_000, Skew: 2000, Guard: 2000}},
		{"a stricter skew", true, lease.Config{MaxClockSkew: 50 * time.Millisecond}, leasestore.Claim{Window: 10_000, Skew: 50, Guard: 500}},
		{"the least", false, lease.Config{Window: 3 * time.Second, MaxClockSkew: time.Millisecond}, leasestore.Claim{Window: 3000, Skew: 1}},
		{"four ticks", false, lease.Config{Layout: fourTicks, Window: 4 * time.Second}, leasestore.Claim{Window: 4000, Skew: 5000}},
		{"the most", false, lease.Config{Window: 10 * time.Minute, MaxClockSkew: time.Hour, Workers: []int64{0, 1023}},
			leasestore.Claim{Window: 600_000, Skew: 3600_000, Only: []int64{0, 1023}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.lossy = test.lossy
			got := asked(t, s, test.config)
			if got.Window != test.want.Window || got.Skew != test.want.Skew || got.Guard != test.want.Guard || !slices.Equal(got.Only, test.want.Only) {
				t.Errorf("%s: claim = %+v; want %+v", test.name, got, test.want)
			}
			layout := test.config.Layout
			if layout == (core.Layout{}) {
				layout = core.Default()
			}
			if got.Space.Workers != 1<<layout.WorkerBits || got.Space.Datacenter != test.config.Datacenter || got.Space.Namespace != namespace(t) {
				t.Errorf("%s: space = %+v; want that of the layout", test.name, got.Space)
			}
		})
	}
}

func TestLayoutIsKeptInReadableForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		if got, want := asked(t, s, lease.Config{Layout: core.Twitter()}).Space.Layout, "epoch 2010-11-04T01:42:54.657Z, unit 1ms, bits 41/5/5/12"; got != want {
			t.Errorf("Space.Layout = %q; want %q", got, want)
		}
		elsewhere := core.Twitter()
		elsewhere.Epoch = elsewhere.Epoch.In(time.FixedZone("", 3600)) // which means the same
		asked(t, s, lease.Config{Layout: elsewhere})
		_, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{}))
		var bad *lease.LayoutError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "bits 41/5/5/12") || !strings.Contains(err.Error(), "bits 41/0/10/12") {
			t.Errorf("Acquire(another layout) = %v; want a *LayoutError with both", err)
		}
	})
}

func TestGuardTurnedOffForALossyStoreIsAWarning(t *testing.T) {
	for _, test := range []struct {
		lossy bool
		guard time.Duration
		want  int
	}{{true, -1, 1}, {true, 0, 0}, {false, -1, 0}, {false, 0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.lossy = test.lossy
			h := hold(t, s, lease.Config{LossGuard: test.guard})
			if got := h.log.count("level=WARN", "loss guard is off"); got != test.want {
				t.Errorf("lossy %v, guard %v: %d warnings; want %d", test.lossy, test.guard, got, test.want)
			}
			h.close()
		})
	}
}

// A store forgets writes, again and again. Under the guard each lease begins after
// everything that was issued, whatever the windows of the others.
func TestGuardedLeasesRepeatNothingWhenTheStoreForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.lossy = true
		seen := map[types.Snowflake]bool{}
		config := lease.Config{Workers: []int64{5, 6}}
		short := config
		short.Window = 3 * time.Second
		holders := []*holder{hold(t, s, config), hold(t, s, short)}
		lost := uint64(0)
		for round := range 40 {
			var empty leasetest.Snapshot
			if round%2 == 1 {
				empty = s.Snapshot()
			}
			for tick := range 30 {
				for _, h := range holders {
					id, err := h.gen.Next(t.Context())
					switch {
					case err == nil && seen[id]:
						t.Fatalf("round %d: ID %d twice", round, id)
					case err == nil && id <= h.last:
						t.Fatalf("round %d: ID %d after %d", round, id, h.last)
					case err == nil:
						seen[id], h.last = true, id
					case !errors.Is(err, core.ErrReservationExhausted):
						t.Fatalf("round %d: Next() = %v", round, err)
					}
				}
				time.Sleep(time.Duration(round*17+tick*31) * time.Millisecond)
			}
			s.Restore(empty)
		}
		for _, h := range holders {
			lost += h.Status().Losses
			_ = h.gen.Close(t.Context())
		}
		if lost < 10 || len(seen) < 1000 {
			t.Errorf("%d losses, %d IDs; want many", lost, len(seen))
		}
	})
}

// Under the guard the first ID comes a little more than the guard after the start. It
// does not come a window later, whatever Config.Window says.
func TestGuardDelaysTheStartByLittle(t *testing.T) {
	for _, window := range []time.Duration{0, 3 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) { guardDelaysTheStartByLittle(t, window) })
	}
}

func guardDelaysTheStartByLittle(t *testing.T, window time.Duration) {
	s := newStore()
	s.lossy = true
	began := time.Now()
	h := hold(t, s, lease.Config{Window: window})
	id := h.id()
	if took := time.Since(began); took <= 500*time.Millisecond || took > 700*time.Millisecond {
		t.Errorf("first ID after %v; want little more than 500ms", took)
	}
	ahead := core.Default().Parts(id).Time.Sub(began.AddDate(30, 0, 0))
	if ahead < 10_500*time.Millisecond || ahead > 10_600*time.Millisecond {
		t.Errorf("first ID is %v ahead of the start; want a window and the guard, 10.5s", ahead)
	}
	for range 10_000 { // at this rate it never waits again
		began := time.Now()
		h.id()
		if took := time.Since(began); took > 0 {
			t.Fatalf("Next() took %v; want no time", took)
		}
		time.Sleep(time.Millisecond)
	}
	h.close()
}

// A process without the guard would raise limits beyond what a guarded claim counts on.
// One with it would count on what the others do not keep.
func TestGuardIsOnForAllOfANamespaceOrForNone(t *testing.T) {
	for _, first := range []time.Duration{time.Second, -time.Second} {
		s := newStore()
		l, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{LossGuard: first}))
		if err != nil {
			t.Fatal(err)
		}
		_, err = lease.Acquire(t.Context(), s, quiet(t, lease.Config{LossGuard: -first}))
		want := "Config.LossGuard on"
		if first < 0 {
			want = "Config.LossGuard off"
		}
		var differs *lease.LayoutError
		if !errors.As(err, &differs) || !strings.Contains(err.Error(), want) || differs.Own == differs.Stored || s.count("claim") != 2 {
			t.Errorf("guard %v, then Acquire(%v) = %v, %d claims; want a LayoutError with %q, at once", first, -first, err, s.count("claim"), want)
		}
		other, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{LossGuard: first / 2}))
		if err != nil {
			t.Errorf("guard %v, then Acquire(%v) = %v; want no error: how long it is may differ", first, first/2, err)
		} else {
			_ = other.Close(t.Context())
		}
		_ = l.Close(t.Context())
	}
}

func TestGeneratorReadsTheClockOfItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(t, newStore(), lease.Config{})
		if p := core.Default().Parts(h.id()); !p.Time.Equal(now().Truncate(time.Millisecond)) {
			t.Errorf("Next() = an ID of %v; want Config.Now's time, %v", p.Time, now())
		}
		h.close()
	})
	l := new(lease.Lease)
	if l.WallClock() != nil {
		t.Error("WallClock() without Config.Now = a clock; want nil, the system's")
	}
}

func TestErrorsOfAcquireAreReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.set(away)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := lease.Acquire(ctx, s, quiet(t, lease.Config{}))
		const want = "lease: no worker number claimed: context deadline exceeded; before that: the store is away"
		if fmt.Sprint(err) != want || !errors.Is(err, errAway) {
			t.Errorf("Acquire() = %v; want %s", err, want)
		}
	})
}
