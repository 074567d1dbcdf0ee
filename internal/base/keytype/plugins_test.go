package keytype_test

import (
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
	plain        uint64
	valued       uint64
	pointed      int64
	scanned      int64
	copied       types.Snowflake // has none of the methods
	row[K any]   struct{ ID K }
	valuedRow    row[valued]
	pointedRow   row[pointed]
	scannedRow   row[scanned]
	plainRow     row[plain]
	snowflakeRow row[types.Snowflake]
	// To GORM it is a text, which the plugin fills for the tag alone.
	texted    uint64
	textedRow struct {
		ID texted `gorm:"snowflake"`
	}
)

func (v valued) Value() (driver.Value, error) { return int64(v) + 1, nil }

func (p *pointed) Value() (driver.Value, error) { return int64(*p) + 1, nil }

func (texted) Value() (driver.Value, error) { return "text", nil }

func (s *scanned) Scan(any) error { *s = 7; return nil }

func TestOwnFormIsThatOfIntegersWithMethods(t *testing.T) {
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[valued](): true, reflect.TypeFor[pointed](): true, reflect.TypeFor[scanned](): true,
		reflect.TypeFor[plain](): false, reflect.TypeFor[copied](): false, reflect.TypeFor[uint64](): false, reflect.TypeFor[int32](): false,
		reflect.TypeFor[types.Snowflake](): false, reflect.TypeFor[types.ID[order]](): false, reflect.TypeFor[types.NullSnowflake](): false, reflect.TypeFor[string](): false,
	} {
		if got := keytype.OwnForm(typ); got != want {
			t.Errorf("OwnForm(%v) = %v; want %v", typ, got, want)
		}
	}
}

func TestIntegersWithMethodsOfTheirOwnAreNoKeysInBothPlugins(t *testing.T) {
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
	if _, err := pool.ExecContext(t.Context(), "CREATE TABLE t (id INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	src := coretest.NewGenerator(coretest.Config{})
	plugin, helper := gormplugin.New(src, gormplugin.WithWideIntegerKeys()), sqlxhelper.New(src, sqlxhelper.WithWideIntegerKeys())
	for _, c := range []struct {
		row    any
		refuse bool
	}{
		{&valuedRow{}, true}, {&pointedRow{}, true}, {&scannedRow{}, true}, {&textedRow{}, true},
		{&plainRow{}, false}, {&snowflakeRow{}, false},
	} {
		for name, err := range map[string]error{
			"Assign": plugin.Assign(t.Context(), db, c.row),
			"Insert": helper.Insert(t.Context(), sqlx.NewDb(pool, "sqlite3"), "t", reflect.New(reflect.TypeOf(c.row).Elem()).Interface()),
		} {
			typed := errors.As(err, new(*gormplugin.ModelError)) || errors.As(err, new(*sqlxhelper.PlanError))
			if typed != c.refuse || (err != nil) != c.refuse || c.refuse && !strings.Contains(err.Error(), "Value or Scan method") {
				t.Errorf("%s(%T) = %v; want an error that names the methods: %v", name, c.row, err, c.refuse)
			}
		}
	}
}
