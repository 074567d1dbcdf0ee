package zklease

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A server is a ZooKeeper in memory, as far as the store uses one.
type server struct {
	mu    sync.Mutex // guards what follows
	nodes map[string]znode
	clock func() time.Time
}

type znode struct {
	data    string
	version int32
	mtime   int64
	acl     []zk.ACL
}

func newServer() *server { return &server{nodes: map[string]znode{"/": {}}, clock: time.Now} }

// peek returns the content of a path.
func (sv *server) peek(path string) (string, bool) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	n, ok := sv.nodes[path]
	return n.data, ok
}

// poke changes znodes by hand.
func (sv *server) poke(change func(nodes map[string]znode)) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	change(sv.nodes)
}

// A session is a Conn to a server, with faults.
type session struct {
	*server

	// fault is called before each call, by its goroutine, unless it is nil.
	fault func(op, path string) fault

	mu    sync.Mutex // guards what follows
	calls []string   // "set /a"

	// lagging, if not nil, is what a follower that lags shows. It catches up with the first
	// write of the session, but right after the first write of the clock the session is
	// replaced by one at such a follower.
	lagging  map[string]znode
	replaced bool
}

func (s *session) SessionID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.replaced {
		return 2
	}
	return 1
}

var _ Conn = (*session)(nil)

// A fault is what goes wrong with one call; the zero fault is nothing.
type fault struct {
	lost  error           // the call has no effect and returns this
	reply error           // the call takes effect, but returns this
	until <-chan struct{} // the call takes effect once this is closed
}

// inject makes happen decide what goes wrong with all calls from now on. A call that was
// abandoned may still run.
func (s *session) inject(happen func(op, name string) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = happen
}

// do runs a call with its faults. op and name are for the log.
func (s *session) do(op, name string, call func() error) error {
	s.mu.Lock()
	s.calls = append(s.calls, op+" "+name)
	happen := s.fault
	s.mu.Unlock()
	var f fault
	if happen != nil {
		f = happen(op, name)
	}
	if f.until != nil {
		<-f.until
	}
	if f.lost != nil {
		return f.lost
	}
	write := op == "set" || op == "create" || op == "multi"
	s.server.mu.Lock()
	err := call()
	s.server.mu.Unlock()
	s.mu.Lock()
	switch {
	case !write || s.lagging == nil:
	case path.Base(name) == clockName && !s.replaced:
		s.replaced = true
	default:
		s.lagging = nil
	}
	s.mu.Unlock()
	if f.reply != nil {
		return f.reply
	}
	return err
}

// log returns the calls so far and clears them.
func (s *session) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

// lag moves the session to a follower that has seen nothing after now.
func (s *session) lag() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lagging = maps.Clone(s.nodes)
}

func (s *session) read() map[string]znode {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lagging != nil {
		return s.lagging
	}
	return s.nodes
}

func (s *session) Get(name string) (data []byte, stat *zk.Stat, err error) {
	err = s.do("get", name, func() error {
		n, ok := s.read()[name]
		if !ok {
			return zk.ErrNoNode
		}
		data, stat = []byte(n.data), &zk.Stat{Version: n.version, Mtime: n.mtime}
		for child := range s.read() {
			if path.Dir(child) == name {
				stat.NumChildren++
			}
		}
		return nil
	})
	return data, stat, err
}

func (s *session) Children(name string) (names []string, stat *zk.Stat, err error) {
	err = s.do("list", name, func() error {
		if _, ok := s.read()[name]; !ok {
			return zk.ErrNoNode
		}
		for child := range s.read() {
			if child != "/" && path.Dir(child) == name {
				names = append(names, path.Base(child))
			}
		}
		return nil
	})
	return names, nil, err
}

func (s *session) Set(name string, data []byte, version int32) (stat *zk.Stat, err error) {
	err = s.do("set", name, func() error {
		stat, err = set(s.nodes, name, data, version, s.clock())
		return err
	})
	return stat, err
}

func set(nodes map[string]znode, name string, data []byte, version int32, now time.Time) (*zk.Stat, error) {
	if err := check(nodes, name, version); err != nil {
		return nil, err
	}
	n := nodes[name]
	n.data, n.version, n.mtime = string(data), n.version+1, now.UnixMilli()
	nodes[name] = n
	return &zk.Stat{Version: n.version, Mtime: n.mtime}, nil
}

func (s *session) Create(name string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	return name, s.do("create", name, func() error {
		return create(s.nodes, &zk.CreateRequest{Path: name, Data: data, Flags: flags, Acl: acl})
	})
}

func (s *session) Multi(ops ...any) (results []zk.MultiResponse, err error) {
	name := fmt.Sprint(len(ops))
	for _, op := range ops {
		if set, ok := op.(*zk.SetDataRequest); ok {
			name = set.Path
		}
	}
	err = s.do("multi", name, func() error {
		trial := maps.Clone(s.nodes)
		for _, op := range ops {
			var err error
			switch op := op.(type) {
			case *zk.CheckVersionRequest:
				err = check(trial, op.Path, op.Version)
			case *zk.SetDataRequest:
				_, err = set(trial, op.Path, op.Data, op.Version, s.clock())
			case *zk.CreateRequest:
				err = create(trial, op)
			case *zk.DeleteRequest:
				if err = check(trial, op.Path, op.Version); err == nil {
					delete(trial, op.Path)
				}
			default:
				err = fmt.Errorf("unknown operation type %T", op)
			}
			if err != nil {
				return err
			}
		}
		s.nodes = trial
		return nil
	})
	return results, err
}

func check(nodes map[string]znode, name string, version int32) error {
	n, ok := nodes[name]
	switch {
	case !ok:
		return zk.ErrNoNode
	case version != -1 && version != n.version:
		return zk.ErrBadVersion
	}
	return nil
}

func create(nodes map[string]znode, r *zk.CreateRequest) error {
	if r.Flags != zk.FlagPersistent {
		return zk.ErrInvalidFlags
	}
	if _, ok := nodes[path.Dir(r.Path)]; !ok {
		return zk.ErrNoNode
	}
	if _, ok := nodes[r.Path]; ok {
		return zk.ErrNodeExists
	}
	nodes[r.Path] = znode{data: string(r.Data), acl: r.Acl}
	return nil
}

// nth makes the n-th call that matches, counted from 0, go wrong, and counts the matching
// calls.
func nth(n int, f fault, match func(op, name string) bool) (hook func(op, name string) fault, count func() int) {
	var mu sync.Mutex
	seen := 0
	return func(op, name string) fault {
			mu.Lock()
			defer mu.Unlock()
			if !match(op, name) {
				return fault{}
			}
			seen++
			if seen-1 == n {
				return f
			}
			return fault{}
		}, func() int {
			mu.Lock()
			defer mu.Unlock()
			return seen
		}
}

// once makes the first call of an operation whose path ends in suffix go wrong.
func once(op, suffix string, f fault) func(op, name string) fault {
	hook, _ := nth(0, f, func(o, name string) bool { return o == op && strings.HasSuffix(name, suffix) })
	return hook
}

// unsure are errors that leave the outcome open.
var unsure = []error{
	zk.ErrConnectionClosed, zk.ErrSessionExpired, zk.ErrNoServer, zk.ErrClosing, zk.ErrSessionMoved,
	zk.ErrNoAuth, errors.New("write tcp: broken pipe"),
}

func definite(err error) bool {
	return errors.Is(err, leasestore.ErrNoFreeWorker) || errors.Is(err, leasestore.ErrLost) ||
		errors.Is(err, leasestore.ErrLayout) || errors.Is(err, leasestore.ErrClockSkew)
}

// open returns a store on a session of its own, with the prefix /s.
func (sv *server) open(t *testing.T) (*Store, *session) {
	t.Helper()
	conn := &session{server: sv}
	return newStore(t, conn, Config{Prefix: "/s"}), conn
}

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
	skew   = leasestore.Millis(5_000)
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

func releaseOf(c leasestore.Claim, r leasestore.Reply, nonce string, known ...string) leasestore.Release {
	return leasestore.Release{
		Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: c.Owner,
		Known: append([]string{c.Nonce}, known...), Nonce: nonce, End: r.Now + 1,
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

func rowOf(t *testing.T, s *Store, sp leasestore.Space, worker int64) (leasestore.Row, bool) {
	t.Helper()
	rows, _, err := s.Rows(t.Context(), sp)
	if err != nil {
		t.Fatalf("Rows(%+v) = error %v; want rows", sp, err)
	}
	i := slices.IndexFunc(rows, func(r leasestore.Row) bool { return r.Worker == worker })
	if i < 0 {
		return leasestore.Row{}, false
	}
	return rows[i], true
}
