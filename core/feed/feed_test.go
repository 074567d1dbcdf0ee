package feed_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/feed"
)

// unused is a database that nothing is sent to.
type unused struct{ driver.Connector }

func TestABadConfigurationIsRefusedBeforeAnythingIsSent(t *testing.T) {
	db := sql.OpenDB(unused{})
	for field, c := range map[string]feed.Config{
		"DB":                {Dialect: feed.MySQL, Table: "orders", Reader: "mail"},
		"Dialect":           {DB: db, Table: "orders", Reader: "mail"},
		"Table, empty":      {DB: db, Dialect: feed.MySQL, Reader: "mail"},
		"Table, quoted":     {DB: db, Dialect: feed.MySQL, Table: "or`ders", Reader: "mail"},
		"Table, string":     {DB: db, Dialect: feed.PostgreSQL, Table: "public.or'ders", Reader: "mail"},
		"Table, dollar":     {DB: db, Dialect: feed.PostgreSQL, Table: "public.$$", Reader: "mail"},
		"Table, no schema":  {DB: db, Dialect: feed.PostgreSQL, Table: "orders", Reader: "mail"},
		"Table, a schema":   {DB: db, Dialect: feed.SQLite, Table: "main.orders", Reader: "mail"},
		"Table, three":      {DB: db, Dialect: feed.PostgreSQL, Table: "a.b.c", Reader: "mail"},
		"Table, no name":    {DB: db, Dialect: feed.PostgreSQL, Table: "public.", Reader: "mail"},
		"Table, long":       {DB: db, Dialect: feed.MySQL, Table: strings.Repeat("x", 51), Reader: "mail"},
		"Column, quoted":    {DB: db, Dialect: feed.MySQL, Table: "orders", Reader: "mail", Column: "i\"d"},
		"Column, qualified": {DB: db, Dialect: feed.MySQL, Table: "orders", Reader: "mail", Column: "orders.id"},
		"Reader":            {DB: db, Dialect: feed.MySQL, Table: "orders"},
		"Slack":             {DB: db, Dialect: feed.MySQL, Table: "orders", Reader: "mail", Slack: -time.Second},
		"Replica":           {DB: db, Dialect: feed.MySQL, Table: "orders", Reader: "mail", Replica: db},
		"Layout":            {DB: db, Dialect: feed.MySQL, Table: "orders", Reader: "mail", Layout: core.Layout{TimeBits: 63}},
	} {
		name, _, _ := strings.Cut(field, ",")
		var refused *core.ValueError
		if f, err := feed.New(c); f != nil || !errors.As(err, &refused) || !strings.Contains(refused.Name, name) {
			t.Errorf("New with a bad %s = %v, %v; want a ValueError that names %s", field, f, err, name)
		}
	}
	f, err := feed.New(feed.Config{DB: db, Dialect: feed.MySQL, Table: "shop.order", Reader: "mail"})
	if err != nil {
		t.Fatalf("New with a reserved word = %v; want no error", err)
	}
	var refused *core.ValueError
	if keys, err := f.Keys(t.Context(), 0, 0); keys != nil || !errors.As(err, &refused) {
		t.Errorf("Keys with the limit 0 = %v, %v; want a ValueError", keys, err)
	}
}
