//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/snowkey/snowkey/core/lease/sqllease"
	"github.com/snowkey/snowkey/core/sqlstore"
)

// storeVariable makes the test binary the service. The leases are in a SQLite file, and the
// listener is inherited.
const storeVariable = "SNOWKEY_SERVICE_STORE"

// notice is far longer than the balancer takes to ask every process, on a busy machine too.
const notice = 8 * time.Second

func TestMain(m *testing.M) {
	file := os.Getenv(storeVariable)
	if file == "" {
		os.Exit(m.Run())
	}
	if err := inherit(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// inherit is start, with what it inherits in place of PostgreSQL and the port.
func inherit(file string) error {
	db, err := sql.Open("sqlite3", file)
	if err != nil {
		return err
	}
	store, err := sqllease.New(db, sqlstore.Config{Dialect: sqlstore.SQLite})
	if err == nil {
		err = store.CreateTables(context.Background())
	}
	if err != nil {
		return err
	}
	inherited := os.NewFile(3, "listener")
	listener, err := net.FileListener(inherited)
	if err := errors.Join(err, inherited.Close()); err != nil { // the listener is a copy
		return err
	}
	return run(context.Background(), listener, store, notice)
}

// A replica is a process of the service.
type replica struct {
	cmd    *exec.Cmd
	at     string // its address
	stderr bytes.Buffer
	ended  chan error
}

func startReplica(t *testing.T, file string) *replica {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	inherited, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{cmd: exec.CommandContext(t.Context(), os.Args[0]), at: listener.Addr().String(), ended: make(chan error, 1)}
	r.cmd.Env = append(os.Environ(), storeVariable+"="+file)
	r.cmd.ExtraFiles = []*os.File{inherited}
	r.cmd.Stderr = &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = inherited.Close(), listener.Close() // now the process alone has it
	go func() { r.ended <- r.cmd.Wait() }()
	r.awaits(t, "to be ready", func() bool { return r.status("/ready") == http.StatusOK })
	return r
}

// status returns the status of a GET, or 0 if there is no answer.
func (r *replica) status(path string) int {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://" + r.at + path)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func (r *replica) awaits(t *testing.T, what string, done func() bool) {
	t.Helper()
	for !done() {
		select {
		case err := <-r.ended:
			t.Fatalf("a replica ended while the test waited for it %s: %v\n%s", what, err, r.stderr.String())
		case <-t.Context().Done():
			t.Fatalf("a replica never came %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A balancer sends each request to a replica that was ready when it was asked last. It sends
// no request twice.
type balancer struct {
	proxy *httputil.ReverseProxy

	mu       sync.Mutex
	replicas []*replica
	ready    []*replica
}

func newBalancer() *balancer {
	b := &balancer{}
	b.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		b.mu.Lock()
		defer b.mu.Unlock()
		target := url.URL{Scheme: "http", Host: "no replica is ready"}
		if len(b.ready) > 0 {
			target.Host = b.ready[rand.IntN(len(b.ready))].at
		}
		r.SetURL(&target)
	}}
	return b
}

func (b *balancer) add(r *replica) {
	b.mu.Lock()
	b.replicas = append(b.replicas, r)
	b.mu.Unlock()
	b.probe()
}

// probe asks every replica whether it is ready.
func (b *balancer) probe() {
	b.mu.Lock()
	replicas := b.replicas[:len(b.replicas):len(b.replicas)]
	b.mu.Unlock()
	var ready []*replica
	for _, r := range replicas {
		if r.status("/ready") == http.StatusOK {
			ready = append(ready, r)
		}
	}
	b.mu.Lock()
	b.ready = ready
	b.mu.Unlock()
}

func TestARollingRestartLosesNoRequest(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "leases.db")
	old := []*replica{startReplica(t, file), startReplica(t, file)}
	b := newBalancer()
	b.add(old[0])
	b.add(old[1])
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: b.proxy}
	go func() { _ = server.Serve(front) }()
	defer server.Close()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	var mu sync.Mutex
	keys := map[string]bool{}
	order := func(at string, body io.Reader) {
		answer, err := http.Post("http://"+at+"/orders", "application/json", body)
		if err != nil {
			t.Errorf("POST = %v; want a key", err)
			return
		}
		defer answer.Body.Close()
		key, err := io.ReadAll(answer.Body)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || answer.StatusCode != http.StatusOK || len(key) == 0 || keys[string(key)] {
			t.Errorf("POST = %s, %q, %v; want a new key", answer.Status, key, err)
		}
		keys[string(key)] = true
	}
	for range 3 {
		work.Go(func() {
			for ctx.Err() == nil {
				order(front.Addr().String(), strings.NewReader("{}"))
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	work.Go(func() {
		for ctx.Err() == nil {
			b.probe()
			time.Sleep(50 * time.Millisecond)
		}
	})

	for _, leaving := range old {
		b.add(startReplica(t, file))
		// A request that is under way until the replica takes no more connections.
		body, rest := io.Pipe()
		var slow sync.WaitGroup
		slow.Go(func() { order(leaving.at, body) })
		if _, err := rest.Write([]byte("{")); err != nil {
			t.Fatal(err)
		}
		if err := leaving.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		leaving.awaits(t, "to leave the balancer", func() bool { return leaving.status("/ready") == http.StatusServiceUnavailable })
		if got := leaving.status("/live"); got != http.StatusOK {
			t.Errorf("a replica that is no longer ready answers /live with %d; want 200", got)
		}
		leaving.awaits(t, "to close its listener", func() bool { return leaving.status("/live") == 0 })
		if _, err := rest.Write([]byte("}")); err != nil {
			t.Fatal(err)
		}
		_ = rest.Close()
		slow.Wait()
		if err := <-leaving.ended; err != nil {
			t.Errorf("a replica ended with %v; want no error\n%s", err, leaving.stderr.String())
		}
	}
	stop()
	work.Wait()
	if len(keys) <= len(old) {
		t.Errorf("orders during the restart = %d; want more than the %d that were under way", len(keys), len(old))
	}
}
