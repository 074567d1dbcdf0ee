// Command shop uses what sqlc generates of the queries.
package main

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/types"

	"example.com/shop/shop"
)

//go:embed schema.sql
var tables string

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	db, err := sql.Open("sqlite3", "file:shop?mode=memory&cache=shared&_fk=1")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, tables); err != nil {
		return err
	}
	queries := shop.New(db)
	const order, child = types.Snowflake(9007199254740993), types.Snowflake(1<<63 - 1)
	for _, o := range []shop.InsertOrderParams{
		{ID: order, Total: 5},
		{ID: child, ParentID: types.NullSnowflake{Snowflake: order, Valid: true}, Total: 7},
	} {
		if err := queries.InsertOrder(ctx, o); err != nil {
			return err
		}
	}
	orders, err := queries.Orders(ctx)
	if err != nil {
		return err
	}
	item, err := queries.InsertItem(ctx, shop.InsertItemParams{ID: 3, OrderID: order, Sku: "cup"})
	if err != nil {
		return err
	}
	items, err := queries.ItemsOf(ctx, []types.Snowflake{order, child})
	if err != nil {
		return err
	}
	last, err := queries.InsertTicket(ctx, shop.InsertTicketParams{ID: types.ID[shop.Ticket](child)})
	if err != nil {
		return err
	}
	ticket := shop.InsertTicketParams{ID: 1, NextID: types.NullID[shop.Ticket]{ID: last.ID, Valid: true}}
	if _, err := queries.InsertTicket(ctx, ticket); err != nil {
		return err
	}
	first, err := queries.Ticket(ctx, 1)
	if err != nil {
		return err
	}
	for _, v := range []any{orders, item, items, last, first} {
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		fmt.Println(string(text))
	}
	_, err = queries.OrdersAndItems(ctx)
	fmt.Println("an order without items:", errors.Is(err, types.ErrNull))
	return nil
}
