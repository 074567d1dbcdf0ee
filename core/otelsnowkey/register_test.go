package otelsnowkey_test

import (
	"errors"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/otelsnowkey"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/serial"
)

// What the metrics show is tested in internal/proof/lab/monitoring, where the SDK is.

func TestRegisterRefusesWhatItCannotObserve(t *testing.T) {
	provider := noop.NewMeterProvider()
	for _, test := range []struct {
		provider metric.MeterProvider
		config   otelsnowkey.Config
		name     string
	}{
		{nil, otelsnowkey.Config{}, "provider"},
		{provider, otelsnowkey.Config{}, "Config"},
		{provider, otelsnowkey.Config{Allocators: []*segment.Allocator{nil}}, "Config.Allocators[0]"},
		{provider, otelsnowkey.Config{Counters: []*serial.Counter{nil}}, "Config.Counters[0]"},
	} {
		registration, err := otelsnowkey.Register(test.provider, test.config)
		var v *core.ValueError
		if registration != nil || !errors.As(err, &v) || v.Name != test.name || v.Package != "otelsnowkey" {
			t.Errorf("Register(%v, %+v) = %v, %v; want a ValueError of %s", test.provider, test.config, registration, err, test.name)
		}
	}
}

// refusing is a provider whose meter makes no counters, or takes no callback.
type refusing struct {
	noop.MeterProvider
	counters bool
}

type refusingMeter struct {
	noop.Meter
	counters bool
}

var errRefused = errors.New("refused")

func (p refusing) Meter(string, ...metric.MeterOption) metric.Meter {
	return refusingMeter{counters: p.counters}
}

func (m refusingMeter) Int64ObservableCounter(string, ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	if m.counters {
		return nil, errRefused
	}
	return noop.Int64ObservableCounter{}, nil
}

func (m refusingMeter) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	if m.counters {
		return noop.Registration{}, nil
	}
	return nil, errRefused
}

func TestRegisterReturnsTheErrorOfTheProvider(t *testing.T) {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(32)})
	if err != nil {
		t.Fatal(err)
	}
	defer gen.Close(t.Context())
	for _, counters := range []bool{true, false} {
		registration, err := otelsnowkey.Register(refusing{counters: counters}, otelsnowkey.Config{Generator: gen})
		if registration != nil || !errors.Is(err, errRefused) {
			t.Errorf("Register(a provider that refuses, counters: %v) = %v, %v; want %v", counters, registration, err, errRefused)
		}
	}
}
