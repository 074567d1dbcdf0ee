package schemacheck

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/internal/base/keytype"
)

// A seenModel is a model, and the columns that the plugin fills in it.
type seenModel struct {
	schema *schema.Schema
	filled []string // sorted
}

// A wantedColumn is a column that holds keys.
type wantedColumn struct {
	field  *schema.Field
	text   bool          // the field is a string
	filled bool          // by the plugin
	refers *schema.Field // the key to which a constraint binds it
	// Set by resolve.
	in               *table // nil: the database has none
	target           string // the type that the column should have
	unsigned, signed bool   // as it has to be on MySQL
}

func (w *wantedColumn) table() string { return w.field.Schema.Table }

// finding returns a finding on w.
func (w *wantedColumn) finding(p Problem, is, want, fix string, sql ...string) Finding {
	return Finding{p, modelName(w.field.Schema), w.field.Name, w.table(), w.field.DBName, is, want, fix, sql}
}

// ofTable returns f as a finding on the whole table.
func (f Finding) ofTable() Finding {
	f.Field, f.Column = "", ""
	return f
}

// modelName returns the Go type of s, or the name of a join table, whose type GORM has
// made.
func modelName(s *schema.Schema) string {
	if s.ModelType.Name() == "" {
		return s.Name
	}
	return s.String()
}

// model finds what is wrong with s itself, and notes its columns.
func (c *checker) model(s *schema.Schema) {
	fields, err := gormplugin.Filled(c.db, s)
	if err != nil {
		return // see verify
	}
	var filled []string
	for _, f := range fields {
		filled = append(filled, f.DBName)
	}
	slices.Sort(filled)
	if f := gormplugin.OwnKey(s); f != nil && len(filled) == 0 {
		c.add(Finding{
			Problem: OwnKey, Model: modelName(s), Field: f.Name, Table: s.Table, Column: f.DBName, Is: f.FieldType.String(),
			Fix: "nothing, if the program sets it in each row, which the tag snowflake:- says; the tag snowflake lets the plugin fill it",
		})
	}
	c.shared(seenModel{s, filled})
	for _, f := range s.Fields {
		if f.DBName == "" || s.FieldsByDBName[f.DBName] != f {
			continue
		}
		if slices.Contains(filled, f.DBName) || ours(f) {
			c.want(&wantedColumn{field: f, text: isText(f), filled: slices.Contains(filled, f.DBName)})
		}
	}
	c.relations(&s.Relationships)
}

// verify reports what [gormplugin.Plugin.Verify] says.
func (c *checker) verify(schemas []*schema.Schema, models []any) {
	var none *gormplugin.Plugin
	plugin, _ := c.db.Plugins[none.Name()].(*gormplugin.Plugin)
	list, _ := plugin.Verify(c.db, models...).(interface{ Unwrap() []error })
	if list == nil {
		return
	}
	for _, err := range list.Unwrap() {
		var e *gormplugin.ModelError
		if !errors.As(err, &e) {
			c.add(Finding{Problem: NotInstalled, Is: err.Error(), Fix: "call db.Use(gormplugin.New(source)), and after it no plugin that changes its callbacks"})
			continue
		}
		f := Finding{Problem: BadModel, Model: e.Model, Field: e.Field, Is: e.Reason}
		if errors.Is(e, gormplugin.ErrUnfilled) {
			f.Problem = NoKey
			s := schemas[slices.IndexFunc(schemas, func(s *schema.Schema) bool { return s.String() == e.Model })]
			if f.Table = s.Table; e.Field != "" {
				f.Column = s.PrioritizedPrimaryField.DBName
			}
		}
		c.add(f)
	}
}

// shared reports models of the table of m that disagree with it.
func (c *checker) shared(m seenModel) {
	for _, other := range c.seen {
		if other.schema.Table == m.schema.Table && !slices.Equal(other.filled, m.filled) {
			c.add(Finding{
				Problem: SharedTable, Model: modelName(m.schema), Table: m.schema.Table,
				Is:   fmt.Sprintf("filled in %s, but in %s for %s", columnList(m.filled), columnList(other.filled), modelName(other.schema)),
				Want: "the same columns in both",
				Fix:  "give both models the same key fields and tags",
			})
		}
	}
	c.seen = append(c.seen, m)
}

func columnList(names []string) string {
	if len(names) == 0 {
		return "no column"
	}
	return strings.Join(names, " and ")
}

// ours reports whether f has a type of package types, or a nullable form of it.
func ours(f *schema.Field) bool { return keytype.FieldOf(f.FieldType, 0).Holds() }

// fills reports whether the plugin fills f.
func (c *checker) fills(f *schema.Field) bool {
	fields, err := gormplugin.Filled(c.db, f.Schema)
	return err == nil && slices.Contains(fields, f)
}

// isUnsigned reports whether GORM makes the column of f, a number, unsigned on MySQL.
func isUnsigned(f *schema.Field) bool {
	k := f.IndirectFieldType.Kind()
	return k == reflect.Uint || k == reflect.Uint64
}

func isText(f *schema.Field) bool { return f.IndirectFieldType.Kind() == reflect.String }

// relations notes the foreign keys, in any table, that refer to keys of ours or have one of
// our types.
func (c *checker) relations(rels *schema.Relationships) {
	rels.Mux.RLock()
	list, embedded := byName(rels.Relations), byName(rels.EmbeddedRelations)
	rels.Mux.RUnlock() // fills locks it as well
	for _, rel := range list {
		for _, ref := range rel.References {
			key, fk := ref.PrimaryKey, ref.ForeignKey
			if key != nil && fk != nil && fk.DBName != "" && (ours(key) || c.fills(key) || ours(fk)) {
				c.pointer(fk)
				c.reference(rel, key, fk)
			}
		}
	}
	for _, rels := range embedded {
		c.relations(rels)
	}
}

// byName returns the values of m in the order of their names.
func byName[T any](m map[string]T) (list []T) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[name])
	}
	return list
}

// reference notes the column of fk, which refers to key.
func (c *checker) reference(rel *schema.Relationship, key, fk *schema.Field) {
	w := &wantedColumn{field: fk, text: isText(fk)}
	if fk.IndirectFieldType.Kind() == reflect.Struct && !ours(fk) { // such as a sql.NullString
		w.text = isText(key)
	}
	// A constraint of the database holds the relation, unless it is polymorphic, with rows
	// that refer to several tables.
	if rel.Polymorphic == nil && !rel.Field.IgnoreMigration && rel.Field.TagSettings["CONSTRAINT"] != "-" {
		w.refers = key
	}
	c.want(w)
}

// want notes a column, which may be a key in one place and a reference in another. A field
// that the model keeps out of migrations may have no column at all.
func (c *checker) want(w *wantedColumn) {
	if w.field.IgnoreMigration {
		return
	}
	for _, known := range c.wanted {
		if known.table() == w.table() && known.field.DBName == w.field.DBName {
			known.filled = known.filled || w.filled
			if known.refers == nil {
				known.refers = w.refers
			}
			return
		}
	}
	c.wanted = append(c.wanted, w)
}

// pointer reports a foreign key that is a pointer.
func (c *checker) pointer(f *schema.Field) {
	if f.FieldType.Kind() != reflect.Pointer || keytype.Untyped(f.FieldType.Elem()) != keytype.Snowflake || slices.Contains(c.pointers, f) {
		return
	}
	c.pointers = append(c.pointers, f)
	w := wantedColumn{field: f}
	want := "types.NullSnowflake"
	if f.FieldType.Elem() != keytype.Snowflake {
		want = "types.NullID"
	}
	c.add(w.finding(PointerReference, f.FieldType.String(), want, "change the type of the field; the column stays as it is"))
}
