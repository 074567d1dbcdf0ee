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
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/leasechaos"
	"github.com/snowkey/snowkey/internal/servertest"
)

func init() {
	leasechaos.Main(map[string]leasechaos.Open{
		"PostgreSQL": func(dsn string) (lease.Store, error) { return openChaosSQL("pgx", dsn, sqlstore.PostgreSQL) },
		"MariaDB":    func(dsn string) (lease.Store, error) { return openChaosSQL("mysql", dsn, sqlstore.MySQL) },
		"MySQL":      func(dsn string) (lease.Store, error) { return openChaosSQL("mysql", dsn, sqlstore.MySQL) },
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
	})
}

func openChaosSQL(driver, dsn string, dialect sqlstore.Dialect) (*sqllease.Store, error) {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4) // servers have few for all processes together
	return sqllease.New(db, sqlstore.Config{Dialect: dialect, Logger: quiet})
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
	var results []leasechaos.Result
	run := func(t *testing.T, c leasechaos.Chaos) {
		all := []leasechaos.Rules{leasechaos.Fence, leasechaos.FenceStolen, leasechaos.TTL}
		if c.Forget != nil {
			all = append(all, leasechaos.Guard, leasechaos.NoGuard)
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
			run(t, leasechaos.Chaos{Store: "PostgreSQL", DSN: g.dsn, Lister: g.store(t, g.open(t))})
		})
		stores.run("MariaDB", func(t *testing.T) {
			g := leaseMariaDB(t, func(*mysql.Config) {})
			run(t, leasechaos.Chaos{Store: "MariaDB", DSN: g.dsn, Lister: g.store(t, g.open(t))})
		})
		stores.run("MySQL", func(t *testing.T) {
			g := leaseMySQL(t, servertest.MySQL(t), func(*mysql.Config) {})
			run(t, leasechaos.Chaos{Store: "MySQL", DSN: g.dsn, Lister: g.store(t, g.open(t))})
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
	t.Log("\n" + leasechaos.Table(results))
}

// chaosRedis is chaos for the shared server. FLUSHALL would delete the data of others,
// so one command deletes the keys of one namespace.
func chaosRedis(t *testing.T) leasechaos.Chaos {
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
	return leasechaos.Chaos{
		Store: "Redis", DSN: joinPlace(addr, prefix), Lister: s,
		Forget: func(ctx context.Context, namespace string) error {
			settings := prefix + ":{" + namespace + "}"
			return client.Del(ctx, settings, settings+":0").Err()
		},
	}
}

func chaosZooKeeper(t *testing.T) leasechaos.Chaos {
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
	return leasechaos.Chaos{Store: "ZooKeeper", DSN: joinPlace(addr, base), Lister: s}
}

func chaosEtcd(t *testing.T) leasechaos.Chaos {
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
	return leasechaos.Chaos{Store: "etcd", DSN: joinPlace(addr, prefix), Lister: s}
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
