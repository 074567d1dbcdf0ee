package zklease

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// A site is a prefix on the server that is the test's own, and a connection to change it by hand.
// Paths begin below the prefix, in the names of calls too.
type site struct {
	t      *testing.T
	conn   *zk.Conn
	config Config
}

// newSite returns a site that is removed after the test. Without a server it ends the test.
func newSite(t *testing.T, options ...func(*zk.Conn)) site {
	t.Helper()
	prefix := fmt.Sprintf("/snowkey-zklease-%016x", rand.Uint64())
	s := site{t, connect(t, servertest.ZooKeeper(t), options...), Config{Prefix: prefix}}
	t.Cleanup(func() { s.remove("") })
	return s
}

// below returns a site within another.
func (s site) below(path string) site {
	s.config.Prefix += path
	return s
}

// open returns a store whose calls are made by a hook. When a call is made again, its name ends in
// its number, as in "set /@clock (2)".
func (s site) open(h hook) *Store {
	s.t.Helper()
	var mu sync.Mutex
	made := map[string]int{}
	return newStore(s.t, faulty{s.conn, func(name string, call func() error) error {
		name = strings.Replace(name, s.config.Prefix, "", 1)
		mu.Lock()
		made[name]++
		n := made[name]
		mu.Unlock()
		if n > 1 {
			name = fmt.Sprintf("%s (%d)", name, n)
		}
		return h(name, call)
	}}, s.config)
}

// store returns a store on which nothing goes wrong.
func (s site) store() *Store {
	s.t.Helper()
	return newStore(s.t, s.conn, s.config)
}

// get returns the content and the version of a znode, and nothing if there is none.
func (s site) get(path string) (data string, version int32) {
	s.t.Helper()
	content, stat, err := s.conn.Get(s.config.Prefix + path)
	if errors.Is(err, zk.ErrNoNode) {
		return "", 0
	}
	if err != nil {
		s.t.Errorf("Get(%s) = error %v; want none", path, err)
		return "", 0
	}
	return string(content), stat.Version
}

// names returns the names of the znodes below one, and none if it is missing.
func (s site) names(path string) []string {
	s.t.Helper()
	names, _, err := s.conn.Children(s.config.Prefix + path)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.t.Errorf("Children(%s) = error %v; want none", path, err)
	}
	slices.Sort(names)
	return names
}

func (s site) create(path string, data []byte) {
	s.t.Helper()
	if _, err := s.conn.Create(s.config.Prefix+path, data, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
		s.t.Errorf("Create(%s) = error %v; want none", path, err)
	}
}

func (s site) set(path string, data []byte) {
	s.t.Helper()
	if _, err := s.conn.Set(s.config.Prefix+path, data, -1); err != nil {
		s.t.Errorf("Set(%s) = error %v; want none", path, err)
	}
}

// row returns the path of a row.
func (s site) row(sp leasestore.Space, worker int64) string {
	at := s.store().Register().(*register).place(sp)
	return strings.TrimPrefix(at.row(worker), s.config.Prefix)
}

// change changes a row.
func (s site) change(path string, change func(*leasestore.Row)) {
	s.t.Helper()
	data, _ := s.get(path)
	row, ok := decodeRow([]byte(data))
	if !ok {
		s.t.Errorf("decodeRow(%q) = false; want the row at %s", data, path)
	}
	change(&row)
	s.set(path, encodeRow(row))
}

// remove deletes a znode, if it exists, and those below it.
func (s site) remove(path string) {
	s.t.Helper()
	var wg sync.WaitGroup
	for _, name := range s.names(path) {
		wg.Go(func() { s.remove(path + "/" + name) })
	}
	wg.Wait()
	if err := s.conn.Delete(s.config.Prefix+path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		s.t.Errorf("Delete(%s) = error %v; want it gone", path, err)
	}
}

// loginAs returns an option of a connection, which is then one of a user.
func loginAs(t *testing.T, user, password string) func(*zk.Conn) {
	return func(c *zk.Conn) {
		if err := c.AddAuth("digest", []byte(user+":"+password)); err != nil {
			t.Fatalf("AddAuth = error %v; want none", err)
		}
	}
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

func newStore(t *testing.T, conn Conn, c Config) *Store {
	t.Helper()
	s, err := New(conn, c)
	if err != nil {
		t.Fatalf("New(conn, %+v) = error %v; want a store", c, err)
	}
	return s
}

var four = leasestore.Space{Namespace: "shop", Datacenter: 3, Workers: 4, Layout: "41/5/5/12"}

const (
	window = leasestore.Millis(60_000)
	skew   = window // a busy machine stops a claim for seconds
)

func claimOf(sp leasestore.Space, owner string, only ...int64) leasestore.Claim {
	return leasestore.Claim{
		Space: sp, Only: only, Owner: owner, Nonce: owner + "-n0", Window: window, Now: leasestore.MillisOf(time.Now()), Skew: skew,
	}
}

func renewalOf(c leasestore.Claim, r leasestore.Reply, nonce string, known ...string) leasestore.Renewal {
	now := leasestore.MillisOf(time.Now())
	return leasestore.Renewal{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner,
		Known: append([]string{c.Nonce}, known...), Nonce: nonce,
		Next: now, Until: r.Row.Until, Window: window, Now: now, Skew: skew,
	}
}

func releaseOf(c leasestore.Claim, r leasestore.Reply, nonce string) leasestore.Release {
	return leasestore.Release{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner,
		Known: []string{c.Nonce}, Nonce: nonce, End: r.Now + 1,
	}
}

func hold(t *testing.T, s *Store, c leasestore.Claim) leasestore.Reply {
	t.Helper()
	r, err := s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim(%+v) = error %v; want a row", c, err)
	}
	return r
}
