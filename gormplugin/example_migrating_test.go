package gormplugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/types"
)

// Rows that a counter has numbered keep their keys. Every new key is larger.
func Example_migratingFromACounter() {
	db := memory("fromcounter")
	err := db.Exec("INSERT INTO orders (id, number) VALUES (1, 'old')").Error // as the counter did
	if err != nil {
		log.Fatal(err)
	}
	order := Order{Number: "new"}
	if err := db.Create(&order).Error; err != nil {
		log.Fatal(err)
	}
	var all []Order
	db.Order("id").Find(&all)
	for _, o := range all {
		fmt.Println(o.Number, o.ID)
	}
	// Output:
	// old 1
	// new 1001
}

// JSON has keys as strings, because a JavaScript number cannot hold them. Both
// forms are read.
func Example_migratingJSON() {
	type Reply struct {
		ID types.Snowflake `json:"id"`
	}
	text, err := json.Marshal(Reply{ID: 1541815603606036480})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text)) // {"id":"1541815603606036480"}
	var asNumber, asText Reply
	if err := json.Unmarshal([]byte(`{"id":17}`), &asNumber); err != nil {
		log.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"id":"17"}`), &asText); err != nil {
		log.Fatal(err)
	}
	fmt.Println("both forms are read:", asNumber.ID == asText.ID)
	// Output:
	// {"id":"1541815603606036480"}
	// both forms are read: true
}

// The layout of bwmarrin/snowflake with its own epoch and bits.
func Example_migratingFromBwmarrin() {
	layout := core.Layout{
		Epoch:    time.UnixMilli(1288834974657), // snowflake.Epoch, if you have not set it
		Unit:     time.Millisecond,
		TimeBits: 41, WorkerBits: 10, SequenceBits: 12, // 63 less the others; NodeBits; StepBits
	}
	old := layout.Parts(1541815603606036480)
	fmt.Println("node", old.Worker, "at", old.Time.UTC().Format(time.RFC3339Nano))

	gen, err := core.New(core.Config{Layout: layout, Worker: core.StaticWorker(old.Worker)})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer func() { _ = gen.Close(ctx) }()
	id, err := gen.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("new keys are larger:", id > 1541815603606036480)

	// With core.Twitter the same 10 bits are two numbers.
	parts := core.Twitter().Parts(1541815603606036480)
	fmt.Println("node", parts.Datacenter<<5|parts.Worker)
	// Output:
	// node 378 at 2022-06-28T16:07:40.105Z
	// new keys are larger: true
	// node 378
}
