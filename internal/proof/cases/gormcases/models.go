package gormcases

import (
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// An Order has an association of every kind.
type Order struct {
	gormplugin.Model
	Number     string `gorm:"size:40;uniqueIndex"`
	Note       string `gorm:"size:40"`
	CustomerID *types.Snowflake
	Customer   *Customer
	Items      []Item
	Receipt    *Receipt
	Labels     []Label `gorm:"many2many:order_labels"`
}

// An Item is one of many of an [Order].
type Item struct {
	ID      types.Snowflake
	OrderID types.Snowflake
	SKU     string `gorm:"size:40"`
}

// A Receipt is the only one of an [Order].
type Receipt struct {
	ID      types.Snowflake
	OrderID types.Snowflake
	Text    string `gorm:"size:40"`
}

// A Customer is what an [Order] belongs to, with two unique columns.
type Customer struct {
	ID    types.Snowflake
	Email string  `gorm:"size:80;uniqueIndex"`
	Phone *string `gorm:"size:40;uniqueIndex"`
	Name  string  `gorm:"size:40"`
}

// A Label is shared by orders.
type Label struct {
	ID   types.Snowflake
	Text string `gorm:"size:40;uniqueIndex"`
}

// wholeOrder returns an order with rows in all associations.
func wholeOrder(number string) Order {
	return Order{
		Number:   number,
		Customer: &Customer{Email: number},
		Items:    []Item{{SKU: "1"}, {SKU: "2"}},
		Receipt:  &Receipt{Text: "r"},
		Labels:   []Label{{Text: number + "l1"}, {Text: number + "l2"}},
	}
}

var orderModels = []any{&Customer{}, &Label{}, &Order{}, &Item{}, &Receipt{}}

// A Node is one of a tree.
type Node struct {
	ID       types.Snowflake
	ParentID *types.Snowflake
	Name     string `gorm:"size:40"`
	Children []Node `gorm:"foreignKey:ParentID"`
}

// A Pair has a key of two columns.
type Pair struct {
	TenantID types.Snowflake `gorm:"primaryKey"`
	ID       types.Snowflake `gorm:"primaryKey"`
}

// A Hub has nothing but a key.
type Hub struct{ ID types.Snowflake }
