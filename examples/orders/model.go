package main

import (
	"time"

	"github.com/snowkey/snowkey/types"
)

// The models, for both libraries: GORM reads the tags gorm, sqlx the tags db.
// types.Model is the key alone, which holds the time of its creation. For rows
// that are edited, gormplugin.Model adds GORM's timestamps and soft delete.
//
// Foreign keys are types.Snowflake like the keys, so both get the same column
// type. With GORM that is bigint on every database, and never AUTOINCREMENT. On
// SQLite a bigint key costs an index beside the table. sqlxschema.sql declares the
// columns itself and shows how to do without.
type (
	// Import is one run of the program.
	Import struct {
		types.Model
		Source     string     `db:"source" gorm:"not null"`
		FinishedAt *time.Time `db:"finished_at"` // nil: stopped half way
		Orders     int64      `db:"orders" gorm:"not null"`
		Lines      int64      `db:"lines" gorm:"not null"`
		Total      Money      `db:"total" gorm:"not null"`
	}

	// Customer is a row of customers.csv.
	Customer struct {
		types.Model
		ImportID types.Snowflake `db:"import_id" gorm:"not null;uniqueIndex:gorm_customers_code"`
		Import   *Import         `db:"-" json:"-"` // never set; makes ImportID a foreign key in GORM
		Code     string          `db:"code" gorm:"not null;uniqueIndex:gorm_customers_code"`
		Company  string          `db:"company" gorm:"not null"`
		City     *string         `db:"city"` // a pointer where the column may be NULL
		Country  *string         `db:"country"`
	}

	// Product is a row of products.csv.
	Product struct {
		types.Model
		ImportID  types.Snowflake `db:"import_id" gorm:"not null;uniqueIndex:gorm_products_number"`
		Import    *Import         `db:"-" json:"-"`
		Number    int64           `db:"number" gorm:"not null;uniqueIndex:gorm_products_number"`
		Name      string          `db:"name" gorm:"not null"`
		UnitPrice Money           `db:"unit_price" gorm:"not null"`
	}

	// Order is a row of orders.csv with its lines.
	Order struct {
		types.Model
		ImportID    types.Snowflake `db:"import_id" json:"import_id" gorm:"not null;uniqueIndex:gorm_orders_number"`
		Import      *Import         `db:"-" json:"-"`
		Number      int64           `db:"number" json:"number" gorm:"not null;uniqueIndex:gorm_orders_number"`
		CustomerID  types.Snowflake `db:"customer_id" json:"customer_id" gorm:"not null;index:gorm_orders_customer"`
		Customer    *Customer       `db:"-" json:"-"`
		OrderedAt   time.Time       `db:"ordered_at" json:"ordered_at" gorm:"not null"`
		ShippedAt   *time.Time      `db:"shipped_at" json:"shipped_at"`
		Freight     Money           `db:"freight" json:"freight" gorm:"not null"`
		ShipCity    *string         `db:"ship_city" json:"ship_city"`
		ShipCountry *string         `db:"ship_country" json:"ship_country"`
		Total       Money           `db:"total" json:"total" gorm:"not null"` // of the items, without freight
		// With GORM the plugin sets the items' ID, and GORM their OrderID. sqlxhelper
		// sets both: the snowkey tag names the table and the foreign key.
		Items []OrderItem `db:"-" json:"items,omitempty" snowkey:"sqlx_order_items,fk=order_id"`

		CustomerCode string `db:"-" json:"customer_code,omitempty" gorm:"-"` // the customer in the input
	}

	// OrderItem is a row of order-details.csv.
	OrderItem struct {
		types.Model
		OrderID         types.Snowflake `db:"order_id" json:"order_id" gorm:"not null;index:gorm_order_items_order"`
		ProductID       types.Snowflake `db:"product_id" json:"product_id" gorm:"not null"`
		Product         *Product        `db:"-" json:"-"`
		UnitPrice       Money           `db:"unit_price" json:"unit_price" gorm:"not null"` // may differ from the product's of today
		Quantity        int64           `db:"quantity" json:"quantity" gorm:"not null"`
		DiscountPercent int64           `db:"discount_percent" json:"discount_percent" gorm:"not null"`
		Total           Money           `db:"total" json:"total" gorm:"not null"`

		ProductNumber int64 `db:"-" json:"product_number,omitempty" gorm:"-"` // the product in the input
	}
)

// rows are the rows of one import, in the order of the input.
type rows struct {
	customers []Customer
	products  []Product
	orders    []Order
}
