package servertest

import (
	"strconv"
	"testing"
)

// A server keeps its port while it is down between two starts, although the port then has no
// listener. A process learns of the ports of others as of its own, by the claims.
func TestAPortIsOneTestsAlone(t *testing.T) {
	taken := map[string]bool{}
	for range 3 {
		port := Port(t)
		if taken[port] {
			t.Errorf("Port(t) = %s again; want another", port)
		}
		taken[port] = true
	}
}

func TestAPortWhereAServerIsLeftIsPassedOver(t *testing.T) {
	for _, above := range []int{0, busDistance} {
		var port string
		t.Run("first", func(t *testing.T) { port = Port(t) })
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		left, err := listenOn(t.Context(), n+above)
		if err != nil {
			continue // another test was faster
		}
		t.Run("next", func(t *testing.T) {
			if got := Port(t); got == port {
				t.Errorf("Port(t) while a server listens %d above %s = %s; want another", above, port, got)
			}
		})
		_ = left.Close()
	}
}
