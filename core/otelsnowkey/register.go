package otelsnowkey

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/serial"
)

// A Config says what Register observes. Fields that are not set are left out.
type Config struct {
	Generator  *core.Generator // and the lease of its worker number, if it has a *lease.Lease
	Set        *segment.Set    // with the tags that are used later, too
	Allocators []*segment.Allocator
	Counters   []*serial.Counter

	// Attributes are added to every metric. They must tell registrations apart whose own
	// attributes are equal, such as those of two generators with fixed worker numbers, whose
	// snowkey.namespace may be set here.
	Attributes []attribute.KeyValue
}

// scope names the meter.
const scope = "github.com/snowkey/snowkey/core/otelsnowkey"

// Register observes what c names until Unregister of the result, which a program calls beside
// Close. After Close the metrics keep their last values. Both are safe for concurrent use.
//
// The error is a [*core.ValueError] if the provider or an element of c is nil, or if c names nothing,
// and the provider's otherwise.
func Register(provider metric.MeterProvider, c Config) (metric.Registration, error) {
	if provider == nil {
		return nil, invalid("provider", "nil", "a MeterProvider")
	}
	observers, m, err := c.observers(provider)
	if err != nil {
		return nil, err
	}
	registration, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, observe := range observers {
			observe(o)
		}
		return nil
	}, m.made...)
	if err != nil {
		return nil, fmt.Errorf("otelsnowkey: %w", err)
	}
	return registration, nil
}

// observers returns a function for each element of c, and the maker of their instruments.
func (c Config) observers(provider metric.MeterProvider) ([]func(metric.Observer), *maker, error) {
	m := &maker{meter: provider.Meter(scope)}
	var list []func(metric.Observer)
	if c.Generator != nil {
		list = append(list, observeGenerator(m, c.Generator, c.Attributes))
	}
	if c.Set != nil || len(c.Allocators) > 0 {
		observe := newSegments(m, c.Attributes)
		if c.Set != nil {
			list = append(list, func(o metric.Observer) {
				for _, s := range c.Set.Stats() {
					observe(o, s)
				}
			})
		}
		for i, a := range c.Allocators {
			if a == nil {
				return nil, nil, invalid(fmt.Sprintf("Config.Allocators[%d]", i), "nil", "an Allocator")
			}
			list = append(list, func(o metric.Observer) { observe(o, a.Stats()) })
		}
	}
	if len(c.Counters) > 0 {
		observe := newCounters(m, c.Attributes)
		for i, counter := range c.Counters {
			if counter == nil {
				return nil, nil, invalid(fmt.Sprintf("Config.Counters[%d]", i), "nil", "a Counter")
			}
			list = append(list, func(o metric.Observer) { observe(o, counter.Stats()) })
		}
	}
	if len(list) == 0 {
		return nil, nil, invalid("Config", "empty", "a Generator, a Set, Allocators or Counters")
	}
	if err := errors.Join(m.errs...); err != nil {
		return nil, nil, fmt.Errorf("otelsnowkey: %w", err)
	}
	return list, m, nil
}

func invalid(name, value, want string) *core.ValueError {
	return &core.ValueError{Package: "otelsnowkey", Name: name, Value: value, Want: want}
}

// with returns the option that adds attributes to those of the Config.
func with(given []attribute.KeyValue, more ...attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, given...)...))
}
