package sqlxhelper

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx/reflectx"
	"github.com/snowkey/snowkey/internal/base/readback"
	"github.com/snowkey/snowkey/types"
)

// rawBytesType shows the driver's own bytes, until the next row.
var rawBytesType = reflect.TypeFor[sql.RawBytes]()

var scannerType = reflect.TypeFor[sql.Scanner]()

// A destination is a column that is read back, and its field.
type destination struct {
	name  string
	typ   reflect.Type
	index []int // for reflectx.FieldByIndexes
}

// readBack applies Returning.
func (s *schema) readBack(names []string, m *reflectx.Mapper) error {
	readable := map[*table][]destination{}
	for _, t := range s.tables {
		readable[t] = t.plan.readable(m)
	}
	if len(names) == 0 {
		s.tables[0].read = readable[s.tables[0]]
	}
	err := s.each("Returning", names, func(t *table, column string) bool {
		named := func(f destination) bool { return f.name == column }
		i := slices.IndexFunc(readable[t], named)
		if i >= 0 && !slices.ContainsFunc(t.read, named) {
			t.read = append(t.read, readable[t][i])
		}
		return i >= 0
	})
	if err != nil {
		return err
	}
	for _, t := range s.tables {
		for _, f := range t.read {
			if err := s.dialect.checkLength(f.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// readable returns the columns that can be scanned into rows of p: those that are written, and
// fields that are left to sqlx for reading.
func (p *plan) readable(m *reflectx.Mapper) []destination {
	fields := make([]destination, 0, len(p.columns))
	for _, c := range p.columns {
		fields = append(fields, destination{c.name, c.typ, c.index})
	}
	for _, info := range m.TypeMap(p.typ).Index {
		tag, problem := parseTag(info.Field.Tag)
		if problem != "" || !tag.skip || info.Embedded || info.Field.Type == rawBytesType || !settable(p.typ, info.Index) {
			continue
		}
		_, problem = newColumn(info.Field, info)
		taken := slices.ContainsFunc(fields, func(f destination) bool { return f.name == info.Name })
		if problem == "" && !taken {
			fields = append(fields, destination{info.Name, info.Field.Type, info.Index})
		}
	}
	return fields
}

// settable reports whether a field can be reached in any row. A nil embedded pointer is
// allocated, which is impossible for an unexported one.
func settable(t reflect.Type, index []int) bool {
	for _, i := range index {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		f := t.Field(i)
		if t = f.Type; !f.IsExported() && t.Kind() == reflect.Pointer {
			return false
		}
	}
	return true
}

// A reading is what was read for a row and is not in it yet.
type reading struct {
	row    reflect.Value
	fields []destination
	values []reflect.Value // pointers
}

// selectHead returns the SELECT that reads the key and the columns of Returning, up to the keys.
func (t *table) selectHead(d *traits) string {
	key, of := d.Quote(t.key.name), ""
	if d.NameIsText {
		of = d.Quote(t.name) + "."
	}
	names := []string{key}
	for _, f := range t.read {
		names = append(names, of+d.Quote(f.name))
	}
	return "SELECT " + strings.Join(names, ", ") + " FROM " + d.Quote(t.name) + " WHERE " + key + " IN ("
}

// read reads the columns of Returning for the rows of a load.
func (a *attempt) read(ctx context.Context, s session, l *load) error {
	at := make(map[types.Snowflake][]int, len(l.rows))
	for i, row := range l.rows {
		id := *l.plan.id(row)
		at[id] = append(at[id], i)
	}
	end := ")"
	if l.upsert != nil {
		end += a.dialect.ForUpdate // they may be rows of others
	}
	// In order, for the index and for readers of logs.
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(at)), readback.KeysPerQuery) {
		args := make([]any, readback.FewSizes(len(chunk), readback.KeysPerQuery))
		marks := make([]string, len(args))
		for i := range args {
			args[i], marks[i] = int64(chunk[min(i, len(chunk)-1)]), a.dialect.Placeholder(i+1)
		}
		if err := a.query(ctx, s, l, l.lookUp+strings.Join(marks, ", ")+end, args, func(rows *sql.Rows) error { return a.keep(rows, l, at) }); err != nil {
			return err
		}
	}
	for i, row := range l.rows {
		if _, missing := at[*l.plan.id(row)]; missing {
			return a.unresolved(l, i, "its row is not there to be read back")
		}
	}
	return nil
}

// keep keeps what a stored row has for the rows of l with its key, and takes the key out of at.
func (a *attempt) keep(rows *sql.Rows, l *load, at map[types.Snowflake][]int) error {
	id, values, err := l.scanRow(rows)
	for n, i := range at[id] {
		if n > 0 {
			// Two rows of an upsert may be one in the database, but must not share what
			// they point to in memory.
			_, values, err = l.scanRow(rows)
		}
		if err != nil {
			break
		}
		a.readings = append(a.readings, reading{l.rows[i], l.read, values})
	}
	delete(at, id)
	if err != nil {
		return fmt.Errorf("row with key %d: %w", id, err)
	}
	return nil
}

// scanRow scans the key and the fields of a stored row, and returns pointers to the values of
// the fields.
//
// A sql.Scanner is foreign code. If it panics or ends its goroutine within Rows.Scan, since Go
// 1.26 Rows.Close waits forever for a lock that is never released. It is therefore called
// afterwards.
func (t *table) scanRow(rows *sql.Rows) (id types.Snowflake, values []reflect.Value, err error) {
	fields := t.read
	values, raw := make([]reflect.Value, len(fields)), make([]any, len(fields))
	var key any
	into := append(make([]any, 0, len(fields)+1), &key)
	for i, f := range fields {
		values[i] = reflect.New(f.typ)
		if hasScanner(f.typ) {
			into = append(into, &raw[i])
		} else {
			into = append(into, values[i].Interface())
		}
	}
	err = rows.Scan(into...)
	id, _, wrong := t.key.key.Scan(key) // which is there after most errors too
	if err = cmp.Or(err, wrong); err != nil {
		return id, nil, err
	}
	for i, f := range fields {
		if !hasScanner(f.typ) {
			continue
		}
		if err := callScanner(values[i], raw[i]); err != nil {
			return id, nil, fmt.Errorf("column %q: %w", f.name, err)
		}
	}
	return id, values, nil
}

// hasScanner reports whether Rows.Scan would call a sql.Scanner for a field of type t.
func hasScanner(t reflect.Type) bool {
	for !reflect.PointerTo(t).Implements(scannerType) {
		if t.Kind() != reflect.Pointer {
			return false
		}
		t = t.Elem()
	}
	return true
}

// callScanner passes value to the sql.Scanner that p is, or to which a pointer in p leads. As
// with Rows.Scan such a pointer is nil for NULL, and new otherwise.
func callScanner(p reflect.Value, value any) error {
	if s, ok := reflect.TypeAssert[sql.Scanner](p); ok {
		return s.Scan(value)
	}
	if value == nil {
		return nil
	}
	p.Elem().Set(reflect.New(p.Type().Elem().Elem()))
	return callScanner(p.Elem(), value)
}

// fill sets what was read in the rows.
func (a *attempt) fill() {
	for _, r := range a.readings {
		for i, f := range r.fields {
			reflectx.FieldByIndexes(r.row, f.index).Set(r.values[i].Elem())
		}
	}
}
