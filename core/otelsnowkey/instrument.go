package otelsnowkey

import "go.opentelemetry.io/otel/metric"

// A maker makes instruments, and keeps them and the errors of those that it could not make.
type maker struct {
	meter metric.Meter
	made  []metric.Observable
	errs  []error
}

func (m *maker) keep(i metric.Observable, err error) {
	m.made = append(m.made, i)
	m.errs = append(m.errs, err)
}

// seconds returns a gauge of a duration.
func (m *maker) seconds(name, what string) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(what))
	m.keep(i, err)
	return i
}

// gauge returns one of a value whose sum over processes means nothing.
func (m *maker) gauge(name, unit, what string) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.keep(i, err)
	return i
}

// amount returns an instrument for a value whose sum over processes means something.
func (m *maker) amount(name, unit, what string) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.keep(i, err)
	return i
}

// counter returns a monotonic one.
func (m *maker) counter(name, unit, what string) metric.Int64ObservableCounter {
	i, err := m.meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.keep(i, err)
	return i
}
