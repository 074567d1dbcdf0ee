package coretest

import (
	"database/sql/driver"
	"fmt"
	"math"

	"github.com/snowkey/snowkey/types"
)

// A Matcher is an argument for WithArgs of go-sqlmock that accepts some keys and no others.
// [AnyKey] and [KeyBetween] return one. It implements sqlmock.Argument.
//
//	gen := coretest.NewGenerator(coretest.Config{})
//	mock.ExpectExec("INSERT INTO items").WithArgs(coretest.AnyKey(), gen.Key(1), "cup")
//
// A key that is known in advance needs no Matcher: pass the types.Snowflake itself.
type Matcher struct {
	smallest, largest types.Snowflake
}

// Match reports whether v is one of the keys.
func (m Matcher) Match(v driver.Value) bool {
	n, ok := v.(int64)
	return ok && m.smallest.Int64() <= n && n <= m.largest.Int64()
}

// String describes the keys, for the errors of sqlmock.
func (m Matcher) String() string {
	if m == AnyKey() {
		return "any key"
	}
	return fmt.Sprintf("a key from %d to %d", m.smallest, m.largest)
}

// AnyKey accepts every key, which excludes zero, NULL and text.
func AnyKey() Matcher { return KeyBetween(1, math.MaxInt64) }

// KeyBetween accepts the keys from smallest to largest, both included. For the keys of a span of
// time, write KeyBetween(gen.Between(from, until)).
func KeyBetween(smallest, largest types.Snowflake) Matcher { return Matcher{smallest, largest} }

// Key returns the n-th key of g, counted from 1, as an argument for WithArgs of go-sqlmock. The
// value is looked up when sqlmock compares the arguments of a statement, so g may make the key
// after the call of Key. Until then, and for an n below 1, it equals nothing.
//
// It is a driver.Valuer rather than a sqlmock.Argument, because on a mismatch sqlmock shows the
// value of the former and only the type of the latter.
func (g *Generator) Key(n int) driver.Valuer { return key{g, n} }

type key struct {
	g *Generator
	n int
}

// Value returns the key, or an error if g has not made it.
func (k key) Value() (driver.Value, error) {
	k.g.mu.Lock()
	defer k.g.mu.Unlock()
	if k.n < 1 || k.n > len(k.g.keys) {
		return nil, fmt.Errorf("coretest: the generator has made %d keys, and not key %d", len(k.g.keys), k.n)
	}
	return k.g.keys[k.n-1].Int64(), nil
}

// String describes the key, for the errors of sqlmock.
func (k key) String() string {
	text := fmt.Sprintf("key %d of the generator", k.n)
	if v, err := k.Value(); err == nil {
		return fmt.Sprintf("%d, %s", v, text)
	}
	return text + ", not made yet"
}
