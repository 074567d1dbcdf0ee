package otelsnowkey

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/snowkey/snowkey/core/segment"
	"github.com/snowkey/snowkey/core/serial"
)

// numbers are the instruments of what fetches numbers from a store and holds some.
type numbers struct {
	held              metric.Int64ObservableUpDownCounter
	usage, limit      metric.Int64ObservableGauge
	fetches, failures metric.Int64ObservableCounter
}

func newNumbers(m *maker, namespace string) numbers {
	return numbers{
		held:     m.amount(namespace+".held", "{number}", "Numbers that are fetched and not returned."),
		usage:    m.gauge(namespace+".usage", "{number}", "Greatest number that was fetched."),
		limit:    m.gauge(namespace+".limit", "{number}", "Greatest number that there can be."),
		fetches:  m.counter(namespace+".fetches", "{fetch}", "Fetches that brought numbers."),
		failures: m.counter(namespace+".failures", "{failure}", "Fetches that failed."),
	}
}

func (n numbers) observe(o metric.Observer, held, usage, limit int64, fetches, failures uint64, of metric.ObserveOption) {
	o.ObserveInt64(n.held, held, of)
	o.ObserveInt64(n.usage, usage, of)
	o.ObserveInt64(n.limit, limit, of)
	o.ObserveInt64(n.fetches, int64(fetches), of)
	o.ObserveInt64(n.failures, int64(failures), of)
}

// newSegments returns the observation of Allocators.
func newSegments(m *maker, given []attribute.KeyValue) func(metric.Observer, segment.Stats) {
	var (
		numbers  = newNumbers(m, "snowkey.segment")
		fetches  = m.counter("snowkey.segment.database.fetches", "{fetch}", "Fetches from one of several databases that brought numbers.")
		failures = m.counter("snowkey.segment.database.failures", "{failure}", "Fetches from one of several databases that failed.")
	)
	return func(o metric.Observer, s segment.Stats) {
		tag := attribute.String("snowkey.segment.tag", s.Tag)
		numbers.observe(o, s.Held, s.Max, s.Last, s.Fetches, s.Failures, with(given, tag))
		for n, d := range s.Databases {
			of := with(given, tag, attribute.Int("snowkey.segment.database.index", n+1))
			o.ObserveInt64(fetches, int64(d.Fetches), of)
			o.ObserveInt64(failures, int64(d.Failures), of)
		}
	}
}

// newCounters returns the observation of Counters.
func newCounters(m *maker, given []attribute.KeyValue) func(metric.Observer, serial.Stats) {
	numbers := newNumbers(m, "snowkey.serial")
	return func(o metric.Observer, s serial.Stats) {
		numbers.observe(o, s.Held, s.Max, s.Last, s.Fetches, s.Failures, with(given, attribute.String("snowkey.serial.series", s.Series)))
	}
}
