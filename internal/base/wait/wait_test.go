package wait

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSleepEndsWithTheTimeOrTheContext(t *testing.T) {
	for name, test := range map[string]struct {
		limit time.Duration // of the context; 0: none
		slept time.Duration
		want  error
	}{
		"no context to end": {0, time.Hour, nil},
		"time first":        {2 * time.Hour, time.Hour, nil},
		"context first":     {time.Minute, time.Minute, context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := context.Background()
			if test.limit > 0 {
				limited, cancel := context.WithTimeout(ctx, test.limit)
				defer cancel()
				ctx = limited
			}
			began := time.Now()
			if err := Sleep(ctx, time.Hour); !errors.Is(err, test.want) || time.Since(began) != test.slept {
				t.Errorf("%s: Sleep(1h) = %v after %v; want %v after %v", name, err, time.Since(began), test.want, test.slept)
			}
		})
	}
}

func TestSleepInAContextThatHasEndedIsItsError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // both may be ready
		if err := Sleep(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Fatalf("Sleep(0) = %v; want Canceled", err)
		}
	}
}

// A late is a context whose timer has not run yet.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

func TestCauseAddsTheErrorOfAContextThatHasEnded(t *testing.T) {
	failure := errors.New("read tcp: use of closed network connection")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want error // nil: err stays as it is
	}{
		"alive":         {t.Context(), failure, nil},
		"time left":     {late{t.Context(), time.Now().Add(time.Hour)}, failure, nil},
		"canceled":      {canceled, failure, context.Canceled},
		"timer is late": {late{t.Context(), time.Now()}, failure, context.DeadlineExceeded},
		"named already": {canceled, context.Canceled, nil},
		"no error":      {canceled, nil, nil},
	} {
		got := Cause(test.ctx, test.err)
		if test.want == nil && got != test.err || !errors.Is(got, test.err) || !errors.Is(got, test.want) && test.want != nil {
			t.Errorf("%s: Cause(%v) = %v; want %v with %v", name, test.err, got, test.err, test.want)
		}
	}
}

func TestCallReturnsTheResult(t *testing.T) {
	calls := Calls{Max: 1}
	failure := errors.New("no")
	ctx, cancel := context.WithCancel(t.Context())
	for _, want := range []error{nil, failure} {
		if got, err := Call(ctx, &calls, func() (int, error) { return 7, want }, nil); got != 7 || !errors.Is(err, want) {
			t.Errorf("Call() = %d, %v; want 7, %v", got, err, want)
		}
	}
	cancel() // one that heeds ctx is waited for
	if got, err := Call(ctx, &calls, func() (int, error) { return 7, ctx.Err() }, nil); got != 7 || !errors.Is(err, context.Canceled) || calls.hang.Load() != 0 {
		t.Errorf("Call() = %d, %v, and %d hang; want 7, Canceled, none", got, err, calls.hang.Load())
	}
}

func TestCallPanicsAndEndsItsGoroutineAsTheFunctionDoes(t *testing.T) {
	for name, f := range map[string]func() (int, error){
		"panic":  func() (int, error) { panic("mine") },
		"Goexit": func() (int, error) { runtime.Goexit(); return 0, nil },
	} {
		var wg sync.WaitGroup
		returned, recovered := false, any(nil)
		wg.Go(func() {
			defer func() { recovered = recover() }()
			_, _ = Call(t.Context(), &Calls{Max: 1}, f, nil)
			returned = true
		})
		wg.Wait()
		if returned || (recovered == "mine") != (name == "panic") {
			t.Errorf("Call(%s) returned: %v, panicked: %v; want what the function does", name, returned, recovered)
		}
	}
}

func TestACallThatHangsIsLeftAndItsResultGoesToLate(t *testing.T) {
	for _, failure := range []error{nil, errors.New("no")} {
		synctest.Test(t, func(t *testing.T) {
			var (
				calls  = Calls{Max: 1}
				late   []int
				resume = make(chan struct{})
			)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			got, err := Call(ctx, &calls, func() (int, error) { <-resume; return 7, failure }, func(n int) { late = append(late, n) })
			if got != 0 || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrNoAnswer) || time.Since(began) != time.Second+Grace {
				t.Errorf("Call() = %d, %v after %v; want 0, DeadlineExceeded and ErrNoAnswer, after 1s and the grace", got, err, time.Since(began))
			}
			if calls.hang.Load() != 1 {
				t.Errorf("%d calls hang; want 1", calls.hang.Load())
			}
			got, err = Call(t.Context(), &calls, func() (int, error) { return 7, nil }, nil)
			if got != 0 || err == nil || errors.Is(err, ErrNoAnswer) || !strings.Contains(err.Error(), "not tried: 1 calls before this one still hang") {
				t.Errorf("Call() while another hangs = %d, %v; want it not tried", got, err)
			}
			close(resume)
			synctest.Wait()
			want := 1
			if failure != nil {
				want = 0
			}
			if len(late) != want || calls.hang.Load() != 0 {
				t.Errorf("after the call ended: late results %v, %d hang; want %d results, none hangs", late, calls.hang.Load(), want)
			}
		})
	}
}

func TestWhatIsDoneCountsEvenIfTheContextHasEnded(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	done := make(chan struct{})
	if err := For(ended, done); !errors.Is(err, context.Canceled) {
		t.Errorf("For(context that has ended) = %v; want context.Canceled", err)
	}
	close(done)
	for range 100 { // select would choose at random
		if err := For(ended, done); err != nil {
			t.Fatalf("For(context that has ended, what is done) = %v; want nil", err)
		}
	}
}

func TestWhatIsStartedGoesOnWithoutItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		result := Start(func() (int, error) {
			time.Sleep(time.Hour)
			return 7, failed
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if n, err := result(ctx); n != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("result within a minute = %d, %v; want 0, context.DeadlineExceeded", n, err)
		}
		for range 2 {
			if n, err := result(t.Context()); n != 7 || !errors.Is(err, failed) {
				t.Errorf("result = %d, %v; want 7, %v", n, err, failed)
			}
		}
	})
}
