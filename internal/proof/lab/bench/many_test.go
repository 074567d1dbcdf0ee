package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"log/slog"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/etcdlease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

var (
	manyClients = flag.Int("many.clients", 10_000, "BenchmarkMany: leases")
	manyOver    = flag.Duration("many.over", 0, "BenchmarkMany: over how long the leases start; 0: all at once")
	manyFor     = flag.Duration("many.for", 2*time.Minute, "BenchmarkMany: how long renewals are counted")
)

// BenchmarkMany has leases of one namespace claim their numbers at one moment, unless -many.over is
// set, and counts what their renewals take. Each lease has a Store of its own, as in a process of
// its own, but they share connections, as behind a pooler.
func BenchmarkMany(b *testing.B) {
	for name, stores := range map[string]func(*testing.B) func() (lease.Store, error){
		"PostgreSQL": manyInSQL(postgres, sqlstore.PostgreSQL), "MariaDB": manyInSQL(mariaDB, sqlstore.MySQL), "etcd": manyInEtcd,
	} {
		b.Run(name, func(b *testing.B) {
			open := stores(b)
			ended, end := context.WithCancel(b.Context())
			end()
			l := layout(7) // 32,768 worker numbers
			config := lease.Config{Namespace: "many", Layout: l, AcquireWait: -1, Logger: slog.New(slog.DiscardHandler)}
			calls := &countedCalls{}
			acquire := func() *lease.Lease {
				store, err := open()
				if err != nil {
					b.Error(err)
					return nil
				}
				one, err := lease.Acquire(b.Context(), countedStore{store, calls}, config)
				if err != nil {
					b.Error(err)
					return nil
				}
				b.Cleanup(func() { _ = one.Close(ended) }) // sends nothing: all rows are dropped
				return one
			}
			if first := acquire(); first == nil || first.Close(b.Context()) != nil { // makes the rows
				b.FailNow()
			}
			calls.report(b, "")
			clients := *manyClients
			if testing.Short() {
				clients = 20
			}
			began := time.Now()
			var running sync.WaitGroup
			for range clients {
				running.Go(func() {
					time.Sleep(time.Duration(mathrand.Float64() * float64(*manyOver)))
					acquire()
				})
			}
			running.Wait()
			b.ReportMetric(time.Since(began).Seconds(), "last-s")
			calls.report(b, "claim")
			time.Sleep(*manyFor / 4) // the first renewals follow the start
			calls.report(b, "")
			time.Sleep(*manyFor)
			calls.report(b, "renewal")
		})
	}
}

// manyInSQL returns what opens Stores that share the connections of one pool.
func manyInSQL(d database, dialect sqlstore.Dialect) func(*testing.B) func() (lease.Store, error) {
	return func(b *testing.B) func() (lease.Store, error) {
		db, err := sql.Open(d.driver, d.space(b))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(80)
		db.SetMaxIdleConns(80)
		config := storeConfig(b, db, dialect, sqllease.DefaultTable)
		store, err := sqllease.New(db, config)
		if err == nil {
			err = store.CreateTables(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
		return func() (lease.Store, error) { return sqllease.New(db, config) }
	}
}

func manyInEtcd(b *testing.B) func() (lease.Store, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{servertest.Etcd(b)}, Logger: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	prefix := "/bench/" + rand.Text()
	b.Cleanup(func() {
		_, _ = client.Delete(context.Background(), prefix, clientv3.WithPrefix())
		_ = client.Close()
	})
	return func() (lease.Store, error) { return etcdlease.New(client, etcdlease.Config{Prefix: prefix}) }
}

// countedCalls has what the calls of all leases have taken. It is safe for concurrent use.
type countedCalls struct {
	mu     sync.Mutex // guards the other fields
	took   []time.Duration
	failed int
}

func (c *countedCalls) count(began time.Time, err error) {
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.failed++
		return
	}
	c.took = append(c.took, took)
}

// report reports the calls since the last report, unless they have no name.
func (c *countedCalls) report(b *testing.B, name string) {
	b.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if name != "" {
		slices.Sort(c.took)
		b.ReportMetric(float64(len(c.took)), name+"s")
		b.ReportMetric(float64(c.failed), name+"s-failed")
		for unit, p := range map[string]float64{"-p50-ms": 0.5, "-p99-ms": 0.99} {
			if n := float64(len(c.took)); n > 0 { // else the time was short
				b.ReportMetric(c.took[int(math.Ceil(p*n))-1].Seconds()*1e3, name+unit)
			}
		}
	}
	c.took, c.failed = nil, 0
}

// A countedStore counts the calls of one lease.
type countedStore struct {
	lease.Store
	calls *countedCalls
}

func (s countedStore) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	began := time.Now()
	r, err := s.Store.Claim(ctx, c)
	s.calls.count(began, err)
	return r, err
}

func (s countedStore) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	began := time.Now()
	reply, err := s.Store.Renew(ctx, r)
	s.calls.count(began, err)
	return reply, err
}
