package servertest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
)

// longestReply is more than a PONG or a srvr report takes. Another program on the port
// may send without end.
const longestReply = 4096

// ping succeeds if a Redis answers without asking for a password.
func ping(conn net.Conn) error {
	if _, err := io.WriteString(conn, "PING\r\n"); err != nil {
		return err
	}
	reply, err := bufio.NewReader(io.LimitReader(conn, longestReply)).ReadString('\n')
	if reply != "+PONG\r\n" {
		return unexpected("PING", reply, err)
	}
	return nil
}

// srvr succeeds if a ZooKeeper answers that serves requests. Of ZooKeeper's four-letter
// words, srvr is the one that is allowed by default. Opening a session would prove as
// much, but the session would stay in the server until it expires.
func srvr(conn net.Conn) error {
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return err
	}
	// The server closes the connection after its report. Without a quorum it says
	// so in place of the report.
	reply, err := io.ReadAll(io.LimitReader(conn, longestReply))
	if !strings.HasPrefix(string(reply), "Zookeeper version: ") {
		return unexpected("srvr", string(reply), err)
	}
	return nil
}

// version succeeds if an etcd answers. It serves HTTP on the port of its clients.
func version(conn net.Conn) error {
	if _, err := io.WriteString(conn, "GET /version HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	reply, err := io.ReadAll(io.LimitReader(conn, longestReply))
	if !strings.Contains(string(reply), `"etcdserver":`) {
		return unexpected("GET /version", string(reply), err)
	}
	return nil
}

// unexpected says what another program answered, or why nothing came.
func unexpected(question, reply string, err error) error {
	if reply == "" && err != nil {
		return fmt.Errorf("no answer to %s: %w", question, err)
	}
	const enough = 64
	if len(reply) > enough {
		reply = reply[:enough] + "…"
	}
	return fmt.Errorf("%s is answered by %q", question, reply)
}
