//go:build linux

package fire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Network is hosts on one machine that reach each other by a bridge. The test itself
// reaches all of them, whatever is cut.
type Network struct {
	t      testing.TB
	bridge string // also begins the names of the namespaces
	subnet string // its first three bytes, with a dot behind

	mu    sync.Mutex // guards what follows
	hosts []*Host
}

// A Host is a network namespace with one address.
type Host struct {
	Name, IP  string
	network   *Network
	namespace string
	link      string // its end at the bridge
}

// NewNetwork returns a network without hosts. It is gone when the test ends.
func NewNetwork(t testing.TB) *Network {
	t.Helper()
	removeLeftovers(t)
	pid := os.Getpid()
	for tries := 0; ; tries++ { // tests in parallel have one process
		number := (pid + 7919*tries) % (64 * 256)
		n := &Network{
			t:      t,
			bridge: fmt.Sprintf("fire%d-%d", pid, tries),
			subnet: fmt.Sprintf("10.%d.%d.", 64+number/256, number%256),
		}
		if err := ip("link", "add", n.bridge, "type", "bridge"); err != nil {
			if tries < 16 && strings.Contains(err.Error(), "exists") {
				continue
			}
			t.Fatal(err)
		}
		t.Cleanup(n.remove)
		n.must("addr", "add", n.subnet+"254/24", "dev", n.bridge)
		n.must("link", "set", n.bridge, "up")
		return n
	}
}

// Host adds a host.
func (n *Network) Host(name string) *Host {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	number := len(n.hosts) + 1
	h := &Host{Name: name, IP: n.subnet + strconv.Itoa(number), network: n, namespace: fmt.Sprintf("%s-%d", n.bridge, number)}
	n.must("netns", "add", h.namespace)
	n.hosts = append(n.hosts, h)
	const inside = "eth0"
	outside := fmt.Sprintf("f%s.%d", strings.TrimPrefix(n.bridge, "fire"), number)
	h.link = outside
	n.must("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", h.namespace)
	n.must("link", "set", outside, "master", n.bridge, "up")
	n.must("-n", h.namespace, "addr", "add", h.IP+"/24", "dev", inside)
	n.must("-n", h.namespace, "link", "set", inside, "up")
	n.must("-n", h.namespace, "link", "set", "lo", "up")
	return h
}

// Hosts adds several hosts, called name1, name2 and so on.
func (n *Network) Hosts(name string, count int) []*Host {
	n.t.Helper()
	hosts := make([]*Host, count)
	for i := range hosts {
		hosts[i] = n.Host(fmt.Sprint(name, i+1))
	}
	return hosts
}

// Cut drops all packets between two sides, in both directions.
func (n *Network) Cut(a, b []*Host) {
	n.t.Helper()
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay drops all packets from some hosts to others. Those back still arrive.
func (n *Network) CutOneWay(from, to []*Host) {
	n.t.Helper()
	var cuts sync.WaitGroup // at once: on a busy machine a cut must not take as long as a lease
	for _, receiver := range to {
		var senders []string
		for _, sender := range from {
			if sender != receiver {
				senders = append(senders, sender.IP)
			}
		}
		if len(senders) > 0 {
			cuts.Go(func() { receiver.filter("-I", "INPUT", "-s", strings.Join(senders, ","), "-j", "DROP") })
		}
	}
	cuts.Wait()
}

// Isolate cuts some hosts off from all others, and not from each other.
func (n *Network) Isolate(hosts ...*Host) {
	n.t.Helper()
	n.Cut(hosts, n.Others(hosts...))
}

// Others returns all hosts but these.
func (n *Network) Others(hosts ...*Host) []*Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return except(n.hosts, hosts)
}

// except returns all but these.
func except[T comparable](all, these []T) []T {
	return slices.DeleteFunc(slices.Clone(all), func(x T) bool { return slices.Contains(these, x) })
}

// Heal ends all that Cut, CutOneWay and Isolate have done. Loss stays.
func (n *Network) Heal() {
	n.t.Helper()
	var heals sync.WaitGroup
	for _, h := range n.Others() {
		heals.Go(func() { h.filter("-F", "INPUT") })
	}
	heals.Wait()
}

// Loss lets a host lose a part of all packets that it is sent, 0 to 1, at random.
func (h *Host) Loss(part float64) {
	h.network.t.Helper()
	// In another chain than the cuts, which Heal empties.
	h.filter("-t", "mangle", "-F", "INPUT")
	if part > 0 {
		h.filter("-t", "mangle", "-A", "INPUT", "-m", "statistic", "--mode", "random", "--probability", fmt.Sprint(part), "-j", "DROP")
	}
}

// filter runs iptables on the host.
func (h *Host) filter(args ...string) {
	h.network.t.Helper()
	// -w waits for another iptables that runs.
	if err := run("ip", append([]string{"netns", "exec", h.namespace, "iptables", "-w"}, args...)...); err != nil {
		h.network.t.Errorf("fire: on %s: %v", h.Name, err)
	}
}

// Enter lets a command that was not started yet run on the host. Its process is the
// command's own: ip replaces itself by it.
func (h *Host) Enter(cmd *exec.Cmd) {
	path, err := exec.LookPath("ip")
	must(h.network.t, err)
	cmd.Args = append([]string{"ip", "netns", "exec", h.namespace, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = path
}

// Run runs a program on the host as a user, to its end, and returns what it printed.
func (h *Host) Run(ctx context.Context, user, name string, args ...string) (string, error) {
	cmd := as(ctx, user, name, args...)
	h.Enter(cmd)
	return output(cmd)
}

// as returns a command of another user.
func as(ctx context.Context, user, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "setpriv", append([]string{"--reuid=" + user, "--regid=" + user, "--init-groups", "--", name}, args...)...)
	cmd.Dir = "/" // the user may not enter the folder of the test
	return cmd
}

func ip(args ...string) error { return run("ip", args...) }

func (n *Network) must(args ...string) {
	n.t.Helper()
	must(n.t, ip(args...))
}

func run(name string, args ...string) error {
	_, err := output(exec.CommandContext(context.Background(), name, args...))
	return err
}

func output(cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("fire: %s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out.Bytes()))
	}
	return out.String(), nil
}

func (n *Network) remove() {
	for _, h := range n.Others() {
		// The kernel takes its time to remove what is in a namespace. The next network
		// may want the same name for this link.
		if err := errors.Join(ip("link", "del", h.link), ip("netns", "del", h.namespace)); err != nil {
			n.t.Error(err)
		}
	}
	if err := ip("link", "del", n.bridge); err != nil {
		n.t.Error(err)
	}
}

var ours = regexp.MustCompile(`\bfire(\d+)-\d+(-\d+)?\b`)

// removeLeftovers removes what the networks of dead tests have left.
func removeLeftovers(t testing.TB) {
	t.Helper()
	for kind, list := range map[string][]string{"netns": {"netns", "list"}, "link": {"-o", "link", "show", "type", "bridge"}} {
		text, err := output(exec.CommandContext(t.Context(), "ip", list...))
		must(t, err)
		for _, name := range ours.FindAllStringSubmatch(text, -1) {
			pid, _ := strconv.Atoi(name[1])
			if syscall.Kill(pid, 0) == syscall.ESRCH {
				_ = ip(kind, "del", name[0]) // another test may be faster
			}
		}
	}
}

// Until waits until ready returns nil, and fails the test with its last error after three minutes.
func Until(ctx context.Context, t testing.TB, what string, ready func() error) {
	t.Helper()
	must(t, eventually(ctx, what, ready))
}

// eventually waits until ready returns nil, for three minutes.
func eventually(ctx context.Context, what string, ready func() error) error {
	for began := time.Now(); ; {
		err := ready()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Since(began) > 3*time.Minute {
			return fmt.Errorf("fire: %s: %w", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
