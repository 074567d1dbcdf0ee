package lease_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
)

// A backup is restored while a holder lives that the backup knows. Without the fence the
// holder and the lease after the restore would use the same times.
func TestFenceKeepsLeasesAfterARestoreApart(t *testing.T) {
	s := newStore()
	s.set(only("renew", away)) // or the holder finds the fence, and claims the number before the other
	one := quiet(t, lease.Config{Workers: []int64{7}, MaxClockSkew: time.Hour})
	before, err := lease.Acquire(t.Context(), s, one)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close(t.Context())
	backup := s.Snapshot()
	s.Restore(backup)

	until := now().Add(30*time.Minute + time.Microsecond)
	if err := lease.Fence(t.Context(), s, quiet(t, lease.Config{Workers: []int64{1}}), until); err != nil {
		t.Fatalf("Fence() = %v; want no error", err)
	}
	rows, _, err := s.Rows(t.Context(), space(t))
	if err != nil || len(rows) != 1024 {
		t.Fatalf("Rows() = %d rows, %v; want 1024", len(rows), err)
	}
	for _, row := range rows {
		if row.Until.Time().Before(until) || row.Owner != "" {
			t.Fatalf("row %+v; want nobody's, and its limit at %v or after", row, until)
		}
	}

	after, err := lease.Acquire(t.Context(), s, one)
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close(t.Context())
	gen, err := core.New(core.Config{Worker: after})
	if err != nil {
		t.Fatal(err)
	}
	id, err := gen.Next(t.Context())
	if at := gen.Layout().Parts(id).Time; err != nil || at.Before(until.Truncate(time.Millisecond)) {
		t.Errorf("Next() = %v, %v; want an ID at %v or after", at, err, until)
	}
}

func TestFenceRefusesWhatItCannotDo(t *testing.T) {
	s := newStore()
	for _, test := range []struct {
		store lease.Store
		c     lease.Config
		until time.Time
		want  string
	}{
		{struct{ lease.Store }{s}, lease.Config{}, now(), "Fence"},
		{nil, lease.Config{}, now(), "Fence"},
		{s, lease.Config{Namespace: "/"}, now(), "Config.Namespace"},
		{s, lease.Config{}, now().Add(71 * time.Minute), "ten minutes"},
	} {
		err := lease.Fence(t.Context(), test.store, quiet(t, test.c), test.until)
		var value *core.ValueError
		if !errors.As(err, &value) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Fence(%T, %v) = %v; want a ValueError about %q", test.store, test.until, err, test.want)
		}
	}
	if rows, _, _ := s.Rows(t.Context(), space(t)); len(rows) != 0 {
		t.Errorf("%d rows after what was refused; want none", len(rows))
	}
	if err := lease.Fence(t.Context(), s, quiet(t, lease.Config{}), now()); err != nil {
		t.Fatal(err)
	}
	other := quiet(t, lease.Config{Layout: core.Twitter()})
	if err := lease.Fence(t.Context(), s, other, now()); !errors.Is(err, lease.ErrLayout) || !errors.As(err, new(*lease.LayoutError)) || strings.Count(err.Error(), "lease: ") != 1 {
		t.Errorf("Fence() with another layout = %v; want %v, after the name of the package once", err, lease.ErrLayout)
	}
	if _, err := lease.Acquire(t.Context(), s, other); !errors.Is(err, lease.ErrLayout) || strings.Count(err.Error(), "lease: ") != 1 {
		t.Errorf("Acquire() with another layout = %v; want %v, after the name of the package once", err, lease.ErrLayout)
	}
}

func TestRowsHaveTheNameOfTheHolder(t *testing.T) {
	host, _ := os.Hostname()
	for _, test := range []struct{ holder, want string }{{"", fmt.Sprintf("%.50s pid %d", host, os.Getpid())}, {"web, 1", "web, 1"}} {
		s := newStore()
		l, err := lease.Acquire(t.Context(), s, quiet(t, lease.Config{Holder: test.holder}))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.row(t, l.Status().Worker).Holder; got != test.want {
			t.Errorf("Row.Holder of Config.Holder %q = %q; want %q", test.holder, got, test.want)
		}
		_ = l.Close(t.Context())
	}
	for _, holder := range []string{strings.Repeat("h", 65), "a\nb"} {
		var value *core.ValueError
		_, err := lease.Acquire(t.Context(), newStore(), quiet(t, lease.Config{Holder: holder}))
		if !errors.As(err, &value) || value.Name != "Config.Holder" {
			t.Errorf("Acquire(Holder: %q) = %v; want a ValueError", holder, err)
		}
	}
}
