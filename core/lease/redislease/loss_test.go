package redislease_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/redislease"
)

// guarded returns a claim whose window and guard are short enough to wait for.
func guarded(in leasestore.Space) leasestore.Claim {
	c := newClaim(in)
	c.Window, c.Guard = 300, 50
	return c
}

// unhurried returns the renewal of a guarded claim without the rule that ends a lease which
// renews late, because a slow machine is not what is tested here.
func unhurried(c leasestore.Claim, held leasestore.Reply) leasestore.Renewal {
	r := renewal(c, held)
	r.Guard = 0
	return r
}

// holdAndRenew claims the only row of a space and renews it.
func holdAndRenew(t *testing.T, s *redislease.Store, in leasestore.Space) (c leasestore.Claim, held leasestore.Reply) {
	t.Helper()
	c = guarded(in)
	held = mustClaim(t, s, c)
	time.Sleep(20 * time.Millisecond) // so that the renewal has another limit
	r := unhurried(c, held)
	renewed := mustRenew(t, s, r)
	if renewed.Row.Until <= held.Row.Until {
		t.Fatalf("Renew(%+v).Row.Until = %d; want more than %d", r, renewed.Row.Until, held.Row.Until)
	}
	return c, renewed
}

// takeOver claims the only row of a space once it is free.
func takeOver(t *testing.T, s *redislease.Store, in leasestore.Space) (leasestore.Claim, leasestore.Reply) {
	t.Helper()
	for range 20 {
		c := guarded(in)
		reply, err := s.Claim(t.Context(), c)
		var full *leasestore.NoFreeWorkerError
		if errors.As(err, &full) {
			time.Sleep(full.Wait)
			continue
		}
		if err != nil {
			t.Fatalf("Claim(%+v) = %v; want a row", c, err)
		}
		return c, reply
	}
	t.Fatal("Claim finds no free row; want the one whose limit has passed")
	panic("unreachable")
}

// checkLoss fails unless the holder has lost its row and its successor begins after everything
// that the holder may issue. The store has forgotten at least the holder's last write.
func checkLoss(t *testing.T, s *redislease.Store, c leasestore.Claim, held leasestore.Reply, want leasestore.Reason) {
	t.Helper()
	_, err := s.Renew(t.Context(), renewal(c, held))
	var lost *leasestore.LostError
	if !errors.As(err, &lost) || lost.Reason != want {
		t.Errorf("Renew after the loss = %v; want it lost: %s", err, want)
	}
	next, reply := takeOver(t, s, c.Space)
	if from := next.From(reply); from < held.Row.Until {
		t.Errorf("the next claim begins at %d; want the last confirmed limit, %d, or later", from, held.Row.Until)
	}
}

func TestFlushIsALossThatTheGuardCovers(t *testing.T) {
	server := ownServer(t)
	s := server.store(t)
	in := space("n", 1)
	c, held := holdAndRenew(t, s, in)
	server.do(t, "FLUSHALL")
	if rows := rowsOf(t, s, in); len(rows) != 0 {
		t.Errorf("rows after FLUSHALL = %+v; want none", rows)
	}
	checkLoss(t, s, c, held, leasestore.Gone)
	if rows := rowsOf(t, s, in); len(rows) != 1 || rows[0].Epoch != 1 {
		t.Errorf("rows after the next claim = %+v; want them made anew", rows)
	}
}

func TestRestartWithTheEndOfTheLogLostIsALossThatTheGuardCovers(t *testing.T) {
	server := ownServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s := server.store(t)
	in := space("n", 1)
	c := guarded(in)
	held := mustClaim(t, s, c)
	names, err := filepath.Glob(filepath.Join(server.dir, "append*", "*.aof"))
	if older := filepath.Join(server.dir, "appendonly.aof"); len(names) == 0 {
		names = []string{older} // before Redis 7
	}
	log := names[len(names)-1] // *.base.* comes before *.incr.*
	info, statErr := os.Stat(log)
	if err != nil || statErr != nil || info.Size() == 0 {
		t.Fatalf("log of the server = %q, %v, %v; want it to have grown", names, err, statErr)
	}
	renewed := mustRenew(t, s, unhurried(c, held))
	server.kill()
	if err := os.Truncate(log, info.Size()); err != nil {
		t.Fatal(err)
	}
	server.start(t)
	if rows := rowsOf(t, s, in); len(rows) != 1 || rows[0] != held.Row {
		t.Fatalf("rows after the loss = %+v; want those of the claim, %+v", rows, held.Row)
	}
	checkLoss(t, s, c, renewed, leasestore.Copied)
}

// follow makes replica a replica of primary and waits until it has all rows.
func follow(t *testing.T, primary, replica *server) {
	t.Helper()
	host, port, _ := strings.Cut(primary.options.Addr, ":")
	replica.do(t, "REPLICAOF", host, port)
	for range 180 {
		if n, _ := primary.do(t, "WAIT", 1, 1000).(int64); n == 1 {
			return
		}
	}
	t.Fatal("the replica does not follow")
}

func TestFailoverToALaggingReplicaIsALossThatTheGuardCovers(t *testing.T) {
	primary, replica := ownServer(t), ownServer(t)
	follow(t, primary, replica)
	old, s := primary.store(t), replica.store(t)
	in := space("n", 1)
	c := guarded(in)
	held := mustClaim(t, old, c)
	follow(t, primary, replica)
	nobody := strconv.Itoa(1) // no server has this port
	replica.do(t, "REPLICAOF", "127.0.0.1", nobody)
	renewed := mustRenew(t, old, unhurried(c, held))

	// Before its promotion the replica refuses every request, because it knows too little.
	_, err := s.Renew(t.Context(), renewal(c, renewed))
	if !errors.Is(err, redislease.ErrReadOnly) || errors.Is(err, leasestore.ErrLost) {
		t.Errorf("Renew on a replica that lags = %v; want an error that matches ErrReadOnly only", err)
	}

	primary.kill()
	replica.do(t, "REPLICAOF", "NO", "ONE")
	if rows := rowsOf(t, s, in); len(rows) != 1 || rows[0] != held.Row {
		t.Fatalf("rows after the failover = %+v; want those of the claim, %+v", rows, held.Row)
	}
	checkLoss(t, s, c, renewed, leasestore.Copied)
}

func TestReplicaIsAClearError(t *testing.T) {
	primary, replica := ownServer(t), ownServer(t)
	follow(t, primary, replica)
	in := space("n", 2)
	c := newClaim(in)
	held := mustClaim(t, primary.store(t), c)
	follow(t, primary, replica)
	replica.options.MaxRetries = -1
	s := replica.store(t)

	late := newClaim(in)
	late.Now -= 3_600_000
	elsewhere := newClaim(in)
	elsewhere.Space.Layout = "another"
	stranger := renewal(c, held)
	stranger.Owner = token()
	_, claim := s.Claim(t.Context(), newClaim(in))
	_, skew := s.Claim(t.Context(), late)
	_, layout := s.Claim(t.Context(), elsewhere)
	_, renew := s.Renew(t.Context(), renewal(c, held))
	_, lost := s.Renew(t.Context(), stranger)
	for call, err := range map[string]error{
		"Claim": claim, "Claim with a wrong clock": skew, "Claim with another layout": layout,
		"Renew": renew, "Renew by a stranger": lost, "Release": s.Release(t.Context(), release(c, held)),
	} {
		if !errors.Is(err, redislease.ErrReadOnly) || !strings.Contains(err.Error(), "replica") {
			t.Errorf("%s on a replica = %v; want an error that matches ErrReadOnly", call, err)
		}
	}
	if rows, _, err := s.Rows(t.Context(), in); !errors.Is(err, redislease.ErrReadOnly) {
		t.Errorf("Rows on a replica = %+v, %v; want an error that matches ErrReadOnly: they may be old", rows, err)
	}
}
