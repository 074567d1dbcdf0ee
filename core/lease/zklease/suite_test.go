package zklease

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A stalling Conn delays each call while it is stalled.
type stalling struct {
	Conn
	gate *atomic.Pointer[chan struct{}]
}

func (c stalling) wait() {
	if gate := c.gate.Load(); gate != nil {
		<-*gate
	}
}

func (c stalling) Get(path string) ([]byte, *zk.Stat, error) { c.wait(); return c.Conn.Get(path) }
func (c stalling) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	c.wait()
	return c.Conn.Set(path, data, version)
}
func (c stalling) Multi(ops ...any) ([]zk.MultiResponse, error) {
	c.wait()
	return c.Conn.Multi(ops...)
}

// deaf is a Conn that does not get the replies to writes of rows.
type deaf struct{ Conn }

func (c deaf) Multi(ops ...any) ([]zk.MultiResponse, error) {
	replies, err := c.Conn.Multi(ops...)
	if _, ok := ops[1].(*zk.SetDataRequest); ok {
		return nil, zk.ErrConnectionClosed
	}
	return replies, err
}

func TestStorePassesTheSuiteInMemory(t *testing.T) {
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		sv := newServer()
		var clock atomic.Int64
		sv.clock = func() time.Time { return time.UnixMilli(clock.Load()) }
		var gate atomic.Pointer[chan struct{}]
		open := func(wrap func(Conn) Conn) leasetest.Store {
			return newStore(t, wrap(stalling{&session{server: sv}, &gate}), Config{Prefix: "/s"})
		}
		s, err := New(&session{server: sv}, Config{Prefix: "/s"})
		if err != nil {
			t.Fatal(err)
		}
		change := func(sp leasestore.Space, worker int64, with func(nodes map[string]znode, path string)) {
			sv.poke(func(nodes map[string]znode) { with(nodes, placeOf(s, sp).row(worker)) })
		}
		return leasetest.Harness{
			Seed: 1, // the same in every run: a release must not depend on luck
			Open: func(*testing.T) leasetest.Store { return open(func(c Conn) Conn { return c }) },
			SetUntil: func(t *testing.T, sp leasestore.Space, worker int64, until leasestore.Millis) {
				change(sp, worker, func(nodes map[string]znode, path string) {
					n := nodes[path]
					n.data, n.version = withUntil(t, n.data, until), n.version+1
					nodes[path] = n
				})
			},
			Delete: func(_ *testing.T, sp leasestore.Space, worker int64) {
				change(sp, worker, func(nodes map[string]znode, path string) { delete(nodes, path) })
			},
			SetClock: func(_ *testing.T, now time.Time) { clock.Store(now.UnixMilli()) },
			Stall: func(*testing.T) func() {
				c := make(chan struct{})
				gate.Store(&c)
				return func() { gate.Store(nil); close(c) }
			},
			LosesReplies: func(*testing.T) leasetest.Store { return open(func(c Conn) Conn { return deaf{c} }) },
			Unreachable: func(t *testing.T) leasetest.Store {
				return newStore(t, &session{server: sv, fault: func(string, string) fault {
					return fault{lost: zk.ErrNoServer}
				}}, Config{Prefix: "/s"})
			},
		}
	})
}

func TestRegisterPassesTheSuiteInMemory(t *testing.T) {
	leasetest.RunRegister(t, func(t *testing.T) leasetest.RegisterHarness {
		sv := newServer()
		return leasetest.RegisterHarness{
			Open: func(t *testing.T) leasestore.Register {
				s, _ := sv.open(t)
				return s.Register()
			},
			Delete: func(_ *testing.T, sp leasestore.Space, worker int64) {
				s, _ := sv.open(t)
				sv.poke(func(nodes map[string]znode) { delete(nodes, placeOf(s, sp).row(worker)) })
			},
		}
	})
}

func TestRegisterPassesTheSuite(t *testing.T) {
	addr := servertest.ZooKeeper(t)
	leasetest.RunRegister(t, func(t *testing.T) leasetest.RegisterHarness {
		config := Config{Prefix: freshPrefix(t, addr)}
		admin := connect(t, addr)
		return leasetest.RegisterHarness{
			Open: func(t *testing.T) leasestore.Register { return newStore(t, connect(t, addr), config).Register() },
			Delete: func(t *testing.T, sp leasestore.Space, worker int64) {
				remove(t, admin, placeOf(newStore(t, admin, config), sp).row(worker))
			},
		}
	})
}

// placeOf returns where a store keeps a space.
func placeOf(s *Store, sp leasestore.Space) place { return s.Register().(*register).place(sp) }

// withUntil returns a payload with another limit.
func withUntil(t *testing.T, data string, until leasestore.Millis) string {
	t.Helper()
	row, ok := decodeRow([]byte(data))
	if !ok {
		t.Fatalf("decodeRow(%q) = false; want a row", data)
	}
	row.Until = until
	return string(encodeRow(row))
}

// connect returns a connection with a session, which ends with the test. Without a wait for the
// session, the client may give up requests when a busy server turns away its first attempt.
func connect(t *testing.T, addr string, options ...func(*zk.Conn)) *zk.Conn {
	t.Helper()
	conn := dial(t, addr)
	for deadline := time.Now().Add(3 * time.Minute); conn.State() != zk.StateHasSession; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("zk.Connect(%s) has no session after three minutes; want one", addr)
		}
	}
	for _, option := range options {
		option(conn)
	}
	return conn
}

// dial returns a connection that ends with the test, whether a server answers or not.
func dial(t *testing.T, addr string) *zk.Conn {
	t.Helper()
	// With the longest session that servers permit, because a busy machine ends a shorter one.
	conn, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatalf("zk.Connect(%s) = error %v; want a connection", addr, err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// quiet keeps the client's messages about connections out of the log.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// freshPrefix returns a path that is removed after the test.
func freshPrefix(t *testing.T, addr string) string {
	t.Helper()
	prefix := fmt.Sprintf("/snowkey-zklease-%016x", rand.Uint64())
	t.Cleanup(func() { remove(t, connect(t, addr), prefix) })
	return prefix
}

func remove(t *testing.T, conn *zk.Conn, name string) {
	t.Helper()
	children, _, err := conn.Children(name)
	for _, child := range children {
		remove(t, conn, name+"/"+child)
	}
	if err == nil {
		err = conn.Delete(name, -1)
	}
	if err != nil && err != zk.ErrNoNode {
		t.Errorf("delete %s = error %v; want it gone", name, err)
	}
}

func TestStorePassesTheSuite(t *testing.T) {
	addr := servertest.ZooKeeper(t)
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		const password = "sesame-open"
		login := func(c *zk.Conn) {
			if err := c.AddAuth("digest", []byte("snowkey:"+password)); err != nil {
				t.Fatalf("AddAuth = error %v; want none", err)
			}
		}
		prefix := freshPrefix(t, addr)
		config := Config{Prefix: prefix, ACL: append(zk.DigestACL(zk.PermAll, "snowkey", password), zk.ACL{
			Perms: zk.PermDelete | zk.PermRead, Scheme: "world", ID: "anyone", // so that it can be removed
		})}
		admin := connect(t, addr, login)
		places := newStore(t, admin, config)
		return leasetest.Harness{
			Seed: 1, // as above
			Open: func(t *testing.T) leasetest.Store { return newStore(t, connect(t, addr, login), config) },
			SetUntil: func(t *testing.T, sp leasestore.Space, worker int64, until leasestore.Millis) {
				name := placeOf(places, sp).row(worker)
				data, stat, err := admin.Get(name)
				if err != nil {
					t.Fatalf("Get(%s) = error %v; want a row", name, err)
				}
				if _, err := admin.Set(name, []byte(withUntil(t, string(data), until)), stat.Version); err != nil {
					t.Fatalf("Set(%s) = error %v; want none", name, err)
				}
			},
			Delete: func(t *testing.T, sp leasestore.Space, worker int64) {
				remove(t, admin, placeOf(places, sp).row(worker))
			},
			LosesReplies: func(t *testing.T) leasetest.Store {
				return newStore(t, deaf{connect(t, addr, login)}, config)
			},
			Unreachable: func(t *testing.T) leasetest.Store {
				return newStore(t, dial(t, "127.0.0.1:1"), config)
			},
			Secret: strings.Split(password, "-")[0],
		}
	})
}
