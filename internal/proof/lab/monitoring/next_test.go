package monitoring

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/otelsnowkey"
)

// BenchmarkNextWithMetrics reports what a key costs while a reader collects every 100 ms, 150 times
// as often as Prometheus, in relation to what it costs without metrics. Rounds with and without
// alternate, so that both meet the same machine; the ratio is the median of the pairs.
//
//	go test -run '^$' -bench NextWithMetrics -benchtime 200x ./internal/proof/lab/monitoring
func BenchmarkNextWithMetrics(b *testing.B) {
	layout := core.Default()
	layout.WorkerBits, layout.SequenceBits = 2, 20 // or the sequence of 12 bits would be the limit
	gen, err := core.New(core.Config{Layout: layout, Worker: core.StaticWorker(1)})
	if err != nil {
		b.Fatal(err)
	}
	defer gen.Close(context.Background())
	const keys = 500_000
	round := func() time.Duration {
		begin := time.Now()
		for range keys {
			if _, err := gen.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begin)
	}
	observed := func() time.Duration {
		reader := metric.NewManualReader()
		registration, err := otelsnowkey.Register(metric.NewMeterProvider(metric.WithReader(reader)), otelsnowkey.Config{Generator: gen})
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for tick := time.NewTicker(100 * time.Millisecond); ; {
				var read metricdata.ResourceMetrics
				if err := reader.Collect(context.Background(), &read); err != nil || len(read.ScopeMetrics) != 1 {
					b.Errorf("Collect() = %d scopes, %v; want 1", len(read.ScopeMetrics), err)
				}
				select {
				case <-ctx.Done():
					tick.Stop()
					return
				case <-tick.C:
				}
			}
		}()
		took := round()
		cancel()
		<-done
		if err := registration.Unregister(); err != nil {
			b.Fatal(err)
		}
		return took
	}
	round()
	var without, with []time.Duration
	var ratios []float64
	for i := 0; b.Loop(); i++ {
		var x, y time.Duration
		if i%2 == 0 { // whichever comes second finds another cache
			x, y = round(), observed()
		} else {
			y, x = observed(), round()
		}
		without, with = append(without, x), append(with, y)
		ratios = append(ratios, float64(y)/float64(x))
	}
	slices.Sort(without)
	slices.Sort(with)
	slices.Sort(ratios)
	b.ReportMetric(float64(without[len(without)/2])/keys, "ns/key-without")
	b.ReportMetric(float64(with[len(with)/2])/keys, "ns/key-with")
	b.ReportMetric(ratios[len(ratios)/2], "with/without")
}
