package monitoring

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/core/otelsnowkey"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/segment/segmenttest"
	"github.com/snowkey/snowkey/core/serial"
)

var quiet = slog.New(slog.DiscardHandler)

// A world has one of everything that otelsnowkey observes.
type world struct {
	t        *testing.T
	leases   *leasetest.Memory
	empty    leasetest.Snapshot // of leases
	lease    *lease.Lease
	gen      *core.Generator
	set      *segment.Set
	invoices *serial.Counter

	registry *prometheus.Registry
	provider *metric.MeterProvider
	config   otelsnowkey.Config
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, leases: leasetest.NewMemory(time.Now), registry: prometheus.NewRegistry()}
	w.empty = w.leases.Snapshot()
	var err error
	fail := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.lease, err = lease.Acquire(t.Context(), w.leases, lease.Config{
		Namespace: t.Name(), Workers: []int64{7, 8, 9}, Logger: quiet,
	})
	fail()
	w.gen, err = core.New(core.Config{Worker: w.lease})
	fail()
	stores := []segment.Store{new(segmenttest.Memory), new(segmenttest.Memory)}
	for i, s := range stores {
		err = s.(*segmenttest.Memory).Create(t.Context(), segment.Row{Tag: "orders", Next: 2 + int64(i), Step: 100, Stride: 2, Offset: int64(i)})
		fail()
	}
	spread, err := segment.Spread(stores...)
	fail()
	w.set, err = segment.NewSet(spread, segment.Config{Step: 100, Last: 1_000_000, Logger: quiet})
	fail()
	w.invoices, err = serial.NewCounter(&sheet{}, serial.Series{Name: "invoices", Scope: "shop", Prefix: "R-", Digits: 4}, 10)
	fail()
	prom, err := exporter.New(exporter.WithRegisterer(w.registry))
	fail()
	w.provider = metric.NewMeterProvider(metric.WithReader(prom))
	w.config = otelsnowkey.Config{Generator: w.gen, Set: w.set, Counters: []*serial.Counter{w.invoices}}
	t.Cleanup(func() {
		ctx := context.Background()
		for _, err := range []error{w.provider.Shutdown(ctx), w.set.Close(ctx), w.invoices.Close(ctx), w.gen.Close(ctx)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return w
}

// use takes a key of each kind.
func (w *world) use() {
	w.t.Helper()
	if _, err := w.gen.Next(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.set.Next(w.t.Context(), "orders"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.invoices.Next(w.t.Context(), time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

// scrape returns what Prometheus reads, by the names that it shows.
func (w *world) scrape() map[string]*dto.MetricFamily {
	w.t.Helper()
	r := httptest.NewRecorder()
	promhttp.HandlerFor(w.registry, promhttp.HandlerOpts{}).ServeHTTP(r, httptest.NewRequestWithContext(w.t.Context(), "GET", "/metrics", nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(r.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	delete(families, "target_info")
	return families
}

// labels returns those of a metric, without the ones that name the library.
func labels(m *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, l := range m.GetLabel() {
		switch name, value := l.GetName(), l.GetValue(); {
		case name == "otel_scope_name" && value == "github.com/snowkey/snowkey/core/otelsnowkey",
			name == "otel_scope_version", name == "otel_scope_schema_url":
		default:
			all[name] = value
		}
	}
	return all
}

// register observes the world until the returned function is called.
func (w *world) register() (stop func()) {
	w.t.Helper()
	registration, err := otelsnowkey.Register(w.provider, w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return func() {
		w.t.Helper()
		if err := registration.Unregister(); err != nil {
			w.t.Error(err)
		}
	}
}

func value(m *dto.Metric) float64 { return m.GetGauge().GetValue() + m.GetCounter().GetValue() }

// A sheet is a serial.Store in memory.
type sheet struct {
	mu   sync.Mutex
	last int64
}

func (s *sheet) Define(context.Context, serial.Series) error { return nil }

func (s *sheet) Take(_ context.Context, _, _ string, _ time.Time, count int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last += count
	return s.last - count + 1, nil
}
