package sqlxhelper

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestRowIsLookedForByQuotedNames(t *testing.T) {
	for _, c := range []struct {
		at   place
		want string
	}{
		{place{SQLite, "orders", "id"}, `SELECT 1 FROM "orders" WHERE "id" = ?`},
		{place{PostgreSQL, "shop.orders", "key"}, `SELECT 1 FROM "shop"."orders" WHERE "key" = $1`},
		{place{MySQL, "shop.orders", "id"}, "SELECT 1 FROM `shop`.`orders` WHERE `id` = ? LOCK IN SHARE MODE"},
	} {
		if got := c.at.text(); got != c.want {
			t.Errorf("text(%v) = %q; want %q", c.at, got, c.want)
		}
	}
}

func TestLookEndsWithAnAnswerThatStays(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.New("connection refused"), false},
		{postgres("57P03"), false}, // the server starts
		{postgres("08006"), false},
		{postgres("40001"), false},
		{mattn(5), false},
		{mysql(1040), false}, // too many connections
		{mysql(1053), false}, // the server ends
		{mysql(1927), false}, // it has ended the connection
		{fmt.Errorf("begin: %w", io.EOF), false},
		{postgres("42501"), true}, // no privilege
		{mysql(1142), true},
		{mattn(1), true}, // no such table
	} {
		if got := refused(c.err); got != c.want {
			t.Errorf("refused(%v) = %v; want %v", c.err, got, c.want)
		}
	}
}
