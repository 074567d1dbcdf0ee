package gormcases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// columns makes columns of their names.
func columns(names []string) []clause.Column {
	var list []clause.Column
	for _, name := range names {
		list = append(list, clause.Column{Name: name})
	}
	return list
}

func doNothing(target ...string) clause.OnConflict {
	return clause.OnConflict{Columns: columns(target), DoNothing: true}
}

func doUpdate(column string, target ...string) clause.OnConflict {
	return clause.OnConflict{Columns: columns(target), DoUpdates: clause.AssignmentColumns([]string{column})}
}

func upsertAll() clause.OnConflict { return clause.OnConflict{UpdateAll: true} }

// noDefault is why TiDB cannot run a case.
const noDefault = "DEFAULT (3+4) is no default of TiDB"

func (e *env) mysql() bool { return e.db.Name() == "mysql" }

// tellsMet reports whether a DO NOTHING returns the keys of the rows that it met. On
// MariaDB it does, in the statements by which GORM saves associations.
func (e *env) tellsMet() bool { return e.mysql() && e.target.Returning }

// uniqueLower makes a column unique in lower case. MariaDB, which has no indexes on
// expressions, gets a generated column.
func (e *env) uniqueLower(table, column string) {
	e.Helper()
	if e.mariadb() {
		e.uniqueGenerated(table, column)
		return
	}
	e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + table + "_lower ON " + e.prefix + table + " ((lower(" + column + ")))"))
}

// uniqueGenerated adds the unique column lower_case, which is generated from another one.
func (e *env) uniqueGenerated(table, column string) {
	e.Helper()
	typ := "varchar(40) GENERATED ALWAYS AS (lower(" + column + "))"
	if e.postgres() {
		typ += " STORED"
	}
	e.ddl("ALTER TABLE PRE_" + table + " ADD COLUMN lower_case " + typ)
	e.ddl("CREATE UNIQUE INDEX PRE_" + table + "_generated ON PRE_" + table + " (lower_case)")
}

// lists returns how many lists of values the plugin looks up by s. A list of keys has no
// hint of an index.
func lists(s string) int {
	return strings.Count(s, "json_each(") + strings.Count(s, " WITH ORDINALITY AS snowkey_values (") + strings.Count(s, " FORCE INDEX ")*strings.Count(s, " IN (")
}

// listsOfPairs returns how many lists of values in two columns the plugin looks up by s.
func listsOfPairs(s string) int {
	return min(strings.Count(s, "json_extract("), 1) + strings.Count(s, " snowkey_value1, ") + strings.Count(s, " FORCE INDEX ")*strings.Count(s, " IN ((")
}

// A Mailbox has an email that is unique among those that are not deleted, and among those of a kind.
type Mailbox struct {
	ID      types.Snowflake
	Email   string `gorm:"size:40"`
	Kind    string `gorm:"size:40"`
	Deleted *int64
}

// mailboxes makes the table of Mailbox, with its two partial unique keys.
func (e *env) mailboxes() {
	e.Helper()
	e.migrate(&Mailbox{})
	e.ddl("CREATE UNIQUE INDEX PRE_mailbox_here ON PRE_mailboxes (email) WHERE deleted IS NULL")
	e.ddl("CREATE UNIQUE INDEX PRE_mailbox_x ON PRE_mailboxes (email) WHERE kind = 'x'")
}

// ignoredEmails is DO NOTHING for the emails that are unique where a condition holds.
func ignoredEmails(where string) clause.OnConflict {
	return clause.OnConflict{
		DoNothing: true, Columns: []clause.Column{{Name: "email"}},
		TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: where}}},
	}
}

// A Shelf is unique by two columns.
type Shelf struct {
	ID     types.Snowflake
	Room   string `gorm:"size:20;uniqueIndex:shelf_in_room"`
	Number int64  `gorm:"uniqueIndex:shelf_in_room"`
}

// A Coded has a number that is stored as text.
type Coded struct {
	ID   types.Snowflake
	Name string `gorm:"type:varchar(40);uniqueIndex"`
	Code int64  `gorm:"type:varchar(40);uniqueIndex"`
}

// A Numbered has columns that are named as those of VALUES.
type Numbered struct {
	ID      types.Snowflake
	Column1 string `gorm:"column:column1;size:40"`
	Column2 string `gorm:"column:column2;size:40;uniqueIndex"`
	Name    string `gorm:"size:40;uniqueIndex"`
}

// withSource opens the target with a plugin of its own.
func (e *env) withSource(next gormplugin.SourceFunc) *gorm.DB {
	e.Helper()
	db := e.open(&gorm.Config{})
	if err := db.Use(gormplugin.New(next)); err != nil {
		e.Fatalf("Use = %v; want no error", err)
	}
	return db
}

// sameOrders fails the test unless each of list has the key of the row with its
// number. Its items have to be stored under it.
func (e *env) sameOrders(list []Order) {
	e.Helper()
	for _, o := range list {
		e.stored("orders", "number", o.Number, o.ID)
		for _, item := range o.Items {
			equal(e, "OrderID of "+item.SKU, item.OrderID, o.ID)
			e.stored("items", "sku", item.SKU, item.ID)
			equal(e, "stored order of "+item.SKU, e.keys("items", "order_id", "sku", item.SKU)[0], o.ID.Int64())
		}
	}
}

// mixed returns orders, some of them with numbers that are stored already.
func mixed() []Order {
	return []Order{
		{Number: "new1", Note: "x", Items: []Item{{SKU: "i1"}}},
		{Number: "old1", Note: "x", Items: []Item{{SKU: "i2"}}},
		{Number: "new2", Note: "x", Items: []Item{{SKU: "i3"}}},
		{Number: "old2", Note: "x", Items: []Item{{SKU: "i4"}, {SKU: "i5"}}},
	}
}

// withOld stores the old ones of mixed.
func (e *env) withOld() {
	e.Helper()
	e.migrate(orderModels...)
	e.must(e.db.Create(&[]Order{{Number: "old0"}, {Number: "old2"}, {Number: "old1"}}))
	e.log.reset()
}

var upsertCases = []testCase{
	{"DoNothingGivesTheStoredKeyAndItsChildren", func(e *env) {
		for i, conflict := range []clause.OnConflict{doNothing(), doNothing("number")} {
			if i == 0 {
				e.withOld()
			}
			o := Order{Number: "old1", Items: []Item{{SKU: fmt.Sprint("a", i)}}, Receipt: &Receipt{Text: fmt.Sprint("r", i)}, Labels: []Label{{Text: fmt.Sprint("l", i)}}}
			e.must(e.db.Clauses(conflict).Create(&o))
			e.sameOrders([]Order{o})
			e.stored("receipts", "text", fmt.Sprint("r", i), o.Receipt.ID)
			equal(e, "OrderID of the receipt", o.Receipt.OrderID, o.ID)
			equal(e, "order of the label", e.keys("order_labels", "order_id", "label_id", o.Labels[0].ID)[0], o.ID.Int64())
		}
		e.count("orders", 3)
	}},
	{"DoNothingOnASliceGivesEachItsStoredKey", func(e *env) {
		e.withOld()
		list := mixed()
		e.must(e.db.Clauses(doNothing()).Create(&list))
		e.sameOrders(list)
		again := mixed()
		for i := range again {
			again[i].Items = nil
		}
		e.must(e.db.Clauses(doNothing("number")).Create(&again))
		e.sameOrders(again)
		e.count("orders", 5)
	}},
	{"DoUpdateOfOneGivesTheStoredKeyAndItsChildren", func(e *env) {
		e.withOld()
		o := Order{Number: "old1", Note: "new note", Items: []Item{{SKU: "a"}}}
		e.must(e.db.Clauses(doUpdate("note", "number")).Create(&o))
		e.sameOrders([]Order{o})
		e.stored("orders", "note", "new note", o.ID)
		e.count("orders", 3)
		equal(e, "re-reads", len(e.log.statements("SELECT 0")) > 0, e.mysql()) // as RowsAffected tells what it did
	}},
	{"DoUpdateOfASliceGivesEachItsStoredKey", func(e *env) {
		e.withOld()
		list := mixed()
		e.must(e.db.Clauses(doUpdate("note", "number")).Create(&list))
		e.sameOrders(list)
		e.count("orders", 5)
		equal(e, "orders with the note", len(e.keys("orders", "id", "note", "x")), 4)
		pointers := []*Order{{Number: "old2"}, {Number: "new3"}}
		e.must(e.db.Clauses(doUpdate("note", "number")).Create(&pointers))
		e.stored("orders", "number", "old2", pointers[0].ID)
		e.stored("orders", "number", "new3", pointers[1].ID)
	}},
	{"DoUpdateStillReturnsWhatTheDatabaseFills", func(e *env) {
		e.only(!e.tidb(), noDefault)
		type Stamped struct {
			ID    types.Snowflake
			Name  string `gorm:"size:40;uniqueIndex"`
			Score int64  `gorm:"default:(3+4)"`
		}
		e.migrate(&Stamped{})
		e.must(e.db.Create(&Stamped{Name: "A"}))
		s := Stamped{Name: "A"}
		e.must(e.db.Clauses(doUpdate("name", "name")).Create(&s))
		e.stored("stampeds", "name", "A", s.ID)
		if e.target.Returning {
			equal(e, "Score", s.Score, 7)
		}
		asked := Stamped{Name: "A"}
		e.must(e.db.Clauses(doUpdate("name", "name"), clause.Returning{Columns: columns([]string{"score"})}).Create(&asked))
		equal(e, "ID", asked.ID, s.ID)
		all := Stamped{Name: "A"}
		e.log.reset()
		e.must(e.db.Clauses(doUpdate("name", "name"), clause.Returning{}).Create(&all))
		equal(e, "ID", all.ID, s.ID)
		m := map[string]any{"name": "A"}
		if e.target.Returning {
			equal(e, "Score", asked.Score, 7)
			equal(e, "Score", all.Score, 7)
			equal(e, "re-reads", len(e.log.statements("SELECT 0")), 0)
			e.must(e.db.Model(&s).Clauses(doUpdate("name", "name"), clause.Returning{Columns: columns([]string{"id"})}).Create(m))
			equal[any](e, "m[id]", m["id"], s.ID)
		}
	}},
	{"FilteredDoUpdateGivesNoRowTheKeyOfAnother", func(e *env) {
		e.withOld()
		list := mixed()
		conflict := doUpdate("note", "number")
		conflict.Where = clause.Where{Exprs: []clause.Expression{
			clause.Neq{Column: clause.Column{Table: e.prefix + "orders", Name: "number"}, Value: "old1"},
		}}
		e.must(e.db.Clauses(conflict).Create(&list))
		// What it returns is not one row for each.
		for _, s := range e.log.statements("INSERT") {
			if strings.Contains(s, e.prefix+"orders") && strings.Contains(s, "RETURNING") {
				e.Errorf("statement = %s; want no RETURNING", s)
			}
		}
		e.sameOrders(list)
		e.count("orders", 5)
	}},
	{"FilteredDoUpdateIsRightForAKeyThatGORMReturns", func(e *env) {
		type Counted struct {
			ID   int64  `gorm:"primaryKey;snowflake"` // GORM adds RETURNING by itself
			Name string `gorm:"size:40;uniqueIndex"`
			Note string `gorm:"size:40"`
		}
		e.migrate(&Counted{})
		old := Counted{Name: "old"}
		e.must(e.db.Create(&old))
		e.fresh("ID", types.Snowflake(old.ID))
		for _, target := range []string{"name", "id"} {
			conflict := doUpdate("note", target)
			conflict.Where = clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "1 = 0"}}}
			list := []Counted{{Name: "a" + target}, {Name: "old"}, {Name: "b" + target}}
			if target == "id" {
				list[1].ID = old.ID
			}
			e.must(e.db.Clauses(conflict).Create(&list))
			for _, c := range list {
				e.stored("counteds", "name", c.Name, types.Snowflake(c.ID))
			}
		}
		e.log.reset()
		again := Counted{Name: "old"}
		e.must(e.db.Clauses(doUpdate("note", "name")).Create(&again))
		equal(e, "ID", again.ID, old.ID)
		if _, returning, ok := strings.Cut(e.log.statements("INSERT")[0], "RETURNING"); ok {
			equal(e, "id in RETURNING", strings.Count(returning, "id"), 1)
		}
	}},
	{"UpsertOnTheKeyAloneNeedsNoRereadWhereNoOtherKeyCounts", func(e *env) {
		e.migrate(&Item{})
		rereads := 0
		if e.mysql() { // whose upserts also go by an index that was made a moment ago
			rereads = 1
		}
		item := Item{SKU: "A"}
		e.must(e.db.Create(&item))
		e.log.reset()
		list := []Item{{ID: item.ID, SKU: "A2"}, {SKU: "B"}}
		e.must(e.db.Clauses(doUpdate("sku", "id")).Create(&list))
		equal(e, "SELECTs", len(e.log.statements("SELECT")), rereads)
		equal(e, "RETURNING", strings.Contains(e.log.statements("INSERT")[0], "RETURNING"), false)
		e.stored("items", "sku", "A2", item.ID)
		e.stored("items", "sku", "B", list[1].ID)
		e.log.reset()
		list = []Item{{ID: item.ID, SKU: "A3"}, {SKU: "C"}}
		e.must(e.db.Save(&list))
		equal(e, "SELECTs", len(e.log.statements("SELECT")), rereads)
		equal(e, "RETURNING", strings.Contains(e.log.statements("INSERT")[0], "RETURNING"), false)
		e.stored("items", "sku", "C", list[1].ID)
		e.log.reset()
		list = []Item{{SKU: "D"}, {SKU: "E"}} // all of them new
		e.must(e.db.Save(&list))
		equal(e, "SELECTs", len(e.log.statements("SELECT")), 0)
		e.stored("items", "sku", "E", list[1].ID)
	}},
	{"InsertedRowsOfAnUpsertAreNotLookedUpOneByOne", func(e *env) {
		e.migrate(orderModels...)
		e.must(e.db.Create(&Label{Text: "7"}))
		e.log.reset()
		list := make([]Label, 50)
		for i := range list {
			list[i].Text = fmt.Sprint(i)
		}
		e.must(e.db.Clauses(doNothing("text")).Create(&list))
		selects := e.log.statements("SELECT 0")
		equal(e, "SELECTs, by key and of the row that was met", len(selects), 2)
		equal(e, "further lookups", strings.Count(selects[1], "UNION"), 0)
		for _, l := range list {
			e.stored("labels", "text", l.Text, l.ID)
		}
	}},
	{"FailedUpsertLeavesTheKeys", func(e *env) {
		if e.mysql() {
			e.Skip("it goes by every unique key, and does not fail")
		}
		e.migrate(&Customer{})
		e.must(e.db.Create(&Customer{Email: "a"}))
		e.log.reset()
		c := Customer{Email: "a"}
		if e.db.Clauses(doNothing("phone")).Create(&c).Error == nil {
			e.Error("Create = nil; want a unique error on email")
		}
		e.fresh("ID", c.ID)
		equal(e, "re-reads", len(e.log.statements("SELECT")), 0)
	}},
	{"RowsThatReturningReplacesAreLeftAsTheyAre", func(e *env) {
		if !e.target.Returning || e.mysql() {
			e.Skip("MariaDB returns the rows that it met as well")
		}
		e.withOld()
		list := []Order{{Number: "old1"}, {Number: "new1"}}
		e.must(e.db.Clauses(doNothing(), clause.Returning{}).Create(&list))
		equal(e, "re-reads", len(e.log.statements("SELECT")), 0)
		for _, o := range list {
			e.stored("orders", "number", o.Number, o.ID)
		}
	}},
	{"RowThatATriggerDropsHasNoKey", func(e *env) {
		if e.db.Name() != "sqlite" {
			e.Skip("written for SQLite")
		}
		e.withOld()
		e.must(e.db.Exec("CREATE TRIGGER drops BEFORE INSERT ON " + e.prefix + "orders WHEN NEW.number = 'drop' BEGIN SELECT RAISE(IGNORE); END"))
		list := []Order{{Number: "drop"}, {Number: "new1"}, {Number: "old1"}}
		e.must(e.db.Clauses(doUpdate("note", "number")).Create(&list))
		equal(e, "ID", list[0].ID, 0)
		e.stored("orders", "number", "new1", list[1].ID)
		e.stored("orders", "number", "old1", list[2].ID)
	}},
	{"StoredRowWithoutAKeyIsUnresolved", func(e *env) {
		if e.db.Name() != "sqlite" {
			e.Skip("only SQLite stores NULL in a primary key")
		}
		e.withOld()
		e.must(e.db.Exec("INSERT INTO " + e.prefix + "orders (number) VALUES ('null')"))
		o := Order{Number: "null", Items: []Item{{SKU: "1"}}}
		e.fails(e.db.Clauses(doNothing()).Create(&o), gormplugin.ErrUnresolved)
		equal(e, "ID", o.ID, 0)
	}},
	{"OnlyWhatIsSentIsLookedUp", func(e *env) {
		e.migrate(&Customer{})
		one, two := "1", "2"
		e.must(e.db.Create(&[]Customer{{Email: "a", Phone: &one}, {Email: "", Phone: &two}}))
		c := Customer{Email: "", Phone: &one}
		e.must(e.db.Omit("Email").Clauses(doNothing()).Create(&c))
		e.stored("customers", "email", "a", c.ID)
		m := map[string]any{"phone": "1"}
		e.must(e.db.Model(&c).Clauses(doNothing()).Create(m))
		id, _ := m["id"].(types.Snowflake)
		e.stored("customers", "email", "a", id)
		m = map[string]any{"phone": "1", "email": nil}
		if !e.mysql() { // which stores an empty text for one that is not sent
			e.must(e.db.Model(&c).Clauses(doNothing()).Create(m))
			id, _ = m["id"].(types.Snowflake)
			e.stored("customers", "email", "a", id)
		}

		if e.tidb() {
			return // noDefault
		}
		type Coded struct {
			ID   types.Snowflake
			Name string `gorm:"size:40;uniqueIndex"`
			Code int64  `gorm:"uniqueIndex;default:(3+4)"`
		}
		e.migrate(&Coded{})
		e.must(e.db.Model(&Coded{}).Create(map[string]any{"name": "zero", "code": 0}))
		e.must(e.db.Create(&Coded{Name: "A"}))
		coded := Coded{Name: "A"} // its code is the database's, not 0
		e.must(e.db.Clauses(doNothing()).Create(&coded))
		e.stored("codeds", "name", "A", coded.ID)
	}},
	{"KeyThatGORMDoesNotReadIsReconciled", func(e *env) {
		type Hidden struct {
			ID   types.Snowflake `gorm:"primaryKey;->:false;<-"`
			Name string          `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Hidden{})
		first, again := Hidden{Name: "A"}, Hidden{Name: "A"}
		e.must(e.db.Create(&first))
		e.must(e.db.Clauses(doUpdate("name", "name")).Create(&again))
		e.stored("hiddens", "name", "A", again.ID)
		again.ID = 0
		e.must(e.db.Clauses(doUpdate("name", "name"), clause.Returning{}).Create(&again))
		e.stored("hiddens", "name", "A", again.ID)
	}},
	{"ModelWithoutAPrimaryKeyIsReconciled", func(e *env) {
		type Entry struct {
			Code types.Snowflake `gorm:"snowflake"`
			Name string          `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Entry{})
		list := []Entry{{Name: "A"}, {Name: "B"}}
		e.must(e.db.Create(&list))
		again := Entry{Name: "B"}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		equal(e, "Code", again.Code, list[1].Code)
		again = Entry{Name: "B", Code: 42}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		equal(e, "Code", again.Code, list[1].Code)
	}},
	{"TaggedColumnBesideTheDatabasesKeyIsReconciled", func(e *env) {
		type Ticket struct {
			ID     uint
			Name   string              `gorm:"size:40;uniqueIndex"`
			Public types.NullSnowflake `gorm:"snowflake;uniqueIndex"`
		}
		e.migrate(&Ticket{})
		first := Ticket{Name: "A"}
		e.must(e.db.Create(&first))
		for _, again := range []Ticket{{Name: "A"}, {ID: first.ID, Name: "B"}, {ID: first.ID, Name: "C", Public: types.NullSnowflake{Snowflake: 42, Valid: true}}} {
			e.must(e.db.Clauses(doNothing()).Create(&again))
			equal(e, "Public", again.Public, first.Public)
		}
	}},
	{"InsertedRowsAreReadBackByThePrimaryKey", func(e *env) {
		type Late struct {
			Public types.Snowflake `gorm:"snowflake"` // declared first, and without an index
			ID     types.Snowflake
			Name   string `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Late{})
		e.must(e.db.Create(&Late{Name: "A"}))
		e.log.reset()
		list := []Late{{Name: "A"}, {Name: "B"}}
		e.must(e.db.Clauses(doNothing()).Create(&list))
		before, _, _ := strings.Cut(e.log.statements("SELECT 0")[0], " IN (")
		if !strings.HasSuffix(strings.Trim(before, "`\""), "id") {
			e.Errorf("re-read = %s …; want one by id", before)
		}
		for _, l := range list {
			e.stored("lates", "name", l.Name, l.ID)
			equal(e, "stored Public", e.keys("lates", "public", "name", l.Name)[0], l.Public.Int64())
		}
	}},
	{"RowWhoseTargetTheUpsertChangesGetsNoOtherRowsKey", func(e *env) {
		e.only(e.postgres(), "SQLite compares the key first, and MySQL goes by all keys")
		e.withOld()
		m := map[string]any{"id": types.Snowflake(e.keys("orders", "id", "number", "old0")[0]), "number": "old1"}
		conflict := clause.OnConflict{Columns: columns([]string{"number"}), DoUpdates: clause.Assignments(map[string]any{"number": "new1"})}
		e.must(e.db.Model(&Order{}).Clauses(conflict).Create(m))
		equal[any](e, "m[id]", m["id"], types.Snowflake(0))
		e.count("orders", 3)
	}},
	{"TargetWithAnExpressionIsNotTakenForItsColumns", func(e *env) {
		if e.mysql() {
			e.Skip("it ignores the target")
		}
		type Spot struct {
			ID   types.Snowflake
			Name string `gorm:"size:40"`
			Code string `gorm:"size:40"`
		}
		e.migrate(&Spot{})
		e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "spot ON " + e.prefix + "spots (name, lower(code))"))
		e.must(e.db.Create(&Spot{Name: "A", Code: "x"}))
		conflict := clause.OnConflict{Columns: []clause.Column{{Name: "name"}, {Name: "lower(code)", Raw: true}}, DoNothing: true}
		list := []Spot{{ID: 42, Name: "A", Code: "y"}, {Name: "A", Code: "X"}}
		e.must(e.db.Clauses(conflict).Create(&list))
		equal(e, "list[0].ID", list[0].ID, 42)
		equal(e, "list[1].ID", list[1].ID, 0) // no unique key of the model tells
	}},
	{"ErrorOfTheRereadIsWrapped", func(e *env) {
		e.migrate(&Customer{})
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		create := e.db.Callback().Create()
		err := create.After("gorm:create").Before("snowflake:reconcile").Register("test:cancel", func(tx *gorm.DB) {
			tx.Statement.Context = ctx
		})
		if err != nil {
			e.Fatalf("Register = %v; want no error", err)
		}
		phone := "1"
		list := []Customer{{Email: "a", Phone: &phone}, {Email: "b", Phone: &phone}}
		tx := e.db.Clauses(doNothing("phone")).Create(&list)
		e.fails(tx, context.Canceled)
		if !strings.HasPrefix(tx.Error.Error(), "gormplugin: read back") || !strings.Contains(tx.Error.Error(), "Customer") {
			e.Errorf("error = %q; want one of gormplugin that names Customer", tx.Error)
		}
	}},
	{"NamedConstraintIsTheTarget", func(e *env) {
		if e.db.Name() != "postgres" {
			e.Skip("only PostgreSQL has ON CONFLICT ON CONSTRAINT")
		}
		type Pair struct {
			ID   types.Snowflake
			Name string `gorm:"size:40;uniqueIndex:pair_name"`
			Code string `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Pair{})
		// GORM makes an index; a constraint of the same name takes it over.
		e.must(e.db.Exec("ALTER TABLE " + e.prefix + "pairs ADD CONSTRAINT pair_name UNIQUE USING INDEX pair_name"))
		first := Pair{Name: "A", Code: "1"}
		e.must(e.db.Create(&first))
		for _, again := range []Pair{{Name: "A", Code: "2"}, {ID: 42, Name: "A", Code: "3"}} {
			e.must(e.db.Clauses(clause.OnConflict{OnConstraint: "pair_name", DoNothing: true}).Create(&again))
			equal(e, "ID", again.ID, first.ID)
		}
		e.must(e.db.Create(&Pair{ID: 43, Name: "B", Code: "4"}))
		other := Pair{ID: 43, Name: "A", Code: "5"} // the key is of another row
		e.must(e.db.Clauses(clause.OnConflict{OnConstraint: "pair_name", DoNothing: true}).Create(&other))
		equal(e, "ID", other.ID, first.ID)
		both := Pair{Name: "A", Code: "6"} // GORM leaves the columns out
		e.must(e.db.Clauses(clause.OnConflict{OnConstraint: "pair_name", Columns: []clause.Column{{Name: "id"}}, DoNothing: true}).Create(&both))
		equal(e, "ID", both.ID, first.ID)
	}},
	{"StoredKeyOfTheCallerWinsWhereNoTargetIsNamed", func(e *env) {
		e.withOld()
		o := Order{Number: "old1"}
		o.ID = types.Snowflake(e.keys("orders", "id", "number", "old0")[0])
		e.must(e.db.Clauses(doNothing()).Create(&o))
		e.stored("orders", "number", "old0", o.ID)
	}},
	{"DoNothingWithoutConflictNeedsNoRereadWhereRowsAreCounted", func(e *env) {
		e.migrate(orderModels...)
		list := []Label{{Text: "a"}, {Text: "b"}}
		e.must(e.db.Clauses(doNothing()).Create(&list))
		equal(e, "re-reads", len(e.log.statements("SELECT 0")) > 0, e.mysql())
		e.stored("labels", "text", "a", list[0].ID)
	}},
	{"NewGraphTakesOneStatementForEachTable", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Customer: &Customer{Email: "a"}, Items: []Item{{SKU: "1"}, {SKU: "2"}}, Labels: []Label{{Text: "x"}, {Text: "y"}}}
		e.must(e.db.Create(&o))
		equal(e, "INSERTs", len(e.log.statements("INSERT")), 5) // the last joins order and labels
		selects := 0
		if e.mysql() && !e.target.Returning {
			selects = 2 // of the new customer and the new labels, by key
		}
		if list := e.log.statements("SELECT"); len(list) != selects {
			e.Errorf("SELECTs = %q; want %d", list, selects)
		}
	}},
	{"BelongsToThatIsStoredAlreadyIsTheOneReferredTo", func(e *env) {
		e.migrate(orderModels...)
		c := Customer{Email: "a@x"}
		e.must(e.db.Create(&c))
		one := Order{Number: "1", Customer: &Customer{Email: "a@x"}}
		e.must(e.db.Create(&one))
		equal(e, "Customer.ID", one.Customer.ID, c.ID)
		equal(e, "CustomerID", *one.CustomerID, c.ID)
		list := []Order{{Number: "2", Customer: &Customer{Email: "b@x"}}, {Number: "3", Customer: &Customer{Email: "a@x"}}, {Number: "4", Customer: &Customer{Email: "b@x"}}}
		e.must(e.db.Create(&list))
		equal(e, "CustomerID", *list[1].CustomerID, c.ID)
		for _, o := range append(list, one) {
			e.stored("customers", "email", o.Customer.Email, *o.CustomerID)
			equal(e, "stored CustomerID", e.keys("orders", "customer_id", "number", o.Number)[0], o.Customer.ID.Int64())
		}
		e.count("customers", 2)
	}},
	{"ManyToManyThatIsStoredAlreadyIsTheOneJoined", func(e *env) {
		e.migrate(orderModels...)
		l := Label{Text: "red"}
		e.must(e.db.Create(&l))
		o := Order{Number: "A", Labels: []Label{{Text: "blue"}, {Text: "red"}}}
		e.must(e.db.Create(&o))
		equal(e, "ID of the label", o.Labels[1].ID, l.ID)
		equal(e, "joins of the label", len(e.keys("order_labels", "order_id", "label_id", l.ID)), 1)
		e.count("labels", 2)
		e.count("order_labels", 2)
	}},
	{"ChildThatIsStoredAlreadyIsRefusedOrRight", func(e *env) {
		e.migrate(&Shipment{}, &Parcel{})
		first := Shipment{Parcels: []Parcel{{Code: "A"}}}
		e.must(e.db.Create(&first))
		second := Shipment{Parcels: []Parcel{{Code: "B"}, {Code: "A"}}}
		tx := e.db.Create(&second)
		if !e.mysql() {
			if tx.Error == nil {
				e.Error("Create with a duplicate child = nil; want the database's error")
			}
			return
		}
		// MySQL updates the row that it meets, whatever the key: the parcel
		// changes hands. Its key in memory has to be its own.
		e.must(tx)
		equal(e, "ID of the parcel", second.Parcels[1].ID, first.Parcels[0].ID)
		for _, p := range second.Parcels {
			e.stored("parcels", "code", p.Code, p.ID)
			equal(e, "stored ShipmentID", e.keys("parcels", "shipment_id", "code", p.Code)[0], second.ID.Int64())
		}
	}},
	{"RowThatTheStatementReplacedAgainHasTheKeyThatIsStored", func(e *env) {
		if e.db.Name() != "sqlite" {
			e.Skip("only SQLite has INSERT OR REPLACE")
		}
		e.migrate(&Customer{})
		list := []Customer{{Email: "twice"}, {Email: "twice"}}
		e.must(e.db.Clauses(clause.Insert{Modifier: "OR REPLACE"}).Create(&list))
		equal(e, "ID of the first", list[0].ID, list[1].ID)
	}},
	{"IgnoringModifierGivesTheStoredKey", func(e *env) {
		modifier := map[string]string{"sqlite": "OR IGNORE", "mysql": "IGNORE"}[e.db.Name()]
		if modifier == "" {
			e.Skip("this database has none")
		}
		e.withOld()
		list := mixed()
		e.must(e.db.Clauses(clause.Insert{Modifier: modifier}).Create(&list))
		e.sameOrders(list)
		e.count("orders", 5)
	}},
	{"MapsGetTheStoredKeys", func(e *env) {
		e.withOld()
		m := map[string]any{"number": "old1", "note": "m"}
		e.must(e.db.Model(&Order{}).Clauses(doNothing()).Create(m))
		id, _ := m["id"].(types.Snowflake)
		e.stored("orders", "number", "old1", id)
		m = map[string]any{"id": "42", "number": "old2"} // as from JSON
		e.must(e.db.Model(&Order{}).Clauses(doNothing("number")).Create(m))
		id, _ = m["id"].(types.Snowflake)
		e.stored("orders", "number", "old2", id)
		for i, conflict := range []clause.OnConflict{doNothing(), doUpdate("note", "number")} {
			list := []map[string]any{{"Number": fmt.Sprint("n", i), "Note": "x"}, {"Number": "old2", "Note": "x", "ID": nil}, {"Number": fmt.Sprint("m", i), "Note": "x"}}
			e.must(e.db.Model(&Order{}).Clauses(conflict).Create(&list))
			equal(e, "len", len(list), 3)
			for _, m := range list {
				id, _ := m["id"].(types.Snowflake)
				if m["Number"] == "old2" {
					id, _ = m["ID"].(types.Snowflake)
				}
				e.stored("orders", "number", m["Number"], id)
			}
		}
	}},
	{"SoftDeletedRowIsTheStoredRow", func(e *env) {
		e.withOld()
		e.must(e.db.Where("number = ?", "old1").Delete(&Order{}))
		for i, conflict := range []clause.OnConflict{doNothing("number"), doUpdate("note", "number")} {
			o := Order{Number: "old1", Items: []Item{{SKU: fmt.Sprint(i)}}}
			e.must(e.db.Clauses(conflict).Create(&o))
			e.sameOrders([]Order{o})
		}
	}},
	{"KeyOfTheCallerYieldsToThatOfTheStoredRow", func(e *env) {
		e.withOld()
		list := mixed()
		list[0].ID, list[1].ID = 41, 42
		// The row with this key is another one than the row with this number.
		list[3].ID = types.Snowflake(e.keys("orders", "id", "number", "old0")[0])
		if e.mysql() {
			list[3].ID = 43 // MySQL would meet the row with the key
		}
		e.must(e.db.Clauses(doNothing("number")).Create(&list))
		e.sameOrders(list)
		e.stored("orders", "number", "new1", 41)
		e.count("orders", 5)
	}},
	{"CallersKeysSurviveATargetThatIsNull", func(e *env) {
		e.migrate(&Customer{})
		phone := "1"
		e.must(e.db.Create(&Customer{Email: "a", Phone: &phone}))
		list := []Customer{{ID: 42, Email: "b"}, {ID: 43, Email: "c", Phone: &phone}, {Email: "d"}}
		e.must(e.db.Clauses(doNothing("phone")).Create(&list))
		e.stored("customers", "email", "b", list[0].ID)
		equal(e, "list[0].ID", list[0].ID, 42)
		e.stored("customers", "email", "a", list[1].ID)
		e.stored("customers", "email", "d", list[2].ID)
		e.count("customers", 3)
	}},
	{"DatabaseComparesWhatIsUnique", func(e *env) {
		if !e.mysql() {
			e.Skip("the default collation tells upper case from lower")
		}
		e.withOld()
		o := Order{Number: "OLD1"}
		e.must(e.db.Clauses(doNothing()).Create(&o))
		e.stored("orders", "number", "old1", o.ID)
	}},
	{"ValueThatItsColumnShortensIsFoundAgain", func(e *env) {
		type RoundedPart struct {
			ID        types.Snowflake
			RoundedID types.Snowflake
		}
		type Rounded struct {
			ID    types.Snowflake
			Milli *time.Time
			Stamp *time.Time
			Day   *time.Time
			Price *float64
			Cost  *string
			Ratio *float32
			Code  *string
			Bytes []byte
			Parts []RoundedPart
		}
		kinds := map[string]string{
			"sqlite":   "milli datetime, stamp datetime, day date, price decimal(10,2), cost decimal(10,2), ratio real, code char(4), bytes blob",
			"postgres": "milli timestamp(3), stamp timestamptz(0), day date, price numeric(10,2), cost numeric(10,2), ratio real, code char(4), bytes bytea",
			"mysql":    "milli datetime(3), stamp timestamp(0) NULL, day date, price decimal(10,2), cost decimal(10,2), ratio float, code char(4), bytes binary(4)",
		}[e.db.Name()]
		unique := ""
		for kind := range strings.SplitSeq(kinds, ", ") {
			unique += ", UNIQUE (" + strings.Fields(kind)[0] + ")"
		}
		e.migrate(&RoundedPart{})
		e.must(e.db.Exec("CREATE TABLE " + e.prefix + "roundeds (id bigint NOT NULL PRIMARY KEY, " + kinds + unique + ")"))
		at := time.Date(2026, 1, 2, 23, 59, 59, 987_654_321, time.UTC)
		price, cost, ratio, code := 1.006, "1.006", float32(1.1), "ab "
		for name, make := range map[string]func() Rounded{
			"Milli": func() Rounded { return Rounded{Milli: &at} },
			"Stamp": func() Rounded { return Rounded{Stamp: &at} },
			"Day":   func() Rounded { return Rounded{Day: &at} },
			"Price": func() Rounded { return Rounded{Price: &price} },
			"Cost":  func() Rounded { return Rounded{Cost: &cost} },
			"Ratio": func() Rounded { return Rounded{Ratio: &ratio} },
			"Code":  func() Rounded { return Rounded{Code: &code} },
			"Bytes": func() Rounded { return Rounded{Bytes: []byte("ab")} },
		} {
			first := make()
			e.must(e.db.Create(&first))
			for _, conflict := range []clause.OnConflict{doNothing(), doNothing(strings.ToLower(name))} {
				again := make()
				again.Parts = []RoundedPart{{}}
				e.must(e.db.Clauses(conflict).Create(&again))
				equal(e, "ID of the same "+name, again.ID, first.ID)
				e.stored("rounded_parts", "rounded_id", first.ID, again.Parts[0].ID)
				e.must(e.db.Delete(&again.Parts))
			}
		}
		e.count("roundeds", 8)
	}},
	{"RowsLikeEachOtherInAPrefixAreFound", func(e *env) {
		if !e.mysql() {
			e.Skip("only MySQL has indexes on the beginning of a text")
		}
		type Prefixed struct {
			ID   types.Snowflake
			Name string `gorm:"size:40;uniqueIndex:,length:5"`
			Code string `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Prefixed{})
		list := []Prefixed{{Name: "a%c|_more", Code: "1"}, {Name: "axc|_more", Code: "2"}, {Name: "b", Code: "3"}, {Name: "bb", Code: "4"}}
		e.must(e.db.Create(&list))
		for name, want := range map[string]types.Snowflake{"a%c|_less": list[0].ID, "A%C|_": list[0].ID, "axc|_": list[1].ID, "b": list[2].ID, "bb": list[3].ID} {
			p := Prefixed{Name: name, Code: name}
			e.must(e.db.Clauses(doNothing()).Create(&p))
			equal(e, "ID of "+name, p.ID, want)
		}
		torn := Prefixed{Name: "a%c|_less", Code: "2"}
		e.must(e.db.Clauses(doNothing()).Create(&torn))
		equal(e, "ID of a row like two", torn.ID, 0)
		e.count("prefixeds", 4)
	}},
	{"CompositeAndPartialUniqueKeysAreSeen", func(e *env) {
		type Seat struct {
			ID   types.Snowflake
			Row  string `gorm:"size:10;uniqueIndex:seat"`
			Col  int    `gorm:"uniqueIndex:seat"`
			Name string `gorm:"size:40"`
		}
		e.migrate(&Seat{})
		e.must(e.db.Create(&[]Seat{{Row: "A", Col: 1, Name: "a1"}, {Row: "A", Col: 2, Name: "a2"}}))
		list := []Seat{{Row: "A", Col: 2}, {Row: "B", Col: 2, Name: "b2"}, {Row: "A", Col: 1}}
		e.must(e.db.Clauses(doNothing()).Create(&list))
		e.stored("seats", "name", "a2", list[0].ID)
		e.stored("seats", "name", "b2", list[1].ID)
		e.stored("seats", "name", "a1", list[2].ID)
		type Badge struct {
			ID   types.Snowflake
			Code string `gorm:"size:40;unique"`
			Mail string `gorm:"size:40;uniqueIndex:mail,length:10"` // a prefix, on MySQL
		}
		e.migrate(&Badge{})
		badge, byCode, byMail := Badge{Code: "1", Mail: "mail1"}, Badge{Code: "1", Mail: "mail2"}, Badge{Code: "2", Mail: "mail1"}
		e.must(e.db.Create(&badge))
		e.must(e.db.Clauses(doNothing()).Create(&byCode))
		equal(e, "ID by code", byCode.ID, badge.ID)
		e.must(e.db.Clauses(doNothing()).Create(&byMail))
		equal(e, "ID by mail", byMail.ID, badge.ID)
		type Half struct {
			ID   types.Snowflake `gorm:"primaryKey"`
			Code string          `gorm:"primaryKey;size:40;unique"` // as well as a part of the key
		}
		e.migrate(&Half{})
		half, same := Half{Code: "1"}, Half{Code: "1"}
		e.must(e.db.Create(&half))
		e.must(e.db.Clauses(doNothing()).Create(&same))
		equal(e, "ID by a part of the key", same.ID, half.ID)
		if e.mysql() {
			return // it has no indexes that are partial or have a collation
		}
		type Mixed struct {
			ID   types.Snowflake
			Name string `gorm:"size:40;uniqueIndex:both,expression:(name || note)"`
			Note string `gorm:"size:40;index"`
			Code string `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Mixed{})
		e.must(e.db.Create(&[]Mixed{{Name: "A", Note: "1", Code: "1"}, {Name: "B", Note: "1", Code: "2"}}))
		mixed := Mixed{Name: "A", Note: "2", Code: "2"}
		e.must(e.db.Clauses(doNothing()).Create(&mixed))
		equal(e, "ID where the expression may have met another row", mixed.ID, 0)
		mixed = Mixed{Name: "Z", Note: "1", Code: "2"} // the index on the note is none that is unique
		e.must(e.db.Clauses(doNothing("code")).Create(&mixed))
		e.stored("mixeds", "code", "2", mixed.ID)
		if e.db.Name() == "sqlite" {
			type User struct {
				ID   types.Snowflake
				Name string `gorm:"size:40;uniqueIndex:,collate:nocase"`
			}
			e.migrate(&User{})
			first, again := User{Name: "Ann"}, User{Name: "ANN"}
			e.must(e.db.Create(&first))
			e.must(e.db.Clauses(doNothing()).Create(&again))
			equal(e, "ID", again.ID, first.ID)
		}
		type Account struct {
			ID     types.Snowflake
			Email  string `gorm:"size:40;uniqueIndex:live,where:closed = 0"`
			Closed int
			Name   string `gorm:"size:40"`
		}
		e.migrate(&Account{})
		e.must(e.db.Create(&[]Account{{Email: "x", Closed: 1, Name: "closed"}, {Email: "x", Name: "live"}}))
		target := doNothing("email")
		target.TargetWhere = clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "closed = 0"}}}
		for _, conflict := range []clause.OnConflict{doNothing(), target} {
			a := Account{Email: "x"}
			e.must(e.db.Clauses(conflict).Create(&a))
			e.stored("accounts", "name", "live", a.ID)
		}
	}},
	{"RowThatAPartialUniqueKeyDoesNotCoverMeetsNothingThere", func(e *env) {
		type Account struct {
			ID     types.Snowflake
			Email  string         `gorm:"size:40;uniqueIndex:opened,where:closed = 0 AND deleted_at IS NULL"`
			Code   string         `gorm:"size:40;uniqueIndex"`
			Closed int            `gorm:"default:0"`
			Gone   gorm.DeletedAt `gorm:"column:deleted_at"`
		}
		e.migrate(&Account{})
		live, other := Account{Email: "x", Code: "live"}, Account{Email: "y", Code: "other"}
		e.must(e.db.Create(&[]*Account{&live, &other}))
		target := doNothing("email")
		target.TargetWhere = clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "closed = 0 AND deleted_at IS NULL"}}}
		if e.mysql() { // which makes the key of all rows
			closed := Account{ID: 77, Email: "x", Code: "closed", Closed: 1}
			e.must(e.db.Clauses(target).Create(&closed))
			equal(e, "ID", closed.ID, live.ID)
			return
		}
		gone := gorm.DeletedAt{Time: time.Now(), Valid: true}
		list := []Account{
			{ID: 77, Email: "x", Code: "closed", Closed: 1}, // a key of the caller, which is no proof
			{ID: 78, Email: "x", Code: "gone", Gone: gone},
			{ID: 79, Email: "x", Code: "again"},
		}
		e.must(e.db.Clauses(target).Create(&list))
		e.stored("accounts", "code", "closed", list[0].ID)
		e.stored("accounts", "code", "gone", list[1].ID)
		e.stored("accounts", "code", "live", list[2].ID)
		e.count("accounts", 4)
		torn := Account{Email: "x", Code: "other", Closed: 1}
		e.must(e.db.Clauses(doNothing()).Create(&torn))
		e.stored("accounts", "code", "other", torn.ID)
		unsaid := map[string]any{"email": "x", "code": "map"} // the database says that it is open
		e.must(e.db.Model(&Account{}).Clauses(target).Create(unsaid))
		equal(e, "id", unsaid["id"], any(live.ID))
		said := map[string]any{"email": "x", "code": "other", "Closed": 1, "deleted_at": nil}
		e.must(e.db.Model(&Account{}).Clauses(doNothing()).Create(said))
		equal(e, "id", said["id"], any(other.ID))
		type Shop struct {
			ID   types.Snowflake
			Name string `gorm:"size:40;uniqueIndex:running,where:open = 1"`
			Open int    `gorm:"default:(2 - 1)"` // by the database, and not zero
		}
		e.migrate(&Shop{})
		first, again, shut := Shop{Name: "x"}, Shop{Name: "x"}, Shop{Name: "x", Open: 2}
		e.must(e.db.Create(&first))
		e.must(e.db.Clauses(doNothing()).Create(&again))
		equal(e, "ID", again.ID, first.ID)
		e.must(e.db.Clauses(doNothing()).Create(&shut))
		e.stored("shops", "open", 2, shut.ID)
	}},
	{"RowLikeTwoStoredRowsIsNeither", func(e *env) {
		e.migrate(orderModels...)
		one, two := "1", "2"
		list := []Customer{{Email: "a", Phone: &one}, {Email: "b", Phone: &two}}
		e.must(e.db.Create(&list))
		c := Customer{Email: "a", Phone: &two}
		e.must(e.db.Clauses(doNothing()).Create(&c))
		equal(e, "ID of a row like two", c.ID, 0)
		o := Order{Number: "A", Customer: &Customer{Email: "a", Phone: &two}}
		if e.tellsMet() {
			e.must(e.db.Create(&o))
			if id := o.Customer.ID; id != list[0].ID && id != list[1].ID {
				e.Errorf("ID of the customer = %d; want one of the two stored ones", id)
			}
			equal(e, "CustomerID", *o.CustomerID, o.Customer.ID)
			equal(e, "stored CustomerID", e.keys("orders", "customer_id", "number", "A")[0], o.Customer.ID.Int64())
			return
		}
		e.fails(e.db.Create(&o), gormplugin.ErrUnresolved)
		e.count("orders", 0)
	}},
	{"RowThatIsLikeALaterOneHasTheKeyOfTheRowThatItMet", func(e *env) {
		e.migrate(orderModels...)
		one, two, three := "1", "2", "3"
		first := Customer{Email: "a", Phone: &one}
		e.must(e.db.Create(&first))
		list := []Customer{{Email: "a", Phone: &two}, {Email: "b", Phone: &two}}
		e.must(e.db.Clauses(doNothing()).Create(&list))
		equal(e, "ID of the row that met one", list[0].ID, first.ID)
		e.stored("customers", "email", "b", list[1].ID)
		orders := []Order{{Number: "A", Customer: &Customer{Email: "a", Phone: &three}}, {Number: "B", Customer: &Customer{Email: "c", Phone: &three}}}
		e.must(e.db.Create(&orders))
		equal(e, "CustomerID", *orders[0].CustomerID, first.ID)
		e.stored("customers", "email", "c", *orders[1].CustomerID)
		// What an earlier row has stored is met.
		torn := []Customer{{Email: "d", Phone: nil}, {Email: "d", Phone: &two}, {Email: "d"}}
		e.must(e.db.Clauses(doNothing()).Create(&torn))
		e.stored("customers", "email", "d", torn[0].ID)
		equal(e, "ID of a row like two", torn[1].ID, 0)
		equal(e, "ID of the row that met one of the statement", torn[2].ID, torn[0].ID)
		e.count("customers", 4)
	}},
	{"RowWhoseUniqueValuesALaterOneOfTheBatchChangesGetsNoOtherRowsKey", func(e *env) {
		e.only(e.mysql(), "only MySQL goes by several unique keys and updates")
		e.migrate(orderModels...)
		one, two := "1", "2"
		list := []Customer{{Email: "x", Phone: &one}, {Email: "y", Phone: &two}}
		e.must(e.db.Create(&list))
		x := list[0].ID
		// The first row meets x by its email, and the second one gives x another.
		list = []Customer{{Email: "x", Phone: &two}, {Email: "z", Phone: &one}}
		e.must(e.db.Clauses(clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"email"})}).Create(&list))
		e.stored("customers", "email", "z", x)
		equal(e, "ID of the row that met x, which has other values by now", list[0].ID, 0)
	}},
	{"RowsOfTablesThatInheritAreNotMet", func(e *env) {
		e.only(e.db.Name() == "postgres", "only PostgreSQL has tables that inherit")
		e.migrate(orderModels...)
		one := "1"
		first := Customer{Email: "a", Phone: &one}
		e.must(e.db.Create(&first))
		table := e.prefix + "customers"
		e.must(e.db.Exec("CREATE TABLE " + table + "_heir () INHERITS (" + table + ")"))
		e.must(e.db.Exec("INSERT INTO " + table + "_heir (id, email, phone) VALUES (77, 'b', '1'), (78, 'c', '2')"))
		list := []Customer{{Email: "c", Phone: &one}, {ID: 78, Email: "a"}, {Email: "d"}}
		e.must(e.db.Clauses(doNothing()).Create(&list))
		equal(e, "ID of the row that met one by phone", list[0].ID, first.ID)
		equal(e, "ID of the row with a key of the heir", list[1].ID, first.ID)
		e.stored("customers", "email", "d", list[2].ID)
		o := Order{Number: "A", Customer: &Customer{Email: "b", Phone: &one}}
		e.must(e.db.Create(&o))
		equal(e, "CustomerID", *o.CustomerID, first.ID)
		many := make([]Customer, 30)
		for i := range many {
			many[i].Email = fmt.Sprint(i)
		}
		e.must(e.db.Create(slices.Clone(many)))
		e.must(e.db.Exec("INSERT INTO " + table + "_heir (id, email, phone) SELECT 100 + g, g, g FROM generate_series(0, 29) g"))
		e.must(e.db.Clauses(doNothing()).Create(&many))
		for i := range many {
			e.must(e.db.Raw("SELECT count(*) FROM ONLY "+table+" WHERE id = ? AND email = ?", many[i].ID, many[i].Email).Scan(&i))
			equal(e, "rows with the key", i, 1)
		}
		// A trigger that stores rows elsewhere leaves them out of RowsAffected.
		e.must(e.db.Exec("CREATE FUNCTION " + table + "_move() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO " + table + "_heir VALUES (NEW.*); RETURN NULL; END'"))
		e.must(e.db.Exec("CREATE TRIGGER moves BEFORE INSERT ON " + table + " FOR EACH ROW WHEN (NEW.email LIKE 'm%') EXECUTE FUNCTION " + table + "_move()"))
		moved := []Customer{{Email: "m1"}, {Email: "d"}, {ID: 79, Email: "e"}}
		e.must(e.db.Clauses(doNothing()).Create(&moved))
		e.stored("customers", "email", "m1", moved[0].ID)
		equal(e, "ID of the row that met one", moved[1].ID, list[2].ID)
		e.stored("customers", "email", "e", 79)
	}},
	{"RowsOfPartitionsAreMet", func(e *env) {
		e.only(e.db.Name() == "postgres", "elsewhere partitions are no tables")
		type Half struct {
			ID   types.Snowflake `gorm:"primaryKey"`
			Part int64           `gorm:"primaryKey;autoIncrement:false"`
			Name string
		}
		table := e.prefix + "halves"
		e.must(e.db.Exec("CREATE TABLE " + table + " (id bigint, part bigint, name text, PRIMARY KEY (id, part), UNIQUE (part, name)) PARTITION BY LIST (part)"))
		e.must(e.db.Exec("CREATE TABLE " + table + "_1 PARTITION OF " + table + " DEFAULT"))
		first, list := Half{Part: 1, Name: "a"}, []Half{{Part: 1, Name: "a"}, {Part: 2, Name: "a"}}
		e.must(e.db.Create(&first))
		e.must(e.db.Clauses(doNothing()).Create(&list))
		equal(e, "ID", list[0].ID, first.ID)
		e.stored("halves", "part", 2, list[1].ID)
	}},
	{"IgnoredRowDoesNotKeepAKeyThatAnotherBrings", func(e *env) {
		e.migrate(&Customer{})
		first := Customer{Email: "a"}
		e.must(e.db.Create(&first))
		list := []Customer{{ID: 77, Email: "a"}, {ID: 77, Email: "b"}, {ID: 78, Email: "c"}, {ID: 78, Email: "d"}}
		e.must(e.db.Clauses(doNothing()).Create(&list))
		equal(e, "ID of the row that met another before its key was stored", list[0].ID, 0)
		for i, email := range []string{1: "b", 2: "c", 3: "c"} {
			if i > 0 {
				e.stored("customers", "email", email, list[i].ID)
			}
		}
		e.uniqueLower("customers", "email")
		hidden := []Customer{{ID: 79, Email: "A"}, {ID: 79, Email: "e"}, {ID: 80, Email: "f"}}
		other := e.withPlugin(&gorm.Config{}) // which has not read the catalog
		e.must(other.Clauses(doNothing()).Create(&hidden))
		equal(e, "ID of the row that met one in an expression", hidden[0].ID, 0)
		e.stored("customers", "email", "f", hidden[2].ID)
		e.count("customers", 5)
	}},
	{"UniqueKeyThatOnlyTheDatabaseKnowsIsSeen", func(e *env) {
		type Parcel struct {
			ID         types.Snowflake
			ShipmentID types.Snowflake
			Code       string `gorm:"size:40"`
			Number     string `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Shipment{}, &Parcel{})
		e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "code ON " + e.prefix + "parcels (code)"))
		a, b := Parcel{Code: "a", Number: "1"}, Parcel{Code: "b", Number: "2"}
		e.must(e.db.Create([]*Parcel{&a, &b}))
		for _, conflict := range []clause.OnConflict{doNothing(), doNothing("code")} {
			p := Parcel{Code: "a", Number: "3"}
			e.must(e.db.Clauses(conflict).Create(&p))
			equal(e, "ID", p.ID, a.ID)
		}
		torn := Parcel{Code: "a", Number: "2"}
		e.must(e.db.Clauses(doNothing()).Create(&torn))
		equal(e, "ID of a row like two", torn.ID, 0)
	}},
	{"RowThatAnExpressionMayHaveMetIsUnresolved", func(e *env) {
		type Person struct {
			ID    types.Snowflake
			Email string `gorm:"size:40"`
			Code  string `gorm:"size:40;uniqueIndex"`
			Pets  []Pet  `gorm:"foreignKey:OwnerID"`
		}
		e.migrate(&Person{}, &Pet{})
		e.uniqueLower("people", "email")
		people := []Person{{Email: "a@x", Code: "A"}, {Email: "b@x", Code: "B"}}
		e.must(e.db.Create(&people))
		// Like the first by email, and like the second by code.
		lower := clause.OnConflict{Columns: []clause.Column{{Name: "lower(email)", Raw: true}}, DoNothing: true}
		for _, conflict := range []clause.OnConflict{doNothing(), lower} {
			p := Person{Email: "A@x", Code: "B"}
			e.must(e.db.Omit(clause.Associations).Clauses(conflict).Create(&p))
			equal(e, "ID of a row like two", p.ID, 0)
			p = Person{Email: "A@x", Code: "B", Pets: []Pet{{Name: "rex"}}}
			e.fails(e.db.Clauses(conflict).Create(&p), gormplugin.ErrUnresolved)
			e.count("pets", 0)
			m := map[string]any{"email": "A@x", "code": "B"}
			e.must(e.db.Model(&p).Clauses(conflict).Create(m))
			equal[any](e, "m[id]", m["id"], types.Snowflake(0))
		}
		// What was inserted is known by its key, also by one of the caller.
		list := []Person{{Email: "A@x", Code: "C"}, {Email: "d@x", Code: "D"}, {ID: 42, Email: "e@x", Code: "E"}}
		e.must(e.db.Clauses(doNothing()).Create(&list))
		equal(e, "ID of the row that was met", list[0].ID, 0)
		e.stored("people", "code", "D", list[1].ID)
		e.stored("people", "code", "E", list[2].ID)
		if e.mysql() {
			return // it does not go by the target
		}
		list = []Person{{Email: "A@x", Code: "C"}, {Email: "f@x", Code: "F"}, {ID: 43, Email: "g@x", Code: "G"}}
		e.must(e.db.Clauses(lower).Create(&list))
		equal(e, "ID of the row that was met", list[0].ID, 0)
		e.stored("people", "code", "F", list[1].ID)
		e.stored("people", "code", "G", list[2].ID)
		other := Person{ID: 43, Email: "A@x", Code: "H"} // the key of one row, and the email of another
		e.must(e.db.Clauses(lower).Create(&other))
		equal(e, "ID", other.ID, 0)
		// A target that is told apart from the expression is found as ever.
		p := Person{Email: "h@x", Code: "B", Pets: []Pet{{Name: "rex"}}}
		e.must(e.db.Clauses(doNothing("code")).Create(&p))
		e.stored("people", "code", "B", p.ID)
	}},
	{"ExpressionInTheModelIsSeen", func(e *env) {
		e.only(!e.mariadb(), "MariaDB has no such indexes")
		type Mixed struct {
			ID   types.Snowflake
			Mail string `gorm:"size:40;uniqueIndex:,expression:(lower(mail))"`
			Code string `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Mixed{})
		e.must(e.db.Create(&[]Mixed{{Mail: "a", Code: "1"}, {Mail: "b", Code: "2"}}))
		mixed := Mixed{Mail: "A", Code: "2"}
		e.must(e.db.Clauses(doNothing()).Create(&mixed))
		equal(e, "ID", mixed.ID, 0)
	}},
	{"UnresolvedKeyIsZeroAndAnErrorWhereAssociationsFollow", func(e *env) {
		e.migrate(&Hooked{}, &HookedPart{})
		e.uniqueLower("hooked_parts", "name")
		h := Hooked{Name: "A", Parts: []HookedPart{{Name: "p"}}}
		e.must(e.db.Create(&h))
		part := HookedPart{Name: "p", HookedID: h.ID}
		e.must(e.db.Clauses(doNothing()).Create(&part))
		equal(e, "ID", part.ID, 0)
		m := map[string]any{"name": "p", "hooked_id": h.ID}
		e.must(e.db.Model(&HookedPart{}).Clauses(doNothing()).Create(m))
		equal[any](e, "m[id]", m["id"], types.Snowflake(0))

		type Tag struct {
			ID   types.Snowflake
			Name string `gorm:"size:40"`
		}
		type Post struct {
			ID    types.Snowflake
			Name  string `gorm:"size:40"`
			TagID *types.Snowflake
			Tag   *Tag
			Tags  []Tag `gorm:"many2many:post_tags"`
		}
		e.migrate(&Tag{}, &Post{})
		e.uniqueLower("tags", "name")
		e.uniqueLower("posts", "name")
		e.must(e.db.Create(&Post{Name: "a", Tag: &Tag{Name: "t"}}))
		for _, p := range []Post{
			{Name: "b", Tag: &Tag{Name: "t"}},     // a nested insert
			{Name: "c", Tags: []Tag{{Name: "t"}}}, // likewise, after the parent's
		} {
			if e.tellsMet() {
				continue
			}
			e.fails(e.db.Create(&p), gormplugin.ErrUnresolved)
			e.count("posts", 1)
		}
		p := Post{Name: "a", Tags: []Tag{{Name: "u"}}}
		e.fails(e.db.Clauses(doNothing()).Create(&p), gormplugin.ErrUnresolved)
		equal(e, "ID", p.ID, 0)
		e.count("tags", 1)
		p = Post{Name: "a", Tags: []Tag{{Name: "u"}}}
		e.must(e.db.Omit(clause.Associations).Clauses(doNothing()).Create(&p))
		equal(e, "ID", p.ID, 0)
		p = Post{Name: "a", Tags: []Tag{{Name: "u"}}}
		e.must(e.db.Select("Name").Clauses(doNothing()).Create(&p))
		equal(e, "ID", p.ID, 0)
		p = Post{Name: "a", Tags: []Tag{{Name: "u"}}}
		e.fails(e.db.Select("Name", "Tags").Clauses(doNothing()).Create(&p), gormplugin.ErrUnresolved)

		type Leaf struct {
			ID       types.Snowflake
			BranchID types.Snowflake
		}
		type Bud struct {
			ID       types.Snowflake
			BranchID types.Snowflake
		}
		type Branch struct {
			ID     types.Snowflake
			Name   string `gorm:"size:40"`
			Leaves []Leaf
			Bud    *Bud
		}
		e.migrate(&Branch{}, &Leaf{}, &Bud{})
		e.uniqueLower("branches", "name")
		e.must(e.db.Create(&Branch{Name: "a"}))
		e.must(e.db.Clauses(doNothing()).Create(&Branch{Name: "a"}))
		e.fails(e.db.Clauses(doNothing()).Create(&Branch{Name: "a", Leaves: []Leaf{{}}}), gormplugin.ErrUnresolved)
		e.fails(e.db.Clauses(doNothing()).Create(&Branch{Name: "a", Bud: &Bud{}}), gormplugin.ErrUnresolved)
	}},
	{"FurtherColumnsAreThoseOfTheStoredRow", func(e *env) {
		type Public struct {
			ID     types.Snowflake
			Name   string          `gorm:"size:40;uniqueIndex"`
			Note   string          `gorm:"size:40"`
			Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
		}
		e.migrate(&Public{})
		old := Public{Name: "A"}
		e.must(e.db.Create(&old))
		for _, conflict := range []clause.OnConflict{doNothing(), doNothing("name"), doUpdate("note", "name"), {Columns: columns([]string{"name"}), UpdateAll: true}} {
			p := Public{Name: "A"}
			e.must(e.db.Clauses(conflict).Create(&p))
			equal(e, "ID", p.ID, old.ID)
			equal(e, "Public", p.Public, old.Public)
		}
		type Bare struct {
			ID     types.Snowflake
			Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
		}
		e.migrate(&Bare{})
		bare := Bare{}
		e.must(e.db.Create(&bare))
		list := []Bare{{ID: bare.ID}, {}} // GORM finds nothing to update
		e.must(e.db.Clauses(upsertAll()).Create(&list))
		equal(e, "Public", list[0].Public, bare.Public)
		e.stored("bares", "public", list[1].Public, list[1].ID)
		same := []Public{{ID: old.ID, Name: "A2"}, {Name: "B"}}
		e.must(e.db.Save(&same))
		equal(e, "Public", same[0].Public, old.Public)
		equal(e, "stored Public", e.keys("publics", "public", "name", "B")[0], same[1].Public.Int64())
	}},
	{"IndexThatWasMadeWhileTheProgramRunsIsSeen", func(e *env) {
		type LateKid struct {
			ID     types.Snowflake
			LateID types.Snowflake
		}
		type Late struct {
			ID   types.Snowflake
			Name string `gorm:"size:40;uniqueIndex"`
			Code string `gorm:"size:40"`
			Kids []LateKid
		}
		e.migrate(&Late{}, &LateKid{})
		first, byName := []Late{{Name: "a", Code: "1"}, {Name: "b", Code: "2"}}, Late{Name: "a", Code: "3"}
		e.must(e.db.Create(&first))
		e.must(e.db.Clauses(doNothing()).Create(&byName))
		equal(e, "ID by name", byName.ID, first[0].ID) // the catalog was read
		e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "code ON " + e.prefix + "lates (code)"))
		list := []Late{{Name: "c", Code: "2", Kids: []LateKid{{}}}, {Name: "d", Code: "1"}, {Name: "e", Code: "5"}}
		e.log.reset()
		e.must(e.db.Clauses(doNothing()).Create(&list))
		equal(e, "ID by code", list[0].ID, first[1].ID)
		equal(e, "ID by code", list[1].ID, first[0].ID)
		e.stored("late_kids", "late_id", first[1].ID, list[0].Kids[0].ID)
		e.stored("lates", "code", "5", list[2].ID)
		catalogs := 0
		for _, s := range e.log.statements("SELECT") {
			if !strings.Contains(s, e.prefix+"lates") {
				continue // of the children
			}
			if strings.Contains(s, "pg_index") || strings.Contains(s, "information_schema") || strings.Contains(s, "pragma_index_list") {
				catalogs++
			}
		}
		equal(e, "reads of the catalog", catalogs, 1)
	}},
	{"NullsThatAreNotDistinctAreEqual", func(e *env) {
		if e.db.Name() != "postgres" {
			e.Skip("only PostgreSQL has such indexes")
		}
		type Null struct {
			ID   types.Snowflake
			Name *string
			N    *int
			Note string
		}
		e.migrate(&Null{})
		if tx := e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "nulls_name ON " + e.prefix + "nulls (name, n) NULLS NOT DISTINCT"); tx.Error != nil {
			e.Skip(tx.Error) // before PostgreSQL 15
		}
		a, one := "a", 1
		stored := []Null{{}, {Name: &a}, {N: &one}, {Name: &a, N: &one}}
		e.must(e.db.Create(&stored))
		for _, conflict := range []clause.OnConflict{doNothing(), doNothing("name", "n"), doUpdate("note", "name", "n")} {
			again := []Null{{Name: &a, N: &one}, {N: &one}, {Name: &a}, {}}
			e.must(e.db.Clauses(conflict).Create(&again))
			for i := range again {
				equal(e, fmt.Sprint("ID of row ", i), again[i].ID, stored[3-i].ID)
			}
			single := Null{}
			e.must(e.db.Clauses(conflict).Create(&single))
			equal(e, "ID of two NULLs", single.ID, stored[0].ID)
		}
		e.count("nulls", 4)
	}},
	{"UnresolvedRowHasItsReason", func(e *env) {
		type WhyKid struct {
			ID    types.Snowflake
			WhyID types.Snowflake
		}
		type Why struct {
			ID   types.Snowflake
			Name string `gorm:"size:40;uniqueIndex"`
			Code string `gorm:"size:40;uniqueIndex"`
			Kind *string
			Kids []WhyKid
		}
		e.migrate(&Why{}, &WhyKid{})
		e.must(e.db.Create(&[]Why{{Name: "a", Code: "1"}, {Name: "b", Code: "2"}}))
		why := func(w Why) *gormplugin.UnresolvedError {
			e.Helper()
			w.Kids = []WhyKid{{}}
			tx := e.withPlugin(&gorm.Config{}).Clauses(doNothing()).Create(&w)
			e.fails(tx, gormplugin.ErrUnresolved)
			var u *gormplugin.UnresolvedError
			if !errors.As(tx.Error, &u) || u.Model != "Why" || u.Row != 0 {
				e.Fatalf("Create = %#v; want an UnresolvedError of row 0 of Why", tx.Error)
			}
			return u
		}
		equal(e, "reason of a row like two", why(Why{Name: "a", Code: "2"}).Reason, gormplugin.ReasonTwoRows)
		if e.tidb() {
			return // it changes no column so
		}
		if e.mysql() {
			e.must(e.db.Exec("ALTER TABLE " + e.prefix + "whies MODIFY kind SET('x','y') UNIQUE"))
			kind := "x"
			u := why(Why{Name: "a", Code: "3", Kind: &kind})
			equal(e, "reason of a SET", u.Reason, gormplugin.ReasonType)
			if u.Column != "kind" || u.Type != "set('x','y')" || !strings.Contains(u.Error(), `column "kind"`) || !strings.Contains(u.Error(), u.Type) {
				e.Errorf("error = %v; want the column kind and its type", u)
			}
			return
		}
		if e.db.Name() == "postgres" {
			e.must(e.db.Exec("ALTER TABLE " + e.prefix + "whies ADD CONSTRAINT " + e.prefix + "excludes EXCLUDE USING btree (name WITH =)"))
		} else {
			e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "lower ON " + e.prefix + "whies (lower(name))"))
		}
		u := why(Why{Name: "a", Code: "3"})
		equal(e, "reason of an expression or an exclusion constraint", u.Reason, gormplugin.ReasonExpression)
		if u.Key == "" {
			e.Errorf("error = %v; want it to name the index", u)
		}
	}},
	{"UpsertThatRewritesTheKeyIsRefused", func(e *env) {
		e.withOld()
		e.fails(e.db.Clauses(clause.OnConflict{Columns: columns([]string{"number"}), DoUpdates: clause.AssignmentColumns([]string{"id", "note"})}).Create(&Order{Number: "old1"}), gormplugin.ErrKeyRewrite)
		e.count("orders", 3)
		equal(e, "statements", len(e.log.statements("INSERT")), 0)
		// A key that is set to itself is none that is rewritten.
		o := Order{Number: "old1"}
		same := clause.Set{{Column: clause.Column{Name: "id"}, Value: clause.Column{Table: e.prefix + "orders", Name: "id"}}}
		e.must(e.db.Clauses(clause.OnConflict{Columns: columns([]string{"number"}), DoUpdates: same}).Create(&o))
		e.stored("orders", "number", "old1", o.ID)
	}},
	{"KeyThatIsTheTargetMayBeSetToItself", func(e *env) {
		e.migrate(&Item{})
		e.must(e.db.Create(&Item{ID: 5, SKU: "A"}))
		conflict := clause.OnConflict{Columns: columns([]string{"id"}), DoUpdates: clause.AssignmentColumns([]string{"id", "sku"})}
		list := []Item{{ID: 5, SKU: "B"}, {SKU: "C"}}
		e.must(e.db.Clauses(conflict).Create(&list))
		e.stored("items", "sku", "B", 5)
		e.stored("items", "sku", "C", list[1].ID)
		type Half struct {
			ID       types.Snowflake `gorm:"primaryKey"`
			TenantID int64           `gorm:"primaryKey;autoIncrement:false"`
			Note     string          `gorm:"size:40"`
		}
		e.migrate(&Half{})
		half := Half{TenantID: 1}
		e.must(e.db.Create(&half))
		both := clause.OnConflict{Columns: columns([]string{"tenant_id", "id"}), DoUpdates: clause.AssignmentColumns([]string{"id", "note"})}
		half.Note = "B"
		e.must(e.db.Clauses(both).Create(&half))
		e.stored("halves", "note", "B", half.ID)
		if !e.mysql() {
			return
		}
		// MySQL uses every unique key, even one that the model does not declare.
		e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "sku ON " + e.prefix + "items (sku)"))
		other := e.withPlugin(&gorm.Config{})
		e.fails(other.Clauses(conflict).Create(&Item{ID: 6, SKU: "B"}), gormplugin.ErrKeyRewrite)
		e.stored("items", "sku", "B", 5)
	}},
	{"UpsertOnTheKeyGivesTheKeyOfTheRowThatMySQLMetByAnother", func(e *env) {
		if !e.mysql() {
			e.Skip("it goes by the target")
		}
		e.migrate(&Item{})
		e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "sku ON " + e.prefix + "items (sku)"))
		first := Item{SKU: "A"}
		e.must(e.db.Create(&first))
		again := Item{SKU: "A"}
		e.must(e.db.Clauses(doUpdate("order_id", "id")).Create(&again))
		e.stored("items", "sku", "A", again.ID)
	}},
	{"AUniqueColumnThatDiffersFromAFieldByCaseIsNotTheField", func(e *env) {
		e.only(e.postgres(), "case makes no other column")
		type Cased struct {
			ID    types.Snowflake
			Name  string `gorm:"size:40"`
			Email string `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Cased{})
		e.ddl("ALTER TABLE PRE_caseds ADD COLUMN `Name` bigint")
		e.ddl("CREATE UNIQUE INDEX PRE_cased_name ON PRE_caseds (`Name`)")
		met := Cased{Email: "a@x"}
		e.must(e.db.Create(&met))
		for n := range 3 { // the numbers of rows in a look
			e.must(e.db.Create(&Cased{Email: fmt.Sprint(n)}))
			e.ddl(fmt.Sprintf("UPDATE PRE_caseds SET `Name` = %d WHERE email = '%[1]d'", n))
		}
		list := []Cased{{Email: "a@x"}, {Email: "b@x"}}
		e.must(e.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&list))
		equal(e, "key of the row that was met", list[0].ID, met.ID)
		e.stored("caseds", "email", "b@x", list[1].ID)
	}},
	{"RowsMetInOneOfSeveralPartialUniqueKeysAreFound", func(e *env) {
		e.only(e.sqlite() || e.postgres(), "it has no indexes that are partial")
		e.mailboxes()
		e.ddl("INSERT INTO PRE_mailboxes VALUES (1, 'e0', 'y', NULL), (2, 'e0', 'x', 7)")
		for n := range 30 {
			e.ddl(fmt.Sprintf("INSERT INTO PRE_mailboxes VALUES (%d, 'e%d', 'y', NULL)", 100+n, 100+n))
		}
		target := ignoredEmails("deleted IS NULL")
		for _, n := range []int{1, 25} { // by the values as sent, and by the catalog
			list := make([]Mailbox, n)
			for i := range list {
				list[i] = Mailbox{Email: fmt.Sprint("e", 100+i), Kind: "x"}
			}
			list[0].Email = "e0"
			e.must(e.db.Clauses(target).Create(&list))
			equal(e, fmt.Sprintf("key of the first of %d", n), list[0].ID, 1)
		}
	}},
	{"ARowThatItsTargetDoesNotCoverIsNotTakenForInserted", func(e *env) {
		e.only(e.postgres(), "the condition of a target is that of an index")
		e.mailboxes()
		e.ddl("INSERT INTO PRE_mailboxes VALUES (1, 'e0', 'y', NULL), (5, 'other', 'y', NULL)")
		target := ignoredEmails("deleted IS NULL AND kind = 'x'")
		for _, n := range []int{1, 25} {
			list := make([]Mailbox, n)
			for i := range list {
				list[i] = Mailbox{Email: fmt.Sprint("n", n, i), Kind: "x"}
			}
			list[0] = Mailbox{ID: 5, Email: "e0", Kind: "y"}
			e.must(e.db.Clauses(target).Create(&list))
			equal(e, fmt.Sprintf("key of the first of %d", n), list[0].ID, 1)
		}
	}},
	{"ARowWhoseConditionTheDatabaseFillsHasNoKeyOfAnother", func(e *env) {
		e.only(e.sqlite() || e.postgres(), "it has no indexes that are partial")
		type Account struct {
			ID    types.Snowflake
			Email string
			Kind  string
			N     int
		}
		e.ddl("CREATE TABLE PRE_accounts (id bigint PRIMARY KEY, email varchar(40), kind varchar(40) DEFAULT 'y', n int)")
		e.ddl("CREATE UNIQUE INDEX PRE_account_x ON PRE_accounts (email) WHERE kind = 'x' OR n = 1")
		e.ddl("INSERT INTO PRE_accounts VALUES (1, 'e0', 'x', 0), (2, 'e1', 'x', 0)")
		target := ignoredEmails("kind = 'x' OR n = 1")
		for _, n := range []int{2, 25} {
			list := make([]Account, n)
			for i := range list {
				list[i] = Account{Email: fmt.Sprint("n", n, i)}
			}
			list[0], list[1] = Account{ID: types.Snowflake(5 + n), Email: "e0"}, Account{Email: "e1", N: 1}
			e.must(e.db.Clauses(target).Omit("Kind").Create(&list))
			if id := list[0].ID; id == 1 {
				e.Errorf("key of a row that was inserted = %d; want its own, or none", id)
			}
			equal(e, "key of the row that was met", list[1].ID, 2)
		}
	}},
	{"KeysBelowZeroInAColumnOfTextAreFoundAmongMany", func(e *env) {
		e.only(e.sqlite(), "a column of text takes numbers there")
		type Group struct {
			ID   int64   `gorm:"primaryKey;autoIncrement:false;type:text;snowflake"`
			Name *string `gorm:"unique"`
		}
		e.integers()
		e.migrate(&Group{})
		met := "a"
		e.must(e.db.Create(&Group{ID: -100, Name: &met}))
		list := make([]Group, 30)
		for i := range list {
			list[i].ID = int64(i - 60)
		}
		list[29].Name = &met
		e.must(e.db.Clauses(clause.OnConflict{DoNothing: true, Columns: []clause.Column{{Name: "name"}}}).Create(&list))
		for i, g := range list[:29] {
			equal(e, fmt.Sprint("key of row ", i), g.ID, int64(i-60))
		}
		equal(e, "key of the row that met another", list[29].ID, -100)
	}},
	// A default of the database stands in a unique key, and tells nobody by which value a row was met.
	{"KeyOfARowThatMetAnotherByADefaultIsNotThatOfAThird", func(e *env) {
		e.only(e.sqlite() || e.postgres(), "its upserts have no target")
		type Pair struct {
			ID types.Snowflake
			A  string `gorm:"size:40;uniqueIndex:pair"`
			B  string `gorm:"size:40;uniqueIndex:pair;default:x"`
		}
		type Event struct {
			ID        types.Snowflake
			Name      string    `gorm:"size:40;uniqueIndex:event"`
			CreatedAt time.Time `gorm:"uniqueIndex:event;default:'2020-01-01 00:00:00+00:00'"`
		}
		e.migrate(&Pair{}, &Event{})
		e.ddl("INSERT INTO PRE_pairs VALUES (1, 'a', 'x'), (5, 'b', 'x')")
		m := map[string]any{"id": types.Snowflake(5), "a": "a"}
		on := clause.OnConflict{DoNothing: true, Columns: []clause.Column{{Name: "a"}, {Name: "b"}}}
		if err := e.db.Model(&Pair{}).Clauses(on).Create(m).Error; err == nil && fmt.Sprint(m["id"]) == "5" {
			e.Errorf("key of a map that met the row 1 = %v; want 1, or none", m["id"])
		}

		later := time.Date(2024, 5, 5, 0, 0, 0, 0, time.UTC)
		for id, at := range []time.Time{time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), later} {
			e.must(e.db.Create(&Event{ID: types.Snowflake(id + 1), Name: "a", CreatedAt: at}))
		}
		met := Event{Name: "a", CreatedAt: later} // which Select leaves out
		on.Columns = []clause.Column{{Name: "name"}, {Name: "created_at"}}
		if err := e.db.Select("Name").Clauses(on).Create(&met).Error; err == nil && met.ID == 2 {
			e.Errorf("key of a row that met the row 1 = %d; want 1, or none", met.ID)
		}
	}},
	{"AColumnThatATriggerOfAPartitionFillsIsNotNULL", func(e *env) {
		e.only(e.postgres(), "only PostgreSQL has triggers of a partition")
		type Part struct {
			ID     types.Snowflake
			Tenant int
			Name   string
			Note   *string
		}
		e.ddl("CREATE TABLE PRE_parts (id bigint, tenant int, name text, note text, UNIQUE NULLS NOT DISTINCT (tenant, name, note)) PARTITION BY LIST (tenant)")
		e.ddl("CREATE TABLE PRE_parts_1 PARTITION OF PRE_parts FOR VALUES IN (1)")
		e.ddl("INSERT INTO PRE_parts VALUES (1, 1, 'a', 'auto'), (2, 1, 'a', NULL)")
		e.ddl("CREATE FUNCTION PRE_fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.note := COALESCE(NEW.note, 'auto'); RETURN NEW; END $$")
		e.ddl("CREATE TRIGGER fill BEFORE INSERT ON PRE_parts_1 FOR EACH ROW EXECUTE FUNCTION PRE_fill()")
		met := Part{Tenant: 1, Name: "a"}
		on := clause.OnConflict{DoNothing: true, Columns: []clause.Column{{Name: "tenant"}, {Name: "name"}, {Name: "note"}}}
		if err := e.db.Omit("Note").Clauses(on).Create(&met).Error; err == nil && met.ID == 2 {
			e.Errorf("key of a row that met the row 1 = %d; want 1, or none", met.ID)
		}
	}},
	{"UpsertOfAStructByValueIsErrInvalidValue", func(e *env) {
		e.migrate(&Item{})
		e.fails(e.db.Clauses(doUpdate("sku", "id")).Create(Item{ID: 5, SKU: "A"}), gorm.ErrInvalidValue)
		e.count("items", 0)
	}},
	{"KeysOfOthersMayLieBetweenFreshOnes", func(e *env) {
		e.migrate(&Item{})
		e.uniqueLower("items", "sku") // no row can be found by that
		e.must(e.db.Create(&Item{ID: 1, SKU: "Met"}))
		var next, step types.Snowflake
		db := e.withSource(func(context.Context) (types.Snowflake, error) {
			next += step
			return next, nil
		})
		next = 1000
		for _, others := range []types.Snowflake{0, 1, 9} {
			step = 1 + others
			list, between := make([]Item, 30), []Item(nil)
			for i := range list {
				list[i].SKU = fmt.Sprint("ours", others, "-", i)
				for n := range others {
					id := next + step*types.Snowflake(i+1) + 1 + n
					between = append(between, Item{ID: id, SKU: fmt.Sprint("other", id)})
				}
			}
			if others > 0 {
				e.must(e.db.Create(&between))
			}
			list[7].SKU = "met"
			e.log.reset()
			e.must(db.Clauses(doNothing()).Create(&list))
			if run := strings.Contains(strings.Join(e.log.statements("SELECT"), ""), " BETWEEN "); run != (others == 0) {
				e.Errorf("with %d keys of others between two: a run of keys is %v", others, run)
			}
			for i, item := range list {
				if i != 7 {
					e.stored("items", "sku", item.SKU, item.ID)
				} else {
					equal(e, "ID of the row that met one", item.ID, 0)
				}
			}
		}
	}},
	{"FreshKeysInAColumnOfTextAreFound", func(e *env) {
		if e.db.Name() != "sqlite" {
			e.Skip("not each driver stores numbers as text")
		}
		e.must(e.db.Exec("CREATE TABLE " + e.prefix + "items (id text PRIMARY KEY, order_id bigint, sku text)"))
		e.uniqueLower("items", "sku")
		e.must(e.db.Create(&Item{ID: 1, SKU: "Met"}))
		next := types.Snowflake(980) // as text, 1000 comes before 990
		db := e.withSource(func(context.Context) (types.Snowflake, error) {
			next++
			return next, nil
		})
		list := make([]Item, 40)
		for i := range list {
			list[i].SKU = fmt.Sprint(i)
		}
		list[7].SKU = "met"
		e.must(db.Clauses(doNothing()).Create(&list))
		for i, item := range list {
			want := types.Snowflake(981 + i)
			if i == 7 {
				want = 0
			}
			equal(e, "ID", item.ID, want)
		}
	}},
	{"MapsMayHaveNoValueInAUniqueColumn", func(e *env) {
		e.migrate(&Customer{})
		list, maps := make([]Customer, 30), make([]map[string]any, 30)
		for i := range list {
			list[i].Email = fmt.Sprint(i)
			maps[i] = map[string]any{"email": list[i].Email, "phone": nil}
		}
		e.must(e.db.Create(&list))
		e.must(e.db.Model(&Customer{}).Clauses(doNothing()).Create(&maps))
		for i, m := range maps {
			equal(e, "ID", m["id"].(types.Snowflake), list[i].ID)
		}
	}},
	{"ArraysOfTextThatAreUniqueAreLookedUp", func(e *env) {
		if e.db.Name() != "postgres" {
			e.Skip("there are no arrays")
		}
		e.must(e.db.Exec("CREATE TABLE " + e.prefix + "labels (id bigint PRIMARY KEY, text varchar(8)[] UNIQUE)"))
		list := make([]Label, 30)
		for i := range list {
			list[i].Text = fmt.Sprintf("{a,%d}", i)
		}
		first := slices.Clone(list)
		e.must(e.db.Create(&first))
		e.must(e.db.Clauses(doNothing()).Create(&list))
		for i := range list {
			equal(e, "ID", list[i].ID, first[i].ID)
		}
	}},
	{"IndexOfAnotherCollationThanItsColumnIsUsed", func(e *env) {
		if e.mysql() {
			e.Skip("its indexes have the collations of their columns")
		}
		name := `"C"`
		if e.db.Name() == "sqlite" {
			name = "NOCASE"
		}
		e.must(e.db.Exec("CREATE TABLE " + e.prefix + "labels (id bigint PRIMARY KEY, text text)"))
		e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "text ON " + e.prefix + "labels (text COLLATE " + name + ")"))
		list := make([]Label, 30)
		for i := range list {
			list[i].Text = fmt.Sprint(i)
		}
		first := slices.Clone(list)
		e.must(e.db.Create(&first))
		e.log.reset()
		e.must(e.db.Clauses(doNothing()).Create(&list))
		found := false
		for _, s := range e.log.statements("SELECT") {
			found = found || lists(s) > 0 && strings.Contains(s, " COLLATE ")
		}
		equal(e, "a list with the collation of the index", found, true)
		for i := range list {
			equal(e, "ID", list[i].ID, first[i].ID)
		}
	}},
	{"LargeUpsertFindsTextsOfAllSigns", func(e *env) {
		e.migrate(orderModels...)
		texts := []string{`"`, `'`, `\`, `\\`, `\"`, "a\tb", "a\nb", "a\r\nb", "\x01", "\x1f", "\x7f", "<&>", "[", "]", "{}", ",", `","`, "null", "?", "$1", "%_", "\u2028", "漢字", "🙂", "größer"}
		for i := range 10 {
			texts = append(texts, fmt.Sprintf("plain %d", i))
		}
		first, again := make([]Label, len(texts)), make([]Label, len(texts))
		for i, text := range texts {
			text = fmt.Sprint(i, text) // MySQL ignores some signs
			first[i].Text, again[i].Text = text, text
		}
		e.must(e.db.Create(&first))
		e.log.reset()
		e.must(e.db.Clauses(doNothing()).Create(&again))
		listed := 0
		for _, s := range e.log.statements("SELECT") {
			listed += lists(s)
		}
		equal(e, "a list of values", listed > 0, true)
		for i := range texts {
			equal(e, fmt.Sprintf("the key of %q", texts[i]), again[i].ID, first[i].ID)
		}
	}},
	{"LargeUpsertFindsRowsByTwoColumns", func(e *env) {
		e.migrate(&Shelf{})
		first, again := make([]Shelf, 25), make([]Shelf, 30)
		for i := range again {
			again[i] = Shelf{Room: fmt.Sprintf("%d \"a\"", i%5), Number: int64(i % 15)}
		}
		copy(first, again) // all with numbers and rooms of their own
		for i := range first {
			first[i].Number += int64(i / 15 * 100)
		}
		e.must(e.db.Create(&first))
		e.log.reset()
		e.must(e.db.Clauses(doNothing()).Create(&again))
		listed := 0
		for _, s := range e.log.statements("SELECT") {
			listed += listsOfPairs(s)
		}
		equal(e, "a list of pairs", listed > 0, true)
		for i := range again {
			equal(e, fmt.Sprint("the key of ", again[i]), again[i].ID, first[i%15].ID)
		}
		again = slices.Clone(first)
		for i := range again {
			again[i].ID = 0
			again[i].Number += int64(i%2) * 1000 // new
		}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		for i := range again {
			equal(e, fmt.Sprint("that ", again[i], " has the key of a stored row"), again[i].ID == first[i].ID, i%2 == 0)
		}
	}},
	{"LargeUpsertFindsNumbersInColumnsOfText", func(e *env) {
		if e.db.Name() == "postgres" {
			e.Skip("the driver refuses them")
		}
		e.migrate(&Coded{})
		first := make([]Coded, 25)
		for i := range first {
			first[i] = Coded{Name: fmt.Sprint("name ", i), Code: int64(100 + i)}
		}
		e.must(e.db.Create(&first))
		again := make([]Coded, len(first))
		for i := range again {
			again[i] = Coded{Name: fmt.Sprint("other ", i), Code: first[i].Code}
		}
		again[3].Name = first[4].Name // it is like two rows
		e.must(e.db.Clauses(doNothing()).Create(&again))
		for i := range again {
			if i == 3 {
				equal(e, "ID of a row that is like two", again[i].ID, 0)
			} else {
				equal(e, "ID", again[i].ID, first[i].ID)
			}
		}
	}},
	{"KeysOfTextBetweenFreshOnesAreNotMet", func(e *env) {
		if !e.mysql() {
			e.Skip("the others compare no text with numbers, or count the rows themselves")
		}
		table := e.prefix + "labels"
		e.must(e.db.Exec("CREATE TABLE " + table + " (id varchar(20) PRIMARY KEY, text varchar(40) UNIQUE)"))
		e.must(e.db.Exec("INSERT INTO " + table + " (id, text) VALUES ('77', 'met'), ('01010', 'not met')"))
		last := types.Snowflake(1000)
		db := e.withSource(func(context.Context) (types.Snowflake, error) { last++; return last, nil })
		list := make([]Label, 25)
		for i := range list {
			list[i].Text = fmt.Sprint(i)
		}
		list[3].Text = "met"
		e.must(db.Clauses(doUpdate("text", "text")).Create(&list))
		equal(e, "the key of the row that was met", list[3].ID, 77)
	}},
	{"ColumnsMayBeNamedAsThoseOfALook", func(e *env) {
		e.migrate(&Numbered{})
		for _, n := range []int{2, 25} { // rows are looked up by a SELECT each, or listed
			first := make([]Numbered, n)
			for i := range first {
				text := fmt.Sprint(n, " ", i)
				first[i] = Numbered{Column1: text, Column2: text, Name: text}
			}
			e.must(e.db.Create(&first))
			again := slices.Clone(first)
			for i := range again {
				again[i].ID = 0
			}
			e.must(e.db.Clauses(doNothing()).Create(&again))
			for i := range again {
				equal(e, "ID", again[i].ID, first[i].ID)
			}
		}
	}},
	{"NewRowsOfALargeUpsertTakeOneLookWhereTheyAreNotCounted", func(e *env) {
		e.migrate(orderModels...)
		last := types.Snowflake(1000)
		db := e.withSource(func(context.Context) (types.Snowflake, error) { last++; return last, nil })
		list := make([]Label, 100)
		for i := range list {
			list[i].Text = fmt.Sprint(i)
		}
		e.log.reset()
		e.must(db.Clauses(doNothing()).Create(&list))
		want := 0
		if e.mysql() {
			want = 1
		}
		equal(e, "SELECTs", len(e.log.statements("SELECT")), want)
		for i := range list {
			e.stored("labels", "text", list[i].Text, list[i].ID)
		}
	}},
	{"RowThatHasTheVeryValuesOfTheTargetIsFoundWithoutTheCatalog", func(e *env) {
		e.only(!e.mysql(), "it goes by every unique key, and compares otherwise than it stores")
		e.withOld()
		list := []Order{{Number: "old1"}, {Number: "old2"}}
		e.must(e.db.Clauses(doNothing("number")).Create(&list))
		equal(e, "SELECTs", len(e.log.statements("SELECT")), 1)
		e.sameOrders(list)
	}},
	{"LongUpsertsAreReadBackInParts", func(e *env) {
		e.migrate(orderModels...)
		const n = 2300
		list := make([]Label, n)
		for i := range list {
			list[i].Text = fmt.Sprint(i)
		}
		e.must(e.db.CreateInBatches(list[:n/2], 500))
		again := make([]Label, n)
		for i := range again {
			again[i].Text = fmt.Sprint(i)
		}
		e.log.reset()
		e.must(e.db.Clauses(doNothing()).Create(&again))
		byKey, listed := 0, 0
		for _, s := range e.log.statements("SELECT") {
			listed += lists(s)
			if lists(s) == 0 {
				byKey += strings.Count(s, " IN (")
			}
		}
		want := [2]int{3, 1}
		if e.mysql() {
			want[1] = 2
		}
		equal(e, "statements by key", byKey, want[0])
		equal(e, "lists of values", listed, want[1])
		for i := range n / 2 {
			equal(e, "ID", again[i].ID, list[i].ID)
		}
		for i := n / 2; i < n; i++ {
			e.stored("labels", "text", again[i].Text, again[i].ID)
		}
	}},
}
