package gormcases

import (
	"strings"

	"github.com/snowkey/snowkey/types"
)

var schemaCases = []testCase{
	{"KeysAreBigintAndNotCounted", func(e *env) {
		type Fresh struct {
			ID       types.Snowflake
			ParentID *types.Snowflake
			Null     types.NullSnowflake
		}
		if err := e.db.AutoMigrate(&Fresh{}); err != nil {
			e.Fatalf("AutoMigrate = %v; want no error", err)
		}
		text := strings.ToLower(strings.Join(e.log.statements("CREATE TABLE"), ";"))
		equal(e, "bigint columns", strings.Count(text, "bigint"), 3)
		for _, counted := range []string{"serial", "auto_increment", "autoincrement"} {
			if strings.Contains(text, counted) {
				e.Errorf("CREATE TABLE = %s; want no %s", text, counted)
			}
		}
	}},
	{"SecondMigrationChangesNothing", func(e *env) {
		e.migrate(orderModels...)
		e.migrate(&Node{}, &Toy{}, &Cat{}, &Dog{})
		if err := e.db.AutoMigrate(append(orderModels, &Node{}, &Toy{}, &Cat{}, &Dog{})...); err != nil {
			e.Fatalf("AutoMigrate = %v; want no error", err)
		}
		for _, verb := range []string{"CREATE", "ALTER", "DROP"} {
			if got := e.log.statements(verb); len(got) != 0 {
				e.Errorf("second AutoMigrate ran %q; want no DDL", got)
			}
		}
	}},
	{"CompositeKeyIsOneKeyOfBothColumns", func(e *env) {
		type Composite struct {
			TenantID types.Snowflake `gorm:"primaryKey"`
			ID       types.Snowflake `gorm:"primaryKey"`
		}
		e.migrate(&Composite{})
		e.must(e.db.Create(&[]Composite{{1, 5}, {2, 5}}))
		if e.db.Create(&Composite{1, 5}).Error == nil {
			e.Error("Create of the same pair = nil; want a duplicate key error")
		}
	}},
	{"ForeignKeyToAnUnsignedParentIsMadeLikeIt", func(e *env) {
		type OldParent struct {
			ID   uint
			Name string `gorm:"size:40"`
		}
		type NewChild struct {
			ID          types.Snowflake
			OldParentID types.Snowflake
			OldParent   *OldParent
		}
		e.migrate(&OldParent{}, &NewChild{})
		c := NewChild{OldParent: &OldParent{}}
		e.must(e.db.Create(&c))
		e.stored("new_children", "old_parent_id", c.OldParent.ID, c.ID)
	}},
	{"TableThatCountedTakesKeys", func(e *env) {
		e.migrateOld()
		e.must(e.db.Exec("INSERT INTO " + e.prefix + "counters (name) VALUES ('old')"))
		type Counter struct {
			ID   types.Snowflake
			Name string `gorm:"size:40"`
		}
		e.migrate(&Counter{})
		c := Counter{Name: "new"}
		e.must(e.db.Create(&c))
		e.stored("counters", "name", "new", c.ID)
	}},
}

// migrateOld makes the table counters without a key type of this library.
func (e *env) migrateOld() {
	e.Helper()
	type Counter struct {
		ID   uint
		Name string `gorm:"size:40"`
	}
	e.migrate(&Counter{})
}
