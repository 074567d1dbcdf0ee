package gormplugin

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"
)

// The setting in a gorm tag: `gorm:"snowflake"` asks for a key,
// `gorm:"snowflake:-"` forbids it.
const (
	tagName = "SNOWFLAKE" // as schema.ParseTagSetting spells it
	tagOff  = "-"
)

// An installation is the plugin on one database. What it learns of the models
// lives as long as that database, not as long as the plugin.
type installation struct {
	src    Source
	models sync.Map // *schema.Schema → *model
}

// A model is what is known of one schema.
type model struct {
	schema  *schema.Schema
	current atomic.Pointer[plan]
	indexes func() []unique // computed once, see declaredUniques
	stored  sync.Map        // table, as SQL → []unique, see storedUniques
}

// model returns what is known of the model of stmt. The first to ask settles it;
// those who find it in the map know that this was done.
func (in *installation) model(stmt *gorm.Statement) *model {
	s, namer := stmt.Schema, stmt.DB.NamingStrategy
	if m, ok := in.models.Load(s); ok {
		return m.(*model)
	}
	// A model that cannot be parsed is no reason to refuse this one: GORM refuses the
	// rows of it, if there are any.
	_ = settle(stmt.DB, s, map[*schema.Schema]bool{})
	m, _ := in.models.LoadOrStore(s, &model{
		schema:  s,
		indexes: sync.OnceValue(func() []unique { return declaredUniques(s, namer) }),
	})
	return m.(*model)
}

// settle waits until the models to which s leads are parsed, those in settled apart,
// to which it adds them. It returns the errors of those that cannot be.
//
// GORM's Parse waits for the model that it is asked for, and not for those in its
// relations. While another goroutine parses one of these, GORM hands out what it has
// of it, and a key that is a foreign key of a relation that is not there yet looks
// like one to be filled. Nobody parses again, so this is done once for a model.
//
// It must not be called with a Relationships.Mux held, which a parser may need that
// is waited for.
func settle(db *gorm.DB, s *schema.Schema, settled map[*schema.Schema]bool) (err error) {
	for list := []*schema.Schema{s}; len(list) > 0; {
		s, list = list[0], list[1:]
		if settled[s] {
			continue
		}
		settled[s] = true
		stmt := &gorm.Statement{DB: db}
		if failure := stmt.Parse(reflect.New(s.ModelType).Interface()); failure != nil {
			err = errors.Join(err, failure)
			continue
		}
		rels := &s.Relationships
		for _, rel := range slices.Concat(rels.BelongsTo, rels.HasOne, rels.HasMany, rels.Many2Many) {
			list = append(list, rel.FieldSchema)
		}
	}
	return err
}

// A plan says which columns of a model get keys. It does not change.
type plan struct {
	columns   []column // the key itself first, where it is among them
	err       error    // a *ModelError: what in the model cannot work
	relations int      // how many the schema had when the plan was made
}

// plan returns the plan of m. GORM learns of a has-one or has-many relation
// when it parses the model that has it, which may be after the model that holds
// the foreign key was used. So a plan is good for one number of relations.
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
	for _, rel := range s.Relationships.Relations {
		if p.err = narrowForeignKey(rel); p.err != nil {
			return p
		}
	}
	rels := &s.Relationships
	for _, rel := range slices.Concat(rels.BelongsTo, rels.HasOne, rels.HasMany, rels.Many2Many) {
		if p.err = narrowForeignKey(rel); p.err != nil {
			return p
		}
	}
	for _, f := range s.Fields {
		if f.DBName == "" || s.FieldsByDBName[f.DBName] != f {
			continue // no column, or shadowed by a field further out
		}
		setting, tagged := f.TagSettings[tagName]
		switch {
		case tagged && setting == tagOff:
			continue
		case tagged && setting != tagName:
			p.err = &ModelError{s.String(), f.Name, fmt.Sprintf("the tag snowflake:%s is unknown; use snowflake or snowflake:-", setting)}
			return p
		case !tagged && (f != s.PrioritizedPrimaryField || f.IndirectFieldType != snowflakeType && !derived(f.IndirectFieldType)):
			continue // never "whatever primary key is zero": it may be a foreign key as well
		case !f.Creatable || filledByDatabase(f) || foreign(s, f):
			continue
		case !tagged && f.IndirectFieldType != snowflakeType:
			way := "tag it snowflake;autoIncrement:false for keys of the plugin, autoIncrement for those of the database, snowflake:- for your own"
			if f.IndirectFieldType.Kind() == reflect.Struct {
				way = "use types.Snowflake, or tag it snowflake:- for keys of your own"
			}
			p.err = &ModelError{s.String(), f.Name, fmt.Sprintf("the type %s does not say who gives the key; %s", f.FieldType, way)}
			return p
		}
		if f.Serializer != nil {
			p.err = &ModelError{s.String(), f.Name, "a key with a serializer cannot be assigned, since what is stored may not be the key; remove the serializer, or opt out with snowflake:-"}
			return p
		}
		k, ok := kindOf(f.IndirectFieldType)
		if !ok {
			p.err = &ModelError{s.String(), f.Name, fmt.Sprintf("the tag snowflake wants a types.Snowflake, types.NullSnowflake, sql.Null[types.Snowflake], int64, uint64 or string, not %s", f.FieldType)}
			return p
		}
		c := newColumn(f, k)
		if f.PrimaryKey && (len(p.columns) == 0 || !p.columns[0].field.PrimaryKey || f == s.PrioritizedPrimaryField) {
			p.columns = append([]column{c}, p.columns...)
		} else {
			p.columns = append(p.columns, c)
		}
	}
	return p
}

// derived reports whether t may be made of types.Snowflake. Of type OrderID
// types.Snowflake nothing but int64 is left, and GORM lets the database count it.
func derived(t reflect.Type) bool {
	switch {
	case t.PkgPath() == "":
		return false
	case t.Kind() == reflect.Struct:
		return t.NumField() > 0 && t.Field(0).Anonymous && t.Field(0).Type == snowflakeType
	default:
		return t.Kind() == reflect.Int64
	}
}

// filledByDatabase reports whether the model asks for a value of the database.
// GORM takes every integer key for one that counts by itself unless told
// otherwise, and sets HasDefaultValue; that is no wish of the model's.
func filledByDatabase(f *schema.Field) bool {
	_, ok := f.TagSettings["DEFAULT"]
	return ok || utils.CheckTruth(f.TagSettings["AUTOINCREMENT"])
}

// foreign reports whether f refers to another row, in any relation that is
// known by now: its value is then somebody else's, and a new one would refer to
// nothing.
func foreign(s *schema.Schema, f *schema.Field) bool {
	for _, rel := range s.Relationships.Relations {
		for _, ref := range rel.References {
			if ref.ForeignKey == f {
				return true
			}
		}
	}
	return false
}

// narrowForeignKey returns an error if a foreign key of rel cannot hold the key
// that it refers to. GORM would not say so: it stores the key modulo 2^32 in an
// int32, and in a string the one character with the key as its code point.
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

// wide reports whether f is a key of ours that is a number.
func wide(f *schema.Field) bool {
	k, ok := kindOf(f.IndirectFieldType)
	return f.IndirectFieldType == snowflakeType || ok && k != text && f.TagSettings[tagName] == tagName
}

func holdsKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64:
		return false
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return t.Bits() == 64
	default:
		return true // a Scanner, which answers for itself
	}
}
