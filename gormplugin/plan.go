package gormplugin

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/readback"
)

// An installation is the plugin on one database. It keeps what it learns of the models for
// the life of that database.
type installation struct {
	plugin *Plugin
	policy policy
	traits *dialect.Traits
	models sync.Map // *schema.Schema → *model
	server server
}

// A model is what is known of one schema.
type model struct {
	schema          *schema.Schema
	policy          policy
	current         atomic.Pointer[plan]
	indexes         func() []readback.Key // computed once, see declaredKeys
	meetsUndeclared atomic.Bool           // its rows have met others by a key that it does not declare, see dropUpsert
}

// model returns what is known of the model of stmt. The relations of a model in
// the map are parsed.
func (in *installation) model(stmt *gorm.Statement) *model {
	if m, ok := in.models.Load(stmt.Schema); ok {
		return m.(*model)
	}
	// The errors of other models are ignored here; GORM refuses their rows.
	_ = awaitParsed(stmt.DB, stmt.Schema)
	return in.modelOf(stmt.Schema, stmt.DB.NamingStrategy)
}

// modelOf returns what is known of a model whose relations are parsed.
func (in *installation) modelOf(s *schema.Schema, namer schema.Namer) *model {
	m, ok := in.models.Load(s)
	if !ok {
		m, _ = in.models.LoadOrStore(s, &model{
			schema:  s,
			policy:  in.policy,
			indexes: sync.OnceValue(func() []readback.Key { return declaredKeys(s, namer) }),
		})
	}
	return m.(*model)
}

// awaitParsed waits until the models to which s leads are parsed, and returns the errors of
// those that cannot be.
//
// GORM's Parse waits for the model that it is given, but not for the models of its
// relations, which it returns incomplete while another goroutine parses them. A key may
// then look like one to fill, although it is a foreign key. It runs once per model.
//
// The caller must not hold a Relationships.Mux, because a parser may need it.
func awaitParsed(db *gorm.DB, s *schema.Schema) (err error) {
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
	key       *column  // the key whose shard a row is on, filled or not; nil if it has none
	shard     *column  // the field with the tag snowkey:"shard"; nil if there is none
	wrong     []error  // each a *ModelError, if the model cannot work
	err       error    // wrong as one error
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
	p := m.policy.plan(m.schema)
	m.current.Store(p)
	return p
}

// plan makes the plan of s. It requires that Relationships.Mux of s is held for reading.
func (k policy) plan(s *schema.Schema) *plan {
	p := &plan{relations: len(s.Relationships.Relations)}
	var wrong []error
	for _, rel := range slices.AppendSeq(relationships(s), maps.Values(s.Relationships.Relations)) {
		wrong = append(wrong, k.narrowForeignKeys(rel)...)
	}
	wrong = byText(wrong)
	for _, f := range s.Fields {
		if f.DBName == "" || s.FieldsByDBName[f.DBName] != f {
			continue // no column, or shadowed by a field further out
		}
		if holdsSnowflake(f) {
			p.checked = append(p.checked, newColumn(f))
		}
		filled, err := k.fills(s, f)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		c := newColumn(f)
		if filled && f.PrimaryKey || k.requires(f) {
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
	wrong = append(wrong, k.planShard(s, p)...)
	if p.wrong, p.err = wrong, errors.Join(wrong...); len(wrong) == 1 {
		p.err = wrong[0]
	}
	return p
}
