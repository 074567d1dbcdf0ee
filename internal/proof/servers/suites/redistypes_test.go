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

// go-redis writes an ID by MarshalBinary, as eight bytes, which Scan of a single value wants, and reads a field of a struct by
// UnmarshalText.
func TestRedisStoresAnIDAsEightBytesAndReadsStructsFromText(t *testing.T) {
	client, hash := redisHash(t)
	ctx := t.Context()
	type row struct {
		ID types.Snowflake `redis:"id"`
	}
	const bytes = "\x02\x71\x06\x5a\xc1\x02\x00\x07"
	for name, c := range map[string]struct {
		sent        []any
		want        string
		value, text error // of reading a value, and a struct
	}{
		"an ID":       {[]any{"id", redisID}, bytes, nil, types.ErrSyntax},
		"in a struct": {[]any{row{redisID}}, bytes, nil, types.ErrSyntax},
		"text of it":  {[]any{"id", redisID.String()}, redisID.String(), types.ErrSyntax, nil},
	} {
		must(t, client.HSet(ctx, hash, c.sent...).Err())
		if got, err := client.HGet(ctx, hash, "id").Result(); got != c.want || err != nil {
			t.Errorf("%s is %q in Redis, %v; want %q", name, got, err, c.want)
		}
		id, read := types.Snowflake(42), row{42}
		if err := client.HGet(ctx, hash, "id").Scan(&id); !errors.Is(err, c.value) || (id == redisID) != (err == nil) || err != nil && id != 42 {
			t.Errorf("%s by Scan = %d, %v; want %v", name, id, err, c.value)
		}
		if err := client.HGetAll(ctx, hash).Scan(&read); !errors.Is(err, c.text) || (read.ID == redisID) != (err == nil) || err != nil && read.ID != 42 {
			t.Errorf("%s by HGetAll.Scan = %+v, %v; want %v", name, read, err, c.text)
		}
	}
	if err := client.HSet(ctx, hash, "id", types.NullSnowflake{}).Err(); err == nil {
		t.Error("HSet of a NullSnowflake = nil; want an error")
	}
}
