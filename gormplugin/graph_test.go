package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// counting is a source of 1, 2, 3 … that fails from a given key on.
type counting struct {
	last, failAt types.Snowflake
	fills        int
}

var errEmpty = errors.New("no more keys")

func (c *counting) Next(ctx context.Context) (types.Snowflake, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if c.last++; c.last == c.failAt {
		return 0, errEmpty
	}
	return c.last, nil
}

func (c *counting) Fill(ctx context.Context, ids []types.Snowflake) (err error) {
	c.fills++
	for i := range ids {
		if ids[i], err = c.Next(ctx); err != nil {
			return err
		}
	}
	return nil
}

// assign assigns keys from 1 on to a graph of a database that does not have the
// plugin.
func assign(t *testing.T, value any) {
	t.Helper()
	src := &counting{}
	if err := gormplugin.New(src).Assign(t.Context(), open(t), value); err != nil {
		t.Fatalf("Assign(%T) = %v; want no error", value, err)
	}
	if src.fills > 1 {
		t.Errorf("calls of Fill by Assign(%T) = %d; want at most 1", value, src.fills)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v; want %v", what, got, want)
	}
}

// assigned fails the test unless a graph reads as want after [assign]: its rows in the order in which
// they are found, level by level, each with the columns that are not zero, if there are any. A column with & shares its
// place with another one.
func assigned(t *testing.T, value any, want string) {
	t.Helper()
	assign(t, value)
	r := reading{places: map[any]bool{}}
	r.find(reflect.ValueOf(value))
	for i := 0; i < len(r.rows); i++ {
		r.columns(r.rows[i], func(_ string, v reflect.Value) { r.places[v.Addr().Interface()] = true }, r.find)
	}
	var rows []string
	for _, row := range r.rows {
		text := row.Type().Name()
		r.columns(row, func(name string, v reflect.Value) {
			if v.IsZero() {
				return
			}
			mark := ""
			for ; v.Kind() == reflect.Pointer; v = v.Elem() {
				if r.places[v.Interface()] {
					mark = "&"
				}
				r.places[v.Interface()] = true
			}
			read := v.Interface()
			if valuer, ok := read.(driver.Valuer); ok {
				read, _ = valuer.Value()
			}
			text += fmt.Sprintf(" %s=%s%v", name, mark, read)
		}, func(reflect.Value) {})
		if text != row.Type().Name() {
			rows = append(rows, text)
		}
	}
	if got := strings.Join(rows, ", "); got != want {
		t.Errorf("after Assign the graph is\n%s\nwant\n%s", got, want)
	}
}

// A reading has the rows of a graph, and the places of their columns.
type reading struct {
	rows   []reflect.Value
	places map[any]bool
}

// find adds the rows of a value of any shape.
func (r *reading) find(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		r.find(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			r.find(v.Index(i))
		}
	case reflect.Struct:
		if place := v.Addr().Interface(); !r.places[place] {
			r.places[place] = true
			r.rows = append(r.rows, v)
		}
	}
}

// columns calls column with each column of a struct, and other with each other field, those of embedded structs
// among them.
func (r *reading) columns(row reflect.Value, column func(name string, v reflect.Value), other func(reflect.Value)) {
	for i := range row.NumField() {
		field, v := row.Type().Field(i), row.Field(i)
		of := field.Type
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case field.Anonymous || strings.HasPrefix(field.Tag.Get("gorm"), "embedded"):
			if v = reflect.Indirect(v); v.IsValid() {
				r.columns(v, column, other)
			}
		case of.Kind() == reflect.Slice || of.Kind() == reflect.Struct && !of.Implements(reflect.TypeFor[driver.Valuer]()):
			other(v)
		default:
			column(field.Name, v)
		}
	}
}

type gUser struct {
	ID        types.Snowflake
	CompanyID *types.Snowflake
	Company   *gCompany
	Account   gAccount  `gorm:"foreignKey:UserID"`
	Phones    []*gPhone `gorm:"foreignKey:UserID"`
	Groups    []gGroup  `gorm:"many2many:user_groups"`
	Friends   []*gUser  `gorm:"many2many:user_friends"`
	Notes     []gNote   `gorm:"polymorphic:Owner"`
	BossID    *types.Snowflake
	Boss      *gUser
	Team      *[]gUser `gorm:"foreignKey:BossID"`
}

type gCompany struct {
	ID      types.Snowflake
	Members []*gUser `gorm:"foreignKey:CompanyID"`
	Notes   []gNote  `gorm:"polymorphic:Owner;polymorphicValue:firm"`
}

type gAccount struct {
	ID     types.Snowflake
	UserID types.NullSnowflake
	Number string
}

type gPhone struct {
	ID     types.Snowflake
	UserID sql.Null[types.Snowflake]
	User   *gUser
	Number string
}

type gGroup struct {
	ID    types.Snowflake
	Users []*gUser `gorm:"many2many:user_groups"`
}

type gNote struct {
	ID        types.Snowflake
	OwnerID   types.Snowflake
	OwnerType string
}

func TestAssignFollowsEveryKindOfAssociation(t *testing.T) {
	assigned(t, &gUser{
		Company: &gCompany{Notes: []gNote{{}}},
		Account: gAccount{Number: "n"},
		Phones:  []*gPhone{{Number: "1"}, {Number: "2"}},
		Groups:  []gGroup{{}, {Users: []*gUser{{}}}},
		Friends: []*gUser{{}},
		Notes:   []gNote{{}, {}},
		Boss:    &gUser{},
		Team:    &[]gUser{{Account: gAccount{Number: "m"}}},
	}, "gUser ID=3 CompanyID=1 BossID=2, gCompany ID=1, gAccount ID=4 UserID=3 Number=n, gPhone ID=5 UserID=3 Number=1, gPhone ID=6 UserID=3 Number=2, gGroup ID=10, gGroup ID=11, gUser ID=12, gNote ID=7 OwnerID=3 OwnerType=g_users, gNote ID=8 OwnerID=3 OwnerType=g_users, gUser ID=2, gUser ID=9 BossID=3, gNote ID=13 OwnerID=1 OwnerType=firm, gUser ID=15, gAccount ID=14 UserID=9 Number=m")
}

func TestAssignTakesEveryShapeOfValue(t *testing.T) {
	one, pointer := &gNote{}, &gNote{}
	list, array, pointers := []gNote{{}, {}}, [2]gNote{}, []*gNote{{}, {}}
	doubly := []**gNote{&pointer}
	none := []gNote{}
	var unset []*gNote
	for _, test := range []struct {
		value any
		first func() types.Snowflake
		given types.Snowflake
	}{
		{one, func() types.Snowflake { return one.ID }, 1},
		{&pointers[0], func() types.Snowflake { return pointers[0].ID }, 1},
		{list, func() types.Snowflake { return list[0].ID }, 2},
		{&array, func() types.Snowflake { return array[0].ID }, 2},
		{[1]*gNote{pointers[1]}, func() types.Snowflake { return pointers[1].ID }, 1},
		{doubly, func() types.Snowflake { return pointer.ID }, 1},
		{&list, func() types.Snowflake { return list[0].ID }, 0}, // which have their keys by now
		{none, nil, 0},
		{&unset, nil, 0},
	} {
		src := &counting{}
		if err := gormplugin.New(src).Assign(t.Context(), open(t), test.value); err != nil {
			t.Errorf("Assign(%T) = %v; want no error", test.value, err)
			continue
		}
		if src.last != test.given || test.first != nil && test.first() != 1 {
			t.Errorf("Assign(%T) took %d keys; want %d, and the first to be assigned", test.value, src.last, test.given)
		}
	}
}

func TestAssignRefusesWhatIsNoGraphAndChangesNothing(t *testing.T) {
	type Narrow struct {
		ID       types.Snowflake
		Children []struct {
			ID       types.Snowflake
			NarrowID int32
		} `gorm:"foreignKey:NarrowID"`
	}
	type Nested struct {
		ID    types.Snowflake
		Notes [][]gNote `gorm:"foreignKey:OwnerID"`
	}
	var null *gUser
	var nullList *[]gUser
	user := &gUser{}
	for _, test := range []struct {
		value any
		want  error
		says  string
	}{
		{nil, gorm.ErrInvalidValue, "nil"},
		{null, gorm.ErrInvalidValue, "*gormplugin_test.gUser"},
		{nullList, gorm.ErrInvalidValue, "nil"},
		{gUser{}, gorm.ErrInvalidValue, "gUser"},
		{gUser{ID: 5}, gorm.ErrInvalidValue, "gUser"},
		{[1]gUser{}, gorm.ErrInvalidValue, "gUser"},
		{map[string]any{"id": 0}, gorm.ErrInvalidData, "map[string]interface"},
		{&[]map[string]any{{}}, gorm.ErrInvalidData, "map[string]interface"},
		{[]any{user}, gorm.ErrInvalidData, "[]interface"},
		{5, gorm.ErrInvalidData, "int"},
		{&Nested{Notes: [][]gNote{{{}}}}, gorm.ErrInvalidData, "Nested.Notes[0] is a []gormplugin_test.gNote"},
		{[]*gUser{user, nil}, gorm.ErrInvalidData, "gUser[1] is nil"},
		{&gUser{Boss: user, Phones: []*gPhone{{}, nil}}, gorm.ErrInvalidData, "gUser.Phones[1] is nil"},
		{[]gUser{{}, {}, {Company: &gCompany{Members: []*gUser{user, nil}}}}, gorm.ErrInvalidData, "gUser[2].Company.Members[1] is nil"},
	} {
		src := &counting{}
		err := gormplugin.New(src).Assign(t.Context(), open(t), test.value)
		if !errors.Is(err, test.want) || !strings.HasPrefix(err.Error(), "gormplugin: ") || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Assign(%T) = %v; want an error of gormplugin that is %q and says %q", test.value, err, test.want, test.says)
		}
		if src.last != 0 || !reflect.DeepEqual(user, &gUser{}) {
			t.Errorf("Assign(%T) took %d keys and made %+v; want none and an unchanged struct", test.value, src.last, user)
		}
	}
	src := &counting{}
	narrow := &Narrow{}
	var model *gormplugin.ModelError
	if err := gormplugin.New(src).Assign(t.Context(), open(t), narrow); !errors.As(err, &model) || model.Field != "NarrowID" {
		t.Errorf("Assign(%T) = %v; want a *ModelError for NarrowID", narrow, err)
	}
	if narrow.ID != 0 || src.last != 0 {
		t.Errorf("ID = %d after %d keys; want 0 after 0", narrow.ID, src.last)
	}
}

func TestAssignLeavesTheMiddleOfALongPathOut(t *testing.T) {
	root := &gUser{}
	for u, i := root, 0; i < 50; i++ {
		u.Boss = &gUser{}
		u = u.Boss
		if i == 49 {
			u.Phones = []*gPhone{nil}
		}
	}
	err := gormplugin.New(&counting{}).Assign(t.Context(), open(t), root)
	want := "gUser" + strings.Repeat(".Boss", 7) + ".…" + strings.Repeat(".Boss", 7) + ".Phones[0] is nil"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Assign = %v; want it to say %s", err, want)
	}
}

func TestAssignNeedsASourceAndADatabase(t *testing.T) {
	db, u := open(t), &gUser{}
	failed := db.Where("1 = 1")
	_ = failed.AddError(errEmpty)
	for what, test := range map[string]struct {
		plugin *gormplugin.Plugin
		db     *gorm.DB
		want   error
	}{
		"nil plugin":    {nil, db, gormplugin.ErrNoSource},
		"nil source":    {gormplugin.New(nil), db, gormplugin.ErrNoSource},
		"nil database":  {gormplugin.New(one), nil, gorm.ErrInvalidDB},
		"zero database": {gormplugin.New(one), &gorm.DB{}, gorm.ErrInvalidDB},
		"no Dialector":  {gormplugin.New(one), &gorm.DB{Config: &gorm.Config{}}, gorm.ErrInvalidDB},
		"failed chain":  {gormplugin.New(one), failed, errEmpty},
	} {
		if err := test.plugin.Assign(t.Context(), test.db, u); !errors.Is(err, test.want) {
			t.Errorf("Assign with a %s = %v; want %v", what, err, test.want)
		}
	}
	equal(t, "ID", u.ID, 0)
}

func TestAssignAssignsAllOrNothing(t *testing.T) {
	graph := func() *gUser {
		return &gUser{
			Company: &gCompany{Notes: []gNote{{OwnerID: 5}}},
			Phones:  []*gPhone{{Number: "1"}, {Number: "2"}},
			Notes:   []gNote{{}},
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	bad := gormplugin.SourceFunc(func(context.Context) (types.Snowflake, error) { return -1, nil })
	for what, test := range map[string]struct {
		ctx  context.Context
		src  gormplugin.Source
		want error
	}{
		"a source that fails at the first key": {t.Context(), &counting{failAt: 1}, errEmpty},
		"a source that fails at the last key":  {t.Context(), &counting{failAt: 6}, errEmpty},
		"… without Fill":                       {t.Context(), gormplugin.SourceFunc((&counting{failAt: 6}).Next), errEmpty},
		"a context that has ended":             {cancelled, &counting{}, context.Canceled},
		"bad keys":                             {t.Context(), bad, gormplugin.ErrBadKey},
	} {
		u := graph()
		if err := gormplugin.New(test.src).Assign(test.ctx, open(t), u); !errors.Is(err, test.want) || !strings.Contains(err.Error(), "gUser") {
			t.Errorf("Assign with %s = %v; want %v, and the model", what, err, test.want)
		}
		if !reflect.DeepEqual(u, graph()) {
			t.Errorf("Assign with %s changed the graph; want nothing changed", what)
		}
	}
}

// A picky is a foreign key that accepts small keys alone.
type picky struct{ n int64 }

func (p *picky) Scan(v any) error {
	n, ok := v.(int64)
	if !ok || n > 4 {
		return errEmpty
	}
	p.n = n
	return nil
}

func (p picky) Value() (driver.Value, error) { return p.n, nil }

// A word is a text that is no string.
type word struct{ text string }

func (w *word) Scan(v any) error {
	w.text = fmt.Sprint(v)
	return nil
}

func (w word) Value() (driver.Value, error) { return w.text, nil }

type GBase struct{ ID types.Snowflake }

func TestAssignReturnsTheErrorOfAForeignKeyThatRefusesAKey(t *testing.T) {
	type Picker struct {
		ID       types.Snowflake
		PickedID *picky
		Picked   *gUser
	}
	list := []Picker{{Picked: &gUser{ID: 3}}, {Picked: &gUser{ID: 5}}}
	err := gormplugin.New(&counting{}).Assign(t.Context(), open(t), list)
	if !errors.Is(err, errEmpty) || !strings.Contains(err.Error(), "Picker.PickedID") {
		t.Errorf("Assign = %v; want the error of the type of PickedID, and the field", err)
	}
}

func TestAssignKeepsKeysAndOverwritesForeignKeys(t *testing.T) {
	wrong := types.Snowflake(99)
	assigned(t, &gUser{
		ID: 42, CompanyID: &wrong, Company: &gCompany{ID: 43},
		Phones: []*gPhone{{ID: 44, UserID: sql.Null[types.Snowflake]{V: 99, Valid: true}}, {}},
		Notes:  []gNote{{OwnerID: 99, OwnerType: "x"}},
		BossID: &wrong, // of a boss that is not here
	}, "gUser ID=42 CompanyID=43 BossID=99, gCompany ID=43, gPhone ID=44 UserID=42, gPhone ID=1 UserID=42, gNote ID=2 OwnerID=42 OwnerType=g_users")
}

// A foreign key may point to the key that it has to equal, or to that of another row.
func TestAssignDoesNotWriteThroughForeignKeys(t *testing.T) {
	boss, other := &gUser{}, &gUser{ID: 9}
	right, misled := &gUser{BossID: &boss.ID, Boss: boss}, &gUser{BossID: &other.ID, Boss: boss}
	assigned(t, []*gUser{boss, right, misled, other}, "gUser ID=1, gUser ID=2 BossID=&1, gUser ID=3 BossID=1, gUser ID=9")
}

func TestAssignGivesOneRowOneKey(t *testing.T) {
	shared := &gCompany{}
	a, b := &gUser{Company: shared}, &gUser{Company: shared}
	shared.Members = []*gUser{a, b, a}
	assigned(t, []*gUser{a, b, a}, "gUser ID=2 CompanyID=1, gUser ID=3 CompanyID=1, gCompany ID=1")
	list := []gUser{{}, {}}
	list[0].Boss = &list[1]
	assigned(t, list, "gUser ID=2 BossID=1, gUser ID=1")
}

// Every two neighbours are a circle. To look for each from the beginning of the list
// would take hours.
func TestAssignFollowsAListOf100000LinksBothWays(t *testing.T) {
	type Link struct {
		ID     types.Snowflake
		NextID types.Snowflake
		Next   *Link
		PrevID types.Snowflake
		Prev   *Link
	}
	list := make([]Link, 100_000)
	for i := range len(list) - 1 {
		list[i].Next, list[i+1].Prev = &list[i+1], &list[i]
	}
	assign(t, &list[0])
	for i := range len(list) - 1 {
		if a, b := list[i], list[i+1]; a.ID == 0 || b.ID == 0 || a.NextID != b.ID || b.PrevID != a.ID {
			t.Fatalf("links %d and %d = %+v, %+v; want keys, and each the key of the other", i, i+1, a, b)
		}
	}
}

func TestAssignedKeysIncreaseAlongRelationsAndSlices(t *testing.T) {
	// The first belongs to a company that was not found before; the other, behind it, to none.
	assigned(t, []*gUser{{Company: &gCompany{}}, {}}, "gUser ID=2 CompanyID=1, gUser ID=3, gCompany ID=1")
	// The others of the company are found after a.
	a := &gUser{}
	a.Company = &gCompany{Members: []*gUser{{}, a}}
	assigned(t, a, "gUser ID=2 CompanyID=1, gCompany ID=1, gUser ID=3 CompanyID=1")
	// Where a slice is against a relation, the relation wins. What stands before and behind keeps its place.
	boss := &gUser{}
	assigned(t, []*gUser{{}, {Boss: boss}, boss, {}}, "gUser ID=1, gUser ID=3 BossID=2, gUser ID=2, gUser ID=4")
	assigned(t, []gUser{{Notes: []gNote{{}, {}}}, {Notes: []gNote{{}}, Company: &gCompany{}}}, "gUser ID=1, gUser ID=3 CompanyID=2, gNote ID=4 OwnerID=1 OwnerType=g_users, gNote ID=5 OwnerID=1 OwnerType=g_users, gCompany ID=2, gNote ID=6 OwnerID=3 OwnerType=g_users")
	phone := &gPhone{} // one row, twice
	assigned(t, []gUser{{Phones: []*gPhone{phone, phone}}, {Phones: []*gPhone{{}}}}, "gUser ID=1, gUser ID=2, gPhone ID=3 UserID=1, gPhone ID=4 UserID=2")
}

func TestAssignLetsABelongsToHaveTheLastWord(t *testing.T) {
	own := &gCompany{}
	assigned(t, []*gCompany{{Members: []*gUser{{Company: own}}}, own}, "gCompany ID=1, gCompany ID=2, gUser ID=3 CompanyID=2")
	u := &gUser{} // of two that have it, the last
	assigned(t, []*gCompany{{Members: []*gUser{u}}, {Members: []*gUser{u}}}, "gCompany ID=1, gCompany ID=2, gUser ID=3 CompanyID=2")
}

type GPart struct {
	BossID *types.Snowflake
	Boss   *gUser
	Toys   []gToy `gorm:"foreignKey:HolderID"`
}

type gHolder struct {
	ID types.Snowflake
	GPart
	Named  gRest  `gorm:"embedded;embeddedPrefix:named_"`
	Absent *gRest `gorm:"embedded;embeddedPrefix:absent_"`
	There  *gRest `gorm:"embedded;embeddedPrefix:there_"`
}

type gRest struct {
	FriendID types.Snowflake
	Friend   *gUser
}

type gToy struct {
	GBase
	HolderID types.Snowflake
}

func TestAssignFollowsEmbeddedAssociations(t *testing.T) {
	assigned(t, &gHolder{
		GPart: GPart{Boss: &gUser{}, Toys: []gToy{{}, {}}},
		Named: gRest{Friend: &gUser{}},
		There: &gRest{Friend: &gUser{}},
	}, "gHolder ID=4 BossID=1 FriendID=2 FriendID=3, gUser ID=1, gToy ID=5 HolderID=4, gToy ID=6 HolderID=4, gUser ID=2, gUser ID=3")
}

type gTenant struct {
	ID    types.Snowflake
	Users []gTenantUser `gorm:"foreignKey:TenantID"`
}

// Half of the key of a gTenantUser is a foreign key.
type gTenantUser struct {
	TenantID types.Snowflake `gorm:"primaryKey"`
	ID       types.Snowflake `gorm:"primaryKey"`
	Code     string
	Posts    []gPost  `gorm:"foreignKey:TenantID,UserID;references:TenantID,ID"`
	Badges   []gBadge `gorm:"foreignKey:Code;references:Code"`
}

type gPost struct {
	ID       types.Snowflake
	TenantID *types.Snowflake
	UserID   types.Snowflake
}

type gBadge struct {
	ID   types.Snowflake
	Code *string
}

func TestAssignCopiesKeysThatAreForeignKeysThemselves(t *testing.T) {
	assigned(t, &gTenant{Users: []gTenantUser{{Code: "c", Posts: []gPost{{}}, Badges: []gBadge{{}}}}}, "gTenant ID=1, gTenantUser TenantID=1 ID=2 Code=c, gPost ID=3 TenantID=1 UserID=2, gBadge ID=4 Code=c")
	other := types.Snowflake(9)
	assigned(t, &gTenantUser{Posts: []gPost{{TenantID: &other}}}, "gTenantUser ID=1, gPost ID=2 TenantID=0 UserID=1") // no tenant is a tenant
	equal(t, "what TenantID pointed to", other, 9)
}

// Package keytype has the types of foreign keys to a Snowflake.
func TestAssignKnowsForeignKeysToKeysOfOtherTypes(t *testing.T) {
	type Word string
	type Coded struct {
		ID string `gorm:"primaryKey;snowflake"`
	}
	type Counted struct {
		ID uint64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
	}
	type Nullable struct {
		ID types.NullSnowflake `gorm:"primaryKey;snowflake"`
	}
	type Spoke struct {
		ID  types.Snowflake
		GID string
		G   *Coded
		HID *Word
		H   *Coded
		IID types.Snowflake
		I   *Counted
		JID **int64
		J   *Nullable
		LID int64
		L   *Coded
	}
	assigned(t, &Spoke{G: &Coded{}, H: &Coded{}, I: &Counted{}, J: &Nullable{}, L: &Coded{}}, "Spoke ID=6 GID=1 HID=2 IID=3 JID=4 LID=5, Coded ID=1, Coded ID=2, Counted ID=3, Nullable ID=4, Coded ID=5")
}

func TestAssignLeavesForeignKeysToKeysThatAreNotKnownYet(t *testing.T) {
	type Counter struct{ ID uint }
	type Refused struct {
		ID types.Snowflake `gorm:"snowflake:-"`
	}
	type Child struct {
		ID        types.Snowflake
		CounterID uint
		Counter   *Counter
		RefusedID *types.Snowflake
		Refused   *Refused
	}
	type Crate struct {
		ID    uint
		Notes []gNote `gorm:"polymorphic:Owner"`
		Note  *gNote  `gorm:"polymorphic:Owner"`
	}
	old := types.Snowflake(6)
	c, crate := &Child{CounterID: 5, Counter: &Counter{}, RefusedID: &old, Refused: &Refused{}}, &Crate{Notes: []gNote{{}}, Note: &gNote{OwnerID: 5, OwnerType: "old"}}
	assigned(t, c, "Child ID=1 CounterID=5 RefusedID=6")
	assigned(t, crate, "gNote ID=2, gNote ID=1 OwnerID=5 OwnerType=old")
	c.Counter.ID, c.Refused.ID, crate.ID = 7, 8, 7
	assigned(t, c, "Child ID=1 CounterID=7 RefusedID=8, Counter ID=7, Refused ID=8")
	assigned(t, crate, "Crate ID=7, gNote ID=2 OwnerID=7 OwnerType=crates, gNote ID=1 OwnerID=7 OwnerType=crates")
}

type GCode struct{ Inner string }

// What is no key may be empty. Then a reference to it is empty too, unless the
// database is going to fill it.
func TestAssignCopiesEmptyReferences(t *testing.T) {
	type Child struct {
		ID      types.Snowflake
		Empty   string
		Pointer *string
		Null    *types.Snowflake
		Inner   string
		Default string
	}
	type Parent struct {
		ID      types.Snowflake
		Empty   string
		Pointer *string
		Null    types.NullSnowflake
		*GCode
		Default  string  `gorm:"default:(lower('X'))"`
		Empties  []Child `gorm:"foreignKey:Empty;references:Empty"`
		Pointers []Child `gorm:"foreignKey:Pointer;references:Pointer"`
		Nulls    []Child `gorm:"foreignKey:Null;references:Null"`
		Inners   []Child `gorm:"foreignKey:Inner;references:Inner"`
		Defaults []Child `gorm:"foreignKey:Default;references:Default"`
		Notes    []gNote `gorm:"polymorphic:Owner;foreignKey:Null"`
	}
	word, old := "old", types.Snowflake(5)
	children := func() []Child { return []Child{{Empty: word, Pointer: &word, Null: &old, Inner: word, Default: word}} }
	assigned(t, &Parent{Empties: children(), Pointers: children(), Nulls: children(), Inners: children(), Defaults: children(), Notes: []gNote{{OwnerID: 5}}}, "Parent ID=1, Child ID=2 Pointer=old Null=5 Inner=old Default=old, Child ID=3 Empty=old Null=&5 Inner=old Default=old, Child ID=4 Empty=old Pointer=&old Inner=old Default=old, Child ID=5 Empty=old Pointer=&old Null=&5 Default=old, Child ID=6 Empty=old Pointer=&old Null=&5 Inner=old Default=old, gNote ID=7 OwnerType=parents")
}

// As in a Create.
func TestAssignTakesAnEmptyPolymorphicTypeForNone(t *testing.T) {
	type Nameless struct {
		ID    types.Snowflake
		Notes []gNote `gorm:"polymorphic:Owner;polymorphicValue:"`
	}
	assigned(t, &Nameless{Notes: []gNote{{OwnerType: "old"}}}, "Nameless ID=1, gNote ID=2 OwnerID=1 OwnerType=old")
}

func TestAssignFillsFurtherColumnsThatAreTagged(t *testing.T) {
	type Invoice struct {
		ID     uint            // the database's own
		Public types.Snowflake `gorm:"snowflake;uniqueIndex"`
		Text   string          `gorm:"snowflake"`
	}
	assigned(t, []Invoice{{}, {Public: 42}}, "Invoice Public=1 Text=2, Invoice Public=42 Text=3")
}

// The database is new, so that the models are parsed here too.
func TestAssignIsSafeForConcurrentUse(t *testing.T) {
	db := open(t)
	var mu sync.Mutex
	src := &counting{}
	plugin := gormplugin.New(gormplugin.SourceFunc(func(ctx context.Context) (types.Snowflake, error) {
		mu.Lock()
		defer mu.Unlock()
		return src.Next(ctx)
	}))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 20 {
				u := &gUser{Company: &gCompany{}, Phones: []*gPhone{{}, {}}, Notes: []gNote{{}}}
				if err := plugin.Assign(t.Context(), db, u); err != nil {
					t.Errorf("Assign = %v; want no error", err)
				} else if *u.CompanyID != u.Company.ID || u.Phones[1].UserID.V != u.ID || u.ID == 0 {
					t.Errorf("Assign left %+v; want its keys", u)
				}
			}
		})
	}
	wait.Wait()
	equal(t, "keys taken", src.last, 8*20*5)
}

func TestAssignTellsAStructFromItsFirstField(t *testing.T) {
	type Lid struct {
		ID    types.Snowflake
		JarID types.Snowflake
		Text  string
	}
	type Jar struct {
		Lid Lid // at the address of the jar
		ID  types.Snowflake
	}
	assigned(t, &Jar{Lid: Lid{Text: "x"}}, "Jar ID=1, Lid ID=2 JarID=1 Text=x")
}

type cTenant struct {
	ID    types.Snowflake
	Users []*cUser `gorm:"foreignKey:TenantID"`
}

type cUser struct {
	TenantID  types.Snowflake `gorm:"primaryKey"`
	ID        types.Snowflake `gorm:"primaryKey"`
	PartnerID *types.Snowflake
	Partner   *cUser `gorm:"foreignKey:TenantID,PartnerID;references:TenantID,ID"`
}

// In a circle of references, a copy from a later row must not overwrite what an
// earlier one has given.
func TestAssignInACircleKeepsWhatComesFromOutside(t *testing.T) {
	a, b := &cUser{}, &cUser{}
	a.Partner, b.Partner = b, a
	assigned(t, &cTenant{Users: []*cUser{a, b}}, "cTenant ID=1, cUser TenantID=1 ID=3 PartnerID=2, cUser TenantID=1 ID=2 PartnerID=3")
}

type cLink struct {
	ID     types.Snowflake
	NextID *types.Snowflake
	Next   *cLink
	PrevID *types.Snowflake
	Prev   *cLink
}

// Rows of a circle have the larger keys than those that they refer to outside of it, and smaller ones
// than those that refer to the circle from outside.
func TestOnlyInACircleIsAnAssignedKeySmallerThanThatOfAParent(t *testing.T) {
	circle := func() (a *cLink) {
		a = &cLink{Next: &cLink{}}
		a.Next.Next = a
		return a
	}
	self, both := &cLink{}, &cLink{Prev: circle()}
	self.Next, both.Next = self, both
	assigned(t, []*cLink{self, {}}, "cLink ID=1 NextID=1, cLink ID=2")
	assigned(t, both, "cLink ID=3 NextID=3 PrevID=2, cLink ID=2 NextID=1, cLink ID=1 NextID=2")
	assigned(t, &cLink{Next: circle()}, "cLink ID=3 NextID=2, cLink ID=2 NextID=1, cLink ID=1 NextID=2")
	a, last := circle(), &cLink{}
	a.Prev = last
	assigned(t, []*cLink{{Next: a}, last}, "cLink ID=4 NextID=3, cLink ID=2, cLink ID=3 NextID=1 PrevID=2, cLink ID=1 NextID=3")
}

// What GORM only reads is not part of the graph. A row that was loaded with its
// customer keeps its foreign key.
func TestAssignLeavesReadOnlyAssociationsAlone(t *testing.T) {
	type rCustomer struct{ ID types.Snowflake }
	type rOrder struct {
		ID         types.Snowflake
		CustomerID types.Snowflake
		Customer   *rCustomer `gorm:"<-:false"`
	}
	assigned(t, &rOrder{CustomerID: 7, Customer: &rCustomer{ID: 5}}, "rOrder ID=1 CustomerID=7, rCustomer ID=5")
}

// A foreign key that is a pointer is replaced. It may point to another row's key.
func TestAssignDoesNotWriteThroughPointers(t *testing.T) {
	type pOwner struct{ ID uint }
	type pChild struct {
		ID      types.Snowflake
		OwnerID *uint
		Owner   *pOwner
	}
	type qOwner struct{ ID *uint }
	type qChild struct {
		ID      types.Snowflake
		OwnerID *uint
		Owner   *qOwner
	}
	type pToy[T any] struct {
		ID        types.Snowflake
		OwnerID   types.Snowflake
		OwnerType *T
	}
	other, key, kind, own := uint(3), uint(7), "dogs", word{"dogs"}
	assigned(t, &pChild{OwnerID: &other, Owner: &pOwner{ID: 7}}, "pChild ID=1 OwnerID=7, pOwner ID=7")
	assigned(t, &qChild{Owner: &qOwner{ID: &key}}, "qChild ID=1 OwnerID=7, qOwner ID=7")
	type qToy pToy[string]
	type qCat struct {
		ID   types.Snowflake
		Toys []qToy `gorm:"polymorphic:Owner"`
	}
	assigned(t, &qCat{Toys: []qToy{{OwnerType: &kind}}}, "qCat ID=1, qToy ID=2 OwnerID=1 OwnerType=q_cats")
	type rToy pToy[word]
	type rCat struct {
		ID   types.Snowflake
		Toys []rToy `gorm:"polymorphic:Owner"`
	}
	assigned(t, &rCat{Toys: []rToy{{OwnerType: &own}}}, "rCat ID=1, rToy ID=2 OwnerID=1 OwnerType=r_cats")
	equal(t, "what the pointers led to", fmt.Sprint(other, " ", kind, " ", own.text), "3 dogs dogs")
}

// The stored form of such a key is not the one in memory. A foreign key has the stored form, as after a Create.
func TestAssignCopiesTheStoredFormOfAKeyWithASerializer(t *testing.T) {
	type Lock struct {
		ID string `gorm:"primaryKey;serializer:json"`
	}
	type Door struct {
		ID      types.Snowflake
		PlainID string
		Plain   *Lock
		SameID  string `gorm:"serializer:json"`
		Same    *Lock
	}
	assigned(t, &Door{Plain: &Lock{ID: "a"}, Same: &Lock{ID: "b"}}, `Door ID=1 PlainID="a" SameID=b, Lock ID=a, Lock ID=b`)
}
