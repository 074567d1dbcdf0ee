package gormplugin

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"
)

// The setting in a gorm tag: `gorm:"snowflake"` asks for a key, `gorm:"snowflake:-"`
// forbids it.
const (
	tagName = "SNOWFLAKE" // as schema.ParseTagSetting spells it
	tagOff  = "-"
)

// An installation is the plugin on one database. It keeps what it learns of the models for
// the life of that database.
type installation struct {
	src      Source
	database *database
	models   sync.Map // *schema.Schema → *model
}

// A model is what is known of one schema.
type model struct {
	schema  *schema.Schema
	current atomic.Pointer[plan]
	indexes func() []unique // computed once, see declaredUniques
	tables  sync.Map        // table, as SQL → *table, see creation.catalog
}

// model returns what is known of the model of stmt. A model in the map is settled.
func (in *installation) model(stmt *gorm.Statement) *model {
	s, namer := stmt.Schema, stmt.DB.NamingStrategy
	if m, ok := in.models.Load(s); ok {
		return m.(*model)
	}
	// The errors of other models are ignored here; GORM refuses their rows.
	_ = settle(stmt.DB, s)
	m, _ := in.models.LoadOrStore(s, &model{
		schema:  s,
		indexes: sync.OnceValue(func() []unique { return declaredUniques(s, namer) }),
	})
	return m.(*model)
}

// settle waits until the models to which s leads are parsed, and returns the errors of
// those that cannot be.
//
// GORM's Parse waits for the model that it is given, but not for the models of its
// relations, which it returns incomplete while another goroutine parses them. A key may
// then look like one to fill, although it is a foreign key. settle runs once per model.
//
// The caller must not hold a Relationships.Mux, because a parser may need it.
func settle(db *gorm.DB, s *schema.Schema) (err error) {
	list, seen := []*schema.Schema{s}, map[*schema.Schema]bool{s: true}
	for len(list) > 0 {
		s, list = list[0], list[1:]
		stmt := &gorm.Statement{DB: db}
		if failure := stmt.Parse(reflect.New(s.ModelType).Interface()); failure != nil {
			err = errors.Join(err, failure)
			continue
		}
		for _, rel := range relationships(s) {
			if !seen[rel.FieldSchema] {
				seen[rel.FieldSchema] = true
				list = append(list, rel.FieldSchema)
			}
		}
	}
	return err
}

// A plan says which columns of a model get keys. It is immutable.
type plan struct {
	columns   []column // the key itself first, where it is among them
	checked   []column // those that types.Snowflake reads back, filled or not
	required  []column // keys of rows that are never stored as 0 or NULL, filled or not
	err       error    // a *ModelError, if the model cannot work
	relations int      // how many the schema had when the plan was made
}

// plan returns the plan of m. GORM learns of a has-one or has-many relation when it parses
// the model that declares it, perhaps after the model with the foreign key was used, so the
// plan is made again when the number of relations has changed.
func (m *model) plan() *plan {
	rels := &m.schema.Relationships
	rels.Mux.RLock()
	defer rels.Mux.RUnlock()
	if p := m.current.Load(); p != nil && p.relations == len(rels.Relations) {
		return p
	}
	p := newPlan(m.schema)
	m.current.Store(p)
	return p
}

// newPlan requires that Relationships.Mux of s is held for reading.
func newPlan(s *schema.Schema) *plan {
	p := &plan{relations: len(s.Relationships.Relations)}
	for _, rel := range slices.AppendSeq(relationships(s), maps.Values(s.Relationships.Relations)) {
		if p.err = narrowForeignKey(rel); p.err != nil {
			return p
		}
	}
	for _, f := range s.Fields {
		if f.DBName == "" || s.FieldsByDBName[f.DBName] != f {
			continue // no column, or shadowed by a field further out
		}
		if holdsSnowflake(f) {
			p.checked = append(p.checked, newColumn(f, integer))
		}
		filled, err := fillable(s, f)
		if err != nil {
			p.err = err
			return p
		}
		k, _ := kindOf(f.IndirectFieldType)
		c := newColumn(f, k)
		if f.PrimaryKey && (filled || f == s.PrioritizedPrimaryField && holdsSnowflake(f) && !leftToOthers(f)) {
			p.required = append(p.required, c)
		}
		if !filled {
			continue
		}
		if f.PrimaryKey && (len(p.columns) == 0 || !p.columns[0].field.PrimaryKey || f == s.PrioritizedPrimaryField) {
			p.columns = append([]column{c}, p.columns...)
		} else {
			p.columns = append(p.columns, c)
		}
	}
	return p
}

// fillable reports whether the plugin fills f, a column of s, by its tag and its type. A
// zero primary key alone proves nothing, because it may also be a foreign key. The error is
// a [*ModelError].
func fillable(s *schema.Schema, f *schema.Field) (bool, error) {
	setting, tagged := f.TagSettings[tagName]
	ours := isKeyType(f.IndirectFieldType)
	switch {
	case tagged && setting == tagOff:
		return false, nil
	case tagged && setting != tagName:
		return false, &ModelError{s.String(), f.Name, fmt.Sprintf("the tag snowflake:%s is unknown; use snowflake or snowflake:-", setting)}
	case !tagged && (f != s.PrioritizedPrimaryField || !ours && !derived(f.IndirectFieldType)):
		return false, nil
	case counted(f) && (tagged || ours):
		return false, &ModelError{s.String(), f.Name, "autoIncrement leaves the key to the database, which may store 0 or NULL; remove autoIncrement for keys of the plugin, or add snowflake:- for those of the database"}
	case givenElsewhere(s, f):
		return false, nil
	case !tagged && !ours:
		return false, undecided(s, f)
	case f.Serializer != nil:
		return false, &ModelError{s.String(), f.Name, "a key with a serializer cannot be filled, because its stored value may differ; remove the serializer, or tag the field snowflake:-"}
	}
	if _, ok := kindOf(f.IndirectFieldType); !ok {
		return false, &ModelError{s.String(), f.Name, fmt.Sprintf("the tag snowflake does not accept the type %s; use types.Snowflake, types.ID, types.NullSnowflake, types.NullID, sql.Null of a key, int64, uint64 or string", f.FieldType)}
	}
	return true, nil
}

// undecided returns the error of a key whose type is derived and that has no tag.
func undecided(s *schema.Schema, f *schema.Field) error {
	way := "tag it snowflake;autoIncrement:false for keys of the plugin, autoIncrement for those of the database, snowflake:- for your own"
	if f.IndirectFieldType.Kind() == reflect.Struct {
		way = "use types.Snowflake or types.ID, or tag it snowflake:- for keys of your own"
	}
	return &ModelError{s.String(), f.Name, fmt.Sprintf("the type %s does not say who gives the key; %s", f.FieldType, way)}
}

// derived reports whether t may be defined as types.Snowflake. Reflection sees int64 in
// "type OrderID types.Snowflake", and GORM lets the database count such a key.
func derived(t reflect.Type) bool {
	switch {
	case t.PkgPath() == "":
		return false
	case t.Kind() == reflect.Struct:
		return t.NumField() > 0 && t.Field(0).Anonymous && isKeyType(t.Field(0).Type)
	default:
		return t.Kind() == reflect.Int64
	}
}

// givenElsewhere reports whether the value of f is never written, or comes from the
// database or from another row. The tags tell what the database fills, because GORM sets
// HasDefaultValue on every integer key.
func givenElsewhere(s *schema.Schema, f *schema.Field) bool {
	if leftToOthers(f) || !f.Creatable || counted(f) {
		return true
	}
	for _, rel := range s.Relationships.Relations { // those that are known by now
		if slices.ContainsFunc(rel.References, func(ref *schema.Reference) bool { return ref.ForeignKey == f }) {
			return true
		}
	}
	return false
}

// counted reports whether the tag of f lets the database count.
func counted(f *schema.Field) bool { return utils.CheckTruth(f.TagSettings["AUTOINCREMENT"]) }

// leftToOthers reports whether the tag of f leaves the value to a default of the database
// or to the program.
func leftToOthers(f *schema.Field) bool {
	_, ok := f.TagSettings["DEFAULT"]
	return ok || f.TagSettings[tagName] == tagOff
}

// narrowForeignKey returns an error if a foreign key of rel cannot hold the key that it
// refers to. GORM returns none: it stores the key modulo 2^32 in an int32, and the
// character with that code point in a string.
func narrowForeignKey(rel *schema.Relationship) error {
	for _, ref := range rel.References {
		key, fk := ref.PrimaryKey, ref.ForeignKey
		if key == nil || fk == nil || !wide(key) || holdsKey(fk.IndirectFieldType) {
			continue
		}
		return &ModelError{fk.Schema.String(), fk.Name, fmt.Sprintf(
			"%s cannot hold the 64-bit key %s.%s that it refers to; use %s", fk.FieldType, key.Schema.Name, key.Name, key.IndirectFieldType)}
	}
	return nil
}

// wide reports whether f is a number that the plugin may fill.
func wide(f *schema.Field) bool {
	return isKeyType(f.IndirectFieldType) || numeric(f) && tagged(f)
}

func holdsKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64:
		return false
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return t.Bits() == 64
	default:
		return true // a Scanner, which checks its values itself
	}
}

// Filled returns the fields of s to which the plugin assigns keys, the primary key first. It
// goes by the relations that GORM has parsed so far, and a has-one or has-many counts once
// the model that declares it is parsed. The error is the [ModelError] that every create of
// the model returns. Filled is safe for concurrent use.
//
// The plugin fills the prioritized primary key if its type is types.Snowflake, a types.ID or a
// pointer to one. The prioritized primary key is the field ID, also of a composite key such as
// (TenantID, ID), or else the only primary key. The plugin fills other columns, and keys of
// type int64, uint64, string, types.NullSnowflake, types.NullID and sql.Null[types.Snowflake], if
// they have the tag:
//
//	Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
//
// A string receives the decimal form. A nullable column is filled if it is NULL, and keeps a
// present zero unless it is a primary key. Without <-:create, an upsert with UpdateAll
// overwrites the stored value of a second key. Add autoIncrement:false to an int64 or uint64
// key, because otherwise the database counts as well.
//
// The plugin never fills a foreign key of a relation, a column that the database fills
// (default:), a column that GORM does not create (->, <-:update), or a column with the tag
// snowflake:-. GORM learns that the key of a has-one child is a foreign key when it parses the
// parent, so tag that key snowflake:- if such children are created first, or if the relation
// is polymorphic or declared in an embedded struct.
//
// Select without the key still writes the key, and Omit of the key is [ErrNoKey]. Other
// tagged columns are filled only if they are written.
//
// These models are a ModelError:
//   - A key of type types.Snowflake or types.ID, or with the tag snowflake, that also has
//     autoIncrement, for which the database would give a key, or none. Add snowflake:- if the
//     database should.
//   - A primary key of a type of your own, such as type OrderID types.Snowflake, until its
//     tag says who gives the key. To GORM it is an int64 that the database may count. Use a
//     types.ID, or the tag snowflake;autoIncrement:false for keys of the plugin, autoIncrement
//     for keys of the database, and snowflake:- for your own.
//   - A foreign key that cannot hold the key that it refers to, because it has fewer than 64
//     bits, or is a string that refers to a number.
func Filled(s *schema.Schema) ([]*schema.Field, error) {
	m := model{schema: s}
	p := m.plan()
	if p.err != nil {
		return nil, p.err
	}
	fields := make([]*schema.Field, len(p.columns))
	for i := range p.columns {
		fields[i] = p.columns[i].field
	}
	return fields, nil
}

// ours reports whether f has a type of package types, or a nullable form of it.
func ours(f *schema.Field) bool {
	return isKeyType(f.IndirectFieldType) || isNullType(f.IndirectFieldType)
}

// tagged reports whether f has the tag snowflake.
func tagged(f *schema.Field) bool { return f.TagSettings[tagName] == tagName }
