//go:build linux

package fire

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/role"
)

// relaying is the role of a relay. Its order is a delays.
const relaying = "relay"

// delays are of what passes, by a random time from Least to Most.
type delays struct{ Least, Most time.Duration }

// Delay delays all that programs on the host send over TCP, and the answers, by a random
// time from least to most. Later calls change that for new connections.
//
// The kernel may have no netem, so a relay does it. It runs on the host. The kernel hands
// it the connections, so that no program needs to know of it.
func (h *Host) Delay(t testing.TB, least, most time.Duration) {
	t.Helper()
	h.filter("-t", "nat", "-F", "OUTPUT")
	cmd := role.Command(t, relaying, delays{least, most})
	h.Enter(cmd)
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var port int
	if _, err := fmt.Fscan(said, &port); err != nil {
		t.Fatal(err)
	}
	h.filter("-t", "nat", "-A", "OUTPUT", "-p", "tcp", "!", "-d", "127.0.0.0/8",
		"-m", "mark", "!", "--mark", strconv.Itoa(mark), "-j", "REDIRECT", "--to-ports", strconv.Itoa(port))
}

// mark is on the relay's own packets, which the kernel must not hand to it.
const mark = 17

// relayAll is what a relay does. It says on which port.
func relayAll(order []byte) error {
	var d delays
	if err := json.Unmarshal(order, &d); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "0.0.0.0:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	for {
		if c, err := l.Accept(); err == nil {
			go relay(c.(*net.TCPConn), d)
		}
	}
}

func relay(client *net.TCPConn, d delays) {
	defer func() { _ = client.Close() }()
	to, err := destination(client)
	if err != nil {
		return
	}
	dialer := net.Dialer{Timeout: 30 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		if err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_MARK, mark) }); err != nil {
			return err
		}
		return failed
	}}
	server, err := dialer.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			later(pair[1], pair[0], d)
			done <- struct{}{}
		}()
	}
	<-done // a half that is open is of no use to a database
}

// later copies, in order, and each piece later by a random time.
func later(to io.Writer, from io.Reader, d delays) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if n > 0 {
				pieces <- piece{b[:n], time.Now().Add(d.Least + rand.N(d.Most-d.Least+1))}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.bytes); err != nil {
			return
		}
	}
}

// destination returns where a connection was to go before the kernel handed it over.
func destination(c *net.TCPConn) (to string, err error) {
	const originalDst = 80 // SO_ORIGINAL_DST of linux/netfilter_ipv4.h
	raw, err := c.SyscallConn()
	if err != nil {
		return "", err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		// The only call of package syscall that returns enough bytes: they begin with a struct sockaddr_in.
		var address *syscall.IPv6Mreq
		if address, failed = syscall.GetsockoptIPv6Mreq(int(fd), syscall.IPPROTO_IP, originalDst); failed == nil {
			b := address.Multiaddr
			to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:4])).String()
		}
	})
	return to, errors.Join(err, failed)
}
