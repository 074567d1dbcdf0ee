package sqlxhelper

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"github.com/jmoiron/sqlx/reflectx"
)

// A Helper inserts structs through sqlx. It is safe for concurrent use if its
// [Source] is. Its zero value is not usable: call [New]. It keeps one plan per struct
// type and sqlx mapper, and what it has learned of the tables of a database. So a
// program should have one Helper for each database.
type Helper struct {
	src    Source
	config config
	*memory
	// fullChunk is that of a sequence, for whose parts alone the Helper is. Else nil.
	fullChunk *fullChunk
}

// A memory is what a Helper and those made [Helper.With] options share.
type memory struct {
	plans  sync.Map // planKey to *plan
	tables sync.Map // name to *pgtext.Table, on PostgreSQL
}

type planKey struct {
	typ    reflect.Type
	mapper *reflectx.Mapper
}

// New returns a Helper that takes missing keys from src. With a nil src all rows must
// have keys. A row without one is then an error that matches [ErrSource].
func New(src Source, opts ...Option) *Helper {
	h := &Helper{src: src, memory: &memory{}}
	return h.With(opts...)
}

// With returns a Helper with more options and the same source, which shares what h
// has learned. An option replaces the one that h has. With is cheap enough for a
// single call:
//
//	err := h.With(sqlxhelper.OnConflictDoNothing("number")).InsertMany(ctx, db, "orders", orders)
//
// h does not change, and others may use it meanwhile. An option that does not fit the
// rows is an error of each call, not of With.
func (h *Helper) With(opts ...Option) *Helper {
	changed := *h
	for _, o := range opts {
		o(&changed.config)
	}
	return &changed
}

// Insert inserts one row, given as a pointer to a struct, into table ("orders" or
// "shop.orders", without quotes). It does not follow relations: [Helper.InsertGraph]
// does. The options of the Helper, see [Helper.With], say which columns are written
// or read back, and what happens if the row is stored already.
//
// If the key is zero, one is taken from the source and set in the struct. It stays
// set if the insert fails. After an upsert it is that of the stored row.
//
// Before the key is set and before any SQL, these errors can occur:
//
//   - one that matches [ErrArgument], [ErrDB], [ErrDriver] or [ErrName]
//   - a [*PlanError], or a [*RowError], which may match [ErrForeignKey]
//   - a missing key: [ErrSource], or what the source said, wrapped
//
// Later errors are an [*InsertError] as a rule. Its cause is the database, a Value
// method, or a ctx that ends between statements. It matches [ErrDuplicateKey] or
// [ErrUnresolved] where it is that. A row that the database dropped silently is a
// [*CountError]. Others wrap what the database, its driver or ctx said.
//
// After any error the row is not stored, unless the error matches [ErrCommitUnknown]: then
// the answer of the database was lost on a pool, and nothing proves either. It is an
// [*UnknownError], with the keys. Before that, the call looks for the row on another
// connection until ctx ends and a second longer, or a minute without a deadline. A
// transaction in which the call was made is usable as before, unless the error matches
// [ErrTxBroken].
func (h *Helper) Insert(ctx context.Context, db DB, table string, row any) error {
	b, err := oneRow("Insert", row)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, false)
}

// InsertMany inserts rows into table, given as []T, []*T or a pointer to either with
// a struct T. It does so as [Helper.Insert] does, with the same errors. No rows is no
// error and no SQL, if their type and the options can be used at all. All missing
// keys are taken from the source at once, before the first statement. If the source
// fails, no row was given a key.
//
// Rows may refer to others of the call by their keys, which go first then. Where rows
// refer to each other in a circle, only a deferred constraint lets all databases store them.
//
// It sends as many statements as the rows need, and checks ctx before each. After an
// error none of the rows is stored. The package comment says under which conditions.
// The error names the row, if that is known.
func (h *Helper) InsertMany(ctx context.Context, db DB, table string, rows any) error {
	b, err := manyRows("InsertMany", rows)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, false)
}

// InsertGraph inserts roots, given as a *struct or like the rows of
// [Helper.InsertMany], into table. With them it inserts all rows to which their
// relations lead, and the relations of these, into the tables that the tags name.
// Relations are children, which refer to the row with the field, and the rows to
// which that row belongs. The package comment shows the tags.
//
// All keys and foreign keys are set before the first statement. Then each table is
// written once, those first to which others refer, in one transaction or under one
// savepoint. Round trips grow with the tables, not with the rows. Only tables that
// refer to each other in a circle are written once per level.
//
// These are a [*RowError]:
//
//   - A foreign key that is neither unset nor the key that it is going to be. It
//     matches [ErrForeignKey]: an insert does not move a row to another parent.
//   - A struct in two places.
//   - Rows that refer to each other in a circle.
//   - Rows that share a key, or a foreign key to different rows, because an embedded
//     pointer is the same in both.
//
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
	c, d, rows, err := h.examine(db, table, b, deep)
	if err != nil {
		return err
	}
	if err := rows.checkKeys(); err != nil {
		return err
	}
	w, err := newWriter(d, &h.config, rows)
	if err != nil || len(rows.structs) == 0 {
		return err
	}
	if err := rows.assign(ctx, h.src); err != nil {
		return err
	}
	w.memory, w.fullChunk, w.heeds = h.memory, h.fullChunk, c.heeds
	w.orderRows()
	err = w.asGiven(w.write(ctx, c))
	w.learn(err)
	if err == nil {
		w.note(recordOf(db))
	}
	return err
}

// examine returns where rows go, and the rows with what the options say of them.
func (h *Helper) examine(db DB, table string, b batch, deep bool) (conn, *traits, *walk, error) {
	c, d, err := h.target(db, table)
	if err != nil {
		return conn{}, nil, nil, err
	}
	p, err := h.plan(b.typ, c.mapper)
	if err != nil {
		return conn{}, nil, nil, err
	}
	rows, err := newWalk(b, p, table, deep)
	if err != nil {
		return conn{}, nil, nil, err
	}
	return c, d, rows, h.config.apply(d, c.mapper, rows)
}

// target returns what is to be known of where rows go, before their type is looked at.
func (h *Helper) target(db DB, table string) (conn, *traits, error) {
	c, err := connect(db)
	if err != nil {
		return conn{}, nil, err
	}
	d, err := h.dialectFor(db)
	if err != nil {
		return conn{}, nil, err
	}
	if problem := tableProblem(table); problem != "" {
		return conn{}, nil, fmt.Errorf("%w: %s", ErrName, problem)
	}
	c.heeds = heedingOf(db, d)
	if one, ok := c.pool.(onConn); ok {
		one.dialect = d.Dialect // which BeginTxx needs
		c.pool = one
	}
	return c, d, nil
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

// plan returns the plan of a struct type. Two goroutines may both build it. The
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
