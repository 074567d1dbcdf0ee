package servertest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// portsVariable makes the test binary say a port and keep it until its input ends.
const portsVariable = "SERVERTEST_KEEPS_A_PORT"

func TestAProcessThatKeepsAPort(t *testing.T) {
	if os.Getenv(portsVariable) == "" {
		t.Skip("for a child process of another test only")
	}
	fmt.Println(Port(t))
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// A server that is down between two starts has its port still: nobody listens on it,
// and yet no other test gets it.
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
	var port string
	t.Run("first", func(t *testing.T) { port = Port(t) })
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{n, n + busDistance} {
		l, err := listenOn(t.Context(), at)
		if err != nil {
			t.Skipf("SKIPPED: somebody else was quicker: %v", err)
		}
		t.Run("second", func(t *testing.T) {
			if got := Port(t); got == port {
				t.Errorf("Port(t) while a server listens on %d = %s; want another", at, got)
			}
		})
		_ = l.Close()
	}
}
