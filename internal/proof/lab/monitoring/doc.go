// Package monitoring tests what package otelsnowkey shows to OpenTelemetry's SDK and to Prometheus,
// and the dashboard and alerts of docs/monitoring. It is a module of its own, so that users of
// otelsnowkey need neither.
package monitoring
