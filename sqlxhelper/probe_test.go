package sqlxhelper

import "testing"

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
