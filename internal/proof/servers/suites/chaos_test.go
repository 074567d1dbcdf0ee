//go:build unix

package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/lease/zklease"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

func init() {
	my := func(dsn string) (lease.Store, error) { return openChaosSQL("mysql", dsn, sqlstore.MySQL) }
	mySegments := func(dsn string) (chaos.SegmentStore, error) { return openChaosSegments("mysql", dsn, sqlstore.MySQL) }
	mySerials := func(dsn string) (chaos.SerialDatabase, error) { return openChaosSerials("mysql", dsn, sqlstore.MySQL) }
	chaos.Main(chaos.Stores{
		Leases: map[string]chaos.Open[lease.Store]{
			"PostgreSQL": func(dsn string) (lease.Store, error) { return openChaosSQL("pgx", dsn, sqlstore.PostgreSQL) },
			"MariaDB":    my,
			"MySQL":      my,
			"Redis": func(at string) (lease.Store, error) {
				addr, prefix := cutPlace(at)
				return openChaosRedis(redis.NewClient(&redis.Options{Addr: addr}), prefix)
			},
			"ZooKeeper": func(at string) (lease.Store, error) {
				addr, base := cutPlace(at)
				conn, err := connectZooKeeper(addr)
				if err != nil {
					return nil, err
				}
				return zklease.New(conn, zklease.Config{Prefix: base})
			},
			"etcd": func(at string) (lease.Store, error) {
				addr, prefix := cutPlace(at)
				client, err := connectEtcd(addr)
				if err != nil {
					return nil, err
				}
				return etcdlease.New(client, etcdlease.Config{Prefix: prefix})
			},
		},
		Segments: map[string]chaos.Open[chaos.SegmentStore]{
			"PostgreSQL": func(dsn string) (chaos.SegmentStore, error) {
				return openChaosSegments("pgx", dsn, sqlstore.PostgreSQL)
			},
			"MariaDB": mySegments,
			"MySQL":   mySegments,
		},
		Serials: map[string]chaos.Open[chaos.SerialDatabase]{
			"PostgreSQL": func(dsn string) (chaos.SerialDatabase, error) {
				return openChaosSerials("pgx", dsn, sqlstore.PostgreSQL)
			},
			"MariaDB": mySerials,
			"MySQL":   mySerials,
		},
	})
}

func openChaosDB(driver, dsn string) (*sql.DB, error) {
	db, err := sql.Open(driver, dsn)
	if err == nil {
		db.SetMaxOpenConns(4) // servers have few for all processes together
	}
	return db, err
}

func openChaosSQL(driver, dsn string, dialect sqlstore.Dialect) (*sqllease.Store, error) {
	db, err := openChaosDB(driver, dsn)
	if err != nil {
		return nil, err
	}
	return sqllease.New(db, sqlstore.Config{Dialect: dialect, Logger: quiet})
}

func openChaosSegments(driver, dsn string, dialect sqlstore.Dialect) (*sqlsegment.Store, error) {
	db, err := openChaosDB(driver, dsn)
	if err != nil {
		return nil, err
	}
	return sqlsegment.New(db, sqlstore.Config{Dialect: dialect, Logger: quiet})
}

func openChaosSerials(driver, dsn string, dialect sqlstore.Dialect) (chaos.SerialDatabase, error) {
	db, err := openChaosDB(driver, dsn)
	return chaos.SerialDatabase{DB: db, Dialect: dialect}, err
}

func openChaosRedis(client *redis.Client, prefix string) (*redislease.Store, error) {
	return redislease.New(client, redislease.Config{Prefix: prefix, Logger: quiet})
}

// connectZooKeeper also takes the events, which are in the client's way otherwise.
func connectZooKeeper(addr string) (*zk.Conn, error) {
	conn, events, err := zk.Connect([]string{addr}, 5*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	go func() {
		for range events {
		}
	}()
	return conn, nil
}

func connectEtcd(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
}

var quiet = slog.New(slog.DiscardHandler)

// A store that is not a database has a DSN of three parts: an address, a space, and
// the test's own place at the server.
func joinPlace(addr, place string) string { return addr + " " + place }

func cutPlace(dsn string) (addr, place string) {
	addr, place, _ = strings.Cut(dsn, " ")
	return addr, place
}

// Six processes on three rows repeat no ID, although everything fails. Without the
// fence they would. If the store forgets, so they would without the loss guard.
func TestProcessesInChaosRepeatIDsOnlyWithoutWhatProtectsThem(t *testing.T) {
	var mu sync.Mutex
	var results []chaos.Result
	run := func(t *testing.T, c chaos.Leases) {
		all := []chaos.Rules{chaos.Fence, chaos.FenceStolen, chaos.TTL}
		if c.Forget != nil {
			all = append(all, chaos.Guard, chaos.NoGuard)
		}
		for _, rules := range all {
			result := c.Run(t, rules)
			mu.Lock()
			results = append(results, result)
			mu.Unlock()
			if t.Failed() {
				return
			}
		}
	}
	t.Run("stores", func(t *testing.T) {
		stores := newCrowd(t, 6)
		defer stores.wait()
		stores.run("PostgreSQL", func(t *testing.T) {
			g := leasePostgres(t, pgxConnector)
			run(t, chaos.Leases{Store: "PostgreSQL", DSN: g.dsn, Lister: g.store(t, g.open(t))})
		})
		stores.run("MariaDB", func(t *testing.T) {
			g := leaseMariaDB(t, func(*mysql.Config) {})
			run(t, chaos.Leases{Store: "MariaDB", DSN: g.dsn, Lister: g.store(t, g.open(t))})
		})
		stores.run("MySQL", func(t *testing.T) {
			g := leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {})
			run(t, chaos.Leases{Store: "MySQL", DSN: g.dsn, Lister: g.store(t, g.open(t))})
		})
		stores.run("Redis", func(t *testing.T) {
			run(t, chaosRedis(t))
		})
		stores.run("ZooKeeper", func(t *testing.T) {
			run(t, chaosZooKeeper(t))
		})
		stores.run("etcd", func(t *testing.T) {
			run(t, chaosEtcd(t))
		})
	})
	t.Log("\n" + chaos.Table(results))
}

// chaosRedis is chaos for the shared server. FLUSHALL would delete the data of others,
// so one command deletes the keys of one namespace.
func chaosRedis(t *testing.T) chaos.Leases {
	t.Helper()
	addr, prefix := servertest.Redis(t), "snowkey-chaos-"+rand.Text()
	client := redis.NewClient(&redis.Options{Addr: addr})
	s, err := openChaosRedis(client, prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		keys := client.Scan(ctx, 0, prefix+":*", 1000).Iterator()
		var err error
		for keys.Next(ctx) {
			err = errors.Join(err, client.Del(ctx, keys.Val()).Err())
		}
		if err := errors.Join(err, keys.Err(), client.Close()); err != nil {
			t.Errorf("the keys %s:* cannot be deleted: %v", prefix, err)
		}
	})
	return chaos.Leases{
		Store: "Redis", DSN: joinPlace(addr, prefix), Lister: s,
		Forget: func(ctx context.Context, namespace string) error {
			settings := prefix + ":{" + namespace + "}"
			return client.Del(ctx, settings, settings+":0").Err()
		},
	}
}

func chaosZooKeeper(t *testing.T) chaos.Leases {
	t.Helper()
	addr, base := servertest.ZooKeeper(t), "/snowkey-chaos-"+rand.Text()
	conn, err := connectZooKeeper(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deleteZnodes(conn, base); err != nil {
			t.Errorf("the znodes below %s cannot be deleted: %v", base, err)
		}
		conn.Close()
	})
	s, err := zklease.New(conn, zklease.Config{Prefix: base})
	if err != nil {
		t.Fatal(err)
	}
	return chaos.Leases{Store: "ZooKeeper", DSN: joinPlace(addr, base), Lister: s}
}

func chaosEtcd(t *testing.T) chaos.Leases {
	t.Helper()
	addr, prefix := servertest.Etcd(t), "snowkey-chaos-"+rand.Text()
	client, err := connectEtcd(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := client.Delete(context.WithoutCancel(t.Context()), prefix+"/", clientv3.WithPrefix())
		if err := errors.Join(err, client.Close()); err != nil {
			t.Errorf("the keys %s/… cannot be deleted: %v", prefix, err)
		}
	})
	s, err := etcdlease.New(client, etcdlease.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return chaos.Leases{Store: "etcd", DSN: joinPlace(addr, prefix), Lister: s}
}

// deleteZnodes deletes a znode and all below it.
func deleteZnodes(conn *zk.Conn, path string) error {
	children, _, err := conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	for _, child := range children {
		err = errors.Join(err, deleteZnodes(conn, path+"/"+child))
	}
	return errors.Join(err, conn.Delete(path, -1))
}

// Five processes are killed, stopped, continued and restarted, and their requests get
// lost. With a longer -chaos.for there is also a run that must repeat numbers.
func TestProcessesInChaosRepeatNoNumber(t *testing.T) {
	for name, target := range map[string]func(t *testing.T) leaseTarget{
		"PostgreSQL": func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) },
		"MariaDB":    func(t *testing.T) leaseTarget { return leaseMariaDB(t, func(*mysql.Config) {}) },
		"MySQL":      func(t *testing.T) leaseTarget { return leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, torn := range []bool{false, true} {
				if torn && !chaos.Long() {
					return
				}
				g := target(t)
				s := g.segments(t, g.open(t), "")
				if err := s.CreateTables(t.Context()); err != nil {
					t.Fatal(err)
				}
				chaos.Segments{Name: name, DSN: g.dsn, SegmentStore: s, Torn: torn}.Run(t)
			}
		})
	}
}

// Four processes store invoices. They are killed, stopped and continued, roll back, and
// lose their connections.
func TestProcessesInChaosLeaveNoGap(t *testing.T) {
	for _, target := range []struct {
		name string
		make func(t *testing.T) leaseTarget
	}{
		{"PostgreSQL", func(t *testing.T) leaseTarget { return leasePostgres(t, pgxConnector) }},
		{"MariaDB", func(t *testing.T) leaseTarget { return leaseMariaDB(t, func(*mysql.Config) {}) }},
		{"MySQL", func(t *testing.T) leaseTarget { return leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {}) }},
	} {
		t.Run(target.name, func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, level sql.IsolationLevel, torn bool) {
				t.Helper()
				g := target.make(t)
				db := chaos.SerialDatabase{DB: g.open(t), Dialect: g.dialect}
				chaos.Serials{Name: target.name, DSN: g.dsn, SerialDatabase: db, Level: level, Torn: torn}.Run(t)
			}
			for _, level := range levels(t, target.make(t)) {
				t.Run(level.String(), func(t *testing.T) { run(t, level, false) })
			}
			t.Run("torn", func(t *testing.T) { run(t, sql.LevelDefault, true) })
		})
	}
}
