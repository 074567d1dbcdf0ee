package integration

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/internal/servertest"
)

// The ways to take keys from Redis that docs/answers.md speaks of, on a real server.

// A script that is published to give a worker number to a process compares with !=. Lua
// writes ~=.
func TestAPublishedScriptThatTestsNotEqualsDoesNotCompile(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: servertest.Redis(t)})
	defer func() { _ = client.Close() }()
	const key = "snowkey:test:not-equals"
	defer client.Del(t.Context(), key)
	script := func(operator string) string {
		return `if redis.call('GET', KEYS[1]) ` + operator + ` ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])`
	}
	if err := client.Set(t.Context(), key, "B", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := client.Eval(t.Context(), script("!="), []string{key}, "A").Result(); err == nil || !strings.Contains(err.Error(), "compiling script") {
		t.Errorf("the script with != returns %v, %v; want an error of the compiler", got, err)
	}
	if got, err := client.Eval(t.Context(), script("~="), []string{key}, "A").Int(); got != 0 || err != nil {
		t.Errorf("the script with ~= returns %d, %v for another than the holder; want 0", got, err)
	}
	if got, err := client.Eval(t.Context(), script("~="), []string{key}, "B").Int(); got != 1 || err != nil {
		t.Errorf("the script with ~= returns %d, %v for the holder; want 1", got, err)
	}
}

// What Redis has lost, it gives again.
func TestACounterOfRedisThatIsLostStartsOver(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: servertest.Redis(t)})
	defer func() { _ = client.Close() }()
	const key = "snowkey:test:lost"
	client.Del(t.Context(), key)
	defer client.Del(t.Context(), key)
	first, err := client.Incr(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	client.Del(t.Context(), key) // as FLUSHALL, eviction, or a restart without the last writes
	if again, err := client.Incr(t.Context(), key).Result(); again != first || err != nil {
		t.Errorf("INCR returns %d, %v after the loss; want %d again", again, err, first)
	}
}
