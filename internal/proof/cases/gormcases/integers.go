package gormcases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/gormplugin/schemacheck"
	"github.com/snowkey/snowkey/types"
)

// A Member is a model as programs have it that let the database count: nothing in it says
// who fills the keys.
type Member struct {
	gorm.Model
	Name    string `gorm:"size:40;uniqueIndex"`
	Seen    uint   `gorm:"-"`
	Profile *Profile
	Posts   []Post
	Notices []Notice `gorm:"polymorphic:Owner"`
	Crews   []*Crew  `gorm:"many2many:member_crews"`
}

// BeforeCreate sees the key.
func (m *Member) BeforeCreate(*gorm.DB) error {
	m.Seen = m.ID
	return nil
}

// A Profile shares the key of its [Member].
type Profile struct {
	MemberID uint   `gorm:"primaryKey"`
	Bio      string `gorm:"size:40"`
}

// A Post belongs to a [Member], and to another post or to none.
type Post struct {
	ID       int64 `gorm:"primaryKey;autoIncrement"`
	MemberID uint
	Member   *Member
	ParentID *int64
	Parent   *Post
	Replies  []Post `gorm:"foreignKey:ParentID"`
	Title    string `gorm:"size:40"`
}

// A Notice belongs to a row of any table.
type Notice struct {
	ID        uint64
	OwnerID   uint64
	OwnerType string `gorm:"size:40"`
}

// A Crew has members, many to many.
type Crew struct {
	ID   crewID
	Name string `gorm:"size:40;uniqueIndex"`
}

type crewID uint

var memberModels = []any{&Member{}, &Profile{}, &Post{}, &Notice{}, &Crew{}}

// integers makes the plugin of the case one with integer keys.
func (e *env) integers(options ...gormplugin.Option) {
	e.Helper()
	e.src = &counter{first: 1 << 50}
	e.integersFrom(e.src, options...)
}

func (e *env) integersFrom(src gormplugin.Source, options ...gormplugin.Option) {
	e.Helper()
	e.db = e.open(&gorm.Config{})
	options = slices.Concat([]gormplugin.Option{gormplugin.WithIntegerKeys()}, e.target.Options, options)
	if err := e.db.Use(gormplugin.New(src, options...)); err != nil {
		e.Fatalf("Use = %v; want no error", err)
	}
}

// created creates row, a pointer to a struct, and returns what its field name has then.
func (e *env) created(row any, name string) types.Snowflake {
	e.Helper()
	e.must(e.db.Create(row))
	s, err := schema.Parse(row, &sync.Map{}, schema.NamingStrategy{})
	if err != nil {
		e.Fatalf("Parse(%T) = %v; want no error", row, err)
	}
	v := reflect.Indirect(s.LookUpField(name).ReflectValueOf(e.Context(), reflect.ValueOf(row).Elem()))
	if v.CanUint() {
		return types.Snowflake(v.Uint())
	}
	return types.Snowflake(v.Int())
}

var integerCases = []testCase{
	{"IntegerKeysThatGORMCountsAreFilled", func(e *env) {
		e.integers()
		type Modeled struct{ gorm.Model }
		type Uint struct{ ID uint }
		type Uint64 struct{ ID uint64 }
		type Int struct{ ID int }
		type Int64 struct{ ID int64 }
		type Pointed struct{ ID *uint }
		type Explicit struct {
			ID uint `gorm:"primaryKey;autoIncrement"`
		}
		type Other struct {
			Number uint `gorm:"primaryKey"`
		}
		type Inner struct {
			ID uint `gorm:"primaryKey"`
		}
		type Prefixed struct {
			Inner Inner `gorm:"embedded;embeddedPrefix:in_"`
		}
		type MyID uint
		type Named struct{ ID MyID }
		type OrderID types.Snowflake
		type Derived struct{ ID OrderID }
		type Big struct {
			ID uint `gorm:"type:bigint;size:64"`
		}
		e.migrate(&Modeled{}, &Uint{}, &Uint64{}, &Int{}, &Int64{}, &Pointed{}, &Explicit{}, &Other{}, &Prefixed{}, &Named{}, &Derived{}, &Big{})
		for _, row := range []any{&Modeled{}, &Uint{}, &Uint64{}, &Int{}, &Int64{}, &Pointed{}, &Explicit{}, &Prefixed{}, &Named{}, &Derived{}, &Big{}} {
			e.fresh(fmt.Sprintf("ID of %T", row), e.created(row, "ID"))
		}
		o := Other{}
		e.fresh("Number", e.created(&o, "Number"))
		equal(e, "stored", e.keys("others", "number", "1", 1)[0], int64(o.Number))
		u := Uint{ID: 7}
		equal(e, "a key that is set", e.created(&u, "ID"), 7)
		equal(e, "keys asked for", e.src.given, 12)
	}},
	{"IntegerKeyOfAPairIsFilled", func(e *env) {
		e.integers()
		type Pair struct {
			TenantID uint   `gorm:"primaryKey"`
			ID       uint   `gorm:"primaryKey"`
			Name     string `gorm:"size:40"`
		}
		// GORM makes no such table on MariaDB, and one without TenantID in its key on SQLite.
		e.ddl("CREATE TABLE `PRE_pairs` (`tenant_id` bigint NOT NULL, `id` bigint NOT NULL, `name` varchar(40), PRIMARY KEY (`tenant_id`, `id`))")
		list := []Pair{{TenantID: 1, Name: "A"}, {TenantID: 1, Name: "B"}, {Name: "C"}}
		e.must(e.db.Create(&list))
		for _, p := range list {
			e.stored("pairs", "name", p.Name, types.Snowflake(p.ID))
			e.fresh("ID", types.Snowflake(p.ID))
		}
		equal(e, "TenantID", list[2].TenantID, 0)
	}},
	{"IntegerKeysOfOthersAreLeftAlone", func(e *env) {
		e.integers()
		type False struct {
			ID uint `gorm:"primaryKey;autoIncrement:false"`
		}
		type Default struct {
			ID uint `gorm:"primaryKey;default:77"`
		}
		type Small struct{ ID int32 }
		type Off struct {
			ID uint `gorm:"primaryKey;snowflake:-"`
		}
		type OffModel struct {
			gorm.Model `gorm:"snowflake:-"`
		}
		e.migrate(&False{}, &Small{}, &Off{}, &OffModel{})
		e.ddl("CREATE TABLE `PRE_defaults` (`id` bigint DEFAULT 77 NOT NULL, PRIMARY KEY (`id`))") // GORM would count as well
		for want, rows := range map[types.Snowflake][]any{0: {&False{}}, 77: {&Default{}}, 1: {&Small{}, &Off{}, &OffModel{}}} {
			for _, row := range rows {
				equal(e, fmt.Sprintf("ID of %T", row), e.created(row, "ID"), want)
			}
		}
		type OffChild struct { // which need not hold a key of the plugin
			ID    int32
			OffID uint32
			Off   *Off
		}
		e.must(e.db.Session(&gorm.Session{DryRun: true}).Create(&OffChild{OffID: 1}))
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"IntegerKeysThatCannotHoldAKeyAreRefused", func(e *env) {
		e.integers()
		type Sized struct {
			ID uint `gorm:"size:32"`
		}
		type Int4 struct {
			ID int64 `gorm:"type:int(11) unsigned"`
		}
		type Serial struct {
			ID uint `gorm:"type:SERIAL"`
		}
		type Wide struct{ ID uint }
		type Child struct {
			ID     uint
			WideID uint32
			Wide   *Wide
		}
		type Cramped struct {
			ID     uint
			WideID uint `gorm:"type:int"`
			Wide   *Wide
		}
		type Text struct {
			ID     uint
			WideID string
			Wide   *Wide
		}
		type Typed struct {
			ID types.Snowflake `gorm:"autoIncrement"`
		}
		type Two struct {
			ID     uint `gorm:"size:32"`
			WideID uint32
			Wide   *Wide
		}
		for model, want := range map[any]string{
			&Sized{}: "Sized.ID: the tag size:32 cannot hold the 64-bit keys of WithIntegerKeys; remove size:32 from the tag and widen the column, or", &Int4{}: "Int4.ID: the tag type:int(11)", &Serial{}: "Serial.ID: the tag type:SERIAL",
			&Child{}: "Child.WideID: uint32 cannot hold", &Cramped{}: "Cramped.WideID: the tag type:int cannot hold the 64-bit key Wide.ID that it refers to; remove type:int from the tag and widen the column", &Text{}: "Text.WideID: string cannot hold",
			&Typed{}: "Typed.ID: autoIncrement",
			&Two{}:   "Two.WideID: uint32",
		} {
			e.log.reset()
			tx := e.db.Create(model)
			var wrong *gormplugin.ModelError
			if !errors.As(tx.Error, &wrong) || !strings.Contains(tx.Error.Error(), want) {
				e.Errorf("Create(%T) = %v; want a ModelError with %q", model, tx.Error, want)
			}
			if _, two := model.(*Two); two && !strings.Contains(tx.Error.Error(), "Two.ID: the tag size:32") {
				e.Errorf("Create(%T) = %v; want both reasons", model, tx.Error)
			}
			equal(e, "statements", len(e.log.statements("INSERT")), 0)
		}
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"IntegerKeysReachTheWholeGraph", func(e *env) {
		e.integers()
		e.migrate(memberModels...)
		m := Member{
			Name: "A", Profile: &Profile{Bio: "x"}, Notices: []Notice{{}, {}}, Crews: []*Crew{{Name: "T"}},
			Posts: []Post{{Title: "1", Replies: []Post{{Title: "1.1", Member: &Member{Name: "B"}}}}, {Title: "2"}},
		}
		e.must(e.db.Create(&m))
		e.stored("members", "name", "A", types.Snowflake(m.ID))
		equal(e, "the key that the hook saw", m.Seen, m.ID)
		equal(e, "Profile.MemberID", m.Profile.MemberID, m.ID)
		first := &m.Posts[0]
		e.stored("posts", "title", "1", types.Snowflake(first.ID))
		equal(e, "MemberID", first.MemberID, m.ID)
		equal(e, "ParentID", *first.Replies[0].ParentID, first.ID)
		e.stored("members", "name", "B", types.Snowflake(first.Replies[0].MemberID))
		equal(e, "OwnerID", m.Notices[1].OwnerID, uint64(m.ID))
		e.stored("crews", "name", "T", types.Snowflake(m.Crews[0].ID))
		e.count("member_crews", 1)
		// Of the members A and B, three posts, two notices and a crew.
		equal(e, "keys asked for", e.src.given, 8)
		for _, id := range []types.Snowflake{types.Snowflake(m.ID), types.Snowflake(first.ID), types.Snowflake(m.Notices[0].ID), types.Snowflake(m.Crews[0].ID)} {
			e.fresh("a key", id)
		}

		var back Member
		e.must(e.db.Preload("Posts.Replies.Member").Preload("Profile").Preload("Notices").Preload("Crews").First(&back, m.ID))
		equal(e, "preloaded", fmt.Sprint(len(back.Posts), back.Posts[0].Replies[0].Member.Name, back.Profile.Bio, len(back.Notices), back.Crews[0].ID), fmt.Sprint(2, "B", "x", 2, m.Crews[0].ID))
		if err := e.db.Model(&m).Association("Posts").Append(&Post{Title: "3"}); err != nil {
			e.Fatalf("Append = %v; want no error", err)
		}
		e.stored("posts", "title", "3", types.Snowflake(m.Posts[2].ID))

		text, err := json.Marshal(m.Posts[2])
		if err != nil || !strings.Contains(string(text), fmt.Sprintf(`"ID":%d,"MemberID":%d,`, m.Posts[2].ID, m.ID)) {
			e.Errorf("Marshal = %s, %v; want the keys as numbers", text, err)
		}
	}},
	{"IntegerKeysAreFilledInMapsBatchesAndGenerics", func(e *env) {
		e.integers()
		e.migrate(memberModels...)
		values := map[string]any{"Name": "M"}
		e.must(e.db.Model(&Crew{}).Create(values))
		id, ok := values["id"].(crewID)
		if !ok {
			e.Fatalf("the key in the map is a %T; want a crewID", values["id"])
		}
		e.stored("crews", "name", "M", types.Snowflake(id))
		list := make([]Crew, 5)
		for i := range list {
			list[i].Name = fmt.Sprint(i)
		}
		list[2].ID = 42
		e.must(e.db.CreateInBatches(&list, 2))
		for i, crew := range list {
			e.stored("crews", "name", fmt.Sprint(i), types.Snowflake(crew.ID))
		}
		equal(e, "the key that was set", list[2].ID, 42)
		equal(e, "calls of Fill", e.src.fills, 4)
		crew := Crew{Name: "G"}
		if err := gorm.G[Crew](e.db).Create(e.Context(), &crew); err != nil {
			e.Fatalf("generic Create = %v; want no error", err)
		}
		e.fresh("a key of the generic API", types.Snowflake(crew.ID))
		crew = Crew{}
		e.must(e.db.Where(Crew{Name: "F"}).FirstOrCreate(&crew))
		e.stored("crews", "name", "F", types.Snowflake(crew.ID))
		e.must(e.db.Save(&Crew{Name: "S"}))
		e.count("crews", 9)
	}},
	{"IntegerKeysOfAGraphAreAssignedWithoutSQL", func(e *env) {
		e.integers()
		m := Member{Name: "A", Profile: &Profile{}, Posts: []Post{{}, {Replies: []Post{{}}}}}
		plugin := gormplugin.New(e.src, gormplugin.WithIntegerKeys())
		if err := plugin.Assign(e.Context(), e.db, &m); err != nil {
			e.Fatalf("Assign = %v; want no error", err)
		}
		equal(e, "keys asked for", e.src.given, 4)
		equal(e, "statements", len(e.log.statements("")), 0)
		equal(e, "MemberID", m.Posts[1].MemberID, m.ID)
		equal(e, "Profile.MemberID", m.Profile.MemberID, m.ID)
		equal(e, "ParentID", *m.Posts[1].Replies[0].ParentID, m.Posts[1].ID)
		var plain Member
		if err := gormplugin.New(e.src).Assign(e.Context(), e.db, &plain); err != nil || plain.ID != 0 {
			e.Errorf("Assign without the option = %v with key %d; want no error and 0", err, plain.ID)
		}
	}},
	{"KeysOfTheProgramMayBeBelowZero", func(e *env) {
		e.integers()
		type Message struct {
			ID     int64
			ChatID int64
			Body   string `gorm:"size:40"`
		}
		type Chat struct { // as those of Telegram
			ID       int64
			Title    string `gorm:"size:40;uniqueIndex"`
			Messages []Message
		}
		const group = -1001234567890
		e.migrate(&Chat{}, &Message{})
		e.must(e.db.Create(&Chat{ID: group, Title: "A", Messages: []Message{{Body: "a"}}}))
		for body, conflict := range map[string]clause.OnConflict{
			"b": {Columns: []clause.Column{{Name: "title"}}, DoNothing: true},
			"c": {Columns: []clause.Column{{Name: "title"}}, DoUpdates: clause.AssignmentColumns([]string{"title"})},
		} {
			chat := Chat{Title: "A", Messages: []Message{{Body: body}}}
			e.must(e.db.Clauses(conflict).Create(&chat))
			equal(e, "key of the chat that was met", chat.ID, group)

			type Refusing struct { // the same table
				ID    types.Snowflake
				Title string
			}
			refusing := e.db.Table(e.prefix + "chats").Clauses(conflict).Create(&Refusing{Title: "A"})
			e.fails(refusing, types.ErrRange)
		}
		for _, body := range []string{"a", "b", "c"} {
			equal(e, "messages of the group that say "+body, fmt.Sprint(e.keys("messages", "chat_id", "body", body)), fmt.Sprintf("[%d]", int64(group)))
		}
	}},
	{"IntegerKeysServeConditionsAndPages", func(e *env) {
		e.integers(gormplugin.WithLayout(core.JavaScript()))
		e.migrate(&Crew{})
		layout := core.JavaScript()
		hour := func(n int) time.Time { return layout.Epoch.Add(time.Duration(n) * time.Hour) }
		at := func(n int) crewID { return crewID(layout.Min(hour(n))) }
		e.must(e.db.Create(&[]Crew{{at(1), "A"}, {at(2), "B"}, {at(3), "C"}}))
		names := func(tx *gorm.DB) (text string) {
			e.Helper()
			var list []Crew
			e.must(tx.Find(&list))
			for _, crew := range list {
				text += crew.Name
			}
			return text
		}
		equal(e, "between", names(e.db.Where(gormplugin.CreatedBetween(hour(2), hour(3)))), "B")
		equal(e, "older", names(e.db.Where(gormplugin.OlderThan(types.Snowflake(at(3)))).Order("id DESC")), "BA")
		var wrong *gormplugin.ModelError
		plain := e.use(e.open(&gorm.Config{}))
		if tx := plain.Where(gormplugin.NewerThan(1)).Find(&[]Crew{}); !errors.As(tx.Error, &wrong) {
			e.Errorf("a condition without the option = %v; want a ModelError", tx.Error)
		}
	}},
}

// An Entry has a key as the database counts them.
type Entry struct {
	ID    uint
	Name  string `gorm:"size:40"`
	Lines []EntryLine
}

// An EntryLine belongs to an [Entry].
type EntryLine struct {
	ID      uint
	EntryID uint
}

var integerChecks = []testCase{
	{"CheckEndsTheCountingThatMeetsTheKeys", func(e *env) {
		last := atomic.Int64{}
		last.Store(1 << 50)
		e.integersFrom(gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { return types.Snowflake(last.Add(1)), nil }))
		e.migrate(&Entry{}, &EntryLine{})
		e.must(e.db.Create(&Entry{Name: "A", Lines: []EntryLine{{}}}))
		raw := "INSERT INTO " + e.prefix + "entries (name) VALUES ('raw')"
		e.must(e.db.Exec(raw))
		b := Entry{Name: "B"}
		last.Store(1<<50 + 1) // the next key is the one after that of A
		switch err, key := e.db.Create(&b).Error, e.keys("entries", "id", "name", "raw")[0]; {
		case e.postgres() && (key != 1 || err != nil):
			e.Errorf("a key that PostgreSQL counts = %d, and Create = %v; want 1 and no error", key, err)
		case !e.postgres() && (key != 1<<50+2 && key != 1<<50+1 || err == nil):
			e.Errorf("a key that the database counts = %d, and Create = %v; want the next of the source, and a duplicate", key, err)
		}
		last.Store(1 << 51)

		const counts = "database counts as well ID"
		models := []any{&Entry{}, &EntryLine{}}
		for _, f := range e.finds(models, counts, counts) {
			if strings.Contains(f.Fix, "autoIncrement:false") { // which would switch the option off
				e.Errorf("Fix = %q; want no word of autoIncrement:false", f.Fix)
			}
		}
		e.repairs(models...)
		e.countsNoMore("entries (name) VALUES ('raw')")
		e.must(e.db.Create(&Entry{Name: "C", Lines: []EntryLine{{}}}))
		e.migrate(models...) // does not put it back
		e.finds(models)
		e.countsNoMore("entries (name) VALUES ('raw')")
		e.must(e.db.Create(&Entry{Name: "D"}))
	}},
	{"CheckFindsColumnsThatAreNarrowerThanIntegerKeys", func(e *env) {
		e.only(!e.sqlite(), "SQLite stores every integer in 64 bits")
		e.integers()
		key, ref := "serial PRIMARY KEY", "int"
		if e.mysql() {
			key, ref = "int unsigned AUTO_INCREMENT PRIMARY KEY", "int unsigned"
		}
		e.ddl("CREATE TABLE `PRE_entries` (`id` " + key + ", `name` varchar(40))")
		e.ddl("CREATE TABLE `PRE_entry_lines` (`id` " + key + ", `entry_id` " + ref + ", FOREIGN KEY (`entry_id`) REFERENCES `PRE_entries` (`id`))")
		if tx := e.db.Create(&Entry{Name: "A"}); tx.Error == nil {
			e.Error("Create in a narrow column = nil; want an error of the database")
		}
		models := []any{&Entry{}, &EntryLine{}}
		found := map[string]bool{}
		for _, f := range e.check(e.db, models...) {
			found[string(f.Problem)+" "+f.Table+"."+f.Field] = true
		}
		for _, want := range []string{"entries.ID", "entry_lines.ID", "entry_lines.EntryID"} {
			if !found[string(schemacheck.NarrowColumn)+" "+e.prefix+want] {
				e.Errorf("Check found %v; want that %s is too narrow", found, want)
			}
		}
		e.repairs(models...)
		e.must(e.db.Create(&Entry{Name: "A", Lines: []EntryLine{{}, {}}}))
	}},
	{"CheckFindsOnlyThatTheDatabaseCountsInFreshTablesOfIntegerKeys", func(e *env) {
		e.integers()
		e.migrate(memberModels...)
		for _, f := range e.check(e.db, memberModels...) {
			if f.Problem != schemacheck.Counted {
				e.Errorf("Check found %v; want only that the database counts", f)
			}
		}
		plain := e.use(e.open(&gorm.Config{}))
		var keys []string
		for _, f := range e.check(plain, memberModels...) {
			if f.Problem == schemacheck.NoKey {
				keys = append(keys, f.Table+"."+f.Column)
			}
		}
		// The key of a post says autoIncrement, and that of a profile refers to a member.
		equal(e, "keys that a plugin without the option does not fill", strings.ReplaceAll(strings.Join(keys, " "), e.prefix, ""), "members.id notices.id crews.id")
	}},
}
