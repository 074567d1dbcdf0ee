package keysql_test

import (
	"fmt"
	"log"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/keysql"
)

func ExampleNew() {
	orders, err := keysql.New(keysql.PostgreSQL, core.Default(), "id")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("time:    ", orders.Time())
	fmt.Println("worker:  ", orders.Worker())
	fmt.Println("sequence:", orders.Sequence())
	// Output:
	// time:     timestamptz '2025-01-01 00:00:00Z' + ("id" >> 22) * interval '1 millisecond'
	// worker:   ("id" >> 12) & 1023
	// sequence: "id" & 4095
}

// The orders of a day. The times may be literals, parameters, or other expressions.
func ExampleColumn_Between() {
	orders, err := keysql.New(keysql.MySQL, core.Default(), "orders.id")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("SELECT * FROM orders WHERE", orders.Between("'2026-05-04'", "'2026-05-05'"))
	// Output:
	// SELECT * FROM orders WHERE `orders`.`id` > (LEAST(GREATEST(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '2025-01-01 00:00:00', '2026-05-04') DIV 1000, 0), 2199023255552) - 1) * 4194304 + 4194303
	// AND `orders`.`id` <= (LEAST(GREATEST(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '2025-01-01 00:00:00', '2026-05-05') DIV 1000, 0), 2199023255552) - 1) * 4194304 + 4194303
}

// A view for people who read the table.
func ExampleColumn_Time() {
	orders, err := keysql.New(keysql.SQLite, core.Default(), "id")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("CREATE VIEW orders_read AS SELECT *,", orders.Time(), "AS created FROM orders")
	// Output:
	// CREATE VIEW orders_read AS SELECT *, strftime('%Y-%m-%d %H:%M:%f', ((`id` >> 22) + 1735689600000) / 1000.0, 'unixepoch') AS created FROM orders
}

// Rows that are older than 90 days go. The index of the key finds them.
func ExampleColumn_Min() {
	orders, err := keysql.New(keysql.PostgreSQL, core.Default(), "id")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("DELETE FROM orders WHERE id <", orders.Min("now() - interval '90 days'"))
	// Output:
	// DELETE FROM orders WHERE id < least(greatest(floor((extract(epoch FROM now() - interval '90 days') - 1735689600) * 1000), 0), 2199023255551)::bigint * 4194304
}

// JSON that the database makes, with a key whose digits JavaScript keeps.
func ExampleColumn_Text() {
	orders, err := keysql.New(keysql.PostgreSQL, core.Default(), "orders.id")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("SELECT json_build_object('id',", orders.Text(), ", 'number', number) FROM orders")
	// Output:
	// SELECT json_build_object('id', "orders"."id"::text , 'number', number) FROM orders
}

// A job that runs every day makes the months ahead, and shows what is older than a year.
func ExamplePartitions_Maintain() {
	id, err := keysql.New(keysql.MySQL, core.Default(), "id")
	if err != nil {
		log.Fatal(err)
	}
	orders, err := id.Partitions("orders", keysql.Month, time.UTC)
	if err != nil {
		log.Fatal(err)
	}
	existing := []keysql.Existing{ // the rows of orders.Existing()
		{Name: "p202504", Until: "43486543872000000"},
		{Name: "pmax", Until: "MAXVALUE"},
	}
	plan, err := orders.Maintain(existing, time.Date(2025, 5, 20, 0, 0, 0, 0, time.UTC), 1, 12)
	if err != nil {
		log.Fatal(err)
	}
	for _, statement := range plan.Create {
		fmt.Println(statement)
	}
	fmt.Println("old:", plan.Old)
	// Output:
	// ALTER TABLE `orders` REORGANIZE PARTITION `pmax` INTO (PARTITION `p202505` VALUES LESS THAN (54720567705600000),
	// PARTITION `p202506` VALUES LESS THAN (65592203673600000),
	// PARTITION `pmax` VALUES LESS THAN MAXVALUE)
	// old: []
}
