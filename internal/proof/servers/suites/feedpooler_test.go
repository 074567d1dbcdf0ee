//go:build unix

package servers

import (
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/internal/proof/cases/feedcases"
)

// The writers are not behind it. Each statement of the feed may be on another connection of the server.
func TestTheFeedMissesNoRowBehindPgBouncer(t *testing.T) {
	p := newPooler(t, "transaction")
	d := postgresFeed(p.direct.String())
	d.Schema, d.FeedDSN, d.Prepare = p.direct.Query().Get("search_path"), p.in(t, "pgx exec").dsn, nil // the server may prepare none
	feedcases.Processes(t, d, *feedSpan)
}

func TestTheFeedHasNoKeysBehindAPoolerInStatementMode(t *testing.T) {
	p := newPooler(t, "statement")
	execSqlx(t, p.admin, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	table := p.direct.Query().Get("search_path") + ".orders"
	direct, err := feed.New(feed.Config{DB: p.admin.DB, Dialect: feed.PostgreSQL, Table: table, Reader: "mail"})
	must(t, err)
	must(t, direct.Install(t.Context()))
	f, err := feed.New(feed.Config{DB: p.in(t, "pgx exec").open(t).DB, Dialect: feed.PostgreSQL, Table: table, Reader: "mail"})
	must(t, err)
	if keys, err := f.Keys(t.Context(), 0, 10); keys != nil || err == nil || !strings.Contains(err.Error(), "feed: Horizon") {
		t.Errorf("Keys() in statement mode = %v, %v; want the error of the pooler", keys, err)
	}
}
