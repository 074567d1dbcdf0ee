package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/feed"
)

func TestFeedSaysThatATableWentBackAndAcknowledgesIt(t *testing.T) {
	onDatabases(t, func(t *testing.T, d testDB) {
		table := map[bool]string{true: "public.orders", false: "orders"}[d.dialect == feed.PostgreSQL]
		d.exec(t, "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY)")
		if _, bad, code := d.on(t, "snowkey feed "+table, ""); code != 1 || !strings.Contains(bad, "Install") {
			t.Errorf("feed of a table without one = %s, %d; want what to do", bad, code)
		}
		f, err := feed.New(feed.Config{DB: d.DB, Dialect: d.dialect, Table: table, Reader: "mail"})
		if err == nil {
			err = f.Install(t.Context())
		}
		if err == nil {
			_, err = f.Horizon(t.Context(), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if out, bad, code := d.on(t, "snowkey feed "+table, ""); code != 0 || !strings.HasPrefix(out, table+" has not gone back") {
			t.Errorf("feed = %s, %s, %d; want that it has not gone back", out, bad, code)
		}
		from := core.Default().Min(time.Now().Add(-time.Hour))
		d.exec(t, fmt.Sprintf("UPDATE orders_feed_readers SET closed = %d WHERE feed NOT IN (0, 1)", from))
		if _, err := f.Horizon(t.Context(), 0); !errors.Is(err, feed.ErrWentBack) {
			t.Fatalf("Horizon() after the database went back = %v; want ErrWentBack", err)
		}
		want := fmt.Sprintf("%s went back to the key %d\n", table, from)
		if out, bad, code := d.on(t, "snowkey feed "+table, ""); code != 0 || out != want {
			t.Errorf("feed = %s, %s, %d; want %s", out, bad, code, want)
		}
		for line, code := range map[string]int{"": 2, "acknowledge " + table: 2, "acknowledge " + table + " x -yes": 2, fmt.Sprintf("acknowledge %s %d", table, from): 2, fmt.Sprintf("acknowledge %s %d -yes", table, from+1): 1} {
			if out, bad, got := d.on(t, "snowkey feed "+line, ""); got != code {
				t.Errorf("feed %s = %s, %s, %d; want %d", line, out, bad, got, code)
			}
		}
		if _, err := f.Horizon(t.Context(), 0); !errors.Is(err, feed.ErrWentBack) {
			t.Errorf("Horizon() before it is acknowledged = %v; want ErrWentBack", err)
		}
		if out, bad, code := d.on(t, fmt.Sprintf("snowkey feed acknowledge %s %d", table, from), "y\n"); code != 0 || out != want+"acknowledge: done\n" {
			t.Errorf("acknowledge = %s, %s, %d; want it done", out, bad, code)
		}
		if _, err := f.Horizon(t.Context(), 0); err != nil {
			t.Errorf("Horizon() after that = %v", err)
		}
	})
}
