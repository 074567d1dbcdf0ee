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
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

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

// A chat is a row whose key the program has, with a message that refers to it.
type (
	chat[K any, M any] struct {
		ID       K
		Name     string `gorm:"unique"`
		Messages []M    `db:"-" snowkey:"messages,fk=chat_id" gorm:"foreignKey:ChatID"`
	}
	message[K any] struct {
		ID     types.Snowflake
		ChatID K `db:"chat_id"`
	}
	snowflakeChat    chat[types.Snowflake, snowflakeMessage]
	snowflakeMessage message[types.Snowflake]
	signedChat       chat[int64, signedMessage]
	signedMessage    message[int64]
	unsignedChat     chat[uint64, unsignedMessage]
	unsignedMessage  message[uint64]
)

// both returns what writes rows with either plugin, and their database. Chats are upserted by name.
func both(t *testing.T) (map[string]func(table string, row any) error, *sqlx.DB) {
	short := schema.NamingStrategy{NameReplacer: strings.NewReplacer("snowflakeC", "c", "snowflakeM", "m", "unsignedC", "c", "unsignedM", "m", "signedC", "c", "signedM", "m")}
	db, err := gorm.Open(sqlite.Open(":memory:"), &gorm.Config{Logger: logger.Discard, NamingStrategy: short})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = pool.Close() })
	for _, table := range []string{
		"t (id INTEGER PRIMARY KEY)", "children (id INTEGER PRIMARY KEY, parent_id INTEGER)",
		"chats (id INTEGER PRIMARY KEY, name TEXT UNIQUE)", "messages (id INTEGER PRIMARY KEY, chat_id INTEGER)",
	} {
		if _, err := pool.ExecContext(t.Context(), "CREATE TABLE "+table); err != nil {
			t.Fatal(err)
		}
	}
	src := coretest.NewGenerator(coretest.Config{})
	plugin, helper := gormplugin.New(src, gormplugin.WithWideIntegerKeys()), sqlxhelper.New(src, sqlxhelper.WithWideIntegerKeys())
	if err := db.Use(plugin); err != nil {
		t.Fatal(err)
	}
	x := sqlx.NewDb(pool, "sqlite3")
	upsert := helper.With(sqlxhelper.OnConflictDoNothing("name"))
	return map[string]func(string, any) error{
		"Assign":      func(_ string, row any) error { return plugin.Assign(t.Context(), db, row) },
		"InsertGraph": func(table string, row any) error { return helper.InsertGraph(t.Context(), x, table, row) },
		"Create": func(_ string, row any) error {
			return db.Clauses(clause.OnConflict{DoNothing: true, Columns: []clause.Column{{Name: "name"}}}).Create(row).Error
		},
		"InsertGraph(upsert)": func(table string, row any) error { return upsert.InsertGraph(t.Context(), x, table, row) },
	}, x
}

// withoutUpserts are the writers of both for rows of any type.
func withoutUpserts(t *testing.T) map[string]func(table string, row any) error {
	writers, _ := both(t)
	delete(writers, "Create")
	delete(writers, "InsertGraph(upsert)")
	return writers
}

// refused reports whether err refuses the model.
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
		for name, write := range withoutUpserts(t) {
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
		for name, write := range withoutUpserts(t) {
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

// Programs have keys of their own that are below zero, such as those of Telegram's groups.
func TestBothPluginsTakeAKeyBelowZeroWhereTheFieldHoldsIt(t *testing.T) {
	for _, c := range []struct {
		new   func() any
		holds bool
	}{
		{func() any { return &signedChat{ID: -7, Name: "group", Messages: make([]signedMessage, 2)} }, true},
		{func() any { return &snowflakeChat{ID: -7, Name: "group", Messages: make([]snowflakeMessage, 2)} }, false},
	} {
		for _, name := range []string{"Create", "InsertGraph", "InsertGraph(upsert)"} {
			writers, x := both(t)
			row := c.new()
			err := writers[name]("chats", row)
			if c.holds && err != nil || !c.holds && !errors.Is(err, types.ErrRange) {
				t.Errorf("%s(%T) with the key -7 = %v; want that it holds it: %v", name, row, err, c.holds)
			}
			wantMessages(t, x, name, row, c.holds)
		}
	}
}

func TestBothPluginsReadAStoredKeyBelowZeroWhereTheFieldHoldsIt(t *testing.T) {
	for _, c := range []struct {
		new   func() any
		holds bool
	}{
		{func() any { return &signedChat{Name: "group", Messages: make([]signedMessage, 2)} }, true},
		{func() any { return &snowflakeChat{Name: "group", Messages: make([]snowflakeMessage, 2)} }, false},
		{func() any { return &unsignedChat{Name: "group", Messages: make([]unsignedMessage, 2)} }, false},
	} {
		for _, name := range []string{"Create", "InsertGraph(upsert)"} {
			writers, x := both(t)
			if _, err := x.ExecContext(t.Context(), "INSERT INTO chats VALUES (-7, 'group')"); err != nil {
				t.Fatal(err)
			}
			row := c.new()
			err := writers[name]("chats", row)
			if c.holds && err != nil || !c.holds && !errors.Is(err, types.ErrRange) {
				t.Errorf("%s(%T) that meets the stored key -7 = %v; want that it reads it: %v", name, row, err, c.holds)
			}
			wantMessages(t, x, name, row, c.holds)
		}
	}
}

// wantMessages fails the test unless the two messages of chat are stored under the key -7, or no
// message is.
func wantMessages(t *testing.T, x *sqlx.DB, name string, chat any, stored bool) {
	t.Helper()
	var all, of int
	if err := errors.Join(x.Get(&all, "SELECT count(*) FROM messages"), x.Get(&of, "SELECT count(*) FROM messages WHERE chat_id = -7")); err != nil {
		t.Fatal(err)
	}
	if want := map[bool]int{true: 2}[stored]; all != want || of != want {
		t.Errorf("%s(%T) has stored %d messages, %d of them under the key -7; want %d", name, chat, all, of, want)
	}
	if id := reflect.ValueOf(chat).Elem().Field(0); stored && id.Int() != -7 {
		t.Errorf("%s(%T) has set the key to %d; want -7, which is stored", name, chat, id.Int())
	}
}
