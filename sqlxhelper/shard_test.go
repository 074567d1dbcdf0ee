package sqlxhelper_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// onShards is a layout with 16 shards.
func onShards() core.Layout {
	l := core.Default()
	l.ShardBits = 4
	return l
}

// keyOn returns a key on a shard, as of a row that is stored.
func keyOn(shard int64) types.Snowflake { return types.Snowflake(1<<40 | shard) }

func nullOn(shard int64) types.NullSnowflake {
	return types.NullSnowflake{Snowflake: keyOn(shard), Valid: true}
}

// A batch has orders. An order is on the shard of its customer, and customers and agents are on
// that of their region. The other types have no tag.
type (
	shBatch struct {
		types.Model
		BestID types.NullSnowflake `db:"best_id"`
		Best   *shCustomer         `db:"-" snowkey:"customers,belongs_to=best_id"`
		Orders []shOrder           `db:"-" snowkey:"orders,fk=batch_id"`
	}
	shOrder struct {
		types.Model
		BatchID    types.NullSnowflake `db:"batch_id"`
		CustomerID types.NullSnowflake `db:"customer_id" snowkey:"shard"`
		FirmID     types.NullSnowflake `db:"firm_id"`
		AgentID    types.NullSnowflake `db:"agent_id"`
		Customer   *shCustomer         `db:"-" snowkey:"customers,belongs_to=customer_id"`
		Firm       *shFirm             `db:"-" snowkey:"firms,belongs_to=firm_id"`
		Agent      *shAgent            `db:"-" snowkey:"agents,belongs_to=agent_id"`
		Lines      []shLine            `db:"-" snowkey:"lines,fk=order_id"`
		Notes      []*shNote           `db:"-" snowkey:"notes,fk=order_id"`
		Invoice    *shInvoice          `db:"-" snowkey:"invoices,fk=order_id"`
	}
	shCustomer struct {
		types.Model
		RegionID types.NullSnowflake `db:"region_id" snowkey:"shard"`
		FirmID   types.NullSnowflake `db:"firm_id"`
		Region   *shRegion           `db:"-" snowkey:"regions,belongs_to=region_id"`
	}
	shFirm struct {
		types.Model
		Customers []*shCustomer `db:"-" snowkey:"customers,fk=firm_id"`
	}
	shAgent struct {
		types.Model
		RegionID types.NullSnowflake `db:"region_id" snowkey:"shard"`
		Notes    []shNote            `db:"-" snowkey:"notes,fk=agent_id"`
	}
	shLine struct {
		types.Model
		OrderID types.Snowflake `db:"order_id"`
		Parts   []shPart        `db:"-" snowkey:"shard,fk=line_id"` // a table may have the name of the tag
	}
	shPart struct {
		types.Model
		LineID *types.Snowflake `db:"line_id"`
	}
	shNote struct {
		types.Model
		OrderID types.NullSnowflake `db:"order_id"`
		AgentID types.NullSnowflake `db:"agent_id"`
	}
	shInvoice struct {
		*shInvoiceKeys
	}
	shInvoiceKeys struct {
		types.Model
		OrderID types.Snowflake `db:"order_id"`
	}
	shRegion struct{ types.Model }
)

func newShardTables(t *testing.T) *sqlx.DB {
	t.Helper()
	db := openSQLite(t)
	execAll(t, db,
		"CREATE TABLE batches (id INTEGER PRIMARY KEY, best_id INTEGER)",
		"CREATE TABLE regions (id INTEGER PRIMARY KEY)",
		"CREATE TABLE firms (id INTEGER PRIMARY KEY)",
		"CREATE TABLE customers (id INTEGER PRIMARY KEY, region_id INTEGER, firm_id INTEGER)",
		"CREATE TABLE agents (id INTEGER PRIMARY KEY, region_id INTEGER)",
		"CREATE TABLE orders (id INTEGER PRIMARY KEY, batch_id INTEGER, customer_id INTEGER, firm_id INTEGER, agent_id INTEGER)",
		"CREATE TABLE lines (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders)",
		"CREATE TABLE shard (id INTEGER PRIMARY KEY, line_id INTEGER REFERENCES lines)",
		"CREATE TABLE notes (id INTEGER PRIMARY KEY, order_id INTEGER, agent_id INTEGER)",
		"CREATE TABLE invoices (id INTEGER PRIMARY KEY, order_id INTEGER)")
	return db
}

// insertOnShards inserts rows that must be accepted, with the keys of a generator.
func insertOnShards(ctx context.Context, t *testing.T, table string, roots any) {
	t.Helper()
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}))
	if err := h.InsertGraph(ctx, newShardTables(t), table, roots); err != nil {
		t.Fatalf("InsertGraph(%T) = %v; want nil", roots, err)
	}
}

func wantShard(t *testing.T, row string, id types.Snowflake, want int64) {
	t.Helper()
	if got := onShards().Shard(id); id == 0 || got != want {
		t.Errorf("%s has key %d on shard %d; want shard %d", row, id, got, want)
	}
}

func shardOf(id types.Snowflake) int64 { return onShards().Shard(id) }

// newShOrder returns an order with two rows of each kind of child.
func newShOrder() shOrder {
	return shOrder{
		Lines:   []shLine{{Parts: []shPart{{}, {}}}, {Parts: []shPart{{}}}},
		Notes:   []*shNote{{}, {}},
		Invoice: &shInvoice{&shInvoiceKeys{}},
	}
}

func wantChildrenOn(t *testing.T, o *shOrder, shard int64) {
	t.Helper()
	for _, l := range o.Lines {
		wantShard(t, "a line", l.ID, shard)
		for _, p := range l.Parts {
			wantShard(t, "a part", p.ID, shard)
		}
	}
	for _, n := range o.Notes {
		wantShard(t, "a note", n.ID, shard)
	}
	wantShard(t, "an invoice", o.Invoice.ID, shard)
}

func TestChildrenFollowTheirParentsShard(t *testing.T) {
	orders := make([]shOrder, 40)
	for i := range orders {
		orders[i] = newShOrder()
		switch i {
		case 7:
			orders[i].ID = keyOn(9)
		case 8:
			orders[i].Lines[1].ID = keyOn(11)
		case 9:
			orders[i].CustomerID = nullOn(5)
		}
	}
	insertOnShards(ctx, t, "orders", orders)
	roots := map[int64]bool{}
	for i := range orders {
		o := &orders[i]
		roots[shardOf(o.ID)] = true
		if i == 8 { // a key that is set is kept, and the rows below it follow it
			wantShard(t, "the line that has its key", o.Lines[1].ID, 11)
			wantShard(t, "its part", o.Lines[1].Parts[0].ID, 11)
			o.Lines = o.Lines[:1]
		}
		wantChildrenOn(t, o, shardOf(o.ID))
	}
	wantShard(t, "the order that has its key", orders[7].ID, 9)
	wantShard(t, "the order of the customer on 5", orders[9].ID, 5)
	if len(roots) != 16 {
		t.Errorf("40 roots are on %d shards; want them even, on 16", len(roots))
	}
}

func TestRootsTakeTheShardOfTheContext(t *testing.T) {
	orders := []shOrder{newShOrder(), newShOrder()}
	orders[1].ID = keyOn(2)
	insertOnShards(core.OnShard(ctx, 6), t, "orders", orders)
	wantShard(t, "the order", orders[0].ID, 6)
	wantChildrenOn(t, &orders[0], 6)
	wantShard(t, "the order that has its key", orders[1].ID, 2)
	wantChildrenOn(t, &orders[1], 2)
}

// The call itself sets the foreign key that has the tag, and that cannot be NULL.
func TestATagMayBeTheForeignKeyThatTheCallSets(t *testing.T) {
	type child struct {
		types.Model
		ParentID types.Snowflake `db:"parent_id" snowkey:"shard"`
	}
	type parent struct {
		types.Model
		OwnerID  types.Snowflake             `db:"owner_id" snowkey:"shard"`
		Owner    *shTagged[*types.Snowflake] `db:"-" snowkey:"owners,belongs_to=owner_id"`
		Children []child                     `db:"-" snowkey:"children,fk=parent_id"`
	}
	db := openSQLite(t)
	execAll(t, db,
		"CREATE TABLE owners (id INTEGER PRIMARY KEY, of_id INTEGER)",
		"CREATE TABLE parents (id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL REFERENCES owners)",
		"CREATE TABLE children (id INTEGER PRIMARY KEY, parent_id INTEGER NOT NULL REFERENCES parents)")
	at := keyOn(9)
	rows := []parent{
		{Owner: &shTagged[*types.Snowflake]{Of: &at}, Children: make([]child, 2)},
		{Owner: &shTagged[*types.Snowflake]{Model: types.Model{ID: keyOn(9)}}, OwnerID: keyOn(9), Children: make([]child, 2)},
	}
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}))
	if err := h.InsertGraph(ctx, db, "parents", rows); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	for _, p := range rows {
		wantShard(t, "a parent", p.ID, 9)
		wantShard(t, "its child", p.Children[1].ID, 9)
	}
}

// The tag refers to a row of the call, whose shard is not known before it has its key.
func TestRowsFollowTheNewRowToWhichTheirTagRefers(t *testing.T) {
	for name, customer := range map[string]*shCustomer{
		"with a tag":                {RegionID: nullOn(7)},
		"with the key and a tag":    {Model: types.Model{ID: keyOn(7)}, RegionID: nullOn(8)},
		"with a region that is set": {Region: &shRegion{types.Model{ID: keyOn(7)}}},
		"of a firm with a key":      {},
	} {
		t.Run(name, func(t *testing.T) {
			orders := []shOrder{newShOrder(), newShOrder()}
			orders[0].Customer, orders[1].Customer = customer, customer
			if name == "of a firm with a key" {
				orders[1].Firm = &shFirm{Model: types.Model{ID: keyOn(7)}, Customers: []*shCustomer{customer}}
			}
			insertOnShards(ctx, t, "orders", orders)
			wantShard(t, "the customer", customer.ID, 7)
			for i := range orders {
				wantShard(t, "an order", orders[i].ID, 7)
				wantChildrenOn(t, &orders[i], 7)
			}
		})
	}
}

type shTagged[K any] struct {
	types.Model
	Of K `db:"of_id" snowkey:"shard"`
}

type taggedRow interface{ key() types.Snowflake }

func (r *shTagged[K]) key() types.Snowflake { return r.ID }

func TestATagMayBeAnyKindOfKey(t *testing.T) {
	type mark struct{}
	at, typed, number := keyOn(5), types.ID[mark](keyOn(5)), uint64(keyOn(5))
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE tagged (id INTEGER PRIMARY KEY, of_id INTEGER)")
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}), sqlxhelper.WithWideIntegerKeys())
	for _, row := range []taggedRow{
		&shTagged[types.Snowflake]{Of: keyOn(5)}, &shTagged[*types.Snowflake]{Of: &at}, &shTagged[types.NullSnowflake]{Of: nullOn(5)},
		&shTagged[types.ID[mark]]{Of: typed}, &shTagged[*types.ID[mark]]{Of: &typed}, &shTagged[types.NullID[mark]]{Of: types.NullID[mark]{ID: typed, Valid: true}},
		&shTagged[uint64]{Of: number}, &shTagged[*uint64]{Of: &number}, &shTagged[int64]{Of: int64(number)},
		&shTagged[sql.NullInt64]{Of: sql.NullInt64{Int64: int64(number), Valid: true}}, &shTagged[sql.Null[uint]]{Of: sql.Null[uint]{V: uint(number), Valid: true}},
	} {
		if err := h.Insert(ctx, db, "tagged", row); err != nil {
			t.Errorf("Insert(%T) = %v; want nil", row, err)
		}
		wantShard(t, "a row", row.key(), 5)
	}
	for _, row := range []taggedRow{
		&shTagged[*types.Snowflake]{}, &shTagged[types.NullSnowflake]{}, &shTagged[types.NullID[mark]]{}, &shTagged[*uint64]{}, &shTagged[sql.NullInt64]{},
		&shTagged[types.NullSnowflake]{Of: types.NullSnowflake{Snowflake: keyOn(5)}},
	} {
		if err := h.Insert(core.OnShard(ctx, 3), db, "tagged", row); err != nil {
			t.Errorf("Insert(%T) of NULL = %v; want nil", row, err)
		}
		wantShard(t, "a row with NULL", row.key(), 3)
	}
}

func TestContradictingShardsAreRefusedBeforeAnyKeyIsSet(t *testing.T) {
	minus := types.Snowflake(-5)
	line := shLine{Parts: []shPart{{}}}
	for name, test := range map[string]struct {
		ctx  context.Context
		rows any
		path string
		says string
	}{
		"the parent has its key": {ctx, &shBatch{Model: types.Model{ID: keyOn(2)}, Orders: []shOrder{{CustomerID: nullOn(2)}, {CustomerID: nullOn(3), Lines: []shLine{line}}}},
			"shBatch.Orders[1]", "CustomerID is 1099511627779, on shard 3, and the parent that holds it is on shard 2"},
		"the parent is on the context's": {core.OnShard(ctx, 2), &shBatch{Orders: []shOrder{{CustomerID: nullOn(3)}}},
			"shBatch.Orders[0]", "on shard 3, and the parent that holds it is on shard 2"},
		"a new customer": {core.OnShard(ctx, 2), &shBatch{Orders: []shOrder{{Customer: &shCustomer{RegionID: nullOn(3)}}}},
			"shBatch.Orders[0]", "CustomerID is for a key on shard 3, and the parent that holds it is on shard 2"},
		"the context": {core.OnShardOf(ctx, keyOn(2)), []shOrder{{CustomerID: nullOn(2)}, {CustomerID: nullOn(3)}},
			"shOrder[1]", "CustomerID is 1099511627779, on shard 3, and the context asks for shard 2"},
		"the context and a new customer": {core.OnShard(ctx, 2), []*shOrder{{Customer: &shCustomer{RegionID: nullOn(3)}}},
			"shOrder[0]", "CustomerID is for a key on shard 3, and the context asks for shard 2"},
		"zero":           {ctx, []shTagged[types.Snowflake]{{Of: keyOn(1)}, {}}, "shTagged[github.com/snowkey/snowkey/types.Snowflake][1]", "Of is 0, and names the shard"},
		"a pointer to 0": {ctx, &shTagged[*types.Snowflake]{Of: new(types.Snowflake)}, "shTagged[*github.com/snowkey/snowkey/types.Snowflake]", "Of is 0, and names the shard"},
		"valid and zero": {ctx, &shTagged[types.NullSnowflake]{Of: types.NullSnowflake{Valid: true}}, "", "Of is 0, and names the shard"},
		"negative":       {ctx, &shTagged[*types.Snowflake]{Of: &minus}, "", "Of is -5, want 0"},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newMock(t) // which expects no statement
			h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}), sqlxhelper.WithDialect(sqlxhelper.PostgreSQL))
			err := h.InsertGraph(test.ctx, db, "t", test.rows)
			var row *sqlxhelper.RowError
			if !errors.As(err, &row) || !strings.HasPrefix(row.Path, "sqlxhelper_test."+test.path) || !strings.Contains(row.Problem, test.says) {
				t.Fatalf("InsertGraph() = %v; want a RowError of %s with %q", err, test.path, test.says)
			}
			if errors.Is(err, sqlxhelper.ErrShard) == errors.Is(err, types.ErrRange) {
				t.Errorf("InsertGraph() = %v; want ErrShard, or ErrRange for a negative key", err)
			}
			for _, id := range newKeys(test.rows) {
				t.Errorf("a row has the key %d; want none", id)
			}
		})
	}
}

// The source chooses the shard of the batch. If it happens to be that of the order's customer, the
// call must not pass, or else one call in sixteen would.
func TestATagIsRefusedBelowARowThatGoesAnywhere(t *testing.T) {
	for shard := range int64(16) {
		for name, order := range map[string]shOrder{
			"a stored customer": {CustomerID: nullOn(shard)},
			"a new customer":    {Customer: &shCustomer{RegionID: nullOn(shard)}},
		} {
			db, _ := newMock(t) // which expects no statement
			h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}), sqlxhelper.WithDialect(sqlxhelper.PostgreSQL))
			err := h.InsertGraph(ctx, db, "batches", &shBatch{Orders: []shOrder{order}})
			if !errors.Is(err, sqlxhelper.ErrShard) || !strings.Contains(err.Error(), "the parent that holds it is on one that is still to be chosen") {
				t.Errorf("%s on shard %d: InsertGraph() = %v; want ErrShard that says the parent may be anywhere", name, shard, err)
			}
		}
	}
}

// newKeys returns the keys of rows that have none from keyOn.
func newKeys(rows any) (keys []types.Snowflake) {
	add := func(ids ...types.Snowflake) {
		for _, id := range ids {
			if id != 0 && id>>4 != keyOn(0)>>4 {
				keys = append(keys, id)
			}
		}
	}
	order := func(o *shOrder) {
		add(o.ID, o.CustomerID.Snowflake, o.BatchID.Snowflake)
		if o.Customer != nil {
			add(o.Customer.ID)
		}
		for _, l := range o.Lines {
			add(l.ID, l.OrderID, l.Parts[0].ID)
		}
	}
	switch rows := rows.(type) {
	case *shBatch:
		add(rows.ID)
		for i := range rows.Orders {
			order(&rows.Orders[i])
		}
	case []shOrder:
		for i := range rows {
			order(&rows[i])
		}
	case []*shOrder:
		for _, o := range rows {
			order(o)
		}
	case []shTagged[types.Snowflake]:
		add(rows[0].ID, rows[1].ID)
	case taggedRow:
		add(rows.key())
	default:
		panic("no keys are known")
	}
	return keys
}

// The tag is ignored for a row whose key is set, so a retry writes it where it is.
func TestRowsThatHaveTheirKeysKeepTheirShards(t *testing.T) {
	row := shTagged[types.Snowflake]{Model: types.Model{ID: keyOn(2)}, Of: keyOn(3)}
	none := shTagged[types.Snowflake]{Model: types.Model{ID: keyOn(4)}}
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE tagged (id INTEGER PRIMARY KEY, of_id INTEGER)")
	for name, src := range map[string]sqlxhelper.Source{"shards": coretest.NewGenerator(coretest.Config{Layout: onShards()}), "no source": nil} {
		if err := sqlxhelper.New(src).InsertMany(core.OnShard(ctx, 5), db, "tagged", []*shTagged[types.Snowflake]{&row, &none}); err != nil {
			t.Errorf("%s: InsertMany() = %v; want nil", name, err)
		}
		wantShard(t, "the row", row.ID, 2)
		wantShard(t, "the row without a tag", none.ID, 4)
		execAll(t, db, "DELETE FROM tagged")
	}
}

func TestShardThatIsOutOfRangeIsTheErrorOfTheSource(t *testing.T) {
	db, _ := newMock(t)
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}), sqlxhelper.WithDialect(sqlxhelper.SQLite))
	for _, rows := range []any{[]pair{{}}, []shTagged[types.NullSnowflake]{{}}, &shBatch{}} {
		err := h.InsertGraph(core.OnShard(ctx, 16), db, "t", rows)
		var value *core.ValueError
		if !errors.As(err, &value) || !strings.HasPrefix(err.Error(), "sqlxhelper: ") || !strings.Contains(err.Error(), "16") {
			t.Errorf("InsertGraph(%T on shard 16) = %v; want a *core.ValueError", rows, err)
		}
	}
}

// Such a tag would be ignored, and rows would be on other shards than the program says.
func TestTagsNeedASourceWithShards(t *testing.T) {
	db, _ := newMock(t)
	hidden := coretest.NewGenerator(coretest.Config{Layout: onShards()})
	for name, src := range map[string]sqlxhelper.Source{
		"a layout without": coretest.NewGenerator(coretest.Config{}),
		"no methods":       sqlxcases.NewCounter(0),
		"a function":       sqlxhelper.SourceFunc(hidden.Next),
	} {
		h := sqlxhelper.New(src, sqlxhelper.WithDialect(sqlxhelper.SQLite))
		for range 2 { // also if the plan is known
			err := h.InsertMany(ctx, db, "batches", []shBatch{})
			var plan *sqlxhelper.PlanError
			if !errors.As(err, &plan) || plan.Type.Name() != "shCustomer" || plan.Field != "RegionID" || !strings.Contains(plan.Problem, "Layout.ShardBits") {
				t.Errorf("%s: InsertMany() = %v; want a PlanError of shCustomer.RegionID", name, err)
			}
		}
	}
}

func TestSequencesAreOnTheShardsOfTheirTags(t *testing.T) {
	type row = shTagged[types.Snowflake]
	const n = 12000 // more than two chunks
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}))
	stored := func(t *testing.T, db *sqlx.DB) (rows []row) {
		t.Helper()
		if err := db.Select(&rows, "SELECT id, of_id FROM tagged ORDER BY id"); err != nil || len(rows) != n {
			t.Fatalf("%d rows, %v; want %d", len(rows), err, n)
		}
		return rows
	}
	open := func(t *testing.T) *sqlx.DB {
		t.Helper()
		db := openSQLite(t)
		execAll(t, db, "CREATE TABLE tagged (id INTEGER PRIMARY KEY, of_id INTEGER)")
		return db
	}
	check := func(t *testing.T, db *sqlx.DB) {
		t.Helper()
		for _, r := range stored(t, db) {
			if shardOf(r.ID) != shardOf(r.Of) {
				t.Fatalf("a row of %d is on shard %d; want %d", r.Of, shardOf(r.ID), shardOf(r.Of))
			}
		}
	}
	t.Run("structs", func(t *testing.T) {
		db := open(t)
		if _, err := sqlxhelper.InsertSeq(ctx, h, db, "tagged", func(yield func(row, error) bool) {
			for i := range n {
				if !yield(row{Of: keyOn(int64(i * i % 16))}, nil) {
					return
				}
			}
		}); err != nil {
			t.Fatalf("InsertSeq() = %v; want nil", err)
		}
		check(t, db)
	})
	t.Run("pointers", func(t *testing.T) {
		db := open(t)
		if _, err := sqlxhelper.InsertSeq(ctx, h, db, "tagged", func(yield func(*row, error) bool) {
			for i := range n {
				r := &row{Of: keyOn(int64(i * i % 16))}
				if !yield(r, nil) {
					return
				}
				wantShard(t, "the row that was yielded", r.ID, shardOf(r.Of))
			}
		}); err != nil {
			t.Fatalf("InsertSeq() = %v; want nil", err)
		}
		check(t, db)
	})
	t.Run("refused", func(t *testing.T) {
		db := open(t)
		seq := func(wrong types.Snowflake) iter.Seq2[*row, error] {
			return func(yield func(*row, error) bool) {
				for i := range 6000 {
					r := &row{Of: keyOn(1)}
					if i == 5500 {
						r.Of = wrong
					}
					if !yield(r, nil) {
						return
					}
				}
			}
		}
		for _, wrong := range []types.Snowflake{0, keyOn(2)} {
			_, err := sqlxhelper.InsertSeq(core.OnShard(ctx, 1), h, db, "tagged", seq(wrong))
			var refused *sqlxhelper.RowError
			if !errors.As(err, &refused) || !errors.Is(err, sqlxhelper.ErrShard) || !strings.HasSuffix(refused.Path, "[5500]") {
				t.Errorf("InsertSeq(row 5500 of %d) = %v; want ErrShard of row 5500", wrong, err)
			}
		}
		if _, err := sqlxhelper.InsertSeq(core.OnShard(ctx, 16), h, db, "tagged", seq(keyOn(1))); !errors.As(err, new(*core.ValueError)) {
			t.Errorf("InsertSeq(on shard 16) = %v; want a *core.ValueError", err)
		}
		wantRows(t, db, "tagged", 0)
	})
}

// In a circle of tables a key can change its shard with each level of stored rows.
func TestFailedUpsertRestoresKeysThatHaveChangedTheirShardTwice(t *testing.T) {
	db := openSQLite(t)
	execAll(t, db,
		"CREATE TABLE folders (id INTEGER PRIMARY KEY, name TEXT UNIQUE, file_id INTEGER)",
		"CREATE TABLE files (id INTEGER PRIMARY KEY, folder_id INTEGER, size INTEGER CHECK (size >= 0))",
		fmt.Sprintf("INSERT INTO folders VALUES (%d, 'a', NULL), (%d, 'b', NULL)", keyOn(9), keyOn(10)))
	bad := &shFile{Size: -1}
	root := shFolder{Name: "a", Files: []*shFile{{Folders: []*shFolder{{Name: "b", Files: []*shFile{bad}}}}}}
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}), sqlxhelper.OnConflictDoNothing("name"))
	insert := func() error { return h.InsertGraph(core.OnShard(ctx, 3), db, "folders", &root) }
	if err := insert(); err == nil {
		t.Error("InsertGraph(a file of size -1) = nil; want an error")
	}
	file := root.Files[0]
	for what, id := range map[string]types.Snowflake{"the folder": root.ID, "its file": file.ID, "the folder in it": file.Folders[0].ID, "the file in that": bad.ID} {
		wantShard(t, what, id, 3)
	}
	root.ID, file.ID, file.FolderID, bad.ID, bad.FolderID, bad.Size = 0, 0, 0, 0, 0, 1
	file.Folders[0].ID, file.Folders[0].FileID = 0, types.NullSnowflake{}
	if err := insert(); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	wantShard(t, "the file of the stored folder", file.ID, 9)
	wantShard(t, "the file of the other stored folder", bad.ID, 10)
}

type shFolder struct {
	types.Model
	Name   string              `db:"name"`
	FileID types.NullSnowflake `db:"file_id"`
	Files  []*shFile           `db:"-" snowkey:"files,fk=folder_id"`
}

type shFile struct {
	types.Model
	FolderID types.Snowflake `db:"folder_id"`
	Size     int             `db:"size"`
	Folders  []*shFolder     `db:"-" snowkey:"folders,fk=file_id"`
}

// InTx proves a commit by these keys.
func TestInTxRecordsTheKeysOnTheirShards(t *testing.T) {
	db := newShardTables(t)
	h := sqlxhelper.New(coretest.NewGenerator(coretest.Config{Layout: onShards()}))
	o := shOrder{CustomerID: nullOn(6), Lines: []shLine{{}}}
	err := sqlxhelper.InTx(ctx, db, nil, func(tx *sqlx.Tx) error {
		if err := h.InsertGraph(ctx, tx, "orders", &o); err != nil {
			return err
		}
		got := sqlxhelper.Noted(tx)
		if want := []types.Snowflake{o.ID, o.Lines[0].ID}; !slices.Equal(got, want) || shardOf(got[1]) != 6 {
			t.Errorf("recorded keys = %v; want %v", got, want)
		}
		return nil
	})
	if err != nil {
		t.Errorf("InTx() = %v; want nil", err)
	}
}
