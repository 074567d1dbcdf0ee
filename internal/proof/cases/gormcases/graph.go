package gormcases

import (
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
		e.integers()
		newWorld(e)
		for i, config := range []gorm.Session{{}, {CreateBatchSize: 3}, {FullSaveAssociations: true}} {
			text := func(of string) string { return fmt.Sprint(of, i) }
			team := &Team{Name: text("team")}
			shared := &Party{Email: text("shared"), Remarks: []Remark{{Text: text("a")}, {Text: text("b")}}, Teams: []*Team{team}}
			alone := &Party{Email: text("alone"), Teams: []*Team{team}}
			docs := []Doc{{Number: text("1."), Party: shared}, {Number: text("2."), Party: alone}, {Number: text("3."), Party: shared}}
			e.log.reset()
			e.must(e.db.Session(&config).Create(&docs))
			e.matches(&docs)
			for table, rows := range map[string]int{"docs": 3, "parties": 2, "remarks": 2, "teams": 1, "party_teams": 2} {
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
	{"GraphOfTypedKeysAndOfIntegersIsReadBack", func(e *env) {
		e.integers()
		newWorld(e)
		d := Doc{Number: "A", Party: &Party{Email: "p", Remarks: []Remark{{Text: "r"}}}, Lines: []Line{{SKU: "l"}}, Marks: []Mark{{Text: "m"}}, Stamp: &Stamp{Text: "s"}}
		e.must(e.db.Create(&d))
		var loaded, joined Doc
		e.must(e.db.Preload("Party.Remarks").Preload("Lines").Preload("Marks").Preload("Stamp").First(&loaded, d.ID))
		e.must(e.db.Joins("Party").Joins("Stamp").Where(&Doc{PartyID: d.PartyID}).First(&joined))
		equal(e, "joined", fmt.Sprint(joined.Party.ID, *joined.Stamp), fmt.Sprint(d.Party.ID, *d.Stamp))
		equal(e, "preloaded", fmt.Sprint(*loaded.Party, loaded.Lines, loaded.Marks, *loaded.Stamp), fmt.Sprint(*d.Party, d.Lines, d.Marks, *d.Stamp))
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
