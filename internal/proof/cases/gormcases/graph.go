package gormcases

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

var graphCases = []testCase{
	{"NewRowsOfAnAssociationTakeOneStatementAndMeetRowsByAnIndexThatNoModelDeclares", func(e *env) {
		type Flag struct {
			ID   types.Snowflake
			Name string `gorm:"size:40"`
		}
		type Pole struct {
			ID     types.Snowflake
			Name   string `gorm:"size:40"`
			FlagID types.Snowflake
			Flag   Flag
			Pins   []Flag `gorm:"many2many:pole_pins"`
		}
		e.migrate(&Flag{}, &Pole{})
		poles := func(names ...string) (list []Pole) {
			for _, name := range names {
				list = append(list, Pole{Name: name, Flag: Flag{Name: "flag " + name}, Pins: []Flag{{Name: "pin " + name}, {Name: "flag " + name}}})
			}
			return list
		}
		first := poles("a", "b", "c")
		e.log.reset()
		e.must(e.db.Create(&first))
		equal(e, "statements that insert", len(e.log.statements("INSERT")), 4)
		equal(e, "lookups", len(e.log.statements("SELECT")), 0)
		for _, table := range []string{"pole_pins", "poles", "flags"} {
			e.must(e.db.Exec("DELETE FROM " + e.prefix + table))
		}
		e.must(e.db.Exec("CREATE UNIQUE INDEX " + e.prefix + "flagged ON " + e.prefix + "flags (name)"))
		for _, names := range [][]string{{"d", "e"}, {"e", "d", "f"}} { // the second meets rows of the first
			list := poles(names...)
			e.must(e.db.Create(&list))
			for _, pole := range list {
				e.stored("flags", "name", "flag "+pole.Name, pole.FlagID)
				equal(e, "key of the flag", pole.Flag.ID, pole.FlagID)
				equal(e, "key of the pin that is the flag", pole.Pins[1].ID, pole.FlagID)
				e.stored("flags", "name", "pin "+pole.Name, pole.Pins[0].ID)
				equal(e, "pins", len(e.keys("pole_pins", "flag_id", "pole_id", pole.ID)), 2)
			}
		}
	}},
	{"EveryRowOfAGraphGetsAKey", func(e *env) {
		e.migrate(orderModels...)
		o := Order{
			Number:   "A",
			Customer: &Customer{Email: "a@x"},
			Items:    []Item{{SKU: "1"}, {SKU: "2"}},
			Receipt:  &Receipt{Text: "r"},
			Labels:   []Label{{Text: "l1"}, {Text: "l2"}},
		}
		e.must(e.db.Create(&o))
		e.stored("orders", "number", "A", o.ID)
		e.stored("customers", "email", "a@x", o.Customer.ID)
		equal(e, "CustomerID", *o.CustomerID, o.Customer.ID)
		e.stored("orders", "customer_id", o.Customer.ID, o.ID)
		e.stored("receipts", "order_id", o.ID, o.Receipt.ID)
		for _, item := range o.Items {
			e.stored("items", "sku", item.SKU, item.ID)
			equal(e, "OrderID", item.OrderID, o.ID)
		}
		equal(e, "items of the order", len(e.keys("items", "id", "order_id", o.ID)), 2)
		for _, l := range o.Labels {
			e.stored("labels", "text", l.Text, l.ID)
			equal(e, "joins of the label", len(e.keys("order_labels", "order_id", "label_id", l.ID)), 1)
		}
		equal(e, "keys asked for", e.src.given, 7) // none for the join table
	}},
	{"GraphsOfASliceGetKeys", func(e *env) {
		e.migrate(orderModels...)
		shared := &Customer{Email: "a@x"}
		list := []*Order{
			{Number: "A", Customer: shared, Items: []Item{{SKU: "1"}}},
			{Number: "B", Customer: shared, Items: []Item{{SKU: "2"}}},
			{Number: "C", Customer: &Customer{Email: "c@x"}, Labels: []Label{{Text: "l"}}},
		}
		e.must(e.db.Create(&list))
		e.stored("customers", "email", "a@x", shared.ID)
		e.count("customers", 2)
		for _, o := range list {
			e.stored("orders", "number", o.Number, o.ID)
			equal(e, "CustomerID", *o.CustomerID, o.Customer.ID)
			for _, item := range o.Items {
				e.stored("items", "sku", item.SKU, item.ID)
				equal(e, "OrderID", item.OrderID, o.ID)
			}
		}
	}},
	{"RowThatSeveralPointToIsSavedOnceWithItsAssociations", func(e *env) {
		type Walk struct {
			ID    types.Snowflake
			DogID *types.Snowflake
			Dog   *Dog
		}
		type Kennel struct {
			ID   types.Snowflake
			Dogs []*Dog `gorm:"many2many:kennel_dogs"`
		}
		type Visit struct {
			ID       types.Snowflake
			HookedID *types.Snowflake
			Hooked   *Hooked
		}
		type Owner struct {
			ID   types.Snowflake
			Cats []*Pet
		}
		type Collar struct {
			ID       types.Snowflake
			Text     string `gorm:"size:40"`
			KeeperID types.Snowflake
		}
		type Keeper struct {
			ID     types.Snowflake
			Collar *Collar
		}
		e.migrate(&Dog{}, &Toy{}, &Walk{}, &Kennel{}, &Hooked{}, &HookedPart{}, &Visit{}, &Owner{}, &Pet{}, &Keeper{}, &Collar{})
		dog := func() *Dog { return &Dog{Toys: []Toy{{Name: "ball"}, {Name: "bone"}}} }
		for i, config := range []gorm.Session{{}, {CreateBatchSize: 2}, {FullSaveAssociations: true}} {
			db := e.db.Session(&config)
			n := int64(i + 1)
			shared := dog()
			walks := []Walk{{Dog: shared}, {Dog: &Dog{}}, {Dog: shared}, {}, {Dog: shared}}
			e.must(db.Create(&walks))
			e.count("dogs", 3*n-1)
			e.count("toys", 4*n-2)
			for _, w := range []Walk{walks[0], walks[2], walks[4]} {
				equal(e, "DogID", *w.DogID, shared.ID)
			}
			if got := e.keys("toys", "id", "owner_id", shared.ID); !slices.Equal(got, []int64{shared.Toys[0].ID.Int64(), shared.Toys[1].ID.Int64()}) {
				e.Errorf("toys of the dog are stored as %d; want %+v", got, shared.Toys)
			}
			pooled := dog()
			e.must(db.Create([]*Kennel{{Dogs: []*Dog{pooled}}, {Dogs: []*Dog{pooled}}}))
			e.count("dogs", 3*n)
			e.count("toys", 4*n)
			equal(e, "kennels of the dog", len(e.keys("kennel_dogs", "kennel_id", "dog_id", pooled.ID)), 2)
			calls, rows := 0, 0
			hooked := &Hooked{Name: fmt.Sprint(n), Before: func(_ *Hooked, tx *gorm.DB) {
				calls++
				rows = reflect.ValueOf(tx.Statement.Dest).Len()
			}, Parts: []HookedPart{{}}}
			e.must(db.Create(&[]Visit{{Hooked: hooked}, {Hooked: hooked}}))
			equal(e, "calls of the hook of one row", calls, 1)
			equal(e, "rows of its statement", rows, 1)
			e.count("hooked_parts", n)
			cat := &Pet{Name: fmt.Sprint(n)}
			owners := []Owner{{Cats: []*Pet{cat}}, {Cats: []*Pet{cat}}}
			e.must(db.Create(&owners))
			e.stored("pets", "owner_id", owners[1].ID, cat.ID) // the last has the last word
			e.count("pets", n)
			// GORM does not look at the keys of a has-one.
			collar := &Collar{ID: types.Snowflake(n), Text: fmt.Sprint(n)}
			keepers := []Keeper{{Collar: collar}, {Collar: collar}}
			e.must(db.Create(&keepers))
			e.stored("collars", "keeper_id", keepers[1].ID, collar.ID)
			e.count("collars", n)
		}
	}},
	{"RowThatSeveralPointToGetsOneKeyInEachColumn", func(e *env) {
		type Bone struct {
			ID    types.Snowflake
			PupID types.Snowflake
		}
		type Pup struct {
			ID    *types.Snowflake
			Bones []Bone
		}
		type Stroll struct {
			ID    types.Snowflake
			PupID *types.Snowflake
			Pup   *Pup
		}
		type Leaf struct {
			ID      types.Snowflake
			PlantID types.Snowflake
		}
		type Plant struct {
			ID     types.Snowflake
			Public types.Snowflake `gorm:"snowflake"`
			Leaves []Leaf
		}
		type Bed struct {
			ID      types.Snowflake
			PlantID *types.Snowflake
			Plant   *Plant
		}
		e.migrate(&Pup{}, &Bone{}, &Stroll{}, &Plant{}, &Leaf{}, &Bed{})
		pup := &Pup{Bones: []Bone{{}}}
		strolls := []Stroll{{Pup: pup}, {Pup: pup}}
		e.must(e.db.Create(&strolls))
		equal(e, "PupID", *strolls[1].PupID, *pup.ID)
		e.count("pups", 1)
		e.stored("bones", "pup_id", *pup.ID, pup.Bones[0].ID)
		plant := &Plant{Leaves: []Leaf{{}}}
		beds := []Bed{{Plant: plant}, {Plant: plant}}
		e.must(e.db.Create(&beds))
		e.stored("plants", "public", plant.Public, plant.ID)
		e.count("plants", 1)
		e.stored("leafs", "plant_id", plant.ID, plant.Leaves[0].ID)
		for _, table := range []string{"pups", "bones", "plants", "leafs"} {
			for _, s := range e.log.statements("INSERT") {
				if strings.Contains(s, e.prefix+table) && strings.Contains(s, "),(") {
					e.Errorf("%s; want one row, for there is one", s)
				}
			}
		}
	}},
	{"TreeGetsKeys", func(e *env) {
		e.migrate(&Node{})
		n := Node{Name: "root", Children: []Node{{Name: "a", Children: []Node{{Name: "b"}}}, {Name: "c"}}}
		e.must(e.db.Create(&n))
		e.stored("nodes", "name", "root", n.ID)
		e.stored("nodes", "name", "b", n.Children[0].Children[0].ID)
		equal(e, "ParentID of b", *n.Children[0].Children[0].ParentID, n.Children[0].ID)
		equal(e, "children of root", len(e.keys("nodes", "id", "parent_id", n.ID)), 2)
	}},
	{"PolymorphicChildrenGetKeys", func(e *env) {
		e.migrate(&Cat{}, &Dog{}, &Toy{})
		cat, dog := Cat{Toy: Toy{Name: "mouse"}}, Dog{Toys: []Toy{{Name: "ball"}, {Name: "bone"}}}
		e.must(e.db.Create(&cat))
		e.must(e.db.Create(&dog))
		e.stored("toys", "name", "mouse", cat.Toy.ID)
		e.stored("toys", "owner_id", cat.ID, cat.Toy.ID)
		e.stored("toys", "name", "bone", dog.Toys[1].ID)
		equal(e, "toys of the dog", len(e.keys("toys", "id", "owner_id", dog.ID)), 2)
	}},
	{"SelfReferenceThroughAJoinTableGetsKeys", func(e *env) {
		type Friend struct {
			ID      types.Snowflake
			Name    string    `gorm:"size:40"`
			Buddies []*Friend `gorm:"many2many:friendships"`
		}
		e.migrate(&Friend{})
		f := Friend{Name: "a", Buddies: []*Friend{{Name: "b"}, {Name: "c"}}}
		e.must(e.db.Create(&f))
		e.stored("friends", "name", "a", f.ID)
		e.stored("friends", "name", "c", f.Buddies[1].ID)
		equal(e, "friends of a", len(e.keys("friendships", "buddy_id", "friend_id", f.ID)), 2)
	}},
	{"JoinTableWithAKeyOfItsOwnGetsOne", func(e *env) {
		type Team struct {
			ID   types.Snowflake
			Name string `gorm:"size:40"`
		}
		type Person struct {
			ID    types.Snowflake
			Teams []Team `gorm:"many2many:memberships"`
		}
		type Membership struct {
			ID       types.Snowflake `gorm:"primaryKey"`
			PersonID types.Snowflake `gorm:"uniqueIndex:pair"`
			TeamID   types.Snowflake `gorm:"uniqueIndex:pair"`
		}
		if err := e.db.SetupJoinTable(&Person{}, "Teams", &Membership{}); err != nil {
			e.Fatalf("SetupJoinTable = %v; want no error", err)
		}
		e.migrate(&Team{}, &Person{}, &Membership{})
		p := Person{Teams: []Team{{Name: "a"}, {Name: "b"}}}
		e.must(e.db.Create(&p))
		list := e.keys("memberships", "id", "person_id", p.ID)
		equal(e, "memberships", len(list), 2)
		for _, id := range list {
			e.fresh("membership", types.Snowflake(id))
		}
		// Appending a team again adds no row, since the pair is unique.
		if err := e.db.Model(&p).Association("Teams").Append(&p.Teams[0]); err != nil {
			e.Fatalf("Append = %v; want no error", err)
		}
		equal(e, "memberships", len(e.keys("memberships", "id", "person_id", p.ID)), 2)
	}},
	{"UpdatesGiveKeysToNewAssociations", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A"}
		e.must(e.db.Create(&o))
		o.Note, o.Items, o.Labels = "n", []Item{{SKU: "1"}}, []Label{{Text: "l"}}
		e.must(e.db.Updates(&o))
		e.stored("items", "order_id", o.ID, o.Items[0].ID)
		e.stored("labels", "text", "l", o.Labels[0].ID)
	}},
	{"FullSaveAssociationsKeepsOldKeysAndAssignsNew", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Items: []Item{{SKU: "1"}}}
		e.must(e.db.Create(&o))
		old := o.Items[0].ID
		o.Items[0].SKU = "1b"
		o.Items = append(o.Items, Item{SKU: "2"})
		e.must(e.db.Session(&gorm.Session{FullSaveAssociations: true}).Updates(&o))
		e.stored("items", "sku", "1b", old)
		equal(e, "ID of the old item", o.Items[0].ID, old)
		e.stored("items", "sku", "2", o.Items[1].ID)
		e.count("items", 2)
	}},
	{"AssociationAppendGetsKeys", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A"}
		e.must(e.db.Create(&o))
		item, label, customer := Item{SKU: "1"}, Label{Text: "l"}, Customer{Email: "a@x"}
		for name, value := range map[string]any{"Items": &item, "Labels": &label, "Customer": &customer} {
			if err := e.db.Model(&o).Association(name).Append(value); err != nil {
				e.Fatalf("Append to %s = %v; want no error", name, err)
			}
		}
		e.stored("items", "order_id", o.ID, item.ID)
		e.stored("labels", "text", "l", label.ID)
		e.stored("customers", "email", "a@x", customer.ID)
		e.stored("orders", "customer_id", customer.ID, o.ID)
	}},
	{"AssociationReplaceGetsKeys", func(e *env) {
		e.migrate(orderModels...)
		o := Order{Number: "A", Labels: []Label{{Text: "old"}}}
		e.must(e.db.Create(&o))
		label := Label{Text: "new"}
		if err := e.db.Model(&o).Association("Labels").Replace(&label); err != nil {
			e.Fatalf("Replace = %v; want no error", err)
		}
		e.stored("labels", "text", "new", label.ID)
		equal(e, "label of the order", e.keys("order_labels", "label_id", "order_id", o.ID)[0], label.ID.Int64())
	}},
	{"AssociationOfSeveralOwnersGetsKeys", func(e *env) {
		e.migrate(orderModels...)
		list := []Order{{Number: "A"}, {Number: "B"}}
		e.must(e.db.Create(&list))
		a, b := Item{SKU: "1"}, Item{SKU: "2"}
		if err := e.db.Model(&list).Association("Items").Append(&a, &b); err != nil {
			e.Fatalf("Append = %v; want no error", err)
		}
		e.stored("items", "order_id", list[0].ID, a.ID)
		e.stored("items", "order_id", list[1].ID, b.ID)
	}},
	{"KeyThatIsAForeignKeyIsNotInvented", func(e *env) {
		type Left struct{ ID types.Snowflake }
		type Junction struct {
			LeftID  types.Snowflake `gorm:"primaryKey"`
			RightID types.Snowflake `gorm:"primaryKey"`
		}
		type Passport struct {
			ID   types.Snowflake `gorm:"primaryKey"`
			Left *Left           `gorm:"belongsTo;foreignKey:ID;references:ID;constraint:-"`
			Text string          `gorm:"size:40"`
		}
		e.migrate(&Left{}, &Junction{}, &Passport{})
		j := Junction{LeftID: 9}
		e.must(e.db.Create(&j))
		equal(e, "RightID", j.RightID, 0)
		p := Passport{Text: "A"}
		e.fails(e.db.Create(&p), gormplugin.ErrNoKey)
		equal(e, "ID of the passport", p.ID, 0)
		p = Passport{Text: "B", Left: &Left{}}
		e.must(e.db.Create(&p))
		equal(e, "ID of the passport", p.ID, p.Left.ID)
		e.stored("passports", "text", "B", p.Left.ID)
	}},
	{"KeyTurnsForeignWhenItsParentIsParsed", func(e *env) {
		type Profile struct {
			UserID types.Snowflake `gorm:"primaryKey"`
			Text   string          `gorm:"size:40"`
		}
		type User struct {
			ID      types.Snowflake
			Profile *Profile `gorm:"foreignKey:UserID;constraint:-"`
		}
		e.migrate(&Profile{})
		early := Profile{Text: "early"} // nothing says yet that the key is a reference
		e.must(e.db.Create(&early))
		e.fresh("UserID", early.UserID)
		e.migrate(&User{})
		late := Profile{Text: "late"}
		e.fails(e.db.Create(&late), gormplugin.ErrNoKey)
		equal(e, "UserID", late.UserID, 0)
		u := User{Profile: &Profile{Text: "child"}}
		e.must(e.db.Create(&u))
		equal(e, "UserID", u.Profile.UserID, u.ID)
	}},
	{"NarrowForeignKeyIsRefusedAtFirstUse", func(e *env) {
		type TextChild struct {
			ID           types.Snowflake
			TextParentID string `gorm:"size:40"`
		}
		type TextParent struct {
			ID       types.Snowflake
			Children []TextChild
		}
		type SmallParent struct{ ID types.Snowflake }
		type SmallChild struct {
			ID            types.Snowflake
			SmallParentID int32
			SmallParent   *SmallParent
		}
		type Thing struct {
			ID        types.Snowflake
			OwnerID   *string `gorm:"size:40"`
			OwnerType string  `gorm:"size:40"`
		}
		type Owner struct {
			ID     types.Snowflake
			Things []Thing `gorm:"polymorphic:Owner"`
		}
		type CountedChild struct {
			ID              types.Snowflake
			CountedParentID uint32
		}
		type CountedParent struct {
			ID       int64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
			Children []CountedChild
		}
		type Wide struct {
			ToID types.Snowflake
			To   *SmallParent
		}
		type Narrow struct {
			ToID int32
			To   *SmallParent
		}
		type Both struct {
			ID     types.Snowflake
			Narrow Narrow `gorm:"embedded;embeddedPrefix:narrow_"`
			Wide   Wide   `gorm:"embedded;embeddedPrefix:wide_"` // has the last word on what To is
		}
		for _, test := range []struct {
			value       any
			field, says string
		}{
			{&Both{}, "ToID", "int32"},
			{&CountedParent{}, "CountedParentID", "uint32"},
			{&CountedChild{}, "CountedParentID", "uint32"}, // now that its parent is known
			{&TextParent{Children: []TextChild{{}}}, "TextParentID", "string"},
			{&SmallChild{SmallParent: &SmallParent{}}, "SmallParentID", "int32"},
			{&Owner{Things: []Thing{{}}}, "OwnerID", "*string"},
		} {
			e.log.reset()
			err := e.db.Create(test.value).Error
			var model *gormplugin.ModelError
			if !errors.As(err, &model) || model.Field != test.field || !strings.Contains(model.Reason, test.says) {
				e.Errorf("Create(%T) = %v; want a *ModelError for %s that says %s", test.value, err, test.field, test.says)
			}
			equal(e, "statements", len(e.log.statements("INSERT")), 0)
		}
		equal(e, "keys asked for", e.src.given, 0)
	}},
	{"ForeignKeysOfAllKindsReceiveTheKey", func(e *env) {
		type Hub struct{ ID types.Snowflake }
		type Spoke struct {
			ID    types.Snowflake
			Name  string `gorm:"size:40"`
			AID   types.Snowflake
			A     *Hub
			BID   *types.Snowflake
			B     *Hub
			CID   types.NullSnowflake
			C     *Hub
			DID   int64
			D     *Hub
			EID   uint64 // holds what is not negative
			E     *Hub   `gorm:"constraint:-"`
			NilID types.NullSnowflake
			Nil   *Hub
		}
		e.migrate(&Hub{}, &Spoke{})
		s := Spoke{Name: "s", A: &Hub{}, B: &Hub{}, C: &Hub{}, D: &Hub{}, E: &Hub{}}
		e.must(e.db.Create(&s))
		e.stored("spokes", "name", "s", s.ID)
		e.stored("spokes", "a_id", s.A.ID, s.ID)
		e.stored("spokes", "b_id", s.B.ID, s.ID)
		e.stored("spokes", "c_id", s.C.ID, s.ID)
		e.stored("spokes", "d_id", s.D.ID, s.ID)
		e.stored("spokes", "e_id", s.E.ID, s.ID)
		equal(e, "CID", s.CID, types.NullSnowflake{Snowflake: s.C.ID, Valid: true})
		equal(e, "NilID", s.NilID.Valid, false)
	}},
}
