package model

import "gorm.io/gorm"

type Order struct {
	gorm.Model
	CustomerID uint `json:"customerId"`
	Quantity   uint
	Items      []Item `gorm:"foreignKey:ParentOrder"`
}

type Item struct {
	ID          uint `gorm:"primaryKey;autoIncrement" json:"id"`
	ParentOrder uint
	ReplacesID  *int `gorm:"size:32"`
	Replaces    *Item
	ParentID    uint
}

func (Item) TableName() string { return "items" }

type Customer struct {
	ID  CustomerKey `gorm:"primaryKey"`
	Age int
}

type CustomerKey uint
