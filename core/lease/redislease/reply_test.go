package redislease_test

import (
	"context"
	"encoding"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/snowkey/snowkey/core/lease"
	"github.com/snowkey/snowkey/core/lease/redislease"
)

// An answering client has one reply to everything. Before, it makes the text of the
// arguments as often as a client does that sends a command so many times.
type answering struct {
	reply any
	err   error
	sent  int
}

func (a answering) EvalSha(_ context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	for range a.sent {
		for _, arg := range args {
			if m, ok := arg.(encoding.BinaryMarshaler); ok {
				_, _ = m.MarshalBinary()
			}
		}
	}
	return redis.NewCmdResult(a.reply, a.err)
}

func (a answering) Eval(ctx context.Context, text string, keys []string, args ...any) *redis.Cmd {
	return a.EvalSha(ctx, text, keys, args...)
}

func storeOf(t *testing.T, a answering) *redislease.Store {
	t.Helper()
	return place{prefix: "p"}.storeOn(t, a)
}

// A connection that is out of step, behind a proxy say, gives the reply to another's
// request. A caller that took it for its own would have the other's row.
func TestReplyToAnotherRequestIsUnknown(t *testing.T) {
	c := newClaim(space("n", 8))
	now := int64(c.Now)
	row := lease.Row{Worker: 3, Epoch: 7, Owner: "o", Nonce: "known"}
	r := renewal(lease.Claim{Space: c.Space, Owner: row.Owner}, lease.Reply{Row: row})
	r.Nonce = "fresh"
	claim := func(s *redislease.Store) error { _, err := s.Claim(t.Context(), c); return err }
	renew := func(s *redislease.Store) error { _, err := s.Renew(t.Context(), r); return err }
	done := func(worker int64, row string) []any { return []any{"done", worker, row, now, "noeviction"} }

	for _, own := range []struct {
		call  func(*redislease.Store) error
		reply []any
	}{
		{claim, done(3, "1,"+c.Owner+","+c.Nonce+",5,1,0,")},
		{renew, done(3, "7,o,fresh,5,1,0,")},
	} {
		if err := own.call(storeOf(t, answering{reply: own.reply, sent: 1})); err != nil {
			t.Errorf("a call that was answered %q = %v; want it done: the others differ from this in one field", own.reply, err)
		}
	}
	for name, tt := range map[string]struct {
		call  func(*redislease.Store) error
		reply []any
	}{
		"claim of another owner":     {claim, done(3, "1,"+token()+","+c.Nonce+",5,1,0,")},
		"another claim":              {claim, done(3, "1,"+c.Owner+","+token()+",5,1,0,")},
		"skew of clocks that agree":  {claim, []any{"skew", now, int64(0)}},
		"renewal of another worker":  {renew, done(4, "7,o,fresh,5,1,0,")},
		"renewal of another epoch":   {renew, done(3, "8,o,fresh,5,1,0,")},
		"renewal by another":         {renew, done(3, "7,p,fresh,5,1,0,")},
		"another renewal":            {renew, done(3, "7,o,known,5,1,0,")},
		"no array of a script":       {claim, []any{int64(1)}},
		"ahead, but not numbers":     {claim, []any{"none", int64(1), now, now, []any{"3"}}},
		"a claim's verdict, renewed": {renew, []any{"none", int64(1), now, now, []any{}}},
	} {
		if err := tt.call(storeOf(t, answering{reply: tt.reply, sent: 1})); err == nil || definite(err) {
			t.Errorf("%s: error %v; want one that is none of the four", name, err)
		}
	}
}

// A refusal is certain only if the command was sent once. Else the first may have been
// done, and what it did be undone since.
func TestRefusalOfWhatWasSentTwiceIsUnknown(t *testing.T) {
	c := newClaim(space("n", 8))
	now := int64(c.Now)
	held := lease.Reply{Row: lease.Row{Worker: 3, Epoch: 7, Owner: c.Owner, Nonce: "known"}}
	claim := func(s *redislease.Store) error { _, err := s.Claim(t.Context(), c); return err }
	renew := func(s *redislease.Store) error { _, err := s.Renew(t.Context(), renewal(c, held)); return err }
	back := func(s *redislease.Store) error { return s.Release(t.Context(), release(c, held)) }
	for name, tt := range map[string]struct {
		call  func(*redislease.Store) error
		reply []any
	}{
		"claim, full":     {claim, []any{"none", int64(8), now + 1, now, []any{}}},
		"claim, layout":   {claim, []any{"layout", "another"}},
		"claim, clocks":   {claim, []any{"skew", now + 3*int64(c.Skew), int64(0)}},
		"renewal, taken":  {renew, []any{"taken"}},
		"renewal, copied": {renew, []any{"copied"}},
		"renewal, gone":   {renew, []any{"gone"}},
		"renewal, lapsed": {renew, []any{"lapsed"}},
		"release, taken":  {back, []any{"taken"}},
		"release, copied": {back, []any{"copied"}},
		"release, gone":   {back, []any{"gone"}},
	} {
		if err := tt.call(storeOf(t, answering{reply: tt.reply, sent: 1})); !definite(err) {
			t.Errorf("%s, sent once: error %v; want one of the four", name, err)
		}
		if err := tt.call(storeOf(t, answering{reply: tt.reply, sent: 2})); err == nil || definite(err) {
			t.Errorf("%s, sent twice: error %v; want one that is none of the four", name, err)
		}
	}
}

// Up to version 6 Redis puts words of its own before the error of a command in a
// script.
func TestReplicaOfAnOldVersionIsAClearErrorToo(t *testing.T) {
	old := errors.New("ERR Error running script (call to f_0123): @user_script:38: " +
		"@user_script: 38: -READONLY You can't write against a read only replica. ")
	s := storeOf(t, answering{err: old, sent: 1})
	if _, err := s.Claim(t.Context(), newClaim(space("n", 8))); !errors.Is(err, redislease.ErrReadOnly) || !errors.Is(err, old) {
		t.Errorf("Claim that was answered %q = %v; want an error that matches %v", old, err, redislease.ErrReadOnly)
	}
}
