package sqlxhelper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
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
	first   int           // how many rows of a sequence come before it
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
// Only [Helper.InsertGraph] has nodes, which say where it has met each row. In other calls the index
// of a row does: nodes would be a fifth of what InsertMany costs outside of the driver.
type rows struct {
	*schema
	structs []reflect.Value    // the rows, addressable
	ids     []*types.Snowflake // their primary keys
	spans   []spans            // of their keys, by table
	first   int                // how many rows of a sequence come before them
	many    bool               // the call was given a slice
	shards  *shards            // where new keys go; nil: where the source has put them
	scratch []types.Snowflake  // has room for one key, for rows that are one again and again; or nil
	graph                      // of a walk; otherwise empty
}

// newRows returns the rows of a call, or an error for rows that cannot be inserted. It changes
// no row.
func newRows(b batch, s *schema) (*rows, error) {
	r := &rows{schema: s, many: b.many, first: b.first}
	read := r.list
	if s.walks {
		read = r.walk
	}
	if err := read(b); err != nil {
		return nil, err
	}
	if s.sharesKeys {
		if err := r.checkSharedKeys(); err != nil {
			return nil, err
		}
	}
	return r, r.checkKeys()
}

// list takes the rows of one slice, or one struct.
func (r *rows) list(b batch) error {
	p, n := r.tables[0].plan, 1
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
		if p.embedded != nil {
			if missing := p.missing(row); missing != "" {
				return refuse(r.path(i), nil, "the embedded pointer %s is nil", missing)
			}
		}
		r.structs, r.ids = append(r.structs, row), append(r.ids, p.id(row))
	}
	if p.foreign != nil {
		return r.checkForeignKeys()
	}
	return nil
}

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
		path += "[" + strconv.Itoa(r.first+row) + "]"
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
	first := map[key]int{}
	for i, id := range r.ids {
		k := key{r.table(i), id}
		if j, ok := first[k]; ok && k.table.key.shared {
			return refuse(r.path(i), nil, "it shares %s with %s, and one key cannot be that of two rows", k.key.field, r.path(j))
		}
		first[k] = i
	}
	return nil
}

// checkKeys refuses keys that their fields would not scan, see [keytype.Field.Fits]: one such row
// would fail every SELECT that reads it.
func (r *rows) checkKeys() error {
	r.spans = make([]spans, len(r.tables))
	for i, row := range r.structs {
		t := r.table(i)
		s := &r.spans[t.at]
		for j, c := range t.keys {
			switch id, null := c.key.Key(c.in(row)); {
			case !c.key.Fits(id):
				return r.refuseKey(i, c, id)
			case null, j == 0 && id == 0:
			case id < 0 && j == 0:
				s.own = keySpan{1, math.MaxInt64} // spans are above zero, so this may be any
			case id < 0:
				s.foreign = keySpan{1, math.MaxInt64}
			case j == 0:
				s.own.add(id)
			case id > 0:
				s.foreign.add(id)
			case c.key.Pointer():
				// It may point to the key of another row, which the call assigns.
				s.own, s.foreign = keySpan{1, math.MaxInt64}, keySpan{1, math.MaxInt64}
			}
		}
	}
	return nil
}

func (r *rows) refuseKey(row int, c *column, id types.Snowflake) error {
	err := types.ErrRange
	if r.table(row).plan.isForeign(c.name) {
		err = errors.Join(ErrForeignKey, err)
	}
	shown := any(int64(id))
	if v := reflect.Indirect(c.in(r.structs[row])); v.CanUint() {
		shown = v.Uint()
	}
	return refuse(r.path(row), err, "%s is %d, want 0..%d", c.field, shown, int64(math.MaxInt64))
}

// A keySpan is the range from the smallest of some keys to the largest; zero is empty.
type keySpan struct{ first, last types.Snowflake }

func (s *keySpan) add(id types.Snowflake) {
	if s.last == 0 {
		s.first = id
	}
	s.first, s.last = min(s.first, id), max(s.last, id)
}

// spans has the spans of the primary keys that the rows of a table had before the call, and of
// the keys to which they refer.
type spans struct{ own, foreign keySpan }

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
		keys := r.scratch
		if keys == nil {
			keys = make([]types.Snowflake, missing)
		}
		if src.refused != nil {
			return src.unusable(missing)
		}
		if (r.nodes != nil || r.tables[0].plan.shard >= 0) && src.Sharded() {
			if err := r.findShards(ctx, src.Supply, missing); err != nil {
				return err
			}
		}
		if err := src.take(ctx, keys); err != nil {
			return err
		}
		if r.shards != nil {
			if err := r.shards.move(keys); err != nil {
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

// A load is rows of one table that are written together.
type load struct {
	*table
	rows      []reflect.Value
	callIndex []int  // the place of each row among those of the call; nil: the same as here
	assigned  int    // a row whose key the call assigns, or -1
	fresh     []bool // of an upsert, by row: the call assigns the key
}

// index returns the place of a row of the load among the rows of the call.
func (l *load) index(row int) int {
	if l.callIndex == nil {
		return row
	}
	return l.callIndex[row]
}

// loads divides the rows by table, referenced tables first, or returns why they cannot be sent so.
// It comes before keys are assigned.
func (r *rows) loads() ([]load, error) {
	for _, l := range r.links {
		if r.table(l.from).upsert != nil && r.table(l.to).upsert != nil {
			return nil, refuse(r.path(l.from), nil, "it refers to %s in the same table, and so would have to be sent before it is known which stored row that is", r.path(l.to))
		}
	}
	var loads []load
	if r.nodes != nil {
		loads = r.inTurn()
	} else if len(r.structs) > 0 {
		loads = []load{{table: r.tables[0], rows: r.structs}}
	}
	for i := range loads {
		l := &loads[i]
		if l.refused != nil {
			return nil, l.refused
		}
		l.assigned = len(l.rows) - 1
		for l.assigned >= 0 && *l.plan.id(l.rows[l.assigned]) != 0 {
			l.assigned--
		}
		if l.upsert == nil {
			continue
		}
		l.fresh = make([]bool, len(l.rows))
		for j, row := range l.rows {
			l.fresh[j] = *l.plan.id(row) == 0
		}
	}
	return loads, nil
}
