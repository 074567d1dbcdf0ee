package main

import (
	"time"

	"github.com/snowkey/snowkey/types"
)

// tables is what a migration would hold. With exactly the words INTEGER PRIMARY
// KEY the key is the address of the row, and needs no second tree. Keys rise, so
// rows are appended at the end. Amounts are whole cents and discounts whole
// percent, because a floating-point number cannot hold 0.10 exactly.
const tables = `
CREATE TABLE IF NOT EXISTS customers (
	id      INTEGER PRIMARY KEY,
	code    TEXT NOT NULL,
	company TEXT NOT NULL,
	city    TEXT,
	country TEXT
);
CREATE TABLE IF NOT EXISTS products (
	id               INTEGER PRIMARY KEY,
	number           INTEGER NOT NULL,
	name             TEXT NOT NULL,
	unit_price_cents INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS orders (
	id            INTEGER PRIMARY KEY,
	number        INTEGER NOT NULL,
	customer_id   INTEGER NOT NULL REFERENCES customers (id),
	ordered_at    DATETIME NOT NULL,
	shipped_at    DATETIME,
	freight_cents INTEGER NOT NULL,
	ship_city     TEXT,
	ship_country  TEXT
);
CREATE TABLE IF NOT EXISTS order_lines (
	id               INTEGER PRIMARY KEY,
	order_id         INTEGER NOT NULL REFERENCES orders (id),
	product_id       INTEGER NOT NULL REFERENCES products (id),
	unit_price_cents INTEGER NOT NULL,
	quantity         INTEGER NOT NULL,
	discount_percent INTEGER NOT NULL
);
`

// indexes are apart from the tables, because a load may create them after its rows.
const indexes = `
CREATE UNIQUE INDEX IF NOT EXISTS customers_code ON customers (code);
CREATE UNIQUE INDEX IF NOT EXISTS products_number ON products (number);
CREATE UNIQUE INDEX IF NOT EXISTS orders_number ON orders (number);
CREATE INDEX IF NOT EXISTS orders_customer ON orders (customer_id);
CREATE INDEX IF NOT EXISTS order_lines_order ON order_lines (order_id);
CREATE INDEX IF NOT EXISTS order_lines_product ON order_lines (product_id);
`

// The rows. types.Model brings the column id; every other column is named by its
// db tag, as anywhere with sqlx.
type (
	customer struct {
		types.Model
		Code    string  `db:"code"` // Northwind's customerID, such as ALFKI
		Company string  `db:"company"`
		City    *string `db:"city"`
		Country *string `db:"country"`
	}

	product struct {
		types.Model
		Number         int64  `db:"number"` // Northwind's productID
		Name           string `db:"name"`
		UnitPriceCents int64  `db:"unit_price_cents"`
	}

	order struct {
		types.Model
		Number       int64           `db:"number"` // Northwind's orderID
		CustomerID   types.Snowflake `db:"customer_id"`
		OrderedAt    time.Time       `db:"ordered_at"`
		ShippedAt    *time.Time      `db:"shipped_at"` // nil: not yet
		FreightCents int64           `db:"freight_cents"`
		ShipCity     *string         `db:"ship_city"`
		ShipCountry  *string         `db:"ship_country"`
	}

	orderLine struct {
		types.Model
		OrderID         types.Snowflake `db:"order_id"`
		ProductID       types.Snowflake `db:"product_id"`
		UnitPriceCents  int64           `db:"unit_price_cents"` // may differ from the product's of today
		Quantity        int64           `db:"quantity"`
		DiscountPercent int64           `db:"discount_percent"`
	}
)
