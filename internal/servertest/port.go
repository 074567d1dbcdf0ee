package servertest

import (
	"context"
	"net"
	"strconv"
	"testing"
)

// Ports for servers of tests: the even ones from firstPort on. They are below those
// that systems give to whoever asks for any, which on a busy machine may go to
// somebody else between two starts of a server. The odd ones between them are
// claims.
const (
	firstPort = 12_000
	lastPort  = 20_000

	// busDistance is how far above its port a node of a Redis cluster listens too.
	busDistance = 10_000
)

// Port returns a port of 127.0.0.1 for a server that the test starts, and stops and
// starts again as it likes. Until the test ends, no other call returns it, in this
// process or in another one of this machine. Nobody listens on it, nor 10,000 ports
// further up.
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

// free reports whether nobody listens on port: not even what a killed run has left
// behind.
func free(ctx context.Context, port int) bool {
	l, err := listenOn(ctx, port)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
