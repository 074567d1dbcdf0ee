package gormcases

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/types"
)

// Base is embedded in several ways.
type Base struct {
	ID types.Snowflake `gorm:"primaryKey"`
}

type (
	orderID   types.Snowflake
	wrappedID struct{ types.Snowflake }
	word      string
	myID      uint
)

// A col is a field of a model: its name, a value of its type, and its gorm tag. Without a name it
// is embedded.
type col struct {
	name string
	of   any
	tag  string
}

// model returns a pointer to a struct of its own type. The name of its table is the prefix of the case.
func model(cols ...col) any {
	var list []reflect.StructField
	for _, c := range cols {
		f := reflect.StructField{Name: c.name, Type: reflect.TypeOf(c.of), Tag: reflect.StructTag(fmt.Sprintf("gorm:%q", c.tag))}
		if f.Anonymous = c.name == ""; f.Anonymous {
			f.Name = map[bool]string{true: "Base", false: "Model"}[strings.HasSuffix(f.Type.String(), "Base")]
		}
		list = append(list, f)
	}
	return reflect.New(reflect.StructOf(list)).Interface()
}

// id returns the field ID.
func id(of any, tag string) col { return col{"ID", of, tag} }

// A keyModel is a field with a key that the plugin fills, of a model with a unique Name.
type keyModel struct {
	claim    string
	integers bool // if the plugin has WithIntegerKeys
	key      []col
}

const tagged = "primaryKey;autoIncrement:false;type:bigint;snowflake"

var keyModels = []keyModel{
	{"KeyIsFilled", false, []col{id(types.Snowflake(0), "")}},
	{"KeyBehindAPointerIsFilled", false, []col{id(new(types.Snowflake), "")}},
	{"TypedKeyIsFilled", false, []col{id(types.ID[Party](0), "")}},
	{"NullableKeyWithATagIsFilled", false, []col{id(types.NullSnowflake{}, tagged)}},
	{"KeyOfATypeOfItsOwnWithATagIsFilled", false, []col{id(orderID(0), tagged)}},
	{"IntegerWithATagIsFilled", false, []col{id(int64(0), tagged)}},
	{"IntegerWithoutASignWithATagIsFilled", false, []col{id(uint64(0), tagged)}},
	{"IntegerBehindAPointerWithATagIsFilled", false, []col{id(new(int64), tagged)}},
	{"KeyThatGORMTakesForACounterIsFilled", false, []col{id(int64(0), "primaryKey;snowflake")}},
	{"TextWithATagIsFilledInDecimal", false, []col{id(word(""), "primaryKey;size:40;snowflake")}},
	{"EmbeddedKeyIsFilled", false, []col{{"", Base{}, ""}}},
	{"KeyEmbeddedByPointerIsFilled", false, []col{{"", new(Base), ""}}},
	{"KeyEmbeddedByTagIsFilled", false, []col{{"Part", Base{}, "embedded;embeddedPrefix:p_"}}},
	{"KeyOutsideShadowsThatOfGORMsModel", false, []col{{"", gorm.Model{}, ""}, id(types.Snowflake(0), "primaryKey")}},
	{"KeyOfAnotherNameIsFilled", false, []col{{"Code", types.Snowflake(0), "primaryKey;column:the_code"}}},
	{"IDOfACompositeKeyIsFilled", false, []col{id(types.ID[Party](0), "primaryKey"), {"TenantID", types.ID[Line](0), "primaryKey"}}}, // first, as a key that is whole would be
	{"IntegerKeyOfGORMsModelIsFilled", true, []col{{"", gorm.Model{}, ""}}},
	{"IntegerKeyUintIsFilled", true, []col{id(uint(0), "")}},
	{"IntegerKeyUint64IsFilled", true, []col{id(uint64(0), "")}},
	{"IntegerKeyIntIsFilled", true, []col{id(int(0), "")}},
	{"IntegerKeyInt64IsFilled", true, []col{id(int64(0), "")}},
	{"IntegerKeyBehindAPointerIsFilled", true, []col{id(new(uint), "")}},
	{"IntegerKeyOfANamedTypeIsFilled", true, []col{id(myID(0), "")}},
	{"IntegerKeyOfATypeOfItsOwnIsFilled", true, []col{id(orderID(0), "")}},
	{"IntegerKeyWithAutoIncrementIsFilled", true, []col{id(uint(0), "primaryKey;autoIncrement")}},
	{"IntegerKeyOfAnotherNameIsFilled", true, []col{{"Number", uint(0), "primaryKey"}}},
	{"IntegerKeyEmbeddedByTagIsFilled", true, []col{{"Inner", struct{ ID uint }{}, "embedded;embeddedPrefix:in_"}}},
	{"IntegerKeyWithATypeIsFilled", true, []col{id(uint(0), "type:bigint;size:64")}},
	{"IntegerKeyOfAPairIsFilled", true, []col{{"TenantID", uint(0), "primaryKey"}, id(uint(0), "primaryKey")}},
}

// keyCases write rows of each model in each way.
func keyCases() (list []testCase) {
	for _, m := range keyModels {
		list = append(list, testCase{m.claim, func(e *env) {
			if m.integers {
				e.integers()
			}
			row := model(append(m.key, col{"Name", "", "size:40;uniqueIndex"})...)
			if _, composite := reflect.TypeOf(row).Elem().FieldByName("TenantID"); composite {
				// GORM makes no such table of integers on MariaDB, and one without TenantID in its key on SQLite.
				e.make(`(tenant_id bigint DEFAULT 0 NOT NULL, id bigint NOT NULL, name varchar(40) UNIQUE, PRIMARY KEY (tenant_id, id))`)
			} else {
				e.migrate(row)
			}
			stmt := &gorm.Statement{DB: e.db}
			e.ok(fmt.Sprintf("Parse(%T)", row), stmt.Parse(row))
			k := keyWriter{env: e, schema: stmt.Schema, key: stmt.Schema.PrioritizedPrimaryField}
			for _, way := range k.ways() {
				k.writes(way)
			}
		}})
	}
	return list
}

// A keyWriter writes rows of a model.
type keyWriter struct {
	*env
	schema *schema.Schema
	key    *schema.Field
	n      int
}

// A wayToWrite creates a slice of structs, or of maps. It returns GORM's error.
type wayToWrite struct {
	name  string
	maps  bool
	rows  int
	write func(list reflect.Value) error
}

func (k *keyWriter) ways() []wayToWrite {
	model := reflect.New(k.schema.ModelType).Interface()
	ways := []wayToWrite{
		{"Create", false, 1, func(list reflect.Value) error { return k.db.Create(list.Index(0).Addr().Interface()).Error }},
		{"Create of a slice", false, 4, func(list reflect.Value) error { return k.db.Create(list.Addr().Interface()).Error }},
		{"Create of pointers", false, 4, func(list reflect.Value) error {
			pointers := reflect.MakeSlice(reflect.SliceOf(reflect.PointerTo(k.schema.ModelType)), 0, 4)
			for i := range list.Len() {
				pointers = reflect.Append(pointers, list.Index(i).Addr())
			}
			return k.db.Create(pointers.Interface()).Error
		}},
		{"CreateInBatches", false, 4, func(list reflect.Value) error { return k.db.CreateInBatches(list.Addr().Interface(), 2).Error }},
		{"Save", false, 1, func(list reflect.Value) error { return k.db.Save(list.Index(0).Addr().Interface()).Error }},
		{"FirstOrCreate", false, 1, func(list reflect.Value) error {
			return k.db.Where("name = ?", k.name(0)).FirstOrCreate(list.Index(0).Addr().Interface()).Error
		}},
		{"DO NOTHING", false, 4, func(list reflect.Value) error { return k.db.Clauses(doNothing()).Create(list.Addr().Interface()).Error }},
		{"DO NOTHING on name", false, 4, func(list reflect.Value) error {
			return k.db.Clauses(doNothing("name")).Create(list.Addr().Interface()).Error
		}},
		{"Create after Assign", false, 4, func(list reflect.Value) error {
			rows := list.Addr().Interface()
			k.assign(rows)
			given := k.src.given
			err := k.db.Create(rows).Error
			equal(k.env, "keys asked for after Assign", k.src.given, given)
			return err
		}},
		{"Create of a map", true, 1, func(list reflect.Value) error { return k.db.Model(model).Create(list.Index(0).Interface()).Error }},
		{"Create of a pointer to a map", true, 1, func(list reflect.Value) error {
			return k.db.Model(model).Create(list.Index(0).Addr().Interface()).Error
		}},
	}
	if len(k.schema.FieldsWithDefaultDBValue) > 0 && k.target.Returning {
		return ways // GORM itself fails on maps with RETURNING, plugin or not
	}
	return append(ways,
		wayToWrite{"Create of maps", true, 4, func(list reflect.Value) error { return k.db.Model(model).Create(list.Interface()).Error }},
		wayToWrite{"Create of a pointer to maps", true, 4, func(list reflect.Value) error { return k.db.Model(model).Create(list.Addr().Interface()).Error }},
		wayToWrite{"CreateInBatches of maps", true, 4, func(list reflect.Value) error { return k.db.Model(model).CreateInBatches(list.Interface(), 2).Error }})
}

func (k *keyWriter) name(i int) string { return fmt.Sprint("row ", k.n, ".", i) }

// writes writes rows in a way. Among several, one has a key, one has a zero behind a pointer or in a
// value that may be NULL, and with an upsert one meets the first row that was created.
func (k *keyWriter) writes(way wayToWrite) {
	k.Helper()
	k.n++
	typ := k.schema.ModelType
	if way.maps {
		typ = reflect.TypeFor[map[string]any]()
	}
	list := reflect.New(reflect.SliceOf(typ)).Elem()
	list.Set(reflect.MakeSlice(list.Type(), way.rows, way.rows))
	names := make([]string, way.rows)
	for i := range names {
		if names[i] = k.name(i); i == 1 && strings.HasPrefix(way.name, "DO NOTHING") {
			names[i] = "row 1.0"
		}
		if way.maps {
			list.Index(i).Set(reflect.ValueOf(map[string]any{[]string{"name", "Name"}[i%2]: names[i]}))
		} else {
			list.Index(i).FieldByName("Name").SetString(names[i])
		}
	}
	own := fmt.Sprint(100 + k.n)
	if way.rows > 3 {
		k.set(list.Index(2), int64(100+k.n))
		if kind := k.key.FieldType.Kind(); kind == reflect.Pointer || kind == reflect.Struct {
			k.set(list.Index(3), 0)
		}
	}
	before := k.src.given
	k.ok(fmt.Sprintf("%s of %v", way.name, k.schema.ModelType), way.write(list))
	seen := map[string]bool{}
	for i, name := range names {
		var stored []string
		k.must(k.db.Table(k.schema.Table).Where("name = ?", name).Pluck(k.key.DBName, &stored))
		memory := k.text(list.Index(i))
		id, err := types.Parse(memory)
		if seen[memory] || err != nil || len(stored) != 1 || stored[0] != memory || memory != own && !k.src.gave(id) || (memory == own) != (way.rows > 3 && i == 2) {
			k.Errorf("%s of %v: row %d, %s, has the key %s in memory, and stored %q; want a key of the source, or %s", way.name, k.schema.ModelType, i, name, memory, stored, own)
		}
		seen[memory] = true
		back := reflect.New(k.schema.ModelType)
		k.must(k.db.Take(back.Interface(), "name = ?", name))
		equal(k.env, "key read back after "+way.name, k.text(back.Elem()), memory)
	}
	want := way.rows
	if way.rows > 3 {
		want-- // for the one that has a key
	}
	equal(k.env, "keys asked for by "+way.name, k.src.given-before, want)
}

// set gives row, a struct or a map, a key.
func (k *keyWriter) set(row reflect.Value, key int64) {
	k.Helper()
	m, isMap := reflect.TypeAssert[map[string]any](row)
	if isMap {
		row = reflect.New(k.schema.ModelType).Elem()
	}
	k.ok(fmt.Sprintf("Set(%d)", key), k.key.Set(k.Context(), row, key))
	if isMap {
		m[k.key.DBName], _ = k.key.ValueOf(k.Context(), row)
	}
}

// text returns the key of row, a struct or a map, in decimal.
func (k *keyWriter) text(row reflect.Value) string {
	k.Helper()
	if m, ok := reflect.TypeAssert[map[string]any](row); ok {
		return keyText(m[k.key.DBName])
	}
	v, _ := k.key.ValueOf(k.Context(), row)
	return keyText(v)
}

// keyText returns a key of any type in decimal.
func keyText(key any) string {
	v := reflect.ValueOf(key)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if !v.IsValid() {
		return "nil"
	}
	if valuer, ok := reflect.TypeAssert[driver.Valuer](v); ok {
		value, err := valuer.Value()
		return fmt.Sprint(value, map[bool]any{true: "", false: err}[err == nil])
	}
	return fmt.Sprint(v.Interface())
}

// others are models with a field that the plugin leaves as it is, or as the database fills it.
var others = []struct {
	claim       string
	integers    bool
	cols        []col
	field, want string
	given       int // keys, for another field
}{
	{"ShadowedColumnIsLeftAlone", false, []col{id(types.Snowflake(0), ""), {"Part", shadowed{}, "embedded"}, {"Code", types.Snowflake(0), ""}}, "Code", "0", 1},
	{"ColumnThatIsNotCreatedIsLeftAlone", false, []col{id(types.Snowflake(0), ""), {"Code", types.Snowflake(0), "snowflake;<-:update"}}, "Code", "0", 1},
	{"ColumnWithoutATagIsLeftAlone", false, []col{id(types.Snowflake(0), ""), {"Code", types.Snowflake(0), ""}}, "Code", "0", 1},
	{"KeyWithTheTagMinusIsLeftAlone", false, []col{id(types.Snowflake(0), "primaryKey;snowflake:-")}, "ID", "0", 0},
	{"KeyThatIsReadOnlyIsLeftAlone", false, []col{id(types.Snowflake(0), "primaryKey;->"), {"Name", "", "size:40"}}, "ID", "0", 0},
	{"KeyOfATypeOfItsOwnThatCountsIsLeftAlone", false, []col{id(orderID(0), "autoIncrement")}, "ID", "1", 0},
	{"KeyOfATypeOfItsOwnWithTheTagMinusIsLeftAlone", false, []col{id(orderID(0), "autoIncrement:false;snowflake:-")}, "ID", "0", 0},
	{"KeyOfTextIsLeftAlone", false, []col{id("", "primaryKey;size:40")}, "ID", "", 0},
	{"KeyWithADefaultIsLeftAlone", false, []col{id(types.Snowflake(0), "primaryKey;default:77")}, "ID", "77", 0},
	{"IntegerKeyIsLeftAloneWithoutTheOption", false, []col{id(uint(0), "")}, "ID", "1", 0},
	{"IntegerKeyThatGORMDoesNotCountIsLeftAlone", true, []col{id(uint(0), "primaryKey;autoIncrement:false")}, "ID", "0", 0},
	{"IntegerKeyWithADefaultIsLeftAlone", true, []col{id(uint(0), "primaryKey;default:77")}, "ID", "77", 0},
	{"IntegerKeyOf32BitsIsLeftAlone", true, []col{id(int32(0), "")}, "ID", "1", 0},
	{"IntegerKeyWithTheTagMinusIsLeftAlone", true, []col{id(uint(0), "primaryKey;snowflake:-")}, "ID", "1", 0},
	{"KeyOfGORMsModelWithTheTagMinusIsLeftAlone", true, []col{{"", gorm.Model{}, "snowflake:-"}}, "ID", "1", 0},
	{"KeyThatRefersToOneOfTheDatabaseMayBeNarrow", true, []col{id(int32(0), "autoIncrement:false"), {"CounterID", uint32(0), ""}, {"Counter", new(offCounter), "constraint:-"}}, "ID", "0", 0},
}

// A shadowed field is embedded where another has its name.
type shadowed struct {
	Code types.Snowflake `gorm:"snowflake"`
}

// An offCounter has a key that the database counts.
type offCounter struct {
	ID uint `gorm:"primaryKey;snowflake:-"`
}

func otherCases() (list []testCase) {
	for _, o := range others {
		list = append(list, testCase{o.claim, func(e *env) {
			if o.integers {
				e.integers()
			}
			row := model(o.cols...)
			switch {
			case o.want == "77" && o.integers: // GORM would count as well
				e.make(`(id bigint DEFAULT 77 NOT NULL PRIMARY KEY)`)
			case len(o.cols) > 1 && o.given == 0 && !o.integers:
				e.make(`(id bigint DEFAULT 5, name varchar(40))`)
			default:
				e.migrate(row)
			}
			e.must(e.db.Create(row))
			equal(e, o.field, keyText(reflect.ValueOf(row).Elem().FieldByName(o.field).Interface()), o.want)
			equal(e, "keys asked for", e.src.given, o.given)
		}})
	}
	return list
}

var fieldCases = []testCase{
	{"ModelThatCannotWorkIsRefusedBeforeAnySQL", func(e *env) {
		type Wide struct{ ID uint }
		type Coded struct {
			ID int64 `gorm:"primaryKey;autoIncrement:false;snowflake"`
		}
		type Two struct {
			ID     uint `gorm:"size:32"`
			WideID string
			Wide   *Wide
		}
		const unsaid, counted, serialized = ".ID: the type ", "autoIncrement leaves the key to the database", "a key with a serializer"
		snowflake, wide := id(types.Snowflake(0), ""), col{"Wide", new(Wide), ""}
		refer := func(of any, tag string) []col { return []col{id(uint(0), ""), {"WideID", of, tag}, wide} }
		for _, test := range []struct {
			integers bool
			cols     []col
			says     string
		}{
			{false, []col{id(types.Snowflake(0), "primaryKey;snowflake:false")}, ".ID: the tag snowflake:false is unknown"},
			{false, []col{snowflake, {"Flag", false, "snowflake"}}, ".Flag: the tag snowflake does not accept the type"},
			{false, []col{snowflake, {"Code", int64(0), "snowflake;serializer:json"}}, ".Code: " + serialized},
			{false, []col{id(types.Snowflake(0), "serializer:json")}, ".ID: " + serialized},
			{false, []col{id(orderID(0), "")}, unsaid},
			{false, []col{id(new(orderID), "primaryKey;autoIncrement:false")}, unsaid},
			{false, []col{id(wrappedID{}, "")}, unsaid},
			{false, []col{id(types.Snowflake(0), "primaryKey;autoIncrement")}, ".ID: " + counted},
			{true, []col{id(types.Snowflake(0), "primaryKey;autoIncrement")}, ".ID: " + counted},
			{false, []col{id(new(types.Snowflake), "primaryKey;autoIncrement:true")}, ".ID: " + counted},
			{false, []col{id(int64(0), "primaryKey;autoIncrement;snowflake")}, ".ID: " + counted},
			{false, []col{snowflake, {"Number", uint64(0), "autoIncrement;snowflake"}}, ".Number: " + counted},
			{false, []col{id(types.ID[Party](0), "autoIncrement")}, ".ID: " + counted},
			{false, []col{snowflake, {"PartyID", int32(0), ""}, {"Party", new(Party), ""}}, ".PartyID: int32 cannot hold"},
			{false, []col{snowflake, {"CodedID", uint32(0), ""}, {"Coded", new(Coded), ""}}, ".CodedID: uint32 cannot hold"},
			{true, []col{id(uint(0), "size:32")}, ".ID: the tag size:32 cannot hold the 64-bit keys of WithIntegerKeys; remove size:32 from the tag and widen the column, or"},
			{true, []col{id(int64(0), "type:int(11) unsigned")}, ".ID: the tag type:int(11)"},
			{true, []col{id(uint(0), "type:SERIAL")}, ".ID: the tag type:SERIAL"},
			{true, refer(uint32(0), ""), ".WideID: uint32 cannot hold"},
			{true, refer("", ""), ".WideID: string cannot hold"},
			{true, refer(uint(0), "type:int"), ".WideID: the tag type:int cannot hold the 64-bit key Wide.ID that it refers to; remove type:int from the tag and widen the column"},
		} {
			row := model(test.cols...)
			e.src = &counter{}
			e.db = e.with(e.src)
			if test.integers {
				e.integers()
			}
			list := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(row)), 0, 1)
			for _, value := range []any{row, reflect.Append(list, reflect.ValueOf(row)).Interface(), map[string]any{"id": 5}} {
				if err := e.db.Model(row).Create(value).Error; !errors.As(err, new(*gormplugin.ModelError)) || !strings.Contains(err.Error(), test.says) {
					e.Errorf("Create(%T) = %v; want a ModelError that says %q", value, err, test.says)
				}
			}
			equal(e, "keys asked for", e.src.given, 0)
		}
		if err := e.db.Create(&Two{}).Error; err == nil || !strings.Contains(err.Error(), "Two.WideID: string cannot hold") || !strings.Contains(err.Error(), "Two.ID: the tag size:32") {
			e.Errorf("Create of what is wrong twice = %v; want both reasons", err)
		}
		equal(e, "statements", len(e.log.statements("INSERT")), 0)
	}},
	{"ColumnThatMayBeNullIsFilledUnlessItsZeroIsPresent", func(e *env) {
		type Tagged struct {
			ID      types.Snowflake
			Null    types.NullSnowflake       `gorm:"snowflake"`
			SQLNull sql.Null[types.Snowflake] `gorm:"snowflake"`
			Zero    types.NullSnowflake       `gorm:"snowflake"`
		}
		e.migrate(&Tagged{})
		v := Tagged{Zero: types.NullSnowflake{Valid: true}}
		e.must(e.db.Create(&v))
		e.fresh("Null", v.Null.Snowflake)
		e.fresh("SQLNull", v.SQLNull.V)
		equal(e, "Zero", v.Zero, types.NullSnowflake{Valid: true})
		equal(e, "keys asked for", e.src.given, 3)
		e.matches(&v)
	}},
	{"KeyOfTextThatIsNoNumberIsMet", func(e *env) {
		e.migrate(&Ticket{}, &TicketStep{})
		v := Ticket{Code: "A", Steps: []TicketStep{{Text: "a"}}}
		e.must(e.db.Create(&v))
		again, other := Ticket{ID: "abc", Code: "A", Steps: []TicketStep{{Text: "b"}}}, Ticket{Code: "B"}
		e.must(e.db.Clauses(doNothing()).Create(&again))
		e.must(e.db.Create(&Ticket{ID: "abc", Code: "B"}))
		e.must(e.db.Clauses(doNothing()).Create(&other))
		equal(e, "IDs of the stored rows", again.ID+" "+other.ID, v.ID+" abc")
		equal(e, "TicketID", again.Steps[0].TicketID, v.ID)
	}},
}
