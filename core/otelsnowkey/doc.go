// Package otelsnowkey reports generators, leases, segments and counters as OpenTelemetry metrics.
// It needs OpenTelemetry's API alone; the program brings the SDK and its exporters.
//
//	registration, err := otelsnowkey.Register(otel.GetMeterProvider(), otelsnowkey.Config{Generator: gen})
//	…
//	defer registration.Unregister()
//
// All instruments are observable: a reader, such as one scrape by Prometheus, reads the values that
// Generator.Stats, Lease.Status and their like return anyway, so making a key costs the same. No
// callback does I/O or waits for it.
//
// # Metrics
//
// Units are in parentheses. Every metric has the attributes of its group.
//
//	snowkey.generator.ahead      (s)         last key's time ahead of the clock
//	snowkey.generator.behind     (s)         the same behind the clock; grows while no keys are made
//	snowkey.generator.remaining  (s)         until the layout's time bits run out
//	snowkey.generator.waits      ({wait})    sleeps of callers that found no number, a counter
//
//	snowkey.worker.usage         ({worker})  1 for the worker number snowkey.worker.id; 0 if its lease is not held
//	snowkey.worker.limit         ({worker})  worker numbers that the generator or its lease can have
//
//	snowkey.lease.remaining      (s)         until the reserved time ends; 0 if none is held
//	snowkey.lease.window         (s)         what a renewal reserves
//	snowkey.lease.claims, .renewals, .failures, .losses
//	                             ({claim}…)  counters
//
//	snowkey.segment.held         ({number})  numbers that are fetched and not returned
//	snowkey.segment.usage        ({number})  greatest number that was fetched
//	snowkey.segment.limit        ({number})  greatest number that there can be
//	snowkey.segment.fetches, .failures
//	                             ({fetch}…)  counters
//	snowkey.segment.database.fetches, .failures
//	                                         the same of each database of a segment.Spread, counted from 1
//	                                         by snowkey.segment.database.index
//
//	snowkey.serial.held, .usage, .limit, .fetches, .failures
//	                                         the same of a serial.Counter; usage is of its latest period
//
// The attributes are snowkey.datacenter.id, and snowkey.namespace if the worker number is leased, for
// the first three groups; snowkey.segment.tag for segments; snowkey.serial.series for counters. Only
// usage of a worker has its number, because a lease may change it, and a counter that gets a new
// attribute with the loss that it counts shows no increase.
//
// How many keys are made is not among the metrics: counting them would cost more than making them.
// The increase of snowkey.segment.usage is the number of keys that all processes took of a tag.
//
// Prometheus writes snowkey.lease.remaining as snowkey_lease_remaining_seconds and
// snowkey.lease.losses as snowkey_lease_losses_total. A dashboard for Grafana and alert rules are in
// docs/monitoring, and docs/logs.md says what each alert means.
//
// This package is experimental.
package otelsnowkey
