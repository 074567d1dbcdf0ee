package servers

import (
	"context"
	"crypto/rand"
	"net/url"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

type shardOrder struct {
	types.Model
	Customer types.Snowflake `db:"customer"`
	Lines    []shardLine     `db:"-" snowkey:"lines,fk=order_id"`
}

type shardLine struct {
	types.Model
	OrderID types.Snowflake `db:"order_id"`
	SKU     string          `db:"sku"`
}

const shardTables = `
	CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL);
	CREATE TABLE lines (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL REFERENCES orders DEFERRABLE INITIALLY DEFERRED, sku TEXT NOT NULL)`

// postgresDatabases makes databases with statements of tables on the server, and returns their DSNs.
func postgresDatabases(t *testing.T, n int, tables string) (dsns []string, dbs []*sqlx.DB) {
	t.Helper()
	server := servertest.PostgreSQL(t)
	u, err := url.Parse(server)
	must(t, err)
	query := u.Query()
	query.Set("synchronous_commit", "off") // no server crashes here
	u.RawQuery = query.Encode()
	for range n {
		name := "snowkey_shards_" + strings.ToLower(rand.Text())
		space(t, "pgx", server, "CREATE DATABASE "+name, "DROP DATABASE "+name+" WITH (FORCE)")
		u.Path = "/" + name
		db := openSqlx(t, "pgx", u.String())
		execSqlx(t, db, tables)
		dsns, dbs = append(dsns, u.String()), append(dbs, db)
	}
	return dsns, dbs
}

// shardGenerator returns a generator of keys with shards. Each test has a worker of its own.
func shardGenerator(t *testing.T, bits int, worker int64) *core.Generator {
	t.Helper()
	l := core.Default()
	l.ShardBits = bits
	gen, err := core.New(core.Config{Layout: l, Worker: core.StaticWorker(worker)})
	must(t, err)
	t.Cleanup(func() { _ = gen.Close(context.WithoutCancel(t.Context())) })
	return gen
}
