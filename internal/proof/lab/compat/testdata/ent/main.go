// Command shop uses what ent generates of the schema.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"entgo.io/ent/dialect"
	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/types"

	"example.com/shop/ent"
	"example.com/shop/ent/item"
	"example.com/shop/ent/migrate"
	"example.com/shop/ent/order"
	"example.com/shop/ent/schema"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client, err := ent.Open(dialect.SQLite, "file:shop?mode=memory&cache=shared&_fk=1")
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Schema.Create(ctx); err != nil {
		return err
	}
	for _, table := range migrate.Tables {
		key := table.PrimaryKey[0]
		fmt.Println(table.Name, key.SchemaType, "counted:", key.Increment)
	}

	_, err = client.Order.Create().SetNumber("A-0").Save(ctx)
	fmt.Println("without the hook:", errors.Is(err, types.ErrRange))
	gen := coretest.NewGenerator(coretest.Config{First: 1<<63 - 9})
	schema.Next = gen.Next
	event, err := client.Event.Create().Save(ctx)
	if err != nil {
		return err
	}
	fmt.Println(event)
	gen.Fail(core.ErrReservationExhausted)
	_, err = client.Event.Create().Save(ctx)
	fmt.Println("no key by default:", errors.Is(err, types.ErrRange))
	gen.Fail(nil)

	client.Use(schema.AssignKeys(gen.Next))
	if err := store(ctx, client); err != nil {
		return err
	}

	gen.Fail(core.ErrReservationExhausted)
	_, err = client.Order.Create().SetNumber("A-3").Save(ctx)
	fmt.Println("no key:", errors.Is(err, core.ErrReservationExhausted))
	_, err = client.Item.CreateBulk(client.Item.Create().SetSku("pan").SetOrderID(7)).Save(ctx)
	fmt.Println("no key in bulk:", errors.Is(err, core.ErrReservationExhausted))
	fmt.Println(client.Order.Query().CountX(ctx), "orders,", client.Item.Query().CountX(ctx), "items,", client.Event.Query().CountX(ctx), "event")

	_, err = client.Login.CreateBulk(client.Login.Create().SetID(5)).Save(ctx)
	fmt.Println("Int64 in bulk:", errors.Is(err, types.ErrSyntax), "though it stored", client.Login.Query().CountX(ctx))
	return nil
}

func store(ctx context.Context, client *ent.Client) error {
	first, err := client.Order.Create().SetNumber("A-1").Save(ctx)
	if err != nil {
		return err
	}
	_, err = client.Item.CreateBulk(
		client.Item.Create().SetSku("cup").SetOrder(first),
		client.Item.Create().SetSku("pot").SetOrderID(first.ID),
	).Save(ctx)
	if err != nil {
		return err
	}
	if _, err := client.Order.Create().SetNumber("A-2").SetParent(first).Save(ctx); err != nil {
		return err
	}
	// The caller's own key stays.
	if _, err := client.Order.Create().SetNumber("A-9").SetID(5).Save(ctx); err != nil {
		return err
	}
	orders, err := client.Order.Query().Order(order.ByID()).Where(order.IDGT(5)).
		WithItems(func(q *ent.ItemQuery) { q.Order(item.ByID()) }).WithParent().All(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(orders)
	fmt.Println(string(text))
	return err
}
