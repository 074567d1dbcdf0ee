package main

import (
	"context"
	"database/sql"
	_ "embed" // for the schema
	"errors"
	"math"
	"net/url"
	"slices"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// Order is an order with its lines. The keys are typed, so that the key of a line does not
// compile where that of an order is wanted. In JSON they are strings.
type Order struct {
	ID       types.ID[Order] `db:"id" json:"id"`
	Name     string          `db:"-" json:"name"` // the public form of ID, which the API sets
	Customer string          `db:"customer" json:"customer"`
	Lines    []Line          `db:"-" json:"lines" snowkey:"order_lines,fk=order_id"`
}

// Line is a row of an order.
type Line struct {
	ID       types.ID[Line]  `db:"id" json:"id"`
	OrderID  types.ID[Order] `db:"order_id" json:"-"`
	SKU      string          `db:"sku" json:"sku"`
	Quantity int             `db:"quantity" json:"quantity"`
}

// Listed is an order in a list.
type Listed struct {
	ID       types.ID[Order] `db:"id" json:"id"`
	Name     string          `db:"-" json:"name"`
	Customer string          `db:"customer" json:"customer"`
	Lines    int             `db:"lines" json:"lines"` // how many it has
}

//go:embed schema.sql
var schema string

// openDatabase opens or creates a SQLite file, with tables.
func openDatabase(ctx context.Context, file string) (*sqlx.DB, error) {
	settings := url.Values{
		"_foreign_keys": {"on"},        // without it SQLite ignores REFERENCES
		"_journal_mode": {"WAL"},       // readers do not wait for a writer
		"_txlock":       {"immediate"}, // BEGIN waits for other writers
		"_busy_timeout": {"5000"},      // for as many milliseconds
	}
	// As a URL, so that a file name may contain ? or %.
	db, err := sqlx.Open("sqlite3", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+settings.Encode())
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

var (
	errUnknown = errors.New("no such order")
	errDiffers = errors.New("the order is stored with other content")
)

// A store keeps orders.
type store struct {
	db   *sqlx.DB
	rows *sqlxhelper.Helper
}

// save stores an order with its lines in one transaction, under the key that it has. A client that
// lost the answer, or whose user pressed a button twice, saves again under the same key. Then save
// returns the stored order, and created is false. A stored order never changes: if its content
// differs, the error is errDiffers.
func (s *store) save(ctx context.Context, o Order) (stored Order, created bool, err error) {
	refused := s.rows.InsertGraph(ctx, s.db, "orders", &o)
	if refused == nil {
		return o, true, nil
	}
	// Each database reports a duplicate key by a number of its own. Looking for the order instead
	// works with all of them.
	stored, err = s.order(ctx, o.ID)
	if err != nil {
		return Order{}, false, refused
	}
	same := func(a, b Line) bool { return a.SKU == b.SKU && a.Quantity == b.Quantity }
	if stored.Customer != o.Customer || !slices.EqualFunc(stored.Lines, o.Lines, same) {
		return Order{}, false, errDiffers
	}
	return stored, false, nil
}

// order returns an order with its lines, or errUnknown.
func (s *store) order(ctx context.Context, id types.ID[Order]) (o Order, err error) {
	err = s.db.GetContext(ctx, &o, "SELECT id, customer FROM orders WHERE id = ?", id)
	if errors.Is(err, sql.ErrNoRows) {
		return o, errUnknown
	}
	if err == nil {
		err = s.db.SelectContext(ctx, &o.Lines, "SELECT * FROM order_lines WHERE order_id = ? ORDER BY id", id)
	}
	return o, err
}

// Page is a part of the list of orders, newest first.
type Page struct {
	Orders []Listed `json:"orders"`
	Newer  bool     `json:"newer"` // whether there are orders before these
	Older  bool     `json:"older"` // and after these
}

// page returns the orders before a key, after a key, or the newest ones if neither is valid. It
// seeks by key, so the thousandth page costs as much as the first, and an order that is stored
// meanwhile moves no other order to another page.
func (s *store) page(ctx context.Context, before, after types.NullID[Order], size int) (p Page, err error) {
	p.Orders = []Listed{} // not null in JSON
	const columns = "SELECT id, customer, (SELECT count(*) FROM order_lines WHERE order_id = orders.id) AS lines FROM orders"
	if after.Valid {
		err = s.db.SelectContext(ctx, &p.Orders, columns+" WHERE id > ? ORDER BY id LIMIT ?", after, size)
		slices.Reverse(p.Orders)
	} else {
		if !before.Valid {
			before.ID = math.MaxInt64
		}
		err = s.db.SelectContext(ctx, &p.Orders, columns+" WHERE id < ? ORDER BY id DESC LIMIT ?", before.ID, size)
	}
	if err != nil || len(p.Orders) == 0 {
		return p, err
	}
	err = s.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM orders WHERE id > ?), EXISTS (SELECT 1 FROM orders WHERE id < ?)",
		p.Orders[0].ID, p.Orders[len(p.Orders)-1].ID).Scan(&p.Newer, &p.Older)
	return p, err
}
