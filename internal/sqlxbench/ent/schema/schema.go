// Package schema tells ent of the two tables that every variant writes. The code
// around it is made from it by the command in generate.go of the folder above.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
)

// Order is the table orders.
type Order struct{ ent.Schema }

// Annotations names the table.
func (Order) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "orders"}}
}

// Fields lists the columns.
func (Order) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("number"),
		field.Int64("total"),
		field.Time("created_at"),
	}
}

// Edges names the children.
func (Order) Edges() []ent.Edge {
	return []ent.Edge{edge.To("items", Item.Type)}
}

// Item is the table order_items.
type Item struct{ ent.Schema }

// Annotations names the table.
func (Item) Annotations() []schema.Annotation {
	return []schema.Annotation{entsql.Annotation{Table: "order_items"}}
}

// Fields lists the columns.
func (Item) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("order_id"),
		field.String("sku"),
		field.Int("quantity"),
		field.Int64("price"),
		field.Time("created_at"),
	}
}

// Edges makes order_id the foreign key.
func (Item) Edges() []ent.Edge {
	return []ent.Edge{edge.From("order", Order.Type).Ref("items").Field("order_id").Unique().Required()}
}
