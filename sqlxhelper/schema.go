package sqlxhelper

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx/reflectx"
)

// A schema is what all calls of a Helper with one row type, table and dialect have in common:
// what of the rows is written, into which tables, and in which order. It is made by the first of
// these calls, immutable, and shared by the others.
type schema struct {
	dialect *traits
	tables  []*table // the table of the call first
	walks   bool     // the calls follow relations
	// sharesKeys: two rows may have one key in memory.
	sharesKeys bool
}

type schemaKey struct {
	typ     reflect.Type
	mapper  *reflectx.Mapper
	dialect *traits
	table   string
	deep    bool // InsertGraph
}

// schemas has those of a Helper, under its options.
type schemas struct {
	made  atomic.Int64
	cache sync.Map // schemaKey to *schema
}

// maxSchemas bounds the cache, for programs that make up names of tables.
const maxSchemas = 1000

// A table is a database table and the row type that a call writes into it. Two types with
// different columns may share a database table.
type table struct {
	name        string
	plan        *plan
	key         *column  // the primary key, among the plan's columns
	at          int      // its place in the schema
	firstOfType int      // the place of the first table for rows of the same type, see rows.visited
	related     []*table // by relation of the plan, the table of its rows; empty unless the calls follow them

	// The place in the order of writing, see schema.sort.
	circle, rank int
	turns        bool // its rows may refer to each other, directly or through other tables

	// Set by the options, see config.apply.
	columns []column // to write
	upsert  *upsert  // or nil
	read    []destination

	keys    []*column // those columns that hold keys, the primary key first
	chunk   int       // how many rows a full statement has
	head    string    // INSERT INTO table (columns)
	tail    string    // what follows the values: ON CONFLICT …, or nothing
	lookUp  string    // of Returning, see selectHead
	refused error     // instead of a head: why rows cannot be written
}

// schema returns the schema of a call. Two goroutines may both make it; they are equal, and the
// last one is kept.
func (h *Helper) schema(t reflect.Type, c *conn, table string, deep bool) (*schema, error) {
	key := schemaKey{t, c.mapper, c.dialect, table, deep}
	if kept, ok := h.schemas.cache.Load(key); ok {
		return kept.(*schema), nil
	}
	if problem := tableProblem(table); problem != "" {
		return nil, fmt.Errorf("%w: %s", ErrName, problem)
	}
	p, err := h.plan(t, c.mapper)
	if err != nil {
		return nil, err
	}
	s := newSchema(c.dialect, p, table, deep)
	if err := h.config.apply(s, c.mapper); err != nil {
		return nil, err
	}
	for _, t := range s.tables {
		t.complete(s.dialect)
	}
	if h.schemas.made.Add(1)%maxSchemas == 0 {
		h.schemas.cache.Clear()
	}
	h.schemas.cache.Store(key, s)
	return s, nil
}

// newSchema finds the tables of all rows that a call may write, and sorts them.
func newSchema(d *traits, p *plan, name string, deep bool) *schema {
	s := &schema{dialect: d, walks: deep && len(p.relations) > 0}
	s.add(name, p)
	if !s.walks {
		return s
	}
	for i := 0; i < len(s.tables); i++ { // which grows
		t := s.tables[i]
		for j := range t.plan.relations {
			o := &t.plan.relations[j]
			t.related = append(t.related, s.add(o.table, o.plan))
		}
	}
	s.sort()
	return s
}

// add adds a table, unless it is there already, and returns it.
func (s *schema) add(name string, p *plan) *table {
	t := &table{name: name, plan: p, key: &p.columns[p.key], at: len(s.tables), firstOfType: len(s.tables), columns: p.columns}
	for _, o := range s.tables {
		if o.plan != p {
			continue
		}
		if o.name == name {
			return o
		}
		t.firstOfType = o.firstOfType
	}
	s.sharesKeys = s.sharesKeys || t.key.shared
	s.tables = append(s.tables, t)
	return t
}

// sort ranks the tables so that each comes after all to which its rows may refer. Tables that
// refer to each other in a circle follow each other and share the number of the circle.
func (s *schema) sort() {
	refers := s.references()
	rank := 0
	var visit func(t *table)
	visit = func(t *table) {
		if t.rank > 0 {
			return
		}
		for _, o := range s.tables {
			if refers[t.at][o.at] && !refers[o.at][t.at] {
				visit(o)
			}
		}
		circle := rank
		for _, o := range s.tables {
			if o == t || refers[t.at][o.at] && refers[o.at][t.at] {
				rank++
				o.rank, o.circle, o.turns = rank, circle, refers[o.at][o.at]
			}
		}
	}
	for _, t := range s.tables {
		visit(t)
	}
}

// references reports, for two tables by their places, whether rows of the first may refer to rows
// of the second, directly or through others.
func (s *schema) references() [][]bool {
	refers := make([][]bool, len(s.tables))
	for i := range refers {
		refers[i] = make([]bool, len(s.tables))
	}
	for i, t := range s.tables {
		for j, o := range t.related {
			if t.plan.relations[j].belongs {
				refers[i][o.at] = true
			} else {
				refers[o.at][i] = true
			}
		}
	}
	for by := range refers {
		for from := range refers {
			for to := range refers {
				refers[from][to] = refers[from][to] || refers[from][by] && refers[by][to]
			}
		}
	}
	return refers
}

// complete sets what follows from the columns.
func (t *table) complete(d *traits) {
	for i := range t.columns {
		if c := &t.columns[i]; c.name == t.key.name {
			t.keys = slices.Insert(t.keys, 0, c)
		} else if c.key.Holds() {
			t.keys = append(t.keys, c)
		}
	}
	t.chunk = d.chunk(len(t.columns))
	t.head, t.refused = d.insertHead(t.name, t.columns)
	if t.read != nil {
		t.lookUp = t.selectHead(d)
	}
}
