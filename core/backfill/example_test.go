package backfill_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/backfill"
)

// The layout of a program whose first rows are of 2019, and the number that lease.Retire has taken
// out of use for them.
var (
	shop = core.Layout{
		Epoch:    time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC),
		Unit:     time.Millisecond,
		TimeBits: 41, WorkerBits: 10, SequenceBits: 12,
	}
	forOrders = backfill.Config{Layout: shop, Worker: 1000}
)

func Example() {
	past, err := backfill.New(forOrders)
	if err != nil {
		log.Fatal(err)
	}
	second := time.Date(2019, 5, 4, 12, 0, 0, 0, time.UTC)  // the column has whole seconds
	keys, err := backfill.Keys(past, []backfill.Row[int64]{ // SELECT id, created_at … ORDER BY created_at, id
		{Old: 7, Time: second},
		{Old: 9, Time: second},
		{Old: 8, Time: second.Add(time.Second)},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, key := range keys {
		p := shop.Parts(key)
		fmt.Println(key, p.Time.Format(time.DateTime), p.Worker, p.Sequence)
	}

	// Another process goes on after the last key that was stored.
	next, err := backfill.New(forOrders)
	if err != nil {
		log.Fatal(err)
	}
	if err := next.Resume(keys[1]); err != nil {
		log.Fatal(err)
	}
	again, err := next.Next(second.Add(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(again == keys[2])
	// Output:
	// 44754901405696000 2019-05-04 12:00:00 1000 0
	// 44754901405696001 2019-05-04 12:00:00 1000 1
	// 44754905600000000 2019-05-04 12:00:01 1000 0
	// true
}

func ExampleRowError() {
	past, err := backfill.New(forOrders)
	if err != nil {
		log.Fatal(err)
	}
	_, err = backfill.Keys(past, []backfill.Row[string]{
		{Old: "A-1", Time: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)}, // a date that nobody knew
		{Old: "A-2", Time: time.Date(2019, 5, 4, 12, 0, 0, 0, time.UTC)},
	})
	if refused := (*backfill.RowError)(nil); errors.As(err, &refused) {
		fmt.Println("row", refused.Row, "of", refused.Time.Format(time.DateOnly))
	}
	fmt.Println(errors.Is(err, backfill.ErrEarly))
	// Output:
	// row A-1 of 1970-01-01
	// true
}
