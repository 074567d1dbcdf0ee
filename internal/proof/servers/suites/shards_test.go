package servers

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/shard"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/sqlxhelper"
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

func shardOrderKey(o shardOrder) types.Snowflake { return o.ID }

const shardTables = `
	CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL);
	CREATE TABLE lines (id BIGINT PRIMARY KEY, order_id BIGINT NOT NULL REFERENCES orders DEFERRABLE INITIALLY DEFERRED, sku TEXT NOT NULL)`

// inNights returns the first number, or the second in .ci/nightly.
func inNights(n, nightly int) int {
	if os.Getenv("SNOWKEY_NIGHTLY") != "" {
		return nightly
	}
	return n
}

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

// Customers come one by one, and orders in any order of them, from several goroutines. Foreign keys of
// the databases refuse a line without its order.
func TestOrdersLieWholeInOneOfFourPostgresDatabases(t *testing.T) {
	t.Parallel()
	_, dbs := postgresDatabases(t, 4, shardTables)
	gen := shardGenerator(t, 8, 21)
	databases, err := shard.Spread(gen.Layout(), dbs...)
	must(t, err)
	helper := sqlxhelper.New(gen)

	customers := make([]types.Snowflake, inNights(1000, 10_000))
	for i := range customers {
		customers[i], err = gen.Next(t.Context())
		must(t, err)
	}
	const writers = 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < 2*len(customers); i += writers {
				customer := customers[i*7%len(customers)]
				db, err := databases.Of(customer)
				if err == nil {
					ctx := core.OnShardOf(t.Context(), customer)
					err = helper.InsertGraph(ctx, db, "orders", &shardOrder{Customer: customer, Lines: make([]shardLine, 5)})
				}
				if err != nil {
					t.Errorf("InsertGraph() = %v; want no error", err)
					return
				}
			}
		})
	}
	wg.Wait()

	// And many at once: one InsertMany in each database.
	many := make([]shardOrder, len(customers))
	for i := range many {
		customer := customers[i]
		many[i].Customer = customer
		many[i].ID, err = gen.Next(core.OnShardOf(t.Context(), customer))
		must(t, err)
	}
	parts, err := shard.Split(databases, many, shardOrderKey)
	must(t, err)
	for db, part := range parts {
		must(t, helper.InsertMany(t.Context(), db, "orders", part))
	}

	// Everything, in the order of keys, as the databases have it.
	var all []shardOrder
	perDatabase, perShard := make([]int, 4), make([]int, 256)
	for i, db := range dbs {
		var orders []shardOrder
		must(t, db.Select(&orders, "SELECT * FROM orders"))
		for _, o := range orders {
			if in, err := databases.Of(o.ID); err != nil || in != db || gen.Layout().Shard(o.ID) != gen.Layout().Shard(o.Customer) {
				t.Fatalf("order %d of customer %d is in database %d; want it on its customer's shard, in that one's", o.ID, o.Customer, i)
			}
			perShard[gen.Layout().Shard(o.ID)]++
		}
		var lines []shardLine
		must(t, db.Select(&lines, "SELECT * FROM lines"))
		for _, l := range lines {
			if gen.Layout().Shard(l.ID) != gen.Layout().Shard(l.OrderID) {
				t.Fatalf("line %d of order %d is on another shard", l.ID, l.OrderID)
			}
		}
		perDatabase[i] = len(orders)
		all = append(all, orders...)
	}
	if len(all) != 3*len(customers) {
		t.Errorf("%d orders are stored; want %d", len(all), 3*len(customers))
	}
	t.Logf("%d orders, each whole in one database; in databases: %v; on shards: %d..%d, mean %.1f", len(all), perDatabase, slices.Min(perShard), slices.Max(perShard), float64(len(all))/256)

	slices.SortFunc(all, func(a, b shardOrder) int { return cmp.Compare(b.ID, a.ID) })
	var pages []shardOrder
	page := shard.Page{Limit: 100, Descending: true}
	var merged time.Duration
	for p := page; ; {
		begin := time.Now()
		orders, err := shard.ReadPage(t.Context(), databases, p, shardOrderKey, readShardOrders)
		merged += time.Since(begin)
		must(t, err)
		if len(orders) == 0 {
			break
		}
		pages = append(pages, orders...)
		p = p.After(orders[len(orders)-1].ID)
	}
	same := func(a, b shardOrder) bool { return a.ID == b.ID && a.Customer == b.Customer }
	if !slices.EqualFunc(pages, all, same) {
		t.Errorf("the pages have %d orders, or another order; want all %d", len(pages), len(all))
	}
	begin := time.Now()
	for rows := range slices.Chunk(all, 100) { // as many pages of one database
		_, err := readShardOrders(t.Context(), dbs[0], shard.Page{Last: rows[0].ID, Limit: 100, Descending: true})
		must(t, err)
	}
	t.Logf("a merged page of 100 takes %.1f times as long as one of a single database", float64(merged)/float64(time.Since(begin)))

	// A span of time, upwards.
	from, until := gen.Layout().Parts(all[2*len(all)/3].ID).Time, gen.Layout().Parts(all[len(all)/3].ID).Time
	page = shard.Page{Limit: len(all)}
	page.First, page.Last = gen.Between(from, until)
	var want []shardOrder
	for _, o := range slices.Backward(all) {
		if o.ID >= page.First && o.ID <= page.Last {
			want = append(want, o)
		}
	}
	got, err := shard.ReadPage(t.Context(), databases, page, shardOrderKey, readShardOrders)
	if err != nil || len(got) == 0 || !slices.EqualFunc(got, want, same) {
		t.Errorf("ReadPage() of a span of time = %d orders, %v; want %d", len(got), err, len(want))
	}
}

func readShardOrders(ctx context.Context, db *sqlx.DB, p shard.Page) (orders []shardOrder, err error) {
	query := "SELECT * FROM orders WHERE id BETWEEN $1 AND $2 ORDER BY id LIMIT $3"
	if p.Descending {
		query = "SELECT * FROM orders WHERE id BETWEEN $1 AND $2 ORDER BY id DESC LIMIT $3"
	}
	err = db.SelectContext(ctx, &orders, query, p.First, p.Last, p.Limit)
	return orders, err
}
