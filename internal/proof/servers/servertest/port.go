package servertest

import (
	"context"
	"net"
	"strconv"
	"testing"
)

// Ports for servers of tests are the even ones from firstPort on. They are below those
// that a system gives to programs that ask for any port. Another program could get one
// of these between two starts of a server. The odd ports between them are claims.
const (
	firstPort = 12_000
	lastPort  = 20_000

	// busDistance is how far above its port a node of a Redis cluster listens too.
	busDistance = 10_000
)

// Port returns a port of 127.0.0.1 for a server that the test starts, stops and starts again.
// Until the test ends, no other call on this machine returns it. Neither the port nor the one
// 10,000 further up has a listener.
//
// Stop the server by a Cleanup that is registered after the call.
func Port(t testing.TB) string {
	t.Helper()
	for port := firstPort; port < lastPort; port += 2 {
		claim, err := listenOn(t.Context(), port+1)
		if err != nil {
			continue
		}
		if free(t.Context(), port) && free(t.Context(), port+busDistance) {
			t.Cleanup(func() { _ = claim.Close() })
			return strconv.Itoa(port)
		}
		_ = claim.Close()
	}
	t.Fatalf("servertest: every port from %d to %d is taken; want one for a server", firstPort, lastPort)
	return "" // not reached
}

func listenOn(ctx context.Context, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// free reports whether port has no listener. A killed run may have left a server.
func free(ctx context.Context, port int) bool {
	l, err := listenOn(ctx, port)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
