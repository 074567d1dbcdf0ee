package servertest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// portsVariable makes the test binary print a port and keep it until its input ends.
const portsVariable = "SERVERTEST_KEEPS_A_PORT"

func TestAProcessThatKeepsAPort(t *testing.T) {
	if os.Getenv(portsVariable) == "" {
		t.Skip("for a child process of another test only")
	}
	fmt.Println(Port(t))
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// A server keeps its port while it is down between two starts, although the port then has no
// listener, and no other test gets it.
func TestAPortIsOneTestsAlone(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAProcessThatKeepsAPort$")
	child.Env = append(os.Environ(), portsVariable+"=yes")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = child.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || len(line) < 2 {
		t.Fatalf("another process says %q, %v; want its port", line, err)
	}
	taken := map[string]string{line[:len(line)-1]: "another process"}

	t.Run("of the same process", func(t *testing.T) {
		for i := range 3 {
			port := Port(t)
			if other, ok := taken[port]; ok {
				t.Errorf("Port(t) = %s, which %s has; want another", port, other)
			}
			taken[port] = fmt.Sprint("call ", i)
		}
	})
}

func TestAPortWhereAServerIsLeftIsPassedOver(t *testing.T) {
	for _, above := range []int{0, busDistance} {
		port, left := leaveAServer(t, above)
		t.Run("next", func(t *testing.T) {
			if got := Port(t); got == port {
				t.Errorf("Port(t) while a server listens %d above %s = %s; want another", above, port, got)
			}
		})
		_ = left.Close()
	}
}

// leaveAServer returns a port that a test has had, and a listener that far above it. If
// another test takes the port first, it tries the next one.
func leaveAServer(t *testing.T, above int) (port string, left net.Listener) {
	t.Helper()
	for range 100 {
		t.Run("first", func(t *testing.T) { port = Port(t) })
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		if left, err = listenOn(t.Context(), n+above); err == nil {
			return port, left
		}
	}
	t.Fatalf("a hundred ports were taken by others; want one")
	return "", nil // not reached
}
