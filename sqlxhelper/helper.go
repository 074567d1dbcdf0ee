package sqlxhelper

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
)

// A Helper inserts structs through sqlx. It is safe for concurrent use if its [Source] is. The
// zero value is not usable; call [New]. A Helper caches what it writes for each struct type,
// sqlx mapper and table, and what it has learned about the tables of a database, so a program
// should have one Helper for each database.
type Helper struct {
	src     Source
	keys    keySource // of src, under the options
	config  config
	schemas *schemas
	*memory
	// fullChunk is shared by the chunks of one InsertSeq; nil otherwise.
	fullChunk *fullChunk
}

// A memory is the state shared by a Helper and those that [Helper.With] returns.
type memory struct {
	plans  sync.Map // planKey to *plan
	tables sync.Map // name to *pgtext.Table, on PostgreSQL
	// anonymous: the server tells no IDs of transactions, see outcome.Xact.
	anonymous atomic.Bool
}

type planKey struct {
	typ      reflect.Type
	mapper   *reflectx.Mapper
	integers bool // see WithIntegerKeys
}

// New returns a Helper that takes missing keys from src. With a nil src, or one that holds a nil
// pointer or func, every row must have its key, and a row without one is an error that matches [ErrSource].
func New(src Source, opts ...Option) *Helper {
	h := &Helper{src: src, memory: &memory{}}
	return h.With(opts...)
}

// With returns a Helper with additional options that shares the source of h and what h knows of
// tables.
// An option replaces the same option of h. With is cheap enough for a single call:
//
//	err := h.With(sqlxhelper.OnConflictDoNothing("number")).InsertMany(ctx, db, "orders", orders)
//
// With does not modify h, which may be in use. An option that does not fit the rows is an
// error of each call, not of With.
func (h *Helper) With(opts ...Option) *Helper {
	changed := *h
	for _, o := range opts {
		o(&changed.config)
	}
	changed.keys, changed.schemas = changed.newKeySource(), &schemas{}
	return &changed
}

// Insert inserts one row, given as a pointer to a struct, into table ("orders" or
// "shop.orders", without quotes). It does not follow relations; [Helper.InsertGraph] does. The
// options of the Helper select the columns that are written or read back, and the treatment of
// a row that is already stored.
//
// # Columns and keys
//
// The columns are those that sqlx would scan into the struct, embedded structs included, with
// names from db tags or from the Mapper of the handle. A field is a column if it is a value: a
// basic type, time.Time, a driver.Valuer, []byte, or a pointer to one of these. The driver
// decides about slices and maps of other types. Other structs are refused unless they are
// embedded. Every field is written, zero or not, except those with the tag snowkey:"-", which
// sqlx still reads.
//
// The primary key is the field for column id, or the one with the tag snowkey:"pk". Every row
// type has one, of type [types.Snowflake] or [types.ID], or an integer with [WithIntegerKeys]. If it is zero, Insert takes a key from the source
// and sets it in the struct, where it stays if the insert fails. After an upsert the struct has
// the stored row's key. The tag snowkey:"shard" marks a field whose key the new one shares its
// shard with, see [Helper.InsertGraph].
//
// # Errors
//
// Before the key is set and before any SQL, Insert can return:
//
//   - an error that matches [ErrArgument], [ErrDB], [ErrDriver] or [ErrName]
//   - a [*PlanError] for the type, or a [*RowError] for the row, which may match
//     [ErrForeignKey] or [ErrShard]
//   - for a missing key, [ErrSource], [ErrWideKey] or the error of the source, wrapped
//
// Later errors of the database, of a Value method, or of a ctx that ends between statements are
// usually an [*InsertError], which matches [ErrDuplicateKey] or [ErrUnresolved] where that
// applies. A row that the database silently dropped is a [*CountError]. Other errors wrap the
// error of the database, its driver or ctx.
//
// After an error the row is not stored, unless the error matches [ErrCommitUnknown]: the
// database's answer was lost on a pool, and a search for the row on another connection, until
// one second after ctx ends or for a minute without a deadline, has not settled it. That error
// is an [*UnknownError], which has the keys. The transaction in which the call was made remains
// usable unless the error matches [ErrTxBroken].
func (h *Helper) Insert(ctx context.Context, db DB, table string, row any) error {
	b, err := oneRow("Insert", row)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, false)
}

// InsertMany inserts rows, given as []T, []*T or a pointer to either for a struct T, into
// table. It behaves as [Helper.Insert] does and returns the same errors. An empty slice sends
// nothing and returns nil if its type and the options are usable. All missing keys are taken
// from the source at once, before the first statement; if the source fails, no row has been
// given a key.
//
// Rows may refer to others of the call by their keys, which are then sent first. Rows that
// refer to each other in a circle can be stored on all databases only under a deferred
// constraint.
//
// InsertMany sends as many statements as the rows need and checks ctx before each. After an
// error none of the rows is stored, under the conditions of the package comment. The error
// names the row at fault if that is known.
func (h *Helper) InsertMany(ctx context.Context, db DB, table string, rows any) error {
	b, err := manyRows("InsertMany", rows)
	if err != nil {
		return err
	}
	return h.insert(ctx, db, table, b, false)
}

// InsertGraph inserts roots, given as a *struct or like the rows of [Helper.InsertMany], into
// table, and all rows to which their relations lead, at any depth, into the tables that the
// tags name.
//
// # Relations
//
// The tag snowkey:"table,fk=column" on a field of type []T, []*T or *T makes its rows children,
// which go into table and whose foreign key is column. A nil *T and an empty slice have no
// children. The tag snowkey:"table,belongs_to=column" on a field of type *T makes it the row to
// which this one belongs: that row goes into table, and the foreign key is column, in the row
// with the field. A nil field leaves the foreign key alone.
//
//	type Order struct {
//		types.Model
//		CustomerID types.Snowflake `db:"customer_id"`
//		Customer   *Customer       `db:"-" snowkey:"customers,belongs_to=customer_id"`
//		Items      []Item          `db:"-" snowkey:"order_items,fk=order_id"`
//	}
//
// A foreign key is a [types.Snowflake], a pointer to one, a [types.NullSnowflake] or a sql.Null of
// one, the same of a [types.ID], or of an integer with [WithIntegerKeys]. It must be unset, or already equal to the key that it will get. Relations nest, and a type may
// contain itself. Every row has one place, in the call or in one field that makes it a child,
// while any number of belongs_to fields may lead to it by the same pointer. A row behind a
// pointer is always inserted: to refer to a stored customer, set CustomerID and leave Customer
// nil.
//
// # Order
//
// All keys and foreign keys are set before the first statement. Each table is then written
// once, referenced tables first, in one transaction or under one savepoint, so that round trips
// grow with the number of tables and not of rows. Only tables that refer to each other in a
// circle are written once per level.
//
// # Shards
//
// If the keys of the [Source] name a shard, as those of a core.Generator with Layout.ShardBits
// do, a row without a key gets one on the shard of the first of these that there is:
//
//  1. the key in its field with the tag snowkey:"shard", such as a customer's, unless that is
//     NULL, or the row whose key the call is going to set there
//  2. its parent
//  3. the row from which a belongs_to field first leads to it
//  4. ctx, by core.OnShard; without a wish in ctx, roots are spread evenly
//
// Rows that follow each other in a circle, as an order and its new customer do by 1 and 3, are
// on one shard: that of a parent of one of them, or else of what the first of them follows. After
// an upsert, children follow the stored row. A tag that contradicts the parent or, for a root,
// ctx is an error that matches [ErrShard], as is a zero key in the field. The rows of all other
// calls are roots.
//
// # Errors
//
// InsertGraph returns the errors of [Helper.Insert], and a [*RowError] for:
//
//   - a foreign key that is neither unset nor equal to the key that it will get, which matches
//     [ErrForeignKey], because an insert does not move a row to another parent
//   - a struct in two places
//   - rows that refer to each other in a circle
//   - rows that share a key, or a foreign key to different rows, through an embedded pointer
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

// insert does first what can fail without effect, then sets the keys, then writes.
func (h *Helper) insert(ctx context.Context, db DB, table string, b batch, deep bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("sqlxhelper: insert into %s: %w", table, err)
	}
	c, err := h.connect(db)
	if err != nil {
		return err
	}
	s, err := h.schema(b.typ, &c, table, deep)
	if err != nil {
		return err
	}
	r, err := newRows(b, s)
	if err != nil {
		return err
	}
	loads, err := r.loads()
	if err != nil || len(loads) == 0 {
		return err
	}
	if err := r.assign(ctx, h.keys); err != nil {
		return err
	}
	for i := range loads {
		// Only then may a row refer to another one of the call by a key that both had before it. Nearly
		// all foreign keys are outside of the span, because their rows are stored already, or the rows
		// of the call have no keys yet, and so no span.
		if s := r.spans[loads[i].at]; s.own.last != 0 && s.foreign.first <= s.own.last && s.own.first <= s.foreign.last {
			loads[i].order()
		}
	}
	w := &writer{rows: r, conn: c, loads: loads, config: &h.config, memory: h.memory, fullChunk: h.fullChunk}
	if err := w.write(ctx); err != nil {
		return w.asGiven(err)
	}
	return nil
}

// connect returns db as a call uses it.
func (h *Helper) connect(db DB) (conn, error) {
	c, err := newConn(db)
	if err == nil {
		err = h.setDriver(&c, db)
	}
	return c, err
}

// setDriver sets what depends on the driver's name and the dialect, or returns ErrDriver.
func (h *Helper) setDriver(c *conn, db interface{ DriverName() string }) error {
	name := db.DriverName()
	driver := driverNamed(name)
	c.cancels, c.hidesPooler = driver.cancels, driver.hidesPooler
	switch option := h.config.dialect; {
	case option != nil && !option.Valid():
		return fmt.Errorf("%w: WithDialect was given %v, want SQLite, PostgreSQL or MySQL", ErrDriver, *option)
	case option != nil:
		driver.dialect = *option
	case driver.dialect == 0:
		return fmt.Errorf("%w: driver name %q; say what it is with sqlxhelper.RegisterDriver(%q, …), or give New the option WithDialect", ErrDriver, name, name)
	}
	if c.dialect = (*traits)(dialect.TraitsOf(driver.dialect)); c.dialect.EndsCalls {
		c.cancels = outcome.CancelsAll
	}
	if one, ok := c.pool.(onConn); ok {
		one.dialect = driver.dialect // which BeginTxx needs
		c.pool = one
	}
	return nil
}

// plan returns the plan of a struct type. Two goroutines may both build it; the plans are
// equal, and one is kept.
func (h *Helper) plan(t reflect.Type, m *reflectx.Mapper) (*plan, error) {
	key := planKey{t, m, h.config.integers}
	kept, ok := h.plans.Load(key)
	if !ok {
		p, err := newPlan(t, m, h.config.integers)
		if err != nil {
			return nil, err
		}
		kept, _ = h.plans.LoadOrStore(key, p)
	}
	p := kept.(*plan)
	return p, h.checkTag(p)
}
