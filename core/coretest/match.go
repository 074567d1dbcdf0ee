package coretest

import (
	"database/sql/driver"

	"github.com/snowkey/snowkey/types"
)

// A Matcher says whether an argument of a statement is the key that a test expects. It is
// a sqlmock.Argument, for WithArgs of go-sqlmock:
//
//	gen := coretest.NewGenerator(coretest.Config{})
//	mock.ExpectExec("INSERT INTO items").WithArgs(coretest.AnyKey(), gen.Key(1), "cup")
//
// A key that is known needs no Matcher: pass the types.Snowflake itself.
type Matcher func(v driver.Value) bool

// Match reports whether v is as expected.
func (m Matcher) Match(v driver.Value) bool { return m(v) }

// AnyKey matches every key. Zero is not a key, nor are NULL and text.
func AnyKey() Matcher {
	return func(v driver.Value) bool {
		n, ok := v.(int64)
		return ok && n > 0
	}
}

// KeyBetween matches a key from smallest to largest, both included. With a layout these
// stand for times, as in KeyBetween(gen.Min(from), gen.Max(to)).
func KeyBetween(smallest, largest types.Snowflake) Matcher {
	return func(v driver.Value) bool {
		n, ok := v.(int64)
		return ok && smallest.Int64() <= n && n <= largest.Int64()
	}
}

// Key matches the n-th key that g has returned, counted from 1. The key may be made after
// the call of Key: it is looked up when the statement is compared. Until then, and for an
// n below 1, nothing matches.
func (g *Generator) Key(n int) Matcher {
	return func(v driver.Value) bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return 1 <= n && n <= len(g.keys) && v == g.keys[n-1].Int64()
	}
}
