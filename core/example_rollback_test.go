package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/snowkey/snowkey/core"
)

// A program whose IDs must not be ahead of the wall clock waits for short steps
// back, and stops taking orders during long ones.
func ExampleRollback() {
	gen, err := core.New(core.Config{
		Worker:       core.StaticWorker(9),
		Rollback:     core.Wait,
		RollbackWait: 50 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())

	_, err = gen.Next(context.Background())
	if back := (*core.ClockBackError)(nil); errors.As(err, &back) {
		fmt.Println("try again in", back.Behind)
	}
	fmt.Println(err)
	// Output: <nil>
}

// Rows that are sharded by id % 16 arrive one by one; random starts spread them.
func ExampleSequenceStart() {
	gen, err := core.New(core.Config{
		Worker:        core.StaticWorker(10),
		SequenceStart: core.Random,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer gen.Close(context.Background())

	id, err := gen.Next(context.Background())
	fmt.Println(id%16 < 16, err)
	// Output: true <nil>
}
