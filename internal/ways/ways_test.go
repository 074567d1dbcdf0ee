package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/snowkey/snowkey/internal/benchmark"
	"github.com/snowkey/snowkey/internal/servertest"
)

func TestThePageIsWhatTheResultsSay(t *testing.T) {
	raw, err := os.ReadFile("results.txt")
	if err != nil {
		t.Fatal(err)
	}
	r, err := benchmark.Parse(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := writePage(r, folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ways.md", "ways.svg"} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile(filepath.Join("../../docs", name)); err != nil || string(got) != string(want) {
			t.Errorf("docs/%s is not what results.txt gives (%v): run go run .", name, err)
		}
	}
}

func TestEachWayReturnsDistinctKeys(t *testing.T) {
	servertest.PostgreSQL(t)
	servertest.MariaDB(t)
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip(err)
	}
	p, err := newPlaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, w := range ways() {
		take, end, err := w.open(t.Context(), p)
		if err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		seen := map[key]bool{}
		for range 3 {
			keys := make([]key, 40)
			if err := take(t.Context(), keys); err != nil {
				t.Fatalf("%s: %v", w.name, err)
			}
			for _, k := range keys {
				if seen[k] || k == (key{}) {
					t.Errorf("%s returns %v; want a new key", w.name, k)
				}
				seen[k] = true
			}
		}
		if err := end(t.Context()); err != nil {
			t.Errorf("%s: %v", w.name, err)
		}
	}
}

// A reader may need several reads for one answer. That is one round trip.
func TestARoundTripIsTheFirstReadAfterAWrite(t *testing.T) {
	here, there := net.Pipe()
	go func() {
		b := make([]byte, 1)
		for {
			if _, err := there.Read(b); err != nil {
				return
			}
			if b[0] == '?' {
				_, _ = there.Write([]byte("ab")) // the other end is read by the test
			}
		}
	}()
	var trips atomic.Int64
	c := &countingConn{Conn: here, trips: &trips}
	defer func() { _ = c.Close() }()
	b := make([]byte, 1)
	for i := range int64(3) {
		for _, step := range []func([]byte) (int, error){
			func([]byte) (int, error) { return c.Write([]byte("!")) },
			func([]byte) (int, error) { return c.Write([]byte("?")) },
			c.Read, c.Read,
		} {
			if _, err := step(b); err != nil {
				t.Fatal(err)
			}
		}
		if trips.Load() != i+1 {
			t.Errorf("after %d questions the count is %d", i+1, trips.Load())
		}
	}
}
