package schema

import (
	"context"

	"entgo.io/ent"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"github.com/snowkey/snowkey/types"
)

type Order struct{ ent.Schema }

func (Order) Mixin() []ent.Mixin { return []ent.Mixin{Key{}} }

func (Order) Fields() []ent.Field {
	return []ent.Field{
		field.String("number"),
		field.Other("parent_id", types.Snowflake(0)).SchemaType(bigint).Optional().Nillable(),
	}
}

func (Order) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("items", Item.Type),
		edge.To("children", Order.Type).From("parent").Unique().Field("parent_id"),
	}
}

type Item struct{ ent.Schema }

func (Item) Mixin() []ent.Mixin { return []ent.Mixin{Key{}} }

func (Item) Fields() []ent.Field {
	return []ent.Field{
		field.String("sku"),
		field.Other("order_id", types.Snowflake(0)).SchemaType(bigint),
	}
}

func (Item) Edges() []ent.Edge {
	return []ent.Edge{
		edge.From("order", Order.Type).Ref("items").Field("order_id").Required().Unique(),
	}
}

// Next is for the keys of events.
var Next func(context.Context) (types.Snowflake, error)

// An Event gets its key from a default, which cannot return the error of Next.
type Event struct{ ent.Schema }

func (Event) Fields() []ent.Field {
	return []ent.Field{
		field.Other("id", types.Snowflake(0)).SchemaType(bigint).Immutable().
			Default(func() types.Snowflake {
				id, err := Next(context.Background())
				if err != nil {
					return -1
				}
				return id
			}),
	}
}

// A Login has the type of a key that ent's documentation shows first.
type Login struct{ ent.Schema }

func (Login) Fields() []ent.Field {
	return []ent.Field{field.Int64("id").GoType(types.Snowflake(0))}
}
