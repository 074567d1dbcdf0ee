package gormcases

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

// withOld stores orders.
func (e *env) withOld() {
	e.Helper()
	e.migrate(orderModels...)
	e.must(e.db.Create(&[]Order{{Number: "old0"}, {Number: "old2"}, {Number: "old1"}}))
	e.log.reset()
}

// where adds the condition of a partial unique key to a target.
func where(on clause.OnConflict, sql string) clause.OnConflict {
	on.TargetWhere = clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: sql}}}
	return on
}

// met upserts list and fails the test unless each row has the keys of the stored one of its name.
func met[T any](e *env, conflict clause.Expression, list ...T) {
	e.Helper()
	e.must(e.db.Clauses(conflict).Create(&list))
	for _, row := range list {
		var stored T
		e.must(e.db.Where("name = ?", reflect.ValueOf(row).FieldByName("Name").Interface()).Take(&stored))
		keys := func(row T) (list []string) {
			for v := reflect.ValueOf(row); len(list) < v.NumField(); {
				field := v.Field(len(list)).Interface()
				if _, text := field.(string); text {
					field = ""
				}
				list = append(list, fmt.Sprint(field))
			}
			return list
		}
		if got, want := keys(row), keys(stored); !slices.Equal(got, want) {
			e.Errorf("keys of %+v = %q; stored are %q", row, got, want)
		}
	}
}

var upsertCases = slices.Concat(sceneCases, []testCase{
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
	{"UnresolvedKeyIsAnErrorWhereAssociationsFollow", func(e *env) {
		type Leaf struct{ ID, PostID types.Snowflake }
		type Bud struct{ ID, PostID types.Snowflake }
		type Tag struct {
			ID   types.Snowflake
			Name string `gorm:"size:40"`
		}
		type Post struct {
			ID     types.Snowflake
			Name   string `gorm:"size:40"`
			TagID  *types.Snowflake
			Tag    *Tag
			Tags   []Tag `gorm:"many2many:post_tags"`
			Leaves []Leaf
			Bud    *Bud
		}
		e.migrate(&Tag{}, &Post{}, &Leaf{}, &Bud{})
		e.uniqueLower("tags", "name")
		e.uniqueLower("posts", "name")
		e.must(e.db.Create(&Post{Name: "a", Tag: &Tag{Name: "t"}}))
		for _, p := range []Post{
			{Name: "b", Tag: &Tag{Name: "t"}},     // a nested insert
			{Name: "c", Tags: []Tag{{Name: "t"}}}, // likewise, after the parent's
		} {
			if !e.tellsMet() {
				e.fails(e.db.Create(&p), gormplugin.ErrUnresolved)
				e.count("posts", 1)
			}
		}
		ignoring := e.db.Clauses(doNothing()).Session(&gorm.Session{})
		for _, p := range []Post{{}, {Tags: []Tag{{Name: "u"}}}, {Leaves: []Leaf{{}}}, {Bud: &Bud{}}} {
			p.Name = "a"
			if err := ignoring.Create(&p).Error; errors.Is(err, gormplugin.ErrUnresolved) != (p.Tags != nil || p.Leaves != nil || p.Bud != nil) {
				e.Errorf("Create(%+v) = %v; want ErrUnresolved if rows refer to it", p, err)
			}
			equal(e, "ID", p.ID, 0)
		}
		e.count("tags", 1)
		for _, narrow := range []*gorm.DB{ignoring.Omit(clause.Associations), ignoring.Select("Name")} {
			p := Post{Name: "a", Tags: []Tag{{Name: "u"}}}
			e.must(narrow.Create(&p))
			equal(e, "ID", p.ID, 0)
		}
		e.fails(ignoring.Select("Name", "Tags").Create(&Post{Name: "a", Tags: []Tag{{Name: "u"}}}), gormplugin.ErrUnresolved)
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
	// As text, 1000 comes before 990, and '01010' lies among the keys.
	{"FreshKeysInAColumnOfTextAreFound", func(e *env) {
		e.only(!e.postgres(), "it compares no text with numbers")
		e.ddl("CREATE TABLE PRE_labels (id " + map[bool]string{true: "text", false: "varchar(20)"}[e.sqlite()] + " PRIMARY KEY, text varchar(40) UNIQUE)")
		e.ddl("INSERT INTO PRE_labels VALUES ('77', 'met'), ('01010', 'not met')")
		last := types.Snowflake(980)
		db := e.withSource(func(context.Context) (types.Snowflake, error) { last++; return last, nil })
		list := make([]Label, 40)
		for i := range list {
			list[i].Text = fmt.Sprint(i)
		}
		list[3].Text = "met"
		if e.sqlite() {
			e.uniqueLower("labels", "text") // by which no row can be found
			e.must(db.Clauses(doNothing()).Create(&list))
		} else {
			e.must(db.Clauses(doUpdate("text", "text")).Create(&list))
		}
		for i, l := range list {
			want := types.Snowflake(981 + i)
			if i == 3 {
				want = map[bool]types.Snowflake{false: 77}[e.sqlite()]
			}
			equal(e, fmt.Sprint("ID of row ", i), l.ID, want)
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
	{"UpsertsTakeTheStatementsThatTheyNeed", func(e *env) {
		e.withOld()
		last := types.Snowflake(1000)
		db := e.withSource(func(context.Context) (types.Snowflake, error) { last++; return last, nil })
		labels := func(from, n int) *[]Label {
			list := make([]Label, n)
			for i := range list {
				list[i].Text = fmt.Sprint(from + i)
			}
			return &list
		}
		e.must(e.db.Create(&Label{Text: "7"}))
		filtered := doUpdate("note", "number")
		filtered.Where.Exprs = []clause.Expression{clause.Neq{Column: clause.Column{Table: e.prefix + "orders", Name: "number"}, Value: "old1"}}
		for _, test := range []struct {
			what            string
			with            clause.Expression
			value           any
			selects, mySQLs int
			returning       bool
		}{
			{"DO UPDATE of one", doUpdate("note", "number"), &Order{Number: "old1"}, 0, 3, true},
			{"DO NOTHING of new rows", doNothing(), labels(1000, 2), 0, 1, false},
			{"DO NOTHING of many new rows", doNothing(), labels(2000, 100), 0, 1, false},
			{"DO NOTHING of many rows, of which one was met", doNothing("text"), labels(0, 50), 2, 3, false},
			{"DO NOTHING of rows with the very values of the target", doNothing("number"), &[]Order{{Number: "old1"}, {Number: "old2"}}, 1, 3, false},
			{"DO UPDATE WHERE, which returns not one row for each", filtered, &[]Order{{Number: "old1"}, {Number: "old2"}}, 2, 3, false},
		} {
			e.log.reset()
			e.must(db.Clauses(test.with).Create(test.value))
			want := test.selects
			if e.mysql() {
				want = test.mySQLs
			}
			if list := e.log.statements("SELECT"); len(list) != want {
				e.Errorf("%s: SELECTs = %q; want %d", test.what, list, want)
			}
			equal(e, test.what+": RETURNING", strings.Contains(e.log.statements("INSERT")[0], "RETURNING"), test.returning && !e.mysql())
		}
	}},
	{"ModelsWithSeveralKeysOrAnotherAreReconciled", func(e *env) {
		type Entry struct { // without a primary key
			Code types.Snowflake `gorm:"snowflake"`
			Name string          `gorm:"size:40;uniqueIndex"`
		}
		e.migrate(&Entry{})
		met(e, doNothing(), Entry{Name: "A"}, Entry{Name: "B"})
		met(e, doNothing(), Entry{Name: "B"})
		met(e, doNothing(), Entry{Name: "B", Code: 42})
		type Half struct {
			ID   types.Snowflake `gorm:"primaryKey"`
			Name string          `gorm:"primaryKey;size:40;unique"` // as well as a part of the key
		}
		e.migrate(&Half{})
		met(e, doNothing(), Half{Name: "1"})
		met(e, doNothing(), Half{Name: "1"})
		type Public struct {
			Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"` // declared first
			ID     types.Snowflake
			Name   string `gorm:"size:40;uniqueIndex"`
			Note   string `gorm:"size:40"`
		}
		e.migrate(&Public{})
		old := Public{Name: "A"}
		e.must(e.db.Create(&old))
		for _, kind := range e.upserts("note", "name", clause.Expr{SQL: "1 = 0"}) {
			if kind.target != nil || kind.name == "DO NOTHING" {
				met(e, kind.clause, Public{Name: "A"}) // alone: of several that update, MySQL does not tell
			}
		}
		e.log.reset()
		met(e, doNothing(), Public{Name: "A"}, Public{Name: "by the primary key"})
		if before, _, _ := strings.Cut(e.log.statements("SELECT 0")[0], " IN ("); !strings.HasSuffix(strings.Trim(before, "`\""), "id") {
			e.Errorf("re-read = %s …; want one by id", before)
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
		same := []Public{{ID: old.ID, Name: "A2"}, {Name: "C"}}
		e.must(e.db.Save(&same))
		equal(e, "Public", same[0].Public, old.Public)
		equal(e, "stored Public", e.keys("publics", "public", "name", "C")[0], same[1].Public.Int64())
	}},
	{"ColumnsMayBeNamedAsThoseOfALook", func(e *env) {
		e.migrate(&Numbered{})
		for _, n := range []int{2, 25} { // rows are looked up by a SELECT each, or listed
			list := make([]Numbered, n)
			for i := range list {
				text := fmt.Sprint(n, " ", i)
				list[i] = Numbered{Column1: text, Column2: text, Name: text}
			}
			e.must(e.db.Create(slices.Clone(list)))
			met(e, doNothing(), list...)
		}
	}},
	{"MapsGetTheStoredKeysWhereverTheKeyStands", func(e *env) {
		e.withOld()
		m := map[string]any{"id": "42", "number": "old2"} // as from JSON
		e.must(e.db.Model(&Order{}).Clauses(doNothing("number")).Create(m))
		id, _ := m["id"].(types.Snowflake)
		e.stored("orders", "number", "old2", id)
		list := []map[string]any{{"Number": "new", "Note": "x"}, {"Number": "old2", "Note": "x", "ID": nil}}
		e.must(e.db.Model(&Order{}).Clauses(doUpdate("note", "number")).Create(&list))
		equal(e, "len", len(list), 2)
		id, _ = list[0]["id"].(types.Snowflake)
		e.stored("orders", "number", "new", id)
		id, _ = list[1]["ID"].(types.Snowflake)
		e.stored("orders", "number", "old2", id)
	}},
	{"SoftDeletedRowIsTheStoredRow", func(e *env) {
		e.withOld()
		e.must(e.db.Where("number = ?", "old1").Delete(&Order{}))
		for i, conflict := range []clause.OnConflict{doNothing("number"), doUpdate("note", "number")} {
			o := Order{Number: "old1", Items: []Item{{SKU: fmt.Sprint(i)}}}
			e.must(e.db.Clauses(conflict).Create(&o))
			e.stored("orders", "number", "old1", o.ID)
			e.stored("items", "order_id", o.ID, o.Items[0].ID)
			e.must(e.db.Delete(&o.Items))
		}
	}},
	// A default of the database stands in a unique key, and tells nobody by which value a row was met.
	{"ATimeThatTheDatabaseFillsIsNotThatOfTheRow", func(e *env) {
		e.only(!e.mysql(), "its upserts have no target")
		type Event struct {
			ID        types.Snowflake
			Name      string    `gorm:"size:40;uniqueIndex:event"`
			CreatedAt time.Time `gorm:"uniqueIndex:event;default:'2020-01-01 00:00:00+00:00'"`
		}
		e.migrate(&Event{})
		later := time.Date(2024, 5, 5, 0, 0, 0, 0, time.UTC)
		for id, at := range []time.Time{time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), later} {
			e.must(e.db.Create(&Event{ID: types.Snowflake(id + 1), Name: "a", CreatedAt: at}))
		}
		met := Event{Name: "a", CreatedAt: later} // which Select leaves out
		if err := e.db.Select("Name").Clauses(doNothing("name", "created_at")).Create(&met).Error; err == nil && met.ID == 2 {
			e.Errorf("key of a row that met the row 1 = %d; want 1, or none", met.ID)
		}
	}},
})
