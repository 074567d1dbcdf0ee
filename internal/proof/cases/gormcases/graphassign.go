package gormcases

import (
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// graphAssignCases test Plugin.Assign on a database. What it has assigned can be
// stored, and is what GORM would have stored.
var graphAssignCases = []testCase{
	{"AssignedGraphIsStoredInOneStatementPerTable", func(e *env) {
		e.migrate(orderModels...)
		shared := &Customer{Email: "shared"}
		labels := []Label{{Text: "l0"}, {Text: "l1"}}
		var orders []*Order
		for i := range 4 {
			orders = append(orders, &Order{
				Number:   fmt.Sprint(i),
				Customer: shared,
				Items:    []Item{{SKU: fmt.Sprint(i, "a")}, {SKU: fmt.Sprint(i, "b")}, {SKU: fmt.Sprint(i, "c")}},
				Receipt:  &Receipt{Text: fmt.Sprint(i)},
			})
		}
		orders[3].Customer = &Customer{Email: "own"}
		e.assign(&orders)
		e.assign(&labels)
		for _, o := range orders {
			o.Labels = labels // both ends have keys by now
		}
		customers := []*Customer{shared, orders[3].Customer}
		var items []Item
		var receipts []*Receipt
		for _, o := range orders {
			items = append(items, o.Items...)
			receipts = append(receipts, o.Receipt)
		}
		given := e.src.given
		equal(e, "keys asked for", given, 2+4+12+4+2)
		equal(e, "statements of Assign", len(e.log.statements("")), 0)
		for _, table := range []any{customers, labels, items, receipts} {
			if fmt.Sprintf("%T", table) == fmt.Sprintf("%T", items) {
				// The labels are stored, so of them only the join rows are missing.
				e.must(e.db.Omit("Customer", "Items", "Receipt", "Labels.*").CreateInBatches(orders, 100))
			}
			e.must(e.db.Omit(clause.Associations).CreateInBatches(table, 100))
		}
		equal(e, "INSERTs", len(e.log.statements("INSERT")), 6) // the sixth is the join table
		equal(e, "keys asked for", e.src.given, given)
		for _, o := range orders {
			e.stored("orders", "number", o.Number, o.ID)
			e.stored("receipts", "order_id", o.ID, o.Receipt.ID)
			equal(e, "orders of the customer", len(e.keys("orders", "id", "customer_id", o.Customer.ID)), map[bool]int{true: 3, false: 1}[o.Customer == shared])
			equal(e, "items of the order", len(e.keys("items", "id", "order_id", o.ID)), 3)
			equal(e, "labels of the order", len(e.keys("order_labels", "label_id", "order_id", o.ID)), 2)
			for _, item := range o.Items {
				e.stored("items", "sku", item.SKU, item.ID)
			}
		}
		e.count("customers", 2)
	}},
	{"JoinRowsOfAnAssignedGraphCanBeStoredAsRows", func(e *env) {
		type OrderLabel struct {
			OrderID types.Snowflake `gorm:"primaryKey"`
			LabelID types.Snowflake `gorm:"primaryKey"`
		}
		e.migrate(orderModels...)
		o := Order{Number: "A", Labels: []Label{{Text: "x"}, {Text: "y"}}}
		e.assign(&o)
		rows := []OrderLabel{{o.ID, o.Labels[0].ID}, {o.ID, o.Labels[1].ID}}
		e.must(e.db.Create(o.Labels))
		e.must(e.db.Omit(clause.Associations).Create(&o))
		e.must(e.db.Create(rows))
		var found Order
		e.must(e.db.Preload("Labels", func(tx *gorm.DB) *gorm.DB { return tx.Order("id") }).Take(&found, o.ID))
		equal(e, "labels", fmt.Sprint(found.Labels), fmt.Sprint(o.Labels))
	}},
	{"AssignedJoinModelGetsItsKeysWhenGORMCreatesIt", func(e *env) {
		type Team struct {
			ID   types.Snowflake
			Name string `gorm:"size:40"`
		}
		type Person struct {
			ID    types.Snowflake
			Teams []Team `gorm:"many2many:memberships"`
		}
		type Membership struct {
			ID       types.Snowflake `gorm:"primaryKey"`
			PersonID types.Snowflake `gorm:"uniqueIndex:pair"`
			TeamID   types.Snowflake `gorm:"uniqueIndex:pair"`
		}
		if err := e.db.SetupJoinTable(&Person{}, "Teams", &Membership{}); err != nil {
			e.Fatalf("SetupJoinTable = %v; want no error", err)
		}
		e.migrate(&Team{}, &Person{}, &Membership{})
		p := Person{Teams: []Team{{Name: "a"}, {Name: "b"}}}
		e.assign(&p)
		equal(e, "keys asked for", e.src.given, 3)
		e.must(e.db.Create(p.Teams))
		e.must(e.db.Omit("Teams.*").Create(&p))
		list := e.keys("memberships", "id", "person_id", p.ID)
		equal(e, "memberships", len(list), 2)
		for _, id := range list {
			e.fresh("membership", types.Snowflake(id))
		}
	}},
	{"AssignedTreeIsStoredInOneStatement", func(e *env) {
		e.migrate(&Node{})
		root := Node{Name: "root", Children: []Node{{Name: "a", Children: []Node{{Name: "b"}}}, {Name: "c"}}}
		e.assign(&root)
		list := []Node{root, root.Children[0], root.Children[1], root.Children[0].Children[0]}
		e.must(e.db.Omit(clause.Associations).Create(list))
		equal(e, "children of root", len(e.keys("nodes", "id", "parent_id", root.ID)), 2)
		equal(e, "children of a", len(e.keys("nodes", "id", "parent_id", root.Children[0].ID)), 1)
		equal(e, "INSERTs", len(e.log.statements("INSERT")), 1)
	}},
	{"AssignedPolymorphicChildrenAreStoredUnderTheirOwners", func(e *env) {
		e.migrate(&Cat{}, &Dog{}, &Toy{})
		cat, dog := Cat{Toy: Toy{Name: "mouse"}}, Dog{Toys: []Toy{{Name: "ball"}, {Name: "bone"}}}
		e.assign(&cat)
		e.assign(&dog)
		toys := append([]Toy{cat.Toy}, dog.Toys...)
		e.must(e.db.Omit(clause.Associations).Create(&cat))
		e.must(e.db.Omit(clause.Associations).Create(&dog))
		e.must(e.db.Create(toys))
		var foundCat Cat
		var foundDog Dog
		e.must(e.db.Preload("Toy").Take(&foundCat))
		e.must(e.db.Preload("Toys", func(tx *gorm.DB) *gorm.DB { return tx.Order("id") }).Take(&foundDog))
		equal(e, "cat", foundCat, cat)
		equal(e, "dog", fmt.Sprint(foundDog), fmt.Sprint(dog))
	}},
	// Assign sets what Create sets, so Create changes none of it.
	{"CreateKeepsWhatAssignHasSet", func(e *env) {
		e.migrate(orderModels...)
		o := Order{
			Number:   "A",
			Customer: &Customer{Email: "a@x"},
			Items:    []Item{{SKU: "1"}, {SKU: "2"}},
			Receipt:  &Receipt{Text: "r"},
			Labels:   []Label{{Text: "l1"}, {Text: "l2"}},
		}
		e.assign(&o)
		before := fmt.Sprint(o.ID, *o.CustomerID, *o.Customer, o.Items, *o.Receipt, o.Labels)
		given := e.src.given
		e.must(e.db.Create(&o))
		equal(e, "keys asked for", e.src.given, given)
		equal(e, "graph", fmt.Sprint(o.ID, *o.CustomerID, *o.Customer, o.Items, *o.Receipt, o.Labels), before)
		e.stored("orders", "number", "A", o.ID)
		e.stored("receipts", "order_id", o.ID, o.Receipt.ID)
		equal(e, "labels of the order", len(e.keys("order_labels", "label_id", "order_id", o.ID)), 2)
	}},
	{"AssignAgreesWithCreateOnContradictingForeignKeys", func(e *env) {
		e.migrate(orderModels...)
		wrong := types.Snowflake(77)
		graph := func(number string) *Order {
			return &Order{
				Number: number, CustomerID: &wrong, Customer: &Customer{Email: number},
				Items: []Item{{SKU: number, OrderID: wrong}}, Receipt: &Receipt{Text: number, OrderID: wrong},
			}
		}
		assigned, created := graph("A"), graph("B")
		e.assign(assigned)
		e.must(e.db.Create(created))
		for _, o := range []*Order{assigned, created} {
			equal(e, o.Number+".CustomerID", *o.CustomerID, o.Customer.ID)
			equal(e, o.Number+".Items[0].OrderID", o.Items[0].OrderID, o.ID)
			equal(e, o.Number+".Receipt.OrderID", o.Receipt.OrderID, o.ID)
		}
	}},
	// The stored form of such a key is not the one in memory. A foreign key has the
	// stored form.
	{"AssignAgreesWithCreateOnKeysWithASerializer", func(e *env) {
		type Lock struct {
			ID string `gorm:"primaryKey;size:40;serializer:json"`
		}
		type Door struct {
			ID      types.Snowflake
			PlainID string `gorm:"size:40"`
			Plain   *Lock  `gorm:"constraint:-"`
			SameID  string `gorm:"size:40;serializer:json"`
			Same    *Lock  `gorm:"constraint:-"`
		}
		e.migrate(&Lock{}, &Door{})
		door := func() *Door { return &Door{Plain: &Lock{ID: "a"}, Same: &Lock{ID: "b"}} }
		assigned, created := door(), door()
		e.assign(assigned)
		e.must(e.db.Create(created))
		equal(e, "PlainID", assigned.PlainID, created.PlainID)
		equal(e, "SameID", assigned.SameID, created.SameID)
		equal(e, "locks of the door", len(e.keys("doors", "id", "plain_id", `"a"`)), 1)
	}},
	{"EachStatementAsksTheSourceOnce", func(e *env) {
		e.migrate(orderModels...)
		order := func(number string) Order {
			return Order{
				Number:   number,
				Customer: &Customer{Email: number},
				Items:    []Item{{SKU: "1"}, {SKU: "2"}},
				Receipt:  &Receipt{Text: "r"},
				Labels:   []Label{{Text: number + "l1"}, {Text: number + "l2"}},
			}
		}
		stored := Order{Number: "stored"}
		e.must(e.db.Create(&stored))
		a, many, lots := order("a"), []Order{order("b"), order("c")}, []Label{{Text: "1"}, {Text: "2"}, {Text: "3"}, {Text: "4"}, {Text: "5"}}
		saved, found, again, full := order("d"), Order{}, order("stored"), stored
		full.Items = []Item{{SKU: "6"}, {SKU: "7"}}
		labels := []Label{{Text: "x"}, {Text: "y"}}
		appended := []Item{{SKU: "8"}, {SKU: "9"}}
		maps := []map[string]any{{"text": "m1"}, {"text": "m2"}}
		for _, test := range []struct {
			statement string
			run       func() error
			fills     int // one for each table that gets rows
		}{
			{"Create", func() error { return e.db.Create(&a).Error }, 5},
			{"Create of a slice", func() error { return e.db.Create(&many).Error }, 5},
			{"CreateInBatches", func() error { return e.db.CreateInBatches(&lots, 2).Error }, 3},
			{"Create of maps", func() error { return e.db.Model(&Label{}).Create(maps).Error }, 1},
			{"Save", func() error { return e.db.Save(&saved).Error }, 5},
			{"Save of a slice", func() error { return e.db.Save(&labels).Error }, 1},
			{"FirstOrCreate", func() error { return e.db.FirstOrCreate(&found, Order{Number: "e"}).Error }, 1},
			{"upsert", func() error { return e.db.Clauses(doNothing("number")).Create(&again).Error }, 5},
			{"Updates", func() error { return e.db.Updates(&full).Error }, 1},
			{"Append", func() error { return e.db.Model(&stored).Association("Items").Append(&appended) }, 1},
			{"Replace", func() error {
				return e.db.Model(&stored).Association("Labels").Replace(&[]Label{{Text: "z1"}, {Text: "z2"}})
			}, 1},
			{"generic Create", func() error { return gorm.G[Order](e.db).Create(e.Context(), &Order{Number: "f"}) }, 1},
			{"Create of rows with keys", func() error { return e.db.Create(&[]Label{{ID: 1, Text: "k1"}, {ID: 2, Text: "k2"}}).Error }, 0},
		} {
			before := e.src.fills
			if err := test.run(); err != nil {
				e.Fatalf("%s = %v; want no error", test.statement, err)
			}
			equal(e, "calls of Fill by "+test.statement, e.src.fills-before, test.fills)
		}
	}},
}

// assign assigns keys to a graph with the source of the case. It fails the test
// unless the source was asked at most once.
func (e *env) assign(value any) {
	e.Helper()
	before := e.src.fills
	if err := gormplugin.New(e.src).Assign(e.Context(), e.db, value); err != nil {
		e.Fatalf("Assign(%T) = %v; want no error", value, err)
	}
	if calls := e.src.fills - before; calls > 1 {
		e.Errorf("calls of Fill by Assign(%T) = %d; want at most 1", value, calls)
	}
}
