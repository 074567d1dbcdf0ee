package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// history returns what the store tells of the holders of a worker, or false if it keeps none.
func (s *suite) history(worker int64) ([]leasestore.Holder, bool) {
	s.Helper()
	store, ok := s.b.store.(leasestore.History)
	if !ok {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(s.Context(), callTimeout)
	defer cancel()
	all, err := store.History(ctx, s.space, worker)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		s.Fatalf("History(worker %d) = error %v; want them", worker, err)
	}
	return all, err == nil
}

// requireHistory is history, and skips the subtest if there is none.
func (s *suite) requireHistory(worker int64) []leasestore.Holder {
	s.Helper()
	all, ok := s.history(worker)
	if !ok {
		s.Skip("SKIPPED: the store is no leasestore.History")
	}
	return all
}

func (s *suite) wantHistory(after string, worker int64, want ...leasestore.Holder) {
	s.Helper()
	if got := s.requireHistory(worker); !slices.Equal(got, want) {
		s.Errorf("after %s, History(worker %d) = %+v; want %+v", after, worker, got, want)
	}
}

// recorded returns the entry for a claim that was granted, as long as it holds the row.
func recorded(c leasestore.Claim, r leasestore.Reply) leasestore.Holder {
	return leasestore.Holder{Worker: r.Row.Worker, Epoch: r.Row.Epoch, Holder: c.Holder, From: c.From(r), Until: r.Row.Until}
}

// named returns a claim of any row by a holder of this name.
func (s *suite) named(holder string) leasestore.Claim {
	c := s.newClaim()
	c.Holder = holder
	return c
}

func holdersAreKept(s *suite) {
	s.space.Workers = 1
	s.wantHistory("nothing", 0)
	c := s.named("first")
	r := s.a.must(c)
	first := recorded(c, r)
	s.wantHistory("a claim", 0, first)
	s.b.full("Claim of a held row", s.named("refused"), 1)
	l := won(c, r)
	renewal := s.renewal(l)
	renewal.Window = hour
	first.Until = s.a.keep(l, renewal).Row.Until
	s.wantHistory("a renewal", 0, first)
	first.Until = l.from + 3
	s.a.must(l.giveBack(first.Until))
	s.wantHistory("a release", 0, first)

	c = s.named("") // dies, and its time ends
	c.Window = 1
	second := recorded(c, s.b.must(c))
	s.wantHistory("the next claim", 0, first, second)
	s.await(second.Until)
	c = s.named(" third, of \"web\" ")
	s.wantHistory("a claim of a row that has lapsed", 0, first, second, recorded(c, s.a.must(c)))

	s.space.Datacenter++
	s.wantHistory("claims in another datacenter", 0)
	s.space.Datacenter--
	for _, worker := range []int64{-1, s.space.Workers} {
		all, err := s.a.store.(leasestore.History).History(s.Context(), s.space, worker)
		if value := (*core.ValueError)(nil); !errors.As(err, &value) || value.Name != "worker" {
			s.Errorf("History(worker %d) of %d workers = %+v, error %v; want a *core.ValueError", worker, s.space.Workers, all, err)
		}
	}
}

// theLastHundredHoldersAreKept has names and numbers as long as they may be. What was held before
// the first of them is one entry.
func theLastHundredHoldersAreKept(s *suite) {
	const claims = leasestore.HistoryLength + 2
	s.space.Workers = 2
	s.requireHistory(0)
	var want []leasestore.Holder
	until := s.now() // of the one before
	for i := range claims {
		c := s.named(fmt.Sprintf("%064d", i))
		c.Only = []int64{1}
		r, err := s.a.call(c)
		if err != nil {
			s.Fatalf("Claim %d = error %v; want the row", i, err)
		}
		h := recorded(c, r)
		if i == claims-leasestore.HistoryLength {
			want = []leasestore.Holder{{Worker: 1, Until: until}}
		}
		h.Until = h.From + leasestore.Millis(i%3)
		if _, err := s.b.call(won(c, r).giveBack(h.Until)); err != nil {
			s.Fatalf("Release %d = error %v; want it done", i, err)
		}
		until = h.Until
		want = append(want, h)
	}
	s.wantHistory(fmt.Sprint(claims, " claims"), 1, want...)
	s.wantHistory("claims of another row", 0)
}

// oneOfSimultaneousClaimsIsRecorded: what a claim that has lost the race has tried to record is not
// there.
func oneOfSimultaneousClaimsIsRecorded(s *suite) {
	const claimants, rounds = 6, 4
	s.space.Workers = 1
	s.requireHistory(0)
	want := []leasestore.Holder{}
	given := func(c leasestore.Claim, r leasestore.Reply) {
		h := recorded(c, r)
		s.wantHistory("simultaneous claims", 0, append(want, h)...)
		h.Until = h.From + 1
		s.a.must(won(c, r).giveBack(h.Until))
		want = append(want, h)
	}
	c := s.newClaim()
	given(c, s.a.must(c))
	for round := range rounds {
		var requests []any
		for i := range claimants {
			requests = append(requests, s.named(fmt.Sprint(round, " ", i)))
		}
		winner, reply := s.oneWins(requests, func(error) {})
		given(requests[winner].(leasestore.Claim), reply)
	}
}

func retirementIsRecorded(s *suite) {
	s.space.Workers = 1
	c := s.newRetirement(0)
	r := s.a.must(c)
	retired := recorded(c, r)
	retired.From = 0 // its keys may have any time
	s.wantHistory("a retirement", 0, retired)
	retired.Until = r.Now
	s.b.must(leasestore.Release{Space: s.space, Epoch: r.Row.Epoch, Owner: c.Owner, Known: []string{c.Nonce}, Nonce: token(), End: r.Now})
	s.wantHistory("its end", 0, retired)
	c = s.newClaim()
	s.wantHistory("a claim after that", 0, retired, recorded(c, s.a.must(c)))
}

// fencedTimeIsOfSomebody: what was lost before a fence may be of anyone.
func fencedTimeIsOfSomebody(s *suite) {
	s.fencer(s.a)
	s.space.Workers = 2
	c := s.claimOf(0)
	held := recorded(c, s.a.must(c))
	fence := s.now() + hour
	s.a.must(s.fencing(fence))
	held.Until = fence
	s.wantHistory("a fence", 0, held)
	s.wantHistory("a fence of a row that was never claimed", 1, leasestore.Holder{Worker: 1, Until: fence})
	c = s.claimOf(0)
	c.Skew = 2 * hour
	s.wantHistory("a claim after a fence", 0, held, recorded(c, s.a.must(c)))
}

// A forgetful register keeps no records, as that of an older version.
type forgetful struct{ leasestore.Register }

func (f forgetful) Swap(ctx context.Context, s leasestore.Space, from leasestore.Seen, to leasestore.Row) (bool, error) {
	from.Record = ""
	return f.Register.Swap(ctx, s, from, to)
}

// claimsOfAnOlderVersionAreSeen has one process of an older version beside new ones, from before the
// first record on.
func claimsOfAnOlderVersionAreSeen(s *suite) {
	over, ok := s.a.store.(interface{ Register() leasestore.Register })
	if !ok {
		s.Skip("SKIPPED: the store has no method Register")
	}
	type listing struct {
		leasestore.Store
		leasestore.Lister
	}
	s.space.Workers = 1
	s.requireHistory(0)
	forgets := leasestore.FromRegister(forgetful{over.Register()})
	older := handle{s, listing{forgets, forgets}}
	claim := func(by handle, holder string) (leasestore.Holder, *holder) {
		s.Helper()
		c := s.named(holder)
		r := by.must(c)
		return recorded(c, r), won(c, r)
	}
	end := func(l *holder) leasestore.Millis {
		s.Helper()
		s.a.must(l.giveBack(l.from + 2))
		return l.from + 2
	}

	h, l := claim(older, "old")
	h.From = 0 // unknown
	s.wantHistory("a claim of an older version", 0, h)
	unknown := leasestore.Holder{Until: end(l)}
	s.wantHistory("its end", 0, unknown)
	first, l := claim(s.a, "new")
	s.wantHistory("the first claim with a record", 0, unknown, first)

	first.Until = end(l)
	c := s.named("old again")
	c.Window = 1
	h = recorded(c, older.must(c))
	h.From, first.Until = first.From, h.Until // at the earliest, and at the latest
	s.wantHistory("another claim of an older version", 0, unknown, first, h)
	s.await(h.Until)
	next, l := claim(s.b, strings.Repeat("x", 64))
	s.wantHistory("the claim after that", 0, unknown, first, h, next)

	next.Until = end(l)
	_, l = claim(older, "nameless")
	next.Until = end(l)
	last, _ := claim(s.a, "last")
	s.wantHistory("a claim of an older version in between", 0, unknown, first, h, next, leasestore.Holder{From: next.From, Until: next.Until}, last)
}

// recordsAreKept swaps with the longest records. A swap that is refused keeps none.
func recordsAreKept(r *registerSuite) {
	recorder, ok := r.b.(leasestore.HistoryRegister)
	if !ok {
		r.Skip("SKIPPED: the register is no leasestore.HistoryRegister")
	}
	var want []string
	for i := range leasestore.HistoryLength + 3 {
		seen := r.seen(5)
		record := fmt.Sprintf("%d\t%s", i, strings.Repeat("~", leasestore.MaxRecord))[:leasestore.MaxRecord]
		to := held(seen.Row)
		seen.Record = record
		r.swap(r.a, seen, to, true)
		if i%10 == 0 {
			seen.Record = "refused"
			r.swap(r.a, seen, held(seen.Row), false)
		}
		want = append([]string{record}, want...)
	}
	want = want[:leasestore.HistoryLength]
	if got, err := recorder.Records(r.Context(), r.space, 5); err != nil || len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		r.Errorf("Records() = %q, error %v; want at least %q", got, err, want)
	}
	if got, err := recorder.Records(r.Context(), r.space, 4); err != nil || len(got) > 0 {
		r.Errorf("Records() of another worker = %q, error %v; want none", got, err)
	}
}
