package sqlxhelper_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type parent struct {
	types.Model
	*inner
	Lines []line  `db:"-" snowkey:"lines,fk=parent_id"`
	Ptrs  []*line `db:"-" snowkey:"lines,fk=parent_id"`
	One   *line   `db:"-" snowkey:"lines,fk=parent_id"`
}

type inner struct{ Name string }

type line struct {
	types.Model
	ParentID types.Snowflake     `db:"parent_id"`
	AfterID  types.NullSnowflake `db:"after_id"`
	Tags     []*tagged           `db:"-" snowkey:"tagged,fk=line_id"`
	Next     []*line             `db:"-" snowkey:"lines,fk=after_id"`
}

type tagged struct {
	types.Model
	LineID *types.Snowflake `db:"line_id"`
}

// customer, sale, position and product have each way to belong to a row. The row
// comes first of all, or is the parent, shared, or of the same table.
type customer struct {
	types.Model
	InviterID types.NullSnowflake `db:"inviter_id"`
	Inviter   *customer           `db:"-" snowkey:"customers,belongs_to=inviter_id"`
}

type sale struct {
	types.Model
	CustomerID types.Snowflake `db:"customer_id"`
	Customer   *customer       `db:"-" snowkey:"customers,belongs_to=customer_id"`
	Positions  []position      `db:"-" snowkey:"positions,fk=sale_id"`
}

type position struct {
	types.Model
	SaleID    types.Snowflake  `db:"sale_id"`
	ProductID *types.Snowflake `db:"product_id"`
	Sale      *sale            `db:"-" snowkey:"sales,belongs_to=sale_id"`
	Product   *product         `db:"-" snowkey:"products,belongs_to=product_id"`
}

type product struct {
	types.Model
	Labels []label `db:"-" snowkey:"labels,fk=product_id"`
}

type label struct {
	types.Model
	ProductID types.Snowflake `db:"product_id"`
}

type ownedByParent struct {
	types.Model
	OwnerID types.NullSnowflake `db:"owner_id"`
	Owner   *parent             `db:"-" snowkey:"parents,belongs_to=owner_id"`
}

// chicken and egg come out of each other.
type chicken struct {
	types.Model
	EggID types.NullSnowflake `db:"egg_id"`
	Egg   *egg                `db:"-" snowkey:"eggs,belongs_to=egg_id"`
	Laid  []*egg              `db:"-" snowkey:"eggs,fk=chicken_id"`
}

type egg struct {
	types.Model
	ChickenID types.NullSnowflake `db:"chicken_id"`
	Chicken   *chicken            `db:"-" snowkey:"chickens,belongs_to=chicken_id"`
}

// guild and mate refer to each other, and a mate to another one.
type guild struct {
	types.Model
	LeadID types.NullSnowflake `db:"lead_id"`
	Lead   *mate               `db:"-" snowkey:"mates,belongs_to=lead_id"`
	Mates  []mate              `db:"-" snowkey:"mates,fk=guild_id"`
}

type mate struct {
	types.Model
	GuildID types.NullSnowflake `db:"guild_id"`
	ByID    types.NullSnowflake `db:"by_id"`
	By      *mate               `db:"-" snowkey:"mates,belongs_to=by_id"`
}

// rock, paper and scissors are a circle of three tables.
type rock struct {
	types.Model
	PaperID types.NullSnowflake `db:"paper_id"`
	Paper   *paper              `db:"-" snowkey:"papers,belongs_to=paper_id"`
}

type paper struct {
	types.Model
	ScissorsID types.NullSnowflake `db:"scissors_id"`
	Scissors   *scissors           `db:"-" snowkey:"scissors,belongs_to=scissors_id"`
}

type scissors struct {
	types.Model
	RockID types.NullSnowflake `db:"rock_id"`
	Rock   *rock               `db:"-" snowkey:"rocks,belongs_to=rock_id"`
}

// worker and boss are rows of one table, with different columns.
type worker struct {
	types.Model
	BossID types.NullSnowflake `db:"boss_id"`
	Boss   *boss               `db:"-" snowkey:"people,belongs_to=boss_id"`
}

type boss struct {
	types.Model
	DeputyID types.NullSnowflake `db:"deputy_id"`
	Deputy   *worker             `db:"-" snowkey:"people,belongs_to=deputy_id"`
}

// twig has its foreign key, and keyless its key, behind an embedded pointer. Two
// rows may share that.
type twig struct {
	types.Model
	*twigKeys
	Twigs  []*twig `db:"-" snowkey:"twigs,fk=parent_id"`
	Others []twig  `db:"-" snowkey:"twigs,fk=other_id"`
}

type twigKeys struct {
	ParentID types.NullSnowflake `db:"parent_id"`
	OtherID  types.NullSnowflake `db:"other_id"`
	Bird     *product            `db:"-" snowkey:"products,belongs_to=bird_id"`
	BirdID   *types.Snowflake    `db:"bird_id"`
}

type keyless struct {
	*types.Model
	N int
}

// halved has its columns behind two embedded pointers.
type halved struct {
	*types.Model
	*inner
}

// invited returns a customer in a circle of n, each invited by the next.
func invited(n int) *customer {
	circle := make([]customer, n)
	for i := range circle {
		circle[i].Inviter = &circle[(i+1)%n]
	}
	return &circle[0]
}

// newTwig returns a twig with another one, which has k.
func newTwig(k *twigKeys) *twig {
	return &twig{twigKeys: &twigKeys{}, Twigs: []*twig{{twigKeys: k}}}
}

func key(id types.Snowflake) types.Model { return types.Model{ID: id} }

func TestRowsThatCannotBeWrittenAreARowErrorAndStayAsTheyAre(t *testing.T) {
	id := func(n types.Snowflake) *types.Snowflake { return &n }
	same := &line{}
	shared := make([]line, 1)
	loop := &line{ParentID: 1}
	loop.Next = []*line{loop}
	in := &inner{}
	for name, c := range map[string]struct {
		rows any
		many bool // InsertMany instead of InsertGraph
		path string
		has  string
		is   error
	}{
		"NilElement":         {rows: []*parent{{inner: in}, nil}, many: true, path: "sqlxhelper_test.parent[1]", has: "nil"},
		"NilElementOfGraph":  {rows: []*parent{{inner: in}, nil}, path: "sqlxhelper_test.parent[1]", has: "nil"},
		"NilChild":           {rows: []parent{{inner: in}, {inner: in, Ptrs: []*line{{}, nil}}}, path: "sqlxhelper_test.parent[1].Ptrs[1]", has: "nil"},
		"NilGrandchild":      {rows: &parent{inner: in, One: &line{Tags: []*tagged{nil}}}, path: "sqlxhelper_test.parent.One.Tags[0]", has: "nil"},
		"NilEmbedded":        {rows: []parent{{inner: in}, {}}, many: true, path: "sqlxhelper_test.parent[1]", has: "inner is nil"},
		"NilEmbeddedSecond":  {rows: []halved{{Model: &types.Model{}, inner: in}, {Model: &types.Model{}}}, many: true, path: "sqlxhelper_test.halved[1]", has: "inner is nil"},
		"NilEmbeddedOfOne":   {rows: &parent{}, path: "sqlxhelper_test.parent", has: "inner is nil"},
		"SamePointerTwice":   {rows: func() any { p := &pair{}; return []*pair{p, {}, p} }(), many: true, path: "sqlxhelper_test.pair[2]", has: "same struct as sqlxhelper_test.pair[0]"},
		"SameChild":          {rows: []parent{{inner: in, Ptrs: []*line{same}}, {inner: in, One: same}}, path: "sqlxhelper_test.parent[1].One", has: "same struct as sqlxhelper_test.parent[0].Ptrs[0]"},
		"SharedSlice":        {rows: []parent{{inner: in, Lines: shared}, {inner: in, Lines: shared}}, path: "sqlxhelper_test.parent[1].Lines[0]", has: "same struct"},
		"Loop":               {rows: loop, path: "sqlxhelper_test.line.Next[0]", has: "same struct as sqlxhelper_test.line,"},
		"OtherParent":        {rows: &parent{Model: key(7), inner: in, Lines: []line{{}, {ParentID: 8}}}, path: "sqlxhelper_test.parent.Lines[1]", has: "ParentID is 8, and the parent that holds it has key 7", is: sqlxhelper.ErrForeignKey},
		"ParentWithoutKey":   {rows: &parent{inner: in, Lines: []line{{ParentID: 8}}}, path: "sqlxhelper_test.parent.Lines[0]", has: "has no key yet", is: sqlxhelper.ErrForeignKey},
		"OtherParentPointer": {rows: &line{Model: key(3), ParentID: 1, Tags: []*tagged{{LineID: id(4)}}}, path: "sqlxhelper_test.line.Tags[0]", has: "LineID is 4", is: sqlxhelper.ErrForeignKey},
		"OtherParentNull":    {rows: &line{Model: key(3), ParentID: 1, Next: []*line{{AfterID: types.NullSnowflake{Snowflake: 4, Valid: true}}}}, path: "sqlxhelper_test.line.Next[0]", has: "AfterID is 4", is: sqlxhelper.ErrForeignKey},
		"ZeroThatIsNotNull":  {rows: []line{{ParentID: 1, AfterID: types.NullSnowflake{Valid: true}}}, many: true, path: "sqlxhelper_test.line[0]", has: "AfterID is a foreign key and zero", is: sqlxhelper.ErrForeignKey},
		"PartOfASharedSlice": {rows: func() any { all := make([]label, 4); return []product{{Labels: all[2:]}, {Labels: all[:3]}} }(), path: "sqlxhelper_test.product[1].Labels[2]", has: "same struct as sqlxhelper_test.product[0].Labels[0]"},
		"SharedSliceOfOne":   {rows: func() any { one := make([]label, 1); return []product{{Labels: one}, {}, {Labels: one}} }(), path: "sqlxhelper_test.product[2].Labels[0]", has: "same struct as sqlxhelper_test.product[0].Labels[0]"},
		"SliceInItself":      {rows: func() any { s := make([]branch, 2); s[1].Branches = s[1:]; return s }(), path: "sqlxhelper_test.branch[1].Branches[0]", has: "same struct as sqlxhelper_test.branch[1]"},
		"RootAndChild":       {rows: func() any { c := &line{ParentID: 1}; return []*line{{ParentID: 1, Next: []*line{c}}, c} }(), path: "sqlxhelper_test.line[0].Next[0]", has: "same struct as sqlxhelper_test.line[1]"},
		"ToAnotherKey":       {rows: &sale{CustomerID: 3, Customer: &customer{Model: key(4)}}, path: "sqlxhelper_test.sale", has: "CustomerID is 3, and Customer has key 4", is: sqlxhelper.ErrForeignKey},
		"ToRowWithoutKey":    {rows: &sale{CustomerID: 3, Customer: &customer{}}, path: "sqlxhelper_test.sale", has: "CustomerID is 3, and Customer has no key yet", is: sqlxhelper.ErrForeignKey},
		"ToNothing":          {rows: []*sale{{CustomerID: 3}, {}}, path: "sqlxhelper_test.sale[1]", has: "CustomerID is a foreign key and zero; make it", is: sqlxhelper.ErrForeignKey},
		"ToAnotherOnly":      {rows: &position{Product: &product{}}, path: "sqlxhelper_test.position", has: "SaleID is a foreign key and zero; make it", is: sqlxhelper.ErrForeignKey},
		"NotFollowed":        {rows: []*sale{{Customer: &customer{}}}, many: true, path: "sqlxhelper_test.sale[0]", has: "zero; only InsertGraph takes it from Customer", is: sqlxhelper.ErrForeignKey},
		"BackToAnother":      {rows: []sale{{CustomerID: 3, Positions: []position{{Sale: &sale{CustomerID: 3}}}}}, path: "sqlxhelper_test.sale[0].Positions[0]", has: "SaleID is for the key of the parent that holds it, and Sale is another row", is: sqlxhelper.ErrForeignKey},
		"NotHeld":            {rows: &position{Sale: &sale{CustomerID: 1, Positions: make([]position, 1)}, Product: &product{}, SaleID: 2}, path: "sqlxhelper_test.position", has: "SaleID is 2, and Sale has no key yet", is: sqlxhelper.ErrForeignKey},
		"InTwoTables":        {rows: func() any { s := &sale{CustomerID: 1}; s.Positions = []position{{Sale: s}}; return s }(), path: "sqlxhelper_test.sale.Positions[0].Sale", has: "same struct as sqlxhelper_test.sale, which goes into table t and not into sales"},
		"NilEmbeddedOfOwner": {rows: &ownedByParent{Owner: &parent{}}, path: "sqlxhelper_test.ownedByParent.Owner", has: "inner is nil"},
		"FoundThenHeldTwice": {rows: func() any { e := &egg{}; return []*chicken{{Egg: e}, {Laid: []*egg{e}}, {Laid: []*egg{e}}} }(), path: "sqlxhelper_test.chicken[2].Laid[0]", has: "same struct as sqlxhelper_test.chicken[0].Egg"},
		"CircleOfOne":        {rows: &sale{Customer: invited(1)}, path: "sqlxhelper_test.sale.Customer", has: "InviterID refers to the row itself"},
		"CircleOfTwo":        {rows: &sale{Customer: invited(2)}, path: "sqlxhelper_test.sale.Customer.Inviter", has: "InviterID refers to sqlxhelper_test.sale.Customer, and that one back to it"},
		"CircleOfThree":      {rows: []*sale{{CustomerID: 1}, {Customer: &customer{Inviter: invited(3)}}}, path: "sqlxhelper_test.sale[1].Customer.Inviter.Inviter.Inviter", has: "InviterID refers to sqlxhelper_test.sale[1].Customer.Inviter, and that one, by way of others, back to it"},
		"CircleOfTables":     {rows: func() any { a := &chicken{}; a.Egg = &egg{Chicken: a}; return []*egg{{Chicken: a}} }(), path: "sqlxhelper_test.egg[0].Chicken.Egg", has: "ChickenID refers to sqlxhelper_test.egg[0].Chicken, and that one back to it"},
		"CircleBesideAnotherRow": {rows: func() any {
			a := mate{By: &mate{}}
			g := &guild{Mates: []mate{a}}
			a.By.By = &g.Mates[0]
			return g
		}(), path: "sqlxhelper_test.guild.Mates[0].By", has: "ByID refers to sqlxhelper_test.guild.Mates[0], and that one back to it"},
		"ChildAndOwner": {rows: func() any {
			a := &chicken{}
			e := &egg{Chicken: a}
			a.Laid, a.Egg = []*egg{e}, e
			return []*egg{{Chicken: a}}
		}(), path: "sqlxhelper_test.egg[0].Chicken.Egg", has: "ChickenID refers to"},
		"SharedKey":              {rows: func() any { m := &types.Model{}; return []keyless{{m, 1}, {&types.Model{}, 2}, {m, 3}} }(), many: true, path: "sqlxhelper_test.keyless[2]", has: "shares Model.ID with sqlxhelper_test.keyless[0]"},
		"SharedForeignKey":       {rows: func() any { k := &twigKeys{}; return []*twig{newTwig(k), newTwig(k)} }(), path: "sqlxhelper_test.twig[1].Twigs[0]", has: "shares twigKeys.ParentID with sqlxhelper_test.twig[0].Twigs[0], which refers to another row", is: sqlxhelper.ErrForeignKey},
		"SharedForeignKeyOfRoot": {rows: func() any { k := &twigKeys{}; r := newTwig(k); r.twigKeys = k; return r }(), path: "sqlxhelper_test.twig", has: "shares twigKeys.ParentID with sqlxhelper_test.twig.Twigs[0], which refers to another row", is: sqlxhelper.ErrForeignKey},
		"SharedForeignKeyBoth":   {rows: func() any { k := &twigKeys{}; r := newTwig(k); r.Others = []twig{{twigKeys: k}}; return r }(), path: "sqlxhelper_test.twig.Twigs[0]", has: "shares twigKeys.OtherID with sqlxhelper_test.twig.Others[0]", is: sqlxhelper.ErrForeignKey},
		"ZeroOfOtherRelation":    {rows: &parent{inner: in, One: &line{Next: []*line{{}}}}, path: "sqlxhelper_test.parent.One.Next[0]", has: "ParentID is a foreign key and zero", is: sqlxhelper.ErrForeignKey},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newMock(t)
			h := newHelper(sqlxhelper.SQLite)
			insert := h.InsertGraph
			if c.many {
				insert = h.InsertMany
			}
			before := keys(reflect.ValueOf(c.rows), map[any]bool{})
			err := insert(ctx, db, "t", c.rows)
			var row *sqlxhelper.RowError
			if !errors.As(err, &row) {
				t.Fatalf("insert() = %v; want a RowError", err)
			}
			if row.Path != c.path || !strings.Contains(row.Problem, c.has) || c.is != nil && !errors.Is(err, c.is) || strings.Count(err.Error(), "sqlxhelper: ") != 1 {
				t.Errorf("insert() = %q at %q; want %q at %q, matching %v", err, row.Path, c.has, c.path, c.is)
			}
			if after := keys(reflect.ValueOf(c.rows), map[any]bool{}); !reflect.DeepEqual(after, before) {
				t.Errorf("keys = %v; want %v as before", after, before)
			}
		})
	}
}

// keys collects all Snowflakes below v, in the order of the fields.
func keys(v reflect.Value, seen map[any]bool) []types.Snowflake {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.UnsafePointer()] {
			return nil
		}
		seen[v.UnsafePointer()] = true
		return keys(v.Elem(), seen)
	case reflect.Slice:
		var all []types.Snowflake
		if v.Len() > 0 {
			first := v.Index(0).Addr().Interface()
			if seen[first] {
				return nil // a slice in itself
			}
			seen[first] = true
		}
		for i := range v.Len() {
			all = append(all, keys(v.Index(i), seen)...)
		}
		return all
	case reflect.Struct:
		var all []types.Snowflake
		for i := range v.NumField() {
			all = append(all, keys(v.Field(i), seen)...)
		}
		return all
	case reflect.Int64:
		return []types.Snowflake{types.Snowflake(v.Int())}
	}
	return nil
}

func TestArgumentsOfAnotherFormAreAnError(t *testing.T) {
	db, _ := newMock(t)
	h := newHelper(sqlxhelper.SQLite)
	var nilRow *pair
	var nilSlice *[]pair
	p := &pair{}
	for _, arg := range []any{nil, 7, "x", pair{}, nilRow, &p, []pair{}, &[]pair{}, map[string]any{}} {
		if err := h.Insert(ctx, db, "t", arg); !errors.Is(err, sqlxhelper.ErrArgument) {
			t.Errorf("Insert(%T) = %v; want ErrArgument", arg, err)
		}
	}
	for _, arg := range []any{nil, 7, "x", pair{}, &p, p, nilRow, nilSlice, []any{p}, []**pair{&p}, [1]pair{}, &[1]pair{}, [][]pair{}, map[int]pair{}, []int{1}, []map[string]any{}} {
		if err := h.InsertMany(ctx, db, "t", arg); !errors.Is(err, sqlxhelper.ErrArgument) {
			t.Errorf("InsertMany(%T) = %v; want ErrArgument", arg, err)
		}
		if arg == any(p) {
			continue // which InsertGraph takes
		}
		if err := h.InsertGraph(ctx, db, "t", arg); !errors.Is(err, sqlxhelper.ErrArgument) {
			t.Errorf("InsertGraph(%T) = %v; want ErrArgument", arg, err)
		}
	}
	if err := h.InsertMany(ctx, db, "t", nilSlice); err == nil || !strings.Contains(err.Error(), "nil *[]") {
		t.Errorf("InsertMany(nil *[]pair) = %v; want it to say nil", err)
	}
	if p.ID != 0 {
		t.Errorf("key = %d; want none", p.ID)
	}
}

func TestNoRowsAreNoSQL(t *testing.T) {
	db, _ := newMock(t)
	h := newHelper(sqlxhelper.SQLite)
	var none []pair
	for _, arg := range []any{none, &none, []pair{}, []*pair{}, &[]*pair{}} {
		if err := h.InsertMany(ctx, db, "t", arg); err != nil {
			t.Errorf("InsertMany(%T{}) = %v; want nil", arg, err)
		}
		if err := h.InsertGraph(ctx, db, "t", arg); err != nil {
			t.Errorf("InsertGraph(%T{}) = %v; want nil", arg, err)
		}
	}
}

func TestChildrenAreOnlyInsertedByInsertGraph(t *testing.T) {
	db, mock := newMock(t)
	one := parent{inner: &inner{"n"}, Lines: make([]line, 2)}
	mock.ExpectExec(`INSERT INTO "t" ("id", "name") VALUES ($1, $2)`).WillReturnResult(done(1))
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, db, "t", &one); err != nil {
		t.Errorf("Insert() = %v; want nil", err)
	}
	if one.Lines[0].ID != 0 {
		t.Errorf("key of the child = %d; want none", one.Lines[0].ID)
	}
}

func TestGraphIsWrittenTableByTableParentsFirst(t *testing.T) {
	db, mock := newMock(t)
	zero := types.Snowflake(0)
	root := parent{inner: &inner{"n"}}
	root.Lines = []line{{Tags: []*tagged{{LineID: &zero}, {}}}, {ParentID: 500, Tags: []*tagged{{LineID: &zero}}}}
	root.ID = 500
	root.One = &line{AfterID: types.NullSnowflake{Snowflake: 9}}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "parents" ("id", "name") VALUES ($1, $2)`).WithArgs(500, "n").WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "lines" ("id", "parent_id", "after_id") VALUES ($1, $2, $3), ($4, $5, $6), ($7, $8, $9)`).
		WithArgs(1, 500, nil, 2, 500, nil, 3, 500, nil).WillReturnResult(done(3))
	mock.ExpectExec(`INSERT INTO "tagged" ("id", "line_id") VALUES ($1, $2), ($3, $4), ($5, $6)`).
		WithArgs(4, 1, 5, 1, 6, 2).WillReturnResult(done(3))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "parents", &root); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
	if zero != 0 {
		t.Errorf("a shared foreign key was written through its pointer: %d", zero)
	}
}

// Rows that all have keys may still lack foreign keys.
func TestForeignKeysAreSetWhereAllKeysAre(t *testing.T) {
	db, mock := newMock(t)
	labeled := product{Model: key(7), Labels: []label{{Model: key(8)}}}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "products" ("id") VALUES ($1)`).WithArgs(7).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "labels" ("id", "product_id") VALUES ($1, $2)`).WithArgs(8, 7).WillReturnResult(done(1))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "products", &labeled); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

// Each has its own columns, and so a statement.
func TestTwoTypesMayShareATable(t *testing.T) {
	type note struct {
		types.Model
		AboutID types.Snowflake `db:"about_id"`
		Text    string          `db:"body"`
	}
	type mark struct {
		types.Model
		AboutID types.Snowflake `db:"about_id"`
	}
	type about struct {
		types.Model
		Notes []note `db:"-" snowkey:"remarks,fk=about_id"`
		Marks []mark `db:"-" snowkey:"remarks,fk=about_id"`
	}
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "abouts" ("id") VALUES ($1)`).WithArgs(1).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "remarks" ("id", "about_id", "body") VALUES ($1, $2, $3)`).WithArgs(2, 1, "x").WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "remarks" ("id", "about_id") VALUES ($1, $2)`).WithArgs(3, 1).WillReturnResult(done(1))
	mock.ExpectCommit()
	row := about{Notes: []note{{Text: "x"}}, Marks: make([]mark, 1)}
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "abouts", &row); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

// In each table a key identifies one row.
func TestRowsOfTwoTablesMayShareAKey(t *testing.T) {
	type half struct {
		*types.Model
		OtherID types.Snowflake `db:"other_id"`
	}
	type whole struct {
		*types.Model
		Half *half `db:"-" snowkey:"halves,fk=other_id"`
	}
	db, mock := newMock(t)
	shared := &types.Model{}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "wholes" ("id") VALUES ($1)`).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "halves" ("id", "other_id") VALUES ($1, $2)`).WillReturnResult(done(1))
	mock.ExpectCommit()
	row := whole{shared, &half{Model: shared}}
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "wholes", &row); err != nil || row.ID == 0 || row.Half.OtherID != row.ID {
		t.Errorf("InsertGraph() = %v, and %d in %+v; want nil, and one key", err, row.ID, row.Half)
	}
}

// A table that is reached on two ways of different length is written after both.
func TestTableIsWrittenAfterAllThatReferToIt(t *testing.T) {
	type leaf struct {
		types.Model
		Top types.NullSnowflake `db:"top_id"`
		Mid types.NullSnowflake `db:"mid_id"`
	}
	type mid struct {
		types.Model
		Top    types.Snowflake `db:"top_id"`
		Leaves []leaf          `db:"-" snowkey:"leaves,fk=mid_id"`
	}
	type top struct {
		types.Model
		Leaves []leaf `db:"-" snowkey:"leaves,fk=top_id"`
		Mids   []mid  `db:"-" snowkey:"mids,fk=top_id"`
		Others []mid  `db:"-" snowkey:"others,fk=top_id"`
	}
	db, mock := newMock(t)
	tops := []top{{Leaves: make([]leaf, 1), Mids: []mid{{Leaves: make([]leaf, 1)}}, Others: []mid{{Leaves: make([]leaf, 1)}}}}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "tops" ("id") VALUES ($1)`).WithArgs(1).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "mids" ("id", "top_id") VALUES ($1, $2)`).WithArgs(3, 1).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "others" ("id", "top_id") VALUES ($1, $2)`).WithArgs(4, 1).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "leaves" ("id", "top_id", "mid_id") VALUES ($1, $2, $3), ($4, $5, $6), ($7, $8, $9)`).
		WithArgs(2, 1, nil, 5, nil, 3, 6, nil, 4).WillReturnResult(done(3))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "tops", &tops); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

type branch struct {
	types.Model
	ParentID types.NullSnowflake `db:"parent_id"`
	Branches []branch            `db:"-" snowkey:"branches,fk=parent_id"`
}

// The order of the rows is what MySQL needs, which checks row by row.
func TestTreeIsOneStatementInLevelOrder(t *testing.T) {
	db, mock := newMock(t)
	tree := []branch{{Branches: []branch{{Branches: make([]branch, 1)}}}, {Branches: make([]branch, 1)}}
	mock.ExpectExec("INSERT INTO `branches` (`id`, `parent_id`) VALUES (?, ?), (?, ?), (?, ?), (?, ?), (?, ?)").
		WithArgs(1, nil, 2, nil, 3, 1, 4, 2, 5, 3).WillReturnResult(done(5))
	if err := newHelper(sqlxhelper.MySQL).InsertGraph(ctx, db, "branches", tree); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

type folder struct {
	types.Model
	FileID types.NullSnowflake `db:"file_id"`
	Files  []file              `db:"-" snowkey:"files,fk=folder_id"`
}

type file struct {
	types.Model
	FolderID types.Snowflake `db:"folder_id"`
	Folders  []folder        `db:"-" snowkey:"folders,fk=file_id"`
}

func TestCircleIsOneStatementPerTableAndLevel(t *testing.T) {
	db, mock := newMock(t)
	folders := []folder{{Files: []file{{Folders: []folder{{Files: make([]file, 2)}}}}}, {Files: make([]file, 1)}}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "folders" ("id", "file_id") VALUES ($1, $2), ($3, $4)`).WithArgs(1, nil, 2, nil).WillReturnResult(done(2))
	mock.ExpectExec(`INSERT INTO "files" ("id", "folder_id") VALUES ($1, $2), ($3, $4)`).WithArgs(3, 1, 4, 2).WillReturnResult(done(2))
	mock.ExpectExec(`INSERT INTO "folders" ("id", "file_id") VALUES ($1, $2)`).WithArgs(5, 3).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "files" ("id", "folder_id") VALUES ($1, $2), ($3, $4)`).WithArgs(6, 5, 7, 5).WillReturnResult(done(2))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "folders", folders); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

func TestRowsToWhichOthersBelongAreWrittenFirst(t *testing.T) {
	db, mock := newMock(t)
	shared, apple := &customer{Inviter: &customer{Model: key(700)}}, &product{Labels: make([]label, 1)}
	sales := []*sale{
		{Customer: shared, Positions: []position{{Product: apple}, {}}},
		{Customer: shared, CustomerID: 0, Positions: []position{{Product: apple}}},
		{CustomerID: 800}, // stored before
	}
	for _, s := range sales[:2] {
		for i := range s.Positions {
			s.Positions[i].Sale = s
		}
	}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "customers" ("id", "inviter_id") VALUES ($1, $2), ($3, $4)`).WithArgs(700, nil, 4, 700).WillReturnResult(done(2))
	mock.ExpectExec(`INSERT INTO "sales" ("id", "customer_id") VALUES ($1, $2), ($3, $4), ($5, $6)`).WithArgs(1, 4, 2, 4, 3, 800).WillReturnResult(done(3))
	mock.ExpectExec(`INSERT INTO "products" ("id") VALUES ($1)`).WithArgs(8).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "positions" ("id", "sale_id", "product_id") VALUES ($1, $2, $3), ($4, $5, $6), ($7, $8, $9)`).
		WithArgs(5, 1, 8, 6, 1, nil, 7, 2, 8).WillReturnResult(done(3))
	mock.ExpectExec(`INSERT INTO "labels" ("id", "product_id") VALUES ($1, $2)`).WithArgs(9, 8).WillReturnResult(done(1))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "sales", sales); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
	if p := sales[0].Positions[0]; p.ProductID == &apple.ID {
		t.Error("the foreign key is the product's own key; want a copy")
	}
}

func TestStatementsGrowWithTheTablesAndNotWithTheRows(t *testing.T) {
	begins := sqlmock.QueryMatcherFunc(func(want, got string) error {
		if !strings.HasPrefix(got, want) {
			return fmt.Errorf("%.60q; want %q", got, want)
		}
		return nil
	})
	for _, n := range []int{1, 10, 60} {
		conn, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(begins))
		if err != nil {
			t.Fatal(err)
		}
		sales := make([]sale, n)
		for i := range sales {
			sales[i].Customer = &customer{Inviter: &customer{}}
			for range 2 {
				sales[i].Positions = append(sales[i].Positions, position{Sale: &sales[i], Product: &product{Labels: make([]label, 1)}})
			}
		}
		mock.ExpectBegin()
		for _, table := range []struct {
			name string
			rows int
		}{{"customers", 2 * n}, {"sales", n}, {"products", 2 * n}, {"positions", 2 * n}, {"labels", 2 * n}} {
			mock.ExpectExec("INSERT INTO `" + table.name + "`").WillReturnResult(done(int64(table.rows)))
		}
		mock.ExpectCommit()
		if err := newHelper(sqlxhelper.MySQL).InsertGraph(ctx, sqlx.NewDb(conn, "sqlmock"), "sales", sales); err != nil {
			t.Errorf("InsertGraph(%d sales) = %v; want nil", n, err)
		}
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Errorf("InsertGraph(%d sales): %v", n, err)
		}
	}
}

// What rows share by an embedded pointer may be a foreign key, if it is the same.
func TestRowsMayShareWhatTheyReferTo(t *testing.T) {
	db, mock := newMock(t)
	shared := &twigKeys{Bird: &product{}}
	root := twig{twigKeys: &twigKeys{}, Twigs: []*twig{{twigKeys: shared}, {twigKeys: shared}}}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "products" ("id") VALUES ($1)`).WithArgs(4).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "twigs" ("id", "parent_id", "other_id", "bird_id") VALUES ($1, $2, $3, $4), ($5, $6, $7, $8), ($9, $10, $11, $12)`).
		WithArgs(1, nil, nil, nil, 2, 1, nil, 4, 3, 1, nil, 4).WillReturnResult(done(3))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "twigs", &root); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

// The list may hold both ends of a reference, in any order.
func TestRowsOfOneTableAreWrittenAfterThoseToWhichTheyBelong(t *testing.T) {
	db, mock := newMock(t)
	a, b, c := &customer{}, &customer{}, &customer{}
	a.Inviter, b.Inviter = b, c
	mock.ExpectExec("INSERT INTO `customers` (`id`, `inviter_id`) VALUES (?, ?), (?, ?), (?, ?), (?, ?)").
		WithArgs(3, nil, 2, 3, 1, 2, 4, nil).WillReturnResult(done(4))
	if err := newHelper(sqlxhelper.MySQL).InsertGraph(ctx, db, "customers", []*customer{a, b, c, {}}); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

// The rows are in no circle, but their tables are.
func TestCircleOfTablesIsWrittenByLevels(t *testing.T) {
	db, mock := newMock(t)
	first := &egg{}
	old := &chicken{Egg: first, Laid: make([]*egg, 2)}
	old.Laid[0], old.Laid[1] = &egg{}, &egg{Chicken: old}
	young := &chicken{Egg: old.Laid[0]}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "eggs" ("id", "chicken_id") VALUES ($1, $2)`).WithArgs(4, nil).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "chickens" ("id", "egg_id") VALUES ($1, $2)`).WithArgs(2, 4).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "eggs" ("id", "chicken_id") VALUES ($1, $2), ($3, $4)`).WithArgs(3, 2, 5, 2).WillReturnResult(done(2))
	mock.ExpectExec(`INSERT INTO "chickens" ("id", "egg_id") VALUES ($1, $2)`).WithArgs(1, 3).WillReturnResult(done(1))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "chickens", []*chicken{young, old}); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

func TestCircleOfThreeTablesIsWrittenByLevels(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "rocks" ("id", "paper_id") VALUES ($1, $2)`).WithArgs(4, nil).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "scissors" ("id", "rock_id") VALUES ($1, $2)`).WithArgs(3, 4).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "papers" ("id", "scissors_id") VALUES ($1, $2)`).WithArgs(2, 3).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "rocks" ("id", "paper_id") VALUES ($1, $2)`).WithArgs(1, 2).WillReturnResult(done(1))
	mock.ExpectCommit()
	first := &rock{Paper: &paper{Scissors: &scissors{Rock: &rock{}}}}
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "rocks", first); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

func TestTwoTypesInATableMayReferToEachOther(t *testing.T) {
	db, mock := newMock(t)
	workers, bosses := `INSERT INTO "people" ("id", "boss_id") VALUES ($1, $2)`, `INSERT INTO "people" ("id", "deputy_id") VALUES ($1, $2)`
	mock.ExpectBegin()
	mock.ExpectExec(bosses).WithArgs(4, nil).WillReturnResult(done(1))
	mock.ExpectExec(workers).WithArgs(3, 4).WillReturnResult(done(1))
	mock.ExpectExec(bosses).WithArgs(2, 3).WillReturnResult(done(1))
	mock.ExpectExec(workers).WithArgs(1, 2).WillReturnResult(done(1))
	mock.ExpectCommit()
	last := &worker{Boss: &boss{Deputy: &worker{Boss: &boss{}}}}
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "people", last); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

// References within a table need no statement of their own, even in a circle of
// tables.
func TestLevelsCountTheTablesAndNotTheRows(t *testing.T) {
	db, mock := newMock(t)
	a := &mate{}
	b := &mate{By: a}
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "mates" ("id", "guild_id", "by_id") VALUES ($1, $2, $3), ($4, $5, $6)`).WithArgs(3, nil, nil, 4, nil, 3).WillReturnResult(done(2))
	mock.ExpectExec(`INSERT INTO "guilds" ("id", "lead_id") VALUES ($1, $2), ($3, $4)`).WithArgs(1, 3, 2, 4).WillReturnResult(done(2))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "guilds", []guild{{Lead: a}, {Lead: b}}); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

func TestLevelsOfATableWithNothingBetweenAreOneStatement(t *testing.T) {
	db, mock := newMock(t)
	mock.ExpectBegin()
	mock.ExpectExec(`INSERT INTO "guilds" ("id", "lead_id") VALUES ($1, $2)`).WithArgs(1, nil).WillReturnResult(done(1))
	mock.ExpectExec(`INSERT INTO "mates" ("id", "guild_id", "by_id") VALUES ($1, $2, $3), ($4, $5, $6)`).WithArgs(3, nil, nil, 2, 1, 3).WillReturnResult(done(2))
	mock.ExpectCommit()
	if err := newHelper(sqlxhelper.PostgreSQL).InsertGraph(ctx, db, "guilds", []guild{{Mates: []mate{{By: &mate{}}}}}); err != nil {
		t.Errorf("InsertGraph() = %v; want nil", err)
	}
}

func TestListOfAHundredThousandRowsIsWritten(t *testing.T) {
	const n = 100_000
	list := make([]customer, n)
	for i := range n - 1 {
		list[i].Inviter = &list[i+1]
	}
	db := openSQLite(t)
	execAll(t, db, "CREATE TABLE customers (id INTEGER PRIMARY KEY, inviter_id INTEGER REFERENCES customers (id))")
	h := newHelper(sqlxhelper.SQLite)
	if err := h.InsertGraph(ctx, db, "customers", &list[0]); err != nil {
		t.Fatalf("InsertGraph() = %v; want nil", err)
	}
	wantRows(t, db, "customers a JOIN customers b ON b.id = a.inviter_id", n-1)

	list[n-1].Inviter = &list[0]
	var row *sqlxhelper.RowError
	if err := h.InsertGraph(ctx, db, "customers", &list[n/2]); !errors.As(err, &row) || len(err.Error()) > 2000 {
		t.Errorf("InsertGraph(circle) = %.2000v; want a RowError that can be read", err)
	}
	list[n-1].Inviter, list[n-1].InviterID = nil, types.NullSnowflake{Valid: true}
	want := "sqlxhelper_test.customer" + strings.Repeat(".Inviter", 16) + ".(99967 more)" + strings.Repeat(".Inviter", 16)
	if err := h.InsertGraph(ctx, db, "customers", &list[0]); !errors.As(err, &row) || row.Path != want {
		t.Errorf("InsertGraph(zero at the end) = %v; want a RowError at %s", err, want)
	}
}

func TestInsertGraphOfAValueSaysToPassAPointer(t *testing.T) {
	h := sqlxhelper.New(newSource())
	db, _ := newMock(t)
	for want, arg := range map[string]any{
		"InsertGraph takes a *struct, a []struct or a []*struct; got sqlxhelper_test.Order: pass &row": Order{},
		"InsertGraph takes a *struct, a []struct or a []*struct; got []int":                            []int{1},
	} {
		if err := h.InsertGraph(ctx, db, "orders", arg); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("InsertGraph(%T) = %v; want it to end in %q", arg, err, want)
		}
	}
}
