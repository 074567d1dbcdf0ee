// Package model_test explores the protocol of package lease by calling the functions that
// define it, Claim.Apply, Claim.From, Renewal.Apply and Release.Apply of claim.go and renewal.go, instead of
// transcribing them.
package model_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/snowkey/snowkey/core/internal/worlds"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

const (
	processes = 2
	underWay  = 3 // requests under way, of all processes; one more takes the place of any
)

// A world is the state of everything at one moment: the store, the processes, the requests
// under way, and what the invariants remember. It is comparable and small, because the search
// keeps every world that it has seen.
//
// A token, of an owner or a write, is a small number, where 0 is none. Tokens can only be
// compared, so worlds that differ only in the names of their tokens are the same world: see
// rename.
type world struct {
	row    row
	backup row  // to which the store will go back
	lost   bool // the store has gone back, or the row was deleted
	now    int8 // true time, where the model has one

	processes [processes]process
	requests  [underWay]request

	issued int8 // the first timestamp issued, plus one; 0: none yet
	copied bool // a process was copied while it ran
	held   int8 // its limit then, or the one that a request under way obtained
}

// A row is a leasestore.Row.
type row struct{ epoch, owner, nonce, until int8 }

// A process is the memory of a process, which a crash erases.
type process struct {
	epoch, owner int8  // epoch 0: it has no lease
	known        uint8 // a bit for each nonce: Renewal.Known
	next, limit  int8  // its timestamps to come are in [next, limit)
	waits        int8  // for the reply to the request with this nonce
}

// A request is a leasestore.Claim, a leasestore.Renewal or a leasestore.Release.
type request struct {
	kind                             kind
	early                            bool // sent before the copy, and awaited then
	epoch, owner, nonce, next, until int8
	now                              int8
	known                            uint8
}

type kind int8

const (
	claim kind = 1 + iota
	renew
	release
)

// A protocol has the functions of leasestore, or a mutant of them.
type protocol struct {
	claim   func(c leasestore.Claim, row leasestore.Row, now leasestore.Millis) (leasestore.Row, bool)
	from    func(c leasestore.Claim, r leasestore.Reply) leasestore.Millis
	renew   func(r leasestore.Renewal, row leasestore.Row, now leasestore.Millis) (leasestore.Row, error)
	release func(r leasestore.Release, row leasestore.Row) (leasestore.Row, error)
}

func ours() protocol {
	return protocol{
		claim: func(c leasestore.Claim, row leasestore.Row, now leasestore.Millis) (leasestore.Row, bool) {
			return c.Apply(row, now)
		},
		from: func(c leasestore.Claim, r leasestore.Reply) leasestore.Millis { return c.From(r) },
		renew: func(r leasestore.Renewal, row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
			return r.Apply(row, now)
		},
		release: func(r leasestore.Release, row leasestore.Row) (leasestore.Row, error) { return r.Apply(row) },
	}
}

// A model says what may happen, and within which bounds.
type model struct {
	name   string
	window int8
	guard  int8 // D, by which clocks may be ahead of true time; 0: off, and clocks show anything
	times  int8 // the last limit without the guard, the last true time with it
	epochs int8 // claims and releases performed

	underWay int // requests; 0: as many as a world has room for

	loses   bool // the store goes back once, to any earlier state
	deletes bool // the row is deleted once, and made anew
	copies  bool // a process is copied once

	large          bool // only with -model.large
	duplicatesOnly bool // do not check what the store has reserved

	// Mistakes of a process. Those of the store are in the protocol.
	timeoutIsSuccess  bool
	releaseBeforeSeal bool

	protocol protocol

	broken string // the invariant that does not hold, and how

	telling bool   // moves are wanted in words
	said    string // the last one
}

// say describes a move in words.
func (m *model) say(format string, args ...any) {
	if m.telling {
		m.said = fmt.Sprintf(format, args...)
	}
}

// breaks records that an invariant is broken.
func (m *model) breaks(format string, args ...any) {
	if m.broken == "" {
		m.broken = fmt.Sprintf(format, args...)
	}
}

// The names of tokens as the store has them, and each set of them.
var (
	names [16]string
	sets  [1 << 8][]string
)

func init() {
	for k := 1; k < len(names); k++ {
		names[k] = string(rune('a' + k))
	}
	for set := range sets {
		for k := range 8 {
			if set&(1<<k) != 0 {
				sets[set] = append(sets[set], names[k])
			}
		}
	}
}

func token(name string) int8 {
	if name == "" {
		return 0
	}
	return int8(name[0] - 'a')
}

func (r row) lease() leasestore.Row {
	return leasestore.Row{Epoch: int64(r.epoch), Owner: names[r.owner], Nonce: names[r.nonce], Until: leasestore.Millis(r.until)}
}

func rowOf(r leasestore.Row) row {
	return row{epoch: int8(r.Epoch), owner: token(r.Owner), nonce: token(r.Nonce), until: int8(r.Until)}
}

// steps calls yield for every world that may follow w.
func (m *model) steps(w *world, yield func(next world)) {
	for p := range w.processes {
		m.process(w, p, yield)
	}
	for q := range w.requests {
		if w.requests[q].kind != 0 {
			m.serve(w, q, yield)
		}
	}
	if m.guard > 0 && w.now < m.times {
		v := *w
		v.now++
		m.say("time is %d", v.now)
		yield(v)
	}
	if m.loses && !w.lost {
		v := *w
		v.backup = v.row
		m.say("the store will come back to this state")
		yield(v)
		v = *w
		v.row, v.backup, v.lost = v.backup, row{}, true
		m.say("the store goes back to its earlier state")
		yield(v)
	}
	if m.deletes && !w.lost {
		v := *w
		v.row, v.lost = row{}, true
		m.say("the row is deleted, and made anew")
		yield(v)
	}
	if m.copies && !w.copied {
		for a := range w.processes {
			if p := w.processes[a]; p != (process{}) {
				v := *w
				v.processes = [processes]process{p, p}
				v.copied, v.held = true, p.limit
				for q := range v.requests {
					r := &v.requests[q]
					r.early = p.waits != 0 && r.nonce == p.waits
				}
				m.say("%c is copied, and its copy takes the place of the other", 'A'+a)
				yield(v)
			}
		}
	}
}

// clocks returns the range of what a clock may show.
func (m *model) clocks(w *world) (first, last int8) {
	if m.guard > 0 {
		return w.now, w.now + m.guard
	}
	return 0, m.times
}

// process makes the moves of process p.
func (m *model) process(w *world, p int, yield func(next world)) {
	now := w.processes[p]
	who := 'A' + p
	if now.waits == 0 {
		// Without the guard the sender's clock decides nothing.
		first, last := m.clocks(w)
		if m.guard == 0 {
			last = first
		}
		for clock := first; clock <= last; clock++ {
			if now.epoch == 0 {
				m.send(w, p, request{kind: claim, owner: fresh(w.owners()), now: clock}, yield)
			} else {
				m.send(w, p, request{kind: renew, epoch: now.epoch, owner: now.owner, known: now.known,
					next: now.next, until: now.limit, now: clock}, yield)
			}
		}
		if now.epoch != 0 {
			// After any number of timestamps that may be issued.
			for end := now.next; end == now.next || end <= now.limit; end++ {
				m.send(w, p, request{kind: release, epoch: now.epoch, owner: now.owner, known: now.known, until: end}, yield)
			}
		}
	}

	// Issue a timestamp. A clock at the limit or beyond is ignored.
	if now.next < now.limit {
		if m.guard == 0 && !m.duplicatesOnly && !w.lost && !w.copied && now.limit > w.row.until {
			m.breaks("reserved: %c may issue %d; want less than %d, which the store has", who, now.limit-1, w.row.until)
		}
		if x := w.issued - 1; x < 0 {
			for x := now.next; x < now.limit; x++ {
				v := *w
				v.issued, v.processes[p].next = x+1, x+1
				m.say("%c issues %d", who, x)
				yield(v)
			}
		} else if now.next <= x && x < now.limit && x >= w.held {
			m.breaks("unique: %c issues %d, which was issued before", who, x)
		}
	}

	if now.waits != 0 {
		v := *w
		v.processes[p].waits = 0
		if m.timeoutIsSuccess && now.epoch != 0 {
			v.processes[p].limit += m.window
		}
		m.say("%c waits no longer", who)
		yield(v)
	}
	// If the store refuses, a process does the same, or nothing.
	if now != (process{}) {
		v := *w
		v.processes[p] = process{}
		m.say("%c crashes", who)
		yield(v)
	}
}

// send puts a request of process p under way, with a fresh nonce.
func (m *model) send(w *world, p int, r request, yield func(next world)) {
	r.nonce = fresh(w.nonces())
	v := *w
	switch sender := &v.processes[p]; {
	case r.kind == release && !m.releaseBeforeSeal:
		*sender = process{} // sealed, and waiting for nothing
	default:
		sender.waits = r.nonce
		if sender.epoch != 0 {
			sender.known |= 1 << r.nonce // until a reply confirms a write
		}
	}
	room := v.requests[:cmp.Or(m.underWay, underWay)]
	full := !slices.ContainsFunc(room, func(r request) bool { return r.kind == 0 })
	for q := range room {
		if full || v.requests[q].kind == 0 {
			u := v
			u.requests[q] = r
			if m.telling {
				m.say("%c sends %v", 'A'+p, r)
			}
			yield(u)
			if !full {
				return
			}
		}
	}
}

// serve performs request q, which stays under way and may be performed again. A request that is
// performed once is one that is never performed again, and a lost request is one that is never
// performed.
//
// The reply reaches every process that waits for it, or none. Late replies are covered as well,
// because a process may use later what a reply permits now.
func (m *model) serve(w *world, q int, yield func(next world)) {
	r := w.requests[q]
	first, last := m.clocks(w)
	if r.kind == release {
		last = first // no clock is asked
	}
	var before row
	var begun int8
	for clock := first; clock <= last; clock++ {
		after, from, ok := m.do(w.row, r, leasestore.Millis(clock))
		if !ok || after == before && from == begun || after.epoch > m.epochs || m.guard == 0 && after.until > m.times {
			continue
		}
		for replies := range uint(1) << processes {
			v := *w
			v.row = after
			if !v.receive(r, from, replies) {
				continue
			}
			if m.telling {
				m.say("the store, its clock at %d, does %v: row %+v, replies reach %02b", clock, r, after, replies)
			}
			yield(v)
		}
		before, begun = after, from
	}
}

// receive delivers the reply to r to a set of processes, and returns false if one of them does
// not wait for it. The row is as r has left it.
func (w *world) receive(r request, from int8, processes uint) bool {
	for ; processes != 0; processes &= processes - 1 {
		p := &w.processes[bits.TrailingZeros(processes)]
		if p.waits != r.nonce {
			return false
		}
		switch r.kind {
		case claim:
			*p = process{epoch: w.row.epoch, owner: w.row.owner, known: 1 << r.nonce, next: from, limit: w.row.until}
		case renew:
			p.limit, p.known, p.waits = max(p.limit, w.row.until), 1<<r.nonce, 0
		case release:
			*p = process{}
		}
		if r.early {
			w.held = max(w.held, p.limit)
		}
	}
	return true
}

// do calls the function of leasestore for a request.
func (m *model) do(row row, r request, now leasestore.Millis) (after row, from int8, ok bool) {
	old := row.lease()
	switch r.kind {
	case claim:
		c := leasestore.Claim{
			Space: leasestore.Space{Workers: 1},
			Owner: names[r.owner], Nonce: names[r.nonce],
			Window: leasestore.Millis(m.window), Guard: leasestore.Millis(m.guard),
			Now: leasestore.Millis(r.now), Skew: leasestore.Millis(m.guard),
		}
		found := old
		if m.guard == 0 {
			// Nothing may depend on when a row is free, so every row is.
			found.Owner, c.Skew = "", math.MaxInt32
		}
		row, ok := m.protocol.claim(c, found, now)
		if !ok {
			return after, 0, false
		}
		return rowOf(row), int8(m.protocol.from(c, leasestore.Reply{Row: row, Before: old.Until, Now: now})), true
	case renew:
		row, err := m.protocol.renew(leasestore.Renewal{
			Epoch: int64(r.epoch), Owner: names[r.owner], Known: sets[r.known], Nonce: names[r.nonce],
			Next: leasestore.Millis(r.next), Until: leasestore.Millis(r.until),
			Window: leasestore.Millis(m.window), Guard: leasestore.Millis(m.guard),
			Now: leasestore.Millis(r.now), Skew: math.MaxInt32,
		}, old, now)
		return rowOf(row), 0, err == nil
	default:
		row, err := m.protocol.release(leasestore.Release{
			Epoch: int64(r.epoch), Owner: names[r.owner], Known: sets[r.known], Nonce: names[r.nonce],
			End: leasestore.Millis(r.until),
		}, old)
		return rowOf(row), 0, err == nil
	}
}

func (r request) String() string {
	switch r.kind {
	case claim:
		return fmt.Sprintf("claim(owner %d, nonce %d, clock %d)", r.owner, r.nonce, r.now)
	case renew:
		return fmt.Sprintf("renewal(epoch %d, owner %d, known %b, nonce %d, limit %d, clock %d)", r.epoch, r.owner, r.known, r.nonce, r.until, r.now)
	default:
		return fmt.Sprintf("release(epoch %d, owner %d, known %b, nonce %d, end %d)", r.epoch, r.owner, r.known, r.nonce, r.until)
	}
}

// nonces returns, as bits, the nonces that can still be met because they are in the store,
// under way or awaited.
func (w *world) nonces() (set uint16) {
	set = 1<<w.row.nonce | 1<<w.backup.nonce
	for _, p := range w.processes {
		set |= 1 << p.waits
	}
	for _, r := range w.requests {
		set |= 1 << r.nonce
	}
	return set
}

func (w *world) owners() (set uint16) {
	set = 1<<w.row.owner | 1<<w.backup.owner
	for _, p := range w.processes {
		set |= 1 << p.owner
	}
	for _, r := range w.requests {
		set |= 1 << r.owner
	}
	return set
}

// fresh returns a token that is not in use.
func fresh(set uint16) int8 { return int8(bits.TrailingZeros16(^(set | 1))) }

// rename brings a world into a standard form, which is the same for worlds that differ only in
// the names of tokens, the order of requests, or the numbering of processes.
func (w *world) rename() {
	slices.SortStableFunc(w.processes[:], func(a, b process) int {
		return cmp.Or(cmp.Compare(b.epoch, a.epoch), cmp.Compare(b.limit, a.limit), cmp.Compare(b.next, a.next), cmp.Compare(b.waits, a.waits))
	})
	slices.SortStableFunc(w.requests[:], func(a, b request) int {
		return cmp.Or(cmp.Compare(b.kind, a.kind), cmp.Compare(b.epoch, a.epoch), cmp.Compare(b.until, a.until), cmp.Compare(b.now, a.now),
			cmp.Compare(b.next, a.next))
	})
	var nonce, owner [16]int8
	nonces, owners := int8(0), int8(0)
	name := func(names *[16]int8, n *int8, token *int8) {
		if *token != 0 && names[*token] == 0 {
			*n++
			names[*token] = *n
		}
		*token = names[*token]
	}
	for _, r := range []*row{&w.row, &w.backup} {
		name(&nonce, &nonces, &r.nonce)
		name(&owner, &owners, &r.owner)
	}
	for p := range w.processes {
		name(&nonce, &nonces, &w.processes[p].waits)
		name(&owner, &owners, &w.processes[p].owner)
	}
	for q := range w.requests {
		name(&nonce, &nonces, &w.requests[q].nonce)
		name(&owner, &owners, &w.requests[q].owner)
	}
	// A known nonce that can no longer be met has no effect.
	known := func(set uint8) (to uint8) {
		for ; set != 0; set &= set - 1 {
			to |= 1 << nonce[bits.TrailingZeros8(set)]
		}
		return to &^ 1
	}
	for p := range w.processes {
		w.processes[p].known = known(w.processes[p].known)
	}
	for q := range w.requests {
		w.requests[q].known = known(w.requests[q].known)
	}
}

// A finding is the result of a search.
type finding struct {
	worlds int
	issued int // worlds with a timestamp that was issued
	taken  int // and with two processes that have different leases
	broken string
	moves  []string // the shortest way there
}

func (f finding) String() string {
	return fmt.Sprintf("%s, after %d moves:\n%s", f.broken, len(f.moves), strings.Join(f.moves, "\n"))
}

// search visits every reachable world, the nearest first.
func (m *model) search() (f finding) {
	seen := worlds.New(world{})
	parents := []int32{-1}
	for k := 0; k < seen.Len(); k++ {
		w := *seen.At(k)
		if w.issued != 0 {
			f.issued++
		}
		if a, b := w.processes[0].epoch, w.processes[1].epoch; a != 0 && b != 0 && a != b {
			f.taken++
		}
		m.steps(&w, func(next world) {
			next.rename()
			if _, added := seen.Add(next); added {
				parents = append(parents, int32(k))
			}
		})
		if m.broken == "" {
			continue
		}
		var path []int32
		for at := int32(k); at >= 0; at = parents[at] {
			path = append(path, at)
		}
		slices.Reverse(path)
		f.worlds, f.broken = seen.Len(), m.broken
		m.telling = true
		for i := range path[1:] {
			m.steps(seen.At(int(path[i])), func(next world) {
				next.rename()
				if next == *seen.At(int(path[i+1])) && len(f.moves) == i {
					f.moves = append(f.moves, fmt.Sprintf("%2d %s", i+1, m.said))
				}
			})
		}
		return f
	}
	f.worlds = seen.Len()
	return f
}

// The searches fill maps, and frequent garbage collection would take half of their time.
func init() { debug.SetGCPercent(800) }

// large adds the searches that take long.
var large = flag.Bool("model.large", false, "search the large worlds of the model too")

// worldsWithoutMistake are the models of the unchanged protocol.
func worldsWithoutMistake() []model {
	return []model{
		{name: "fence: requests lost, late and twice, takeover at any moment", window: 1, times: 3, epochs: 2},
		{name: "fence: the same, later", window: 2, times: 4, epochs: 3, large: true},
		{name: "guard: the store goes back once, early", window: 2, guard: 1, times: 3, epochs: 2, underWay: 1, loses: true},
		{name: "guard: the store goes back once", window: 2, guard: 1, times: 2, epochs: 2, underWay: 2, loses: true, large: true},
		{name: "guard: the store goes back once, later", window: 2, guard: 1, times: 5, epochs: 2, underWay: 1, loses: true, large: true},
		{name: "nonces: a process is copied", window: 1, times: 2, epochs: 2, underWay: 2, copies: true},
		{name: "nonces: a process is copied, later", window: 1, times: 3, epochs: 2, underWay: 2, copies: true, large: true},
	}
}

// No timestamp is issued twice, and none that the store has not reserved, in every order of
// everything that may happen.
func TestNoTimestampIsIssuedTwice(t *testing.T) {
	skipUnderRace(t)
	for _, m := range worldsWithoutMistake() {
		if m.large && !*large {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			m.protocol = ours()
			f := m.search()
			if f.broken != "" {
				t.Fatalf("search() = %v; want nothing broken", f)
			}
			if f.issued == 0 || f.taken == 0 {
				t.Errorf("search() has seen %d worlds with an ID and %d with two leases; want some", f.issued, f.taken)
			}
			t.Logf("%d worlds", f.worlds)
		})
	}
}

// skipUnderRace skips a search under the race detector, where it would take minutes, because
// the search has a single goroutine.
func skipUnderRace(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine: nothing to race")
	}
}

// Without any single one of the rules there is a duplicate, and the search finds it. Otherwise
// its silence about the protocol would prove nothing.
func TestEachMistakeIssuesATimestampTwice(t *testing.T) {
	skipUnderRace(t)
	fence := model{window: 2, times: 4, epochs: 3, underWay: 2, duplicatesOnly: true}
	guard := model{window: 2, guard: 1, times: 3, epochs: 2, underWay: 1, loses: true}
	for _, test := range []struct {
		name   string
		model  model
		mutate func(m *model)
	}{
		{"a claim starts at its own clock", fence, func(m *model) {
			m.protocol.from = func(c leasestore.Claim, _ leasestore.Reply) leasestore.Millis { return c.Now }
		}},
		{"a renewal without compare-and-set", fence, func(m *model) {
			m.protocol.renew = func(r leasestore.Renewal, row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				r.Epoch, r.Owner, r.Known = row.Epoch, row.Owner, []string{row.Nonce}
				return r.Apply(row, now)
			}
		}},
		{"a renewal that lowers the limit", fence, func(m *model) {
			m.protocol.renew = func(r leasestore.Renewal, row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				after, err := r.Apply(row, now)
				after.Until = max(now, r.Next) + r.Window
				return after, err
			}
		}},
		{"a claim that lowers the limit", fence, func(m *model) {
			m.protocol.claim = func(c leasestore.Claim, row leasestore.Row, now leasestore.Millis) (leasestore.Row, bool) {
				after, ok := c.Apply(row, now)
				after.Until = now + c.Window
				return after, ok
			}
			m.protocol.from = func(_ leasestore.Claim, r leasestore.Reply) leasestore.Millis { return r.Now }
		}},
		{"a release without compare-and-set", fence, func(m *model) {
			m.epochs = 4
			m.protocol.release = func(r leasestore.Release, row leasestore.Row) (leasestore.Row, error) {
				r.Epoch, r.Owner, r.Known = row.Epoch, row.Owner, []string{row.Nonce}
				return r.Apply(row)
			}
		}},
		{"a timeout taken as success", fence, func(m *model) { m.timeoutIsSuccess = true }},
		{"a release before the seal", fence, func(m *model) { m.releaseBeforeSeal = true }},
		{"a row that is deleted", fence, func(m *model) { m.deletes = true }},
		{"a store that loses writes, without the guard", fence, func(m *model) { m.loses = true }},
		{"a guard that is one too short", guard, func(m *model) {
			m.protocol.from = func(c leasestore.Claim, r leasestore.Reply) leasestore.Millis { return c.From(r) - 1 }
		}},
		{"a guard by the clock that a late claim was sent at", guard, func(m *model) {
			m.times, m.underWay, m.large = 2, 2, true
			m.protocol.from = func(c leasestore.Claim, r leasestore.Reply) leasestore.Millis {
				r.Now = c.Now
				return c.From(r)
			}
		}},
		{"a holder that renews after it has lapsed", guard, func(m *model) {
			m.window, m.times, m.large = 1, 3, true // the simulation of package lease finds it as well
			m.protocol.renew = func(r leasestore.Renewal, row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				after, err := r.Apply(row, now)
				if lost := (*leasestore.LostError)(nil); errors.As(err, &lost) && lost.Reason == leasestore.Lapsed {
					after, err = row, nil
					after.Until = max(row.Until, r.Until, min(now, r.Now)+r.Window)
					after.Nonce = r.Nonce
				}
				return after, err
			}
		}},
		// The nonce alone would prevent this duplicate, so it is left out as well.
		{"an epoch without an owner", guard, func(m *model) {
			m.protocol.renew = func(r leasestore.Renewal, row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				if row.Owner != "" {
					r.Owner, r.Known = row.Owner, []string{row.Nonce}
				}
				return r.Apply(row, now)
			}
		}},
		{"no nonce", model{window: 1, times: 4, epochs: 2, underWay: 2, copies: true}, func(m *model) {
			m.protocol.renew = func(r leasestore.Renewal, row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				r.Known = []string{row.Nonce}
				return r.Apply(row, now)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := test.model
			m.protocol = ours()
			test.mutate(&m)
			if m.large && !*large {
				t.Skip("only with -model.large")
			}
			f := m.search()
			if !strings.HasPrefix(f.broken, "unique: ") {
				t.Fatalf("search() of %d worlds = %q; want a duplicate", f.worlds, f.broken)
			}
			t.Logf("%d worlds: %v", f.worlds, f)
		})
	}
}
