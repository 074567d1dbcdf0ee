package coretest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/types"
)

// The keys are the same in each run, so a test may compare a whole document.
func ExampleNewGenerator() {
	type order struct {
		ID     types.Snowflake `json:"id"`
		Number string          `json:"number"`
	}
	gen := coretest.NewGenerator(coretest.Config{})
	id, err := gen.Next(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(order{ID: id, Number: "A-1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text))
	// Output: {"id":"132271570944000000","number":"A-1"}
}

// What does a service do when it gets no key?
func ExampleGenerator_Fail() {
	gen := coretest.NewGenerator(coretest.Config{})
	gen.Fail(core.ErrReservationExhausted)
	_, err := gen.Next(context.Background())
	fmt.Println(errors.Is(err, core.ErrReservationExhausted))

	gen.Fail(nil)
	id, err := gen.Next(context.Background())
	fmt.Println(id, err)
	// Output:
	// true
	// 132271570944000000 <nil>
}
