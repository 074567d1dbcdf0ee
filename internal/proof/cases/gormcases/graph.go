package gormcases

import (
	"encoding/json"
	"fmt"
	"strings"

	"gorm.io/gorm"

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
		e.migrate(clientModels...)
		for i, config := range []gorm.Session{{}, {CreateBatchSize: 3}, {FullSaveAssociations: true}} {
			shared, group := &Client{Name: fmt.Sprint("shared", i), Logins: []Login{{}, {}}}, &ClientGroup{Name: "G"}
			shared.Groups = []*ClientGroup{group}
			alone := &Client{Name: fmt.Sprint("alone", i), Groups: []*ClientGroup{group}}
			accounts := []Account{{Client: shared}, {Client: alone}, {Client: shared}}
			e.log.reset()
			e.must(e.db.Session(&config).Create(&accounts))
			e.matches(&accounts)
			for table, rows := range map[string]int{"accounts": 3, "clients": 2, "logins": 2, "client_groups": 1, "client_members": 2} {
				e.count(table, int64(rows*(i+1)))
				for _, text := range e.log.statements("INSERT") {
					into, values, _ := strings.Cut(text, " VALUES ")
					if strings.Contains(into, e.prefix+table) && 1+strings.Count(values, "),(") != rows {
						e.Errorf("%s; want %d rows", text, rows)
					}
				}
			}
		}
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
