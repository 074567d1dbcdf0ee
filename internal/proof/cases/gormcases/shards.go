package gormcases

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// shardLayout has 64 shards.
var shardLayout = func() core.Layout {
	l := core.Default()
	l.ShardBits = 6
	return l
}()

// A shardSource has the keys of a counter, whose low bits are 0, on the shard of the context or on
// one after the other.
type shardSource struct{ *counter }

func (shardSource) ShardBits() int { return shardLayout.ShardBits }

func (shardSource) ShardFrom(ctx context.Context) (shard int64, ok bool, err error) {
	return shardLayout.ShardFrom(ctx)
}

func (s shardSource) Fill(ctx context.Context, ids []types.Snowflake) error {
	wish, ok, err := shardLayout.ShardFrom(ctx)
	if err != nil {
		return err
	}
	for i := range ids {
		if ids[i], err = s.Next(ctx); err != nil {
			return err
		}
		if !ok {
			wish = int64(s.given) & 63
		}
		ids[i] += types.Snowflake(wish)
	}
	return nil
}

// keyOn returns a key that the caller has, on a shard. Keys of the source are larger.
func keyOn(shard, n int64) types.Snowflake { return types.Snowflake(n<<6 | shard) }

func nullKeyOn(shard int64) types.NullSnowflake {
	return types.NullSnowflake{Snowflake: keyOn(shard, 1), Valid: true}
}

func stockOn(shard int64) *types.Snowflake {
	id := keyOn(shard, 1)
	return &id
}

// A Shopper is the one whose shard a [Purchase] is on, and is on that of a tenant.
type Shopper struct {
	ID        types.Snowflake
	Email     string      `gorm:"size:40;uniqueIndex"`
	Purchases []*Purchase `gorm:"foreignKey:ShopperID"`
	Tenant    *Tenant
	Owner
}

// An Owner is embedded.
type Owner struct {
	TenantID types.NullSnowflake `snowkey:"shard"`
}

// A Tenant has a key alone.
type Tenant struct{ ID types.Snowflake }

// A Purchase has an association of every kind, and a tagged field.
type Purchase struct {
	ID        types.ID[Purchase]
	Number    string              `gorm:"size:40;uniqueIndex"`
	ShopperID types.NullSnowflake `snowkey:"shard"`
	Shopper   *Shopper
	Address   *Address // belongs to it
	AddressID types.NullSnowflake
	Lines     []*PurchaseLine
	Bill      *Bill
	Tags      []*Tag         `gorm:"many2many:purchase_tags"`
	Notes     []PurchaseNote `gorm:"polymorphic:Owner"`
	Before    func()         `gorm:"-"`
}

// BeforeCreate calls Before.
func (p *Purchase) BeforeCreate(*gorm.DB) error {
	if p.Before != nil {
		p.Before()
	}
	return nil
}

// An Address is what a [Purchase] belongs to.
type Address struct {
	ID   types.Snowflake
	City string `gorm:"size:40"`
}

// A PurchaseLine is one of many of a [Purchase].
type PurchaseLine struct {
	ID         types.Snowflake
	PurchaseID types.ID[Purchase]
	SKU        string `gorm:"size:40"`
	Parts      []LinePart
}

// A LinePart is one of many of a [PurchaseLine].
type LinePart struct {
	ID             types.Snowflake
	PurchaseLineID types.Snowflake
	Stock          *types.Snowflake `snowkey:"shard"`
}

// A Bill is the only one of a [Purchase].
type Bill struct {
	ID         types.Snowflake
	PurchaseID types.NullID[Purchase]
}

// A Tag is shared by purchases.
type Tag struct {
	ID        types.Snowflake
	Text      string      `gorm:"size:40;uniqueIndex"`
	Purchases []*Purchase `gorm:"many2many:purchase_tags"`
}

// A PurchaseTag is a join row with a key of its own.
type PurchaseTag struct {
	ID         types.Snowflake
	TagID      types.Snowflake    `gorm:"uniqueIndex:purchase_tag_pair"`
	PurchaseID types.ID[Purchase] `gorm:"uniqueIndex:purchase_tag_pair"`
}

// A PurchaseNote is owned by a model of any kind.
type PurchaseNote struct {
	ID        types.Snowflake
	OwnerID   types.Snowflake
	OwnerType string `gorm:"size:40"`
}

// sharded makes the tables of models for a plugin and a source with shards. The plugin has joined
// purchases with their tags.
func (e *env) sharded(models ...any) {
	e.Helper()
	e.db = e.open(&gorm.Config{})
	err := errors.Join(e.db.Use(gormplugin.New(shardSource{e.src}, e.target.Options...)), e.db.SetupJoinTable(&Purchase{}, "Tags", &PurchaseTag{}))
	e.ok("Use and SetupJoinTable", err)
	e.migrate(models...)
}

// onShard is the database in the context of a shard.
func (e *env) onShard(shard int64) *gorm.DB {
	return e.db.WithContext(core.OnShard(e.Context(), shard))
}

// onShards returns a case that writes purchases and what belongs to them. Afterwards each shard has
// as many keys as want says, in all tables.
func onShards(claim string, want map[int64]int, write func(e *env)) testCase {
	return testCase{claim, func(e *env) {
		e.sharded(&Tenant{}, &Shopper{}, &Address{}, &Tag{}, &Purchase{}, &PurchaseLine{}, &LinePart{}, &Bill{}, &PurchaseTag{}, &PurchaseNote{})
		write(e)
		got, where := map[int64]int{}, map[string][]int64{}
		for _, table := range []string{"shoppers", "addresses", "purchases", "purchase_lines", "line_parts", "bills", "tags", "purchase_tags", "purchase_notes"} {
			for _, id := range e.keys(table, "id", "1", 1) {
				shard := shardLayout.Shard(types.Snowflake(id))
				got[shard]++
				where[table] = append(where[table], shard)
			}
		}
		if !maps.Equal(got, want) {
			e.Errorf("rows per shard = %v, in detail %v; want %v", got, where, want)
		}
	}}
}

// purchase returns one under a key of the caller.
func purchase(shard int64, number string) Purchase {
	return Purchase{ID: types.ID[Purchase](keyOn(shard, 1)), Number: number}
}

// wholePurchase returns a purchase with 11 rows around it.
func wholePurchase(number string) Purchase {
	return Purchase{
		Number:  number,
		Shopper: &Shopper{Email: number}, Address: &Address{City: number},
		Lines: []*PurchaseLine{{SKU: "1", Parts: []LinePart{{}, {}}}, {SKU: "2"}},
		Bill:  &Bill{},
		Tags:  []*Tag{{Text: number}},
		Notes: []PurchaseNote{{}, {}},
	}
}

var shardCases = []testCase{
	onShards("StoredParentIsFollowedByWhatUpdatesAndAssociationsCreate", map[int64]int{11: 1 + 2 + 1 + 1 + 1 + 1 + 1 + 3 + 2}, func(e *env) {
		p := purchase(11, "A")
		e.must(e.db.Create(&p))
		p.Lines, p.Address = []*PurchaseLine{{SKU: "1", Parts: []LinePart{{}}}}, &Address{City: "c"}
		e.must(e.db.Updates(&p))
		e.must(e.db.Session(&gorm.Session{FullSaveAssociations: true}).Updates(&Purchase{ID: p.ID, Shopper: &Shopper{Email: "s"}}))
		p.Bill = &Bill{}
		e.must(e.db.Save(&p))
		e.ok("Append and Replace", errors.Join(
			e.db.Model(&p).Association("Lines").Append(&PurchaseLine{SKU: "2"}),
			e.db.Model(&p).Association("Tags").Append(&Tag{Text: "t"}),
			e.db.Model(&p).Association("Tags").Replace(&Tag{Text: "u"}, &Tag{Text: "v"}),
			e.db.Model(&p).Association("Notes").Append(&PurchaseNote{}),
		))
	}),
	onShards("OmittedAssociationsHaveNoSay", map[int64]int{12: 1 + 1 + 1 + 2 + 1 + 2, 16: 3}, func(e *env) {
		e.must(e.db.Create(&Shopper{ID: keyOn(12, 1), Email: "twelve"}))
		p, q := wholePurchase("A"), wholePurchase("B")
		p.ShopperID, p.Shopper = nullKeyOn(12), &Shopper{ID: keyOn(13, 1), Email: "13"}
		p.Lines[0].Parts[0].Stock = stockOn(14) // on another shard than its parent
		e.must(e.db.Omit("Shopper", "Lines.Parts", "Tags.*", "Tags").Create(&p))
		q.Lines[0].Parts[0].Stock = stockOn(15)
		e.must(e.onShard(16).Select("Number", "Lines", "Lines.SKU").Create(&q))
	}),
	onShards("RowsThatHooksAddFollow", map[int64]int{17: 1 + 1 + 3 + 1 + 1, 18: 3}, func(e *env) {
		e.must(e.db.Create(&[]Shopper{{ID: keyOn(17, 1), Email: "17"}, {ID: keyOn(18, 1), Email: "18"}}))
		p := Purchase{Number: "A", Lines: []*PurchaseLine{{}}, ShopperID: nullKeyOn(17)}
		p.Before = func() {
			p.Lines = append(p.Lines, &PurchaseLine{Parts: []LinePart{{}}}, &PurchaseLine{})
			p.Bill = &Bill{}
		}
		e.must(e.db.Create(&p))
		q := Purchase{Number: "B", Bill: &Bill{}}
		q.Before = func() { q.ShopperID = nullKeyOn(18) }
		e.must(e.db.Create(&q))
	}),
	onShards("MapsHaveTheShardOfTheirFieldOrOfTheContext", map[int64]int{23: 3, 24: 1}, func(e *env) {
		e.must(e.db.Create(&Shopper{ID: keyOn(23, 1), Email: "23"}))
		e.must(e.db.Model(&Purchase{}).Create([]map[string]any{{"number": "A", "shopper_id": keyOn(23, 1).Int64()}, {"Number": "B", "ShopperID": keyOn(23, 1)}}))
		on := e.onShard(24).Model(&Purchase{}).Session(&gorm.Session{})
		e.must(on.Create(map[string]any{"number": "C"}))
		e.fails(on.Create(map[string]any{"number": "D", "shopper_id": keyOn(23, 1)}), gormplugin.ErrShard)
		e.fails(on.Create(map[string]any{"number": "D", "shopper_id": gorm.Expr("NULL")}), gormplugin.ErrShard)
	}),
	onShards("GraphOfARootByValueFollowsItsKey", map[int64]int{25: 3}, func(e *env) {
		e.must(e.db.Create(Shopper{ID: keyOn(25, 1), Email: "25", Purchases: []*Purchase{{Number: "A", Lines: []*PurchaseLine{{}}}}}))
	}),
	onShards("RowOnTwoShardsIsRefusedBeforeAnySQL", map[int64]int{8: 1}, func(e *env) {
		lines := func() []*PurchaseLine { return []*PurchaseLine{{SKU: "1"}, {Parts: []LinePart{{Stock: stockOn(7)}}}} }
		stored := purchase(8, "A")
		one, another := &Purchase{ID: stored.ID, Lines: lines()}, &Purchase{Lines: lines()} // on a shard that is still to be chosen
		for _, rows := range []any{one, another, []*Purchase{one, another}} {
			e.fails(e.db.Create(rows), gormplugin.ErrShard)
			equal(e, "keys after a refusal", fmt.Sprint(one.Lines[0].ID, another.ID, another.Lines[0].ID), "0 0 0")
		}
		e.fails(e.onShard(6).Create(&Purchase{ShopperID: nullKeyOn(5)}), gormplugin.ErrShard)
		equal(e, "statements", len(e.log.statements("")), 0)
		e.must(e.db.Create(&stored))
		e.fails(e.db.Updates(&Purchase{ID: stored.ID, Lines: lines()}), gormplugin.ErrShard)
	}),

	{"FurtherKeysAreOnTheShardOfARowThatHasItsKey", func(e *env) {
		type Pallet struct {
			ID     types.Snowflake
			Public string              `gorm:"size:40;snowflake"`
			Stock  types.NullSnowflake `snowkey:"shard"`
		}
		e.sharded(&Pallet{})
		p := Pallet{ID: keyOn(5, 1), Stock: nullKeyOn(7)}
		e.must(e.db.Create(&p))
		equal(e, "shard of the other key", shardLayout.Shard(types.MustParse(p.Public)), 5)
	}},
	{"RowDoesNotFollowAStoredRowThatAnotherReferenceMetAsWell", func(e *env) {
		type Ware struct {
			ID  types.Snowflake
			SKU string `gorm:"size:40;uniqueIndex"`
		}
		type Shelf struct {
			ID     types.Snowflake
			WareID types.NullSnowflake `snowkey:"shard"`
			Ware   *Ware
		}
		type Bay struct {
			ID      types.Snowflake
			DepotID types.NullSnowflake
			WareID  types.NullSnowflake `snowkey:"shard"`
			Ware    *Ware
			ShelfID types.NullSnowflake
			Shelf   *Shelf // is on the shard of the stored ware, which places the bay anew
		}
		type Depot struct {
			ID   types.Snowflake
			Bays []Bay
		}
		e.sharded(&Ware{}, &Depot{}, &Shelf{}, &Bay{})
		e.must(e.db.Create(&Ware{ID: keyOn(9, 1), SKU: "stored"}))
		bay := func() Bay {
			ware := &Ware{SKU: "stored"}
			return Bay{Ware: ware, Shelf: &Shelf{Ware: ware}}
		}
		alone := bay()
		e.fails(e.onShard(3).Create(&alone), gormplugin.ErrShard)
		e.fails(e.onShard(3).Create(&Depot{Bays: []Bay{bay()}}), gormplugin.ErrShard)
		for _, table := range []string{"depots", "bays", "shelves"} {
			equal(e, "rows of "+table, len(e.keys(table, "id", "1", 1)), 0)
		}
		depot := Depot{Bays: []Bay{bay()}}
		e.must(e.onShard(9).Create(&depot))
		equal(e, "shard of a bay", shardLayout.Shard(depot.Bays[0].ID), 9)
	}},
}
