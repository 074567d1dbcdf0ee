package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const sequenceBits = 12

// openIncr counts in a key for each millisecond of the caller's clock. The key goes after
// a second.
func openIncr(_ context.Context, s *servers) (take, func(context.Context) error, error) {
	client := s.redis[0]
	return each(func(ctx context.Context) (key, error) {
		for {
			ms := time.Now().UnixMilli()
			name := "ms:" + strconv.FormatInt(ms, 10)
			pipe := client.Pipeline()
			count := pipe.Incr(ctx, name)
			pipe.PExpire(ctx, name, time.Second)
			if _, err := pipe.Exec(ctx); err != nil {
				return key{}, err
			}
			if n := count.Val(); n <= 1<<sequenceBits {
				return key{number: ms<<sequenceBits | (n - 1)}, nil
			}
		}
	}), nothing, nil
}

// script takes the time of the server and counts within a millisecond. It never goes back.
var script = redis.NewScript(`
local t = redis.call('TIME')
local now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
local was = redis.call('HMGET', KEYS[1], 'ms', 'n')
local ms, n = tonumber(was[1] or 0), tonumber(was[2] or 0) + 1
if now > ms then ms, n = now, 0 end
if n >= tonumber(ARGV[1]) then ms, n = ms + 1, 0 end
redis.call('HSET', KEYS[1], 'ms', ms, 'n', n)
return {ms, n}
`)

// openScript asks n servers in turn. Each has a number in the key. A slice is a pipeline.
func openScript(n int) opener {
	return func(ctx context.Context, s *servers) (take, func(context.Context) error, error) {
		bits := sequenceBits
		if n > 1 {
			bits -= 2 // for the server
		}
		for _, client := range s.redis[:n] {
			if err := script.Load(ctx, client).Err(); err != nil {
				return nil, nil, err
			}
		}
		var turn atomic.Int64
		return func(ctx context.Context, keys []key) error {
			server := turn.Add(1) % int64(n)
			pipe := s.redis[server].Pipeline()
			answers := make([]*redis.Cmd, len(keys))
			for i := range keys {
				answers[i] = pipe.EvalSha(ctx, script.Hash(), []string{"ids"}, 1<<bits)
			}
			if _, err := pipe.Exec(ctx); err != nil {
				return err
			}
			for i, a := range answers {
				got, err := a.Int64Slice()
				if err != nil || len(got) != 2 {
					return fmt.Errorf("the script returned %v: %w", got, err)
				}
				keys[i].number = got[0]<<sequenceBits | server<<bits | got[1]
			}
			return nil
		}, nothing, nil
	}
}
