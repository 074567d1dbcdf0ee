package keytype_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "github.com/mattn/go-sqlite3"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/base/keytype"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type (
	keyed[K any] struct{ ID K }
	valuedRow    keyed[valued] // GORM takes no generic model
	pointedRow   keyed[pointed]
	scannedRow   keyed[scanned]
	plainRow     keyed[plain]
	snowflakeRow keyed[types.Snowflake]
	child[F any] struct {
		ID       types.Snowflake
		ParentID F `db:"parent_id"`
	}
	parent[F any] struct {
		ID       types.Snowflake
		Children []child[F] `db:"-" snowkey:"children,fk=parent_id" gorm:"foreignKey:ParentID"`
	}
	// To GORM it is a text, which the plugin fills for the tag alone.
	texted    uint64
	textedRow struct {
		ID texted `gorm:"snowflake"`
	}
)

func (texted) Value() (driver.Value, error) { return "text", nil }

// both returns what writes rows with either plugin.
func both(t *testing.T) map[string]func(table string, row any) error {
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	for _, table := range []string{"t (id INTEGER PRIMARY KEY)", "children (id INTEGER PRIMARY KEY, parent_id INTEGER)"} {
		if _, err := pool.ExecContext(t.Context(), "CREATE TABLE "+table); err != nil {
			t.Fatal(err)
		}
	}
	src := coretest.NewGenerator(coretest.Config{})
	plugin, helper := gormplugin.New(src, gormplugin.WithWideIntegerKeys()), sqlxhelper.New(src, sqlxhelper.WithWideIntegerKeys())
	return map[string]func(string, any) error{
		"Assign": func(_ string, row any) error { return plugin.Assign(t.Context(), db, row) },
		"InsertGraph": func(table string, row any) error {
			return helper.InsertGraph(t.Context(), sqlx.NewDb(pool, "sqlite3"), table, row)
		},
	}
}

// refused reports whether err is that of a model, and as it is the only one, whether there is one.
func refused(t *testing.T, name string, row any, err error) bool {
	typed := errors.As(err, new(*gormplugin.ModelError)) || errors.As(err, new(*sqlxhelper.PlanError))
	if typed != (err != nil) {
		t.Errorf("%s(%T) = %v; want the error of the model or none", name, row, err)
	}
	return typed
}

func TestIntegersWithMethodsOfTheirOwnAreNoKeysInBothPlugins(t *testing.T) {
	for _, c := range []struct {
		row    any
		refuse bool
	}{
		{&valuedRow{}, true}, {&pointedRow{}, true}, {&scannedRow{}, true}, {&textedRow{}, true},
		{&plainRow{}, false}, {&snowflakeRow{}, false},
	} {
		for name, write := range both(t) {
			err := write("t", reflect.New(reflect.TypeOf(c.row).Elem()).Interface())
			if refused(t, name, c.row, err) != c.refuse || c.refuse && !strings.Contains(err.Error(), "Value or Scan method") {
				t.Errorf("%s(%T) = %v; want an error that names the methods: %v", name, c.row, err, c.refuse)
			}
		}
	}
}

func TestBothPluginsTakeTheSameForeignKeys(t *testing.T) {
	for _, c := range []struct {
		row    any
		refuse bool
	}{
		{parent[types.Snowflake]{}, false}, {parent[types.ID[order]]{}, false}, {parent[*types.Snowflake]{}, false}, {parent[**types.Snowflake]{}, false},
		{parent[types.NullSnowflake]{}, false}, {parent[types.NullID[order]]{}, false}, {parent[sql.Null[types.Snowflake]]{}, false},
		{parent[int64]{}, false}, {parent[plain]{}, false}, {parent[*uint64]{}, false}, {parent[sql.NullInt64]{}, false}, {parent[sql.Null[uint64]]{}, false},
		{parent[int32]{}, true}, {parent[*uint16]{}, true}, {parent[sql.NullInt32]{}, true}, {parent[string]{}, true}, {parent[float64]{}, true}, {parent[bool]{}, true},
		{parent[valued]{}, true}, {parent[*pointed]{}, true}, {parent[scanned]{}, true}, {parent[sql.Null[valued]]{}, true},
	} {
		for name, write := range both(t) {
			row := reflect.New(reflect.TypeOf(c.row)).Elem()
			row.Field(1).Set(reflect.MakeSlice(row.Field(1).Type(), 1, 1))
			err := write("t", row.Addr().Interface())
			if refused(t, name, c.row, err) != c.refuse {
				t.Errorf("%s(%T) = %v; want it refused: %v", name, c.row, err, c.refuse)
			}
			if c.refuse {
				continue
			}
			fk := row.Field(1).Index(0).Field(1)
			if id, null := keytype.FieldOf(fk.Type(), keytype.Integers).Key(fk); null || id == 0 || id != row.Field(0).Interface() {
				t.Errorf("%s(%T) sets the foreign key to %d, NULL %v; want %v, the key of the parent", name, c.row, id, null, row.Field(0))
			}
		}
	}
}
