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

	"github.com/snowkey/snowkey/types"
)

// holdsSnowflake reports whether values of f are read back by types.Snowflake.
func holdsSnowflake(f *schema.Field) bool {
	return f.Creatable && f.Serializer == nil && (f.IndirectFieldType == snowflakeType || isNullType(f.IndirectFieldType))
}

// check refuses rows with a key, or a foreign key, that types.Snowflake would not read
// back. One such row would fail every SELECT that meets it.
//
// The driver would find most of them by the Value method, but only when associations are
// stored already, without naming the row, and not in maps, which have any type.
func (c *creation) check() error {
	for i := range c.rows.len() {
		for k := range c.checked {
			column := &c.checked[k]
			if value := column.impossible(c.stmt.Context, c.rows.at(i)); value != nil && c.writes(column.field.DBName) {
				return outOfRange(c.rows.path(c.stmt.Schema, i), column, value)
			}
		}
	}
	return nil
}

func outOfRange(path string, c *column, value any) error {
	return fmt.Errorf("gormplugin: %s.%s is %v, want 0..%d: %w", path, c.field.Name, value, int64(math.MaxInt64), types.ErrRange)
}

// impossible returns the value of c in r if it is a number that types.Snowflake does not
// read, else nil. What is no number, such as gorm.Expr in a map, is the database's.
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
	if valuer, ok := reflect.TypeAssert[driver.Valuer](v); ok && !isNullType(v.Type()) {
		value, err := valuer.Value()
		if err != nil {
			return nil // the driver asks again, and reports it
		}
		v = reflect.ValueOf(value)
	}
	return outside(v)
}

// outside returns the number that v holds if it is below zero or has more than 63 bits,
// else nil.
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
	case isNullType(v.Type()) && v.Field(1).Bool():
		return outside(v.Field(0))
	}
	return nil
}

// negativeText returns text if it is a number below zero, in any of the forms that
// databases read, else nil.
func negativeText(text string) any {
	if n, err := strconv.ParseFloat(strings.TrimSpace(text), 64); err == nil && n < 0 {
		return text
	}
	return nil
}
