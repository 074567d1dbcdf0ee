package redislease_test

import (
	"bytes"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
)

// muteProxy returns the address of a proxy that forwards everything from clients, and the
// replies until a script that writes is sent. The replies after that are lost.
func muteProxy(t *testing.T, server string) string {
	return proxy(t, server, func(_, _ net.Conn) (drop bool) { return true })
}

// layouts matches an argument that only requests which write have.
var layouts = regexp.MustCompile(`\n(a layout|epoch 20\d\d)`)

// proxy returns the address of a proxy. When a client sends a script that writes, the proxy
// forwards it, waits for the reply, and calls onReply, which decides whether to drop it.
func proxy(t *testing.T, server string, onReply func(client, server net.Conn) (drop bool)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex // guards conns, done
		conns []net.Conn
		done  bool
		wg    sync.WaitGroup
	)
	keep := func(conn net.Conn) bool {
		mu.Lock()
		defer mu.Unlock()
		if done {
			conn.Close()
			return false
		}
		conns = append(conns, conn)
		return true
	}
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			if !keep(client) || !keep(upstream) {
				return
			}
			var script atomic.Bool // a script was sent whose reply is outstanding
			wg.Go(func() {
				defer upstream.Close()
				buf := make([]byte, 1<<16)
				for {
					n, err := client.Read(buf)
					if bytes.Contains(bytes.ToLower(buf[:n]), []byte("\neval")) && layouts.Match(buf[:n]) {
						script.Store(true)
					}
					if _, werr := upstream.Write(buf[:n]); err != nil || werr != nil {
						return
					}
				}
			})
			wg.Go(func() {
				defer client.Close()
				buf := make([]byte, 1<<16)
				for {
					n, err := upstream.Read(buf)
					if n > 0 && script.Load() && !bytes.HasPrefix(buf, []byte("-NOSCRIPT")) {
						script.Store(false)
						if onReply(client, upstream) {
							continue
						}
					}
					if _, werr := client.Write(buf[:n]); err != nil || werr != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		done = true
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return listener.Addr().String()
}
