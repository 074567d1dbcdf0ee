package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/snowkey/snowkey/core"
)

// A signal has ended the context of the program. Close needs one that is still live, to
// give a leased worker number back.
func Example_shutdown() {
	ctx, stop := context.WithCancel(context.Background()) // mostly signal.NotifyContext
	gen, err := core.New(core.Config{Worker: core.StaticWorker(15)})
	if err != nil {
		log.Fatal(err)
	}

	stop()
	<-ctx.Done()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := gen.Close(closing); err != nil {
		log.Print(err)
	}

	_, err = gen.Next(closing)
	fmt.Println("closed:", errors.Is(err, core.ErrClosed))
	// Output: closed: true
}
