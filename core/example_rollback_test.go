package core_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/snowkey/snowkey/core"
)

// A program whose IDs must not be ahead of the wall clock waits for short steps back, and stops
// taking orders during long ones.
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
		fmt.Println("the clock is behind by", back.Behind)
	}
	fmt.Println(err)
	// Output: <nil>
}

// Rows that are sharded by id % 16 arrive one by one. Random starts spread them over all shards,
// and so do rotating ones, by turns.
func ExampleSequenceStart() {
	for i, start := range []core.SequenceStart{core.Random, core.Rotating} {
		gen, err := core.New(core.Config{
			Worker:        core.StaticWorker(10 + int64(i)),
			SequenceStart: start,
		})
		if err != nil {
			log.Fatal(err)
		}
		defer gen.Close(context.Background())

		rows := map[int64]int{} // of each shard
		id, err := gen.Next(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		rows[id.Int64()%16]++
		fmt.Println(start, len(rows))
	}
	// Output:
	// Random 1
	// Rotating 1
}
