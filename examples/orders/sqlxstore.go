package main

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// sqlxSchema is what a migration would hold. The words INTEGER PRIMARY KEY,
// exactly these, make the key the address of the row itself; with any other
// type SQLite keeps a second index, and the file grows by a third. On another
// database write BIGINT PRIMARY KEY, without AUTO_INCREMENT.
//
// INTEGER PRIMARY KEY has one catch: a row inserted without a key gets one from
// SQLite, the largest plus one. sqlxhelper never leaves a key out.
const sqlxSchema = `
CREATE TABLE IF NOT EXISTS sqlx_imports (
	id          INTEGER PRIMARY KEY,
	source      TEXT NOT NULL,
	finished_at DATETIME,
	orders      INTEGER NOT NULL,
	lines       INTEGER NOT NULL,
	total       INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS sqlx_customers (
	id        INTEGER PRIMARY KEY,
	import_id INTEGER NOT NULL REFERENCES sqlx_imports (id),
	code      TEXT NOT NULL,
	company   TEXT NOT NULL,
	city      TEXT,
	country   TEXT,
	UNIQUE (import_id, code)
);
CREATE TABLE IF NOT EXISTS sqlx_products (
	id         INTEGER PRIMARY KEY,
	import_id  INTEGER NOT NULL REFERENCES sqlx_imports (id),
	number     INTEGER NOT NULL,
	name       TEXT NOT NULL,
	unit_price INTEGER NOT NULL,
	UNIQUE (import_id, number)
);
CREATE TABLE IF NOT EXISTS sqlx_orders (
	id           INTEGER PRIMARY KEY,
	import_id    INTEGER NOT NULL REFERENCES sqlx_imports (id),
	number       INTEGER NOT NULL,
	customer_id  INTEGER NOT NULL REFERENCES sqlx_customers (id),
	ordered_at   DATETIME NOT NULL,
	shipped_at   DATETIME,
	freight      INTEGER NOT NULL,
	ship_city    TEXT,
	ship_country TEXT,
	total        INTEGER NOT NULL,
	UNIQUE (import_id, number)
);
CREATE INDEX IF NOT EXISTS sqlx_orders_customer ON sqlx_orders (customer_id);
CREATE TABLE IF NOT EXISTS sqlx_order_items (
	id               INTEGER PRIMARY KEY,
	order_id         INTEGER NOT NULL REFERENCES sqlx_orders (id),
	product_id       INTEGER NOT NULL REFERENCES sqlx_products (id),
	unit_price       INTEGER NOT NULL,
	quantity         INTEGER NOT NULL,
	discount_percent INTEGER NOT NULL,
	total            INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS sqlx_order_items_order ON sqlx_order_items (order_id);
`

// The models. types.Model brings the column id; every other column is named by
// its db tag, as anywhere with sqlx.
type (
	sqlxImport struct {
		types.Model
		Source     string     `db:"source"`
		FinishedAt *time.Time `db:"finished_at"`
		Orders     int64      `db:"orders"`
		Lines      int64      `db:"lines"`
		Total      Money      `db:"total"`
	}

	sqlxCustomer struct {
		types.Model
		ImportID types.Snowflake `db:"import_id"`
		Code     string          `db:"code"`
		Company  string          `db:"company"`
		City     *string         `db:"city"`
		Country  *string         `db:"country"`
	}

	sqlxProduct struct {
		types.Model
		ImportID  types.Snowflake `db:"import_id"`
		Number    int64           `db:"number"`
		Name      string          `db:"name"`
		UnitPrice Money           `db:"unit_price"`
	}

	sqlxOrder struct {
		types.Model
		ImportID    types.Snowflake `db:"import_id"`
		Number      int64           `db:"number"`
		CustomerID  types.Snowflake `db:"customer_id"`
		OrderedAt   time.Time       `db:"ordered_at"`
		ShippedAt   *time.Time      `db:"shipped_at"`
		Freight     Money           `db:"freight"`
		ShipCity    *string         `db:"ship_city"`
		ShipCountry *string         `db:"ship_country"`
		Total       Money           `db:"total"`
		// Not a column of this table (db:"-"), but rows of that one. The helper
		// sets their id, and their order_id to the id of the order.
		Items []sqlxItem `db:"-" snowkey:"sqlx_order_items,fk=order_id"`
	}

	sqlxItem struct {
		types.Model
		OrderID         types.Snowflake `db:"order_id"`
		ProductID       types.Snowflake `db:"product_id"`
		UnitPrice       Money           `db:"unit_price"`
		Quantity        int64           `db:"quantity"`
		DiscountPercent int64           `db:"discount_percent"`
		Total           Money           `db:"total"`
	}
)

// A sqlxStore is a store that speaks sqlx.
type sqlxStore struct {
	db        *sqlx.DB
	helper    *sqlxhelper.Helper
	imp       sqlxImport
	customers map[string]types.Snowflake // key by code
	products  map[int64]types.Snowflake  // key by number
}

// newSqlxStore creates the tables that are not there.
func newSqlxStore(ctx context.Context, conn *sql.DB, keys *core.Generator) (*sqlxStore, error) {
	db := sqlx.NewDb(conn, "sqlite3")
	if _, err := db.ExecContext(ctx, sqlxSchema); err != nil {
		return nil, err
	}
	return &sqlxStore{
		db:        db,
		helper:    sqlxhelper.New(keys),
		customers: map[string]types.Snowflake{},
		products:  map[int64]types.Snowflake{},
	}, nil
}

func (s *sqlxStore) name() string              { return "sqlx" }
func (s *sqlxStore) prefix() string            { return "sqlx_" }
func (s *sqlxStore) importID() types.Snowflake { return s.imp.ID }

func (s *sqlxStore) begin(ctx context.Context, d *dataset) error {
	imp := sqlxImport{Source: d.source}
	var customers []sqlxCustomer
	for _, c := range d.customers {
		customers = append(customers, sqlxCustomer{Code: c.Code, Company: c.Company, City: c.City, Country: c.Country})
	}
	var products []sqlxProduct
	for _, p := range d.products {
		products = append(products, sqlxProduct{Number: p.Number, Name: p.Name, UnitPrice: p.UnitPrice})
	}

	// The rows live outside the function because their keys are needed after the
	// commit, and because InTx may run it again: a row that has its key keeps it,
	// so every run writes the same rows.
	err := sqlxhelper.InTx(ctx, s.db, nil, func(tx *sqlx.Tx) error {
		if err := s.helper.Insert(ctx, tx, "sqlx_imports", &imp); err != nil {
			return err
		}
		for i := range customers {
			customers[i].ImportID = imp.ID
		}
		for i := range products {
			products[i].ImportID = imp.ID
		}
		if err := s.helper.InsertMany(ctx, tx, "sqlx_customers", customers); err != nil {
			return err
		}
		return s.helper.InsertMany(ctx, tx, "sqlx_products", products)
	})
	if err != nil {
		return err
	}
	s.imp = imp
	for _, c := range customers {
		s.customers[c.Code] = c.ID
	}
	for _, p := range products {
		s.products[p.Number] = p.ID
	}
	return nil
}

func (s *sqlxStore) write(ctx context.Context, o order) error {
	row := sqlxOrder{
		ImportID:    s.imp.ID,
		Number:      o.Number,
		CustomerID:  s.customers[o.CustomerCode],
		OrderedAt:   o.OrderedAt,
		ShippedAt:   o.ShippedAt,
		Freight:     o.Freight,
		ShipCity:    o.ShipCity,
		ShipCountry: o.ShipCountry,
		Total:       o.Total,
	}
	for _, l := range o.Lines {
		row.Items = append(row.Items, sqlxItem{
			ProductID:       s.products[l.ProductNumber],
			UnitPrice:       l.UnitPrice,
			Quantity:        l.Quantity,
			DiscountPercent: l.DiscountPercent,
			Total:           l.Total,
		})
	}
	// InsertGraph alone would be one transaction as well. InTx says so to the
	// reader, and is where your second statement goes.
	return sqlxhelper.InTx(ctx, s.db, nil, func(tx *sqlx.Tx) error {
		return s.helper.InsertGraph(ctx, tx, "sqlx_orders", &row)
	})
}

func (s *sqlxStore) finish(ctx context.Context, t totals) error {
	_, err := s.db.ExecContext(ctx,
		"UPDATE sqlx_imports SET finished_at = ?, orders = ?, lines = ?, total = ? WHERE id = ?",
		time.Now().UTC(), t.orders, t.lines, t.total, s.imp.ID)
	return err
}

func (s *sqlxStore) read(ctx context.Context) (*contents, error) {
	c := &contents{customers: map[types.Snowflake]customer{}, products: map[types.Snowflake]product{}}

	var customers []sqlxCustomer
	err := s.db.SelectContext(ctx, &customers, "SELECT * FROM sqlx_customers WHERE import_id = ?", s.imp.ID)
	if err != nil {
		return nil, err
	}
	for _, r := range customers {
		c.customers[r.ID] = customer{Code: r.Code, Company: r.Company, City: r.City, Country: r.Country}
	}

	var products []sqlxProduct
	err = s.db.SelectContext(ctx, &products, "SELECT * FROM sqlx_products WHERE import_id = ?", s.imp.ID)
	if err != nil {
		return nil, err
	}
	for _, r := range products {
		c.products[r.ID] = product{Number: r.Number, Name: r.Name, UnitPrice: r.UnitPrice}
	}

	// By key: keys rise with time, so that is the order in which the rows were
	// written.
	var orders []sqlxOrder
	err = s.db.SelectContext(ctx, &orders, "SELECT * FROM sqlx_orders WHERE import_id = ? ORDER BY id", s.imp.ID)
	if err != nil {
		return nil, err
	}
	var items []sqlxItem
	err = s.db.SelectContext(ctx, &items, `
		SELECT sqlx_order_items.* FROM sqlx_order_items
		JOIN sqlx_orders ON sqlx_orders.id = sqlx_order_items.order_id
		WHERE sqlx_orders.import_id = ?
		ORDER BY sqlx_order_items.id`, s.imp.ID)
	if err != nil {
		return nil, err
	}
	itemsOf := make(map[types.Snowflake][]sqlxItem, len(orders))
	for _, i := range items {
		itemsOf[i.OrderID] = append(itemsOf[i.OrderID], i)
	}
	for _, r := range orders {
		r.Items = itemsOf[r.ID]
		c.orders = append(c.orders, r.stored())
	}
	return c, nil
}

func (r sqlxOrder) stored() storedOrder {
	o := storedOrder{id: r.ID, customerID: r.CustomerID, order: order{
		Number:      r.Number,
		OrderedAt:   r.OrderedAt,
		ShippedAt:   r.ShippedAt,
		Freight:     r.Freight,
		ShipCity:    r.ShipCity,
		ShipCountry: r.ShipCountry,
		Total:       r.Total,
	}}
	for _, i := range r.Items {
		o.lines = append(o.lines, lineKeys{id: i.ID, orderID: i.OrderID, productID: i.ProductID})
		o.Lines = append(o.Lines, line{
			UnitPrice:       i.UnitPrice,
			Quantity:        i.Quantity,
			DiscountPercent: i.DiscountPercent,
			Total:           i.Total,
		})
	}
	return o
}
