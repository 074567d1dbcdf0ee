package gormplugin_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

type (
	vOrder  struct{ gormplugin.Model }
	vMember struct{ gorm.Model }
	vFalse  struct {
		ID uint `gorm:"primaryKey;autoIncrement:false"`
	}
	vSaid struct {
		ID uint `gorm:"primaryKey;autoIncrement"`
	}
	vOff struct {
		gorm.Model `gorm:"snowflake:-"`
	}
	vSmall struct{ ID int32 }
	vWord  struct {
		ID string `gorm:"primaryKey"`
	}
	vSetting struct {
		Key   string `gorm:"primaryKey"`
		Value string
	}
	vUUID struct {
		ID [16]byte `gorm:"primaryKey;type:uuid"`
	}
	vFloat struct{ ID float64 }
	vNone  struct{ Name string }
	vItem  struct {
		ID       types.Snowflake `gorm:"autoIncrement"`
		OrderID  int32
		Order    *vOrder
		MemberID uint32
		Member   *vMember
	}
	vUnknown struct {
		ID      types.Snowflake
		Anybody map[string]any
	}
	vShared struct {
		VOwnerID uint `gorm:"primaryKey"`
	}
	vOwner struct {
		ID     uint
		Shared vShared
	}
)

// verified returns the lines of what Verify returns, one for each error in the list.
func verified(t *testing.T, db *gorm.DB, plugin *gormplugin.Plugin, models ...any) []string {
	t.Helper()
	err := plugin.Verify(db, models...)
	if err == nil {
		return nil
	}
	var lines []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		lines = append(lines, e.Error())
		if !strings.HasPrefix(e.Error(), "gormplugin: ") || strings.Contains(e.Error(), "\n") {
			t.Errorf("Verify has the error %q; want one line of gormplugin's", e)
		}
	}
	return lines
}

func TestVerifySaysWhoFillsAKeyThatThePluginDoesNot(t *testing.T) {
	const byDatabase, byProgram = "which the database fills", "which the program has to set"
	for _, test := range []struct {
		name  string
		opts  []gormplugin.Option
		model any
		want  []string // parts of a line each
	}{
		{"a key of the plugin", nil, &vOrder{}, nil},
		{"gorm.Model without the option", nil, &vMember{}, []string{"vMember.ID: the plugin does not fill this uint, " + byDatabase + "; pass WithIntegerKeys to New"}},
		{"gorm.Model with it", []gormplugin.Option{gormplugin.WithIntegerKeys()}, &vMember{}, nil},
		{"autoIncrement:false without it", nil, &vFalse{}, []string{"vFalse.ID: the plugin does not fill this uint, " + byProgram}},
		{"autoIncrement:false with it", []gormplugin.Option{gormplugin.WithIntegerKeys()}, &vFalse{}, nil},
		{"autoIncrement", nil, &vSaid{}, nil},
		{"snowflake:-", []gormplugin.Option{gormplugin.WithIntegerKeys()}, &vOff{}, nil},
		{"int32 with the option", []gormplugin.Option{gormplugin.WithIntegerKeys()}, &vSmall{}, []string{"vSmall.ID: the plugin does not fill this int32, " + byDatabase + "; give it the type"}},
		{"text", nil, &vWord{}, nil},
		{"a setting, whose key the program sets", []gormplugin.Option{gormplugin.WithIntegerKeys()}, &vSetting{}, nil},
		{"a UUID", nil, &vUUID{}, nil},
		{"a float", nil, &vFloat{}, []string{"vFloat.ID: the plugin does not fill this float64, " + byProgram}},
		{"no key", nil, &vNone{}, []string{"vNone: no primary key"}},
	} {
		plugin := gormplugin.New(one, test.opts...)
		db := with(t, plugin)
		got := verified(t, db, plugin, test.model, test.model)
		if len(got) != len(test.want) || len(got) == 1 && !strings.Contains(got[0], test.want[0]) {
			t.Errorf("Verify of %s = %q; want %q", test.name, got, test.want)
		}
		if err := plugin.Verify(db, test.model); (err != nil) != errors.Is(err, gormplugin.ErrUnfilled) {
			t.Errorf("Verify of %s = %v; want ErrUnfilled", test.name, err)
		}
	}
}

func TestOwnKeyIsTheKeyThatOnlyTheProgramCanSet(t *testing.T) {
	type tagged struct {
		ID string `gorm:"primaryKey;snowflake"`
	}
	type meant struct {
		ID string `gorm:"primaryKey;snowflake:-"`
	}
	type byDefault struct {
		ID string `gorm:"primaryKey;default:gen_random_uuid()"`
	}
	db := open(t)
	for _, c := range []struct {
		model any
		want  string
	}{
		{&vSetting{}, "Key"}, {&vWord{}, "ID"}, {&vUUID{}, "ID"}, {&tagged{}, ""}, {&meant{}, ""}, {&byDefault{}, ""},
		{&vOrder{}, ""}, {&vMember{}, ""}, {&vFalse{}, ""}, {&vFloat{}, ""}, {&vNone{}, ""},
	} {
		stmt := &gorm.Statement{DB: db}
		if err := stmt.Parse(c.model); err != nil {
			t.Fatalf("Parse(%T) = %v; want no error", c.model, err)
		}
		got := ""
		if f := gormplugin.OwnKey(stmt.Schema); f != nil {
			got = f.Name
		}
		if got != c.want {
			t.Errorf("OwnKey(%T) = %q; want %q", c.model, got, c.want)
		}
	}
}

func TestVerifyListsEverythingThatIsWrong(t *testing.T) {
	db, plugin := open(t), gormplugin.New(one, gormplugin.WithIntegerKeys())
	got := verified(t, db, plugin, &vItem{}, &vOrder{}, &vFloat{}, &vUnknown{}, 7)
	want := []string{
		"not installed", "vUnknown: ", "int: ", "vItem.MemberID: uint32 cannot hold", "vItem.OrderID: int32 cannot hold", "vItem.ID: autoIncrement", "vFloat.ID: ",
	}
	if len(got) != len(want) {
		t.Fatalf("Verify = %q; want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("line %d of Verify = %q; want %q in it", i, got[i], want[i])
		}
	}
	err := plugin.Verify(db, &vItem{}, &vFloat{})
	var model *gormplugin.ModelError
	if !errors.Is(err, gormplugin.ErrNotInstalled) || !errors.Is(err, gormplugin.ErrUnfilled) || !errors.As(err, &model) {
		t.Errorf("Verify = %v; want one that is ErrNotInstalled, ErrUnfilled and a ModelError", err)
	}
	for _, db := range []*gorm.DB{nil, {}} {
		if err := plugin.Verify(db); !errors.Is(err, gorm.ErrInvalidDB) {
			t.Errorf("Verify on %v = %v; want gorm.ErrInvalidDB", db, err)
		}
	}
}

func TestVerifySaysOnceWhatIsWrongWithBothSidesOfARelation(t *testing.T) {
	type Leaf struct {
		ID     uint
		TreeID uint `gorm:"size:32"`
	}
	type Tree struct {
		ID     uint
		Leaves []Leaf
	}
	type Twig struct {
		ID     uint
		TreeID uint32
		Tree   *Tree
	}
	plugin := gormplugin.New(one, gormplugin.WithIntegerKeys())
	db := with(t, plugin)
	got := verified(t, db, plugin, &Tree{}, &Leaf{}, &Twig{})
	if len(got) != 2 || !strings.HasSuffix(got[0], "Leaf.TreeID: the tag size:32 cannot hold the 64-bit key Tree.ID that it refers to; remove size:32 from the tag and widen the column") ||
		!strings.HasSuffix(got[1], "Twig.TreeID: uint32 cannot hold the 64-bit key Tree.ID that it refers to; use uint") {
		t.Errorf("Verify = %q; want the error of Leaf.TreeID and that of Twig.TreeID, each once", got)
	}
}

func TestVerifyFindsCallbacksThatAreNotInPlace(t *testing.T) {
	type callbacks = interface {
		Get(string) func(*gorm.DB)
		Remove(string) error
		Replace(string, func(*gorm.DB)) error
	}
	nothing := func(*gorm.DB) {}
	for _, test := range []struct {
		name   string
		change func(db *gorm.DB, c callbacks) error
		want   error
	}{
		{"nothing", func(*gorm.DB, callbacks) error { return nil }, nil},
		{"another callback in front", func(db *gorm.DB, _ callbacks) error {
			return db.Callback().Create().Before("*").Register("other", nothing)
		}, nil},
		{"another insert", func(_ *gorm.DB, c callbacks) error { return c.Replace("gorm:create", nothing) }, nil},
		{"assign removed", func(_ *gorm.DB, c callbacks) error { return c.Remove("snowflake:assign") }, gormplugin.ErrNotInstalled},
		{"assign replaced", func(db *gorm.DB, _ callbacks) error { // else GORM goes on to call the first one
			return db.Callback().Create().Before("*").Replace("snowflake:assign", nothing)
		}, gormplugin.ErrNotInstalled},
		{"ensure removed", func(_ *gorm.DB, c callbacks) error { return c.Remove("snowflake:ensure") }, gormplugin.ErrNotInstalled},
		{"reconcile removed", func(_ *gorm.DB, c callbacks) error { return c.Remove("snowflake:reconcile") }, gormplugin.ErrNotInstalled},
		{"reconcile replaced", func(_ *gorm.DB, c callbacks) error { return c.Replace("snowflake:reconcile", nothing) }, gormplugin.ErrNotInstalled},
		{"ensure replaced", func(_ *gorm.DB, c callbacks) error { return c.Replace("snowflake:ensure", nothing) }, gormplugin.ErrNotInstalled},
		{"insert removed", func(_ *gorm.DB, c callbacks) error { return c.Remove("gorm:create") }, gormplugin.ErrNoAnchor},
		{"hooks moved to the front", func(db *gorm.DB, c callbacks) error {
			hooks := c.Get("gorm:before_create")
			return errors.Join(c.Remove("gorm:before_create"), db.Callback().Create().Before("*").Register("gorm:before_create", hooks))
		}, gormplugin.ErrNotInstalled},
		{"a conflict, after which GORM runs nothing", func(db *gorm.DB, c callbacks) error {
			insert := c.Get("gorm:create")
			_ = c.Remove("gorm:create")
			_ = db.Callback().Create().Before("gorm:before_create").Register("gorm:create", insert)
			return nil
		}, gormplugin.ErrNotInstalled},
	} {
		plugin := gormplugin.New(one)
		db := with(t, plugin)
		if err := test.change(db, db.Callback().Create()); err != nil {
			t.Fatalf("%s = %v; want no error", test.name, err)
		}
		if err := plugin.Verify(db, &vOrder{}); !errors.Is(err, test.want) {
			t.Errorf("Verify after %s = %v; want %v", test.name, err, test.want)
		}
		if got := gormplugin.Installed(db); got != (test.want == nil) {
			t.Errorf("Installed after %s = %v; want %v", test.name, got, test.want == nil)
		}
	}
	db := with(t, gormplugin.New(one))
	if err := gormplugin.New(one).Verify(db, &vOrder{}); !errors.Is(err, gormplugin.ErrNotInstalled) {
		t.Errorf("Verify by a plugin that is not the one on db = %v; want ErrNotInstalled", err)
	}
}

func TestVerifyMakesSharedKeysKnownBeforeTheFirstCreate(t *testing.T) {
	for _, verifies := range []bool{false, true} {
		db, plugin := open(t), gormplugin.New(one, gormplugin.WithIntegerKeys())
		// Made by hand, because AutoMigrate would parse the owner too.
		if err := errors.Join(db.Use(plugin), db.Exec("CREATE TABLE v_shareds (v_owner_id integer PRIMARY KEY)").Error); err != nil {
			t.Fatalf("set up = %v; want no error", err)
		}
		var want error
		if verifies {
			want = gormplugin.ErrNoKey
			if err := plugin.Verify(db, &vShared{}, &vOwner{}); err != nil {
				t.Fatalf("Verify = %v; want no error", err)
			}
		}
		child := vShared{}
		if err := db.Create(&child).Error; !errors.Is(err, want) || (child.VOwnerID == 0) != verifies {
			t.Errorf("Create of a child without its owner, Verify called: %v = %v with key %d; want %v", verifies, err, child.VOwnerID, want)
		}
	}
}

func TestVerifyRunsNoQuery(t *testing.T) {
	plugin := gormplugin.New(one, gormplugin.WithIntegerKeys())
	db := with(t, plugin)
	pool, err := db.DB()
	if err != nil {
		t.Fatalf("DB = %v; want no error", err)
	}
	if err := pool.Close(); err != nil {
		t.Fatalf("Close = %v; want no error", err)
	}
	if err := plugin.Verify(db, &vOrder{}, &vMember{}); err != nil {
		t.Errorf("Verify on a closed pool = %v; want no error", err)
	}
}
