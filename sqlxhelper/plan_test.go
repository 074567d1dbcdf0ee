package sqlxhelper_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/internal/proof/cases/sqlxcases"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

type address struct{ City string }

type base struct{ CreatedBy string }

// Four levels, so that the paths of the two columns could share memory.
type (
	level1 struct{ level2 }
	level2 struct{ level3 }
	level3 struct{ L, M int }
)

type count int //nolint:unused // embedded below, where reflection finds it

// quiet has no field that is written, so a nil pointer to one is no matter.
type quiet struct{ sync.Mutex }

// code is a driver.Valuer only behind a pointer.
type code struct{ A, B string }

func (c *code) Value() (driver.Value, error) { return c.A + "-" + c.B, nil }

type withRowid struct{ ID int64 }

type noKey struct {
	Name string `db:"name"`
}

type numbered struct {
	Number types.Snowflake `db:"number" snowkey:"pk"`
}

type page struct {
	types.Model
	BookID types.Snowflake `db:"book_id"`
	Book   *book           `db:"-" snowkey:"books,belongs_to=book_id"`
}

type book struct{ types.Model }

// shoot says of one column that it refers to shoots, and to books.
type shoot struct {
	types.Model
	ParentID types.NullSnowflake `db:"parent_id"`
	Shoots   []shoot             `db:"-" snowkey:"shoots,fk=parent_id"`
	Book     *book               `db:"-" snowkey:"books,belongs_to=parent_id"`
}

type child struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
	Wrong   int64           `db:"wrong_id"`
}

func TestColumnsAreThoseOfSqlx(t *testing.T) {
	type embeddedByPointer struct{ Deep int }
	type everyRule struct {
		types.Model
		base               // unexported, its exported field is a column
		*embeddedByPointer // a pointer works while it is not nil
		count              //nolint:unused // unexported and no struct: as any unexported field
		level1
		*quiet        // nil
		NoTag         string
		Tagged        string         `db:"tagged,omitempty"`
		Time          time.Time      `db:"at"`
		Null          sql.NullString `db:"note"`
		PtrTime       *time.Time     `db:"maybe"`
		Code          code           `db:"code"`
		Nil           *code          `db:"nil_code"`
		Addr          netip.Addr     `db:"-"`
		Out           string         `db:"-"`
		Read          address        `db:"addr" snowkey:"-"`
		unseen        int
		skipped       int `db:"-"`
		mu            sync.Mutex
		Children      []child  `db:"-" snowkey:"children,fk=order_id"`
		OtherChildren []*child `snowkey:"children,fk=order_id"`
		OneChild      *child   `json:"x" db:"-" snowkey:"shop.children,fk=order_id"`
	}
	db, mock := newMock(t)
	at := time.Now().Truncate(time.Microsecond)
	mock.ExpectExec(`INSERT INTO "shop"."rows" ("id", "createdby", "deep", "l", "m", "notag", "tagged", "at", "note", "maybe", "code", "nil_code") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`).
		WithArgs(1, "me", 3, 21, 22, "n", "t", at, nil, nil, "a-b", "-").WillReturnResult(done(1))
	r := everyRule{
		base: base{"me"}, level1: level1{level2{level3{21, 22}}}, embeddedByPointer: &embeddedByPointer{3}, NoTag: "n", Tagged: "t", Time: at,
		Code: code{"a", "b"}, Nil: &code{}, quiet: nil, unseen: 1, skipped: 1,
	}
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, db, "shop.rows", &r); err != nil {
		t.Errorf("Insert() = %v; want nil", err)
	}
	r.mu.Lock() // used, for vet's sake
}

func TestMapperIsThatOfTheHandle(t *testing.T) {
	type named struct {
		OrderNumber string          `json:"order_no"`
		ID          types.Snowflake `json:"id"`
	}
	h := newHelper(sqlxhelper.PostgreSQL) // one, that keeps the plans of all mappers apart
	for name, c := range map[string]struct {
		mapper *reflectx.Mapper
		want   string
	}{
		"Function": {reflectx.NewMapperFunc("db", func(s string) string { return "x_" + strings.ToUpper(s) }), ""},
		"Tag":      {reflectx.NewMapperFunc("json", strings.ToLower), `INSERT INTO "t" ("order_no", "id") VALUES ($1, $2)`},
		"Upper":    {reflectx.NewMapperFunc("db", strings.ToUpper), `INSERT INTO "t" ("ORDERNUMBER", "ID") VALUES ($1, $2)`},
	} {
		t.Run(name, func(t *testing.T) {
			db, mock := newMock(t)
			db.Mapper = c.mapper
			if c.want == "" { // no column is called id
				var plan *sqlxhelper.PlanError
				if err := h.Insert(ctx, db, "t", &named{}); !errors.As(err, &plan) {
					t.Errorf("Insert() = %v; want a PlanError", err)
				}
				return
			}
			mock.ExpectExec(c.want).WillReturnResult(done(1))
			if err := h.Insert(ctx, db, "t", &named{}); err != nil {
				t.Errorf("Insert() = %v; want nil", err)
			}
			tx := newTx(t, db, mock)
			wrapped := struct{ *sqlx.Tx }{tx}
			for _, handle := range []sqlxhelper.DB{tx, wrapped, loop{wrapped}} {
				mock.ExpectExec("SAVEPOINT snowkey_insert").WillReturnResult(done(0))
				mock.ExpectExec(c.want).WillReturnResult(done(1))
				mock.ExpectExec("RELEASE SAVEPOINT snowkey_insert").WillReturnResult(done(0))
				if err := h.Insert(ctx, handle, "t", &named{}); err != nil {
					t.Errorf("Insert(%T) = %v; want nil", handle, err)
				}
			}
		})
	}
}

func TestPrimaryKeyMayBeNamedByTag(t *testing.T) {
	type tagged struct {
		ID     int             `db:"id"`
		Number types.Snowflake `db:"number" snowkey:"pk"`
	}
	db, mock := newMock(t)
	mock.ExpectExec(`INSERT INTO "t" ("id", "number") VALUES ($1, $2)`).WithArgs(7, 1).WillReturnResult(done(1))
	r := tagged{ID: 7}
	if err := newHelper(sqlxhelper.PostgreSQL).Insert(ctx, db, "t", &r); err != nil || r.Number != 1 {
		t.Errorf("Insert() = %v, key %d; want nil, 1", err, r.Number)
	}
}

// withTag returns a slice of a struct whose field A has a tag. vet would refuse
// that tag in a declaration.
func withTag(tag reflect.StructTag) any {
	return reflect.Zero(reflect.SliceOf(reflect.StructOf([]reflect.StructField{
		{Name: "ID", Type: reflect.TypeFor[types.Snowflake]()},
		{Name: "A", Type: reflect.TypeFor[int](), Tag: tag},
	}))).Interface()
}

// Every type here would lose or invent something, or panic, in sqlx or in the
// database. The error comes for an empty slice too.
func TestTypesThatCannotBeWrittenAreAPlanError(t *testing.T) {
	type m = types.Model
	type twoIDs struct{ ID types.Snowflake }
	type selfEmbedding struct {
		*selfEmbedding //nolint:unused // it is what the test is about
		ID             types.Snowflake
	}
	for name, c := range map[string]struct {
		rows  any
		field string
		has   string
	}{
		"NoKey":          {[]noKey{}, "", "no primary key"},
		"KeyOfOtherType": {[]withRowid{}, "ID", "int64, want types.Snowflake"},
		"KeyIsPointer":   {[]struct{ ID *types.Snowflake }{}, "ID", "*types.Snowflake, want"},
		"TaggedKeyOfOther": {[]struct {
			Num int `snowkey:"pk"`
		}{}, "Num", "int, want"},
		"TwoKeys": {[]struct {
			A, B types.Snowflake `snowkey:"pk"`
		}{}, "B", "second primary key beside A; tag the field that gets the new keys"},
		"KeyIsNoColumn": {[]struct {
			A types.Snowflake `db:"-" snowkey:"pk"`
		}{}, "A", "as no column"},
		"KeyIsEmbedded": {[]struct {
			m `snowkey:"pk"`
		}{}, "m", "embedded"},
		"TwoShards": {[]struct {
			m
			A, B types.Snowflake `snowkey:"shard"`
		}{}, "B", "second field with the shard beside A"},
		"ShardIsNoColumn": {[]struct {
			m
			A types.Snowflake `db:"-" snowkey:"shard"`
		}{}, "A", "as no column"},
		"ShardIsEmbedded": {[]struct {
			m `snowkey:"shard"`
		}{}, "m", "embedded"},
		"ShardIsTheKey": {[]struct {
			ID types.Snowflake `snowkey:"shard"`
		}{}, "ID", "the primary key is on the shard that another field names"},
		"ShardIsNoKey": {[]struct {
			m
			A string `snowkey:"shard"`
		}{}, "A", "string holds no key that could name the shard"},
		"ShardIsAnInteger": {[]struct {
			m
			A int64 `snowkey:"shard"`
		}{}, "A", "int64 holds no key that could name the shard"},
		"ShardIsASlice": {[]struct {
			m
			A []types.Snowflake `snowkey:"shard"`
		}{}, "A", "holds no key"},
		"TagWithoutName": {[]struct {
			ID types.Snowflake `db:",pk"`
		}{}, "ID", "no name"},
		"EmptyTag": {[]struct {
			m
			A int `db:""`
		}{}, "A", "no name"},
		"SpaceInTag":       {withTag(`db: "a"`), "A", "malformed"},
		"TagWithoutQuotes": {withTag(`db:a`), "A", "malformed"},
		"TagWithoutColon":  {withTag(`json:"a" db`), "A", "malformed"},
		"TagWithoutKey":    {withTag(`:"a"`), "A", "malformed"},
		"TagBackquoted":    {withTag("db:`a`"), "A", "malformed"},
		"BadColumnName": {[]struct {
			m
			A int "db:\"a\\\"b\""
		}{}, "A", "holds '\"'"},
		"ColumnWithDot": {[]struct {
			m
			A int `db:"t.a"`
		}{}, "A", "holds '.'"},
		"TaggedEmbedding": {[]struct {
			m `db:"x"`
		}{}, "m.ID", `calls the column "x.id"`},
		"SameTagTwice": {[]struct {
			m
			A, B int `db:"a"`
		}{}, "B", "already that of field A"},
		"SameButForCase": {[]struct {
			m
			A int `db:"a"`
			B int `db:"A"`
		}{}, "B", "already that of field A"},
		"OuterBeatsInner": {[]struct {
			ID types.Snowflake `db:"id"`
			m
		}{}, "m.ID", "already that of field ID"},
		"TwoEmbeddedIDs": {[]struct {
			m
			twoIDs
		}{}, "twoIDs.ID", "already that of field m.ID"},
		"SelfEmbedding": {[]selfEmbedding{}, "ID", "already that of field selfEmbedding.ID"},
		"EmbeddedSnowflake": {[]struct {
			types.Snowflake `db:"id"`
		}{}, "Snowflake", "embedded value"},
		"EmbeddedTime": {[]struct {
			m
			time.Time
		}{}, "Time", "embedded value"},
		"EmbeddedValuer": {[]struct {
			m
			sql.NullString
		}{}, "NullString", "embedded value"},
		"EmbeddedUnexportedValuer": {[]struct {
			m
			code
		}{}, "code", "embedded value"},
		"UnexportedWithTag": {[]struct {
			m
			a int `db:"a"`
		}{}, "a", "not exported"},
		"NestedStruct": {[]struct {
			m
			Addr address `db:"addr"`
		}{}, "Addr", "is no column"},
		"NestedEmbedding": {[]struct {
			m
			By struct{ base }
		}{}, "By", "is no column"},
		"NestedPointer": {[]struct {
			m
			Addr *address
		}{}, "Addr", "is no column"},
		"UntaggedChildren": {[]struct {
			m
			Items []child
		}{}, "Items", `snowkey:"table,fk=column"`},
		"UntaggedPointers": {[]struct {
			m
			Items []*child
		}{}, "Items", "is no column"},
		"FkMissing": {[]struct {
			m
			Items []child `db:"-" snowkey:"items,fk=ordr_id"`
		}{}, "Items", "no field for column ordr_id"},
		"FkOfOtherType": {[]struct {
			m
			Items []child `db:"-" snowkey:"items,fk=wrong_id"`
		}{}, "Items", "child.Wrong is int64"},
		"FkIsKey": {[]struct {
			m
			Items []child `db:"-" snowkey:"items,fk=id"`
		}{}, "Items", "primary key of"},
		"ChildrenByValue": {[]struct {
			m
			Item child `db:"-" snowkey:"items,fk=order_id"`
		}{}, "Item", "cannot hold child rows"},
		"ChildrenInMap": {[]struct {
			m
			Items map[int]child `db:"-" snowkey:"items,fk=order_id"`
		}{}, "Items", "cannot hold child rows"},
		"ChildrenTwicePtr": {[]struct {
			m
			Items []**child `db:"-" snowkey:"items,fk=order_id"`
		}{}, "Items", "cannot hold child rows"},
		"ChildrenUnexp": {[]struct {
			m
			items []child `snowkey:"items,fk=order_id"`
		}{}, "items", "not exported"},
		"ChildrenNoStruct": {[]struct {
			m
			Items []string `snowkey:"items,fk=order_id"`
		}{}, "Items", "cannot hold child rows"},
		"ChildWithoutKey": {[]struct {
			m
			Items []noKey `snowkey:"items,fk=name"`
		}{}, "", "no primary key"},
		"BelongsToMissing": {[]struct {
			m
			Owner *m `db:"-" snowkey:"owners,belongs_to=owner_id"`
		}{}, "Owner", "belongs_to=owner_id: struct"},
		"BelongsToOfOtherType": {[]struct {
			m
			OwnerID int64 `db:"owner_id"`
			Owner   *m    `db:"-" snowkey:"owners,belongs_to=owner_id"`
		}{}, "Owner", "OwnerID is int64, want types.Snowflake"},
		"BelongsToIsKey": {[]struct {
			m
			Owner *m `db:"-" snowkey:"owners,belongs_to=id"`
		}{}, "Owner", "primary key of"},
		"BelongsToTwice": {[]struct {
			m
			OwnerID types.Snowflake `db:"owner_id"`
			Owner   *m              `db:"-" snowkey:"owners,belongs_to=owner_id"`
			Seller  *m              `db:"-" snowkey:"owners,belongs_to=owner_id"`
		}{}, "Seller", "belongs_to=owner_id: field Owner sets that column too"},
		"BelongsToByValue": {[]struct {
			m
			OwnerID types.Snowflake `db:"owner_id"`
			Owner   twoIDs          `db:"-" snowkey:"owners,belongs_to=owner_id"`
		}{}, "Owner", "cannot hold the row that owner_id refers to, want *T"},
		"BelongsToSlice": {[]struct {
			m
			OwnerID types.Snowflake `db:"owner_id"`
			Owners  []*m            `db:"-" snowkey:"owners,belongs_to=owner_id"`
		}{}, "Owners", "want *T"},
		"BelongsToUnexported": {[]struct {
			m
			OwnerID types.Snowflake `db:"owner_id"`
			owner   *m              `snowkey:"owners,belongs_to=owner_id"`
		}{}, "owner", "not exported"},
		"BelongsToWithoutKey": {[]struct {
			m
			OwnerID types.Snowflake `db:"owner_id"`
			Owner   *noKey          `snowkey:"owners,belongs_to=owner_id"`
		}{}, "", "no primary key"},
		"BelongsToWithoutColumn": {[]struct {
			m
			Owner *m `snowkey:"owners,belongs_to="`
		}{}, "Owner", "empty"},
		"ColumnOfParentAndOfAnother": {[]struct {
			m
			Pages []page `db:"-" snowkey:"pages,fk=book_id"`
		}{}, "Pages", "fk=book_id: by the field sqlxhelper_test.page.Book that column refers to sqlxhelper_test.book"},
		"ColumnOfItsOwnAndOfAnother": {[]shoot{}, "Shoots", "fk=parent_id: by the field sqlxhelper_test.shoot.Book that column refers to sqlxhelper_test.book"},
		"TwoKeysOfOneTable": {[]struct {
			m
			OwnerID  types.Snowflake `db:"owner_id"`
			SellerID types.Snowflake `db:"seller_id"`
			Owner    *m              `db:"-" snowkey:"owners,belongs_to=owner_id"`
			Seller   *numbered       `db:"-" snowkey:"owners,belongs_to=seller_id"`
		}{}, "Seller", "table owners has the primary key id in types.Model and number in sqlxhelper_test.numbered"},
		"UnknownOption": {[]struct {
			m
			Items []child `snowkey:"items,key=order_id"`
		}{}, "Items", wantTag},
		"NoFk": {[]struct {
			m
			Items []child `snowkey:"items"`
		}{}, "Items", wantTag},
		"TwoOptions": {[]struct {
			m
			Items []child `snowkey:"items,fk=order_id,x"`
		}{}, "Items", wantTag},
		"CommaInTable": {[]struct {
			m
			Items []child `snowkey:"items,x,fk=order_id"`
		}{}, "Items", wantTag},
		"ChildEmbeddedUnexported": {[]struct {
			m
			*child `snowkey:"items,fk=order_id"`
		}{}, "child", "not exported"},
		"NoTable": {[]struct {
			m
			Items []child `snowkey:",fk=order_id"`
		}{}, "Items", "empty"},
		"EmptyFk": {[]struct {
			m
			Items []child `snowkey:"items,fk="`
		}{}, "Items", "empty"},
		"QuotedTable": {[]struct {
			m
			Items []child "snowkey:\"`items`,fk=order_id\""
		}{}, "Items", "bare"},
	} {
		t.Run(name, func(t *testing.T) {
			db, _ := newMock(t)
			err := newHelper(sqlxhelper.SQLite).InsertMany(ctx, db, "t", c.rows)
			var plan *sqlxhelper.PlanError
			if !errors.As(err, &plan) {
				t.Fatalf("InsertMany(%T{}) = %v; want a PlanError", c.rows, err)
			}
			if plan.Field != c.field || !strings.Contains(plan.Problem, c.has) || strings.Count(err.Error(), "sqlxhelper: ") != 1 {
				t.Errorf("InsertMany(%T{}) = %q at %q; want %q at %q", c.rows, err, plan.Field, c.has, c.field)
			}
		})
	}
}

const wantTag = `want "pk", "shard", "-", "table,fk=column" or "table,belongs_to=column"`

// Values that are structs inside, and lists of values, are for the driver.
func TestValuesAreColumns(t *testing.T) {
	type status string
	type nested []nested
	type chain *chain
	type values struct {
		types.Model
		A netip.Addr       `db:"a"`
		B *big.Int         `db:"b"`
		C []string         `db:"c"`
		D map[string]any   `db:"d"`
		E []sql.NullString `db:"e"`
		F any              `db:"f"`
		G []time.Time      `db:"g"`
		H status           `db:"h"`
		I [2]byte          `db:"i"`
		J nested           `db:"j"`
		K chain            `db:"k"`
		L *sync.Mutex      `db:"-"`
	}
	db, _ := newMock(t)
	if err := newHelper(sqlxhelper.PostgreSQL).InsertMany(ctx, db, "t", []values{}); err != nil {
		t.Errorf("InsertMany() = %v; want nil", err)
	}
}

func TestPlansAreBuiltConcurrently(t *testing.T) {
	db := openSQLite(t)
	h := sqlxhelper.New(sqlxcases.NewCounter(0))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 30 {
				fields := []reflect.StructField{
					{Name: "Model", Type: reflect.TypeFor[types.Model](), Anonymous: true},
					{Name: "F", Type: reflect.TypeFor[int](), Tag: reflect.StructTag(`db:"f` + string(rune('a'+i)) + `"`)},
				}
				if err := h.InsertMany(ctx, db, "t", reflect.Zero(reflect.SliceOf(reflect.StructOf(fields))).Interface()); err != nil {
					t.Errorf("InsertMany() = %v; want nil", err)
				}
			}
		})
	}
	wg.Wait()
}
