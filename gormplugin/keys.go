package gormplugin

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/keytype"
)

// The setting in a gorm tag: `gorm:"snowflake"` asks for a key, `gorm:"snowflake:-"`
// forbids it.
const (
	tagName = "SNOWFLAKE" // as schema.ParseTagSetting spells it
	tagOff  = "-"
)

// A policy decides which fields hold keys of the plugin, by their types, their tags and the
// options. Everything in the package that has to know asks it. The zero policy belongs to a
// plugin without options.
type policy struct {
	integers  bool // see WithIntegerKeys
	rowIDs    bool // the database stores an integer in 64 bits, whatever its type says
	unsharded bool // the source has no shards
}

// policy returns the policy of p on db. A nil p has no options.
func (p *Plugin) policy(db *gorm.DB) policy {
	return policy{p != nil && p.integers, traitsOf(db).RowIDs, p != nil && !p.supply.Sharded()}
}

// policyOf returns the policy of the plugin on db.
func policyOf(db *gorm.DB) policy {
	if db == nil || db.Config == nil || db.Dialector == nil {
		return policy{}
	}
	p, _ := db.Plugins[pluginName].(*Plugin)
	return p.policy(db)
}

// key reports whether f holds keys as numbers, filled by the plugin or by others.
func (k policy) key(f *schema.Field) bool {
	return numeric(f) && (hasKeyType(f) || tagged(f) || k.takes(f))
}

// takes reports whether f is a primary key that GORM would let the database count, and that
// [WithIntegerKeys] therefore takes over. It does not look at relations.
func (k policy) takes(f *schema.Field) bool {
	if !k.integers || !f.PrimaryKey || !f.AutoIncrement || leftToOthers(f) || isKeyType(f.IndirectFieldType) {
		return false
	}
	switch f.IndirectFieldType.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		// GORM also marks the key of an embedded model, which is not that of the row.
		return f == f.Schema.PrioritizedPrimaryField || counted(f)
	default:
		return false
	}
}

// requires reports whether f, even if it is a foreign key, is never stored as 0 or NULL.
func (k policy) requires(f *schema.Field) bool {
	return f.PrimaryKey && f.Creatable && !leftToOthers(f) &&
		(k.takes(f) || f == f.Schema.PrioritizedPrimaryField && holdsSnowflake(f))
}

// fills reports whether the plugin fills f, a column of s. A zero primary key alone proves
// nothing, because it may also be a foreign key. The error is a [*ModelError].
func (k policy) fills(s *schema.Schema, f *schema.Field) (bool, error) {
	setting, tagged := f.TagSettings[tagName]
	typed, taken := isKeyType(f.IndirectFieldType), k.takes(f)
	fail := func(reason string, args ...any) (bool, error) {
		return false, &ModelError{Model: s.String(), Field: f.Name, Reason: fmt.Sprintf(reason, args...)}
	}
	switch {
	case tagged && setting == tagOff:
		return false, nil
	case tagged && setting != tagName:
		return fail("the tag snowflake:%s is unknown; use snowflake or snowflake:-", setting)
	case !tagged && !taken && (f != s.PrioritizedPrimaryField || !typed && !derived(f.IndirectFieldType)):
		return false, nil
	case counted(f) && (tagged || typed):
		return fail("autoIncrement leaves the key to the database, which may store 0 or NULL; remove autoIncrement for keys of the plugin, or add snowflake:- for those of the database")
	case leftToOthers(f) || !f.Creatable || counted(f) && !taken || foreign(s, f):
		return false, nil
	case !tagged && !typed && !taken:
		return false, undecided(s, f)
	case f.Serializer != nil:
		return fail("a key with a serializer cannot be filled, because its stored value may differ; remove the serializer, or tag the field snowflake:-")
	case taken:
		if what, remedy := k.narrow(f); what != "" {
			return fail("%s cannot hold the 64-bit keys of WithIntegerKeys; %s and widen the column, or tag it snowflake:- for keys of the database", what, remedy)
		}
	}
	switch e := keytype.Check(f.FieldType, keytype.Integers|keytype.Texts); {
	case e != nil && e.Methods:
		return fail("%v; use an integer without them, types.Snowflake or types.ID, or tag the field snowflake:-", e)
	case e != nil:
		return fail("the tag snowflake does not accept the type %s; use types.Snowflake, types.ID, types.NullSnowflake, types.NullID, sql.Null of a key, a 64-bit integer or string", f.FieldType)
	}
	return true, nil
}

// undecided returns the error of a key whose type is derived and that has no tag.
func undecided(s *schema.Schema, f *schema.Field) error {
	remedy := "tag it snowflake;autoIncrement:false for keys of the plugin, autoIncrement for those of the database, snowflake:- for your own"
	if f.IndirectFieldType.Kind() == reflect.Struct {
		remedy = "use types.Snowflake or types.ID, or tag it snowflake:- for keys of your own"
	}
	return &ModelError{Model: s.String(), Field: f.Name, Reason: fmt.Sprintf("the type %s does not say who gives the key; %s", f.FieldType, remedy)}
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

// foreign reports whether f refers to another row, in one of the relations that are known
// by now.
func foreign(s *schema.Schema, f *schema.Field) bool {
	for _, rel := range s.Relationships.Relations {
		if slices.ContainsFunc(rel.References, func(ref *schema.Reference) bool { return ref.ForeignKey == f }) {
			return true
		}
	}
	return false
}

// counted reports whether the tag of f lets the database count. GORM sets AutoIncrement and
// HasDefaultValue on every integer key.
func counted(f *schema.Field) bool { return utils.CheckTruth(f.TagSettings["AUTOINCREMENT"]) }

// leftToOthers reports whether the tag of f leaves the value to a default of the database
// or to the program.
func leftToOthers(f *schema.Field) bool {
	_, ok := f.TagSettings["DEFAULT"]
	return ok || f.TagSettings[tagName] == tagOff
}

// narrowForeignKeys returns an error for each foreign key of rel that cannot hold the key
// that it refers to. GORM returns none: it stores the key modulo 2^32 in an int32, and the
// character with that code point in a string.
func (k policy) narrowForeignKeys(rel *schema.Relationship) (wrong []error) {
	for _, ref := range rel.References {
		key, fk := ref.PrimaryKey, ref.ForeignKey
		if key == nil || fk == nil || !k.key(key) {
			continue
		}
		reason, remedy := "", "use "+key.IndirectFieldType.String()
		what, change := k.narrow(fk)
		switch e := misfit(fk); {
		case e != nil && e.Methods:
			reason = fk.FieldType.String() + " has a Value or Scan method, which may store or read something else than"
		case e != nil:
			reason = fk.FieldType.String() + " cannot hold"
		case k.takes(key) && what != "":
			reason, remedy = what+" cannot hold", change+" and widen the column"
		default:
			continue
		}
		wrong = append(wrong, &ModelError{Model: fk.Schema.String(), Field: fk.Name, Reason: fmt.Sprintf(
			"%s the 64-bit key %s.%s that it refers to; %s", reason, key.Schema.Name, key.Name, remedy)})
	}
	return wrong
}

// misfit returns why f holds no number with the bits of a key, or nil. A type of no basic kind
// that keytype does not know may be a Scanner, which checks its values itself.
func misfit(f *schema.Field) *keytype.TypeError {
	e := keytype.Check(f.FieldType, keytype.Integers)
	switch kind := f.IndirectFieldType.Kind(); {
	case e == nil, e.Narrow, e.Methods, kind == reflect.String, reflect.Bool <= kind && kind <= reflect.Float64:
		return e
	default:
		return nil
	}
}

// narrowTypes are the column types that have fewer than 64 bits in one of the databases.
var narrowTypes = []string{"int", "integer", "int2", "int4", "tinyint", "smallint", "mediumint", "serial", "serial2", "serial4", "smallserial"}

// narrow returns what makes the column of f, a field that holds a key, or f itself too narrow
// for it, and how to change the field, or "".
func (k policy) narrow(f *schema.Field) (what, change string) {
	typ, _, _ := dialect.Parts(strings.ToLower(f.TagSettings["TYPE"]))
	typ, _, _ = strings.Cut(typ, " ") // such as unsigned
	_, sized := f.TagSettings["SIZE"]
	setting := ""
	switch {
	case misfit(f) != nil && misfit(f).Narrow:
		return f.FieldType.String() + ", which has 32 bits on this platform,", "use " + f.IndirectFieldType.Kind().String() + "64"
	case slices.Contains(narrowTypes, typ) && !(k.rowIDs && typ == "integer"):
		setting = "type:" + f.TagSettings["TYPE"]
	case sized && f.Size < 64:
		setting = "size:" + f.TagSettings["SIZE"]
	default:
		return "", ""
	}
	return "the tag " + setting, "remove " + setting + " from the tag"
}

// byText returns the errors of list in the order of their texts, each once.
func byText(list []error) []error {
	slices.SortFunc(list, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return slices.CompactFunc(list, func(a, b error) bool { return a.Error() == b.Error() })
}

// Filled returns the fields of s to which the plugin on db assigns keys, the primary key
// first; without a plugin on db, those to which one without options would. It goes by the
// relations that GORM has parsed so far, and a has-one or has-many counts once the model
// that declares it is parsed. The error is the one that every create of the model returns, a
// [ModelError] or several, joined. Filled is safe for concurrent use.
//
// The plugin fills the prioritized primary key if its type is types.Snowflake, a types.ID or a
// pointer to one. The prioritized primary key is the field ID, also of a composite key such as
// (TenantID, ID), or else the only primary key. With [WithIntegerKeys] it fills primary keys
// of type int, int64, uint and uint64, and of types made of them, that GORM lets the database
// count: the prioritized one, unless its tag says autoIncrement:false, and any other with
// autoIncrement. Smaller types stay with the database. The plugin fills other columns, and keys of
// type int64, uint64, string, types.NullSnowflake, types.NullID, sql.Null[types.Snowflake] and
// sql.NullInt64, if they have the tag:
//
//	Public types.Snowflake `gorm:"snowflake;uniqueIndex;<-:create"`
//
// A string receives the decimal form. A pointer is replaced, because other rows may share what it
// points to. A nullable column is filled if it is NULL, and keeps a
// present zero unless it is a primary key. Without <-:create, an upsert with UpdateAll
// overwrites the stored value of a second key. Add autoIncrement:false to an int64 or uint64
// key, because otherwise the database counts as well.
//
// The plugin never fills a foreign key of a relation, a column that the database fills
// (default:), a column that GORM does not create (->, <-:update), or a column with the tag
// snowflake:-. GORM learns that the key of a has-one child is a foreign key when it parses the
// parent. A child that is created before gets a key of its own, so call
// [Plugin.Verify] with all models when the program starts, or tag that key snowflake:-, as is
// also necessary if the relation is polymorphic or declared in an embedded struct.
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
//   - A key that the plugin would fill, or a foreign key to one, of an integer type with a Value or
//     Scan method of its own, which may store or read something else.
//   - A foreign key that cannot hold the key that it refers to, because it has fewer than 64
//     bits, or is a string that refers to a number.
//   - With WithIntegerKeys, a key that the plugin would fill, or a foreign key that refers to
//     it, with a tag such as size:32, type:int or type:serial, and int and uint on platforms
//     where they have 32 bits.
func Filled(db *gorm.DB, s *schema.Schema) ([]*schema.Field, error) {
	m := model{schema: s, policy: policyOf(db)}
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

// hasKeyType reports whether f has a type of package types, or a nullable form of it.
func hasKeyType(f *schema.Field) bool {
	return keytype.FieldOf(f.FieldType, 0).Holds()
}

// tagged reports whether f has the tag snowflake.
func tagged(f *schema.Field) bool { return f.TagSettings[tagName] == tagName }
