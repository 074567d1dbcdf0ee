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
	v := c.read(ctx, r)
	if v.CanInt() { // first, because this runs for every row
		if v.Int() < 0 {
			return v.Int()
		}
		return nil
	}
	if !v.IsValid() {
		return nil
	}
	if number, valid, twin := keytype.Twin(v); twin {
		if !valid {
			return nil
		}
		v = number
	} else if valuer, ok := reflect.TypeAssert[driver.Valuer](v); ok {
		value, err := valuer.Value()
		if err != nil {
			return nil // the driver asks again, and reports it
		}
		v = reflect.ValueOf(value)
	}
	return outside(v)
}

// outside returns the number in v if it is below zero or has more than 63 bits, or nil.
func outside(v reflect.Value) any {
	switch {
	case !v.IsValid():
	case v.CanInt() && v.Int() < 0:
		return v.Int()
	case v.CanUint() && v.Uint() > math.MaxInt64:
		return v.Uint()
	case v.CanFloat() && v.Float() < 0:
		return v.Float()
	case v.Kind() == reflect.String:
		return negativeText(v.String())
	case v.Type() == reflect.TypeFor[[]byte]():
		return negativeText(string(v.Bytes()))
	}
	return nil
}

// negativeText returns text if it is a number below zero, in any form that databases read,
// or nil.
func negativeText(text string) any {
	if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && n < 0 {
		return text
	}
	return nil
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

// blank reports whether v, which is no pointer, would be stored in the key c as 0 or NULL,
// as far as that is known without the database.
func (c *column) blank(v reflect.Value) bool {
	if !v.IsValid() {
		return true
	}
	if valuer, ok := reflect.TypeAssert[driver.Valuer](v); ok {
		value, err := valuer.Value()
		if err != nil {
			return false // the driver asks again, and reports it
		}
		v = reflect.ValueOf(value)
	}
	switch {
	case !v.IsValid():
		return true
	case v.CanInt(), v.CanUint(), v.CanFloat():
		return v.IsZero()
	case v.Kind() == reflect.String:
		return c.zeroText(v.String())
	case v.Type() == reflect.TypeFor[[]byte]():
		return c.zeroText(string(v.Bytes()))
	}
	return false
}

// zeroText reports whether s is no key. In a column of text, "0" is one.
func (c *column) zeroText(s string) bool {
	if c.key.Text() {
		return s == ""
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return s == "" || err == nil && n == 0
}
