package monitoring

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/attribute"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/otelsnowkey"
	"github.com/snowkey/snowkey/core/segment"
)

// A shown is one series as a test expects it.
type shown struct {
	kind  dto.MetricType
	value float64
}

// series returns what a scrape shows, by name and labels.
func (w *world) series() map[string]shown {
	w.t.Helper()
	all := map[string]shown{}
	for name, family := range w.scrape() {
		for _, m := range family.GetMetric() {
			var list []string
			for label, v := range labels(m) {
				list = append(list, label+"="+v)
			}
			slices.Sort(list)
			all[name+"{"+strings.Join(list, ",")+"}"] = shown{family.GetType(), value(m)}
		}
	}
	return all
}

// reach2026 passes the epoch of the layout: the clock of a bubble begins in 2000.
func reach2026() { time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) }

func TestPrometheusShowsTheStatsOfEverythingUntilUnregister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reach2026()
		w := newWorld(t)
		stop := w.register()
		w.use()
		time.Sleep(90 * time.Second)
		w.use()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		gauge, counter := dto.MetricType_GAUGE, dto.MetricType_COUNTER
		g, l, s := w.gen.Stats(), w.lease.Status(), w.set.Stats()[0]
		of := "{snowkey_datacenter_id=0,snowkey_namespace=" + t.Name() + "}"
		worker := strings.Replace(of, "}", fmt.Sprintf(",snowkey_worker_id=%d}", l.Worker), 1)
		want := map[string]shown{
			"snowkey_generator_ahead_seconds" + of:     {gauge, g.Ahead.Seconds()},
			"snowkey_generator_behind_seconds" + of:    {gauge, g.Behind.Seconds()},
			"snowkey_generator_remaining_seconds" + of: {gauge, time.Until(g.Exhausted).Seconds()},
			"snowkey_generator_waits_total" + of:       {counter, float64(g.Waits)},
			"snowkey_worker_usage" + worker:            {gauge, 1},
			"snowkey_worker_limit" + of:                {gauge, 3},
			"snowkey_lease_remaining_seconds" + of:     {gauge, time.Until(l.Limit).Seconds()},
			"snowkey_lease_window_seconds" + of:        {gauge, 60},
			"snowkey_lease_claims_total" + of:          {counter, 1},
			"snowkey_lease_renewals_total" + of:        {counter, float64(l.Renewals)},
			"snowkey_lease_failures_total" + of:        {counter, 0},
			"snowkey_lease_losses_total" + of:          {counter, 0},

			"snowkey_segment_held{snowkey_segment_tag=orders}":           {gauge, float64(s.Held)},
			"snowkey_segment_usage{snowkey_segment_tag=orders}":          {gauge, float64(s.Max)},
			"snowkey_segment_limit{snowkey_segment_tag=orders}":          {gauge, 1_000_000},
			"snowkey_segment_fetches_total{snowkey_segment_tag=orders}":  {counter, float64(s.Fetches)},
			"snowkey_segment_failures_total{snowkey_segment_tag=orders}": {counter, 0},

			"snowkey_serial_held{snowkey_serial_series=invoices}":           {gauge, 8},
			"snowkey_serial_usage{snowkey_serial_series=invoices}":          {gauge, 10},
			"snowkey_serial_limit{snowkey_serial_series=invoices}":          {gauge, 9999},
			"snowkey_serial_fetches_total{snowkey_serial_series=invoices}":  {counter, 1},
			"snowkey_serial_failures_total{snowkey_serial_series=invoices}": {counter, 0},
		}
		for i, d := range s.Databases {
			database := fmt.Sprintf("{snowkey_segment_database_index=%d,snowkey_segment_tag=orders}", i+1)
			want["snowkey_segment_database_fetches_total"+database] = shown{counter, float64(d.Fetches)}
			want["snowkey_segment_database_failures_total"+database] = shown{counter, 0}
		}
		if g.Behind == 0 || l.Renewals < 6 || s.Held == 0 || s.Max == 0 || s.Fetches == 0 || len(s.Databases) != 2 || s.Databases[0].Fetches+s.Databases[1].Fetches == 0 {
			t.Fatalf("stats are %+v and %+v; want values that differ from 0", g, s)
		}
		if got := w.series(); !maps.Equal(got, want) {
			t.Errorf("a scrape shows\n%v\nwant\n%v", got, want)
		}
		if stop(); len(w.scrape()) > 0 {
			t.Errorf("a scrape after Unregister shows %v; want nothing", w.series())
		}
	})
}

// The series of the counter is the same before and after: a counter of another series would begin
// with the loss, and increase() would show none.
func TestALossIncreasesACounterAndMovesTheUsageToTheNewNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reach2026()
		w := newWorld(t)
		defer w.register()()
		before := w.lease.Status()
		losses := "snowkey_lease_losses_total{snowkey_datacenter_id=0,snowkey_namespace=" + t.Name() + "}"
		if got := w.series()[losses]; got.value != 0 || got.kind != dto.MetricType_COUNTER {
			t.Fatalf("%s = %+v; want a counter of 0", losses, got)
		}
		w.leases.Restore(w.empty)
		time.Sleep(time.Minute) // within which the lease renews, and claims anew
		synctest.Wait()
		after, series := w.lease.Status(), w.series()
		if got := series[losses].value; got != 1 {
			t.Errorf("%s = %v after a loss; want 1", losses, got)
		}
		var usage []string
		for name := range series {
			if strings.HasPrefix(name, "snowkey_worker_usage{") {
				usage = append(usage, name)
			}
		}
		if len(usage) != 1 || !strings.Contains(usage[0], fmt.Sprintf("snowkey_worker_id=%d}", after.Worker)) {
			t.Errorf("usage of workers = %q after worker %d was lost and %d claimed; want the latter", usage, before.Worker, after.Worker)
		}
	})
}

func TestALeaseThatIsNotHeldHasNoTimeLeft(t *testing.T) {
	w := newWorld(t)
	defer w.register()()
	if err := w.gen.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, s := range w.series() {
		if (strings.HasPrefix(name, "snowkey_worker_usage{") || strings.HasPrefix(name, "snowkey_lease_remaining_seconds{")) && s.value != 0 {
			t.Errorf("%s = %v after Close; want 0", name, s.value)
		}
	}
}

func TestAGeneratorWithAFixedNumberShowsNoLease(t *testing.T) {
	w := newWorld(t)
	gen, err := core.New(core.Config{Worker: core.StaticWorker(33)})
	if err != nil {
		t.Fatal(err)
	}
	defer gen.Close(t.Context())
	w.config = otelsnowkey.Config{Generator: gen, Attributes: []attribute.KeyValue{attribute.String("snowkey.namespace", "fixed")}}
	defer w.register()()
	series := w.series()
	for name := range series {
		if strings.HasPrefix(name, "snowkey_lease_") {
			t.Errorf("a fixed number shows %s; want no lease", name)
		}
	}
	for name, want := range map[string]float64{
		"snowkey_worker_usage{snowkey_datacenter_id=0,snowkey_namespace=fixed,snowkey_worker_id=33}": 1,
		"snowkey_worker_limit{snowkey_datacenter_id=0,snowkey_namespace=fixed}":                      1024,
	} {
		if got, ok := series[name]; !ok || got.value != want {
			t.Errorf("%s = %+v, %v; want %v", name, got, ok, want)
		}
	}
}

func TestAllocatorsAreShownAsSetsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reach2026()
		w := newWorld(t)
		w.use()
		synctest.Wait() // until no fetch is under way in the background
		seriesOf := func(config otelsnowkey.Config) map[string]shown {
			w.config = config
			defer w.register()()
			return w.series()
		}
		want := seriesOf(otelsnowkey.Config{Set: w.set})
		got := seriesOf(otelsnowkey.Config{Allocators: []*segment.Allocator{w.set.Source("orders")}})
		if len(got) < 9 || !maps.Equal(got, want) {
			t.Errorf("an Allocator shows\n%v\nwant what its Set shows\n%v", got, want)
		}
	})
}

// For the race detector.
func TestScrapesMeetCallsThatMakeKeys(t *testing.T) {
	w := newWorld(t)
	defer w.register()()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			w.use()
		}
	}()
	for range 50 {
		w.scrape()
	}
	<-done
}
