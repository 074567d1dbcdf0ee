package sqlxhelper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"time"

	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/types"
)

// A buffer has the rows of one chunk of a sequence, in memory of its own, because a sequence
// may reuse the memory of a row for the next one or hand it to another goroutine.
//
// For the same reason a struct behind a pointer gets its key when it is yielded, and not when
// the chunk is sent. The keys are then taken one by one, but none is lost.
type buffer struct {
	src     keySource
	table   *table
	batch   batch // with room for a chunk
	n       int   // rows that are in it
	pointer bool  // the sequence yields pointers

	copied, kept []*column // those with a hold byCopy and byArgument
	keyed        bool      // keys are in memory of the program
	plain        bool      // copying the struct is enough

	// What only the database knows is set in memory of the program after the chunk was sent:
	// keys of stored rows, and columns that are read back.
	owners   []reflect.Value // the structs in that memory, row by row
	late     bool            // owners is needed
	assigned assigned
	id       [1]types.Snowflake
}

// newBuffer returns a buffer. r has the options of the call and no rows, and rows is a slice of
// structs.
func newBuffer(src keySource, r *rows, rows reflect.Value, pointer bool) *buffer {
	t := r.tables[0]
	b := &buffer{src: src, table: t, pointer: pointer}
	b.batch = batch{typ: t.plan.typ, value: rows, many: true}
	if t.plan.held > 0 {
		b.batch.held = make([]held, rows.Len()*t.plan.held)
	}
	for i := range t.columns {
		switch c := &t.columns[i]; c.hold {
		case byCopy:
			b.copied = append(b.copied, c)
		case byArgument:
			b.kept = append(b.kept, c)
		}
	}
	lent := pointer || len(t.plan.embedded) > 0
	b.keyed = pointer || t.plan.columns[t.plan.key].shared
	b.late = lent && (t.upsert != nil || t.read != nil)
	b.plain = !lent && len(b.copied)+len(b.kept) == 0
	return b
}

func (b *buffer) full() bool { return b.n == b.batch.value.Len() }

// chunk returns the batch of the rows in b.
func (b *buffer) chunk() batch {
	chunk := b.batch
	chunk.value = chunk.value.Slice(0, b.n)
	return chunk
}

// add adds a struct. If the sequence yields no pointers, the struct is in its place already.
func (b *buffer) add(ctx context.Context, from reflect.Value) error {
	row := b.batch.value.Index(b.n)
	if b.pointer {
		row.Set(from)
	}
	b.n++
	p := b.table.plan
	if p.missing(row) != "" {
		return nil // newRows refuses the row
	}
	if b.late {
		if !b.pointer {
			from = reflect.New(p.typ).Elem()
			from.Set(row)
		}
		b.owners = append(b.owners, from)
	}
	key := p.id(from) // before the pointers of row are replaced
	for _, e := range p.embedded {
		if f := row.FieldByIndex(e.index); f.CanSet() {
			own := reflect.New(f.Type().Elem())
			own.Elem().Set(f.Elem())
			f.Set(own)
		}
	}
	for _, c := range b.copied {
		f := c.in(row)
		f.Set(apart(f, 0))
	}
	for _, c := range b.kept {
		b.batch.held[(b.n-1)*p.held+c.slot] = c.keep(row)
	}
	if b.keyed {
		return b.identify(ctx, row, key)
	}
	return nil
}

// identify gives a key to a row and to the struct from which it was copied. A key that the
// sequence was given for an earlier row was left in reused memory, and is replaced. An upsert
// takes its keys later, because it has to know which ones it was given.
func (b *buffer) identify(ctx context.Context, row reflect.Value, from *types.Snowflake) error {
	id := b.table.plan.id(row)
	if b.assigned.has(*id) {
		*id = 0
	}
	if *id != 0 || b.table.upsert != nil {
		return nil
	}
	if b.table.plan.shard >= 0 {
		one := rows{tables: []*table{b.table}, structs: []reflect.Value{row}, ids: []*types.Snowflake{id}}
		if err := one.assign(ctx, b.src); errors.As(err, new(*RowError)) {
			return nil // the chunk is refused for the row, which then has its number
		} else if err != nil {
			return err
		}
	} else {
		b.id[0] = 0
		if err := b.src.take(ctx, b.id[:]); err != nil {
			return err
		}
		*id = b.id[0]
	}
	*from = *id
	b.assigned.add(*id)
	return nil
}

// sent sets in the structs of the program what is known since the chunk was sent, and empties
// b. Columns that were read back are known only if it was stored.
func (b *buffer) sent(stored bool) {
	p := b.table.plan
	for i, owner := range b.owners {
		row := b.batch.value.Index(i)
		if id, key := p.id(owner), *p.id(row); key != 0 && key != *id {
			*id = key
			b.assigned.add(key)
		}
		if !stored {
			continue
		}
		for _, f := range b.table.read {
			reflectx.FieldByIndexes(owner, f.index).Set(reflectx.FieldByIndexes(row, f.index))
		}
	}
	b.assigned.forget(b.batch.value.Len())
	// Release what the pointers of the rows refer to.
	b.batch.value.Slice(0, b.n).Clear()
	clear(b.batch.held)
	clear(b.owners)
	b.owners, b.n = b.owners[:0], 0
}

// nilRow returns the error of a nil pointer. before is the number of rows in earlier chunks.
func (b *buffer) nilRow(before int) error {
	return &RowError{Path: fmt.Sprintf("%v[%d]", b.table.plan.typ, before+b.n), Problem: "it is nil"}
}

// assigned has the keys that a sequence was given lately, in order.
type assigned struct {
	keys  []types.Snowflake
	index map[types.Snowflake]struct{} // of keys; nil until needed
}

func (a *assigned) add(key types.Snowflake) {
	a.keys = append(a.keys, key)
	if a.index != nil {
		a.index[key] = struct{}{}
	}
}

// has reports whether key is one of them. Most sequences yield zero keys, or one pointer again
// and again.
func (a *assigned) has(key types.Snowflake) bool {
	n := len(a.keys)
	if key == 0 || n == 0 {
		return false
	}
	if key == a.keys[n-1] {
		return true
	}
	if a.index == nil {
		a.index = make(map[types.Snowflake]struct{}, n)
		for _, k := range a.keys {
			a.index[k] = struct{}{}
		}
	}
	_, found := a.index[key]
	return found
}

// forget keeps about the last n keys.
func (a *assigned) forget(n int) {
	if len(a.keys) >= 2*n {
		a.keys, a.index = append(a.keys[:0], a.keys[len(a.keys)-n:]...), nil
	}
}

// A held value is the argument for a column of a row, or the error instead of it.
type held struct {
	value any
	err   error
}

// keep returns the argument for the column of a row, apart from the memory of the row.
func (c *column) keep(row reflect.Value) held {
	value, err := c.argument(row)
	switch v := value.(type) {
	case nil, int64, string, float64, bool:
	case []byte:
		value = bytes.Clone(v)
	default:
		value = apart(reflect.ValueOf(value), 0).Interface()
	}
	return held{value, err}
}

// apart returns a copy of v that shares no memory with it, except behind unexported fields,
// which are copied unchanged. That does not affect a driver.Valuer, since keep has its value.
func apart(v reflect.Value, depth int) reflect.Value {
	if depth == maxNesting || !refers(v.Type()) {
		return v
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		if v.IsNil() {
			return v
		}
	}
	switch v.Kind() {
	case reflect.Pointer:
		switch p := v.Interface().(type) {
		case *big.Int: // as in pgtype.Numeric
			return reflect.ValueOf(new(big.Int).Set(p))
		case *time.Location: // which is compared by its address
			return v
		}
		own := reflect.New(v.Type().Elem())
		own.Elem().Set(apart(v.Elem(), depth+1))
		return own.Convert(v.Type())
	case reflect.Slice:
		own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(own, v)
		return apartElements(own, depth)
	case reflect.Map:
		own := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entries := v.MapRange(); entries.Next(); {
			own.SetMapIndex(entries.Key(), apart(entries.Value(), depth+1))
		}
		return own
	}
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	switch v.Kind() {
	case reflect.Interface:
		own.Set(apart(v.Elem(), depth+1))
	case reflect.Array:
		return apartElements(own, depth)
	case reflect.Struct:
		for i := range own.NumField() {
			if f := own.Field(i); f.CanSet() {
				f.Set(apart(f, depth+1))
			}
		}
	}
	return own
}

// apartElements replaces the elements of a slice or an array by copies.
func apartElements(list reflect.Value, depth int) reflect.Value {
	if refers(list.Type().Elem()) {
		for i := range list.Len() {
			list.Index(i).Set(apart(list.Index(i), depth+1))
		}
	}
	return list
}
