package sqlxhelper

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/internal/base/pgtext"
	"github.com/snowkey/snowkey/types"
)

var (
	snowflakeType     = reflect.TypeFor[types.Snowflake]()
	snowflakePtrType  = reflect.TypeFor[*types.Snowflake]()
	nullSnowflakeType = reflect.TypeFor[types.NullSnowflake]()
	timeType          = reflect.TypeFor[time.Time]()
	valuerType        = reflect.TypeFor[driver.Valuer]()
)

// A plan is what a struct type means to a mapper. It says which fields are written
// to which columns, which one is the key, and which hold other rows. It is
// immutable once built, and shared by all calls.
type plan struct {
	typ       reflect.Type
	columns   []column
	key       int        // the primary key, as an index into columns
	embedded  []embedded // the pointers that must not be nil
	relations []relation
	// foreign are the columns that a relation sets, as indexes into columns. The
	// relation is of this type or of another one in the same plan. Each has one
	// entry.
	foreign []int
	held    int // the columns whose values are held by their arguments
	// ways counts the fields in the same plan that lead to rows of this type. A
	// field of pointers counts twice, because two of them may be equal. Up to one,
	// only slices that overlap can make two rows one struct.
	ways int
}

// A column is a field that is written.
type column struct {
	name   string       // in the database
	field  string       // in Go, with the embedded structs that lead to it
	typ    reflect.Type // of the field
	index  []int        // for reflect's FieldByIndex
	shared bool         // an embedded pointer leads to it, so two rows may have one
	plain  reflect.Kind // of the field, if its type is predeclared or types.Snowflake
	valuer bool         // the field is a driver.Valuer, or the pointer to it is
	// byAddress: only the pointer to the field is a driver.Valuer.
	byAddress bool
	native    bool        // see pgtext.IsNative
	kind      pgtext.Kind // of what it holds, for PostgreSQL
	pointer   bool        // it holds that behind a pointer
	hold      hold        // how InsertSeq keeps its values
	slot      int         // of a held value, among those of a row
}

// An embedded is a pointer to an embedded struct.
type embedded struct {
	field string
	index []int
}

// A relation is a field that holds rows of another table. They are children, which
// refer to the row with the field, or the one row to which it belongs.
type relation struct {
	field   string
	index   []int
	table   string
	belongs bool // the row with the field refers to the one in it
	many    bool // []T or []*T, not *T
	pointer bool // *T or []*T, not []T
	typ     reflect.Type
	plan    *plan // of typ
	fkName  string
	fk      *column // of the row that refers
}

// tag is the part of the field's tag that names the foreign key.
func (r *relation) tag() string {
	if r.belongs {
		return "belongs_to=" + r.fkName
	}
	return "fk=" + r.fkName
}

// in returns the field of the column in a row. None of the row's embedded pointers is
// nil.
func (c *column) in(row reflect.Value) reflect.Value {
	if len(c.index) == 1 { // FieldByIndex takes longer
		return row.Field(c.index[0])
	}
	return row.FieldByIndex(c.index)
}

// find returns the index of a column, or -1.
func (p *plan) find(name string) int {
	return slices.IndexFunc(p.columns, func(c column) bool { return c.name == name })
}

// newPlan builds the plan of a struct type and of all types that its relations
// reach. They are not shared with the plans of other types, because what is a
// foreign key depends on where one starts.
func newPlan(t reflect.Type, m *reflectx.Mapper) (*plan, error) {
	b := builder{mapper: m, plans: map[reflect.Type]*plan{}, keys: map[string]*plan{}}
	return b.plan(t)
}

// A builder builds one plan.
type builder struct {
	mapper *reflectx.Mapper
	plans  map[reflect.Type]*plan
	keys   map[string]*plan // by table, the first plan with a row for it
}

func (b *builder) plan(t reflect.Type) (*plan, error) {
	if p, ok := b.plans[t]; ok {
		// It may still be under construction, for a type that contains itself. Its
		// columns and the fields of its relations are complete by then. The caller
		// needs no more.
		return p, nil
	}
	p := &plan{typ: t, key: -1}
	b.plans[t] = p
	// The names are from sqlx's own map of the type. They follow tags, the mapper's
	// function for names and the one for tags. Its list of names is not used. That
	// descends into every struct, and so invents columns such as note.string.
	if err := p.addFields(t, b.mapper.TypeMap(t).Tree.Children, spot{}); err != nil {
		return nil, err
	}
	if err := p.findKey(); err != nil {
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

// relate completes a relation of p to rows with the plan other, or returns the
// reason why it cannot be one.
func (b *builder) relate(p *plan, r *relation, other *plan) (problem string) {
	from, to := other, p // which refers to which
	if r.belongs {
		from, to = p, other
	}
	fk := from.find(r.fkName)
	switch {
	case fk < 0:
		return fmt.Sprintf("%s: %v has no field for column %s", r.tag(), from.typ, r.fkName)
	case fk == from.key:
		return fmt.Sprintf("%s: that is the primary key of %v, which needs one of its own", r.tag(), from.typ)
	case !from.columns[fk].holdsKey():
		return fmt.Sprintf("%s: %v.%s is %v, want types.Snowflake, *types.Snowflake or types.NullSnowflake",
			r.tag(), from.typ, from.columns[fk].field, from.columns[fk].typ)
	}
	// One column is set by one belongs_to, and by the fields that hold its row as a
	// child. A row is in only one of those fields. Then the pointer leads back to
	// its parent.
	for i := range from.relations {
		o := &from.relations[i]
		if !o.belongs || o.fkName != r.fkName {
			continue
		}
		if o == r {
			break // the fields after it will find it
		}
		if r.belongs {
			return fmt.Sprintf("%s: field %s sets that column too", r.tag(), o.field)
		}
		if o.typ != to.typ {
			return fmt.Sprintf("%s: by the field %v.%s that column refers to %v", r.tag(), from.typ, o.field, o.typ)
		}
	}
	// What refers to a row of the table refers to its primary key.
	first, ok := b.keys[r.table]
	if !ok {
		b.keys[r.table] = other
	} else if was, is := first.columns[first.key].name, other.columns[other.key].name; was != is {
		return fmt.Sprintf("table %s has the primary key %s in %v and %s in %v", r.table, was, first.typ, is, other.typ)
	}
	r.plan, r.fk = other, &from.columns[fk]
	from.foreign = append(from.foreign, fk)
	other.ways++
	if r.pointer {
		other.ways++
	}
	return ""
}

// addFields adds the fields of t, which is p.typ or a struct embedded in it at a
// spot. infos is what sqlx knows about the same fields, by position. It is nil for
// a field that sqlx does not see.
func (p *plan) addFields(t reflect.Type, infos []*reflectx.FieldInfo, within spot) error {
	for i := range t.NumField() {
		f := t.Field(i)
		var info *reflectx.FieldInfo
		if i < len(infos) {
			info = infos[i]
		}
		here := spot{within.field + f.Name, append(slices.Clone(within.index), i), within.shared, within.fixed}
		if err := p.addField(f, info, here); err != nil {
			return err
		}
	}
	return nil
}

// A spot is where a field is in a row.
type spot struct {
	field  string // with the embedded structs that lead to it
	index  []int
	shared bool
	fixed  bool // below an embedded pointer that reflection cannot replace
}

// addField adds a field, or does nothing for one that is not written.
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
	case info == nil:
		return nil
	case tag.key && f.Anonymous:
		return fail("an embedded struct cannot be the primary key")
	case f.Anonymous:
		return p.addEmbedded(f, info.Children, here)
	}
	if problem := p.addColumn(f, info, tag.key, here); problem != "" {
		return fail(problem)
	}
	return nil
}

// isTagged reports whether a field has a tag that would have it written.
func isTagged(f reflect.StructField) bool {
	_, snow := f.Tag.Lookup(tagKey)
	name, db := f.Tag.Lookup("db")
	return snow || db && name != "-"
}

// addColumn adds a field that is written, or says why it cannot be a column.
func (p *plan) addColumn(f reflect.StructField, info *reflectx.FieldInfo, key bool, here spot) (problem string) {
	c, problem := newColumn(f, info)
	if problem != "" {
		return problem
	}
	c.field, c.index, c.shared = here.field, here.index, here.shared
	if c.hold = holdOf(&c); here.fixed && !key {
		c.hold = byArgument
	}
	if c.hold == byArgument {
		c.slot = p.held
		p.held++
	}
	// Case is ignored, as on SQLite and MySQL. SQLite takes a column twice and drops
	// one of the values.
	if j := slices.IndexFunc(p.columns, func(o column) bool { return strings.EqualFold(o.name, c.name) }); j >= 0 {
		return fmt.Sprintf("column %s is already that of field %s; tag one of them `db:\"-\"`", c.name, p.columns[j].field)
	}
	if key {
		if p.key >= 0 {
			return "a second primary key beside " + p.columns[p.key].field
		}
		p.key = len(p.columns)
	}
	p.columns = append(p.columns, c)
	return ""
}

// addEmbedded adds the fields of an embedded struct. To sqlx every embedded field
// is a struct. One that is a value would be lost.
func (p *plan) addEmbedded(f reflect.StructField, infos []*reflectx.FieldInfo, here spot) error {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == timeType || pgtext.IsValuer(t) {
		if !f.IsExported() && t.Kind() != reflect.Struct {
			return nil // unexported, like any other unexported field
		}
		return &PlanError{Type: p.typ, Field: here.field, Problem: "sqlx does not write an embedded value; give the field a name, or tag it `db:\"-\"`"}
	}
	nothing := len(p.columns) + len(p.relations)
	before := len(p.embedded)
	if f.Type.Kind() == reflect.Pointer {
		p.embedded = append(p.embedded, embedded{field: here.field, index: here.index})
		here.shared, here.fixed = true, here.fixed || !f.IsExported()
	}
	if err := p.addFields(t, infos, spot{here.field + ".", here.index, here.shared, here.fixed}); err != nil {
		return err
	}
	if len(p.columns)+len(p.relations) == nothing {
		p.embedded = p.embedded[:before] // nothing is read through it: it may be nil
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
	c = column{name: info.Name, typ: f.Type, plain: plainKind(f.Type)}
	c.kind, c.pointer = pgtext.KindOf(f.Type)
	if pgtext.IsValuer(f.Type) {
		c.valuer, c.byAddress = true, !f.Type.Implements(valuerType)
		c.native = pgtext.IsNative(f.Type)
		return c, ""
	}
	t, list := f.Type, false
	// Bounded, because a type may be a slice of itself.
	for range 8 {
		if t.Kind() != reflect.Pointer && t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
			break
		}
		list = list || t.Kind() != reflect.Pointer
		if t = t.Elem(); pgtext.IsValuer(t) {
			return c, "" // an array of them, for a driver that takes arrays
		}
	}
	switch {
	case t.Kind() != reflect.Struct || !hasExported(t):
		// A value, or for the driver to decide. A struct with no exported field
		// is a value to sqlx too: time.Time, netip.Addr, big.Int.
		return c, ""
	case list:
		return c, fmt.Sprintf("%v is no column; tag it `db:\"-\" snowkey:\"table,fk=column\"` if these are child rows, `snowkey:\"-\"` if they are not to be written", f.Type)
	case f.Type.Kind() == reflect.Pointer:
		return c, fmt.Sprintf("%v is no column; tag it `db:\"-\" snowkey:\"table,fk=column\"` if it is a child row, `snowkey:\"table,belongs_to=column\"` if it is the row to which this one refers, `snowkey:\"-\"` if it is not to be written", f.Type)
	default:
		return c, fmt.Sprintf("%v is no column; make it a driver.Valuer, embed it to have its fields as columns, or tag it `snowkey:\"-\"` if it is not to be written", f.Type)
	}
}

// plainKind returns the kind of a type that is predeclared, or types.Snowflake.
func plainKind(t reflect.Type) reflect.Kind {
	if t == snowflakeType || t.PkgPath() == "" {
		return t.Kind()
	}
	return reflect.Invalid
}

// newRelation returns the relation of a field, or the reason why it cannot be
// one.
func newRelation(f reflect.StructField, tag tag) (r relation, problem string) {
	if !f.IsExported() {
		return r, "the field is not exported, so its rows could not be given keys"
	}
	r = relation{table: tag.table, fkName: tag.foreign, belongs: tag.belongs}
	t := f.Type
	if t.Kind() == reflect.Slice {
		r.many, t = true, t.Elem()
	}
	if t.Kind() == reflect.Pointer {
		r.pointer, t = true, t.Elem()
	}
	if r.belongs && (t.Kind() != reflect.Struct || r.many || !r.pointer) {
		return r, fmt.Sprintf("%v cannot hold the row that %s refers to, want *T with a struct T", f.Type, tag.foreign)
	}
	if t.Kind() != reflect.Struct || !r.many && !r.pointer {
		// A struct by value always has a child: nothing says that there is none.
		return r, fmt.Sprintf("%v cannot hold child rows, want []T, []*T or *T with a struct T", f.Type)
	}
	r.typ = t
	return r, ""
}

// findKey settles the primary key: the field with the tag, else column id.
func (p *plan) findKey() error {
	if p.key < 0 {
		p.key = slices.IndexFunc(p.columns, func(c column) bool { return strings.EqualFold(c.name, "id") })
	}
	if p.key < 0 {
		return &PlanError{Type: p.typ, Problem: "no primary key: want a field of type types.Snowflake for column id, or with the tag `snowkey:\"pk\"`"}
	}
	if c := p.columns[p.key]; c.typ != snowflakeType {
		return &PlanError{Type: p.typ, Field: c.field, Problem: fmt.Sprintf("the primary key is %v, want types.Snowflake", c.typ)}
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

// id returns the primary key of a row, to read and to write. row is addressable.
func (p *plan) id(row reflect.Value) *types.Snowflake {
	return p.columns[p.key].ref(row).(*types.Snowflake)
}

// isForeign reports whether a relation sets the column.
func (p *plan) isForeign(name string) bool {
	return slices.ContainsFunc(p.foreign, func(i int) bool { return p.columns[i].name == name })
}

// holdsKey reports whether the column is a key, or may be a foreign one.
func (c *column) holdsKey() bool {
	return c.typ == snowflakeType || c.typ == snowflakePtrType || c.typ == nullSnowflakeType
}

// ref returns a pointer to the field of the column in a row.
func (c *column) ref(row reflect.Value) any { return c.in(row).Addr().Interface() }

// foreignKey returns the foreign key behind a pointer to its field. If null, it
// would be written as NULL. A key of zero that is not null would be written as 0.
func foreignKey(ref any) (id types.Snowflake, null bool) {
	switch fk := ref.(type) {
	case *types.Snowflake:
		return *fk, false
	case **types.Snowflake:
		if *fk != nil {
			return **fk, false
		}
	case *types.NullSnowflake:
		if fk.Valid {
			return fk.Snowflake, false
		}
	}
	return 0, true
}

// setForeignKey writes a foreign key.
func setForeignKey(ref any, id types.Snowflake) {
	switch fk := ref.(type) {
	case *types.Snowflake:
		*fk = id
	case **types.Snowflake:
		// A pointer of its own: the one that is there may be shared, with other
		// rows or with the parent's key.
		own := id
		*fk = &own
	case *types.NullSnowflake:
		*fk = types.NullSnowflake{Snowflake: id, Valid: true}
	}
}
