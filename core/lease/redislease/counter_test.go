package redislease_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// The ways to take keys and worker numbers from Redis that docs/alternatives.md describes. This
// package uses none of them.

// Redis writes its log before each answer, unless a slow disk makes it postpone that, and syncs
// it according to appendfsync. What the kernel has survives a crash of the server but not of
// the machine: see TestACounterOfRedisWhenThePowerFails of internal/proof/robust/fire.
func TestACounterOfRedisAfterACrash(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		repeats bool
	}{
		{"no log", []string{"--appendonly", "no"}, true},
		{"synced by the kernel", []string{"--appendonly", "yes", "--appendfsync", "no"}, false},
		{"synced every second", []string{"--appendonly", "yes", "--appendfsync", "everysec"}, false},
		{"synced always", []string{"--appendonly", "yes", "--appendfsync", "always"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := ownServer(t, c.args...)
			given := server.do(t, "INCR", "id")
			server.kill()
			server.start(t)
			if again := server.do(t, "INCR", "id"); again == given != c.repeats {
				t.Errorf("INCR = %v before a crash and %v after it; want one number twice: %v", given, again, c.repeats)
			}
		})
	}
}

// The setting appendfsync concerns one server's disk. A replica gets the write after the answer
// in any case.
func TestACounterOfRedisRepeatsAfterAFailover(t *testing.T) {
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	primary, replica := ownServer(t, always...), ownServer(t, always...)
	follow(t, primary, replica)
	primary.do(t, "INCR", "id")
	follow(t, primary, replica)
	replica.do(t, "REPLICAOF", "127.0.0.1", "1") // no server has this port

	given := primary.do(t, "INCR", "id")
	if n := primary.do(t, "WAIT", 1, 100); n != int64(0) {
		t.Errorf("WAIT = %v replicas; want 0: it tells the caller, and INCR has answered", n)
	}
	primary.kill()
	replica.do(t, "REPLICAOF", "NO", "ONE")
	if again := replica.do(t, "INCR", "id"); again != given {
		t.Errorf("after the failover INCR = %v; want %v again", again, given)
	}
}

// A counter per millisecond survives the loss of its keys unless a caller's clock comes back to
// a millisecond that was counted, and every caller has its own clock.
func TestACounterPerMillisecondRepeatsAfterALossAndAStepBack(t *testing.T) {
	server := ownServer(t, "--appendonly", "no")
	given := server.do(t, "INCR", "ms:1000")
	server.kill()
	server.start(t)
	if again := server.do(t, "INCR", "ms:1000"); again != given {
		t.Errorf("in the same millisecond INCR = %v; want %v again", again, given)
	}
	// With an expiry not even a loss is needed.
	if n := server.do(t, "PEXPIRE", "ms:1000", "1"); n != int64(1) {
		t.Fatalf("PEXPIRE = %v; want 1", n)
	}
	for server.do(t, "EXISTS", "ms:1000") != int64(0) {
		time.Sleep(time.Millisecond) // on the server's clock, which no test can set
	}
	if again := server.do(t, "INCR", "ms:1000"); again != given {
		t.Errorf("after it has expired INCR = %v; want %v again", again, given)
	}
}

// Every start of a process counts, and the count modulo 1,024 is the worker number.
func TestAWorkerCountedModulo1024MeetsOneThatLives(t *testing.T) {
	server := shared(t)
	key := server.prefix + ":workers"
	client := server.client(t)
	worker := func() int64 {
		n, err := client.Incr(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		return n % 1024
	}
	old := worker() // lives on
	var last int64
	for range 1024 { // restarts of a crashing process, or a year of deployments
		last = worker()
	}
	if last != old {
		t.Errorf("the 1,024th start after it has worker %d; want %d, which lives", last, old)
	}
}

// A release that does not compare the owner frees another process's number. Published scripts
// compare with !=, where Lua has ~=.
func TestALeaseWithoutAnOwnerIsReleasedByTheProcessBefore(t *testing.T) {
	server := shared(t)
	key := server.prefix + ":7"
	client := server.client(t)
	claim := func(who string) {
		t.Helper()
		if err := client.SetArgs(t.Context(), key, who, redis.SetArgs{Mode: "NX"}).Err(); err != nil {
			t.Fatalf("%s gets no number: %v", who, err)
		}
	}
	claim("A")
	client.Del(t.Context(), key) // the lease of A expires while A is stopped
	claim("B")
	client.Del(t.Context(), key) // A goes on, and gives back "its" number
	claim("C")                   // that of B, which lives

	release := func(operator, who string) (any, error) {
		script := `if redis.call('GET', KEYS[1]) ` + operator + ` ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])`
		return client.Eval(t.Context(), script, []string{key}, who).Result()
	}
	if n, err := release("!=", "C"); err == nil || !strings.Contains(err.Error(), "compiling script") {
		t.Errorf("the script with != returns %v, %v; want an error of the compiler", n, err)
	}
	if n, err := release("~=", "A"); n != int64(0) || err != nil {
		t.Errorf("the script with ~= returns %v, %v for another than the holder; want 0", n, err)
	}
	if n, err := release("~=", "C"); n != int64(1) || err != nil {
		t.Errorf("the script with ~= returns %v, %v for the holder; want 1", n, err)
	}
}
