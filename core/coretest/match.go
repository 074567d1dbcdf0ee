package coretest

import (
	"database/sql/driver"
	"fmt"
	"math"

	"github.com/snowkey/snowkey/types"
)

// A Matcher says whether an argument of a statement is a key that a test expects, as
// [AnyKey] and [KeyBetween] do. It is a sqlmock.Argument, for WithArgs of go-sqlmock:
//
//	gen := coretest.NewGenerator(coretest.Config{})
//	mock.ExpectExec("INSERT INTO items").WithArgs(coretest.AnyKey(), gen.Key(1), "cup")
//
// A key that is known needs no Matcher: pass the types.Snowflake itself.
type Matcher struct {
	smallest, largest types.Snowflake
}

// Match reports whether v is as expected.
func (m Matcher) Match(v driver.Value) bool {
	n, ok := v.(int64)
	return ok && m.smallest.Int64() <= n && n <= m.largest.Int64()
}

// String says which keys match. ExpectationsWereMet of sqlmock shows it.
func (m Matcher) String() string {
	if m == AnyKey() {
		return "any key"
	}
	return fmt.Sprintf("a key from %d to %d", m.smallest, m.largest)
}

// AnyKey matches every key. Zero is not a key, nor are NULL and text.
func AnyKey() Matcher { return KeyBetween(1, math.MaxInt64) }

// KeyBetween matches a key from smallest to largest, both included. With a layout these
// stand for times, as in KeyBetween(gen.Between(from, until)).
func KeyBetween(smallest, largest types.Snowflake) Matcher { return Matcher{smallest, largest} }

// A Key is the n-th key of a [Generator], as an argument for WithArgs of go-sqlmock. It is
// a driver.Valuer and no sqlmock.Argument, because sqlmock shows the value of the one when
// another comes, and only the type of the other.
type Key struct {
	g *Generator
	n int
}

// Key returns the n-th key that g returns, counted from 1. The key may be made after the
// call of Key: it is looked up when the statement is compared. Until then, and for an n
// below 1, nothing is equal to it.
func (g *Generator) Key(n int) Key { return Key{g, n} }

// Value returns the key, or an error if there is none yet.
func (k Key) Value() (driver.Value, error) {
	k.g.mu.Lock()
	defer k.g.mu.Unlock()
	if k.n < 1 || k.n > len(k.g.keys) {
		return nil, fmt.Errorf("coretest: key %d of the generator is not made: it has made %d", k.n, len(k.g.keys))
	}
	return k.g.keys[k.n-1].Int64(), nil
}

// String says which key it is.
func (k Key) String() string {
	text := fmt.Sprintf("key %d of the generator", k.n)
	if v, err := k.Value(); err == nil {
		return fmt.Sprintf("%d, %s", v, text)
	}
	return text + ", which is not made"
}
