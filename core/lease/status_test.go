package lease_test

import (
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

func TestStatusHasWhatTheLeaseChoosesFrom(t *testing.T) {
	for _, test := range []struct {
		config  lease.Config
		workers int64
		window  time.Duration
	}{
		{lease.Config{Namespace: "all"}, 1024, time.Minute},
		{lease.Config{Namespace: "some", Workers: []int64{7, 3, 7}, Window: 3500 * time.Millisecond}, 2, 3500 * time.Millisecond},
	} {
		l, err := lease.Acquire(t.Context(), leasetest.NewMemory(now), quiet(t, test.config))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(t.Context())
		s := l.Status()
		if s.Namespace != test.config.Namespace || s.Datacenter != 0 || s.Workers != test.workers || s.Window != test.window {
			t.Errorf("Status() = %+v; want %d workers and a window of %s", s, test.workers, test.window)
		}
	}
}
