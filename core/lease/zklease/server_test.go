package zklease

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
)

// An ownServer is a ZooKeeper that the test may stop, kill and start again.
type ownServer struct {
	addr, config string
	process      *os.Process
	ended        chan struct{}
}

// debianJar is the path in Debian's package zookeeper.
const debianJar = "/usr/share/java/zookeeper.jar"

// startServer starts a ZooKeeper on a free port, or skips the test if this machine has none. It
// ends with the test.
func startServer(t *testing.T) *ownServer {
	t.Helper()
	if _, err := os.Stat(debianJar); err != nil {
		servertest.Missing(t, "SKIPPED: no ZooKeeper to start and stop: there is no "+debianJar+", install Debian's package zookeeper")
	}
	if _, err := exec.LookPath("java"); err != nil {
		servertest.Missing(t, "SKIPPED: no ZooKeeper to start and stop: there is no java")
	}
	port := servertest.Port(t)
	dir := t.TempDir()
	s := &ownServer{addr: net.JoinHostPort("127.0.0.1", port), config: filepath.Join(dir, "zoo.cfg")}
	config := fmt.Sprintf("dataDir=%s\nclientPortAddress=127.0.0.1\nclientPort=%s\nmaxClientCnxns=0\n"+
		"tickTime=500\nminSessionTimeout=500\nmaxSessionTimeout=60000\nadmin.enableServer=false\n", dir, port)
	if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
		t.Fatalf("os.WriteFile = error %v; want none", err)
	}
	t.Cleanup(s.kill)
	s.start(t)
	return s
}

func (s *ownServer) start(t *testing.T) {
	t.Helper()
	// The test ends the server itself, because its context ends before that. It kills the
	// server and not the machine, so the log survives without a sync; with syncs, a slow disk
	// would let sessions expire.
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "java", "-Xmx256m", "-Dzookeeper.forceSync=no", "-Dzookeeper.log.dir="+filepath.Dir(s.config),
		"-cp", "/etc/zookeeper/conf_example:"+debianJar, "org.apache.zookeeper.server.ZooKeeperServerMain", s.config)
	var output bytes.Buffer // read when the server has ended
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatalf("java = error %v; want a server", err)
	}
	ended := make(chan struct{})
	s.process, s.ended = cmd.Process, ended
	go func() {
		_ = cmd.Wait() // killed, that is an error
		close(ended)
	}()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if serves(s.addr) {
			return
		}
		select {
		case <-ended:
			t.Fatalf("ZooKeeper on %s has ended by itself:\n%s", s.addr, &output)
		default:
		}
		if time.Now().After(deadline) {
			s.kill()
			t.Fatalf("ZooKeeper on %s does not answer for three minutes:\n%s", s.addr, &output)
		}
	}
}

// serves reports whether a ZooKeeper answers srvr.
func serves(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	reply := make([]byte, 64)
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = conn.Write([]byte("srvr"))
	n, _ := conn.Read(reply)
	return strings.HasPrefix(string(reply[:n]), "Zookeeper version")
}

// kill ends the server as a crash would.
func (s *ownServer) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Kill() // it may have ended
	<-s.ended
	s.process = nil
}

// suiteAll is for the night.
var suiteAll = flag.Bool("suite.all", false, "run the whole suite on the server that fails too, and not only what needs such a server")

// onItsOwn skips what the suite checks on the shared server too, unless the flag is set. It takes
// the name of a claim that needs a server of the test's own off the list.
func onItsOwn(t *testing.T, needs *[]string) {
	t.Helper()
	i := slices.Index(*needs, path.Base(t.Name()))
	if i >= 0 {
		*needs = slices.Delete(*needs, i, i+1)
	} else if !*suiteAll {
		t.Skip("TestStorePassesTheSuite checks this; here it runs with -suite.all")
	}
}

// wantNone fails the test if names are left on the list, which the suite has no more. With a slash,
// -run has chosen among them.
func wantNone(t *testing.T, needs []string) {
	t.Helper()
	if len(needs) > 0 && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		t.Errorf("the suite has not run %q; want these names, or their new ones", needs)
	}
}

// The suite on a server that is stopped and killed, which the shared one must not be. What it
// skips for want of a hook runs in TestStorePassesTheSuite.
func TestStorePassesTheSuiteWhileItsServerFails(t *testing.T) {
	server := startServer(t)
	bases := 0
	needs := []string{"EndingContextEndsTheCall", "RowsSurviveARestart"}
	leasetest.Run(t, func(t *testing.T) leasetest.Harness {
		onItsOwn(t, &needs)
		bases++
		config := Config{Prefix: fmt.Sprintf("/suite-%d", bases)}
		return leasetest.Harness{
			Seed:  1, // the same in every run: a release must not depend on luck
			Open:  func(t *testing.T) leasetest.Store { return newStore(t, connect(t, server.addr), config) },
			Stall: func(t *testing.T) func() { return servertest.Stall(t, server.process) },
			Restart: func(t *testing.T) {
				server.kill()
				server.start(t)
			},
		}
	})
	wantNone(t, needs)
}

// In the middle of a lease the server stands still for longer than the session lives.
func TestLeaseOutlivesItsSession(t *testing.T) {
	server := startServer(t)
	const lifetime = 2 * time.Second
	conn, events, err := zk.Connect([]string{server.addr}, lifetime, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatalf("zk.Connect = error %v; want a connection", err)
	}
	t.Cleanup(conn.Close)
	go func() { // the client would be slowed down by events that are not received
		for range events {
		}
	}()
	s := newStore(t, conn, Config{})
	c := claimOf(four, "me")
	r := hold(t, newStore(t, connect(t, server.addr), Config{}), c) // on a session that survives one
	var known []string
	// renew sends one request. On a slow machine a session this short may end at any time.
	renew := func(patience time.Duration) (leasestore.Reply, error) {
		nonce := fmt.Sprintf("n%d", len(known))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		reply, err := s.Renew(ctx, renewalOf(c, r, nonce, known...))
		known = append(known, nonce)
		return reply, err
	}
	renewed := func(when string) {
		t.Helper()
		for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			reply, err := renew(10 * time.Second)
			if err == nil {
				if reply.Row.Owner != c.Owner || reply.Row.Until < r.Row.Until {
					t.Errorf("Renew = %+v; want the row of %q with no lower limit than %d", reply, c.Owner, r.Row.Until)
				}
				return
			}
			if definite(err) || time.Now().After(deadline) {
				t.Fatalf("Renew %s = error %v; want it renewed within 3 minutes", when, err)
			}
		}
	}
	renewed("before the server stands still")
	session := conn.SessionID()

	resume := servertest.Stall(t, server.process)
	for stopped := time.Now(); time.Since(stopped) < 2*lifetime; time.Sleep(50 * time.Millisecond) {
		if _, err := renew(lifetime / 2); err == nil || definite(err) {
			t.Errorf("Renew while the server stands still = error %v; want one that says nothing of the row", err)
		}
	}
	resume()
	renewed("when the server goes on")
	if now := conn.SessionID(); now == session {
		t.Logf("the session has survived: the server did not see it expire")
	}
}

// The largest configuration that New accepts fits into what a server accepts.
func TestLargestTransactionFits(t *testing.T) {
	p := newSite(t)
	p = p.below("/" + strings.Repeat("b", maxPrefix-len(p.config.Prefix)-1))
	acl := zk.WorldACL(zk.PermAll)
	for i := 0; ; i++ {
		more := zk.DigestACL(zk.PermAll, fmt.Sprintf("user%03d", i), "sesame")
		if sizeOf(append(acl, more...)) > maxACL {
			break
		}
		acl = append(acl, more...)
	}
	p.config.ACL = acl
	sp := leasestore.Space{Namespace: strings.Repeat("n", 64), Datacenter: 1<<62 - 1, Workers: 2 * batch, Layout: "x"}
	s := p.store()
	hold(t, s, claimOf(sp, "me"))
	rows, _, err := s.Rows(t.Context(), sp)
	if err != nil || len(rows) != 2*batch {
		t.Errorf("Rows = %d rows, %v; want %d", len(rows), err, 2*batch)
	}
}

// A hundred processes with separate connections start for the first time.
func TestHundredFirstStartsShareASpace(t *testing.T) {
	p := newSite(t).below("/deep/base")
	sp := four
	sp.Workers = 300
	const processes = 100
	stores := make([]*Store, processes)
	for i := range stores {
		stores[i] = newStore(t, connect(t, servertest.ZooKeeper(t)), p.config)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	owners := map[int64]string{}
	for i, s := range stores {
		wg.Go(func() {
			c := claimOf(sp, fmt.Sprintf("p%d", i))
			r, err := s.Claim(t.Context(), c)
			mu.Lock()
			defer mu.Unlock()
			if other, taken := owners[r.Row.Worker]; err != nil || taken {
				t.Errorf("Claim by p%d = %+v, %v; want a row that %q has not", i, r, err, other)
			}
			owners[r.Row.Worker] = c.Owner
		})
	}
	wg.Wait()
	rows, _, err := stores[0].Rows(t.Context(), sp)
	if err != nil || len(rows) != 300 {
		t.Errorf("Rows = %d rows, %v; want 300", len(rows), err)
	}
}

func TestForbiddenByTheServerIsUnsure(t *testing.T) {
	p := newSite(t, loginAs(t, "user", "sesame"))
	stranger := newStore(t, connect(t, servertest.ZooKeeper(t)), p.config)
	p.config.ACL = zk.DigestACL(zk.PermAll, "user", "sesame")
	c := claimOf(four, "me")
	r := hold(t, p.store(), c)
	for name, do := range operations {
		if err := do(t.Context(), stranger, c, r); !errors.Is(err, zk.ErrNoAuth) || !errors.Is(err, leasestore.ErrPermanent) || definite(err) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s by a stranger = error %v; want zk.ErrNoAuth", name, err)
		}
	}
	nobody := p.below("/nobody")
	nobody.config.ACL = []zk.ACL{{Perms: zk.PermAll, Scheme: "none", ID: "nobody"}}
	if _, err := nobody.store().Claim(t.Context(), c); !errors.Is(err, zk.ErrInvalidACL) || !errors.Is(err, leasestore.ErrPermanent) {
		t.Errorf("Claim with an ACL for a scheme that there is not = error %v; want zk.ErrInvalidACL", err)
	}
}
