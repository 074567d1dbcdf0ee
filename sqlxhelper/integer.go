package sqlxhelper

import (
	"fmt"
	"reflect"

	"github.com/snowkey/snowkey/internal/base/keytype"
)

// WithIntegerKeys also accepts primary keys of type int, int64, uint and uint64 and of types made
// of them, so that a program which lets the database count gets keys before the insert without
// changed structs. Foreign keys of relations may then be such an integer, a pointer to one,
// sql.NullInt64, or sql.Null of one.
//
// The source must fit in 53 bits, as with core.JavaScript, because these keys are numbers in
// JSON. A source with a method Max, as core.Generator has, is refused with [ErrWideKey] if it is
// wider, and any other source when it returns such a key. If no JavaScript reads the keys, use
// [WithWideIntegerKeys].
//
// A key with fewer than 64 bits, as int has on some platforms, and a foreign key of that kind, is
// a [*PlanError]. So is an integer type with a Value or Scan method, which may store or read
// something else. The Helper cannot see a column that is narrower than its field, such as an
// INTEGER of PostgreSQL or MySQL: make it a BIGINT.
//
// An int64 or int may hold a key below zero that the program sets, or that an upsert meets. Other
// types refuse it with types.ErrRange.
//
// Keys of integers are recognized in relations only, so the rows of [Helper.InsertMany] that
// refer to each other are sent in order only if a relation names the column.
//
// The database still counts for whoever inserts without a key. On SQLite, MySQL and MariaDB it
// counts on from the largest key of the table, which gives such a row the key that the source
// is about to return, and the insert that gets it fails as a duplicate. Let everyone insert
// with a key, or end the counting: on MySQL and MariaDB by dropping AUTO_INCREMENT from the
// column.
func WithIntegerKeys() Option { return func(c *config) { c.integers = true } }

// WithWideIntegerKeys is [WithIntegerKeys] for any source of 64-bit keys. It says that no
// JavaScript, and nothing else that reads numbers as floating point, reads the keys: it would
// round them, and two rows could look alike.
func WithWideIntegerKeys() Option { return func(c *config) { c.integers, c.wide = true, true } }

// keyProblem returns why a primary key of type t is refused.
func keyProblem(t reflect.Type, integers bool) string {
	switch e := keytype.Check(t, keytype.Integers); {
	case integers && e != nil && e.Methods:
		return fmt.Sprintf("the primary key is %v, whose Value or Scan method may store or read something else; want an integer without them, types.Snowflake or types.ID", t)
	case integers && e != nil && e.Narrow:
		return fmt.Sprintf("the primary key is %v, which cannot hold the 64-bit keys of WithIntegerKeys; widen the field and its column", t)
	case integers:
		return fmt.Sprintf("the primary key is %v, want types.Snowflake, types.ID or a 64-bit integer", t)
	case keytype.FieldOf(t, keytype.Integers).Plain():
		return fmt.Sprintf("the primary key is %v, want types.Snowflake or types.ID, or the option WithIntegerKeys", t)
	default:
		return fmt.Sprintf("the primary key is %v, want types.Snowflake or types.ID", t)
	}
}

// holdKey makes the column hold keys if its type can, and reports whether it does.
func (b *builder) holdKey(c *column) bool {
	if b.integers && !c.key.Holds() {
		c.key = keytype.FieldOf(c.typ, keytype.Integers)
	}
	return c.key.Holds()
}

// orInteger is the end of a list of types that a foreign key may have.
func (b *builder) orInteger() string {
	if b.integers {
		return "; or a 64-bit integer, a pointer to one, sql.NullInt64 or sql.Null"
	}
	return ""
}
