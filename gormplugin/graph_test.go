package gormplugin_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

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
	u := &gUser{
		Company: &gCompany{Notes: []gNote{{}}},
		Account: gAccount{Number: "n"},
		Phones:  []*gPhone{{Number: "1"}, {Number: "2"}},
		Groups:  []gGroup{{}, {Users: []*gUser{{}}}},
		Friends: []*gUser{{}},
		Notes:   []gNote{{}, {}},
		Boss:    &gUser{},
		Team:    &[]gUser{{Account: gAccount{Number: "m"}}},
	}
	assign(t, u)
	ids := map[types.Snowflake]bool{}
	for what, id := range map[string]types.Snowflake{
		"user": u.ID, "company": u.Company.ID, "company note": u.Company.Notes[0].ID, "account": u.Account.ID,
		"phone 0": u.Phones[0].ID, "phone 1": u.Phones[1].ID, "group 0": u.Groups[0].ID, "group 1": u.Groups[1].ID,
		"group user": u.Groups[1].Users[0].ID, "friend": u.Friends[0].ID, "note 0": u.Notes[0].ID, "note 1": u.Notes[1].ID,
		"boss": u.Boss.ID, "team": (*u.Team)[0].ID, "team account": (*u.Team)[0].Account.ID,
	} {
		if id < 1 || id > 15 || ids[id] {
			t.Errorf("key of %s = %d; want one of 1 … 15, each once", what, id)
		}
		ids[id] = true
	}
	equal(t, "CompanyID", *u.CompanyID, u.Company.ID)
	equal(t, "Account.UserID", u.Account.UserID, types.NullSnowflake{Snowflake: u.ID, Valid: true})
	for i, p := range u.Phones {
		equal(t, fmt.Sprintf("Phones[%d].UserID", i), p.UserID, sql.Null[types.Snowflake]{V: u.ID, Valid: true})
	}
	equal(t, "Notes[1]", u.Notes[1], gNote{u.Notes[1].ID, u.ID, "g_users"})
	equal(t, "Company.Notes[0]", u.Company.Notes[0], gNote{u.Company.Notes[0].ID, u.Company.ID, "firm"})
	equal(t, "BossID", *u.BossID, u.Boss.ID)
	equal(t, "Team[0].BossID", *(*u.Team)[0].BossID, u.ID)
	equal(t, "account of the user without one", u.Friends[0].Account, gAccount{})
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
	u := &gUser{
		ID: 42, CompanyID: &wrong, Company: &gCompany{ID: 43},
		Phones: []*gPhone{{ID: 44, UserID: sql.Null[types.Snowflake]{V: 99, Valid: true}}, {}},
		Notes:  []gNote{{OwnerID: 99, OwnerType: "x"}},
		BossID: &wrong, // of a boss that is not here
	}
	assign(t, u)
	equal(t, "ID", u.ID, 42)
	equal(t, "Company.ID", u.Company.ID, 43)
	equal(t, "CompanyID", *u.CompanyID, 43)
	equal(t, "Phones[0].ID", u.Phones[0].ID, 44)
	equal(t, "Phones[0].UserID.V", u.Phones[0].UserID.V, 42)
	equal(t, "Phones[1].UserID.V", u.Phones[1].UserID.V, 42)
	equal(t, "Notes[0]", u.Notes[0], gNote{u.Notes[0].ID, 42, "g_users"})
	equal(t, "BossID", u.BossID, &wrong)
	equal(t, "what CompanyID and BossID pointed to", wrong, 99)
}

// A foreign key may point to the key that it has to equal, or to that of another
// row.
func TestAssignDoesNotWriteThroughForeignKeys(t *testing.T) {
	boss, other := &gUser{}, &gUser{ID: 9}
	right, misled := &gUser{BossID: &boss.ID, Boss: boss}, &gUser{BossID: &other.ID, Boss: boss}
	assign(t, []*gUser{boss, right, misled, other})
	equal(t, "right.BossID", right.BossID, &boss.ID)
	equal(t, "*misled.BossID", *misled.BossID, boss.ID)
	equal(t, "other.ID", other.ID, 9)
}

func TestAssignGivesOneRowOneKey(t *testing.T) {
	shared := &gCompany{}
	a, b := &gUser{Company: shared}, &gUser{Company: shared}
	shared.Members = []*gUser{a, b, a}
	assign(t, []*gUser{a, b, a})
	equal(t, "company, a, b", fmt.Sprint(shared.ID, a.ID, b.ID), "1 2 3")
	equal(t, "a.CompanyID", *a.CompanyID, 1)
	equal(t, "b.CompanyID", *b.CompanyID, 1)
	if a.CompanyID == b.CompanyID {
		t.Error("the foreign keys of two rows share a pointer; want two")
	}
	// A pointer into a slice of structs.
	list := []gUser{{}, {}}
	list[0].Boss = &list[1]
	assign(t, list)
	equal(t, "keys, boss", fmt.Sprint(list[0].ID, list[1].ID, *list[0].BossID), "2 1 1")
}

func TestAssignEndsOnCycles(t *testing.T) {
	self := &gUser{}
	self.Boss = self
	assign(t, self)
	equal(t, "ID, BossID", fmt.Sprint(self.ID, *self.BossID), "1 1")
	a, b := &gUser{}, &gUser{}
	a.Boss, b.Boss = b, a
	a.Friends, b.Friends = []*gUser{b}, []*gUser{a, b}
	assign(t, a)
	equal(t, "a and b", fmt.Sprint(a.ID, *a.BossID, b.ID, *b.BossID), "2 1 1 2")
	phone := &gPhone{User: &gUser{}}
	phone.User.Phones = []*gPhone{phone}
	assign(t, phone)
	equal(t, "user, phone, foreign key", fmt.Sprint(phone.User.ID, phone.ID, phone.UserID.V), "1 2 1")
}

func TestAssignFollowsAListOf100000Links(t *testing.T) {
	const n = 100_000
	type Link struct {
		ID     types.Snowflake
		NextID *types.Snowflake
		Next   *Link
	}
	root := &Link{}
	for l, i := root, 1; i < n; i++ {
		l.Next = &Link{}
		l = l.Next
	}
	assign(t, root)
	i := types.Snowflake(n)
	for l := root; l != nil; l = l.Next { // each belongs to the next, which is older
		if l.ID != i || l.Next != nil && *l.NextID != i-1 {
			t.Fatalf("link %d has key %d; want %d, and the one below as foreign key", n-i, l.ID, i)
		}
		i--
	}
	equal(t, "links that were left", i, 0)
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
	// a belongs to a company that was not found before; b, behind it, to none.
	a, b := &gUser{Company: &gCompany{}}, &gUser{}
	assign(t, []*gUser{a, b})
	equal(t, "company, a, b", fmt.Sprint(a.Company.ID, a.ID, b.ID), "1 2 3")
	// The others of the company are found after a.
	first := &gUser{}
	a = &gUser{}
	a.Company = &gCompany{Members: []*gUser{first, a}}
	assign(t, a)
	equal(t, "company, a, first", fmt.Sprint(a.Company.ID, a.ID, first.ID), "1 2 3")
	// Where a slice is against a relation, the relation wins. What stands before
	// and behind keeps its place.
	boss := &gUser{}
	list := []*gUser{{}, {Boss: boss}, boss, {}}
	assign(t, list)
	if list[0].ID > boss.ID || boss.ID > list[1].ID || boss.ID > list[3].ID {
		t.Errorf("keys = %d, %d, %d, %d; want the third below the second, and the others in order", list[0].ID, list[1].ID, list[2].ID, list[3].ID)
	}
	u := &gUser{Account: gAccount{Number: "1"}, Phones: []*gPhone{{}, {}, {}}, Notes: []gNote{{}, {}}, Groups: []gGroup{{}, {}}}
	assign(t, u)
	for what, id := range map[string]types.Snowflake{"account": u.Account.ID, "phone": u.Phones[0].ID, "note": u.Notes[0].ID} {
		if id <= u.ID {
			t.Errorf("key of %s = %d; want more than the user's, %d", what, id, u.ID)
		}
	}
	if u.Phones[0].ID > u.Phones[1].ID || u.Phones[1].ID > u.Phones[2].ID || u.Notes[0].ID > u.Notes[1].ID || u.Groups[0].ID > u.Groups[1].ID {
		t.Errorf("keys along the slices of %+v do not increase", u)
	}
}

func TestAssignLetsABelongsToHaveTheLastWord(t *testing.T) {
	own, other := &gCompany{}, &gCompany{}
	u := &gUser{Company: own}
	other.Members = []*gUser{u}
	assign(t, []*gCompany{other, own})
	equal(t, "CompanyID", *u.CompanyID, own.ID)
	// Of two that have it, the last.
	u = &gUser{}
	list := []*gCompany{{Members: []*gUser{u}}, {Members: []*gUser{u}}}
	assign(t, list)
	equal(t, "CompanyID", *u.CompanyID, list[1].ID)
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
	h := &gHolder{
		GPart: GPart{Boss: &gUser{}, Toys: []gToy{{}, {}}},
		Named: gRest{Friend: &gUser{}},
		There: &gRest{Friend: &gUser{}},
	}
	assign(t, h)
	equal(t, "BossID", *h.BossID, h.Boss.ID)
	equal(t, "Toys[1].HolderID", h.Toys[1].HolderID, h.ID)
	equal(t, "Named.FriendID", h.Named.FriendID, h.Named.Friend.ID)
	equal(t, "There.FriendID", h.There.FriendID, h.There.Friend.ID)
	equal(t, "Absent", h.Absent, nil)
	for _, id := range []types.Snowflake{h.ID, h.Boss.ID, h.Toys[0].ID, h.Toys[1].ID, h.Named.Friend.ID, h.There.Friend.ID} {
		if id < 1 || id > 6 {
			t.Errorf("key = %d; want one of 1 … 6", id)
		}
	}
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
	tenant := &gTenant{Users: []gTenantUser{{Code: "c", Posts: []gPost{{}}, Badges: []gBadge{{}}}}}
	assign(t, tenant)
	u := tenant.Users[0]
	equal(t, "TenantID", u.TenantID, tenant.ID)
	equal(t, "Posts[0].TenantID", *u.Posts[0].TenantID, tenant.ID)
	equal(t, "Posts[0].UserID", u.Posts[0].UserID, u.ID)
	equal(t, "Badges[0].Code", *u.Badges[0].Code, "c")
	equal(t, "keys", fmt.Sprint(tenant.ID != 0, u.ID != 0, u.ID != tenant.ID), "true true true")
	// No tenant is a tenant.
	user := &gTenantUser{Posts: []gPost{{TenantID: &u.ID}}}
	assign(t, user)
	equal(t, "Posts[0].TenantID", *user.Posts[0].TenantID, 0)
	equal(t, "what it pointed to", u.ID != 0, true)
}

func TestAssignKnowsEveryTypeOfForeignKey(t *testing.T) {
	type Word string
	type Hub struct{ ID types.Snowflake }
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
		AID types.Snowflake
		A   *Hub
		BID *types.Snowflake
		B   *Hub
		CID types.NullSnowflake
		C   *Hub
		DID sql.Null[types.Snowflake]
		D   *Hub
		EID int64
		E   *Hub
		FID *uint64
		F   *Hub
		GID string
		G   *Coded
		HID *Word
		H   *Coded
		IID types.Snowflake
		I   *Counted
		JID **int64
		J   *Nullable
		KID sql.NullInt64
		K   *Hub
		LID int64
		L   *Coded
	}
	hub := func() *Hub { return &Hub{} }
	s := &Spoke{A: hub(), B: hub(), C: hub(), D: hub(), E: hub(), F: hub(), G: &Coded{}, H: &Coded{}, I: &Counted{}, J: &Nullable{}, K: hub(), L: &Coded{}}
	assign(t, s)
	for what, pair := range map[string][2]any{
		"A": {s.AID, s.A.ID},
		"B": {*s.BID, s.B.ID},
		"C": {s.CID, types.NullSnowflake{Snowflake: s.C.ID, Valid: true}},
		"D": {s.DID, sql.Null[types.Snowflake]{V: s.D.ID, Valid: true}},
		"E": {s.EID, s.E.ID.Int64()},
		"F": {*s.FID, uint64(s.F.ID)},
		"G": {s.GID, s.G.ID},
		"H": {string(*s.HID), s.H.ID},
		"I": {s.IID.Int64(), int64(s.I.ID)},
		"L": {fmt.Sprint(s.LID), s.L.ID},
		"J": {**s.JID, s.J.ID.Snowflake.Int64()},
		"K": {s.KID, sql.NullInt64{Int64: s.K.ID.Int64(), Valid: true}},
	} {
		if pair[0] != pair[1] || reflect.ValueOf(pair[1]).IsZero() {
			t.Errorf("foreign key %s = %v; want %v, and not zero", what, pair[0], pair[1])
		}
	}
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
	c, old := &Child{CounterID: 5, Counter: &Counter{}, Refused: &Refused{}}, types.Snowflake(6)
	c.RefusedID = &old
	assign(t, c)
	equal(t, "ID", c.ID, 1)
	equal(t, "Counter.ID", c.Counter.ID, 0)
	equal(t, "CounterID", c.CounterID, 5)
	equal(t, "RefusedID", c.RefusedID, &old)
	c.Counter.ID, c.Refused.ID = 7, 8
	assign(t, c)
	equal(t, "CounterID", c.CounterID, 7)
	equal(t, "*RefusedID", *c.RefusedID, 8)
	type Crate struct {
		ID    uint
		Notes []gNote `gorm:"polymorphic:Owner"`
		Note  *gNote  `gorm:"polymorphic:Owner"`
	}
	crate := &Crate{Notes: []gNote{{}}, Note: &gNote{OwnerID: 5, OwnerType: "old"}}
	assign(t, crate)
	equal(t, "Notes[0] of a crate without a key", crate.Notes[0], gNote{ID: 2})
	equal(t, "Note of a crate without a key", *crate.Note, gNote{ID: 1, OwnerID: 5, OwnerType: "old"})
	crate.ID = 7
	assign(t, crate)
	equal(t, "Notes[0] of a crate with one", crate.Notes[0], gNote{ID: 2, OwnerID: 7, OwnerType: "crates"})
	equal(t, "Note of a crate with one", *crate.Note, gNote{ID: 1, OwnerID: 7, OwnerType: "crates"})
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
	p := &Parent{Empties: children(), Pointers: children(), Nulls: children(), Inners: children(), Defaults: children(), Notes: []gNote{{OwnerID: 5}}}
	assign(t, p)
	equal(t, "Empty", p.Empties[0].Empty, "")
	equal(t, "Pointer", p.Pointers[0].Pointer, nil)
	equal(t, "Null", p.Nulls[0].Null, nil)
	equal(t, "Inner", p.Inners[0].Inner, "")
	equal(t, "GCode", p.GCode, nil)
	equal(t, "Default", p.Defaults[0].Default, "old")
	equal(t, "Notes[0]", p.Notes[0], gNote{p.Notes[0].ID, 0, "parents"})
}

// As in a Create.
func TestAssignTakesAnEmptyPolymorphicTypeForNone(t *testing.T) {
	type Nameless struct {
		ID    types.Snowflake
		Notes []gNote `gorm:"polymorphic:Owner;polymorphicValue:"`
	}
	n := &Nameless{Notes: []gNote{{OwnerType: "old"}}}
	assign(t, n)
	equal(t, "Notes[0]", n.Notes[0], gNote{ID: 2, OwnerID: 1, OwnerType: "old"})
}

func TestAssignFillsFurtherColumnsThatAreTagged(t *testing.T) {
	type Invoice struct {
		ID     uint            // the database's own
		Public types.Snowflake `gorm:"snowflake;uniqueIndex"`
		Text   string          `gorm:"snowflake"`
	}
	list := []Invoice{{}, {Public: 42}}
	assign(t, list)
	equal(t, "list", fmt.Sprint(list), "[{0 1 2} {0 42 3}]")
}

// The database is new, so that the models are parsed here too.
func TestAssignIsSafeForConcurrentUse(t *testing.T) {
	db, err := gorm.Open(sqlite.Open(filepath.Join(t.TempDir(), "test.db")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatalf("gorm.Open = %v; want no error", err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatalf("DB = %v; want no error", err)
	}
	defer func() { _ = pool.Close() }()
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

func TestAssignedKeysGoByOwner(t *testing.T) {
	list := []gUser{{Notes: []gNote{{}, {}}}, {Notes: []gNote{{}}, Company: &gCompany{}}}
	assign(t, list)
	got := fmt.Sprint(list[0].ID, list[1].Company.ID, list[1].ID, list[0].Notes[0].ID, list[0].Notes[1].ID, list[1].Notes[0].ID)
	equal(t, "user, company, user, notes of the first, note of the second", got, "1 2 3 4 5 6")
	phone := &gPhone{}
	list = []gUser{{Phones: []*gPhone{phone, phone}}, {Phones: []*gPhone{{}}}} // one row, twice
	assign(t, list)
	equal(t, "users, phones", fmt.Sprint(list[0].ID, list[1].ID, phone.ID, list[1].Phones[0].ID), "1 2 3 4")
	list = make([]gUser, 20)
	for i := range list {
		list[i].Phones = []*gPhone{{}}
	}
	assign(t, list)
	for i, u := range list {
		if u.Phones[0].ID != types.Snowflake(20+i+1) {
			t.Errorf("key of the phone of user %d = %d; want %d", i, u.Phones[0].ID, 20+i+1)
		}
	}
}

// The post is found before the user, and the user before the tenant whose key it
// hands on.
func TestAssignCopiesKeysInTheOrderOfReferences(t *testing.T) {
	type Tenant struct{ ID types.Snowflake }
	type User struct {
		TenantID types.Snowflake `gorm:"primaryKey"`
		ID       types.Snowflake `gorm:"primaryKey"`
		Tenant   *Tenant
	}
	type Post struct {
		ID       types.Snowflake
		TenantID types.Snowflake
		UserID   types.Snowflake
		User     *User `gorm:"foreignKey:TenantID,UserID;references:TenantID,ID"`
	}
	p := &Post{User: &User{Tenant: &Tenant{}}}
	assign(t, p)
	equal(t, "tenant, user, post", fmt.Sprint(p.User.Tenant.ID, p.User.ID, p.ID), "1 2 3")
	equal(t, "foreign keys", fmt.Sprint(p.User.TenantID, p.TenantID, p.UserID), "1 1 2")
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
	j := &Jar{Lid: Lid{Text: "x"}}
	assign(t, j)
	equal(t, "jar", *j, Jar{Lid{2, 1, "x"}, 1})
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
	x := &cTenant{Users: []*cUser{a, b}}
	assign(t, x)
	if a.TenantID != x.ID || b.TenantID != x.ID || *a.PartnerID != b.ID || *b.PartnerID != a.ID {
		t.Errorf("Assign(tenant %d) = %+v, %+v; want the tenant and the partner in both", x.ID, *a, *b)
	}
}

// A row that refers to one of a circle is in no circle itself. It gets the larger
// key.
func TestAssignOrdersRowsThatReferToACircle(t *testing.T) {
	a, b := &gUser{}, &gUser{}
	a.Boss, b.Boss = b, a
	x := &gUser{Boss: a}
	assign(t, x)
	if x.ID <= a.ID || *x.BossID != a.ID {
		t.Errorf("Assign: %d refers to %d, of a circle with %d; want the largest key", x.ID, a.ID, b.ID)
	}
}

type cLink struct {
	ID     types.Snowflake
	NextID *types.Snowflake
	Next   *cLink
	PrevID *types.Snowflake
	Prev   *cLink
}

// Rows of a circle have the larger keys than those that they refer to outside of it.
func TestOnlyInACircleIsAnAssignedKeySmallerThanThatOfAParent(t *testing.T) {
	self := &cLink{}
	self.Next = self
	list := []*cLink{self, {}}
	assign(t, list)
	equal(t, "keys of one that refers to itself and the next", fmt.Sprint(self.ID, list[1].ID, *self.NextID), "1 2 1")
	a, b := &cLink{}, &cLink{}
	a.Next, b.Next = b, a
	x := &cLink{Prev: a}
	x.Next = x
	assign(t, x)
	if x.ID < a.ID {
		t.Errorf("key of a row that refers to itself and to a circle = %d; want more than %d, to which it refers", x.ID, a.ID)
	}
	a, b = &cLink{}, &cLink{}
	a.Next, b.Next = b, a
	list = []*cLink{{Next: a}, {}}
	a.Prev = list[1]
	assign(t, list)
	if list[1].ID > a.ID {
		t.Errorf("key of a row of a circle = %d; want more than %d, which it refers to", a.ID, list[1].ID)
	}
}

// The first of the circle has its tenant from the second, which comes later.
func TestAssignInACircleHandsOnWhatComesFromOutside(t *testing.T) {
	type Tenant struct{ ID types.Snowflake }
	type User struct {
		TenantID  types.Snowflake `gorm:"primaryKey"`
		ID        types.Snowflake `gorm:"primaryKey"`
		PartnerID *types.Snowflake
		Partner   *User `gorm:"foreignKey:TenantID,PartnerID;references:TenantID,ID"`
		Tenant    *Tenant
	}
	a, b := &User{}, &User{Tenant: &Tenant{}}
	a.Partner, b.Partner = b, a
	assign(t, a)
	if x := b.Tenant.ID; a.TenantID != x || b.TenantID != x || *a.PartnerID != b.ID || *b.PartnerID != a.ID {
		t.Errorf("Assign = %+v, %+v; want the tenant %d and the partner in both", *a, *b, x)
	}
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
	x := &rOrder{CustomerID: 7, Customer: &rCustomer{ID: 5}}
	assign(t, x)
	if x.CustomerID != 7 {
		t.Errorf("CustomerID = %d after Assign; want 7, as a Create keeps it", x.CustomerID)
	}
}

// A foreign key that is a pointer is replaced. It may point to another row's key.
func TestAssignDoesNotWriteThroughPointers(t *testing.T) {
	type pOwner struct{ ID uint }
	type pChild struct {
		ID      types.Snowflake
		OwnerID *uint
		Owner   *pOwner
	}
	other := &pOwner{ID: 3}
	x := &pChild{OwnerID: &other.ID, Owner: &pOwner{ID: 7}}
	assign(t, x)
	if other.ID != 3 || *x.OwnerID != 7 || x.OwnerID == &x.Owner.ID {
		t.Errorf("Assign: the other row's key = %d, OwnerID = %d; want 3 and 7, in a place of its own", other.ID, *x.OwnerID)
	}
	type qOwner struct{ ID *uint }
	type qChild struct {
		ID      types.Snowflake
		OwnerID *uint
		Owner   *qOwner
	}
	key := uint(7)
	y := &qChild{Owner: &qOwner{ID: &key}}
	assign(t, y)
	if *y.OwnerID != 7 || y.OwnerID == y.Owner.ID {
		t.Errorf("Assign: OwnerID = %d at %p; want 7, and not at %p, where the owner has it", *y.OwnerID, y.OwnerID, y.Owner.ID)
	}
	type qToy struct {
		ID        types.Snowflake
		OwnerID   types.Snowflake
		OwnerType *string
	}
	type qCat struct {
		ID   types.Snowflake
		Toys []qToy `gorm:"polymorphic:Owner"`
	}
	kind := "dogs"
	cat := &qCat{Toys: []qToy{{OwnerType: &kind}}}
	assign(t, cat)
	if kind != "dogs" || *cat.Toys[0].OwnerType != "q_cats" {
		t.Errorf("Assign: OwnerType = %q, and %q where it was; want q_cats and dogs", *cat.Toys[0].OwnerType, kind)
	}
	type rToy struct {
		ID        types.Snowflake
		OwnerID   types.Snowflake
		OwnerType *word
	}
	type rCat struct {
		ID   types.Snowflake
		Toys []rToy `gorm:"polymorphic:Owner"`
	}
	own := word{"dogs"}
	stray := &rCat{Toys: []rToy{{OwnerType: &own}}}
	assign(t, stray)
	if own.text != "dogs" || stray.Toys[0].OwnerType.text != "r_cats" {
		t.Errorf("Assign: OwnerType = %v, and %v where it was; want r_cats and dogs", *stray.Toys[0].OwnerType, own)
	}
}
