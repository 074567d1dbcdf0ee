package gormcases

import (
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// An Event is a row with nothing but a key of interest.
type Event struct {
	gormplugin.Model
	Name string `gorm:"size:40"`
}

// events stores rows with these keys.
func (e *env) events(ids ...types.Snowflake) {
	e.Helper()
	e.migrate(&Event{})
	list := make([]Event, len(ids))
	for i, id := range ids {
		list[i] = Event{Model: gormplugin.Model{ID: id}, Name: id.String()}
	}
	e.must(e.db.CreateInBatches(&list, 500))
	e.log.reset()
}

// found fails the test unless tx finds rows with the ids want, in that order.
func found[T any](e *env, what string, tx *gorm.DB, want ...types.Snowflake) {
	e.Helper()
	var list []T
	e.must(tx.Find(&list))
	equal(e, what, idsOf(list), want)
}

func idsOf[T any](list []T) (ids []types.Snowflake) {
	for _, row := range list {
		ids = append(ids, reflect.ValueOf(row).FieldByName("ID").Interface().(types.Snowflake))
	}
	return ids
}

var scopeCases = []testCase{
	{"ConditionsSelectWhatAFilterInGoDoes", func(e *env) {
		few := core.Layout{Epoch: time.Unix(-1e9, 0), Unit: time.Second, TimeBits: 4, SequenceBits: 2}
		for _, layout := range []core.Layout{core.Twitter(), few} {
			db := e.with(struct { // whose own layout has no say
				gormplugin.Source
				core.Layout
			}{e.src, core.Default()}, gormplugin.WithLayout(layout))
			e.migrate(&Event{})
			e.must(db.Where("1 = 1").Unscoped().Delete(&Event{}))
			ids, list := selections(layout)
			e.events(ids...)
			e.must(db.Delete(&Event{}, ids[1:3]))
			for n, a := range list {
				for m, joining := range joinings {
					b, end := list[(7*n+m)%len(list)], []string{"Find", "Pluck", "Update", "Delete", "subquery"}[(n+m)%5]
					want := slices.DeleteFunc(slices.Concat(ids[:1], ids[3:]), func(id types.Snowflake) bool {
						return joining.selects(a.selects(id), b.selects(id)) == (end == "Delete")
					})
					e.ok("Rollback", undone(db, func(tx *gorm.DB) error {
						model := func() *gorm.DB { return tx.Model(&Event{}) }
						got, err := selected(end, joining.join(model(), a.condition, b.condition), model)
						if err != nil || !slices.Equal(got, want) {
							e.Errorf("%s of %s %s, %s = %d, %v; want %d", end, joining.name, a.text, b.text, got, err, want)
						}
						return nil
					}))
				}
			}
		}
	}},
	{"ColumnOfAConditionIsQualified", func(e *env) {
		db := e.with(e.src, gormplugin.WithLayout(core.Twitter()))
		e.migrate(orderModels...)
		for i := types.Snowflake(1); i <= 3; i++ {
			id := keyAt(i)
			o := Order{Model: gormplugin.Model{ID: id}, Number: id.String(), Customer: &Customer{ID: keyAt(4 - i), Email: id.String()}}
			o.Items = []Item{{SKU: fmt.Sprint("a", i)}, {SKU: fmt.Sprint("b", i)}}
			e.must(db.Create(&o))
		}
		newer := gormplugin.CreatedAfter(keyTime(3))
		orders, customers := e.prefix+"orders", e.prefix+"customers"
		raw := "JOIN " + customers + " ON " + customers + ".id = " + orders + ".customer_id"
		found[Order](e, "a raw join", db.Joins(raw).Where(newer), keyAt(3))
		found[Order](e, "a join on the other table", db.Joins(raw).Where(newer.On(customers+".id")), keyAt(1))
		found[Order](e, "a join of an association", db.Joins("Customer").Where(newer), keyAt(3))
		found[Order](e, "a join with a condition", db.InnerJoins("Customer", db.Where(newer.On("id"))), keyAt(1))
		found[Order](e, "an alias", db.Table(orders+" AS o").Where(newer), keyAt(3))
		found[Order](e, "a derived table", db.Table("(?) AS u", db.Model(&Order{})).Where(newer), keyAt(3))
		found[Order](e, "another column", db.Where(newer.On("customer_id")), keyAt(1))
		found[Order](e, "another field", db.Where(newer.On("CustomerID")), keyAt(1))
		type Mention struct {
			ID       types.Snowflake
			Nullable sql.NullInt64
			Any      sql.Null[uint64]
			Pointer  *int64
			Unsigned uint
		}
		e.migrate(&Mention{})
		for i := types.Snowflake(1); i <= 3; i++ {
			n := keyAt(i).Int64()
			e.must(db.Model(&Mention{}).Create(map[string]any{"id": keyAt(4 - i), "nullable": n, "any": n, "pointer": n, "unsigned": n}))
		}
		for _, name := range []string{"Nullable", "any", "Pointer", "unsigned"} {
			var ids []types.Snowflake
			e.must(db.Model(&Mention{}).Where(newer.On(name)).Pluck("id", &ids))
			equal(e, "a reference in "+name, ids, []types.Snowflake{keyAt(1)})
		}
		for _, target := range []clause.JoinTarget{
			clause.InnerJoin.Association("Customer"),
			clause.InnerJoin.AssociationFrom("Customer", gorm.G[Customer](db)).As("t"),
		} {
			list, err := gorm.G[Order](db).Joins(target, func(on gorm.JoinBuilder, join, _ clause.Table) error {
				on.Where(newer.On(join.Name + ".id"))
				if target.Subquery != nil { // GORM leaves the whole condition to the caller
					on.Where(join.Name+".id = ?", clause.Column{Table: orders, Name: "customer_id"})
				}
				return nil
			}).Find(e.Context())
			equal(e, fmt.Sprintf("a generic join of %+v, error %v,", target, err), idsOf(list), []types.Snowflake{keyAt(1)})
		}
		var list []Order
		e.must(db.Preload("Items", gormplugin.OlderThan(keyAt(3)).On("order_id")).Order("id").Find(&list))
		equal(e, "preloaded items", fmt.Sprint(len(list[0].Items), len(list[1].Items), len(list[2].Items)), "2 2 0")
		var maps []map[string]any
		e.must(db.Table(orders).Where(newer.On("id")).Find(&maps))
		equal(e, "rows as maps", len(maps), 1)
		text := db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Where(newer).Find(&list) })
		if quoted := db.Statement.Quote(clause.Column{Table: orders, Name: "id"}); !strings.Contains(text, quoted+" > ") {
			e.Errorf("SQL = %s; want %s compared", text, quoted)
		}
	}},
	{"ConditionTakesTheKeyOfTheModel", func(e *env) {
		type Ticket struct { // the database's key, and one of ours
			ID     uint
			Public types.Snowflake `gorm:"snowflake;column:open_id"`
		}
		type Coded struct {
			Code int64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
		}
		e.migrate(&Pair{}, &Ticket{}, &Coded{})
		e.must(e.db.Create(&[]Pair{{1, 5}, {1, 7}, {2, 6}, {9, 1}}))
		e.must(e.db.Create(&[]Ticket{{Public: 50}, {Public: 40}}))
		e.must(e.db.Create(&[]Coded{{50}, {40}}))
		for _, test := range []struct {
			condition gormplugin.Condition
			rows      any
			want      string
		}{
			{gormplugin.NewerThan(5), &[]Pair{}, "&[{2 6} {1 7}]"},
			{gormplugin.NewerThan(45), &[]Ticket{}, "&[{1 50}]"},
			{gormplugin.OlderThan(45), &[]Coded{}, "&[{40}]"},
		} {
			e.must(e.db.Where(test.condition).Order(clause.OrderByColumn{Column: clause.PrimaryColumn}).Find(test.rows))
			equal(e, "rows", fmt.Sprint(test.rows), test.want)
		}
	}},
	{"ConditionThatCannotWorkIsAnErrorOfTheStatement", func(e *env) {
		type Counted struct{ ID int64 }
		type Text struct {
			ID string `gorm:"primaryKey;size:40;snowflake"`
		}
		type Twice struct {
			ID   uint
			A, B types.Snowflake `gorm:"snowflake"`
		}
		e.migrate(&Counted{}, &Text{}, &Twice{})
		e.events(keyAt(1))
		without := e.open(&gorm.Config{})
		e.log.reset()
		old := gormplugin.CreatedBefore(time.Now())
		e.fails(without.Where(old).Find(&[]Event{}), gormplugin.ErrNotInstalled)
		e.fails(e.db.Where(old).Find(&[]Event{}), gormplugin.ErrNoLayout)
		e.fails(e.db.Where(old).Delete(&Event{}), gormplugin.ErrNoLayout)
		e.fails(e.db.Unscoped().Where("1 = 1").Where(old).Delete(&Event{}), gormplugin.ErrNoLayout)
		e.fails(e.db.Model(&Event{}).Not(old).Update("name", "x"), gormplugin.ErrNoLayout)
		e.fails(e.db.Table(e.prefix+"events").Where(gormplugin.NewerThan(1)).Find(&[]map[string]any{}), gorm.ErrModelValueRequired)
		for _, test := range []struct {
			into  any
			field string
		}{{&[]Counted{}, "ID"}, {&[]Text{}, "ID"}, {&[]Twice{}, "B"}} {
			var model *gormplugin.ModelError
			if err := e.db.Where(gormplugin.NewerThan(1)).Find(test.into).Error; !errors.As(err, &model) || model.Field != test.field {
				e.Errorf("Find(%T) = %v; want a *ModelError of %s", test.into, err, test.field)
			}
		}
		var model *gormplugin.ModelError
		if err := e.db.Where(gormplugin.NewerThan(1).On("name")).Find(&[]Event{}).Error; !errors.As(err, &model) || model.Field != "Name" {
			e.Errorf("Find by a text = %v; want a *ModelError of Name", err)
		}
		e.must(e.db.Where(gormplugin.NewerThan(1).On("a")).Find(&[]Twice{})) // named, it works
		// GORM loses the error of a subquery. The statement fails all the same.
		for _, lost := range []*gorm.DB{
			e.db.Model(&Event{}).Select("id").Where(old),
			e.db.Model(&Event{}).Select("id").Where(gormplugin.NewerThan(1).On("name")),
		} {
			if err := e.db.Unscoped().Where("id IN (?)", lost).Delete(&Event{}).Error; err == nil {
				e.Error("Delete with a subquery that fails = nil; want an error")
			}
		}
		e.count("events", 1)
	}},
	{"ConditionsAndPagesUseThePrimaryKey", func(e *env) {
		db := e.with(e.src, gormplugin.WithLayout(core.Twitter()))
		e.migrate(&Pair{})
		var ids []types.Snowflake
		var pairs []Pair
		for i := range types.Snowflake(4000) {
			ids = append(ids, keyAt(i+1))
			pairs = append(pairs, Pair{1 + i%20, keyAt(i + 1)})
		}
		e.events(ids...)
		e.must(db.CreateInBatches(&pairs, 1000))
		// Only these two tables are analyzed. A server also has tables of other tests, and each
		// would wait for whoever is changing it.
		analyze := map[string]string{"sqlite": "ANALYZE ", "postgres": "ANALYZE ", "mysql": "ANALYZE TABLE "}[e.db.Name()]
		for _, table := range []string{"events", "pairs"} {
			e.must(db.Exec(analyze + e.prefix + table))
		}
		between := gormplugin.CreatedBetween(keyTime(2000), keyTime(2010))
		for what, query := range map[string]func(tx *gorm.DB) *gorm.DB{
			"CreatedBetween": func(tx *gorm.DB) *gorm.DB { return tx.Unscoped().Where(between).Find(&[]Event{}) },
			"CreatedAfter":   func(tx *gorm.DB) *gorm.DB { return tx.Where(gormplugin.CreatedAfter(keyTime(3991))).Find(&[]Event{}) },
			"CreatedBefore":  func(tx *gorm.DB) *gorm.DB { return tx.Where(gormplugin.CreatedBefore(keyTime(10))).Find(&[]Event{}) },
			"a page of NewerThan": func(tx *gorm.DB) *gorm.DB {
				return tx.Unscoped().Where(gormplugin.NewerThan(keyAt(2000))).Order("id").Limit(20).Find(&[]Event{})
			},
			"a page of OlderThan": func(tx *gorm.DB) *gorm.DB {
				return tx.Unscoped().Where(gormplugin.OlderThan(keyAt(2000))).Order("id DESC").Limit(20).Find(&[]Event{})
			},
			"CreatedBetween of a tenant": func(tx *gorm.DB) *gorm.DB {
				return tx.Where("tenant_id = ?", 3).Where(between).Find(&[]Pair{})
			},
			"a page of a tenant": func(tx *gorm.DB) *gorm.DB {
				return tx.Where("tenant_id = ?", 3).Where(gormplugin.OlderThan(keyAt(2000))).Order("id DESC").Limit(20).Find(&[]Pair{})
			},
		} {
			plan, want := e.explain(db, query)
			for _, part := range want {
				if !strings.Contains(plan, part) {
					e.Errorf("plan of %s = %s; want it to say %q", what, plan, part)
				}
			}
			if strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort") || strings.Contains(plan, "filesort") {
				e.Errorf("plan of %s = %s; want no sort", what, plan)
			}
		}
	}},
}

// explain returns the plan of a query. want is what a plan says that uses the
// primary key.
func (e *env) explain(db *gorm.DB, query func(tx *gorm.DB) *gorm.DB) (plan string, want []string) {
	e.Helper()
	verb := "EXPLAIN "
	switch db.Name() {
	case "sqlite":
		verb, want = "EXPLAIN QUERY PLAN ", []string{"SEARCH", "PRIMARY KEY", "id"}
	case "postgres":
		want = []string{"_pkey", "Index Cond"}
	case "mysql":
		want = []string{"range", "PRIMARY"}
		if e.tidb() {
			want = []string{"TableRangeScan"} // the key is the table
		}
	}
	rows, err := rowsOf(db, verb+db.ToSQL(query))
	e.ok("EXPLAIN", err)
	plan = fmt.Sprint(rows)
	if db.Name() == "sqlite" { // an index of its own, or the rowid
		plan = strings.ReplaceAll(plan, "sqlite_autoindex", "PRIMARY KEY")
	}
	return plan, want
}

// keyTime returns a time of the layout core.Twitter, n seconds after a fixed one.
// keyAt returns a key of that time.
func keyTime(n types.Snowflake) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
}

func keyAt(n types.Snowflake) types.Snowflake { return core.Twitter().Min(keyTime(n)) + 77 }
