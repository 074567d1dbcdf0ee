package gormcases

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// graphCases are about graphs that the random operations do not make.
var graphCases = []testCase{
	{"NewRowsOfAnAssociationTakeOneStatementAndMeetRowsByAnIndexThatNoModelDeclares", func(e *env) {
		type Flag struct {
			ID   types.Snowflake
			Name string `gorm:"size:40"`
		}
		type Pole struct {
			ID     types.Snowflake
			Name   string `gorm:"size:40"`
			FlagID types.Snowflake
			Flag   Flag
			Pins   []Flag `gorm:"many2many:pole_pins"`
		}
		e.migrate(&Flag{}, &Pole{})
		poles := func(names ...string) (list []Pole) {
			for _, name := range names {
				list = append(list, Pole{Name: name, Flag: Flag{Name: "flag " + name}, Pins: []Flag{{Name: "pin " + name}, {Name: "flag " + name}}})
			}
			return list
		}
		first := poles("a", "b", "c")
		e.must(e.db.Create(&first))
		equal(e, "statements that insert", len(e.log.statements("INSERT")), 4)
		equal(e, "lookups", len(e.log.statements("SELECT")), 0)
		for _, table := range []string{"pole_pins", "poles", "flags"} {
			e.must(e.db.Exec("DELETE FROM " + e.prefix + table))
		}
		e.ddl("CREATE UNIQUE INDEX PRE_flagged ON PRE_flags (name)")
		for _, names := range [][]string{{"d", "e"}, {"e", "d", "f"}} { // the second meets rows of the first
			list := poles(names...)
			e.must(e.db.Create(&list))
			e.matches(&list)
			for _, pole := range list {
				equal(e, "key of the pin that is the flag", pole.Pins[1].ID, pole.FlagID)
			}
		}
	}},
	{"RowThatSeveralPointToIsSavedOnceWithItsAssociations", func(e *env) {
		type Walk struct {
			ID    types.Snowflake
			DogID *types.Snowflake
			Dog   *Dog
		}
		type Kennel struct {
			ID   types.Snowflake
			Dogs []*Dog `gorm:"many2many:kennel_dogs"`
		}
		type Visit struct {
			ID       types.Snowflake
			HookedID *types.Snowflake
			Hooked   *Hooked
		}
		type Leaf struct{ ID, PlantID types.Snowflake }
		type Plant struct {
			ID     types.Snowflake
			Public types.Snowflake `gorm:"snowflake"`
			Leaves []Leaf
		}
		type Bed struct {
			ID      types.Snowflake
			PlantID *types.Snowflake
			Plant   *Plant
		}
		type Owner struct {
			ID   types.Snowflake
			Cats []*Pet
		}
		type Collar struct {
			ID       types.Snowflake
			Text     string `gorm:"size:40"`
			KeeperID types.Snowflake
		}
		type Keeper struct {
			ID     types.Snowflake
			Collar *Collar
		}
		e.migrate(&Dog{}, &Toy{}, &Walk{}, &Kennel{}, &Hooked{}, &HookedPart{}, &Visit{}, &Plant{}, &Leaf{}, &Bed{},
			&Owner{}, &Pet{}, &Keeper{}, &Collar{})
		size := func(table string) (n int64) {
			e.must(e.db.Table(e.prefix + table).Count(&n))
			return n
		}
		for i, config := range []gorm.Session{{}, {CreateBatchSize: 2}, {FullSaveAssociations: true}} {
			db := e.db.Session(&config)
			dog := func() *Dog { return &Dog{Toys: []Toy{{Name: "ball"}, {Name: "bone"}}} }
			shared, pooled, plant := dog(), dog(), &Plant{Leaves: []Leaf{{}}}
			calls, rows := 0, 0
			hooked := &Hooked{Name: fmt.Sprint(i), Parts: []HookedPart{{}}, Before: func(_ *Hooked, tx *gorm.DB) {
				calls++
				rows = reflect.ValueOf(tx.Statement.Dest).Len()
			}}
			cat, collar := &Pet{Name: fmt.Sprint(i)}, &Collar{ID: types.Snowflake(i + 1), Text: fmt.Sprint(i)} // GORM does not look at the keys of a has-one
			owners, keepers := []Owner{{Cats: []*Pet{cat}}, {Cats: []*Pet{cat}}}, []Keeper{{Collar: collar}, {Collar: collar}}
			for _, test := range []struct {
				roots any
				want  map[string]int64 // the rows that are stored besides
			}{
				{&[]Walk{{Dog: shared}, {Dog: &Dog{}}, {Dog: shared}, {}, {Dog: shared}}, map[string]int64{"dogs": 2, "toys": 2}},
				{[]*Kennel{{Dogs: []*Dog{pooled}}, {Dogs: []*Dog{pooled}}}, map[string]int64{"dogs": 1, "toys": 2, "kennel_dogs": 2}},
				{&[]Visit{{Hooked: hooked}, {Hooked: hooked}}, map[string]int64{"hookeds": 1, "hooked_parts": 1}},
				{&[]Bed{{Plant: plant}, {Plant: plant}}, map[string]int64{"plants": 1, "leafs": 1}},
				{&owners, map[string]int64{"pets": 1}},
				{&keepers, map[string]int64{"collars": 1}},
			} {
				before := map[string]int64{}
				for table := range test.want {
					before[table] = size(table)
				}
				e.log.reset()
				e.must(db.Create(test.roots))
				for table, want := range test.want {
					equal(e, "new rows of "+table, size(table)-before[table], want)
					for _, text := range e.log.statements("INSERT") {
						into, _, _ := strings.Cut(text, "(")
						if want == 1 && table != "collars" && strings.Contains(into, e.prefix+table) && strings.Contains(text, "),(") {
							e.Errorf("%s; want one row, for there is one", text)
						}
					}
				}
				if test.want["pets"]+test.want["collars"] == 0 {
					e.matches(test.roots)
				}
			}
			equal(e, "calls of the hook of one row", calls, 1)
			equal(e, "rows of its statement", rows, 1)
			e.stored("pets", "owner_id", owners[1].ID, cat.ID) // the last has the last word
			e.stored("collars", "keeper_id", keepers[1].ID, collar.ID)
		}
	}},
	{"GraphsAreStoredAsTheyAreInMemoryAlsoAfterAssign", func(e *env) {
		type Friend struct {
			ID      types.Snowflake
			Name    string    `gorm:"size:40"`
			Buddies []*Friend `gorm:"many2many:friendships"`
		}
		for _, test := range []struct {
			integers bool
			models   []any
			graph    func(name string) any
			keys     int
		}{
			{false, []any{&Friend{}}, func(name string) any {
				return &Friend{Name: name, Buddies: []*Friend{{Name: "b"}, {Name: "c"}}}
			}, 3},
			{false, []any{&Hub{}, &Spoke{}}, func(string) any { return &Spoke{A: &Hub{}, B: &Hub{}, C: &Hub{}, D: &Hub{}, E: &Hub{}} }, 6},
			{false, clientModels, func(name string) any {
				return &Client{
					Name: name, Logins: []Login{{}, {}}, Groups: []*ClientGroup{{Name: "G"}},
					Accounts: []Account{{Name: "1", Children: []Account{{Name: "1.1", Client: &Client{Name: name + " B"}}}}, {Name: "2"}},
				}
			}, 8},
			{true, memberModels, func(name string) any {
				return &Member{
					Name: name, Profile: &Profile{Bio: "x"}, Notices: []Notice{{}, {}}, Crews: []*Crew{{Name: name}},
					Posts: []Post{{Title: "1", Replies: []Post{{Title: "1.1", Member: &Member{Name: name + " B"}}}}, {Title: "2"}},
				}
			}, 8},
		} {
			if test.integers {
				e.integers()
			}
			e.migrate(test.models...)
			created, assigned := test.graph("created"), test.graph("assigned")
			e.must(e.db.Create(created))
			equal(e, fmt.Sprintf("keys asked for by Create(%T)", created), e.src.given, test.keys)
			e.log.reset()
			e.assign(assigned)
			equal(e, "statements of Assign", len(e.log.statements("")), 0)
			e.must(e.db.Create(assigned))
			equal(e, "keys asked for by both", e.src.given, 2*test.keys)
			e.matches(created, assigned)
			*e.src = counter{first: e.src.last}
		}
	}},
	{"RowsOfManyParentsAreAppendedOneEach", func(e *env) {
		e.migrate(orderModels...)
		owners, orphans := []Order{{Number: "A"}, {Number: "B"}}, []*Item{{SKU: "1"}, {SKU: "2"}}
		e.must(e.db.Create(&owners))
		e.ok("Append", e.db.Model(&owners).Association("Items").Append(orphans[0], orphans[1]))
		e.matches(&owners)
	}},
	{"GraphsOfTypedKeysAndOfIntegersAreReadBack", func(e *env) {
		e.migrate(clientModels...)
		c := Client{Name: "A", Accounts: []Account{{Name: "1", Children: []Account{{Name: "1.1", Client: &Client{Name: "B"}}}}}, Groups: []*ClientGroup{{Name: "G"}}}
		e.must(e.db.Create(&c))
		first := &c.Accounts[0]
		equal(e, "ParentID of a root", first.ParentID, types.NullID[Account]{})
		var back Client
		e.must(e.db.Preload("Accounts.Children.Client").Preload("Groups").First(&back, c.ID))
		equal(e, "preloaded", fmt.Sprint(back.Accounts[0].Children[0].Client.ID, back.Groups[0].ID), fmt.Sprint(first.Children[0].ClientID, c.Groups[0].ID))
		var joined Account
		e.must(e.db.Joins("Client").Joins("Parent").Where(&Account{Name: "1.1"}).First(&joined))
		equal(e, "joined", fmt.Sprint(joined.Client.Name, joined.Parent.ID), fmt.Sprint("B", first.ID))
		e.ok("Append", e.db.Model(&first.Children[0]).Association("Parent").Append(&Account{ClientID: c.ID, Name: "P"}))
		e.stored("accounts", "name", "P", first.Children[0].ParentID.ID.Snowflake())

		e.integers()
		e.migrate(memberModels...)
		m := Member{Name: "A", Posts: []Post{{Title: "1", Replies: []Post{{Title: "1.1", Member: &Member{Name: "B"}}}}}}
		e.must(e.db.Create(&m))
		equal(e, "the key that the hook saw", m.Seen, m.ID)
		var member Member
		e.must(e.db.Preload("Posts.Replies.Member").First(&member, m.ID))
		equal(e, "preloaded", member.Posts[0].Replies[0].Member.Name, "B")
		e.ok("Append", e.db.Model(&m).Association("Posts").Append(&Post{Title: "2"}))
		e.matches(&m)
		text, err := json.Marshal(m.Posts[1])
		e.ok("Marshal", err)
		equal(e, "keys as numbers", strings.Contains(string(text), fmt.Sprintf(`"ID":%d,"MemberID":%d,`, m.Posts[1].ID, m.ID)), true)
		plain := Member{}
		e.ok("Assign", gormplugin.New(e.src).Assign(e.Context(), e.db, &plain))
		equal(e, "key that a plugin without the option assigns", plain.ID, 0)
	}},
	{"KeyThatIsAForeignKeyIsNotInvented", func(e *env) {
		type Left struct{ ID types.Snowflake }
		type Junction struct {
			LeftID  types.Snowflake `gorm:"primaryKey"`
			RightID types.Snowflake `gorm:"primaryKey"`
		}
		e.migrate(&Left{}, &Junction{})
		j := Junction{LeftID: 9}
		e.must(e.db.Create(&j))
		equal(e, "RightID", j.RightID, 0)
	}},
	{"KeyTurnsForeignWhenItsParentIsParsed", func(e *env) {
		type Profile struct {
			UserID types.Snowflake `gorm:"primaryKey"`
			Text   string          `gorm:"size:40"`
		}
		type User struct {
			ID      types.Snowflake
			Profile *Profile `gorm:"foreignKey:UserID;constraint:-"`
		}
		e.migrate(&Profile{})
		early, late := Profile{Text: "early"}, Profile{Text: "late"}
		e.must(e.db.Create(&early)) // nothing says yet that the key is a reference
		e.fresh("UserID", early.UserID)
		e.migrate(&User{})
		e.fails(e.db.Create(&late), gormplugin.ErrNoKey)
		equal(e, "UserID", late.UserID, 0)
		u := User{Profile: &Profile{Text: "child"}}
		e.must(e.db.Create(&u))
		e.matches(&u)
	}},
	{"NarrowForeignKeyIsRefusedAtFirstUse", func(e *env) {
		type Thing struct {
			ID        types.Snowflake
			OwnerID   *string `gorm:"size:40"`
			OwnerType string  `gorm:"size:40"`
		}
		type Owner struct {
			ID     types.Snowflake
			Things []Thing `gorm:"polymorphic:Owner"`
		}
		type CountedChild struct {
			ID              types.Snowflake
			CountedParentID uint32
		}
		type CountedParent struct {
			ID       int64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
			Children []CountedChild
		}
		type Wide struct {
			ToID types.Snowflake
			To   *CountedChild
		}
		type Narrow struct {
			ToID int32
			To   *CountedChild
		}
		type Both struct {
			ID     types.Snowflake
			Narrow Narrow `gorm:"embedded;embeddedPrefix:narrow_"`
			Wide   Wide   `gorm:"embedded;embeddedPrefix:wide_"` // has the last word on what To is
		}
		for _, test := range []struct {
			value       any
			field, says string
		}{
			{&Both{}, "ToID", "int32"},
			{&CountedParent{}, "CountedParentID", "uint32"},
			{&CountedChild{}, "CountedParentID", "uint32"}, // now that its parent is known
			{&Owner{Things: []Thing{{}}}, "OwnerID", "*string"},
		} {
			err := e.db.Create(test.value).Error
			var model *gormplugin.ModelError
			if !errors.As(err, &model) || model.Field != test.field || !strings.Contains(model.Reason, test.says) {
				e.Errorf("Create(%T) = %v; want a *ModelError for %s that says %s", test.value, err, test.field, test.says)
			}
		}
		equal(e, "statements", len(e.log.statements("INSERT")), 0)
		equal(e, "keys asked for", e.src.given, 0)
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
		e.ok("Assign", gormplugin.New(e.src).Assign(e.Context(), e.db, assigned))
		e.must(e.db.Create(created))
		equal(e, "PlainID", assigned.PlainID, created.PlainID)
		equal(e, "SameID", assigned.SameID, created.SameID)
		equal(e, "locks of the door", len(e.keys("doors", "id", "plain_id", `"a"`)), 1)
	}},
	{"EachStatementAsksTheSourceOnce", func(e *env) {
		e.migrate(orderModels...)
		stored := Order{Number: "stored"}
		e.must(e.db.Create(&stored))
		one, many, lots := wholeOrder("a"), []Order{wholeOrder("b"), wholeOrder("c")}, []Label{{Text: "1"}, {Text: "2"}, {Text: "3"}, {Text: "4"}, {Text: "5"}}
		saved, again, full := wholeOrder("d"), wholeOrder("stored"), stored
		full.Items = []Item{{SKU: "6"}, {SKU: "7"}}
		for _, test := range []struct {
			statement string
			run       func() error
			fills     int // one for each table that gets rows
		}{
			{"Create", func() error { return e.db.Create(&one).Error }, 5},
			{"Create of a slice", func() error { return e.db.Create(&many).Error }, 5},
			{"CreateInBatches", func() error { return e.db.CreateInBatches(&lots, 2).Error }, 3},
			{"Create of maps", func() error {
				return e.db.Model(&Label{}).Create([]map[string]any{{"text": "m1"}, {"text": "m2"}}).Error
			}, 1},
			{"Save", func() error { return e.db.Save(&saved).Error }, 5},
			{"Save of a slice", func() error { return e.db.Save(&[]Label{{Text: "x"}, {Text: "y"}}).Error }, 1},
			{"FirstOrCreate", func() error { return e.db.FirstOrCreate(&Order{}, Order{Number: "e"}).Error }, 1},
			{"upsert", func() error { return e.db.Clauses(doNothing("number")).Create(&again).Error }, 5},
			{"Updates", func() error { return e.db.Updates(&full).Error }, 1},
			{"Append", func() error { return e.db.Model(&stored).Association("Items").Append(&[]Item{{SKU: "8"}, {SKU: "9"}}) }, 1},
			{"Replace", func() error {
				return e.db.Model(&stored).Association("Labels").Replace(&[]Label{{Text: "z1"}, {Text: "z2"}})
			}, 1},
			{"generic Create", func() error { return gorm.G[Order](e.db).Create(e.Context(), &Order{Number: "f"}) }, 1},
			{"generic Create of selected columns", func() error { return gorm.G[Label](e.db).Select("Text").Create(e.Context(), &Label{Text: "g"}) }, 1},
			{"generic Set", func() error {
				return gorm.G[Label](e.db).Set(clause.Assignment{Column: clause.Column{Name: "text"}, Value: "s"}).Create(e.Context())
			}, 1},
			{"Append of maps", func() error {
				return e.db.Model(&stored).Association("Items").Append(map[string]any{"sku": "10"}, map[string]any{"sku": "11"})
			}, 2},
			{"Create of rows with keys", func() error { return e.db.Create(&[]Label{{ID: 1, Text: "k1"}, {ID: 2, Text: "k2"}}).Error }, 0},
		} {
			before := e.src.fills
			e.ok(test.statement, test.run())
			equal(e, "calls of Fill by "+test.statement, e.src.fills-before, test.fills)
		}
		equal(e, "items of the stored order", len(e.keys("items", "id", "order_id", stored.ID)), 8)
		for _, id := range append(e.keys("labels", "id", "1", 1)[2:], e.keys("items", "id", "1", 1)...) {
			e.fresh("stored key", types.Snowflake(id))
		}
	}},
}

// assign assigns keys to a graph with the plugin of the case. It fails the test if the source was
// asked more than once, or a foreign key in memory is not the key that it refers to.
func (e *env) assign(value any) {
	e.Helper()
	before := e.src.fills
	e.ok(fmt.Sprintf("Assign(%T)", value), e.db.Plugins["snowkey"].(*gormplugin.Plugin).Assign(e.Context(), e.db, value))
	if calls := e.src.fills - before; calls > 1 {
		e.Errorf("calls of Fill by Assign(%T) = %d; want at most 1", value, calls)
	}
	for _, l := range (&world{env: e, db: e.db}).graph(everywhere, value).links {
		if _, _, err := l.wanted(); err != nil && l.rel.JoinTable == nil {
			e.Errorf("Assign(%T): %v", value, err)
		}
	}
}
