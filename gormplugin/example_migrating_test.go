package gormplugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"reflect"
	"time"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
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

// The layout for new keys beside those of sonyflake, above the greatest of them.
func Example_migratingFromSonyflake() {
	// sonyflake.Settings.StartTime: v1 begins in September 2014, v2 in 2025.
	start := time.Date(2014, 9, 1, 0, 0, 0, 0, time.UTC)
	const greatest = 608739136635077123 // SELECT MAX(id), over all tables

	// Only to read old keys. The middle bits are the sequence, the last the machine.
	old := core.Layout{Epoch: start, Unit: 10 * time.Millisecond, TimeBits: 39, WorkerBits: 8, SequenceBits: 16}
	at := old.Parts(greatest).Time

	// As many milliseconds before that time as the greatest key has above its 22 low bits, and
	// a day to spare.
	layout := core.Default()
	layout.Epoch = at.Add(-time.Duration(greatest>>22+1)*layout.Unit).AddDate(0, 0, -1).Truncate(24 * time.Hour)
	fmt.Println("epoch:", layout.Epoch.Format(time.DateOnly), "until", layout.Exhausted().Format(time.DateOnly))
	later := at.AddDate(10, 0, 0)
	fmt.Println("above the old program:", layout.Min(at) > old.Max(at), layout.Min(later) > old.Max(later))
	// Output:
	// epoch: 2021-07-24 until 2091-03-30
	// above the old program: true true
}

// countKeys gives the rows of each table the keys that a database would count: 1, 2, 3.
func countKeys(db *gorm.DB) error {
	last := map[string]int64{}
	return db.Callback().Create().Before("*").Register("count", func(tx *gorm.DB) {
		s := tx.Statement
		key := s.Schema.PrioritizedPrimaryField
		count := func(row reflect.Value) {
			id, unset := key.ValueOf(s.Context, row)
			if unset {
				_ = tx.AddError(key.Set(s.Context, row, last[s.Table]+1))
				id, _ = key.ValueOf(s.Context, row)
			}
			last[s.Table] = max(last[s.Table], reflect.ValueOf(id).Convert(reflect.TypeFor[int64]()).Int())
		}
		if s.ReflectValue.Kind() == reflect.Struct {
			count(s.ReflectValue)
			return
		}
		for i := range s.ReflectValue.Len() {
			count(reflect.Indirect(s.ReflectValue.Index(i)))
		}
	})
}

// Tests that expect the keys which the database counted keep them: in place of the plugin, or
// beside it, a callback counts for each table.
func Example_migratingTests() {
	db := memory("migratingtests")
	if err := countKeys(db); err != nil {
		log.Fatal(err)
	}
	orders := []Order{{Number: "A", Items: []Item{{SKU: "cup"}, {SKU: "plate"}}}, {Number: "B"}}
	db.Create(&orders)
	db.Create(&Order{Model: gormplugin.Model{ID: 7}, Number: "C"})
	last := Order{Number: "D"}
	db.Create(&last)
	fmt.Println(orders[0].ID, orders[1].ID, last.ID, "with items", orders[0].Items[0].ID, orders[0].Items[1].ID)
	// Output:
	// 1 2 8 with items 1 2
}
