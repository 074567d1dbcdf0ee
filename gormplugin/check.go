package gormplugin

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"gorm.io/gorm/schema"

	"github.com/snowkey/snowkey/internal/base/keytype"
	"github.com/snowkey/snowkey/types"
)

// holdsSnowflake reports whether types.Snowflake reads values of f back.
func holdsSnowflake(f *schema.Field) bool {
	return f.Creatable && f.Serializer == nil && hasKeyType(f)
}

func outOfRange(path string, c *column, value any) error {
	return fmt.Errorf("gormplugin: %s.%s is %v, want 0..%d: %w", path, c.field.Name, value, int64(math.MaxInt64), types.ErrRange)
}

// impossible returns the value of c in r if it is a number that types.Snowflake does not
// read, or nil. One such row would fail every SELECT that meets it. Anything that is no number,
// such as gorm.Expr in a map, is left to the database.
//
// The driver would find most of them by the Value method, but only after associations were
// stored, without naming the row, and not in maps, which hold any type.
func (c *column) impossible(ctx context.Context, r row) any {
	if r.values != nil {
		return c.impossibleIn(r.values)
	}
	if c.deep && c.absent(ctx, r.fields) {
		return nil
	}
	if id, _ := c.key.Key(c.locate(ctx, r.fields)); id < 0 && !c.key.Fits(id) {
		return id.Int64()
	}
	return nil
}

// impossibleIn is impossible for a map.
func (c *column) impossibleIn(m map[string]any) any {
	_, v, _ := mapField(m, c.field)
	v = driverValue(v)
	below := false
	switch v := v.(type) {
	case int64:
		below = v < 0
	case uint64:
		below = v > math.MaxInt64
	case float64:
		below = v < 0
	case string: // in any form that databases read
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		below = err == nil && n < 0
	}
	if below {
		return v
	}
	return nil
}

// emptyIn is empty for a map. Values that are not known without the database, such as gorm.Expr,
// belong to the caller.
func (c *column) emptyIn(m map[string]any) bool {
	_, v, _ := mapField(m, c.field)
	zero := false
	switch n := driverValue(v).(type) {
	case nil:
		return true
	case int64, uint64, float64:
		zero = reflect.ValueOf(n).IsZero()
	case string:
		zero = c.zeroText(n)
	}
	return zero && (c.field.PrimaryKey || reflect.Indirect(reflect.ValueOf(v)).Kind() != reflect.Struct)
}

// keyless returns [ErrNoKey] if a row would be stored under the key 0 or NULL. It runs last
// before the insert, after the hooks and after the rows that a key may refer to. A key that
// is still missing then was omitted, or is a foreign key to no row.
//
// The database cannot be relied on: SQLite stores NULL in a primary key that is not the
// rowid, and MySQL without strict mode stores 0. GORM then takes the row for a new one, and
// its children refer to nothing.
func (c *creation) keyless() error {
	for k := range c.plan.required {
		key := &c.plan.required[k]
		written := c.writes(key.field.DBName)
		for i := range c.rows.len() {
			switch {
			case !written:
				return fmt.Errorf("%w: %s.%s is omitted; write it, or tag it snowflake:- if the database gives it", ErrNoKey, c.rows.path(c.stmt.Schema, i), key.field.Name)
			case key.empty(c.stmt.Context, c.rows.at(i)):
				return fmt.Errorf("%w: %s.%s refers to no row; set it, or the association that it belongs to", ErrNoKey, c.rows.path(c.stmt.Schema, i), key.field.Name)
			}
		}
	}
	return nil
}

// zeroText reports whether s is no key. In a column of text, "0" is one.
func (c *column) zeroText(s string) bool {
	if c.key.Text() {
		return s == ""
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return s == "" || err == nil && n == 0
}

// driverValue returns v, a value in a map, as database/sql would pass it on, but bytes as a string.
// It returns v itself if that is not known, as of gorm.Expr.
func driverValue(v any) any {
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer {
		r = r.Elem()
	}
	switch {
	case !r.IsValid():
		return nil
	case r.CanInt():
		return r.Int()
	case r.CanUint():
		return r.Uint()
	case r.CanFloat():
		return r.Float()
	case r.Kind() == reflect.String:
		return r.String()
	case r.Type() == reflect.TypeFor[[]byte]():
		return string(r.Bytes())
	}
	// The Value method of a types.NullSnowflake refuses a key below zero, which is to be named.
	if key := keytype.FieldOf(r.Type(), keytype.Integers); key.Nullable() {
		id, null := key.Key(r)
		if null {
			return nil
		}
		return id.Int64()
	}
	if valuer, ok := reflect.TypeAssert[driver.Valuer](r); ok {
		value, err := valuer.Value() // the driver asks again, and reports err
		if _, again := value.(driver.Valuer); err == nil && !again {
			return driverValue(value)
		}
	}
	return v
}
