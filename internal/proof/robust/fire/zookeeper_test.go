//go:build linux

package fire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/zklease"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
)

func init() {
	stores["ZooKeeper"] = func(servers string) (lease.Store, error) {
		conn, err := connect(servers)
		if err != nil {
			return nil, err
		}
		return zklease.New(conn, zklease.Config{})
	}
}

func connect(servers string) (*zk.Conn, error) {
	conn, events, err := zk.Connect(strings.Split(servers, ","), session, zk.WithLogger(discard{}))
	go func() {
		for range events { // the client drops those that nobody takes, but has them in its way
		}
	}()
	return conn, err
}

// session is how long servers keep a session without a sign of life. A client that hears
// nothing for two thirds of it turns to another server.
const session = 2 * time.Second

type discard struct{}

func (discard) Printf(string, ...any) {}

// An ensemble is three ZooKeeper servers.
type ensemble struct {
	t       *testing.T
	network *Network
	servers []*zooKeeper
}

// A zooKeeper is one server, and the disk of its host.
type zooKeeper struct {
	*Server
	host   *Host
	folder string
}

// newEnsemble starts three servers.
func newEnsemble(t *testing.T, n *Network) *ensemble {
	t.Helper()
	e := &ensemble{t: t, network: n}
	root := t.TempDir()
	for _, dir := range []string{filepath.Dir(root), root} {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // another user has to reach its folder
			t.Fatal(err)
		}
	}
	// Short ticks, so that a server which is cut off soon knows it.
	config := "clientPort=2181\ntickTime=300\ninitLimit=50\nsyncLimit=10\nminSessionTimeout=400\nmaxSessionTimeout=60000\n" +
		"maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n"
	for i, h := range n.Hosts("zookeeper", 3) {
		e.servers = append(e.servers, &zooKeeper{host: h, folder: filepath.Join(root, h.Name)})
		config += fmt.Sprintf("server.%d=%s:2888:3888\n", i+1, h.IP)
	}
	for i, s := range e.servers {
		files := map[string]string{"zoo.cfg": config + "dataDir=" + s.folder + "/data\n", "data/myid": strconv.Itoa(i + 1)}
		if err := give(s.folder, "zookeeper", files); err != nil {
			t.Fatal(err)
		}
	}
	e.start(e.servers...)
	if _, _, err := e.until(t.Context(), e.servers...); err != nil {
		t.Fatal(err)
	}
	return e
}

// start starts servers that do not run.
func (e *ensemble) start(servers ...*zooKeeper) {
	e.t.Helper()
	for _, s := range servers {
		s.Server = s.host.Start(e.t, s.folder+".log", "zookeeper", "java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
			"-Dzookeeper.preAllocSize=1024", "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
			"-cp", "/usr/share/java/slf4j-simple.jar:/usr/share/java/zookeeper.jar",
			"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.folder, "zoo.cfg"))
		// All hosts share the processors of one. Without this the holders would slow the
		// start of a server down, and the leases would all be over before it serves.
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, s.cmd.Process.Pid, -10)
	}
}

// wipe empties the disk of servers that do not run, all but the number of each.
func (e *ensemble) wipe(servers ...*zooKeeper) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, os.RemoveAll(filepath.Join(s.folder, "data", "version-2")))
	}
	return errors.Join(errs...)
}

func (e *ensemble) kill(servers ...*zooKeeper) {
	for _, s := range servers {
		s.Kill()
	}
}

// addresses is what the store is opened with.
func (e *ensemble) addresses() string {
	var all []string
	for _, s := range e.servers {
		all = append(all, net.JoinHostPort(s.host.IP, "2181"))
	}
	return strings.Join(all, ",")
}

// mode asks a server what it is: leader or follower. It is an error if it serves nobody.
func (s *zooKeeper) mode(ctx context.Context) (string, error) {
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(s.host.IP, "2181"))
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(c, "srvr"); err != nil {
		return "", err
	}
	said := ""
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if mode, ok := strings.CutPrefix(lines.Text(), "Mode: "); ok {
			return mode, nil
		}
		said += lines.Text() + "\n"
	}
	return "", fmt.Errorf("fire: %s does not serve: %q", s.host.Name, said)
}

// until waits until all of some servers serve, one as the leader. It gives up when ctx
// ends, or after two minutes.
func (e *ensemble) until(ctx context.Context, servers ...*zooKeeper) (leader *zooKeeper, others []*zooKeeper, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for last := error(nil); ; {
		if leader, others, last = leads(ctx, servers); last == nil {
			return leader, others, nil
		}
		if !Rest(ctx, 50*time.Millisecond, 50*time.Millisecond) {
			return nil, nil, fmt.Errorf("%w; at last: %w", ctx.Err(), last)
		}
	}
}

var errNoLeader = errors.New("fire: no server is the leader")

// leads returns the leader of servers, all of which serve.
func leads(ctx context.Context, servers []*zooKeeper) (leader *zooKeeper, others []*zooKeeper, err error) {
	for _, s := range servers {
		switch mode, err := s.mode(ctx); {
		case err != nil:
			return nil, nil, err
		case mode == "leader":
			leader = s
		default:
			others = append(others, s)
		}
	}
	if leader == nil {
		return nil, nil, errNoLeader
	}
	return leader, others, nil
}

// hosts returns the hosts of servers.
func hosts(servers ...*zooKeeper) []*Host {
	var all []*Host
	for _, s := range servers {
		all = append(all, s.host)
	}
	return all
}

// give makes a folder with files that belongs to a user.
func give(folder, user string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // another user has to reach it
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return run("chown", "-R", user+":"+user, folder)
}

// holders returns the hosts of the holders.
func (e *ensemble) holders() []*Host { return e.network.Others(hosts(e.servers...)...) }

// minority cuts the leader off, with half of the holders. That lasts for longer than their
// windows, so the majority takes their rows over.
func (e *ensemble) minority(ctx context.Context, _ int) error {
	leader, _, err := e.until(ctx, e.servers...)
	if err != nil {
		return err
	}
	defer e.network.Heal()
	holders := e.holders()
	e.network.Isolate(append(hosts(leader), holders[:len(holders)/2]...)...)
	Rest(ctx, 8*time.Second, 9*time.Second)
	return nil
}

// failures are what an ensemble survives, one after the other: at most one server at a
// time is away, or without its disk.
func (e *ensemble) failures(ctx context.Context, strike int) error {
	leader, others, err := e.until(ctx, e.servers...)
	if err != nil {
		return err
	}
	defer e.network.Heal()
	holders := e.holders()
	switch strike % 8 {
	case 0:
		return e.minority(ctx, strike)
	case 1: // the leader and its disk are gone
		return e.replace(ctx, leader, others)
	case 2: // the leader stands still, and takes itself for the leader when it goes on
		leader.Signal(syscall.SIGSTOP)
		defer leader.Signal(syscall.SIGCONT)
		if _, _, err := e.until(ctx, others...); err != nil {
			return err
		}
		Rest(ctx, time.Second, 5*time.Second)
	case 3: // sessions move to another server: a follower is cut off from its clients alone
		e.network.Cut(hosts(others[0]), holders)
		Rest(ctx, session/2, session)
		e.network.Heal()
		Rest(ctx, session/4, session/2)
		e.network.CutOneWay(hosts(others[1]), holders) // requests arrive, answers do not
		Rest(ctx, session/2, session)
	case 4: // sessions expire: no holder reaches a server
		e.network.Cut(hosts(e.servers...), holders)
		Rest(ctx, 2*session, 3*session)
	case 5: // two leaders are killed, one after the other
		leader.Kill()
		next, _, err := e.until(ctx, others...)
		e.start(leader)
		if err == nil {
			_, _, err = e.until(ctx, e.servers...)
		}
		if err == nil {
			next.Kill()
			e.start(next)
		}
		return err
	case 6: // the followers do not hear the leader, which hears them
		e.network.CutOneWay(hosts(leader), hosts(others...))
		Rest(ctx, 2*time.Second, 6*time.Second)
	case 7: // all are killed at once; the disks are as they were
		e.kill(e.servers...)
		e.start(e.servers...)
	}
	return nil
}

// replace gives a server an empty disk, and starts it when the others serve, because it must
// not vote without both of them until it has copied what they have.
func (e *ensemble) replace(ctx context.Context, s *zooKeeper, others []*zooKeeper) error {
	ctx = context.WithoutCancel(ctx) // the test reads the rows at the end
	s.Kill()
	if err := e.wipe(s); err != nil {
		return err
	}
	if _, _, err := e.until(ctx, others...); err != nil {
		return err
	}
	e.start(s)
	_, _, err := e.until(ctx, e.servers...)
	return err
}

// forgets are what makes an ensemble forget what it has acknowledged.
func (e *ensemble) forgets(ctx context.Context, strike int) error {
	if strike%2 == 0 {
		return e.wiped(ctx, strike)
	}
	return e.overtaken(ctx, strike)
}

// wiped takes the disks of two servers away, at once. They form an ensemble. The third
// could not join one that knows less than it does, so it gets an empty disk too.
func (e *ensemble) wiped(ctx context.Context, _ int) error {
	_, others, err := e.until(ctx, e.servers...)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // the next strike needs all three
	e.kill(e.servers...)
	if err := e.wipe(e.servers...); err != nil {
		return err
	}
	e.start(others...)
	if _, _, err := e.until(ctx, others...); err != nil {
		return err
	}
	e.start(e.without(others...)...)
	_, _, err = e.until(ctx, e.servers...)
	return err
}

// overtaken takes one disk away, while another server is behind. These two then form a
// majority that lacks what the third has acknowledged with the first.
func (e *ensemble) overtaken(ctx context.Context, _ int) error {
	leader, others, err := e.until(ctx, e.servers...)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	behind, empty := others[0], others[1]
	e.network.Isolate(behind.host)
	Rest(ctx, 5*time.Second, 10*time.Second)
	e.kill(leader, empty)
	if err := e.wipe(empty); err != nil {
		return err
	}
	e.network.Heal()
	e.start(empty)
	if _, _, err := e.until(ctx, behind, empty); err != nil {
		return err
	}
	e.start(leader)
	_, _, err = e.until(ctx, e.servers...)
	return err
}

// without returns the servers but these.
func (e *ensemble) without(these ...*zooKeeper) []*zooKeeper {
	return slices.DeleteFunc(slices.Clone(e.servers), func(s *zooKeeper) bool { return slices.Contains(these, s) })
}

// Rows implements [leasestore.Lister]. It waits until the ensemble serves, as it may not at the
// end of a run.
func (e *ensemble) Rows(ctx context.Context, sp leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
	if _, _, err := e.until(ctx, e.servers...); err != nil {
		return nil, 0, err
	}
	conn, err := connect(e.addresses())
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	s, err := zklease.New(conn, zklease.Config{})
	if err != nil {
		return nil, 0, err
	}
	return s.Rows(ctx, sp)
}

// onZooKeeper returns holders on an ensemble to which something happens again and again.
func onZooKeeper(window time.Duration, strike func(e *ensemble, ctx context.Context, strike int) error) func(t *testing.T) Fire {
	return func(t *testing.T) Fire {
		Need(t, "java")
		if _, err := os.Stat("/usr/share/java/zookeeper.jar"); err != nil {
			t.Fatalf("fire: %v; install Debian's package zookeeper", err)
		}
		n := NewNetwork(t)
		e := newEnsemble(t, n)
		f := Fire{Leases: chaos.Leases{Store: "ZooKeeper", DSN: e.addresses(), Lister: e, Window: window}, Network: n, Weather: true}
		f.Strike = func(ctx context.Context, i int) error { return strike(e, ctx, i) }
		return f
	}
}

func TestZooKeeperThatFailsRepeatsNoID(t *testing.T) {
	Burn(t, onZooKeeper(0, (*ensemble).failures), chaos.Fence, Mutant{Rules: chaos.TTL})
}

// Without the guard the windows are longer than the servers need to start, on a slow machine
// as well.
func TestZooKeeperThatForgetsRepeatsNoIDUnderTheGuard(t *testing.T) {
	Nightly(t)
	Burn(t, onZooKeeper(0, (*ensemble).forgets), chaos.Guard,
		Mutant{Rules: chaos.NoGuard, Light: onZooKeeper(time.Minute, (*ensemble).wiped)})
}
