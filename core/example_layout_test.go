package core_test

import (
	"fmt"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

func ExampleLayout_Parts() {
	// The example of Discord's documentation.
	parts := core.Discord().Parts(175928847299117063)
	fmt.Println(parts.Time, parts.Datacenter, parts.Worker, parts.Sequence)
	// Output: 2016-04-30 11:18:25.796 +0000 UTC 1 0 7
}

// The rows of a day by their primary key alone: no index on a time column.
func ExampleLayout_Min() {
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	layout := core.Default()
	fmt.Printf("SELECT * FROM orders WHERE id >= %d AND id < %d\n",
		layout.Min(day), layout.Min(day.AddDate(0, 0, 1)))
	// Output: SELECT * FROM orders WHERE id >= 175758114816000000 AND id < 176120502681600000
}

// History that is imported gets IDs of its own time, from a worker number that no
// generator has.
func ExampleLayout_Compose() {
	layout := core.Default()
	var id types.Snowflake
	id, err := layout.Compose(core.Parts{
		Time:   time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC),
		Worker: 1023,
	})
	fmt.Println(id, err)
	// Output: 21562078007390208 <nil>
}

func ExampleLayout_Validate() {
	layout := core.Default()
	layout.DatacenterBits = 5
	fmt.Println(layout.Validate())

	layout.WorkerBits = 5
	fmt.Println(layout.Validate())
	// Output:
	// core: Layout.TimeBits + DatacenterBits + WorkerBits + SequenceBits is 41+5+10+12 = 68: want at most 63, so that the sign bit stays free
	// <nil>
}

// A layout of one's own, which has an epoch of this year and few workers.
func ExampleLayout_Exhausted() {
	layout := core.Layout{
		Epoch:    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Unit:     time.Millisecond,
		TimeBits: 42, WorkerBits: 7, SequenceBits: 14,
	}
	fmt.Println(layout.Exhausted().Format(time.DateOnly))
	// Output: 2165-05-15
}

// Keys that JavaScript can hold as numbers have 53 bits.
func ExampleJavaScript() {
	layout := core.JavaScript()
	last := layout.Max(layout.Exhausted().Add(-time.Millisecond))
	fmt.Println(last.Int64() == 1<<53-1)
	// Output: true
}
