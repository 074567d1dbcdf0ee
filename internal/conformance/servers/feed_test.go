package servers

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/internal/conformance/feedcases"
	"github.com/snowkey/snowkey/internal/servertest"
)

var (
	feedSpan = flag.Duration("feed.span", 4*time.Second, "how long writers of the feed fail on each database")
	feedHold = flag.Duration("feed.hold", 2*time.Second, "how long transactions are held open on each database that has a feed")
)

func postgresFeed(db *sql.DB) feedcases.Database {
	return feedcases.Database{
		DB: db, Dialect: feed.PostgreSQL,
		Kill: "SELECT pg_terminate_backend(%d)", Self: "SELECT pg_backend_pid()",
		Prepare: []string{"BEGIN /* %s */", "PREPARE TRANSACTION '%s'"}, Commit: "COMMIT PREPARED '%s'",
	}
}

// A process that another test has started.
func TestAProcessOfTheFeed(t *testing.T) { feedcases.Process(t) }

func TestTheFeedOfPostgreSQLMissesNoRow(t *testing.T) {
	dsn, _ := servertest.StartPostgreSQL(t, "max_prepared_transactions=50")
	d := postgresFeed(openSqlx(t, "pgx", dsn).DB)
	feedcases.Run(t, d)
	t.Run("Held", func(t *testing.T) { feedcases.Held(t, d, *feedHold) })
	t.Run("Chaos", func(t *testing.T) { feedcases.Chaos(t, d, 12, *feedSpan) })
	t.Run("Processes", func(t *testing.T) { feedcases.Processes(t, d, "pgx", dsn, *feedSpan) })
	t.Run("ChaosWithAServerThatCrashes", func(t *testing.T) {
		// The postmaster ends all others when one of its processes is killed, and recovers.
		d.Crash = func(pid int) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		feedcases.Chaos(t, d, 12, *feedSpan)
	})
}

func TestTheFeedReadsAStandbyAndMissesNoRow(t *testing.T) {
	dsn, programs := servertest.StartPostgreSQL(t, "max_prepared_transactions=50", "synchronous_commit=off")
	standby := servertest.StartPostgreSQLStandby(t, dsn, programs, "max_prepared_transactions=50", "max_connections=100", "hot_standby=on")
	d := postgresFeed(openSqlx(t, "pgx", dsn).DB)
	d.Read = openSqlx(t, "pgx", standby).DB
	feedcases.Chaos(t, d, 12, *feedSpan)
	feedcases.Held(t, d, *feedHold)

	for name, c := range map[string]feed.Config{
		"a standby in place of the primary": {DB: d.Read, Dialect: feed.PostgreSQL, Table: "public.orders"},
		"a primary in place of the standby": {DB: d.DB, Dialect: feed.PostgreSQL, Table: "public.standby_orders", Replica: d.DB},
	} {
		f, err := feed.New(c)
		must(t, err)
		if c.DB == d.DB {
			_, err := d.DB.Exec("CREATE TABLE standby_orders (id BIGINT PRIMARY KEY)")
			must(t, err)
			must(t, f.Install(t.Context()))
			theHorizonWaitsForTheStandby(t, c.Table, d)
		}
		if h, err := f.Horizon(t.Context()); h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) || !strings.Contains(err.Error(), "standby") {
			t.Errorf("Horizon() with %s = %d, %v; want ErrUnknownHorizon", name, h, err)
		}
	}
}

func theHorizonWaitsForTheStandby(t *testing.T, table string, d feedcases.Database) {
	f, err := feed.New(feed.Config{DB: d.DB, Dialect: feed.PostgreSQL, Table: table, Replica: d.Read, Slack: time.Millisecond})
	must(t, err)
	_, err = d.Read.Exec("SELECT pg_wal_replay_pause()")
	must(t, err)
	for range 20 {
		if h, err := f.Horizon(t.Context()); h != 0 || err != nil {
			t.Errorf("Horizon() while the standby replays nothing = %d, %v; want 0", h, err)
		}
	}
	_, err = d.Read.Exec("SELECT pg_wal_replay_resume()")
	must(t, err)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if h, err := f.Horizon(t.Context()); h > 0 || err != nil || time.Now().After(end) {
			if h <= 0 || err != nil {
				t.Errorf("Horizon() when the standby replays again = %d, %v; want a key", h, err)
			}
			return
		}
	}
}

// A partition that somebody has added keeps the fence, or there is no horizon.
func TestTheFeedKnowsEachPartition(t *testing.T) {
	dsn, _ := servertest.StartPostgreSQL(t)
	db := openSqlx(t, "pgx", dsn)
	execSqlx(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY) PARTITION BY RANGE (id)")
	execSqlx(t, db, "CREATE TABLE orders_1 PARTITION OF orders FOR VALUES FROM (0) TO (1000)")
	f, err := feed.New(feed.Config{DB: db.DB, Dialect: feed.PostgreSQL, Table: "public.orders"})
	must(t, err)
	must(t, f.Install(t.Context()))
	horizon := func() error { _, err := f.Horizon(t.Context()); return err }
	must(t, horizon())
	if _, err := db.Exec("INSERT INTO orders VALUES (5)"); err == nil {
		t.Error("INSERT of an old key into a partition = nil; want it refused")
	}
	execSqlx(t, db, "CREATE TABLE orders_2 PARTITION OF orders FOR VALUES FROM (1000) TO (2000)")
	if err := horizon(); err != nil { // versions differ in what a new partition gets
		t.Logf("a new partition: %v", err)
		must(t, f.Install(t.Context()))
		must(t, horizon())
	}
	execSqlx(t, db, "ALTER TABLE orders_2 DISABLE TRIGGER zz_feed")
	if err := horizon(); !errors.Is(err, feed.ErrUnknownHorizon) || !strings.Contains(err.Error(), "orders_2") {
		t.Errorf("Horizon() with an open partition = %v; want ErrUnknownHorizon with its name", err)
	}
}

func TestTheFeedOfMariaDBMissesNoRow(t *testing.T) { innoDBFeed(t, servertest.MariaDB(t)) }
func TestTheFeedOfMySQLMissesNoRow(t *testing.T)   { innoDBFeed(t, servertest.MySQL(t)) }

func innoDBFeed(t *testing.T, dsn string) {
	admin := openSqlx(t, "mysql", dsn)
	name := fmt.Sprintf("feed%08x", rand.Uint32())
	execSqlx(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { _, _ = admin.ExecContext(context.Background(), "DROP DATABASE "+name) })
	slash := strings.LastIndexByte(dsn, '/')
	own := dsn[:slash+1] + name + "?parseTime=true"
	d := feedcases.Database{
		DB: openSqlx(t, "mysql", own).DB, Dialect: feed.MySQL,
		Kill: "KILL %d", Self: "SELECT CONNECTION_ID()",
		Prepare: []string{"XA START '%s'", "XA END '%s'", "XA PREPARE '%s'"}, Commit: "XA COMMIT '%s'",
	}
	feedcases.Run(t, d)
	t.Run("Held", func(t *testing.T) { feedcases.Held(t, d, *feedHold) })
	t.Run("Chaos", func(t *testing.T) { feedcases.Chaos(t, d, 12, *feedSpan) })
	t.Run("Processes", func(t *testing.T) { feedcases.Processes(t, d, "mysql", own, *feedSpan) })

	// Such a user sees only its own transactions, or none.
	t.Run("WithoutThePrivilegeThereIsNoHorizon", func(t *testing.T) {
		execSqlx(t, admin, "CREATE TABLE "+name+".orders (id BIGINT PRIMARY KEY)")
		execSqlx(t, admin, "CREATE USER "+name+"@'%' IDENTIFIED BY 'x'")
		t.Cleanup(func() { execSqlx(t, admin, "DROP USER "+name+"@'%'") })
		execSqlx(t, admin, "GRANT ALL ON "+name+".* TO "+name+"@'%'")
		at := strings.LastIndexByte(dsn[:slash], '@')
		user := openSqlx(t, "mysql", name+":x"+dsn[at:slash+1]+name+"?parseTime=true")
		full, err := feed.New(feed.Config{DB: d.DB, Dialect: feed.MySQL, Table: "orders"})
		must(t, err)
		must(t, full.Install(t.Context()))
		f, err := feed.New(feed.Config{DB: user.DB, Dialect: feed.MySQL, Table: "orders"})
		must(t, err)
		if h, err := f.Horizon(t.Context()); h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) || !strings.Contains(err.Error(), "PROCESS") {
			t.Errorf("Horizon() without PROCESS = %d, %v; want ErrUnknownHorizon", h, err)
		}
	})
}
