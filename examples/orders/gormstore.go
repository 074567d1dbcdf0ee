package main

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// The models. types.Model is the key alone, which is enough for most rows: it
// holds the time of its creation. gormplugin.Model adds the timestamps and the
// soft delete of gorm.Model, for rows that are edited. Foreign keys are
// types.Snowflake like the keys, so both get the same column type.
//
// That type is bigint on every database, which keeps GORM from making the key
// AUTOINCREMENT. On SQLite a bigint key costs an index beside the table;
// sqlxstore.go declares the columns itself and shows how to do without.
//
// Names like Order, with a table "orders", would need fewer tags. Here two
// libraries share one file, so everything says whose it is.
type (
	gormImport struct {
		types.Model
		Source     string     `gorm:"not null"`
		FinishedAt *time.Time // nil: stopped half way
		Orders     int64      `gorm:"not null"`
		Lines      int64      `gorm:"not null"`
		Total      Money      `gorm:"not null"`
	}

	gormCustomer struct {
		gormplugin.Model
		ImportID types.Snowflake `gorm:"not null;uniqueIndex:gorm_customers_code"`
		Import   *gormImport     // never set; makes ImportID a foreign key
		Code     string          `gorm:"not null;uniqueIndex:gorm_customers_code"`
		Company  string          `gorm:"not null"`
		City     *string         // a pointer where the column may be NULL
		Country  *string
	}

	gormProduct struct {
		gormplugin.Model
		ImportID  types.Snowflake `gorm:"not null;uniqueIndex:gorm_products_number"`
		Import    *gormImport
		Number    int64  `gorm:"not null;uniqueIndex:gorm_products_number"`
		Name      string `gorm:"not null"`
		UnitPrice Money  `gorm:"not null"`
	}

	gormOrder struct {
		types.Model
		ImportID    types.Snowflake `json:"import_id" gorm:"not null;uniqueIndex:gorm_orders_number"`
		Import      *gormImport     `json:"-"`
		Number      int64           `json:"number" gorm:"not null;uniqueIndex:gorm_orders_number"`
		CustomerID  types.Snowflake `json:"customer_id" gorm:"not null;index:gorm_orders_customer"`
		Customer    *gormCustomer   `json:"-"`
		OrderedAt   time.Time       `json:"ordered_at" gorm:"not null"`
		ShippedAt   *time.Time      `json:"shipped_at"`
		Freight     Money           `json:"freight" gorm:"not null"`
		ShipCity    *string         `json:"ship_city"`
		ShipCountry *string         `json:"ship_country"`
		Total       Money           `json:"total" gorm:"not null"`
		// The plugin sets the items' ID, GORM their OrderID.
		Items []gormItem `json:"items" gorm:"foreignKey:OrderID"`
	}

	gormItem struct {
		types.Model
		OrderID         types.Snowflake `json:"order_id" gorm:"not null;index:gorm_order_items_order"`
		ProductID       types.Snowflake `json:"product_id" gorm:"not null"`
		Product         *gormProduct    `json:"-"`
		UnitPrice       Money           `json:"unit_price" gorm:"not null"`
		Quantity        int64           `json:"quantity" gorm:"not null"`
		DiscountPercent int64           `json:"discount_percent" gorm:"not null"`
		Total           Money           `json:"total" gorm:"not null"`
	}
)

func (gormImport) TableName() string   { return "gorm_imports" }
func (gormCustomer) TableName() string { return "gorm_customers" }
func (gormProduct) TableName() string  { return "gorm_products" }
func (gormOrder) TableName() string    { return "gorm_orders" }
func (gormItem) TableName() string     { return "gorm_order_items" }

// gormBatch is how many rows GORM puts into one INSERT, and reads at a time.
// SQLite takes 32,766 parameters per statement; more rows than that allows for
// would be an error and not two statements.
const gormBatch = 500

// A gormStore is a store that speaks GORM.
type gormStore struct {
	db        *gorm.DB
	imp       gormImport
	customers map[string]types.Snowflake // key by code
	products  map[int64]types.Snowflake  // key by number
}

// newGORMStore installs the plugin and creates the tables that are not there.
func newGORMStore(ctx context.Context, conn *sql.DB, keys *core.Generator) (*gormStore, error) {
	db, err := gorm.Open(sqlite.New(sqlite.Config{Conn: conn}), &gorm.Config{
		CreateBatchSize: gormBatch,
		Logger:          logger.Discard, // errors are returned; saying them twice helps nobody
	})
	if err != nil {
		return nil, err
	}
	if err := db.Use(gormplugin.New(keys)); err != nil {
		return nil, err
	}
	err = db.WithContext(ctx).AutoMigrate(&gormImport{}, &gormCustomer{}, &gormProduct{}, &gormOrder{}, &gormItem{})
	if err != nil {
		return nil, err
	}
	return &gormStore{
		db:        db,
		customers: map[string]types.Snowflake{},
		products:  map[int64]types.Snowflake{},
	}, nil
}

func (s *gormStore) name() string              { return "GORM" }
func (s *gormStore) prefix() string            { return "gorm_" }
func (s *gormStore) importID() types.Snowflake { return s.imp.ID }

func (s *gormStore) begin(ctx context.Context, d *dataset) error {
	imp := gormImport{Source: d.source}
	var customers []gormCustomer
	var products []gormProduct
	err := s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := tx.Create(&imp).Error; err != nil {
			return err
		}
		for _, c := range d.customers {
			customers = append(customers, gormCustomer{
				ImportID: imp.ID, Code: c.Code, Company: c.Company, City: c.City, Country: c.Country,
			})
		}
		for _, p := range d.products {
			products = append(products, gormProduct{
				ImportID: imp.ID, Number: p.Number, Name: p.Name, UnitPrice: p.UnitPrice,
			})
		}
		if err := tx.Create(&customers).Error; err != nil {
			return err
		}
		return tx.Create(&products).Error
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

func (s *gormStore) write(ctx context.Context, o order) error {
	row := gormOrder{
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
		row.Items = append(row.Items, gormItem{
			ProductID:       s.products[l.ProductNumber],
			UnitPrice:       l.UnitPrice,
			Quantity:        l.Quantity,
			DiscountPercent: l.DiscountPercent,
			Total:           l.Total,
		})
	}
	// One Create is one transaction already: GORM begins it, saves the order,
	// then its items, and commits. Transaction says so to the reader, and is
	// where your second statement goes.
	return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return tx.Create(&row).Error
	})
}

func (s *gormStore) finish(ctx context.Context, t totals) error {
	now := time.Now().UTC()
	done := gormImport{FinishedAt: &now, Orders: t.orders, Lines: t.lines, Total: t.total}
	// Updates with a struct leaves out fields that are zero. Here that is all
	// right, because begin has stored zeros; elsewhere, name them with Select.
	return s.db.WithContext(ctx).Model(&s.imp).Updates(done).Error
}

func (s *gormStore) read(ctx context.Context) (*contents, error) {
	db := s.db.WithContext(ctx)
	c := &contents{customers: map[types.Snowflake]customer{}, products: map[types.Snowflake]product{}}

	var customers []gormCustomer
	if err := db.Where("import_id = ?", s.imp.ID).Find(&customers).Error; err != nil {
		return nil, err
	}
	for _, r := range customers {
		c.customers[r.ID] = customer{Code: r.Code, Company: r.Company, City: r.City, Country: r.Country}
	}

	var products []gormProduct
	if err := db.Where("import_id = ?", s.imp.ID).Find(&products).Error; err != nil {
		return nil, err
	}
	for _, r := range products {
		c.products[r.ID] = product{Number: r.Number, Name: r.Name, UnitPrice: r.UnitPrice}
	}

	// FindInBatches goes by primary key. Keys rise with time, so that is the
	// order in which the rows were written.
	var batch []gormOrder
	err := db.Preload("Items", func(db *gorm.DB) *gorm.DB { return db.Order("id") }).
		Where("import_id = ?", s.imp.ID).
		FindInBatches(&batch, gormBatch, func(*gorm.DB, int) error {
			for _, r := range batch {
				c.orders = append(c.orders, r.stored())
			}
			return nil
		}).Error
	return c, err
}

func (r gormOrder) stored() storedOrder {
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

// first returns the first order of the import, with its items.
func (s *gormStore) first(ctx context.Context) (*gormOrder, error) {
	var o gormOrder
	err := s.db.WithContext(ctx).Preload("Items", func(db *gorm.DB) *gorm.DB { return db.Order("id") }).
		Where("import_id = ?", s.imp.ID).First(&o).Error
	if err != nil {
		return nil, err
	}
	return &o, nil
}
