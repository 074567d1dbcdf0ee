//go:build unix

package servers

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/snowkey/snowkey/core/feed"
	"github.com/snowkey/snowkey/internal/proof/cases/feedcases"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

var feedSpan = flag.Duration("feed.span", 4*time.Second, "how long processes of the feed are killed on each database")

func postgresFeed(dsn string) feedcases.Database {
	return feedcases.Database{
		Driver: "pgx", DSN: dsn, Dialect: feed.PostgreSQL,
		Kill: "SELECT pg_terminate_backend(%d)", Self: "SELECT pg_backend_pid()",
		Prepare:  []string{"BEGIN /* %s */", "PREPARE TRANSACTION '%s'"},
		Prepared: "SELECT 0, 0, 0, gid FROM pg_prepared_xacts", Commit: "COMMIT PREPARED '%s'",
	}
}

func TestTheFeedOfPostgreSQLMissesNoRow(t *testing.T) {
	t.Parallel()
	dsn, _ := servertest.StartPostgreSQL(t, "max_prepared_transactions=50")
	d := postgresFeed(dsn)
	feedcases.Run(t, d)
	t.Run("Processes", func(t *testing.T) { feedcases.Processes(t, d, *feedSpan) })
	t.Run("ProcessesOfAServerThatCrashes", func(t *testing.T) {
		// The postmaster ends all others when one of its processes is killed, and recovers.
		d.Crash = func(pid int) {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
		feedcases.Processes(t, d, *feedSpan)
	})
}

func TestTheFeedReadsAStandbyAndMissesNoRow(t *testing.T) {
	dsn, programs := servertest.StartPostgreSQL(t, "max_prepared_transactions=50", "synchronous_commit=off")
	standby := servertest.StartPostgreSQLStandby(t, dsn, programs, "max_prepared_transactions=50", "max_connections=100", "hot_standby=on")
	d := postgresFeed(dsn)
	d.ReplicaDSN = standby
	feedcases.Processes(t, d, *feedSpan)

	db, replica := openSqlx(t, "pgx", dsn).DB, openSqlx(t, "pgx", standby).DB
	for name, c := range map[string]feed.Config{
		"a standby in place of the primary": {DB: replica, Dialect: feed.PostgreSQL, Table: "public.orders", Reader: "mail"},
		"a primary in place of the standby": {DB: db, Dialect: feed.PostgreSQL, Table: "public.standby_orders", Reader: "mail", Replica: db},
	} {
		f, err := feed.New(c)
		must(t, err)
		if c.DB == db {
			_, err := db.Exec("CREATE TABLE standby_orders (id BIGINT PRIMARY KEY)")
			must(t, err)
			must(t, f.Install(t.Context()))
			theHorizonWaitsForTheStandby(t, c.Table, db, replica)
		}
		if h, err := f.Horizon(t.Context(), 0); h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) || !strings.Contains(err.Error(), "standby") {
			t.Errorf("Horizon() with %s = %d, %v; want ErrUnknownHorizon", name, h, err)
		}
	}
}

func theHorizonWaitsForTheStandby(t *testing.T, table string, db, replica *sql.DB) {
	f, err := feed.New(feed.Config{DB: db, Dialect: feed.PostgreSQL, Table: table, Reader: "mail", Replica: replica, Slack: time.Millisecond})
	must(t, err)
	_, err = replica.Exec("SELECT pg_wal_replay_pause()")
	must(t, err)
	for range 20 {
		if h, err := f.Horizon(t.Context(), 0); h != 0 || err != nil {
			t.Errorf("Horizon() while the standby replays nothing = %d, %v; want 0", h, err)
		}
	}
	_, err = replica.Exec("SELECT pg_wal_replay_resume()")
	must(t, err)
	for end := time.Now().Add(hangs); ; time.Sleep(5 * time.Millisecond) {
		if h, err := f.Horizon(t.Context(), 0); h > 0 || err != nil || time.Now().After(end) {
			if h <= 0 || err != nil {
				t.Errorf("Horizon() when the standby replays again = %d, %v; want a key", h, err)
			}
			return
		}
	}
}

// A partition that somebody has added keeps the fence, or there is no horizon.
func TestTheFeedKnowsEachPartition(t *testing.T) {
	t.Parallel()
	dsn, _ := servertest.StartPostgreSQL(t)
	db := openSqlx(t, "pgx", dsn)
	execSqlx(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY) PARTITION BY RANGE (id)")
	execSqlx(t, db, "CREATE TABLE orders_1 PARTITION OF orders FOR VALUES FROM (0) TO (1000)")
	f, err := feed.New(feed.Config{DB: db.DB, Dialect: feed.PostgreSQL, Table: "public.orders", Reader: "mail"})
	must(t, err)
	must(t, f.Install(t.Context()))
	horizon := func() error { _, err := f.Horizon(t.Context(), 0); return err }
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

// It has a server of its own, because the horizon waits for the transactions of everybody on it.
func TestTheFeedOfMariaDBMissesNoRow(t *testing.T) {
	t.Parallel()
	dsn, _ := servertest.StartMariaDB(t)
	innoDBFeed(t, dsn)
}

func TestTheFeedOfMySQLMissesNoRow(t *testing.T) { innoDBFeed(t, servertest.MySQL(t)) }

func innoDBFeed(t *testing.T, dsn string) {
	admin := openSqlx(t, "mysql", dsn)
	name := fmt.Sprintf("feed%08x", rand.Uint32())
	execSqlx(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { _, _ = admin.ExecContext(context.Background(), "DROP DATABASE "+name) })
	slash := strings.LastIndexByte(dsn, '/')
	own := dsn[:slash+1] + name + "?parseTime=true"
	d := feedcases.Database{
		Driver: "mysql", DSN: own, Dialect: feed.MySQL,
		Kill: "KILL %d", Self: "SELECT CONNECTION_ID()",
		Prepare: []string{"XA START '%s'", "XA END '%s'", "XA PREPARE '%s'"}, Prepared: "XA RECOVER", Commit: "XA COMMIT '%s'",
	}
	feedcases.Run(t, d)
	t.Run("Processes", func(t *testing.T) { feedcases.Processes(t, d, *feedSpan) })
	db := openSqlx(t, "mysql", own).DB

	// Such a user sees only its own transactions, or none.
	t.Run("WithoutThePrivilegeThereIsNoHorizon", func(t *testing.T) {
		execSqlx(t, admin, "CREATE TABLE "+name+".orders (id BIGINT PRIMARY KEY)")
		execSqlx(t, admin, "CREATE USER "+name+"@'%' IDENTIFIED BY 'x'")
		t.Cleanup(func() { execSqlx(t, admin, "DROP USER "+name+"@'%'") })
		execSqlx(t, admin, "GRANT ALL ON "+name+".* TO "+name+"@'%'")
		at := strings.LastIndexByte(dsn[:slash], '@')
		full, err := feed.New(feed.Config{DB: db, Dialect: feed.MySQL, Table: "orders", Reader: "mail"})
		must(t, err)
		must(t, full.Install(t.Context()))
		monitor := "REPLICATION CLIENT"
		if strings.Contains(t.Name(), "MariaDB") {
			monitor = "REPLICA MONITOR"
		}
		for _, step := range []struct{ change, lacks string }{
			{"", monitor},
			{"GRANT PROCESS ON *.* TO ", monitor},
			{"GRANT " + monitor + " ON *.* TO ", ""},
			{"REVOKE PROCESS ON *.* FROM ", "PROCESS"},
		} {
			if step.change != "" {
				execSqlx(t, admin, step.change+name+"@'%'")
			}
			user := openSqlx(t, "mysql", name+":x"+dsn[at:slash+1]+name+"?parseTime=true") // privileges are those of the connect
			f, err := feed.New(feed.Config{DB: user.DB, Dialect: feed.MySQL, Table: "orders", Reader: "mail"})
			must(t, err)
			h, err := f.Horizon(t.Context(), 0)
			if step.lacks == "" && err != nil {
				t.Errorf("Horizon() with all privileges = %v", err)
			}
			if step.lacks != "" && (h != 0 || !errors.Is(err, feed.ErrUnknownHorizon) || !strings.Contains(err.Error(), step.lacks)) {
				t.Errorf("Horizon() without %s = %d, %v; want ErrUnknownHorizon that names it", step.lacks, h, err)
			}
		}
	})

	t.Run("OtherEnginesHaveNoHorizon", func(t *testing.T) {
		for _, engine := range []string{"MyISAM", "MEMORY", "InnoDB"} {
			execSqlx(t, admin, "CREATE TABLE "+name+".other (id BIGINT PRIMARY KEY) ENGINE = "+engine)
			f, err := feed.New(feed.Config{DB: db, Dialect: feed.MySQL, Table: "other", Reader: "mail"})
			must(t, err)
			must(t, f.Install(t.Context()))
			if h, err := f.Horizon(t.Context(), 0); (engine == "InnoDB") != (err == nil) || err != nil && (h != 0 || !errors.Is(err, feed.ErrUnknownHorizon)) {
				t.Errorf("Horizon() of a table of %s = %d, %v; want ErrUnknownHorizon for all but InnoDB", engine, h, err)
			}
			execSqlx(t, admin, "DROP TABLE "+name+".other")
		}
	})

	// A connection that keeps a transaction open has its old snapshot in the pool.
	t.Run("WithoutAutocommitThereIsNoHorizon", func(t *testing.T) {
		execSqlx(t, admin, "CREATE TABLE "+name+".later (id BIGINT PRIMARY KEY)")
		f, err := feed.New(feed.Config{DB: openSqlx(t, "mysql", own+"&autocommit=0").DB, Dialect: feed.MySQL, Table: "later", Reader: "mail"})
		must(t, err)
		must(t, f.Install(t.Context()))
		if keys, err := f.Keys(t.Context(), 0, 10); keys != nil || !errors.Is(err, feed.ErrUnknownHorizon) || !strings.Contains(err.Error(), "autocommit") {
			t.Errorf("Keys() with autocommit off = %v, %v; want ErrUnknownHorizon", keys, err)
		}
	})
}

// A replica takes rows by another way than INSERT, or will when it starts.
func TestTheFeedOfMariaDBHasNoHorizonOnAReplica(t *testing.T) {
	dsn, _ := servertest.StartMariaDB(t, "--server-id=2", "--log-bin")
	db := openSqlx(t, "mysql", dsn)
	execSqlx(t, db, "CREATE DATABASE feed")
	execSqlx(t, db, "CREATE TABLE feed.orders (id BIGINT PRIMARY KEY)")
	f, err := feed.New(feed.Config{DB: db.DB, Dialect: feed.MySQL, Table: "feed.orders", Reader: "mail"})
	must(t, err)
	must(t, f.Install(t.Context()))
	for _, step := range []struct {
		statement string
		replica   bool
	}{
		{"SELECT 1", false},
		{"CHANGE MASTER 'a' TO MASTER_HOST = '127.0.0.1', MASTER_PORT = 1, MASTER_USER = 'x'", true},
		{"START SLAVE 'a'", true},
		{"STOP SLAVE 'a'", true},
		{"RESET SLAVE 'a' ALL", false},
		{"SET GLOBAL read_only = 1", true},
		{"SET GLOBAL read_only = 0", false},
	} {
		execSqlx(t, db, step.statement)
		h, err := f.Horizon(t.Context(), 0)
		if step.replica && (h != 0 || !errors.Is(err, feed.ErrUnknownHorizon)) || !step.replica && err != nil {
			t.Errorf("Horizon() after %q = %d, %v; want ErrUnknownHorizon: %t", step.statement, h, err, step.replica)
		}
	}
}

// alternating is what leads to one server and to another in turn.
type alternating struct {
	driver.Connector
	other driver.Connector
	n     *atomic.Int64
}

func (a alternating) Connect(ctx context.Context) (driver.Conn, error) {
	if a.n.Add(1)%2 == 0 {
		return a.other.Connect(ctx)
	}
	return a.Connector.Connect(ctx)
}

// One standby has replayed what another has not: the first row is on both, and the second only on one.
func TestTheFeedMissesNoRowWhereTheReplicaIsSeveralStandbys(t *testing.T) {
	dsn, programs := servertest.StartPostgreSQL(t)
	db := openSqlx(t, "pgx", dsn)
	execSqlx(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	var connectors []driver.Connector
	var behind *sqlx.DB
	for range 2 {
		standby := servertest.StartPostgreSQLStandby(t, dsn, programs, "max_connections=100", "hot_standby=on")
		c, err := place{way: wayTo("pgx"), dsn: standby}.connector()
		must(t, err)
		connectors = append(connectors, c)
		behind = openSqlx(t, "pgx", standby)
	}
	replica := sql.OpenDB(alternating{connectors[0], connectors[1], new(atomic.Int64)})
	replica.SetMaxIdleConns(-1)
	t.Cleanup(func() { _ = replica.Close() })
	f, err := feed.New(feed.Config{DB: db.DB, Dialect: feed.PostgreSQL, Table: "public.orders", Reader: "mail", Replica: replica, Slack: time.Millisecond})
	must(t, err)
	must(t, f.Install(t.Context()))

	keys := pageKeys(t, time.Now(), 2)
	execSqlx(t, db, fmt.Sprintf("INSERT INTO orders VALUES (%d)", keys[1]))
	for there := false; !there; time.Sleep(5 * time.Millisecond) {
		must(t, behind.Get(&there, "SELECT to_regclass('orders') IS NOT NULL"))
		if there {
			must(t, behind.Get(&there, "SELECT EXISTS (SELECT FROM orders)"))
		}
	}
	execSqlx(t, behind, "SELECT pg_wal_replay_pause()")
	for paused := false; !paused; time.Sleep(5 * time.Millisecond) {
		must(t, behind.Get(&paused, "SELECT pg_get_wal_replay_pause_state() = 'paused'"))
	}
	execSqlx(t, db, fmt.Sprintf("INSERT INTO orders VALUES (%d)", keys[0]))
	var got []types.Snowflake
	refused := 0
	for end := time.Now().Add(hangs); (len(got) < 2 || refused == 0) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		after := types.Snowflake(0)
		if len(got) > 0 {
			after = got[len(got)-1]
		}
		more, err := f.Keys(t.Context(), after, 10)
		if errors.Is(err, feed.ErrUnknownHorizon) {
			refused++
			continue
		}
		must(t, err)
		got = append(got, more...)
	}
	if !slices.Equal(got, keys) || refused == 0 {
		t.Errorf("Keys() = %v, and ErrUnknownHorizon %d times; want %v, and the error from the standby that is behind", got, refused, keys)
	}

	execSqlx(t, behind, "SELECT pg_promote()")
	promoted, err := feed.New(feed.Config{DB: db.DB, Dialect: feed.PostgreSQL, Table: "public.orders", Reader: "mail", Replica: behind.DB})
	must(t, err)
	if keys, err := promoted.Keys(t.Context(), 0, 10); keys != nil || !errors.Is(err, feed.ErrUnknownHorizon) {
		t.Errorf("Keys() of a standby that was promoted = %v, %v; want ErrUnknownHorizon", keys, err)
	}
}

// Rows of a subscription, and those of a session that says that it is one.
func TestTheFeedRefusesOldRowsOfReplicationToo(t *testing.T) {
	dsn, _ := servertest.StartPostgreSQL(t)
	db := openSqlx(t, "pgx", dsn)
	execSqlx(t, db, "CREATE TABLE orders (id BIGINT PRIMARY KEY)")
	f, err := feed.New(feed.Config{DB: db.DB, Dialect: feed.PostgreSQL, Table: "public.orders", Reader: "mail"})
	must(t, err)
	must(t, f.Install(t.Context()))
	_, err = f.Horizon(t.Context(), 0)
	must(t, err)
	replicated := openSqlx(t, "pgx", dsn+"&session_replication_role=replica")
	if _, err := replicated.Exec("INSERT INTO orders VALUES (5)"); err == nil || !strings.Contains(err.Error(), "below the horizon") {
		t.Errorf("INSERT of an old key by replication = %v; want it refused", err)
	}
}
