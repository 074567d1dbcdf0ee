package gormplugin

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// keyless returns [ErrNoKey] if a row would be stored with the key 0 or NULL. It runs last
// before the insert, when hooks and the rows that a key may refer to are done. What is
// still missing then was omitted, or is a foreign key to no row.
//
// It is not left to the database: SQLite stores NULL in a primary key that is not the
// rowid, and MySQL without strict mode stores 0. GORM then takes the row for a new one,
// and its children refer to nothing.
func (c *creation) keyless() error {
	for k := range c.required {
		key := &c.required[k]
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

// zeroText reports whether s is no key. In a column of text "0" is a text.
func (c *column) zeroText(s string) bool {
	if c.kind == text {
		return s == ""
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return s == "" || err == nil && n == 0
}
