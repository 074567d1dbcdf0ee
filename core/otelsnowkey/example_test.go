package otelsnowkey_test

import (
	"context"
	"fmt"
	"log"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/otelsnowkey"
)

func Example() {
	gen, err := core.New(core.Config{Worker: core.StaticWorker(31)})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())

	provider := noop.NewMeterProvider() // a program takes otel.GetMeterProvider()
	registration, err := otelsnowkey.Register(provider, otelsnowkey.Config{Generator: gen})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = registration.Unregister() }()
	fmt.Println("observed")
	// Output:
	// observed
}
