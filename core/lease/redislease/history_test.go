package redislease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A claim whose record has no place is granted, and shows in the row alone.
func TestAClaimGoesOnWithoutItsRecord(t *testing.T) {
	server := ownServer(t)
	for name, user := range map[string][]any{
		"no LPUSH": {"~*", "+eval", "+evalsha", "+hdel", "+hexists", "+hget", "+hgetall", "+hmget", "+hset", "+exists", "+time", "+info", "+lrange"},
		"no key":   {"~snowkey-test:{n}", "~snowkey-test:{n}:1", "+@all"},
		"taken":    {"~*", "+@all"},
	} {
		server.do(t, "FLUSHALL")
		server.do(t, append([]any{"ACL", "SETUSER", "joe", "reset", "on", ">secret"}, user...)...)
		options := server.options
		options.Username, options.Password = "joe", "secret"
		joe := place{options, server.prefix}
		in := space("n", 1)
		if name == "taken" {
			if err := server.client(t).Set(t.Context(), server.rowKey(in)+":0", "of another", 0).Err(); err != nil {
				t.Fatal(err)
			}
		}
		s := joe.storeOn(t, joe.client(t))
		c := newClaim(in)
		c.Holder = "web"
		held := mustRenew(t, s, renewal(c, mustClaim(t, s, c)))
		if held.Row.Renewals != 2 {
			t.Errorf("%s: the row was written %d times by a claim and a renewal; want 2", name, held.Row.Renewals)
		}

		// What the row tells is known to those who may read the records.
		all, err := s.History(t.Context(), in, 0)
		if name == "no LPUSH" {
			want := leasestore.Holder{Epoch: 1, Holder: "web", Until: held.Row.Until}
			if err != nil || len(all) != 1 || all[0] != want {
				t.Errorf("%s: History() = %+v, %v; want %+v", name, all, err, want)
			}
		} else if !errors.Is(err, leasestore.ErrPermanent) {
			t.Errorf("%s: History() = %+v, %v; want an error that is permanent", name, all, err)
		}
	}
}

func TestAClaimRemovesOldRecords(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	in := space("n", 1)
	for range 2 * leasestore.HistoryLength {
		if err := client.LPush(t.Context(), p.rowKey(in)+":0", "old").Err(); err != nil {
			t.Fatal(err)
		}
	}
	mustClaim(t, p.storeOn(t, client), newClaim(in))
	if n := client.LLen(t.Context(), p.rowKey(in)+":0").Val(); n != leasestore.HistoryLength {
		t.Errorf("%d records after a claim; want %d", n, leasestore.HistoryLength)
	}
}

// A command that go-redis sends twice, for want of a reply, records once.
func TestAClaimThatIsSentTwiceIsRecordedOnce(t *testing.T) {
	p := shared(t)
	client := p.client(t)
	var again repeater
	client.AddHook(&again)
	s := p.storeOn(t, client)
	in := space("n", 1)
	c := newClaim(in)
	r := mustClaim(t, s, c)
	want := leasestore.Holder{Epoch: 1, From: c.From(r), Until: r.Row.Until}
	if all, err := s.History(t.Context(), in, 0); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("History() = %+v, %v; want %+v alone", all, err, want)
	}
	if n := client.LLen(t.Context(), p.rowKey(in)+":0").Val(); n != 1 {
		t.Errorf("%d records; want 1", n)
	}
}

// A repeater sends each command twice.
type repeater struct{ redis.Hook }

func (repeater) DialHook(next redis.DialHook) redis.DialHook { return next }

func (repeater) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		_ = next(ctx, cmd)
		cmd.SetErr(nil)
		return next(ctx, cmd)
	}
}

func (repeater) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
