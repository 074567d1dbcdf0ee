module github.com/snowkey/snowkey/core/otelsnowkey

go 1.25.0

replace github.com/snowkey/snowkey => ../..

require (
	github.com/snowkey/snowkey v0.0.0-00010101000000-000000000000
	go.opentelemetry.io/otel v1.24.0
	go.opentelemetry.io/otel/metric v1.24.0
)
