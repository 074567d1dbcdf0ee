package sqlxcases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// newOrders returns n orders. Each has a note and three items with a note each.
// Those with an even number have an invoice.
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
		d.wantOrder(t, o)
	}
	one := newOrders(1)[0]
	one.Items[0].SKU, one.Items[1].SKU, one.Items[2].SKU = "x", "y", "z"
	if err := h.InsertGraph(ctx, d.DB, "orders", &one); err != nil {
		t.Errorf("InsertGraph(*order) = %v; want nil", err)
	}
	d.wantCount(t, "order_items", 60)
}

// wantOrder fails the test unless an order is stored with all that it holds.
func (d Database) wantOrder(t *testing.T, o order) {
	t.Helper()
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

// foreignKey is what ALTER TABLE calls a foreign key. TiDB knows only MySQL's old name.
func (d Database) foreignKey() string {
	if d.Dialect == sqlxhelper.MySQL {
		return "FOREIGN KEY"
	}
	return "CONSTRAINT"
}

func (d Database) circle(t *testing.T) {
	d.tables(t,
		"CREATE TABLE folders (id BIGINT PRIMARY KEY, file_id BIGINT)",
		"CREATE TABLE files (id BIGINT PRIMARY KEY, folder_id BIGINT NOT NULL, FOREIGN KEY (folder_id) REFERENCES folders (id))")
	if d.Dialect != sqlxhelper.SQLite { // which cannot add one, and has the other direction
		d.exec(t, "ALTER TABLE folders ADD CONSTRAINT folders_file FOREIGN KEY (file_id) REFERENCES files (id)")
		drop := "ALTER TABLE folders DROP " + d.foreignKey() + " folders_file"
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

// newPurchases returns n purchases of two entries each. All share one buyer, one
// maker and one of the goods. Every purchase has goods of its own too. Every entry
// points back to its purchase.
func newPurchases(n int) []*purchase {
	purchases := make([]*purchase, n)
	shared, all := &buyer{By: &buyer{By: &buyer{}}}, &maker{}
	common := &goods{Maker: all}
	for i := range purchases {
		p := &purchase{Buyer: shared}
		if i%2 == 1 {
			p.Buyer = &buyer{By: shared}
		}
		own := &goods{Maker: all}
		p.Entries = []entry{
			{Purchase: p, Goods: own, Remarks: []*remark{{Goods: common}, {}}},
			{Goods: common, Remarks: []*remark{{Goods: own}}},
		}
		purchases[i] = p
	}
	return purchases
}

func (d Database) belongsTo(t *testing.T) {
	d.tables(t, purchaseTables...)
	h := sqlxhelper.New(NewCounter(0))
	purchases := newPurchases(40)
	purchases[0].Buyer.ID = 9000 // larger than the keys of those that refer to it
	if err := h.InsertGraph(ctx, d.DB, "purchases", purchases); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	for name, n := range map[string]int{"buyers": 3 + 20, "makers": 1, "goods": 41, "purchases": 40, "entries": 80, "remarks": 120} {
		d.wantCount(t, name, n)
	}
	for i, p := range purchases {
		own, common := p.Entries[0].Goods, p.Entries[1].Goods
		if p.BuyerID != p.Buyer.ID || p.Entries[0].PurchaseID != p.ID || p.Entries[1].GoodsID.Snowflake != common.ID || own.MakerID != own.Maker.ID {
			t.Errorf("foreign keys of purchase %d = %d, %d, %d, %d; want %d, %d, %d, %d", i,
				p.BuyerID, p.Entries[0].PurchaseID, p.Entries[1].GoodsID.Snowflake, own.MakerID, p.Buyer.ID, p.ID, common.ID, own.Maker.ID)
		}
		d.wantCount(t, fmt.Sprintf("purchases p JOIN entries e ON e.purchase_id = p.id JOIN remarks r ON r.entry_id = e.id "+
			"WHERE p.id = %d AND p.buyer_id = %d AND (e.goods_id = %d AND r.goods_id = %d OR e.goods_id = %d AND (r.goods_id = %d OR r.goods_id IS NULL))",
			p.ID, p.Buyer.ID, common.ID, own.ID, own.ID, common.ID), 3)
	}
	d.wantCount(t, "buyers a JOIN buyers b ON b.by_id = a.id JOIN buyers c ON c.by_id = b.id WHERE a.by_id IS NULL AND c.id = 9000", 1)
	d.wantCount(t, "buyers WHERE by_id = 9000", 20)

	// A buyer that is stored is named by its key, and is not inserted again.
	later := purchase{BuyerID: 9000, Entries: []entry{{}}}
	if err := h.InsertGraph(ctx, d.DB, "purchases", &later); err != nil {
		t.Errorf("InsertGraph(purchase of a stored buyer) = %v; want nil", err)
	}
	d.wantCount(t, "buyers", 23)
	d.wantCount(t, "purchases WHERE buyer_id = 9000", 21)
	// The pointer says to insert it.
	again := purchase{Buyer: &buyer{Model: types.Model{ID: 9000}}}
	if err := h.InsertGraph(ctx, d.DB, "purchases", &again); err == nil {
		t.Error("InsertGraph(purchase with a stored buyer) = nil; want the error of a duplicate key")
	}
	d.wantCount(t, "purchases", 41)
}

func (d Database) belongsToStatements(t *testing.T) {
	d.tables(t, purchaseTables...)
	for _, n := range []int{1, 3} {
		statements := 0
		tx := d.begin(t)
		if err := sqlxhelper.New(NewCounter(0)).InsertGraph(ctx, counting{tx, &statements}, "purchases", newPurchases(n)); err != nil {
			t.Fatalf("InsertGraph(%d purchases) = %v; want nil", n, err)
		}
		// Six tables, SAVEPOINT and RELEASE.
		if statements != 8 {
			t.Errorf("InsertGraph(%d purchases) sent %d statements; want 8", n, statements)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

func (d Database) circleOfOwners(t *testing.T) {
	d.tables(t,
		"CREATE TABLE clubs (id BIGINT PRIMARY KEY, leader_id BIGINT)",
		"CREATE TABLE members (id BIGINT PRIMARY KEY, club_id BIGINT, by_id BIGINT, FOREIGN KEY (club_id) REFERENCES clubs (id), FOREIGN KEY (by_id) REFERENCES members (id))")
	if d.Dialect != sqlxhelper.SQLite { // which cannot add one, and has the other direction
		d.exec(t, "ALTER TABLE clubs ADD CONSTRAINT clubs_leader FOREIGN KEY (leader_id) REFERENCES members (id)")
		drop := "ALTER TABLE clubs DROP " + d.foreignKey() + " clubs_leader"
		t.Cleanup(func() { d.exec(t, "UPDATE clubs SET leader_id = NULL"); d.exec(t, drop) })
	}
	first := &member{By: &member{}}
	old := &club{Leader: first, Members: []*member{{By: first}, {}}}
	old.Members[1].Club, old.Members[1].By = old, old.Members[0]
	young := &club{Leader: old.Members[1], Members: []*member{{By: old.Members[1]}}}
	h := sqlxhelper.New(NewCounter(0))
	if err := h.InsertGraph(ctx, d.DB, "clubs", []*club{young, old}); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	d.wantCount(t, "clubs", 2)
	d.wantCount(t, "members", 5)
	d.wantCount(t, fmt.Sprintf("clubs young JOIN members l ON l.id = young.leader_id JOIN members b ON b.id = l.by_id JOIN clubs old ON old.id = l.club_id "+
		"WHERE young.id = %d AND old.id = %d AND b.club_id = old.id AND old.leader_id = %d AND b.by_id = old.leader_id", young.ID, old.ID, first.ID), 1)

	// None of these can be the first.
	none := &club{Leader: &member{}}
	none.Members = []*member{none.Leader}
	var row *sqlxhelper.RowError
	if err := h.InsertGraph(ctx, d.DB, "clubs", none); !errors.As(err, &row) || none.ID != 0 {
		t.Errorf("InsertGraph(club led by its own member) = %v, key %d; want a RowError, 0", err, none.ID)
	}
	d.wantCount(t, "clubs", 2)
}

// A reply refers to another row of its table. InsertMany knows of no relation.
type reply struct {
	types.Model
	To    types.NullSnowflake `db:"reply_to"`
	Other *types.Snowflake    `db:"other"`
	N     int                 `db:"n"`
}

// InsertMany stores rows that refer to each other, or not, whatever their order and
// number. Which rows are in one statement must not decide it.
func (d Database) rowsThatReferToEachOther(t *testing.T) {
	d.tables(t, "CREATE TABLE replies (id BIGINT PRIMARY KEY, reply_to BIGINT, other BIGINT, n BIGINT NOT NULL UNIQUE, "+
		"FOREIGN KEY (reply_to) REFERENCES replies (id), FOREIGN KEY (other) REFERENCES replies (id))")
	if d.Dialect != sqlxhelper.MySQL { // which has these indexes for the foreign keys
		d.exec(t, "CREATE INDEX replies_to ON replies (reply_to)")
		d.exec(t, "CREATE INDEX replies_other ON replies (other)")
	}
	if d.Dialect == sqlxhelper.SQLite {
		var on bool
		if err := d.DB.Get(&on, "PRAGMA foreign_keys"); err != nil || !on {
			t.Skip("foreign keys are off")
		}
	}
	h := sqlxhelper.New(NewCounter(0))
	unassigned := make([]reply, 300) // the keys that the pointers lead to are not there yet
	for i := range unassigned[1:] {
		unassigned[i].N, unassigned[i].Other = i+1, &unassigned[i+1].ID
	}
	if err := h.InsertMany(ctx, d.DB, "replies", unassigned); err != nil {
		t.Errorf("InsertMany(pointers to the keys of the next rows) = %v; want nil", err)
	}
	d.wantCount(t, "replies r JOIN replies o ON r.other = o.id AND o.n = (r.n + 1) % 300", 299)
	d.exec(t, "UPDATE replies SET other = NULL")
	d.exec(t, "DELETE FROM replies")
	for _, n := range []int{2, 30, 51, 3000} {
		for name, to := range map[string]func(i int) int{
			"the next":        func(i int) int { return i + 1 },
			"the last":        func(int) int { return n - 1 },
			"the one across":  func(i int) int { return n - 1 - i },
			"the one before":  func(i int) int { return i - 1 },
			"itself":          func(i int) int { return i },
			"some other rows": func(i int) int { return i*i%(n-i) + i },
		} {
			rows := make([]reply, n)
			for i := range rows {
				rows[i].ID, rows[i].N = types.Snowflake(1000+(i*7)%n), i
				if n%7 == 0 {
					rows[i].ID = types.Snowflake(1000 + i)
				}
			}
			for i := range rows {
				j := to(i)
				if j < 0 || j >= n || name == "the one across" && j < i {
					continue
				}
				if i%2 == 0 {
					rows[i].To = types.NullSnowflake{Snowflake: rows[j].ID, Valid: true}
				} else {
					rows[i].Other = &rows[j].ID
				}
			}
			if err := h.InsertMany(ctx, d.DB, "replies", rows); err != nil {
				t.Errorf("InsertMany(%d rows that refer to %s) = %v; want nil", n, name, err)
			}
			d.wantCount(t, "replies", n)
			// MySQL deletes row by row as well.
			d.exec(t, "UPDATE replies SET reply_to = NULL, other = NULL")
			d.exec(t, "DELETE FROM replies")

			// An error counts the rows as they were given.
			rows[0].N = -1
			rows[n-1].N = -1
			err := h.InsertMany(ctx, d.DB, "replies", rows)
			var e *sqlxhelper.InsertError
			if !errors.As(err, &e) || !errors.Is(err, sqlxhelper.ErrDuplicateKey) || e.Row >= 0 && (e.Row != 0 && e.Row != n-1 || e.Key != rows[e.Row].ID || e.Path != fmt.Sprintf("sqlxcases.reply[%d]", e.Row)) {
				t.Errorf("InsertMany(%d rows that refer to %s, two alike) = %+v; want an InsertError of the first or the last row", n, name, e)
			}
			d.wantCount(t, "replies", 0)
		}
	}
}
