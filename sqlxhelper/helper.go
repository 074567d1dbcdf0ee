package sqlxhelper

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/jmoiron/sqlx/reflectx"
)

// A Helper inserts structs through sqlx. It is safe for concurrent use if its
// [Source] is, and its zero value is not usable: [New] makes one. It keeps one
// plan per struct type and sqlx mapper, and what it has learned of the tables of
// a database, so a program should have one Helper for each database.
type Helper struct {
	src    Source
	config config
	*memory
}

// A memory is what a Helper and those made [Helper.With] options share.
type memory struct {
	plans  sync.Map // planKey to *plan
	tables sync.Map // name to *description, on PostgreSQL
}

type planKey struct {
	typ    reflect.Type
	mapper *reflectx.Mapper
}

// New returns a Helper that takes missing keys from src. With a nil src all rows
// must have keys, and one that has none is an error that matches [ErrSource].
func New(src Source, opts ...Option) *Helper {
	h := &Helper{src: src, memory: &memory{}}
	return h.With(opts...)
}

// With returns a Helper with more options and the same source, which shares what
// h has learned. An option replaces the one that h has. It is cheap, made to be
// used for a single call:
//
//	err := h.With(sqlxhelper.OnConflictDoNothing("number")).InsertMany(ctx, db, "orders", orders)
//
// h stays as it is, and may be in use by others meanwhile. An option that does
// not fit the rows is an error of each call, not of With.
func (h *Helper) With(opts ...Option) *Helper {
	changed := *h
	for _, o := range opts {
		o(&changed.config)
	}
	return &changed
}

// Insert inserts one row, given as a pointer to a struct, into table ("orders"
// or "shop.orders", bare: it is quoted here). Relations are not followed:
// [Helper.InsertGraph] does that. The options of the Helper, see [Helper.With],
// say which columns are written or read back, and what becomes of a row that is
// stored already.
//
// If the key is zero, one is taken from the source and set in the struct, and it
// stays set if the insert fails; after an upsert it is that of the stored row.
//
// What is refused before the key is set and before any SQL is an error that
// matches [ErrArgument], [ErrDB], [ErrDriver] or [ErrName], a [*PlanError] or a
// [*RowError], of which some match [ErrForeignKey]; a missing key is [ErrSource],
// or wraps what the source said. What the database refuses, a Value method, or
// ctx that ends between statements, is an [*InsertError], as a rule, and matches
// [ErrDuplicateKey] or [ErrUnresolved] where it is that; a row that the database
// dropped without a word is a [*CountError]. Others wrap what the database, its
// driver or ctx said. After any of them the row is not stored, except where the
// connection broke before the database could answer, and a transaction in which
// the call was made is usable as before, unless the error matches [ErrTxBroken].
func (h *Helper) Insert(ctx context.Context, db DB, table string, row any) error {
	b, err := oneRow("Insert", row)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, false)
}

// InsertMany inserts rows, given as []T, []*T or a pointer to either with a
// struct T, into table, as [Helper.Insert] does one, with the same errors. No
// rows is no error and no SQL, if their type and the options can be used at all.
// All missing keys are taken from the source at once, before the first statement;
// if the source fails, no row was given one.
//
// As many statements are sent as the rows need, and ctx is looked at before each
// of them. After an error none of the rows is stored; the package comment says
// under which conditions. The error names the row, as far as that is known.
func (h *Helper) InsertMany(ctx context.Context, db DB, table string, rows any) error {
	b, err := manyRows("InsertMany", rows)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, false)
}

// InsertGraph inserts roots, given as a *struct or like the rows of
// [Helper.InsertMany], into table, and with them all rows to which their
// relations lead, and the relations of these, and so on, into the tables that the
// tags name: children, which refer to the row with the field, and the rows to
// which that one belongs. The package comment shows the tags.
//
// All keys and foreign keys are set before the first statement. Then each table
// is written once, those first to which others refer, in one transaction or
// under one savepoint: round trips grow with the tables, not with the rows. Only
// tables that refer to each other in a circle are written once per level.
//
// A foreign key must be unset or the key that it is going to be; any other is a
// [*RowError] that matches [ErrForeignKey], for moving a row to another parent is
// not what an insert should do. A struct in two places, rows that refer to each
// other in a circle, and rows that share a key, or a foreign key to different
// rows, by an embedded pointer that is the same in both, are a [*RowError] too.
// The other errors are those of [Helper.Insert].
func (h *Helper) InsertGraph(ctx context.Context, db DB, table string, roots any) error {
	load := manyRows
	if t := reflect.TypeOf(roots); t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		load = oneRow
	}
	b, err := load("InsertGraph", roots)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, true)
}

// insert does all that can fail without effect first, then sets keys, then
// writes.
func (h *Helper) insert(ctx context.Context, db DB, table string, b batch, deep bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sqlxhelper: insert into %s: %w", table, err)
	}
	c, err := connect(db)
	if err != nil {
		return err
	}
	d, err := h.dialectFor(db)
	if err != nil {
		return err
	}
	p, err := h.plan(b.typ, c.mapper)
	if err != nil {
		return err
	}
	if problem := tableProblem(table); problem != "" {
		return fmt.Errorf("%w: %s", ErrName, problem)
	}
	rows, err := newWalk(b, p, table, deep)
	if err != nil {
		return err
	}
	s, err := h.config.selection(d, c.mapper, rows)
	if err != nil {
		return err
	}
	w, err := newWriter(d, &h.config, rows, s)
	if err != nil || len(rows.structs) == 0 {
		return err
	}
	if err := rows.assign(ctx, h.src); err != nil {
		return err
	}
	w.memory = h.memory
	err = w.write(ctx, c)
	w.learn(err)
	if err == nil {
		w.note(recordOf(db))
	}
	return err
}

// dialectFor returns what the dialect of db does, or ErrDriver.
func (h *Helper) dialectFor(db DB) (*traits, error) {
	if h.config.dialect == nil {
		d, err := dialectOf(db.DriverName())
		if err != nil {
			return nil, err
		}
		return traitsOf(d), nil
	}
	if !h.config.dialect.Valid() {
		return nil, fmt.Errorf("%w: WithDialect was given %v, want SQLite, PostgreSQL or MySQL", ErrDriver, *h.config.dialect)
	}
	return traitsOf(*h.config.dialect), nil
}

// plan returns the plan of a struct type. Two goroutines may both build it; the
// plans are equal, and one is kept.
func (h *Helper) plan(t reflect.Type, m *reflectx.Mapper) (*plan, error) {
	key := planKey{t, m}
	if p, ok := h.plans.Load(key); ok {
		return p.(*plan), nil
	}
	p, err := newPlan(t, m)
	if err != nil {
		return nil, err
	}
	kept, _ := h.plans.LoadOrStore(key, p)
	return kept.(*plan), nil
}
