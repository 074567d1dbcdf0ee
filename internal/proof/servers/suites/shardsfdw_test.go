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
	wantState(t, "InsertMany() of the same orders as upserts", upserts.InsertMany(t.Context(), db, "orders", many), "42P10")

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

// What the page on engines says of postgres_fdw.
func TestWhatPostgresDoesNotDoWithForeignPartitions(t *testing.T) {
	t.Parallel()
	l := core.Default()
	l.ShardBits = 8
	db, databases := foreignShards(t, l)
	first, second := databases.Databases()[0], databases.Databases()[1]

	// Row 257 is on shard 1, and row 456 on shard 200. Each statement has the SQLSTATE that refuses it.
	for _, c := range []struct{ statement, state string }{
		{"CREATE TABLE a (id BIGINT PRIMARY KEY) PARTITION BY RANGE ((id & 255))", "0A000"},
		{"CREATE TABLE b (id BIGINT, shard BIGINT GENERATED ALWAYS AS (id & 255) STORED) PARTITION BY LIST (shard)", "42P17"},
		{"CREATE TABLE c (id BIGINT, shard BIGINT, PRIMARY KEY (id, shard)) PARTITION BY LIST (shard)", ""},
		{"CREATE FOREIGN TABLE c_1 PARTITION OF c FOR VALUES IN (1) SERVER s1", "42809"},
		{"ALTER TABLE lines ADD FOREIGN KEY (order_id) REFERENCES orders", "42704"},
		{"INSERT INTO orders VALUES (257, 1), (456, 1) RETURNING id", ""},
		{"INSERT INTO orders VALUES (257, 1)", "23505"},
		{"INSERT INTO orders VALUES (257, 1) ON CONFLICT DO NOTHING", ""},
		{"INSERT INTO orders VALUES (257, 1) ON CONFLICT (id) DO NOTHING", "42P10"},
		{"INSERT INTO orders VALUES (257, 1) ON CONFLICT (id) DO UPDATE SET customer = 2", "42P10"},
		{"INSERT INTO lines VALUES (257, 1, 'of no order')", "23503"},
		{"UPDATE orders SET customer = 2 WHERE id = 257 RETURNING customer", ""},
		{"UPDATE orders SET id = 456 + 256 WHERE id = 257", "23514"}, // by the CHECK alone
		{"SELECT FROM orders WHERE id = 257 FOR UPDATE", ""},
		{"DO $$ BEGIN INSERT INTO orders VALUES (257, 1); EXCEPTION WHEN unique_violation THEN INSERT INTO orders VALUES (513, 1); END $$", ""},
	} {
		_, err := db.Exec(c.statement)
		wantState(t, c.statement, err, c.state)
	}

	plan := func(query string) string {
		var lines []string
		must(t, db.Select(&lines, "EXPLAIN (VERBOSE, COSTS OFF) "+query))
		return strings.Join(lines, "\n")
	}
	for query, scans := range map[string]int{
		"SELECT * FROM orders WHERE id = 257":                    2,
		"SELECT * FROM orders WHERE id = 257 AND (id & 255) = 1": 1,
	} {
		if p := plan(query); strings.Count(p, "Foreign Scan") != scans {
			t.Errorf("%s is planned as\n%s\nwant %d foreign scans", query, p, scans)
		}
	}
	if p := plan("SELECT id FROM orders ORDER BY id DESC LIMIT 5"); strings.Count(p, "ORDER BY id DESC") != 2 || strings.Contains(p, "LIMIT") {
		t.Errorf("a page is planned as\n%s\nwant two sorted foreign scans without LIMIT", p)
	}

	tx := db.MustBegin()
	_, err := tx.Exec("UPDATE orders SET customer = 3 WHERE id = 257")
	must(t, err)
	_, err = tx.Exec("PREPARE TRANSACTION 'shards'")
	wantState(t, "PREPARE TRANSACTION", err, "0A000")
	_ = tx.Rollback()

	// The foreign transaction is REPEATABLE READ, though the own one is READ COMMITTED.
	tx = db.MustBegin()
	var customer int
	must(t, tx.Get(&customer, "SELECT customer FROM orders WHERE id = 257"))
	_, err = first.Exec("UPDATE orders SET customer = 4 WHERE id = 257")
	must(t, err)
	_, err = tx.Exec("UPDATE orders SET customer = 5 WHERE id = 257")
	wantState(t, "UPDATE of a row that another transaction has changed", err, "40001")
	_ = tx.Rollback()

	// COMMIT goes to one database after the other, so one may have its half of a transaction. The
	// foreign keys are checked at COMMIT.
	halves := 0
	for i, pair := range [][2]int{{1025, 456}, {1225, 257}} { // an order on one shard, and a line of no order on the other
		tx = db.MustBegin()
		_, err = tx.Exec("INSERT INTO orders VALUES ($1, 1)", pair[0])
		must(t, err)
		_, err = tx.Exec("INSERT INTO lines VALUES ($1, 1, 'of no order')", pair[1])
		must(t, err)
		wantState(t, "COMMIT", tx.Commit(), "23503")
		var n int
		must(t, []*sqlx.DB{first, second}[i].Get(&n, "SELECT count(*) FROM orders WHERE id = $1", pair[0]))
		halves += n
	}
	if halves == 0 {
		t.Error("no transaction on two databases is half there; want one, as the page says")
	}
}

// wantState checks the SQLSTATE of an error; empty is that there is none.
func wantState(t *testing.T, what string, err error, state string) {
	t.Helper()
	if sqlState(err) != state {
		t.Errorf("%s = %v; want SQLSTATE %q", what, err, state)
	}
}
