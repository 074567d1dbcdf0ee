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

func upsertAll(target ...string) clause.OnConflict {
	return clause.OnConflict{Columns: columns(target), UpdateAll: true}
}

func (e *env) mysql() bool { return e.db.Name() == "mysql" }

// tellsMet reports whether a DO NOTHING returns the keys of the rows that it met. On
// MariaDB it does, in the statements by which GORM saves associations.
func (e *env) tellsMet() bool { return e.mysql() && e.target.Returning }

// uniqueLower makes a column unique in lower case. MariaDB, which has no indexes on
// expressions, gets the generated column lower_case.
func (e *env) uniqueLower(table, column string) {
	e.Helper()
	indexed := "(lower(" + column + "))"
	if e.mariadb() {
		e.ddl("ALTER TABLE PRE_" + table + " ADD COLUMN lower_case varchar(40) GENERATED ALWAYS AS " + indexed)
		indexed = "lower_case"
	}
	e.ddl("CREATE UNIQUE INDEX PRE_" + table + "_lower ON PRE_" + table + " (" + indexed + ")")
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

// met upserts rows, and fails the test unless they have all keys of the stored ones.
func met(e *env, conflict clause.Expression, rows any) {
	e.Helper()
	e.must(e.db.Clauses(conflict).Create(rows))
	e.matches(rows)
}

var upsertCases = slices.Concat(sceneCases, []testCase{
	{"StoredRowWithoutAKeyIsUnresolved", func(e *env) {
		e.only(e.sqlite(), "only SQLite stores NULL in a primary key")
		e.withOld()
		e.must(e.db.Exec("INSERT INTO " + e.prefix + "orders (number) VALUES ('null')"))
		o := Order{Number: "null", Items: []Item{{SKU: "1"}}}
		e.fails(e.db.Clauses(doNothing()).Create(&o), gormplugin.ErrUnresolved)
		equal(e, "ID", o.ID, 0)
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
		e.ok("Register", err)
		phone := "1"
		list := []Customer{{Email: "a", Phone: &phone}, {Email: "b", Phone: &phone}}
		tx := e.db.Clauses(doNothing("phone")).Create(&list)
		e.fails(tx, context.Canceled)
		if !strings.HasPrefix(tx.Error.Error(), "gormplugin: read back") || !strings.Contains(tx.Error.Error(), "Customer") {
			e.Errorf("error = %q; want one of gormplugin that names Customer", tx.Error)
		}
	}},
	{"RowThatTheStatementReplacedAgainHasTheKeyThatIsStored", func(e *env) {
		e.only(e.sqlite(), "only SQLite has INSERT OR REPLACE")
		e.migrate(&Customer{})
		list := []Customer{{Email: "twice"}, {Email: "twice"}}
		e.must(e.db.Clauses(clause.Insert{Modifier: "OR REPLACE"}).Create(&list))
		equal(e, "ID of the first", list[0].ID, list[1].ID)
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
	// A default of the database stands in a unique key, and no reply tells by which value a row was
	// met.
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
	{"DoUpdateStillReturnsWhatTheDatabaseFills", func(e *env) {
		e.only(!e.tidb(), "DEFAULT (3+4) is no default of TiDB")
		type Stamped struct {
			ID    types.Snowflake
			Name  string `gorm:"size:40;uniqueIndex"`
			Score int64  `gorm:"default:(3+4)"`
		}
		e.migrate(&Stamped{})
		e.must(e.db.Create(&Stamped{Name: "A"}))
		for _, asked := range [][]clause.Expression{{}, {clause.Returning{Columns: columns([]string{"score"})}}, {clause.Returning{}}} {
			s := Stamped{Name: "A"}
			e.log.reset()
			e.must(e.db.Clauses(append(asked, doUpdate("name", "name"))...).Create(&s))
			e.stored("stampeds", "name", "A", s.ID)
			if e.target.Returning {
				equal(e, "Score", s.Score, 7)
				equal(e, "re-reads", len(e.log.statements("SELECT 0")), 0)
			}
		}
		if m := (map[string]any{"name": "A"}); e.target.Returning {
			e.must(e.db.Model(&Stamped{}).Clauses(doUpdate("name", "name"), clause.Returning{Columns: columns([]string{"id"})}).Create(m))
			id, _ := m["id"].(types.Snowflake)
			e.stored("stampeds", "name", "A", id)
		}
	}},
	{"UnresolvedKeyIsAnErrorWhereAssociationsFollow", func(e *env) {
		e.integers()
		newWorld(e)
		e.uniqueLower("parties", "name")
		e.uniqueLower("docs", "note")
		e.must(e.db.Create(&Doc{Number: "1", Note: "a", Party: &Party{Email: "1", Name: "p"}}))
		ignoring := e.db.Clauses(doNothing()).Session(&gorm.Session{})
		marks := []Mark{{Text: "m"}}
		for _, test := range []struct {
			db   *gorm.DB
			doc  Doc
			want error
		}{
			{e.db, Doc{Note: "b", Party: &Party{Name: "P"}}, gormplugin.ErrUnresolved}, // a nested insert
			{ignoring, Doc{Note: "A"}, nil},
			{ignoring, Doc{Note: "A", Marks: marks}, gormplugin.ErrUnresolved},
			{ignoring, Doc{Note: "A", Lines: []Line{{}}}, gormplugin.ErrUnresolved},
			{ignoring, Doc{Note: "A", Stamp: &Stamp{}}, gormplugin.ErrUnresolved},
			{ignoring.Omit(clause.Associations), Doc{Note: "A", Marks: marks}, nil},
			{ignoring.Select("Note"), Doc{Note: "A", Marks: marks}, nil},
			{ignoring.Select("Note", "Marks"), Doc{Note: "A", Marks: marks}, gormplugin.ErrUnresolved},
		} {
			if test.db == e.db && e.tellsMet() {
				continue
			}
			if err := test.db.Create(&test.doc).Error; !errors.Is(err, test.want) {
				e.Errorf("Create(%+v) = %v; want %v", test.doc, err, test.want)
			}
			if test.db != e.db {
				equal(e, "ID", test.doc.ID, 0)
			}
			e.count("docs", 1)
			e.count("parties", 1)
			e.count("marks", 0)
		}
	}},
	{"UpsertRewritesTheKeyOnlyWithItself", func(e *env) {
		type Half struct {
			ID       types.Snowflake `gorm:"primaryKey"`
			TenantID int64           `gorm:"primaryKey;autoIncrement:false"`
			Note     string          `gorm:"size:40"`
		}
		e.migrate(&Half{}, &Node{})
		e.withOld()
		on := func(target, set []string) clause.OnConflict {
			return clause.OnConflict{Columns: columns(target), DoUpdates: clause.AssignmentColumns(set)}
		}
		e.fails(e.db.Clauses(on([]string{"number"}, []string{"id", "note"})).Create(&Order{Number: "old1"}), gormplugin.ErrKeyRewrite)
		equal(e, "statements", len(e.log.statements("INSERT")), 0)
		same := clause.Set{{Column: clause.Column{Name: "id"}, Value: clause.Column{Table: e.prefix + "orders", Name: "id"}}}
		met(e, clause.OnConflict{Columns: columns([]string{"number"}), DoUpdates: same}, &Order{Number: "old1"})
		half := Half{TenantID: 1}
		e.must(e.db.Create(&half))
		half.Note = "B"
		met(e, on([]string{"tenant_id", "id"}, []string{"id", "note"}), &half)
		e.must(e.db.Create(&Node{ID: 5, Name: "A"}))
		target := on([]string{"id"}, []string{"id", "name"})
		met(e, target, &[]Node{{ID: 5, Name: "B"}, {Name: "C"}})
		if !e.mysql() {
			return
		}
		// MySQL uses every unique key, even one that the model does not declare.
		e.ddl("CREATE UNIQUE INDEX PRE_name ON PRE_nodes (name)")
		other := e.with(e.src)
		e.fails(other.Clauses(target).Create(&Node{ID: 6, Name: "B"}), gormplugin.ErrKeyRewrite)
		e.stored("nodes", "name", "B", 5)
	}},
	{"UpsertsTakeTheStatementsThatTheyNeed", func(e *env) {
		e.withOld()
		e.migrate(&Node{})
		last := types.Snowflake(1000)
		db := e.with(gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { last++; return last, nil }))
		labels := func(from, n int) *[]Label {
			list := make([]Label, n)
			for i := range list {
				list[i].Text = fmt.Sprint(from + i)
			}
			return &list
		}
		e.must(db.Create(&[]Node{{ID: 5, Name: "A"}, {ID: 6, Name: "B"}}))
		e.must(db.Create(&Label{Text: "7"}))
		filtered := doUpdate("note", "number")
		filtered.Where.Exprs = []clause.Expression{clause.Neq{Column: clause.Column{Table: e.prefix + "orders", Name: "number"}, Value: "old1"}}
		graph := wholeOrder("new")
		for _, test := range []struct {
			what                     string
			with                     clause.Expression
			value                    any
			selects, mySQLs, inserts int
			returning                bool
		}{
			{"DO UPDATE of one", doUpdate("note", "number"), &Order{Number: "old1"}, 0, 3, 1, true},
			{"DO NOTHING of new rows", doNothing(), labels(1000, 2), 0, 1, 1, false},
			{"DO NOTHING of many new rows", doNothing(), labels(2000, 100), 0, 1, 1, false},
			{"DO NOTHING of many rows, of which one was met", doNothing("text"), labels(0, 50), 2, 3, 1, false},
			{"DO NOTHING of rows with the very values of the target", doNothing("number"), &[]Order{{Number: "old1"}, {Number: "old2"}}, 1, 3, 1, false},
			{"DO UPDATE WHERE, which returns not one row for each", filtered, &[]Order{{Number: "old1"}, {Number: "old2"}}, 2, 3, 1, false},
			// MySQL's upserts also go by an index that was made a moment ago.
			{"an upsert on the key alone", doUpdate("name", "id"), &[]Node{{ID: 5, Name: "A2"}, {Name: "C"}}, 0, 1, 1, false},
			{"Save of a stored row and a new one", nil, &[]Node{{ID: 5, Name: "A3"}, {Name: "D"}}, 0, 1, 1, false},
			{"Save of new rows", nil, &[]Node{{Name: "E"}, {Name: "F"}}, 0, 0, 1, false},
			// Five tables and the join rows. Of the new customer and the new labels MySQL reads the keys.
			{"a new graph", clause.Insert{}, &graph, 0, map[bool]int{false: 2}[e.tellsMet()], 6, false},
		} {
			e.log.reset()
			if test.with == nil {
				e.must(db.Save(test.value))
			} else {
				e.must(db.Clauses(test.with).Create(test.value))
			}
			want := test.selects
			if e.mysql() {
				want = test.mySQLs
			}
			if list := e.log.statements("SELECT"); len(list) != want {
				e.Errorf("%s: SELECTs = %q; want %d", test.what, list, want)
			}
			if list := strings.Join(e.log.statements("SELECT"), "; "); want == 2 && strings.Contains(test.what, "many") && !strings.Contains(list, " BETWEEN ") {
				e.Errorf("%s: SELECTs = %q; want a run of keys looked up", test.what, list)
			}
			equal(e, test.what+": INSERTs", len(e.log.statements("INSERT")), test.inserts)
			if test.inserts == 1 {
				equal(e, test.what+": RETURNING", strings.Contains(e.log.statements("INSERT")[0], "RETURNING"), test.returning && !e.mysql())
			}
			if test.what != "a new graph" {
				e.matches(test.value)
			}
		}
		e.matches(&graph)
	}},
	{"ModelsWithSeveralKeysOrAnotherAreReconciled", func(e *env) {
		type Entry struct { // without a primary key
			Code types.Snowflake `gorm:"snowflake"`
			Name string          `gorm:"size:40;uniqueIndex"`
		}
		type Hidden struct { // GORM does not read the key
			ID   types.Snowflake `gorm:"primaryKey;->:false;<-"`
			Name string          `gorm:"size:40;uniqueIndex"`
		}
		type Half struct {
			ID   types.Snowflake `gorm:"primaryKey"`
			Name string          `gorm:"primaryKey;size:40;unique"` // as well as a part of the key
		}
		type Public struct {
			Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"` // declared first
			ID     types.Snowflake
			Name   string `gorm:"size:40;uniqueIndex"`
			Note   string `gorm:"size:40"`
		}
		type Bare struct {
			ID     types.Snowflake
			Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
		}
		e.migrate(&Entry{}, &Hidden{}, &Half{}, &Public{}, &Bare{}, &Numbered{})
		for _, list := range [][]Entry{{{Name: "A"}, {Name: "B"}}, {{Name: "B"}}, {{Name: "B", Code: 42}}} {
			e.must(e.db.Clauses(doNothing()).Create(&list))
			last := list[len(list)-1]
			equal(e, "Code", last.Code.Int64(), e.keys("entries", "code", "name", last.Name)[0])
		}
		for range 2 {
			met(e, doUpdate("name", "name"), &Hidden{Name: "A"})
			met(e, doNothing("name"), &Hidden{Name: "A"})
			met(e, doNothing(), &Half{Name: "1"})
		}
		old, bare := Public{Name: "A"}, Bare{}
		e.must(e.db.Create(&old))
		e.must(e.db.Create(&bare))
		for _, kind := range e.upserts("note", "name", clause.Expr{SQL: "1 = 0"}) {
			if kind.name != "UpdateAll" && kind.name != "OR IGNORE" && kind.name != "IGNORE" {
				met(e, kind.clause, &Public{Name: "A"}) // alone: of several that update, MySQL does not tell
			}
		}
		e.log.reset()
		met(e, doNothing(), &[]Public{{Name: "A"}, {Name: "by the primary key"}})
		if before, _, _ := strings.Cut(e.log.statements("SELECT 0")[0], " IN ("); !strings.HasSuffix(strings.Trim(before, "`\""), "id") {
			e.Errorf("re-read = %s …; want one by id", before)
		}
		same := []Public{{ID: old.ID, Name: "A2"}, {Name: "C"}}
		e.must(e.db.Save(&same))
		e.matches(&same)
		met(e, upsertAll(), &[]Bare{{ID: bare.ID}, {}}) // GORM finds nothing to update
		for _, n := range []int{2, 25} {                // rows are looked up by a SELECT each, or listed
			list := make([]Numbered, n)
			for i := range list {
				text := fmt.Sprint(n, " ", i)
				list[i] = Numbered{Column1: text, Column2: text, Name: text}
			}
			e.must(e.db.Create(slices.Clone(list)))
			met(e, doNothing(), &list)
		}
	}},
})
