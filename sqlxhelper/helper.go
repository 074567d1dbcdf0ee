package sqlxhelper

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/jmoiron/sqlx/reflectx"
)

// A Helper inserts structs through sqlx. It is safe for concurrent use if its
// [Source] is; must not be copied; and its zero value is not usable: [New] makes
// one. It keeps one plan per struct type and sqlx mapper, so one Helper should
// serve a whole program.
type Helper struct {
	src     Source
	dialect *Dialect // nil: by the driver name
	plans   sync.Map // planKey to *plan
}

type planKey struct {
	typ    reflect.Type
	mapper *reflectx.Mapper
}

// An Option changes a [Helper] as [New] makes it.
type Option func(*Helper)

// WithDialect says which dialect all databases speak that the Helper is given,
// whatever their driver names are. A dialect that is none of the constants makes
// every call an error that matches [ErrDriver].
func WithDialect(d Dialect) Option {
	return func(h *Helper) { h.dialect = &d }
}

// New returns a Helper that takes missing keys from src. With a nil src all rows
// must have keys, and one that has none is an error that matches [ErrSource].
func New(src Source, opts ...Option) *Helper {
	h := &Helper{src: src}
	for _, o := range opts {
		o(h)
	}
	return h
}

// Insert inserts one row, given as a pointer to a struct, into table ("orders"
// or "shop.orders", bare: it is quoted here). Children are not inserted:
// [Helper.InsertGraph] does that.
//
// If the key is zero, one is taken from the source and set in the struct, and it
// stays set if the insert fails. Errors match [ErrArgument], [ErrDB],
// [ErrDriver], [ErrName], [ErrSource] or [ErrForeignKey], are a [*PlanError], a
// [*RowError] or a [*CountError], or wrap what the source, the context or the
// database said; after any of them the row is not stored, except where the
// connection broke before the database could answer.
func (h *Helper) Insert(ctx context.Context, db DB, table string, row any) error {
	b, err := oneRow("Insert", row)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, false)
}

// InsertMany inserts rows, given as []T, []*T or a pointer to either with a
// struct T, into table, as [Helper.Insert] does one. No rows is no error and no
// SQL. All missing keys are taken from the source at once, before the first
// statement; if the source fails, no row was given one.
//
// As many statements are sent as the rows need. After an error none of the rows
// is stored, and a transaction in which the call was made is usable as before;
// the package comment says under which conditions.
func (h *Helper) InsertMany(ctx context.Context, db DB, table string, rows any) error {
	b, err := manyRows("InsertMany", rows)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, false)
}

// InsertGraph inserts roots, given as a *struct or like the rows of
// [Helper.InsertMany], into table, and with them their children, the children of
// these, and so on, into the tables that their tags name. The package comment
// shows the tags.
//
// All keys and foreign keys are set before the first statement. Then each table
// is written once, those first that others refer to, in one transaction or
// under one savepoint: round trips grow with the tables, not with the parents.
// A child's foreign key must be unset or its parent's key; any other is a
// [*RowError] that matches [ErrForeignKey], for moving a child to another parent
// is not what an insert should do.
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
	w, err := newWriter(d, rows.groups())
	if err != nil || len(rows.nodes) == 0 {
		return err
	}
	if err := rows.assign(ctx, h.src); err != nil {
		return err
	}
	return w.write(ctx, c)
}

// dialectFor returns the dialect of db, or ErrDriver.
func (h *Helper) dialectFor(db DB) (Dialect, error) {
	if h.dialect == nil {
		return dialectOf(db.DriverName())
	}
	if !h.dialect.valid() {
		return 0, fmt.Errorf("%w: WithDialect was given %v, want SQLite, PostgreSQL or MySQL", ErrDriver, *h.dialect)
	}
	return *h.dialect, nil
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
