package sqlxhelper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/snowkey/snowkey/internal/base/keytype"
	"github.com/snowkey/snowkey/types"
)

// A batch is the argument of a call: a struct, or a slice of structs or of pointers to them.
type batch struct {
	typ     reflect.Type  // the struct type
	value   reflect.Value // the slice or the struct
	many    bool          // value is a slice
	pointer bool          // of pointers
}

// oneRow returns the batch of a *struct.
func oneRow(method string, row any) (batch, error) {
	v := reflect.ValueOf(row)
	if v.Kind() != reflect.Pointer || v.Type().Elem().Kind() != reflect.Struct {
		return batch{}, fmt.Errorf("%w: %s takes a pointer to a struct, got %T", ErrArgument, method, row)
	}
	if v.IsNil() {
		return batch{}, fmt.Errorf("%w: %s got a nil %T", ErrArgument, method, row)
	}
	return batch{typ: v.Type().Elem(), value: v.Elem()}, nil
}

// manyRows returns the batch of a []T, a []*T or a pointer to either.
func manyRows(method string, rows any) (batch, error) {
	v := reflect.ValueOf(rows)
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Slice {
		if v.IsNil() {
			return batch{}, fmt.Errorf("%w: %s got a nil %T", ErrArgument, method, rows)
		}
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice {
		t := v.Type().Elem()
		b := batch{typ: t, value: v, many: true}
		if t.Kind() == reflect.Pointer {
			b.typ, b.pointer = t.Elem(), true
		}
		if b.typ.Kind() == reflect.Struct {
			return b, nil
		}
	}
	want, hint := "[]T, []*T or a pointer to one of them, with a struct T", ""
	if method == "InsertGraph" {
		want = "a *struct, a []struct or a []*struct"
		if v.Kind() == reflect.Struct {
			hint = ": pass &row"
		}
	}
	return batch{}, fmt.Errorf("%w: %s takes %s; got %T%s", ErrArgument, method, want, rows, hint)
}

// rows are the rows of a call, each of them once. They are built and checked, then given keys,
// then written.
//
// [Helper.InsertGraph] walks over rows with relations and records where it has met each of
// them. All other calls list the elements of one slice, whose index already says where a row
// is: a node for each row would be a fifth of what InsertMany costs outside of the driver.
type rows struct {
	tables  []*table           // the table of the call first
	structs []reflect.Value    // the rows, addressable
	ids     []*types.Snowflake // their primary keys
	many    bool               // the call was given a slice
	shards  *shards            // where new keys go; nil: where the source has put them
	graph                      // of a walk; otherwise empty
}

// A table is a database table and the row type that a call writes into it. Two types with
// different columns may share a database table.
type table struct {
	name string
	plan *plan
	edges

	// Set by the options of the call, see config.apply.
	columns []column // to write
	upsert  *upsert  // or nil
	read    []destination

	// Set by checkKeys.
	keys    []*column // the written columns that hold keys
	own     keySpan   // of the rows' primary keys
	foreign keySpan   // of the keys to which they refer
}

// newRows returns the rows of a call, or an error for rows that cannot be inserted. It changes
// no row.
func newRows(b batch, p *plan, name string, deep bool) (*rows, error) {
	r := &rows{many: b.many}
	t := &table{name: name, plan: p, columns: p.columns}
	if deep && len(p.relations) > 0 {
		if err := r.walk(b, t); err != nil {
			return nil, err
		}
	} else if err := r.list(b, t); err != nil {
		return nil, err
	}
	return r, r.checkSharedKeys()
}

// list takes the rows of one slice, or one struct, without following relations.
func (r *rows) list(b batch, t *table) error {
	r.tables = []*table{t}
	n := 1
	if b.many {
		n = b.value.Len()
	}
	r.structs, r.ids = make([]reflect.Value, 0, n), make([]*types.Snowflake, 0, n)
	var seen map[uintptr]int
	if b.pointer {
		seen = make(map[uintptr]int, n)
	}
	for i := range n {
		row := b.value
		if b.many {
			row = row.Index(i)
		}
		if b.pointer {
			if row.IsNil() {
				return refuse(r.path(i), nil, "it is nil")
			}
			row = row.Elem()
			if first, ok := seen[row.UnsafeAddr()]; ok {
				return refuse(r.path(i), nil, "it is the same struct as %s, and one row cannot be inserted twice", r.path(first))
			}
			seen[row.UnsafeAddr()] = i
		}
		if missing := t.plan.missing(row); missing != "" {
			return refuse(r.path(i), nil, "the embedded pointer %s is nil", missing)
		}
		r.structs, r.ids = append(r.structs, row), append(r.ids, t.plan.id(row))
	}
	return r.checkForeignKeys()
}

// table returns the table of a row.
func (r *rows) table(row int) *table {
	if r.nodes == nil {
		return r.tables[0]
	}
	return r.nodes[row].table
}

// path names a row: "shop.Order[3]", or "shop.Order[3].Items[0]" for one that a walk has met.
func (r *rows) path(row int) string {
	if r.nodes != nil {
		return r.nodePath(r.nodes[row])
	}
	path := r.tables[0].plan.typ.String()
	if r.many {
		path += "[" + strconv.Itoa(row) + "]"
	}
	return path
}

// refuse returns the error of a row that cannot be inserted.
func refuse(path string, err error, format string, args ...any) error {
	return &RowError{Path: path, Problem: fmt.Sprintf(format, args...), Err: err}
}

// checkForeignKeys refuses foreign keys of a relation that would be written as zero.
func (r *rows) checkForeignKeys() error {
	for i, row := range r.structs {
		p := r.table(i).plan
		for _, j := range p.foreign {
			fk := &p.columns[j]
			if id, null := fk.key.Key(fk.in(row)); id != 0 || null || r.nodes != nil && r.sets(i, fk) {
				continue
			}
			remedy := "make it a *types.Snowflake or types.NullSnowflake, which can be null"
			if keytype.Untyped(fk.typ) != keytype.Snowflake {
				remedy = fmt.Sprintf("make it a *%v or sql.Null[%v], which can be null", fk.typ, fk.typ)
			}
			for k := range p.relations {
				if o := &p.relations[k]; o.belongs && o.fk == fk && !row.FieldByIndex(o.index).IsNil() {
					remedy = "only InsertGraph takes it from " + o.field
				}
			}
			return refuse(r.path(i), ErrForeignKey, "%s is a foreign key and zero; %s", fk.field, remedy)
		}
	}
	return nil
}

// checkSharedKeys refuses rows that have one key in memory, behind the same embedded pointer.
func (r *rows) checkSharedKeys() error {
	type key struct {
		*table
		id *types.Snowflake
	}
	shares := func(t *table) bool { return t.plan.columns[t.plan.key].shared }
	if !slices.ContainsFunc(r.tables, shares) {
		return nil
	}
	first := map[key]int{}
	for i, id := range r.ids {
		k := key{r.table(i), id}
		if j, ok := first[k]; ok && shares(k.table) {
			return refuse(r.path(i), nil, "it shares %s with %s, and one key cannot be that of two rows", k.plan.columns[k.plan.key].field, r.path(j))
		}
		first[k] = i
	}
	return nil
}

// checkKeys refuses keys that types.Snowflake would not scan: one such row would fail every
// SELECT that reads it. It looks at the columns that are written, and so comes after the
// options.
func (r *rows) checkKeys() error {
	for _, t := range r.tables {
		for i := range t.columns {
			if c := &t.columns[i]; c.key.Holds() {
				t.keys = append(t.keys, c)
			}
		}
	}
	for i, row := range r.structs {
		t := r.table(i)
		for _, c := range t.keys {
			id, null := c.key.Key(c.in(row))
			if id >= 0 {
				t.note(c, id, null)
				continue
			}
			err := types.ErrRange
			if t.plan.isForeign(c.name) {
				err = errors.Join(ErrForeignKey, err)
			}
			shown := any(int64(id))
			if v := reflect.Indirect(c.in(row)); v.CanUint() {
				shown = v.Uint()
			}
			return refuse(r.path(i), err, "%s is %d, want 0..%d", c.field, shown, int64(math.MaxInt64))
		}
	}
	return nil
}

// A keySpan is the least and the greatest of some keys. The zero value is of none.
type keySpan struct{ first, last types.Snowflake }

// note adds a key of a row, or one that it refers to, to the spans of the table. A pointer to
// zero may point to the key of another row, which the call assigns.
func (t *table) note(c *column, id types.Snowflake, null bool) {
	span := &t.own
	if !t.isOwn(c) {
		span = &t.foreign
		if c.key.Pointer() && id == 0 && !null {
			t.own = keySpan{1, math.MaxInt64}
			id = 1
		}
	}
	if null || id == 0 {
		return
	}
	if span.last == 0 {
		span.first = id
	}
	span.first, span.last = min(span.first, id), max(span.last, id)
}

// isOwn reports whether a column is the primary key.
func (t *table) isOwn(c *column) bool { return c.name == t.plan.columns[t.plan.key].name }

// mayRefer reports whether a row may refer to another one of the call by a key that both had
// before it. Nearly all foreign keys are outside of the span, because their rows are stored
// already, or the rows of the call have no keys yet.
func (t *table) mayRefer() bool {
	return t.own.last != 0 && t.foreign.first <= t.own.last && t.own.first <= t.foreign.last
}

// assign gives a key to every row that lacks one, and links the rows. If the source fails, or
// keys belong on different shards that have to be on one, no row has been changed.
func (r *rows) assign(ctx context.Context, src keySource) error {
	missing := 0
	for _, id := range r.ids {
		if *id == 0 {
			missing++
		}
	}
	if missing > 0 {
		keys := make([]types.Snowflake, missing)
		if err := src.usable(missing); err != nil {
			return err
		}
		if err := r.findShards(ctx, src.Supply, missing); err != nil {
			return err
		}
		if err := src.take(ctx, keys); err != nil {
			return err
		}
		if r.shards != nil {
			if err := r.shards.lay(keys); err != nil {
				return err
			}
		}
		for _, id := range r.ids {
			if *id == 0 {
				*id, keys = keys[0], keys[1:]
			}
		}
	}
	if r.links != nil {
		r.link()
	}
	return nil
}

// A group is rows of one table that are written together.
type group struct {
	*table
	rows []reflect.Value
	at   []int // the place of each row among those of the call; nil: the same as here
}

// index returns the place of a row of the group among the rows of the call.
func (g *group) index(row int) int {
	if g.at == nil {
		return row
	}
	return g.at[row]
}

// groups divides the rows by table, referenced tables first.
func (r *rows) groups() []group {
	switch {
	case len(r.structs) == 0:
		return nil
	case r.nodes == nil:
		return []group{{r.tables[0], r.structs, nil}}
	}
	return r.inTurn()
}
