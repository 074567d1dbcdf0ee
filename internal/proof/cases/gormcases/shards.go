package gormcases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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

// A Shopper is the one whose shard a [Purchase] is on.
type Shopper struct {
	ID        types.Snowflake
	Email     string     `gorm:"size:40;uniqueIndex"`
	Purchases []Purchase `gorm:"foreignKey:ShopperID"`
}

// A Purchase has an association of every kind, and a tagged field.
type Purchase struct {
	ID        types.ID[Purchase]
	Number    string              `gorm:"size:40;uniqueIndex"`
	ShopperID types.NullSnowflake `snowkey:"shard"`
	Shopper   *Shopper
	Address   *Address // belongs to it
	AddressID types.NullSnowflake
	Lines     []PurchaseLine
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
	Stock          types.NullSnowflake `snowkey:"shard"`
}

// A Bill is the only one of a [Purchase].
type Bill struct {
	ID         types.Snowflake
	PurchaseID types.NullID[Purchase]
}

// A Tag is shared by purchases.
type Tag struct {
	ID   types.Snowflake
	Text string `gorm:"size:40;uniqueIndex"`
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

var shardTables = []string{"shoppers", "addresses", "purchases", "purchase_lines", "line_parts", "bills", "tags", "purchase_tags", "purchase_notes"}

// sharded makes the tables of models, or those of a [Purchase], and returns the database with the
// plugin and a source with shards.
func (e *env) sharded(models ...any) *gorm.DB {
	e.Helper()
	e.db = e.open(&gorm.Config{})
	err := e.db.Use(gormplugin.New(shardSource{e.src}, e.target.Options...))
	if len(models) == 0 {
		models = []any{&Shopper{}, &Address{}, &Tag{}, &Purchase{}, &PurchaseLine{}, &LinePart{}, &Bill{}, &PurchaseTag{}, &PurchaseNote{}}
		err = errors.Join(err, e.db.SetupJoinTable(&Purchase{}, "Tags", &PurchaseTag{}))
	}
	if err != nil {
		e.Fatalf("Use and SetupJoinTable = %v; want no error", err)
	}
	e.migrate(models...)
	return e.db
}

// onShard is the database in the context of a shard.
func (e *env) onShard(shard int64) *gorm.DB {
	return e.db.WithContext(core.OnShard(e.Context(), shard))
}

// shards fails the test unless as many keys as want says are stored on each shard, in all
// tables.
func (e *env) shards(want map[int64]int) {
	e.Helper()
	got, where := map[int64]int{}, map[string][]int64{}
	for _, table := range shardTables {
		var ids []types.Snowflake
		e.must(e.db.Table(e.prefix+table).Order("id").Pluck("id", &ids))
		for _, id := range ids {
			got[shardLayout.Shard(id)]++
			where[table] = append(where[table], shardLayout.Shard(id))
		}
	}
	if !maps.Equal(got, want) {
		e.Errorf("rows per shard = %v, in detail %v; want %v", got, where, want)
	}
}

// wholePurchase returns a purchase with 11 rows around it.
func wholePurchase(number string) Purchase {
	return Purchase{
		Number:  number,
		Shopper: &Shopper{Email: number}, Address: &Address{City: number},
		Lines: []PurchaseLine{{SKU: "1", Parts: []LinePart{{}, {}}}, {SKU: "2"}},
		Bill:  &Bill{},
		Tags:  []*Tag{{Text: number}},
		Notes: []PurchaseNote{{}, {}},
	}
}

const purchaseRows = 1 + 2 + 2 + 2 + 1 + 1 + 1 + 2 // with the join row

var shardCases = []testCase{
	{"StoredParentIsFollowedByWhatUpdatesAndAssociationsCreate", func(e *env) {
		db := e.sharded()
		p := Purchase{ID: types.ID[Purchase](keyOn(11, 1)), Number: "A"}
		e.must(db.Create(&p))
		p.Lines, p.Address = []PurchaseLine{{SKU: "1", Parts: []LinePart{{}}}}, &Address{City: "c"}
		e.must(db.Updates(&p))
		e.must(db.Session(&gorm.Session{FullSaveAssociations: true}).Updates(&Purchase{ID: p.ID, Shopper: &Shopper{Email: "s"}}))
		p.Bill = &Bill{}
		e.must(db.Save(&p))
		if err := errors.Join(
			db.Model(&p).Association("Lines").Append(&PurchaseLine{SKU: "2"}),
			db.Model(&p).Association("Tags").Append(&Tag{Text: "t"}),
			db.Model(&p).Association("Tags").Replace(&Tag{Text: "u"}, &Tag{Text: "v"}),
			db.Model(&p).Association("Notes").Append(&PurchaseNote{}),
		); err != nil {
			e.Fatalf("Append and Replace = %v; want no error", err)
		}
		e.shards(map[int64]int{11: 1 + 2 + 1 + 1 + 1 + 1 + 1 + 3 + 2})
	}},
	{"SaveAndFirstOrCreateAreOnTheShardOfTheContext", func(e *env) {
		db := e.sharded().WithContext(core.OnShardOf(e.Context(), keyOn(3, 1)))
		e.must(db.Save(&Purchase{Number: "A", Lines: []PurchaseLine{{}}}))
		e.must(db.Save(&[]Purchase{{Number: "B", Lines: []PurchaseLine{{}}}}))
		e.must(db.Where(Purchase{Number: "C"}).Attrs(Purchase{Lines: []PurchaseLine{{}}}).FirstOrCreate(&Purchase{}))
		list := []Purchase{{Number: "D", Lines: []PurchaseLine{{}}}, {Number: "E"}, {Number: "F", Lines: []PurchaseLine{{}}}}
		e.must(db.CreateInBatches(&list, 2))
		e.must(db.Model(&Tag{}).Create([]map[string]any{{"text": "a"}, {"text": "b"}}))
		e.shards(map[int64]int{3: 6 + 2 + 2 + 1 + 2})
	}},
	{"BatchesOfAssociationsFollowTheirParents", func(e *env) {
		db := e.sharded().Session(&gorm.Session{CreateBatchSize: 2})
		list := []Purchase{wholePurchase("A"), wholePurchase("B"), wholePurchase("C")}
		for i, shard := range []int64{1, 2, 3} {
			list[i].Shopper.ID = keyOn(shard, 1)
			list[i].Tags = append(list[i].Tags, &Tag{Text: "x" + list[i].Number}, &Tag{Text: "y" + list[i].Number})
		}
		e.must(db.Create(&list))
		e.shards(map[int64]int{1: purchaseRows + 4, 2: purchaseRows + 4, 3: purchaseRows + 4})
	}},
	{"UpsertsFollowTheStoredParent", func(e *env) {
		db := e.sharded()
		e.must(db.Create(&[]Purchase{{ID: types.ID[Purchase](keyOn(21, 1)), Number: "A"}, {ID: types.ID[Purchase](keyOn(22, 1)), Number: "B"}}))
		for _, conflict := range []clause.OnConflict{
			{DoNothing: true},
			{Columns: []clause.Column{{Name: "number"}}, DoUpdates: clause.AssignmentColumns([]string{"address_id"})},
		} {
			list := []Purchase{
				{Number: "A", Lines: []PurchaseLine{{Parts: []LinePart{{}}}}, Tags: []*Tag{{Text: "a" + fmt.Sprint(conflict.DoNothing)}}},
				{Number: "B", Lines: []PurchaseLine{{Parts: []LinePart{{}}}}},
			}
			e.must(e.onShard(40).Clauses(conflict).Create(&list))
		}
		e.shards(map[int64]int{21: 1 + 4 + 4, 22: 1 + 4})
	}},
	{"RowFollowsTheStoredRowThatItsNewReferenceMet", func(e *env) {
		db := e.sharded()
		e.must(db.Create(&Shopper{ID: keyOn(30, 1), Email: "stored"}))
		list := []Purchase{
			{Number: "A", Shopper: &Shopper{Email: "stored"}, Lines: []PurchaseLine{{}}, Tags: []*Tag{{Text: "a"}}},
			{ID: types.ID[Purchase](keyOn(8, 1)), Number: "B", Shopper: &Shopper{Email: "stored"}, Bill: &Bill{}},
		}
		e.must(db.Create(&list))
		equal(e, "ShopperID", list[0].ShopperID.Snowflake, keyOn(30, 1))
		e.shards(map[int64]int{30: 1 + 1 + 1 + 1 + 1, 8: 2})
	}},
	{"RowBelowAParentDoesNotFollowAStoredRowOnAnotherShard", func(e *env) {
		type Good struct {
			ID  types.Snowflake
			SKU string `gorm:"size:40;uniqueIndex"`
		}
		type Slot struct {
			ID, CrateID types.Snowflake
			GoodID      types.NullSnowflake `snowkey:"shard"`
			Good        *Good
		}
		type Crate struct {
			ID    types.Snowflake
			Slots []Slot
		}
		db := e.sharded(&Good{}, &Crate{}, &Slot{})
		stored := &Good{ID: keyOn(9, 1), SKU: "stored"}
		e.must(db.Create(stored))
		for _, slot := range []Slot{
			{GoodID: types.NullSnowflake{Snowflake: stored.ID, Valid: true}},
			{Good: &Good{SKU: "stored"}}, // which is found only when the crate is stored
		} {
			e.fails(e.onShard(3).Create(&Crate{Slots: []Slot{slot}}), gormplugin.ErrShard)
		}
		for _, table := range []string{"crates", "slots"} {
			equal(e, "rows of "+table, len(e.keys(table, "id", "1", 1)), 0)
		}
		crate := Crate{Slots: []Slot{{Good: &Good{SKU: "stored"}}, {Good: &Good{SKU: "new"}}}}
		e.must(e.onShard(9).Create(&crate))
		for _, slot := range crate.Slots {
			equal(e, "shard of a slot", shardLayout.Shard(slot.ID), 9)
		}
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
		db := e.sharded(&Ware{}, &Depot{}, &Shelf{}, &Bay{})
		e.must(db.Create(&Ware{ID: keyOn(9, 1), SKU: "stored"}))
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
	{"FurtherKeysAreOnTheShardOfARowThatHasItsKey", func(e *env) {
		type Pallet struct {
			ID     types.Snowflake
			Public string              `gorm:"size:40;snowflake"`
			Stock  types.NullSnowflake `snowkey:"shard"`
		}
		db := e.sharded(&Pallet{})
		p := Pallet{ID: keyOn(5, 1), Stock: nullKeyOn(7)}
		e.must(db.Create(&p))
		equal(e, "shard of the other key", shardLayout.Shard(types.MustParse(p.Public)), 5)
	}},
	{"OmittedAssociationsHaveNoSay", func(e *env) {
		db := e.sharded()
		e.must(db.Create(&Shopper{ID: keyOn(12, 1), Email: "twelve"}))
		p := wholePurchase("A")
		p.ShopperID, p.Shopper = nullKeyOn(12), &Shopper{ID: keyOn(13, 1), Email: "13"}
		p.Lines[0].Parts[0].Stock = nullKeyOn(14) // on another shard than its parent
		e.must(db.Omit("Shopper", "Lines.Parts", "Tags.*", "Tags").Create(&p))
		e.shards(map[int64]int{12: 1 + 1 + 1 + 2 + 1 + 2})
		q := wholePurchase("B")
		q.Lines[0].Parts[0].Stock = nullKeyOn(15)
		e.must(e.onShard(16).Select("Number", "Lines", "Lines.SKU").Create(&q))
		e.shards(map[int64]int{12: 8, 16: 3})
	}},
	{"RowsThatHooksAddFollow", func(e *env) {
		db := e.sharded()
		e.must(db.Create(&Shopper{ID: keyOn(17, 1), Email: "17"}))
		p := Purchase{Number: "A", Lines: []PurchaseLine{{}}, ShopperID: nullKeyOn(17)}
		p.Before = func() {
			p.Lines = append(p.Lines, PurchaseLine{Parts: []LinePart{{}}}, PurchaseLine{})
			p.Bill = &Bill{}
		}
		e.must(db.Create(&p))
		e.shards(map[int64]int{17: 1 + 1 + 3 + 1 + 1})
		q := Purchase{Number: "B", Bill: &Bill{}}
		q.Before = func() { q.ShopperID = nullKeyOn(18) }
		e.must(db.Create(&Shopper{ID: keyOn(18, 1), Email: "18"}))
		e.must(db.Create(&q))
		e.shards(map[int64]int{17: 7, 18: 3})
	}},
	{"JoinRowsHaveAFieldOfTheirOwnOrFollowTheOwner", func(e *env) {
		type Player struct {
			ID types.Snowflake
		}
		type Squad struct {
			ID      types.Snowflake
			Players []Player `gorm:"many2many:lineups"`
			Guests  []Player `gorm:"many2many:visits"`
		}
		type Lineup struct {
			ID                types.Snowflake
			SquadID, PlayerID types.Snowflake `gorm:"uniqueIndex:lineup_pair"`
		}
		type Visit struct {
			ID       types.Snowflake
			SquadID  types.Snowflake `gorm:"uniqueIndex:visit_pair"`
			PlayerID types.Snowflake `gorm:"uniqueIndex:visit_pair" snowkey:"shard"`
		}
		db := e.sharded(&Player{})
		if err := errors.Join(db.SetupJoinTable(&Squad{}, "Players", &Lineup{}), db.SetupJoinTable(&Squad{}, "Guests", &Visit{})); err != nil {
			e.Fatalf("SetupJoinTable = %v; want no error", err)
		}
		e.migrate(&Squad{}, &Lineup{}, &Visit{})
		squad := Squad{ID: keyOn(1, 1), Players: []Player{{ID: keyOn(2, 1)}}, Guests: []Player{{ID: keyOn(3, 1)}}}
		e.must(e.onShard(4).Create(&squad))
		for table, want := range map[string]int64{"lineups": 1, "visits": 3} {
			list := e.keys(table, "id", "squad_id", squad.ID)
			equal(e, "rows of "+table, len(list), 1)
			equal(e, "shard of "+table, shardLayout.Shard(types.Snowflake(list[0])), want)
		}
	}},
	{"MapsHaveTheShardOfTheirFieldOrOfTheContext", func(e *env) {
		db := e.sharded()
		e.must(db.Create(&Shopper{ID: keyOn(23, 1), Email: "23"}))
		e.must(db.Model(&Purchase{}).Create([]map[string]any{{"number": "A", "shopper_id": keyOn(23, 1).Int64()}, {"Number": "B", "ShopperID": keyOn(23, 1)}}))
		on := e.onShard(24).Model(&Purchase{}).Session(&gorm.Session{})
		e.must(on.Create(map[string]any{"number": "C"}))
		e.fails(on.Create(map[string]any{"number": "D", "shopper_id": keyOn(23, 1)}), gormplugin.ErrShard)
		e.fails(on.Create(map[string]any{"number": "D", "shopper_id": gorm.Expr("NULL")}), gormplugin.ErrShard)
		e.shards(map[int64]int{23: 3, 24: 1})
	}},
	{"GraphOfARootByValueFollowsItsKey", func(e *env) {
		db := e.sharded()
		e.must(db.Create(Shopper{ID: keyOn(25, 1), Email: "25", Purchases: []Purchase{{Number: "A", Lines: []PurchaseLine{{}}}}}))
		e.shards(map[int64]int{25: 3})
	}},
	{"KeysThatAreSetStayAndARetryKeepsThem", func(e *env) {
		db := e.sharded()
		p := wholePurchase("A")
		p.ID, p.Lines[1].ID, p.Bill.ID = types.ID[Purchase](keyOn(50, 1)), keyOn(51, 1), keyOn(52, 1)
		p.Shopper.ID = keyOn(53, 1)
		tx := db.Begin()
		e.must(tx.WithContext(core.OnShard(e.Context(), 54)).Create(&p))
		lines := slices.Clone(p.Lines)
		e.must(tx.Rollback())
		e.must(e.onShard(55).Clauses(clause.OnConflict{UpdateAll: true}).Create(&p))
		equal(e, "line 0", p.Lines[0].ID, lines[0].ID)
		e.shards(map[int64]int{50: purchaseRows - 3, 51: 1, 52: 1, 53: 1})
	}},
	{"RowOnTwoShardsIsRefusedBeforeAnySQL", func(e *env) {
		db, id := e.sharded(), types.ID[Purchase](keyOn(8, 1))
		lines := func() []PurchaseLine { return []PurchaseLine{{SKU: "1"}, {Parts: []LinePart{{Stock: nullKeyOn(7)}}}} }
		one, another := &Purchase{ID: id, Lines: lines()}, &Purchase{Lines: lines()} // on a shard that is still to be chosen
		for _, rows := range []any{one, another, []*Purchase{one, another}} {
			e.fails(db.Create(rows), gormplugin.ErrShard)
			equal(e, "keys after a refusal", fmt.Sprint(one.Lines[0].ID, another.ID, another.Lines[0].ID), "0 0 0")
		}
		e.fails(e.onShard(6).Create(&Purchase{ShopperID: nullKeyOn(5)}), gormplugin.ErrShard)
		equal(e, "statements", len(e.log.statements("")), 0)
		e.must(db.Create(&Purchase{ID: id, Number: "A"}))
		e.fails(db.Updates(&Purchase{ID: id, Lines: lines()}), gormplugin.ErrShard)
		e.shards(map[int64]int{8: 1})
	}},
}
