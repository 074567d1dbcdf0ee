package redislease_test

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/redislease"
)

// An answering client gives one reply to every script that reads, and another to every swap.
// Before it answers, it makes the text of the arguments as often as a client that sends the
// command several times.
type answering struct {
	read, swap any
	echo       bool // the reply to a swap ends with the swap's own arguments
	err        error
	sent       int
}

func (a answering) EvalSha(_ context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	reply := a.read
	for range a.sent {
		for _, arg := range args {
			if m, ok := arg.(encoding.BinaryMarshaler); ok {
				_, _ = m.MarshalBinary()
				reply = a.swap
				if a.echo {
					reply = []any{a.swap, fmt.Sprint(args[1]), args[3]}
				}
			}
		}
	}
	return redis.NewCmdResult(reply, a.err)
}

func (a answering) Eval(ctx context.Context, text string, keys []string, args ...any) *redis.Cmd {
	return a.EvalSha(ctx, text, keys, args...)
}

func storeOf(t *testing.T, a answering) *redislease.Store {
	t.Helper()
	return place{prefix: "p"}.storeOn(t, a)
}

// A connection that is out of step, for instance behind a proxy, delivers the reply to another
// request. A caller that accepted it would have the other's row.
func TestReplyToAnotherRequestIsUnknown(t *testing.T) {
	in := space("n", 8)
	held := leasestore.Reply{Row: leasestore.Row{Worker: 3, Epoch: 7, Owner: "o", Nonce: "known"}}
	r := renewal(leasestore.Claim{Space: in, Owner: "o"}, held)
	now, key := int64(r.Now), "p:{n}:1"
	found := []any{"3", "7,o,known,5,1,0,"}
	row := []any{now, in.Layout, int64(1), "", "", found, key}
	other := func(at int, value any) []any {
		reply := slices.Clone(row)
		reply[at] = value
		return reply
	}
	if _, err := storeOf(t, answering{read: row, swap: int64(1), echo: true, sent: 1}).Renew(t.Context(), r); err != nil {
		t.Errorf("Renew that was answered %q = %v; want it done: the others differ from this in one field", row, err)
	}
	for name, a := range map[string]answering{
		"rows of another space":  {read: other(6, "p:{m}:1")},
		"no array of a script":   {read: int64(1)},
		"a shorter array":        {read: row[:6]},
		"a time that is none":    {read: other(0, "5")},
		"a layout that is none":  {read: other(1, int64(5))},
		"rows that are none":     {read: other(5, "3")},
		"a row without a text":   {read: other(5, []any{"3"})},
		"a text that is none":    {read: other(5, []any{"3", int64(5)})},
		"a swap's reply":         {read: []any{int64(1), "3", "7,o,known,5,1,0,"}},
		"a swap of another row":  {read: row, swap: []any{int64(1), "4", "7,o," + r.Nonce + ",5,1,0,"}},
		"another swap":           {read: row, swap: []any{int64(1), "3", "7,o,known,5,1,0,"}},
		"a swap that says 2":     {read: row, swap: int64(2), echo: true},
		"a swap without an echo": {read: row, swap: []any{int64(1)}},
	} {
		if a.sent = 1; a.swap == nil { // which nothing refuses but the reading
			a.swap, a.echo = int64(1), true
		}
		if _, err := storeOf(t, a).Renew(t.Context(), r); err == nil || definite(err) {
			t.Errorf("%s: error %v; want one that is none of the four", name, err)
		}
	}
}

// A refusal is certain only if the swap was sent once. Otherwise the first one may have been
// performed, and undone since.
func TestRefusalOfWhatWasSentTwiceIsUnknown(t *testing.T) {
	in := space("n", 8)
	s := storeOf(t, answering{swap: int64(0), echo: true, sent: 2}).Register()
	from := leasestore.Row{Worker: 3, Epoch: 7, Owner: "o", Nonce: "known"}
	to := from
	to.Nonce = "fresh"
	if done, err := s.Swap(t.Context(), in, leasestore.Seen{Row: from, Tag: "7,o,known,0,0,0,"}, to); done || err == nil || definite(err) {
		t.Errorf("Swap that was sent twice and refused = %t, %v; want an error that is none of the four", done, err)
	}
	s = storeOf(t, answering{swap: int64(0), echo: true, sent: 1}).Register()
	if done, err := s.Swap(t.Context(), in, leasestore.Seen{Row: from, Tag: "7,o,known,0,0,0,"}, to); done || err != nil {
		t.Errorf("Swap that was sent once and refused = %t, %v; want false", done, err)
	}
}

// A forgetful client knows no script by its hash.
type forgetful struct{ answering }

func (f forgetful) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	_ = f.answering.EvalSha(ctx, sha, keys, args...) // the command was sent
	return redis.NewCmdResult(nil, noScriptError{})
}

func (f forgetful) Eval(ctx context.Context, text string, keys []string, args ...any) *redis.Cmd {
	return f.answering.Eval(ctx, text, keys, args...)
}

type noScriptError struct{}

func (noScriptError) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }
func (noScriptError) RedisError()   {}

// A command that names a script which the server does not know has done nothing.
func TestRefusalAfterAnUnknownScriptIsCertain(t *testing.T) {
	s := place{prefix: "p"}.storeOn(t, forgetful{answering{swap: int64(0), echo: true, sent: 1}}).Register()
	from := leasestore.Row{Worker: 3, Epoch: 7, Owner: "o", Nonce: "known"}
	to := from
	to.Nonce = "fresh"
	if done, err := s.Swap(t.Context(), space("n", 8), leasestore.Seen{Row: from, Tag: "7,o,known,0,0,0,"}, to); done || err != nil {
		t.Errorf("Swap that was sent again for want of a script, and refused = %t, %v; want false", done, err)
	}
}

// Before version 7, Redis prefixes the error of a command in a script with text of its own.
func TestReplicaOfAnOldVersionIsAClearErrorToo(t *testing.T) {
	old := errors.New("ERR Error running script (call to f_0123): @user_script:38: " +
		"@user_script: 38: -READONLY You can't write against a read only replica. ")
	s := storeOf(t, answering{err: old, sent: 1})
	if _, err := s.Claim(t.Context(), newClaim(space("n", 8))); !errors.Is(err, redislease.ErrReadOnly) || !errors.Is(err, old) {
		t.Errorf("Claim that was answered %q = %v; want an error that matches %v", old, err, redislease.ErrReadOnly)
	}
}
