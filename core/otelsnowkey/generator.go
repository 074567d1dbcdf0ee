package otelsnowkey

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease"
)

// observeGenerator returns the observation of a generator, its worker number and its lease.
func observeGenerator(m *maker, g *core.Generator, given []attribute.KeyValue) func(metric.Observer) {
	var (
		ahead     = m.seconds("snowkey.generator.ahead", "Time of the last key ahead of the clock.")
		behind    = m.seconds("snowkey.generator.behind", "Time of the last key behind the clock.")
		remaining = m.seconds("snowkey.generator.remaining", "Time until the layout's time bits run out.")
		waits     = m.counter("snowkey.generator.waits", "{wait}", "Sleeps of callers that found no number.")
		usage     = m.amount("snowkey.worker.usage", "{worker}", "1 for the worker number of the generator, 0 if its lease is not held.")
		limit     = m.gauge("snowkey.worker.limit", "{worker}", "Worker numbers that the generator or its lease can have.")
	)
	l, leased := g.Worker().(*lease.Lease)
	all := append(slices.Clone(given), attribute.Int64("snowkey.datacenter.id", g.Stats().Datacenter))
	observeLease := func(metric.Observer, lease.Status) {}
	if leased {
		all = append(all, attribute.String("snowkey.namespace", l.Status().Namespace))
		observeLease = newLease(m, with(all))
	}
	common := with(all)
	return func(o metric.Observer) {
		s := g.Stats()
		o.ObserveFloat64(ahead, s.Ahead.Seconds(), common)
		o.ObserveFloat64(behind, s.Behind.Seconds(), common)
		o.ObserveFloat64(remaining, time.Until(s.Exhausted).Seconds(), common)
		o.ObserveInt64(waits, int64(s.Waits), common)
		worker, used, most := s.Worker, int64(1), int64(1)<<g.Layout().WorkerBits
		if leased {
			held := l.Status()
			worker, most = held.Worker, held.Workers
			if !held.Held {
				used = 0
			}
			observeLease(o, held)
		}
		o.ObserveInt64(usage, used, with(all, attribute.Int64("snowkey.worker.id", worker)))
		o.ObserveInt64(limit, most, common)
	}
}

// newLease returns the observation of a lease.
func newLease(m *maker, common metric.ObserveOption) func(metric.Observer, lease.Status) {
	var (
		remaining = m.seconds("snowkey.lease.remaining", "Time until the reserved time ends, 0 if no worker number is held.")
		window    = m.seconds("snowkey.lease.window", "Time that a renewal reserves.")
		claims    = m.counter("snowkey.lease.claims", "{claim}", "Worker numbers claimed.")
		renewals  = m.counter("snowkey.lease.renewals", "{renewal}", "Renewals that the store confirmed.")
		failures  = m.counter("snowkey.lease.failures", "{failure}", "Requests to the store that failed or whose outcome is unknown.")
		losses    = m.counter("snowkey.lease.losses", "{loss}", "Worker numbers lost.")
	)
	return func(o metric.Observer, s lease.Status) {
		left := time.Duration(0)
		if s.Held {
			left = max(time.Until(s.Limit), 0)
		}
		o.ObserveFloat64(remaining, left.Seconds(), common)
		o.ObserveFloat64(window, s.Window.Seconds(), common)
		o.ObserveInt64(claims, int64(s.Claims), common)
		o.ObserveInt64(renewals, int64(s.Renewals), common)
		o.ObserveInt64(failures, int64(s.Failures), common)
		o.ObserveInt64(losses, int64(s.Losses), common)
	}
}
