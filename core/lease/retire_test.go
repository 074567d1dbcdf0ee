package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

func TestRetiredNumberIsNeverLeased(t *testing.T) {
	s := newStore()
	c := quiet(t, lease.Config{Layout: core.JavaScript(), Holder: "me"})
	const worker = 63
	for range 2 { // the second time nothing is to be done
		if err := lease.Retire(t.Context(), s, c, worker, "orders of 2019"); err != nil {
			t.Fatalf("Retire() = %v; want no error", err)
		}
	}
	for range 63 {
		l, err := lease.Acquire(t.Context(), s, c)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		if l.Status().Worker == worker {
			t.Fatal("Acquire() took the retired number")
		}
	}
	var none *lease.NoFreeWorkerError
	if _, err := lease.Acquire(t.Context(), s, c); !errors.As(err, &none) || none.Rows != 63 || none.Retired != 1 {
		t.Errorf("Acquire() = %v; want that 63 are reserved, and one is retired", err)
	}
	c.Workers = []int64{worker}
	if _, err := lease.Acquire(t.Context(), s, c); !errors.As(err, &none) || none.Retired != 1 || !strings.Contains(err.Error(), "are retired") {
		t.Errorf("Acquire() of the retired number alone = %v; want that it is retired", err)
	}
	if got := s.row(t, worker).Holder; got != "retired: orders of 2019, by me" {
		t.Errorf("holder of the row = %q; want reason and name", got)
	}
}

func TestUsedNumberIsNotRetired(t *testing.T) {
	s := newStore()
	c := quiet(t, lease.Config{Workers: []int64{7}, Holder: "me"})
	l, err := lease.Acquire(t.Context(), s, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []struct {
		store lease.Store
		want  string
	}{
		{s, `worker 7, held by "me" until `},
		{timedStore{s}, "worker 7"}, // which lists no rows
	} {
		if err := lease.Retire(t.Context(), state.store, c, 7, "why"); !errors.Is(err, lease.ErrUsed) || !strings.Contains(err.Error(), state.want) {
			t.Errorf("Retire() of a held number = %v; want ErrUsed and %q", err, state.want)
		}
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = lease.Retire(t.Context(), s, c, 7, "why")
	if !errors.Is(err, lease.ErrUsed) || !strings.Contains(err.Error(), "end before") || !strings.Contains(err.Error(), "1023 unused numbers, such as [1016 1017 1018 1019 1020 1021 1022 1023]") {
		t.Errorf("Retire() of a released number = %v; want ErrUsed, and numbers that will do", err)
	}
	if err := lease.Retire(t.Context(), timedStore{s}, c, 8, "why"); err != nil {
		t.Errorf("Retire() through a decorator = %v; want no error", err)
	}
}

func TestRetireRefusesWhatItCannotDo(t *testing.T) {
	s := newStore()
	distant := newStore()
	distant.set(away)
	good := quiet(t, lease.Config{})
	for _, test := range []struct {
		name   string
		store  lease.Store
		worker int64
		reason string
		is     error
	}{
		{"no store", nil, 1, "why", lease.ErrPermanent},
		{"beyond the layout", s, 1024, "why", lease.ErrPermanent},
		{"negative", s, -1, "why", lease.ErrPermanent},
		{"no reason", s, 1, "", lease.ErrPermanent},
		{"a reason of several lines", s, 1, "a\nb", lease.ErrPermanent},
		{"unreachable", distant, 1, "why", errAway},
		{"an older store", older{s.Memory}, 1, "why", nil},
	} {
		if err := lease.Retire(t.Context(), test.store, good, test.worker, test.reason); err == nil || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%s: Retire() = %v; want an error that matches %v", test.name, err, test.is)
		}
	}
	if rows, _, _ := s.Rows(t.Context(), space(t)); len(rows) > 0 && rows[1].Retired() {
		t.Error("row 1 is retired after all; want none")
	}
}

type older struct{ *leasetest.Memory }

func (s older) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	c.Retire = false
	return s.Memory.Claim(ctx, c)
}

func TestReinstatedNumberIsLeasedLaterAndNotRetiredAgain(t *testing.T) {
	clock := now()
	s := leasetest.NewMemory(func() time.Time { return clock })
	c := quiet(t, lease.Config{Workers: []int64{7}})
	c.Now = func() time.Time { return clock }
	if err := lease.Retire(t.Context(), s, c, 7, "by mistake"); err != nil {
		t.Fatal(err)
	}
	if err := lease.Reinstate(t.Context(), timedStore{s}, c, 7); !errors.Is(err, lease.ErrPermanent) {
		t.Errorf("Reinstate() without rows = %v; want a ValueError", err)
	}
	for range 2 {
		if err := lease.Reinstate(t.Context(), s, c, 7); err != nil {
			t.Fatalf("Reinstate() = %v; want no error", err)
		}
	}
	if _, err := lease.Acquire(t.Context(), s, c); !errors.Is(err, lease.ErrNoFreeWorker) {
		t.Errorf("Acquire() at once = %v; want none free", err)
	}
	clock = clock.Add(time.Hour + 10*time.Minute)
	l, err := lease.Acquire(t.Context(), s, c)
	if err != nil {
		t.Fatalf("Acquire() after an hour and ten minutes = %v; want the number", err)
	}
	defer l.Close(t.Context())
	if err := lease.Retire(t.Context(), s, c, 7, "again"); !errors.Is(err, lease.ErrUsed) {
		t.Errorf("Retire() again = %v; want ErrUsed", err)
	}
}

// Retirements and leases that begin at the same time never share a number.
func TestRetireBesideClaims(t *testing.T) {
	s := newStore()
	c := quiet(t, lease.Config{Layout: core.JavaScript()})
	var wg sync.WaitGroup
	leased, retired := make([]int64, 0, 64), make([]bool, 64)
	var mu sync.Mutex
	for i := range 40 {
		wg.Go(func() {
			if i%2 == 0 {
				err := lease.Retire(t.Context(), s, c, int64(i), "race")
				if err != nil && !errors.Is(err, lease.ErrUsed) {
					t.Errorf("Retire() = %v; want none or ErrUsed", err)
				}
				retired[i] = err == nil
				return
			}
			l, err := lease.Acquire(t.Context(), s, c)
			if err != nil {
				t.Errorf("Acquire() = %v; want a number", err)
				return
			}
			t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
			mu.Lock()
			defer mu.Unlock()
			leased = append(leased, l.Status().Worker)
		})
	}
	wg.Wait()
	for _, worker := range leased {
		if retired[worker] {
			t.Errorf("worker %d is both leased and retired", worker)
		}
	}
}
