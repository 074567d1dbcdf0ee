package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/internal/proof/servers/servertest"
	"github.com/snowkey/snowkey/types"
)

// redisHash returns a client and the name of a hash that ends with the test.
func redisHash(t *testing.T) (client *redis.Client, hash string) {
	t.Helper()
	client = redis.NewClient(&redis.Options{Addr: servertest.Redis(t)})
	hash = "snowkey_types_" + rand.Text() // another run may be beside this one
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("Close = %v; want nil", err)
		}
	})
	t.Cleanup(func() { client.Del(context.WithoutCancel(t.Context()), hash) })
	return client, hash
}

const redisID = types.Snowflake(175928847299117063)

func TestRedisStoresAnIDAsEightBytes(t *testing.T) {
	client, hash := redisHash(t)
	ctx := t.Context()
	if err := client.HSet(ctx, hash, "id", redisID).Err(); err != nil {
		t.Fatalf("HSet = %v; want nil", err)
	}
	const want = "\x02\x71\x06\x5a\xc1\x02\x00\x07"
	if got, err := client.HGet(ctx, hash, "id").Result(); got != want || err != nil {
		t.Errorf("the value in Redis is %q, %v; want %q, nil", got, err, want)
	}
	var got types.Snowflake
	if err := client.HGet(ctx, hash, "id").Scan(&got); got != redisID || err != nil {
		t.Errorf("Scan = %d, %v; want %d, nil", got, err, redisID)
	}
}

func TestRedisReadsTextThatStringHasWritten(t *testing.T) {
	client, hash := redisHash(t)
	ctx := t.Context()
	if err := client.HSet(ctx, hash, "id", redisID.String()).Err(); err != nil {
		t.Fatalf("HSet = %v; want nil", err)
	}
	text, err := client.HGet(ctx, hash, "id").Result()
	if err != nil {
		t.Fatalf("HGet = %v; want nil", err)
	}
	if got, err := types.Parse(text); got != redisID || err != nil {
		t.Errorf("Parse(%q) = %d, %v; want %d, nil", text, got, err, redisID)
	}
	var row struct {
		ID types.Snowflake `redis:"id"`
	}
	if err := client.HGetAll(ctx, hash).Scan(&row); row.ID != redisID || err != nil {
		t.Errorf("HGetAll.Scan = %+v, %v; want %d, nil", row, err, redisID)
	}
	// Scan of a single value wants the 8 bytes.
	got := types.Snowflake(42)
	if err := client.HGet(ctx, hash, "id").Scan(&got); got != 42 || !errors.Is(err, types.ErrSyntax) {
		t.Errorf("HGet.Scan = %d, %v; want no change and an error that matches ErrSyntax", got, err)
	}
}

// go-redis writes a field of a struct by MarshalBinary and reads it by
// UnmarshalText.
func TestRedisDoesNotReadAStructThatItHasWrittenWithAnID(t *testing.T) {
	client, hash := redisHash(t)
	ctx := t.Context()
	type row struct {
		ID types.Snowflake `redis:"id"`
	}
	if err := client.HSet(ctx, hash, row{redisID}).Err(); err != nil {
		t.Fatalf("HSet = %v; want nil", err)
	}
	var got row
	if err := client.HGetAll(ctx, hash).Scan(&got); got.ID != 0 || !errors.Is(err, types.ErrSyntax) {
		t.Errorf("HGetAll.Scan = %+v, %v; want nothing and an error that matches ErrSyntax", got, err)
	}
}

func TestRedisRefusesANullSnowflake(t *testing.T) {
	client, hash := redisHash(t)
	if err := client.HSet(t.Context(), hash, "id", types.NullSnowflake{}).Err(); err == nil {
		t.Error("HSet of a NullSnowflake = nil; want an error")
	}
}
