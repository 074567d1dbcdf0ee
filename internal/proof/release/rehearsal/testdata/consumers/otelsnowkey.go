// Program consumer uses otelsnowkey as a user's program does.
package main

import (
	"fmt"
	"log"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/otelsnowkey"
)

func main() {
	keys, err := core.New(core.Config{Worker: core.StaticWorker(1)})
	if err != nil {
		log.Fatal(err)
	}
	registration, err := otelsnowkey.Register(noop.NewMeterProvider(), otelsnowkey.Config{Generator: keys})
	if err != nil {
		log.Fatal(err)
	}
	if err := registration.Unregister(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("a generator that is observed")
}
