package gormplugin_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/cases/gormcases"
	"github.com/snowkey/snowkey/types"
)

func open(t *testing.T) *gorm.DB {
	t.Helper()
	return gormcases.OpenSQLite(t, &gorm.Config{Logger: logger.Discard})
}

// with is open, with the plugin.
func with(t *testing.T, plugin gorm.Plugin) *gorm.DB {
	t.Helper()
	db := open(t)
	if err := db.Use(plugin); err != nil {
		t.Fatalf("Use = %v; want no error", err)
	}
	return db
}

// one is a source of the key 1.
var one = gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { return 1, nil })

type pointerSource struct{ gormplugin.Source }

func TestUseRefusesANilSource(t *testing.T) {
	var pointer *pointerSource
	var function gormplugin.SourceFunc
	for name, plugin := range map[string]*gormplugin.Plugin{
		"New(nil)":             gormplugin.New(nil),
		"New((*source)(nil))":  gormplugin.New(pointer),
		"New(SourceFunc(nil))": gormplugin.New(function),
		"&Plugin{}":            {},
		"(*Plugin)(nil)":       nil,
	} {
		db := open(t)
		if err := db.Use(plugin); !errors.Is(err, gormplugin.ErrNoSource) {
			t.Errorf("Use(%s) = %v; want ErrNoSource", name, err)
		}
		if gormplugin.Installed(db) || db.Callback().Create().Get("snowflake:assign") != nil {
			t.Errorf("after Use(%s) something is registered; want nothing", name)
		}
	}
}

// The text is GORM's, which calls nothing of the plugin before. Therefore the page has it as a heading.
func TestUseTwiceIsErrRegistered(t *testing.T) {
	page, err := os.ReadFile("../docs/gorm.md")
	if heading := "\n### `" + gorm.ErrRegistered.Error() + "`\n"; err != nil || !strings.Contains(string(page), heading) {
		t.Errorf("docs/gorm.md has no heading %q (%v); want one that says what the error of db.Use means", heading, err)
	}
	plugin := gormplugin.New(one)
	db := with(t, plugin)
	for _, again := range []*gormplugin.Plugin{plugin, gormplugin.New(one)} {
		if err := db.Use(again); !errors.Is(err, gorm.ErrRegistered) {
			t.Errorf("second Use = %v; want gorm.ErrRegistered", err)
		}
	}
}

func TestUseNamesTheCallbackThatIsMissing(t *testing.T) {
	for _, anchor := range []string{"gorm:before_create", "gorm:create", "gorm:save_after_associations"} {
		db := open(t)
		if err := db.Callback().Create().Remove(anchor); err != nil {
			t.Fatalf("Remove(%s) = %v; want no error", anchor, err)
		}
		err := db.Use(gormplugin.New(one))
		if !errors.Is(err, gormplugin.ErrNoAnchor) || !strings.HasSuffix(err.Error(), ": "+anchor) {
			t.Errorf("Use without %s = %v; want ErrNoAnchor that names it", anchor, err)
		}
		if gormplugin.Installed(db) || db.Callback().Create().Get("snowflake:assign") != nil {
			t.Errorf("after Use without %s something is registered; want nothing", anchor)
		}
	}
	db := open(t)
	if err := db.Callback().Create().Replace("gorm:create", func(*gorm.DB) {}); err != nil {
		t.Fatalf("Replace = %v; want no error", err)
	}
	if err := db.Use(gormplugin.New(one)); err != nil {
		t.Errorf("Use with a replaced gorm:create = %v; want no error", err)
	}
}

func TestInstalledTellsWhetherUseWasCalled(t *testing.T) {
	db := open(t)
	if gormplugin.Installed(db) {
		t.Error("Installed before Use = true; want false")
	}
	if err := db.Use(gormplugin.New(one)); err != nil {
		t.Fatalf("Use = %v; want no error", err)
	}
	for name, db := range map[string]*gorm.DB{"db": db, "a session": db.Session(&gorm.Session{}), "a chain": db.Where("1 = 1")} {
		if !gormplugin.Installed(db) {
			t.Errorf("Installed(%s) after Use = false; want true", name)
		}
	}
	for _, db := range []*gorm.DB{nil, {}} {
		if gormplugin.Installed(db) {
			t.Errorf("Installed(%v) = true; want false", db)
		}
	}
}

func TestModelHasTheFieldsAndColumnsOfGORMsModel(t *testing.T) {
	ours, theirs := reflect.TypeFor[gormplugin.Model](), reflect.TypeFor[gorm.Model]()
	if ours.NumField() != theirs.NumField() {
		t.Fatalf("Model has %d fields; want %d", ours.NumField(), theirs.NumField())
	}
	for i := range ours.NumField() {
		got, want := ours.Field(i), theirs.Field(i)
		sameTag := strings.EqualFold(string(got.Tag), string(want.Tag))
		if got.Name != want.Name || !sameTag || i > 0 && got.Type != want.Type {
			t.Errorf("field %d = %v; want %v", i, got, want)
		}
	}
	if got := ours.Field(0).Type; got != reflect.TypeFor[types.Snowflake]() {
		t.Errorf("type of ID = %v; want types.Snowflake", got)
	}
	parse := func(model any) *schema.Schema {
		s, err := schema.Parse(model, &sync.Map{}, schema.NamingStrategy{})
		if err != nil {
			t.Fatalf("schema.Parse(%T) = %v; want no error", model, err)
		}
		return s
	}
	got, want := parse(&gormplugin.Model{}), parse(&gorm.Model{})
	if !reflect.DeepEqual(got.DBNames, want.DBNames) || !reflect.DeepEqual(got.PrimaryFieldDBNames, want.PrimaryFieldDBNames) {
		t.Errorf("columns %q with key %q; want %q with %q", got.DBNames, got.PrimaryFieldDBNames, want.DBNames, want.PrimaryFieldDBNames)
	}
	if got.PrioritizedPrimaryField.HasDefaultValue {
		t.Error("GORM takes the key for one that the database fills; want not")
	}
}

// keyed is a row that an upsert can meet.
type keyed struct {
	ID   types.Snowflake
	Name string `gorm:"uniqueIndex"`
}

// rereads returns what is logged while a row of that name is created twice, with
// DO NOTHING.
func rereads(t *testing.T, as func(gorm.Dialector) gorm.Dialector, hide bool) (text string, twice [2]keyed) {
	t.Helper()
	var out bytes.Buffer
	config := logger.Config{LogLevel: logger.Info, ParameterizedQueries: hide}
	db := gormcases.OpenSQLite(t, &gorm.Config{Logger: logger.New(log.New(&out, "", 0), config)})
	db.Dialector = as(db.Dialector)
	var last types.Snowflake
	source := gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) {
		last++
		return last, nil
	})
	if err := errors.Join(db.AutoMigrate(&keyed{}), db.Use(gormplugin.New(source))); err != nil {
		t.Fatalf("set up = %v; want no error", err)
	}
	out.Reset()
	for i := range twice {
		twice[i].Name = "secret"
		if err := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&twice[i]).Error; err != nil {
			t.Fatalf("Create = %v; want no error", err)
		}
		if i == 0 {
			out.WriteString("first ends\n")
		}
	}
	return out.String(), twice
}

func TestRereadIsLoggedAndKeepsValuesOutOfALogThatHidesThem(t *testing.T) {
	text, _ := rereads(t, itself, false)
	if !strings.Contains(text, "SELECT 0") || !strings.Contains(text, "secret") {
		t.Errorf("log = %s; want the re-read with its values", text)
	}
	text, _ = rereads(t, itself, true)
	if !strings.Contains(text, "SELECT 0") || strings.Contains(text, "secret") {
		t.Errorf("log with ParameterizedQueries = %s; want the re-read without values", text)
	}
}

func itself(d gorm.Dialector) gorm.Dialector { return d }

// stranger is an unknown dialect.
type stranger struct{ gorm.Dialector }

func (stranger) Name() string { return "stranger" }

func TestRowsAffectedIsTrustedOnlyOnKnownDialects(t *testing.T) {
	for _, test := range []struct {
		name   string
		as     func(gorm.Dialector) gorm.Dialector
		reread bool
	}{
		{"sqlite", itself, false},
		{"stranger", func(d gorm.Dialector) gorm.Dialector { return stranger{d} }, true},
	} {
		text, twice := rereads(t, test.as, false)
		first, _, _ := strings.Cut(text, "first ends")
		if got := strings.Contains(first, "SELECT 0"); got != test.reread {
			t.Errorf("re-read of an inserted row on %s = %v; want %v", test.name, got, test.reread)
		}
		if twice[1].ID != twice[0].ID || twice[0].ID == 0 {
			t.Errorf("keys on %s = %d and %d; want the same and not 0", test.name, twice[0].ID, twice[1].ID)
		}
	}
}

// renamed is a second plugin that GORM does not recognize as one.
type renamed struct{ *gormplugin.Plugin }

func (renamed) Name() string { return "orders" }

func TestTwoPluginsCannotFillTheModelsOfOneDatabase(t *testing.T) {
	db := with(t, gormplugin.New(one))
	if err := db.Use(renamed{gormplugin.New(one, gormplugin.WithIntegerKeys())}); !errors.Is(err, gorm.ErrRegistered) {
		t.Errorf("Use of a second plugin under another name = %v; want gorm.ErrRegistered", err)
	}
	if !gormplugin.Installed(db) {
		t.Error("Installed after the second Use = false; want true, as the first plugin works on")
	}
}
