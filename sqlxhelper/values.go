package sqlxhelper

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/snowkey/snowkey/internal/base/dialect"
	"github.com/snowkey/snowkey/internal/base/outcome"
	"github.com/snowkey/snowkey/internal/base/pgtext"
)

// statementBytes bounds a statement of several rows. On MySQL one above max_allowed_packet, 16 MiB
// by default and 4 MiB on old servers, costs the connection and with it the caller's transaction. A
// driver that writes the values into the text may double them by escaping. Elsewhere it bounds
// memory.
const statementBytes = 1 << 20

// values sends rows by INSERT … VALUES, which can carry every row.
type values struct {
	*attempt
	*load
	*fullChunk
	first int   // the row with which args begins
	args  []any // of the next statement
}

// A fullChunk is the prepared statement for full chunks, if there are at least two.
type fullChunk struct {
	stmt    *sql.Stmt
	decided bool // whether to prepare it, which takes a query on MySQL
}

func (v *values) take(first int) (int, error) {
	v.first = first
	most := v.dialect.step(min(len(v.load.rows)-first, v.chunk), v.chunk)
	v.args = slices.Grow(v.args[:0], most*len(v.columns))
	n, size := 0, 0
	for ; n < most; n++ {
		before := len(v.args)
		var err error
		if v.args, err = v.arguments(v.args, v.load, first+n, v.columns); err != nil {
			return 0, err
		}
		for _, value := range v.args[before:] {
			size += sizeOf(value)
		}
		if n > 0 && size > statementBytes {
			break // this row begins the next statement
		}
	}
	n = v.dialect.step(n, v.chunk)
	v.args = v.args[:n*len(v.columns)]
	return n, nil
}

func (v *values) send(ctx context.Context, s session) (int, driver.Result, error) {
	ctx = v.dialect.sends(ctx)
	n := len(v.args) / len(v.columns)
	if !v.decided && len(v.load.rows)-v.first >= 2*v.chunk {
		v.decided = true
		if v.dialect.prepares(ctx, s) {
			var err error
			text := v.dialect.insertText(v.table, v.chunk)
			prepare := func() (*sql.Stmt, error) { return s.db.PrepareContext(ctx, text) }
			if v.stmt, err = outcome.Call(ctx, s.cancels, prepare, func(stmt *sql.Stmt) { _ = stmt.Close() }); err != nil {
				return n, nil, fmt.Errorf("prepare: %w", err)
			}
		}
	}
	if v.stmt != nil && n == v.chunk {
		stmt, args := v.stmt, v.args
		result, err := outcome.Call(ctx, s.cancels, func() (sql.Result, error) { return stmt.ExecContext(ctx, args...) }, nil)
		return n, result, err
	}
	result, err := outcome.Exec(ctx, s.cancels, s.db, v.dialect.insertText(v.table, n), v.args...)
	return n, result, err
}

func (v *values) check(ctx context.Context, s session, err error) error {
	if err == nil {
		return nil
	}
	return v.narrow(v.dialect.sends(ctx), s, v.load, v.bound(v.load, err))
}

// close closes the prepared statement. An error could only report a lost connection, as the next
// statement does, and MySQL does not answer.
func (f *fullChunk) close() {
	if f.stmt != nil {
		_ = f.stmt.Close()
	}
}

// prepares reports whether to prepare a statement that is sent more than once.
func (t *traits) prepares(ctx context.Context, s session) bool {
	if cannotPrepare(s.db) {
		return false
	}
	if !t.Inlines {
		return t.Prepares
	}
	yes, err := outcome.Call(ctx, s.cancels, func() (bool, error) {
		var inlined bool
		err := dialect.One(ctx, s.db, []any{&inlined}, "SELECT ? + 0.2 = 0.3", 0.1)
		return err == nil && !inlined, nil
	}, nil)
	return err == nil && yes // after an error the next statement fails too
}

// The statements go to the driver as they are written here. None passes through sqlx's Named, In
// or Rebind, whose parsers misread colons, question marks and closing parentheses inside of
// quotes, and for some texts insert the first of many rows and report success.

// insertHead returns `INSERT INTO "table" ("a", "b")`. The names have passed tableProblem and
// nameProblem.
func (t *traits) insertHead(table string, columns []column) (string, error) {
	if len(columns) > t.MaxBinds {
		return "", fmt.Errorf("%w: %d columns for table %q, %v binds at most %d values", ErrArgument, len(columns), table, t.Dialect, t.MaxBinds)
	}
	names := strings.Split(table, ".")
	for i := range columns {
		names = append(names, columns[i].name)
	}
	for _, name := range names {
		if err := t.checkLength(name); err != nil {
			return "", err
		}
	}
	return "INSERT INTO " + t.Quote(table) + " (" + t.names(columns, "@", ", ") + ")", nil
}

// names joins one form per column, in which @ stands for the quoted name.
func (t *traits) names(columns []column, form, separator string) string {
	parts := make([]string, len(columns))
	for i := range columns {
		parts[i] = strings.ReplaceAll(form, "@", t.Quote(columns[i].name))
	}
	return strings.Join(parts, separator)
}

// insertText returns the statement that inserts rows into a table.
func (t *traits) insertText(into *table, rows int) string {
	var longest [8]byte
	columns, width := len(into.columns), len(t.AppendPlaceholder(longest[:0], t.MaxBinds))+len(", ")
	b := make([]byte, 0, len(into.head)+len(" VALUES ")+rows*(columns*width+len("(), "))+len(into.tail))
	b = append(append(b, into.head...), " VALUES "...)
	bind := 0
	for row := range rows {
		if row > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '(')
		for col := range columns {
			if col > 0 {
				b = append(b, ", "...)
			}
			bind++
			b = t.AppendPlaceholder(b, bind)
		}
		b = append(b, ')')
	}
	return string(append(b, into.tail...))
}

// chunk returns the number of rows in a full statement: as many as Binds allows, and at
// least one, which insertHead has checked to be within MaxBinds.
func (t *traits) chunk(columns int) int { return max(1, t.Binds/columns) }

// step returns how many of the rows that fit into one statement are sent with it. It bounds the
// number of texts.
func (t *traits) step(fit, chunk int) int {
	if ladder := t.Ladder; fit < chunk && ladder > 0 && fit > ladder {
		return fit - fit%ladder
	}
	return fit
}

// arguments appends the arguments for columns of a row. An error names the field.
func (w *writer) arguments(args []any, l *load, row int, columns []column) ([]any, error) {
	for i := range columns {
		value, err := columns[i].argument(l.rows[row])
		if err != nil {
			return nil, w.rowError(l, row, columns[i].field, err)
		}
		args = append(args, value)
	}
	return args, nil
}

// maxNesting is how deep a value is examined. Pointers may point to themselves, and lists
// contain themselves.
const maxNesting = 8

// argument returns the argument for the column of an addressable row.
//
// It calls the Value method of a driver.Valuer, because database/sql passes on its panic and
// cannot name the row and the field in its error. Other values are passed unchanged, because
// drivers accept more types than database/sql does, and so are the types of pgx, which reads
// more from them than Value returns.
func (c *column) argument(row reflect.Value) (any, error) {
	f := c.in(row)
	switch c.basic {
	case reflect.Int, reflect.Int64:
		return f.Int(), nil // as types.Snowflake.Value and database/sql do
	case reflect.String:
		return f.String(), nil
	case reflect.Float64:
		return f.Float(), nil
	}
	if c.byAddress {
		f = f.Addr()
	}
	valuer, native := c.valuer, c.native
	// A pointer to a pointer and an interface may hide a Valuer, and lib/pq panics on a nil
	// pointer to a pointer.
	for depth := 0; f.Kind() == reflect.Interface || f.Kind() == reflect.Pointer && hides(f.Type().Elem().Kind()); depth++ {
		if f.IsNil() {
			return nil, nil
		}
		if depth == maxNesting {
			return nil, fmt.Errorf("%v with more than %d pointers to a value, or none", c.typ, maxNesting)
		}
		f = f.Elem()
		valuer, native = f.Type().Implements(valuerType), pgtext.IsNative(f.Type())
	}
	if !valuer || native {
		return f.Interface(), nil
	}
	return pgtext.Value(f.Interface().(driver.Valuer))
}

func hides(k reflect.Kind) bool { return k == reflect.Pointer || k == reflect.Interface }

// fixedSize is the estimated size in bytes of a number, or of the escapes, length and type of a
// text.
const fixedSize = 16

// sizeOf estimates how many bytes a value takes in a statement.
func sizeOf(v any) int {
	switch v := v.(type) {
	case nil, int64, int, bool, float64, time.Time:
		return fixedSize
	case string:
		return fixedSize + len(v)
	case []byte:
		return fixedSize + len(v)
	}
	return sizeIn(reflect.ValueOf(v), 0)
}

// sizeIn is sizeOf for values that only some drivers accept, such as lists and maps. It does
// not count what a struct points to, such as the location of a time.
func sizeIn(v reflect.Value, depth int) int {
	size := fixedSize
	if depth == maxNesting {
		return size
	}
	switch v.Kind() {
	case reflect.String:
		size += v.Len()
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			size = sizeIn(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() < reflect.Array { // a number or a bool
			return size + v.Len()*int(v.Type().Elem().Size())
		}
		for i := range v.Len() {
			size += sizeIn(v.Index(i), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() != reflect.Pointer && f.Kind() != reflect.Interface {
				size += sizeIn(f, depth+1)
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			size += sizeIn(entries.Key(), depth+1) + sizeIn(entries.Value(), depth+1)
		}
	}
	return size
}
