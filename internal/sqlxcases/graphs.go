package sqlxcases

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// newOrders returns n orders, each with an order's note, an invoice if its
// number is even, and three items with a note each.
func newOrders(n int) []order {
	orders := make([]order, n)
	for i := range orders {
		o := &orders[i]
		o.Number = fmt.Sprint("n", i)
		o.Notes = []*note{{Text: "order"}}
		if i%2 == 0 {
			o.Invoice = &invoice{}
		}
		for j := range 3 {
			o.Items = append(o.Items, item{SKU: fmt.Sprint(i, "-", j), Notes: []*note{{Text: "item"}}})
		}
	}
	return orders
}

func (d Database) graph(t *testing.T) {
	d.tables(t, orderTables...)
	src := NewCounter(0)
	h := sqlxhelper.New(src)
	orders := newOrders(20)
	orders[3].ID = 7000
	orders[3].Items[1].ID = 7001
	orders[4].Items, orders[4].Notes = nil, nil
	if err := h.InsertGraph(ctx, d.DB, "orders", orders); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	if orders[3].ID != 7000 || orders[3].Items[1].ID != 7001 {
		t.Errorf("keys = %d, %d; want 7000, 7001, as they were set", orders[3].ID, orders[3].Items[1].ID)
	}
	if len(src.fills) != 1 {
		t.Errorf("keys were taken %d times; want 1", len(src.fills))
	}
	for name, n := range map[string]int{"orders": 20, "order_items": 57, "notes": 19 + 57, "invoices": 10} {
		d.wantCount(t, name, n)
	}
	for _, o := range orders {
		var n int
		if err := d.DB.Get(&n, fmt.Sprintf("SELECT COUNT(*) FROM orders WHERE id = %d AND number = '%s'", o.ID, o.Number)); err != nil || n != 1 {
			t.Errorf("order %d: %d rows, %v; want 1", o.ID, n, err)
		}
		for _, it := range o.Items {
			if it.OrderID != o.ID {
				t.Errorf("OrderID of item %d = %d; want %d", it.ID, it.OrderID, o.ID)
			}
			query := fmt.Sprintf("SELECT COUNT(*) FROM order_items i JOIN notes n ON n.item_id = i.id WHERE i.id = %d AND i.order_id = %d AND i.sku = '%s' AND n.id = %d AND n.order_id IS NULL",
				it.ID, o.ID, it.SKU, it.Notes[0].ID)
			if err := d.DB.Get(&n, query); err != nil || n != 1 {
				t.Errorf("item %d with its note: %d rows, %v; want 1", it.ID, n, err)
			}
		}
		for _, no := range o.Notes {
			if err := d.DB.Get(&n, fmt.Sprintf("SELECT COUNT(*) FROM notes WHERE id = %d AND order_id = %d AND item_id IS NULL", no.ID, o.ID)); err != nil || n != 1 {
				t.Errorf("note %d: %d rows, %v; want 1", no.ID, n, err)
			}
		}
		if o.Invoice != nil && o.Invoice.OrderID != o.ID {
			t.Errorf("OrderID of the invoice = %d; want %d", o.Invoice.OrderID, o.ID)
		}
	}
	one := newOrders(1)[0]
	one.Items[0].SKU, one.Items[1].SKU, one.Items[2].SKU = "x", "y", "z"
	if err := h.InsertGraph(ctx, d.DB, "orders", &one); err != nil {
		t.Errorf("InsertGraph(*order) = %v; want nil", err)
	}
	d.wantCount(t, "order_items", 60)
}

// counting counts the statements that go through it.
type counting struct {
	*sqlx.Tx
	statements *int
}

func (c counting) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	*c.statements++
	return c.Tx.ExecContext(ctx, query, args...)
}

func (d Database) graphStatements(t *testing.T) {
	d.tables(t, orderTables...)
	for _, n := range []int{1, 8} {
		statements := 0
		tx := d.begin(t)
		if err := sqlxhelper.New(NewCounter(0)).InsertGraph(ctx, counting{tx, &statements}, "orders", newOrders(n)); err != nil {
			t.Fatalf("InsertGraph(%d orders) = %v; want nil", n, err)
		}
		// Four tables, SAVEPOINT and RELEASE.
		if statements != 6 {
			t.Errorf("InsertGraph(%d orders) sent %d statements; want 6", n, statements)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

func (d Database) graphFailure(t *testing.T) {
	d.tables(t, orderTables...)
	h := sqlxhelper.New(NewCounter(0))
	bad := newOrders(3)
	bad[2].Notes[0].Text = "longer than the twenty characters that the column takes"
	if d.Dialect == sqlxhelper.SQLite {
		bad[2].Notes[0].ID = 5 // SQLite takes the text
		bad[1].Notes[0].ID = 5
	}
	if err := h.InsertGraph(ctx, d.DB, "orders", bad); err == nil {
		t.Error("InsertGraph(orders with a bad note) = nil; want an error")
	}
	for _, table := range []string{"orders", "order_items", "notes", "invoices"} {
		d.wantCount(t, table, 0)
	}
	tx := d.begin(t)
	if err := h.InsertGraph(ctx, tx, "orders", bad); err == nil {
		t.Error("InsertGraph(tx, orders with a bad note) = nil; want an error")
	}
	bad[2].Notes[0].Text, bad[2].Notes[0].ID = "short", 6000
	if err := h.InsertGraph(ctx, tx, "orders", bad); err != nil {
		t.Errorf("InsertGraph(tx, again) = %v; want nil", err)
	}
	if err := tx.Commit(); err != nil {
		t.Errorf("Commit() = %v; want nil", err)
	}
	d.wantCount(t, "orders", 3)
	d.wantCount(t, "notes", 12)
}

func (d Database) tree(t *testing.T) {
	d.tables(t, treesTable)
	var grow func(width, levels int) []tree
	grow = func(width, levels int) []tree {
		if levels == 0 {
			return nil
		}
		branches := make([]tree, width)
		for i := range branches {
			branches[i].Branches = grow(width, levels-1)
		}
		return branches
	}
	// 3 + 9 + 27 + 81 rows: more than a chunk on SQLite.
	if err := sqlxhelper.New(NewCounter(0)).InsertGraph(ctx, d.DB, "trees", grow(3, 4)); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	d.wantCount(t, "trees", 120)
	d.wantCount(t, "trees WHERE parent_id IS NULL", 3)
	d.wantCount(t, "trees a JOIN trees b ON b.parent_id = a.id JOIN trees c ON c.parent_id = b.id JOIN trees d ON d.parent_id = c.id WHERE a.parent_id IS NULL", 81)
	// The parents' keys need not be the smaller ones.
	root := tree{Model: types.Model{ID: 9000}, Branches: grow(1, 1)}
	if err := sqlxhelper.New(NewCounter(5000)).InsertGraph(ctx, d.DB, "trees", &root); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

func (d Database) circle(t *testing.T) {
	d.tables(t,
		"CREATE TABLE folders (id BIGINT PRIMARY KEY, file_id BIGINT)",
		"CREATE TABLE files (id BIGINT PRIMARY KEY, folder_id BIGINT NOT NULL, FOREIGN KEY (folder_id) REFERENCES folders (id))")
	if d.Dialect != sqlxhelper.SQLite { // which cannot add one, and has the other direction
		d.exec(t, "ALTER TABLE folders ADD CONSTRAINT folders_file FOREIGN KEY (file_id) REFERENCES files (id)")
		drop := "ALTER TABLE folders DROP CONSTRAINT folders_file"
		t.Cleanup(func() { d.exec(t, "UPDATE folders SET file_id = NULL"); d.exec(t, drop) })
	}
	folders := []folder{
		{Files: []*file{{Folders: []folder{{Files: []*file{{}, {}}}}}, {}}},
		{Files: []*file{{}}},
	}
	if err := sqlxhelper.New(NewCounter(0)).InsertGraph(ctx, d.DB, "folders", folders); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	d.wantCount(t, "folders", 3)
	d.wantCount(t, "files", 5)
	d.wantCount(t, "folders a JOIN files b ON b.folder_id = a.id JOIN folders c ON c.file_id = b.id JOIN files d ON d.folder_id = c.id", 2)
}
