package gormplugin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/coretest"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/proof/cases/gormcases"
	"github.com/snowkey/snowkey/types"
)

// sharded returns a source with 16 shards that counts the calls of Fill.
func sharded() *shardedSource {
	l := core.JavaScript()
	l.ShardBits = 4
	return &shardedSource{Generator: coretest.NewGenerator(coretest.Config{Layout: l})}
}

type shardedSource struct {
	*coretest.Generator
	fills int
}

func (s *shardedSource) Fill(ctx context.Context, ids []types.Snowflake) error {
	s.fills++
	return s.Generator.Fill(ctx, ids)
}

// keyOn returns a key of the caller on a shard, below those of the source.
func keyOn(shard, n int64) types.Snowflake { return types.Snowflake(n<<4 | shard) }

func nullKeyOn(shard, n int64) types.NullSnowflake {
	return types.NullSnowflake{Snowflake: keyOn(shard, n), Valid: true}
}

func shardOf[K ~int | ~int64 | ~uint | ~uint64](id K) int64 {
	if id == 0 {
		return -1
	}
	return int64(id) & 15
}

// assignSharded assigns keys to a graph in one call of Fill.
func assignSharded(ctx context.Context, t *testing.T, value any, opts ...gormplugin.Option) {
	t.Helper()
	src := sharded()
	if err := gormplugin.New(src, opts...).Assign(ctx, open(t), value); err != nil {
		t.Fatalf("Assign = %v; want no error", err)
	}
	if src.fills > 1 {
		t.Errorf("calls of Fill = %d; want at most 1", src.fills)
	}
}

type (
	shopper  = gormcases.Shopper
	purchase = gormcases.Purchase
	line     = gormcases.PurchaseLine
	part     = gormcases.LinePart
	tag      = gormcases.Tag
)

// What the field holds so far is overwritten, and has no say.
func TestTaggedFieldFollowsABelongsToAndElseTheParentThatSetsIt(t *testing.T) {
	stored := &shopper{ID: keyOn(5, 1)}
	alone := &purchase{ShopperID: nullKeyOn(9, 1), Shopper: stored}
	assignSharded(t.Context(), t, alone)
	equal(t, "purchase of a stored shopper", shardOf(alone.ID), 5)
	parent := &shopper{ID: keyOn(2, 1), Purchases: []*purchase{{ShopperID: nullKeyOn(9, 1)}, {Shopper: stored}}}
	assignSharded(t.Context(), t, parent)
	equal(t, "purchase of the parent", shardOf(parent.Purchases[0].ID), 2)
	equal(t, "purchase of another shopper", shardOf(parent.Purchases[1].ID), 5)
}

func TestSharedRowsFollowTheirLastParent(t *testing.T) {
	shared, common := &line{}, &tag{}
	purchases := []*purchase{{ShopperID: nullKeyOn(1, 1)}, {ShopperID: nullKeyOn(2, 1)}}
	for _, p := range purchases {
		p.Lines, p.Tags = []*line{shared}, []*tag{common}
	}
	assignSharded(t.Context(), t, purchases)
	equal(t, "PurchaseID", shared.PurchaseID, purchases[1].ID)
	equal(t, "line of two purchases", shardOf(shared.ID), 2)
	equal(t, "tag of two purchases", shardOf(common.ID), 1)
}

func TestKeysOfEveryKindSayTheirShard(t *testing.T) {
	type Line struct {
		gorm.Model
		OrderID uint
	}
	type Order struct {
		gorm.Model
		TenantID int64 `snowkey:"shard"`
		Lines    []Line
	}
	type Bin struct {
		TenantID types.Snowflake `gorm:"primaryKey"`
		ID       types.Snowflake `gorm:"primaryKey"`
		UnitID   types.Snowflake
	}
	type Unit struct {
		ID       types.Snowflake
		TenantID uint64 `gorm:"-" snowkey:"shard"`
		Bins     []Bin
	}
	type Plain struct { // its key is the database's
		ID   uint
		Bins []Bin `gorm:"foreignKey:UnitID"`
	}
	o := &Order{TenantID: int64(keyOn(4, 1)), Lines: make([]Line, 2)}
	o.Lines[1].ID = uint(keyOn(9, 9))
	assignSharded(t.Context(), t, o, gormplugin.WithIntegerKeys())
	equal(t, "gorm.Model", shardOf(o.ID), 4)
	equal(t, "child of gorm.Model", shardOf(o.Lines[0].ID), 4)
	equal(t, "key that is set", o.Lines[1].ID, uint(keyOn(9, 9)))
	u := &Unit{TenantID: uint64(keyOn(3, 1)), Bins: []Bin{{TenantID: 1}}}
	assignSharded(t.Context(), t, u)
	equal(t, "composite key", shardOf(u.Bins[0].ID), 3)
	type Page struct {
		ID    types.Snowflake
		DocID string
	}
	type Doc struct {
		ID    string `gorm:"primaryKey;snowflake"`
		Pages []Page
	}
	d := &Doc{ID: keyOn(6, 1).String(), Pages: make([]Page, 1)}
	assignSharded(t.Context(), t, d)
	equal(t, "child of a key as text", shardOf(d.Pages[0].ID), 6)
	p := &Plain{Bins: make([]Bin, 3)}
	assignSharded(t.Context(), t, p)
	equal(t, "children of a row whose key is the database's", shardOf(p.Bins[0].ID) == shardOf(p.Bins[1].ID) && shardOf(p.Bins[1].ID) == shardOf(p.Bins[2].ID), true)
}

func TestErrorsOfShardsLeaveTheGraphAlone(t *testing.T) {
	on := func(n int64) context.Context { return core.OnShard(t.Context(), n) }
	stock := keyOn(7, 1)
	of := func(id types.Snowflake) types.NullSnowflake { return types.NullSnowflake{Snowflake: id, Valid: true} }
	parts := func(stock *types.Snowflake) []*line { return []*line{{Parts: []part{{Stock: stock}}}} }
	for want, c := range map[string]struct {
		ctx context.Context
		p   *purchase
	}{
		"Purchase is on shard 5 by ShopperID, and on shard 6 by the context":                          {on(6), &purchase{ShopperID: nullKeyOn(5, 1)}},
		"Purchase is on shard 8 by ShopperID, and on shard 6 by the context":                          {on(6), &purchase{Shopper: &shopper{Owner: gormcases.Owner{TenantID: nullKeyOn(8, 1)}}}},
		"Purchase is on shard 3 by ShopperID, and on shard 9 by the context":                          {on(9), &purchase{Shopper: &shopper{Tenant: &gormcases.Tenant{ID: keyOn(3, 1)}}}},
		"Purchase.Lines[0].Parts[0] is on shard 7 by Stock, and on shard 5 by its parent Purchase":    {t.Context(), &purchase{ShopperID: nullKeyOn(5, 1), Lines: parts(&stock)}},
		"Purchase.Lines[0].Parts[0] is on shard 7 by Stock, and on one that is still to be chosen by": {t.Context(), &purchase{Shopper: &shopper{}, Lines: parts(&stock)}},
		"Purchase.ShopperID is 0, want the key":                                                       {on(6), &purchase{ShopperID: of(0)}},
		"Purchase.ShopperID is -3, want 0..9223372036854775807":                                       {on(6), &purchase{ShopperID: of(-3)}},
		"Purchase.Lines[0].Parts[0].Stock is 0, want the key":                                         {t.Context(), &purchase{ShopperID: of(1), Lines: parts(new(types.Snowflake))}},
		"shard of OnShard is 16": {on(16), &purchase{ShopperID: of(1)}},
	} {
		src := sharded()
		err := gormplugin.New(src).Assign(c.ctx, open(t), c.p)
		if err == nil || !strings.HasPrefix(err.Error(), "gormplugin: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("Assign = %v; want an error of gormplugin with %q", err, want)
		}
		var outside *core.ValueError
		if !errors.Is(err, gormplugin.ErrShard) && !errors.Is(err, types.ErrRange) && !errors.As(err, &outside) {
			t.Errorf("Assign = %v; want ErrShard, ErrRange, or the error of the source", err)
		}
		if c.p.ID != 0 || c.p.Shopper != nil && c.p.Shopper.ID != 0 || len(c.p.Lines) > 0 && c.p.Lines[0].ID != 0 || src.fills > 0 {
			t.Errorf("after %v: %+v, %d calls of Fill; want no key", err, c.p, src.fills)
		}
	}
	// None of these is an error: the row's own key is set.
	assignSharded(on(6), t, &purchase{ID: types.ID[purchase](keyOn(1, 1)), Lines: []*line{{ID: keyOn(2, 1), Parts: []part{{ID: keyOn(3, 1), Stock: &stock}}}}})
}

func TestVerifySaysWhatIsWrongWithTheTagOfAShard(t *testing.T) {
	type Two struct {
		ID       types.Snowflake
		TenantID types.Snowflake `snowkey:"shard"`
		OwnerID  types.Snowflake `snowkey:"shard"`
	}
	type Text struct {
		ID     types.Snowflake
		Tenant string `snowkey:"shard"`
	}
	type Narrow struct {
		ID     types.Snowflake
		Tenant int32 `snowkey:"shard"`
	}
	type Row struct {
		ID       types.Snowflake
		Tenant   *gormcases.Tenant `snowkey:"shard"`
		TenantID types.Snowflake
	}
	type Counted struct { // by the database: the plugin is without WithIntegerKeys
		ID     uint
		Tenant types.Snowflake `snowkey:"shard"`
	}
	type Good struct {
		ID     types.Snowflake
		Tenant int64 `snowkey:"shard"`
		Items  int   `gorm:"-" snowkey:"items,fk=good_id"` // sqlxhelper's
	}
	for _, c := range []struct {
		src  gormplugin.Source
		row  any
		want string
	}{
		{sharded(), &Two{}, `Two.OwnerID: the tag snowkey:"shard" is also that of TenantID`},
		{sharded(), &Text{}, `Text.Tenant: the tag snowkey:"shard" does not accept the type string`},
		{sharded(), &Narrow{}, `Narrow.Tenant: the tag snowkey:"shard" does not accept the type int32`},
		{sharded(), &Row{}, `Row.Tenant: the tag snowkey:"shard" does not accept the type *gormcases.Tenant`},
		{sharded(), &Counted{}, `Counted.Tenant: the tag snowkey:"shard" needs a key that the plugin assigns`},
		{sharded(), &Good{}, ""},
		{&counting{}, &Good{}, `Good.Tenant: the tag snowkey:"shard" needs a source whose keys have shards`},
		{coretest.NewGenerator(coretest.Config{}), &Good{}, `Good.Tenant: the tag snowkey:"shard" needs a source`},
	} {
		plugin := gormplugin.New(c.src)
		db := with(t, plugin)
		dry := db.Session(&gorm.Session{DryRun: true})
		if c.want == "" {
			if err := plugin.Verify(db, c.row); err != nil {
				t.Errorf("Verify(%T) = %v; want no error", c.row, err)
			}
			continue
		}
		for _, err := range []error{plugin.Verify(db, c.row), plugin.Assign(t.Context(), db, c.row), dry.Create(c.row).Error} {
			if wrong := (*gormplugin.ModelError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error of %T = %v; want a ModelError: %s", c.row, err, c.want)
			}
		}
	}
}

// Updates save associations, and are told of the shards before.
func TestUseWithoutTheUpdatesOfGORMIsRefusedWithShards(t *testing.T) {
	for _, c := range []struct {
		src  gormplugin.Source
		want error
	}{{sharded(), gormplugin.ErrNoAnchor}, {&counting{}, nil}} {
		db := open(t)
		if err := db.Callback().Update().Remove("gorm:save_before_associations"); err != nil {
			t.Fatalf("Remove = %v; want no error", err)
		}
		if err := db.Use(gormplugin.New(c.src)); !errors.Is(err, c.want) {
			t.Errorf("Use with %T = %v; want %v", c.src, err, c.want)
		}
	}
}

func TestNewKeysKeepTheirOrderOnTheirShards(t *testing.T) {
	p := &purchase{ShopperID: nullKeyOn(15, 1), Lines: []*line{{}, {}, {}}}
	assignSharded(t.Context(), t, p)
	ids := []types.Snowflake{p.ID.Snowflake(), p.Lines[0].ID, p.Lines[1].ID, p.Lines[2].ID}
	if !slices.IsSorted(ids) {
		t.Errorf("keys = %d; want them rising", ids)
	}
}

func TestGraphsOfManyGoroutinesStayOnTheirShards(t *testing.T) {
	db := with(t, gormplugin.New(sharded().Generator))
	db = db.Session(&gorm.Session{DryRun: true, SkipDefaultTransaction: true})
	var group sync.WaitGroup
	for shard := range int64(16) {
		group.Go(func() {
			p := &purchase{Shopper: &shopper{}, Lines: []*line{{Parts: []part{{}}}, {}}, Tags: []*tag{{}}}
			if err := db.WithContext(core.OnShard(t.Context(), shard)).Create(p).Error; err != nil {
				t.Errorf("Create = %v; want no error", err)
			}
			for _, id := range []types.Snowflake{p.ID.Snowflake(), p.Shopper.ID, p.Lines[0].Parts[0].ID, p.Lines[1].ID, p.Tags[0].ID} {
				if shardOf(id) != shard {
					t.Errorf("key %d is on shard %d; want %d", id, shardOf(id), shard)
				}
			}
		})
	}
	group.Wait()
}

// Such a root gets no key, so its field need not be known.
func TestUpdatesByAConditionNeedNoShard(t *testing.T) {
	db := with(t, gormplugin.New(sharded()))
	tx := db.Session(&gorm.Session{DryRun: true}).Model(&purchase{}).Where("id > 7").Updates(map[string]any{"shopper_id": 5})
	if tx.Error != nil {
		t.Errorf("Updates = %v; want no error", tx.Error)
	}
}

func TestVerifyMissesTheCallbackThatUpdatesNeed(t *testing.T) {
	db, plugin := open(t), gormplugin.New(sharded())
	err := errors.Join(db.Use(plugin), plugin.Verify(db), db.Callback().Update().Remove("snowflake:place"))
	if err != nil || gormplugin.Installed(db) || !errors.Is(plugin.Verify(db), gormplugin.ErrNotInstalled) {
		t.Errorf("Verify without the callback = %v, after %v; want ErrNotInstalled", plugin.Verify(db), err)
	}
}

// A hookedRow has a hook that takes the context, and with it what the plugin knows of the graph.
type hookedRow struct {
	ID    types.Snowflake
	Owner types.NullSnowflake `snowkey:"shard"`
}

func (r *hookedRow) BeforeCreate(tx *gorm.DB) error {
	tx.Statement.Context = context.Background()
	r.Owner = nullKeyOn(9, 1)
	return nil
}

func TestAHookThatExchangesTheContextLeavesARowOnTheShardOfItsField(t *testing.T) {
	db := open(t)
	if err := errors.Join(db.Use(gormplugin.New(sharded())), db.AutoMigrate(&hookedRow{})); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var r hookedRow
		if err := db.Create(&r).Error; err != nil || shardOf(r.ID) != 9 {
			t.Errorf("Create = %v with a key on shard %d; want it on 9", err, shardOf(r.ID))
		}
	}
}
