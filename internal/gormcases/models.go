package gormcases

import (
	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

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

type Item struct {
	ID      types.Snowflake
	OrderID types.Snowflake
	SKU     string `gorm:"size:40"`
}

type Receipt struct {
	ID      types.Snowflake
	OrderID types.Snowflake
	Text    string `gorm:"size:40"`
}

type Customer struct {
	ID    types.Snowflake
	Email string  `gorm:"size:80;uniqueIndex"`
	Phone *string `gorm:"size:40;uniqueIndex"`
	Name  string  `gorm:"size:40"`
}

type Label struct {
	ID   types.Snowflake
	Text string `gorm:"size:40;uniqueIndex"`
}

var orderModels = []any{&Customer{}, &Label{}, &Order{}, &Item{}, &Receipt{}}

// A Shipment has children with a unique column of their own.
type Shipment struct {
	ID      types.Snowflake
	Parcels []Parcel
}

type Parcel struct {
	ID         types.Snowflake
	ShipmentID types.Snowflake
	Code       string `gorm:"size:40;uniqueIndex"`
}

type Node struct {
	ID       types.Snowflake
	ParentID *types.Snowflake
	Name     string `gorm:"size:40"`
	Children []Node `gorm:"foreignKey:ParentID"`
}

type Cat struct {
	ID  types.Snowflake
	Toy Toy `gorm:"polymorphic:Owner"`
}

type Dog struct {
	ID   types.Snowflake
	Toys []Toy `gorm:"polymorphic:Owner"`
}

type Toy struct {
	ID        types.Snowflake
	Name      string `gorm:"size:40"`
	OwnerID   types.Snowflake
	OwnerType string `gorm:"size:40"`
}

// A Hooked is what its hooks do to it.
type Hooked struct {
	ID     types.Snowflake
	Name   string                  `gorm:"size:40;uniqueIndex"`
	Seen   types.Snowflake         `gorm:"-"`
	Before func(*Hooked, *gorm.DB) `gorm:"-"`
	Parts  []HookedPart
}

func (h *Hooked) BeforeCreate(tx *gorm.DB) error {
	h.Seen = h.ID
	if h.Before != nil {
		h.Before(h, tx)
	}
	return nil
}

type HookedPart struct {
	ID       types.Snowflake
	HookedID types.Snowflake
	Name     string `gorm:"size:40"`
}
