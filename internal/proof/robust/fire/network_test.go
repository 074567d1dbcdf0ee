//go:build linux

package fire

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/internal/proof/robust/chaos"
	"github.com/snowkey/snowkey/internal/proof/robust/role"
)

func TestMain(m *testing.M) {
	roles := chaos.Stores{Leases: stores}.Roles()
	roles[writing], roles[relaying] = writeOrders, relayAll
	role.Play(roles)
	code := m.Run()
	for _, line := range skipped {
		fmt.Println("!!! SKIPPED: " + line)
	}
	os.Exit(code)
}

// stores has an Open for each store that is put on fire. Files of tests add to it.
var stores = map[string]chaos.Open[lease.Store]{}

// serve serves a folder on a host by HTTP.
func serve(t *testing.T, h *Host, text string) (url string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644))
	h.Start(t, filepath.Join(t.TempDir(), "log"), "root", "python3", "-m", "http.server", "8000", "--directory", dir)
	url = "http://" + net.JoinHostPort(h.IP, "8000") + "/f"
	Until(t.Context(), t, "a web server", func() error {
		r, err := http.Get(url)
		if err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return err
	})
	return url
}

// get fetches a page from a host, and returns how long that took.
func get(h *Host, url string) (text string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	began := time.Now()
	text, err = h.Run(ctx, "root", "curl", "-sS", "-m", "3", url)
	return text, time.Since(began), err
}

func TestHostsThatAreCutOffDoNotReachEachOther(t *testing.T) {
	Need(t, "curl", "python3")
	n := NewNetwork(t)
	server, client, other := n.Host("server"), n.Host("client"), n.Host("other")
	url := serve(t, server, "hello")
	reaches := func(h *Host, want bool, when string) {
		t.Helper()
		if text, _, err := get(h, url); (err == nil && text == "hello") != want {
			t.Errorf("%s: %s gets %q, %v; want it to reach the server: %t", when, h.Name, text, err, want)
		}
	}
	reaches(client, true, "at first")
	n.Cut([]*Host{client}, []*Host{server})
	reaches(client, false, "cut")
	reaches(other, true, "another is cut")
	n.Heal()
	reaches(client, true, "healed")
	n.CutOneWay([]*Host{server}, []*Host{client})
	reaches(client, false, "answers are cut")
	n.Heal()
	n.Isolate(server)
	reaches(other, false, "isolated")
	r, err := http.Get(url)
	if err != nil {
		t.Fatalf("the test does not reach an isolated host: %v", err)
	}
	_ = r.Body.Close()
}

func TestDelayedHostsGetTheirAnswersLate(t *testing.T) {
	Need(t, "curl", "python3")
	n := NewNetwork(t)
	server, client := n.Host("server"), n.Host("client")
	url := serve(t, server, "hello")
	client.Delay(t, 300*time.Millisecond, 400*time.Millisecond)
	if text, took, err := get(client, url); err != nil || text != "hello" || took < 600*time.Millisecond {
		t.Errorf("a delayed request = %q, %v after %v; want an answer after 600 ms or more", text, err, took)
	}
}

func TestLossLosesPackets(t *testing.T) {
	Need(t, "curl", "python3")
	n := NewNetwork(t)
	server, client := n.Host("server"), n.Host("client")
	url := serve(t, server, "hello")
	client.Loss(1)
	if text, _, err := get(client, url); err == nil {
		t.Errorf("a request of which all answers are lost = %q; want an error", text)
	}
	client.Loss(0)
	if _, _, err := get(client, url); err != nil {
		t.Errorf("a request without loss = %v; want no error", err)
	}
}
