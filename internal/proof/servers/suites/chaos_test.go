//go:build unix

package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/redislease"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/lease/zklease"
	"github.com/snowkey/snowkey/core/segment/sqlsegment"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/cases/feedcases"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/internal/proof/robust/role"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

var quiet = slog.New(slog.DiscardHandler)

func init() {
	stores := chaos.Stores{
		Leases:   map[string]chaos.Open[lease.Store]{},
		Segments: map[string]chaos.Open[chaos.SegmentStore]{},
		Serials:  map[string]chaos.Open[chaos.SerialDatabase]{},
	}
	for name, driver := range map[string]string{"PostgreSQL": "pgx", "MariaDB": "mysql", "MySQL": "mysql"} {
		stores.Leases[name] = chaosSQL(driver, func(db *sql.DB, c sqlstore.Config) (lease.Store, error) { return sqllease.New(db, c) })
		stores.Segments[name] = chaosSQL(driver, func(db *sql.DB, c sqlstore.Config) (chaos.SegmentStore, error) { return sqlsegment.New(db, c) })
		stores.Serials[name] = chaosSQL(driver, func(db *sql.DB, c sqlstore.Config) (chaos.SerialDatabase, error) {
			return chaos.SerialDatabase{DB: db, Dialect: c.Dialect}, nil
		})
	}
	for name, s := range chaosServers {
		stores.Leases[name] = func(at string) (lease.Store, error) {
			addr, prefix, _ := strings.Cut(at, " ")
			place, err := s.open(addr, prefix)
			return place.store, err
		}
	}
	roles := stores.Roles()
	roles[feedcases.Role] = feedcases.Play
	role.Play(roles)
}

func chaosSQL[S any](driver string, make func(*sql.DB, sqlstore.Config) (S, error)) chaos.Open[S] {
	return func(dsn string) (s S, err error) {
		db, err := sql.Open(driver, dsn)
		if err != nil {
			return s, err
		}
		db.SetMaxOpenConns(4) // servers have few for all processes together
		dialect := sqlstore.MySQL
		if driver == "pgx" {
			dialect = sqlstore.PostgreSQL
		}
		return make(db, sqlstore.Config{Dialect: dialect, Logger: quiet})
	}
}

// A chaosPlace is a store on a server that is no database, below a prefix of the test's own.
type chaosPlace struct {
	store interface {
		lease.Store
		leasestore.History
	}
	remove func(ctx context.Context) error // all below the prefix, at the end
	forget func(ctx context.Context, namespace string) error
}

// The DSN of such a place is the address and the prefix.
var chaosServers = map[string]struct {
	addr func(testing.TB) string
	open func(addr, prefix string) (chaosPlace, error)
}{
	"Redis": {servertest.Redis, func(addr, prefix string) (chaosPlace, error) {
		client := redis.NewClient(&redis.Options{Addr: addr})
		s, err := redislease.New(client, redislease.Config{Prefix: prefix, Logger: quiet})
		return chaosPlace{s, func(ctx context.Context) (err error) {
			keys := client.Scan(ctx, 0, prefix+":*", 1000).Iterator()
			for keys.Next(ctx) {
				err = errors.Join(err, client.Del(ctx, keys.Val()).Err())
			}
			return errors.Join(err, keys.Err(), client.Close())
		}, func(ctx context.Context, namespace string) error {
			// FLUSHALL would delete the data of others, so one command deletes the keys of one namespace.
			settings := prefix + ":{" + namespace + "}"
			return client.Del(ctx, settings, settings+":0").Err()
		}}, err
	}},
	"ZooKeeper": {servertest.ZooKeeper, func(addr, prefix string) (chaosPlace, error) {
		conn, events, err := zk.Connect([]string{addr}, 5*time.Second, zk.WithLogInfo(false))
		if err != nil {
			return chaosPlace{}, err
		}
		go func() { // events are in the client's way otherwise
			for range events {
			}
		}()
		s, err := zklease.New(conn, zklease.Config{Prefix: "/" + prefix})
		return chaosPlace{s, func(context.Context) error {
			defer conn.Close()
			return deleteZnodes(conn, "/"+prefix)
		}, nil}, err
	}},
	"etcd": {servertest.Etcd, func(addr, prefix string) (chaosPlace, error) {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
		if err != nil {
			return chaosPlace{}, err
		}
		s, err := etcdlease.New(client, etcdlease.Config{Prefix: prefix})
		return chaosPlace{s, func(ctx context.Context) error {
			_, err := client.Delete(ctx, prefix+"/", clientv3.WithPrefix())
			return errors.Join(err, client.Close())
		}, nil}, err
	}},
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

// Six processes on three rows repeat no ID, although everything fails. Without the
// fence they would. If the store forgets, so they would without the loss guard.
func TestProcessesInChaosRepeatIDsOnlyWithoutWhatProtectsThem(t *testing.T) {
	run := func(t *testing.T, c chaos.Leases) {
		all := []chaos.Rules{chaos.Fence, chaos.FenceStolen, chaos.TTL}
		if c.Forget != nil {
			all = append(all, chaos.Guard, chaos.NoGuard)
		}
		for _, rules := range all {
			if c.Run(t, rules); t.Failed() {
				return
			}
		}
	}
	t.Run("stores", func(t *testing.T) {
		stores := newCrowd(t, 6)
		defer stores.wait()
		for server := range servers {
			stores.run(server, func(t *testing.T) {
				g := waysTo(server)[0].target(t)
				run(t, chaos.Leases{Store: server, DSN: g.dsn, Look: g.store(t, g.open(t))})
			})
		}
		for name, s := range chaosServers {
			stores.run(name, func(t *testing.T) {
				addr, prefix := s.addr(t), "snowkey-chaos-"+rand.Text()
				place, err := s.open(addr, prefix)
				must(t, err)
				t.Cleanup(func() {
					if err := place.remove(context.WithoutCancel(t.Context())); err != nil {
						t.Errorf("what is below %s cannot be deleted: %v", prefix, err)
					}
				})
				run(t, chaos.Leases{Store: name, DSN: addr + " " + prefix, Look: place.store, Forget: place.forget})
			})
		}
	})
}

// Five processes are killed, stopped, continued and restarted, and their requests get
// lost. With a longer -chaos.for there is also a run that must repeat numbers.
func TestProcessesInChaosRepeatNoNumber(t *testing.T) {
	eachServer(t, func(t *testing.T, w way) {
		t.Parallel()
		for _, torn := range []bool{false, true} {
			if torn && !chaos.Long() {
				return
			}
			g := w.target(t)
			s := g.segments(t, g.open(t), "")
			must(t, s.CreateTables(t.Context()))
			chaos.Segments{Name: w.server, DSN: g.dsn, SegmentStore: s, Torn: torn}.Run(t)
		}
	})
}

// Four processes store invoices. They are killed, stopped and continued, roll back, and
// lose their connections.
func TestProcessesInChaosLeaveNoGap(t *testing.T) {
	eachServer(t, func(t *testing.T, w way) {
		t.Parallel()
		run := func(t *testing.T, level sql.IsolationLevel, torn bool) {
			t.Helper()
			g := w.target(t)
			db := chaos.SerialDatabase{DB: g.open(t), Dialect: g.dialect()}
			chaos.Serials{Name: w.server, DSN: g.dsn, SerialDatabase: db, Level: level, Torn: torn}.Run(t)
		}
		for _, level := range levels(t, w.target(t)) {
			t.Run(level.String(), func(t *testing.T) { run(t, level, false) })
		}
		t.Run("torn", func(t *testing.T) { run(t, sql.LevelDefault, true) })
	})
}
