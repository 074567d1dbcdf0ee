package sqlxhelper

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/internal/base/keytype"
	"github.com/snowkey/snowkey/internal/base/pgtext"
	"github.com/snowkey/snowkey/types"
)

var (
	timeType   = reflect.TypeFor[time.Time]()
	valuerType = reflect.TypeFor[driver.Valuer]()
)

// A plan says which fields of a struct type are written to which columns, which of them is the
// primary key, and which fields hold other rows. It depends on the mapper, is immutable once
// built, and is shared by all calls.
type plan struct {
	typ       reflect.Type
	columns   []column
	key       int        // the primary key, as an index into columns
	shard     int        // the field whose key names the shard of a row, likewise; -1 if there is none
	embedded  []embedded // the pointers that must not be nil
	relations []relation
	// foreign has an index into columns for each relation, of this type or of another one in
	// the graph, that sets a column.
	foreign []int
	bytes   []int // the columns that are byte slices in the struct itself, likewise
	tagged  *plan // of the type at the root: the first plan with a shard, or nil
	// paths counts the fields in the graph of types that lead to rows of this type. A field of
	// pointers counts twice, because two of them may be equal. With at most one, only
	// overlapping slices can make two rows one struct.
	paths int
}

// A column is a field that is written to a column.
type column struct {
	name   string        // in the database
	field  string        // in Go, with the embedded structs that lead to it
	typ    reflect.Type  // of the field
	index  []int         // for reflect's FieldByIndex
	shared bool          // an embedded pointer leads to it, so two rows may have one
	key    keytype.Field // how it holds a key; an integer holds one only where builder.holdKey says so
	basic  reflect.Kind  // of the field, if its type is predeclared, types.Snowflake or types.ID
	valuer bool          // the field is a driver.Valuer, or the pointer to it is
	// byAddress: only the pointer to the field is a driver.Valuer.
	byAddress bool
	native    bool        // see pgtext.IsNative
	kind      pgtext.Kind // of its values, for PostgreSQL
}

// An embedded is a pointer to an embedded struct.
type embedded struct {
	field string
	index []int
}

// in returns the field of the column in a row without nil embedded pointers.
func (c *column) in(row reflect.Value) reflect.Value {
	if len(c.index) == 1 { // FieldByIndex takes longer
		return row.Field(c.index[0])
	}
	return row.FieldByIndex(c.index)
}

// indexOf returns the index of a column, or -1.
func (p *plan) indexOf(name string) int {
	return slices.IndexFunc(p.columns, func(c column) bool { return c.name == name })
}

// missing returns the field of an embedded pointer that is nil in a row, or "".
func (p *plan) missing(row reflect.Value) (field string) {
	for _, e := range p.embedded {
		if row.FieldByIndex(e.index).IsNil() {
			return e.field
		}
	}
	return ""
}

// newPlan builds the plan of a struct type and of all types that its relations reach. Other
// types get plans of their own, because the foreign keys depend on the type at the root.
func newPlan(t reflect.Type, m *reflectx.Mapper, integers bool) (*plan, error) {
	b := builder{mapper: m, integers: integers, plans: map[reflect.Type]*plan{}, keys: map[string]*plan{}}
	p, err := b.plan(t)
	if err != nil {
		return nil, err
	}
	p.tagged = b.tagged
	return p, nil
}

// A builder builds one plan.
type builder struct {
	mapper   *reflectx.Mapper
	integers bool // see WithIntegerKeys
	plans    map[reflect.Type]*plan
	keys     map[string]*plan // by table, the first plan with a row for it
	tagged   *plan            // the first with a shard
}

func (b *builder) plan(t reflect.Type) (*plan, error) {
	if p, ok := b.plans[t]; ok {
		// A type that contains itself meets its plan under construction. The columns are
		// complete by then, and the caller needs no more.
		return p, nil
	}
	p := &plan{typ: t, key: -1, shard: -1}
	b.plans[t] = p
	// The names come from sqlx's own map of the type, which follows tags and the functions of
	// the mapper. Its list of names is not used: it descends into every struct, and invents
	// columns such as note.string.
	if err := p.addFields(t, b.mapper.TypeMap(t).Tree.Children, spot{}); err != nil {
		return nil, err
	}
	if err := b.findKey(p); err != nil {
		return nil, err
	}
	if err := b.checkShard(p); err != nil {
		return nil, err
	}
	for i := range p.relations {
		r := &p.relations[i]
		other, err := b.plan(r.typ)
		if err != nil {
			return nil, err
		}
		if problem := b.relate(p, r, other); problem != "" {
			return nil, &PlanError{Type: t, Field: r.field, Problem: problem}
		}
	}
	return p, nil
}

// addFields adds the fields of t, which is p.typ or a struct embedded in it. infos has what
// sqlx knows about the same fields, by position, and nil for a field that sqlx does not see.
func (p *plan) addFields(t reflect.Type, infos []*reflectx.FieldInfo, within spot) error {
	for i := range t.NumField() {
		f := t.Field(i)
		var info *reflectx.FieldInfo
		if i < len(infos) {
			info = infos[i]
		}
		here := spot{within.field + f.Name, append(slices.Clone(within.index), i), within.shared}
		if err := p.addField(f, info, here); err != nil {
			return err
		}
	}
	return nil
}

// A spot is the place of a field in a row.
type spot struct {
	field  string // with the embedded structs that lead to it
	index  []int
	shared bool
}

// addField adds a field, unless it is not written.
func (p *plan) addField(f reflect.StructField, info *reflectx.FieldInfo, here spot) error {
	fail := func(problem string) error {
		return &PlanError{Type: p.typ, Field: here.field, Problem: problem}
	}
	if !f.IsExported() && !f.Anonymous {
		if isTagged(f) {
			return fail("the field has a tag but is not exported, so it would never be written")
		}
		return nil
	}
	tag, problem := parseTag(f.Tag)
	switch {
	case problem != "":
		return fail(problem)
	case tag.skip:
		return nil
	case tag.table != "":
		r, problem := newRelation(f, tag)
		if problem != "" {
			return fail(problem)
		}
		r.field, r.index = here.field, here.index
		p.relations = append(p.relations, r)
		return nil
	case tag.key && info == nil:
		return fail("it is tagged as the primary key, and as no column")
	case tag.shard && info == nil:
		return fail("it is tagged with the shard, and as no column")
	case info == nil:
		return nil
	case tag.key && f.Anonymous:
		return fail("an embedded struct cannot be the primary key")
	case tag.shard && f.Anonymous:
		return fail("an embedded struct holds no key that could name the shard")
	case f.Anonymous:
		return p.addEmbedded(f, info.Children, here)
	}
	if problem := p.addColumn(f, info, tag, here); problem != "" {
		return fail(problem)
	}
	return nil
}

// isTagged reports whether a tag asks for a field to be written.
func isTagged(f reflect.StructField) bool {
	_, snow := f.Tag.Lookup(tagKey)
	name, db := f.Tag.Lookup("db")
	return snow || db && name != "-"
}

// addColumn adds the column of a field, or returns the reason why it cannot be one.
func (p *plan) addColumn(f reflect.StructField, info *reflectx.FieldInfo, tag tag, here spot) (problem string) {
	c, problem := newColumn(f, info)
	if problem != "" {
		return problem
	}
	c.field, c.index, c.shared = here.field, here.index, here.shared
	if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Uint8 && !c.shared {
		p.bytes = append(p.bytes, len(p.columns))
	}
	// Case is ignored, as on SQLite and MySQL. SQLite accepts a column twice and drops one of
	// the values.
	if j := slices.IndexFunc(p.columns, func(o column) bool { return strings.EqualFold(o.name, c.name) }); j >= 0 {
		return fmt.Sprintf("column %s is already that of field %s; tag one of them `db:\"-\"`", c.name, p.columns[j].field)
	}
	if tag.key {
		if p.key >= 0 {
			return "a second primary key beside " + p.columns[p.key].field + "; tag the field that gets the new keys, and no other column of the primary key"
		}
		p.key = len(p.columns)
	}
	if tag.shard {
		if p.shard >= 0 {
			return "a second field with the shard beside " + p.columns[p.shard].field
		}
		p.shard = len(p.columns)
	}
	p.columns = append(p.columns, c)
	return ""
}

// addEmbedded adds the fields of an embedded struct. sqlx takes every embedded field for a
// struct and would lose one that is a value.
func (p *plan) addEmbedded(f reflect.StructField, infos []*reflectx.FieldInfo, here spot) error {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == timeType || pgtext.IsValuer(t) {
		if !f.IsExported() && t.Kind() != reflect.Struct {
			return nil // like any other unexported field
		}
		return &PlanError{Type: p.typ, Field: here.field, Problem: "sqlx does not write an embedded value; give the field a name, or tag it `db:\"-\"`"}
	}
	nothing := len(p.columns) + len(p.relations)
	before := len(p.embedded)
	if f.Type.Kind() == reflect.Pointer {
		p.embedded = append(p.embedded, embedded{field: here.field, index: here.index})
		here.shared = true
	}
	if err := p.addFields(t, infos, spot{here.field + ".", here.index, here.shared}); err != nil {
		return err
	}
	if len(p.columns)+len(p.relations) == nothing {
		p.embedded = p.embedded[:before] // nothing is read through it, so it may be nil
	}
	return nil
}

// newColumn returns the column of a field, or the reason why it cannot be one.
func newColumn(f reflect.StructField, info *reflectx.FieldInfo) (c column, problem string) {
	if info.Name == "" {
		return c, fmt.Sprintf("the tag `%s` gives the column no name, and sqlx would leave it out", f.Tag)
	}
	if info.Path != info.Name {
		return c, fmt.Sprintf("sqlx calls the column %q, because the struct that is embedded has a tag; remove that tag", info.Path)
	}
	if problem := nameProblem(info.Name); problem != "" {
		return c, problem
	}
	c = column{name: info.Name, typ: f.Type, basic: basicKind(f.Type), key: keytype.FieldOf(f.Type, 0)}
	c.kind, _ = pgtext.KindOf(f.Type)
	if pgtext.IsValuer(f.Type) {
		c.valuer, c.byAddress = true, !f.Type.Implements(valuerType)
		c.native = pgtext.IsNative(f.Type)
		return c, ""
	}
	t, list := f.Type, false
	// A type may be a slice of itself.
	for range 8 {
		if t.Kind() != reflect.Pointer && t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			break
		}
		list = list || t.Kind() != reflect.Pointer
		if t = t.Elem(); pgtext.IsValuer(t) {
			return c, "" // for a driver that takes arrays
		}
	}
	switch {
	case t.Kind() != reflect.Struct || !hasExported(t):
		// The driver decides. A struct without exported fields, such as time.Time, netip.Addr
		// and big.Int, is a value to sqlx too.
		return c, ""
	case list:
		return c, fmt.Sprintf("%v is no column; tag it `db:\"-\" snowkey:\"table,fk=column\"` if these are child rows, `snowkey:\"-\"` if they are not to be written", f.Type)
	case f.Type.Kind() == reflect.Pointer:
		return c, fmt.Sprintf("%v is no column; tag it `db:\"-\" snowkey:\"table,fk=column\"` if it is a child row, `snowkey:\"table,belongs_to=column\"` if it is the row to which this one refers, `snowkey:\"-\"` if it is not to be written", f.Type)
	default:
		return c, fmt.Sprintf("%v is no column; make it a driver.Valuer, embed it to have its fields as columns, or tag it `snowkey:\"-\"` if it is not to be written", f.Type)
	}
}

// basicKind returns the kind of a type that is predeclared, types.Snowflake or types.ID.
func basicKind(t reflect.Type) reflect.Kind {
	if keytype.Untyped(t) == keytype.Snowflake || t.PkgPath() == "" {
		return t.Kind()
	}
	return reflect.Invalid
}

// findKey finds the primary key: the field with the tag, or else column id.
func (b *builder) findKey(p *plan) error {
	if p.key < 0 {
		p.key = slices.IndexFunc(p.columns, func(c column) bool { return strings.EqualFold(c.name, "id") })
	}
	if p.key < 0 {
		want := "types.Snowflake or types.ID"
		if b.integers {
			want += ", or a 64-bit integer,"
		}
		return &PlanError{Type: p.typ, Problem: "no primary key: want a field of type " + want + " for column id, or with the tag `snowkey:\"pk\"`"}
	}
	if c := &p.columns[p.key]; !b.holdKey(c) || !c.key.Plain() {
		return &PlanError{Type: p.typ, Field: c.field, Problem: keyProblem(c.typ, b.integers)}
	}
	return nil
}

// hasExported reports whether a struct has a field that sqlx would map.
func hasExported(t reflect.Type) bool {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() || f.Anonymous {
			return true
		}
	}
	return false
}

// id returns the primary key of an addressable row, for reading and writing.
func (p *plan) id(row reflect.Value) *types.Snowflake {
	return keytype.At(p.columns[p.key].in(row))
}

// tagKey is the key of this package in a struct tag.
const tagKey = "snowkey"

const wantTag = `want "pk", "shard", "-", "table,fk=column" or "table,belongs_to=column"`

// A tag is the parsed value of a snowkey tag: it excludes the field, marks the primary key or
// the key that names the shard, or names the table and the foreign key of a relation.
type tag struct {
	skip    bool   // "-"
	key     bool   // "pk"
	shard   bool   // "shard"; a table of that name has ",fk=column" behind it
	table   string // of a relation
	foreign string // the foreign key, in the children or, with belongs, in the struct itself
	belongs bool
}

// parseTag reads the snowkey part of a struct tag. It also checks the form of the whole tag:
// where it is malformed, reflect and sqlx stop reading, and the field silently gets another
// name or is lost.
func parseTag(t reflect.StructTag) (parsed tag, problem string) {
	if !wellFormed(string(t)) {
		return tag{}, fmt.Sprintf("malformed struct tag `%s`: want key:\"value\" pairs with a space between them", t)
	}
	text, ok := t.Lookup(tagKey)
	switch {
	case !ok:
		return tag{}, ""
	case text == "-":
		return tag{skip: true}, ""
	case text == "pk":
		return tag{key: true}, ""
	case text == "shard":
		return tag{shard: true}, ""
	}
	if parsed, problem = parseRelation(text); problem != "" {
		problem = fmt.Sprintf("snowkey tag %q: %s", text, problem)
	}
	return parsed, problem
}

// wellFormed reports whether the whole of a tag is key:"value" pairs, as reflect.StructTag
// describes them.
func wellFormed(tag string) bool {
	for {
		tag = strings.TrimLeft(tag, " ")
		if tag == "" {
			return true
		}
		colon := strings.IndexByte(tag, ':')
		if colon < 1 || strings.ContainsFunc(tag[:colon], func(r rune) bool { return r <= ' ' || r == '"' || r == 0x7f }) {
			return false
		}
		tag = tag[colon+1:]
		value, err := strconv.QuotedPrefix(tag)
		if err != nil || value[0] != '"' {
			return false
		}
		tag = tag[len(value):]
	}
}
