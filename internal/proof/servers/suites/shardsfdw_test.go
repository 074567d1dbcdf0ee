package servers

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/shard"
	"github.com/snowkey/snowkey/gormplugin"
	"github.com/snowkey/snowkey/sqlxhelper"
	"github.com/snowkey/snowkey/types"
)

// foreignShards returns a database whose tables have partitions in two others, one for each half of
// 256 shards, and a Map of those two.
//
// The partitioned table can have no key. The keys of the foreign tables are enough, because a key says its
// partition. Their CHECK keeps rows of other shards away, which postgres_fdw does not.
func foreignShards(t *testing.T, l core.Layout) (db *sqlx.DB, databases *shard.Map[*sqlx.DB]) {
	t.Helper()
	dsns, dbs := postgresDatabases(t, 3, "CREATE EXTENSION postgres_fdw")
	db = dbs[0]
	execSqlx(t, db, `CREATE TABLE orders (id BIGINT NOT NULL, customer BIGINT NOT NULL) PARTITION BY RANGE ((id & 255));
		CREATE TABLE lines (id BIGINT NOT NULL, order_id BIGINT NOT NULL, sku TEXT NOT NULL) PARTITION BY RANGE ((id & 255))`)
	for i := 1; i < len(dbs); i++ {
		u, err := url.Parse(dsns[i])
		must(t, err)
		password, _ := u.User.Password()
		from, until := (i-1)*128, i*128
		execSqlx(t, dbs[i], strings.ReplaceAll(shardTables, "PRIMARY KEY", fmt.Sprintf("PRIMARY KEY CHECK ((id & 255) BETWEEN %d AND %d)", from, until-1)))
		execSqlx(t, db, fmt.Sprintf(`CREATE SERVER s%d FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname '%s')`,
			i, u.Hostname(), u.Port(), strings.TrimPrefix(u.Path, "/")))
		if postgresVersion(t, db.DB) >= 14 { // else each row takes a round trip
			execSqlx(t, db, fmt.Sprintf(`ALTER SERVER s%d OPTIONS (ADD batch_size '1000')`, i))
		}
		execSqlx(t, db, fmt.Sprintf("CREATE USER MAPPING FOR CURRENT_USER SERVER s%d OPTIONS (user '%s', password '%s')", i, u.User.Username(), password))
		for _, table := range []string{"orders", "lines"} {
			execSqlx(t, db, fmt.Sprintf("CREATE FOREIGN TABLE %[1]s_%[2]d PARTITION OF %[1]s FOR VALUES FROM (%[3]d) TO (%[4]d) SERVER s%[2]d OPTIONS (table_name '%[1]s')",
				table, i, from, until))
		}
	}
	databases, err := shard.Spread(l, dbs[1:]...)
	must(t, err)
	return db, databases
}

func TestPostgresForwardsEachShardToAForeignDatabase(t *testing.T) {
	t.Parallel()
	gen := shardGenerator(t, 8, 22)
	db, databases := foreignShards(t, gen.Layout())
	helper := sqlxhelper.New(gen)

	customers := make([]types.Snowflake, 400)
	must(t, gen.Fill(t.Context(), customers))
	for _, customer := range customers[:40] {
		ctx := core.OnShardOf(t.Context(), customer)
		must(t, helper.InsertGraph(ctx, db, "orders", &shardOrder{Customer: customer, Lines: make([]shardLine, 5)}))
	}
	many := make([]shardOrder, 3000)
	for i := range many {
		many[i].Customer = customers[i%len(customers)]
		var err error
		many[i].ID, err = gen.Next(core.OnShardOf(t.Context(), many[i].Customer))
		must(t, err)
	}
	must(t, helper.InsertMany(t.Context(), db, "orders", many))
	upserts := helper.With(sqlxhelper.OnConflictDoNothing(), sqlxhelper.ConflictTarget("id"))
	if err := upserts.InsertMany(t.Context(), db, "orders", many); sqlState(err) != "42P10" {
		t.Errorf("InsertMany() of the same orders as upserts = %v; want that PostgreSQL has no such constraint, 42P10", err)
	}

	gdb, err := gorm.Open(postgres.New(postgres.Config{Conn: db.DB}), &gorm.Config{Logger: logger.Discard})
	must(t, err)
	must(t, gdb.Use(gormplugin.New(gen)))
	lines := make([]shardLine, 3)
	for i := range lines {
		lines[i].OrderID = many[0].ID
	}
	lined := gdb.WithContext(core.OnShardOf(t.Context(), many[0].ID)).Table("lines").Session(&gorm.Session{})
	must(t, lined.Create(&lines).Error)
	must(t, lined.Clauses(clause.OnConflict{DoNothing: true}).Create(&lines).Error)

	// Every row is once where the Map says.
	stored := 0
	for i, foreign := range databases.Databases() {
		var keys []types.Snowflake
		must(t, foreign.Select(&keys, "SELECT id FROM orders UNION ALL SELECT id FROM lines"))
		for _, id := range keys {
			if in, err := databases.Of(id); err != nil || in != foreign {
				t.Errorf("row %d is in foreign database %d; want the other", id, i+1)
			}
		}
		stored += len(keys)
	}
	if want := 40*6 + len(many) + len(lines); stored != want {
		t.Errorf("%d rows are stored; want %d", stored, want)
	}
}
