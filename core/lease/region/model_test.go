package region

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/proof/robust/worlds"
)

// This searches every state that regions can reach within small bounds. It drives Keeper.next and
// Keeper.do, which decide and ask, and the functions Apply of package leasestore, which change the
// rows. A search that does not find what a deliberate mistake leads to fails the test, because its
// silence about the protocol would otherwise prove nothing. A refusal is final here; that the leases
// of a refused region end is tested in region_test.go of package lease. Left out are a copy and a
// loss together, and a loss while a number is assigned.
//
// There are two regions: two processes in the first, one in the second. A request may be done long
// after its process has given up or crashed, twice, or never. A process that cannot reach the common
// store goes on with the home if it may. Clocks show anything.

const modelNumbers = 2

// An areaRow is a leasestore.Row. Tokens are small numbers: 0 is none. Until is 0 or so much more
// than leasestore.Retired.
type areaRow struct{ epoch, owner, nonce, until, name int8 }

// An areaHome is the row of a region's own store.
type areaHome struct {
	areaRow
	number int8
}

// An areaProcess is what a process knows, which a crash erases.
type areaProcess struct {
	ask  areaRequest
	uses int8     // the number that it makes IDs with, and one
	home areaHome // only for the mistake torn
}

// An areaRequest is a request to a store: 0 and 1 are the regions' own, 2 is the common one.
type areaRequest struct {
	kind                              areaKind
	store, number                     int8
	owner, nonce, known, epoch, until int8
	holder, name                      int8
	fresh                             int8
}

type areaKind int8

const (
	areaClaim areaKind = 1 + iota
	areaRenew
	areaRelease
)

// An area is the state of everything.
type area struct {
	numbers   [modelNumbers]areaRow
	homes     [2]areaHome
	processes [3]areaProcess
	late      areaRequest // of a process that has given up
	copied    bool
	fresh     [2]bool // the home has a mark since it was copied
	first     int8    // whose fresh mark was first in the common store, and one
	freed     int8    // 1: the operator has freed a home, 2: and the number
	lost      bool    // the common store went back
	backup    [modelNumbers]areaRow
}

func regionOf(process int) int8 { return int8(process / 2) }

// An areaModel says what may happen.
type areaModel struct {
	name     string
	marks    int8 // versions of a mark
	epochs   int8
	second   bool // the second region runs
	late     bool // requests are done late
	few      bool // one process in the first region: what it has given up stands for the other
	copies   bool // the second region is a copy of the first, made at any moment
	renamed  bool // and has a name of its own
	frees    bool // an operator frees the number of the first region, once it has ended
	loses    bool // the common store goes back to an earlier state
	refusals bool // are no mistake

	// Mistakes.
	decide  func(r *Keeper, s snapshot, do step, number int64, err error) (step, int64, error)
	alter   func(r *areaRequest, p *areaProcess)
	apply   func(q areaRequest, row *areaRow) // before a request is done
	torn    bool                              // sees the home before the numbers
	expires bool                              // the numbers of regions that do not answer are free

	broken  string
	said    string
	telling bool
}

var areaWho = []string{"process 0 of region a", "process 1 of region a", "process 2, of region b,"}

var areaNames = []string{"", "a", "b"}

// areaToken returns the name of a token. areaTokenOf returns the token, fresh for a name that is
// none, as of one that was drawn just now.
func areaToken(k int8) string { return "abcdefghijklmnopqrstuvwxyz"[max(k-1, 0):k] }

func areaTokenOf(s string, fresh int8) int8 {
	switch len(s) {
	case 0:
		return 0
	case 1:
		return int8(s[0]-'a') + 1
	}
	return fresh
}

func areaUntil(v int8) leasestore.Millis {
	if v == 0 {
		return 0
	}
	return leasestore.Retired + leasestore.Millis(v)
}

func (r areaRow) row(worker int64) leasestore.Row {
	return leasestore.Row{Worker: worker, Epoch: int64(r.epoch), Owner: areaToken(r.owner), Nonce: areaToken(r.nonce), Until: areaUntil(r.until), Holder: areaNames[r.name]}
}

func (h areaHome) reservation() reservation {
	return reservation{Row: h.row(0), number: int64(h.number), name: areaNames[h.name]}
}

// An areaAsked is a store that keeps what it is asked.
type areaAsked struct {
	leasestore.Store
	asked  *areaRequest
	store  int8
	unused int8
}

func (c *areaAsked) Claim(_ context.Context, q leasestore.Claim) (leasestore.Reply, error) {
	*c.asked = areaRequest{kind: areaClaim, store: c.store, owner: areaTokenOf(q.Owner, c.unused), nonce: areaTokenOf(q.Nonce, c.unused)}
	if c.store == 2 {
		c.asked.number = int8(q.Only[0])
		c.asked.name = int8(slices.Index(areaNames, q.Holder))
	} else {
		h, err := reservationOf(leasestore.Row{Owner: q.Owner, Holder: q.Holder}, modelNumbers)
		if err != nil {
			panic(err)
		}
		c.asked.holder, c.asked.name = int8(h.number), int8(slices.Index(areaNames, h.name))
	}
	return leasestore.Reply{}, nil
}

func (c *areaAsked) Renew(_ context.Context, q leasestore.Renewal) (leasestore.Reply, error) {
	*c.asked = areaRequest{
		kind: areaRenew, store: c.store, number: int8(q.Worker), epoch: int8(q.Epoch), owner: areaTokenOf(q.Owner, c.unused),
		known: areaTokenOf(q.Known[0], c.unused), nonce: areaTokenOf(q.Nonce, c.unused), until: int8(q.Until - leasestore.Retired),
	}
	return leasestore.Reply{}, nil
}

func (c *areaAsked) Release(_ context.Context, q leasestore.Release) error {
	*c.asked = areaRequest{
		kind: areaRelease, store: c.store, number: int8(q.Worker), epoch: int8(q.Epoch), owner: areaTokenOf(q.Owner, c.unused),
		known: areaTokenOf(q.Known[0], c.unused), nonce: areaTokenOf(q.Nonce, c.unused),
	}
	return nil
}

func (c *areaAsked) Fence(context.Context, leasestore.Fencing) error { return nil }

func (m *areaModel) say(format string, args ...any) {
	if m.telling {
		m.said = fmt.Sprintf(format, args...)
	}
}

func (m *areaModel) breaks(format string, args ...any) {
	if m.broken == "" {
		m.broken = fmt.Sprintf(format, args...)
	}
}

// steps calls yield for every area that may follow a.
func (m *areaModel) steps(a *area, yield func(next area)) {
	for p := range a.processes {
		if regionOf(p) == 1 && (!m.second || m.copies && !a.copied) || m.few && p == 1 {
			continue
		}
		m.process(a, p, yield)
	}
	if a.late.kind != 0 {
		m.perform(a, a.late, "late, ", func(next area) { yield(next) })
	}
	if m.copies && !a.copied && a.homes[0].owner != 0 {
		b := *a
		b.copied, b.homes[1] = true, b.homes[0]
		m.say("the store of region a is copied")
		yield(b)
	}
	if h := &a.homes[0]; m.loses && !a.lost && h.nonce != h.owner { // but not while the number is assigned
		b := *a
		b.backup = b.numbers
		m.say("the common store will come back to this state")
		yield(b)
		b = *a
		b.numbers, b.backup, b.lost = b.backup, [modelNumbers]areaRow{}, true
		for p := range b.processes { // no server does what another was asked before
			if q := &b.processes[p].ask; q.store == 2 {
				*q = areaRequest{}
			}
		}
		m.say("the common store goes back")
		yield(b)
	}
	if m.frees && a.freed == 0 && a.homes[0].owner != 0 && a.processes[0] == (areaProcess{}) && a.processes[1] == (areaProcess{}) {
		b := *a
		b.homes[0] = areaHome{areaRow: areaRow{epoch: b.homes[0].epoch + 1}}
		b.freed = 1
		m.say("all processes of region a have ended, and the operator frees its home")
		yield(b)
	}
	if n := 0; m.frees && a.freed == 1 && a.numbers[n].owner != 0 && a.numbers[n].name == 1 && a.homes[0].owner != a.numbers[n].owner {
		b := *a
		b.numbers[n] = areaRow{epoch: b.numbers[n].epoch + 1}
		b.freed = 2
		m.say("the operator frees number %d", n)
		yield(b)
	}
	if m.expires {
		for n := range a.numbers {
			if a.numbers[n].owner != 0 {
				b := *a
				b.numbers[n] = areaRow{epoch: b.numbers[n].epoch + 1}
				m.say("number %d has expired", n)
				yield(b)
			}
		}
	}
}

// process makes the moves of process p. It sees home and numbers at one moment, as look makes sure,
// and does what follows at once or at any later moment. What it sees stays true enough meanwhile,
// or the store refuses the request.
func (m *areaModel) process(a *area, p int, yield func(next area)) {
	now, k := &a.processes[p], regionOf(p)
	who := areaWho[p]
	if *now != (areaProcess{}) {
		b := *a
		if m.late && now.ask.kind != 0 {
			b.late = now.ask
		}
		b.processes[p] = areaProcess{}
		m.say("%s crashes", who)
		yield(b)
	}
	if now.ask.kind != 0 {
		b := *a
		b.processes[p].ask = areaRequest{}
		m.perform(&b, now.ask, "", yield)
		if m.late {
			b.late = now.ask
			m.say("%s waits no longer", who)
			yield(b)
		}
		return
	}
	h := a.homes[k]
	if m.torn {
		if now.home == (areaHome{}) && h.owner != 0 {
			b := *a
			b.processes[p].home = h
			m.say("%s sees its home, %+v", who, h)
			yield(b)
		}
		h = now.home
	}
	s := snapshot{home: h.reservation()}
	if !s.home.pending() {
		s.away = errors.New("cut off")
		m.decided(a, p, s, who, yield)
		s.away = nil
	}
	for n, row := range a.numbers {
		s.rows = append(s.rows, row.row(int64(n)))
	}
	m.decided(a, p, s, who, yield)
}

// decided lets process p do what follows from what it has seen.
func (m *areaModel) decided(a *area, p int, s snapshot, who string, yield func(next area)) {
	k, now := regionOf(p), &a.processes[p]
	var asked areaRequest
	unused := a.unused()
	region := &Region{Name: areaNames[1+k], Store: &areaAsked{asked: &asked, store: 2, unused: unused}}
	if m.copies && !m.renamed {
		region.Name = areaNames[1]
	}
	r := &Keeper{Region: region, joined: now.uses != 0, config: Config{
		Own: &areaAsked{asked: &asked, store: k, unused: unused}, Now: time.Now,
		Token: func() string { return "a fresh token" },
	}}
	r.leases.Datacenter = int64(now.uses - 1)
	do, number, err := r.next(s)
	if m.decide != nil {
		do, number, err = m.decide(r, s, do, number, err)
	}
	b := *a
	after := &b.processes[p]
	after.home = areaHome{}
	switch {
	case err != nil:
		after.uses = 0
		if !m.refusals && !m.copies {
			m.breaks("refused: %s: %v", who, err)
		}
		m.say("%s is refused: %v", who, err)
		yield(b)
		return
	case do == settled:
		if s.away == nil && a.first != 0 && a.first != 1+k {
			m.breaks("copies: %s has its number confirmed, although the other copy came first", who)
		}
		after.uses = int8(number) + 1
		for q, other := range b.processes {
			if regionOf(q) != k && other.uses == after.uses && !m.copies {
				m.breaks("unique: %s uses number %d, as the other region does", who, number)
			}
		}
		if m.renamed && k == 1 {
			m.breaks("copies: %s uses the number of region a", who)
		}
		m.say("%s uses number %d", who, number)
		yield(b)
		if s.away != nil || s.home.Until >= areaUntil(m.marks) {
			return
		}
		do = markHome // or marks its home anew
	}
	if err := r.do(context.Background(), do, number, s); err != nil {
		panic(err)
	}
	asked.fresh = 0
	if a.fresh[k] || do == markHome && a.copied {
		asked.fresh = 1 + k
	}
	if m.alter != nil {
		m.alter(&asked, now)
	}
	after.ask = asked
	m.say("%s asks %+v", who, asked)
	yield(b)
}

// perform does a request, if the store does not refuse it.
func (m *areaModel) perform(a *area, q areaRequest, when string, yield func(next area)) {
	b := *a
	row := &b.numbers[q.number]
	if q.store < 2 {
		row = &b.homes[q.store].areaRow
	}
	if m.apply != nil {
		m.apply(q, row)
	}
	old := row.row(int64(q.number))
	refused := func() {
		m.say("%sthe store refuses %+v", when, q)
		yield(*a)
	}
	switch q.kind {
	case areaClaim:
		for _, clock := range []leasestore.Millis{1, 2} {
			c := leasestore.Claim{Space: leasestore.Space{Workers: modelNumbers}, Owner: areaToken(q.owner), Nonce: areaToken(q.nonce), Window: leasestore.Retired, Skew: leasestore.Retired / 2}
			to, ok := c.Apply(old, clock)
			if !ok || int8(to.Epoch) > m.epochs {
				refused()
				return
			}
			b := b
			m.write(&b, q, areaRow{int8(to.Epoch), q.owner, q.nonce, int8(to.Until - leasestore.Retired), q.name})
			m.say("%sthe store does %+v", when, q)
			yield(b)
		}
	case areaRenew:
		r := leasestore.Renewal{Epoch: int64(q.epoch), Owner: areaToken(q.owner), Known: []string{areaToken(q.known)}, Nonce: areaToken(q.nonce), Until: areaUntil(q.until)}
		to, err := r.Apply(old, 1)
		if err != nil {
			refused()
			return
		}
		m.write(&b, q, areaRow{int8(to.Epoch), q.owner, q.nonce, int8(to.Until - leasestore.Retired), row.name})
		m.say("%sthe store does %+v", when, q)
		yield(b)
	case areaRelease:
		r := leasestore.Release{Epoch: int64(q.epoch), Owner: areaToken(q.owner), Known: []string{areaToken(q.known)}, Nonce: areaToken(q.nonce)}
		to, err := r.Apply(old)
		if err != nil {
			refused()
			return
		}
		m.write(&b, q, areaRow{epoch: int8(to.Epoch), nonce: q.nonce})
		m.say("%sthe store does %+v", when, q)
		yield(b)
	}
}

func (m *areaModel) write(b *area, q areaRequest, to areaRow) {
	if q.store == 2 {
		b.numbers[q.number] = to
		if q.fresh != 0 && b.first == 0 {
			b.first = q.fresh
		}
		return
	}
	h := &b.homes[q.store]
	h.areaRow = to
	switch q.kind {
	case areaClaim:
		h.number = q.holder
	case areaRelease:
		h.number = 0
	}
	if b.copied {
		b.fresh[q.store] = true
	}
}

// tokens calls f with every token of a.
func (a *area) tokens(f func(token *int8)) {
	rows := func(r *areaRow) { f(&r.owner); f(&r.nonce) }
	request := func(q *areaRequest) { f(&q.owner); f(&q.nonce); f(&q.known) }
	for n := range a.numbers {
		rows(&a.numbers[n])
		rows(&a.backup[n])
	}
	for k := range a.homes {
		rows(&a.homes[k].areaRow)
	}
	for p := range a.processes {
		rows(&a.processes[p].home.areaRow)
		request(&a.processes[p].ask)
	}
	request(&a.late)
}

func (a *area) unused() int8 {
	var set uint64 = 1
	a.tokens(func(t *int8) { set |= 1 << *t })
	for k := int8(1); ; k++ {
		if set&(1<<k) == 0 {
			return k
		}
	}
}

// rename makes areas equal that differ only in the names of tokens.
func (a *area) rename() {
	var names [64]int8
	n := int8(0)
	a.tokens(func(t *int8) {
		if *t != 0 && names[*t] == 0 {
			n++
			names[*t] = n
		}
		*t = names[*t]
	})
}

// search visits every area, the nearest first, and returns what is broken and how.
func (m *areaModel) search() (areas, used int, broken string) {
	all, parents := worlds.New(area{}), []int32{-1}
	for k := 0; k < all.Len(); k++ {
		a := *all.At(k)
		for _, p := range a.processes {
			if p.uses != 0 {
				used++
				break
			}
		}
		m.steps(&a, func(next area) {
			next.rename()
			if _, added := all.Add(next); added {
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
		moves := []string{m.broken}
		m.telling = true
		for i := range path[1:] {
			m.steps(all.At(int(path[i])), func(next area) {
				next.rename()
				if next == *all.At(int(path[i+1])) && len(moves) == i+1 {
					moves = append(moves, fmt.Sprintf("%2d %s", i+1, m.said))
				}
			})
		}
		return all.Len(), used, strings.Join(moves, "\n")
	}
	return all.Len(), used, ""
}

var large = flag.Bool("large", false, "search the large worlds of the model of regions too")

func TestTwoRegionsNeverHaveOneNumber(t *testing.T) {
	skipSearch(t)
	epochs := int8(2)
	if *large {
		epochs = 3
	}
	for _, m := range []areaModel{
		{name: "two regions start", marks: 3, epochs: epochs, second: true},
		{name: "two regions start, with requests that are done late", marks: 2, epochs: 3, second: true, late: true, few: true},
		{name: "a copy of the store, with the same name", marks: 4, epochs: 1, second: true, copies: true},
		{name: "a copy of the store, with a name of its own", marks: 3, epochs: 1, second: true, copies: true, renamed: true},
		{name: "the operator gives the number to another region", marks: 2, epochs: epochs, second: true, frees: true, refusals: true},
		{name: "the common store goes back", marks: 4, epochs: 1, loses: true},
	} {
		t.Run(m.name, func(t *testing.T) {
			areas, used, broken := m.search()
			if broken != "" {
				t.Fatalf("search() = %s; want nothing broken", broken)
			}
			if used == 0 {
				t.Error("search() has seen no process with a number")
			}
			t.Logf("%d areas", areas)
		})
	}
}

// skipSearch skips a search under the race detector, which would slow it down for nothing: it has
// a single goroutine.
func skipSearch(t *testing.T) {
	if raceEnabled {
		t.Skip("one goroutine: nothing to race")
	}
}

// Without any single one of the rules something breaks, and the search finds it.
func TestEachMistakeOfARegionIsFound(t *testing.T) {
	skipSearch(t)
	start := areaModel{marks: 2, epochs: 3, second: true, refusals: true}
	few := start
	few.few = true
	strict := start
	strict.refusals = false
	late := strict
	late.late, late.few = true, true
	copied := areaModel{marks: 4, epochs: 1, second: true, copies: true}
	renamed := copied
	renamed.renamed = true
	loses := areaModel{marks: 4, epochs: 1, loses: true}
	for _, test := range []struct {
		name   string
		want   string
		model  areaModel
		mutate func(m *areaModel)
	}{
		{"a number expires", "unique", few, func(m *areaModel) { m.expires = true }},
		{"a number is remembered before the common store has it", "unique", start, func(m *areaModel) {
			m.decide = func(r *Keeper, s snapshot, do step, number int64, err error) (step, int64, error) {
				if do == take {
					do = settled
				}
				return do, number, err
			}
		}},
		{"a claim without an answer is taken for done", "unique", start, func(m *areaModel) {
			m.decide = func(r *Keeper, s snapshot, do step, number int64, err error) (step, int64, error) {
				if do == release {
					do = markHome
				}
				return do, number, err
			}
		}},
		{"whoever has the name has the number", "unique", start, func(m *areaModel) {
			m.decide = func(_ *Keeper, s snapshot, do step, number int64, err error) (step, int64, error) {
				for _, row := range s.rows { // both regions have one name
					if row.Owner != "" && s.away == nil {
						return settled, row.Worker, nil
					}
				}
				return do, number, err
			}
		}},
		{"a proposal is withdrawn without compare-and-swap", "refused", late, func(m *areaModel) {
			m.apply = func(q areaRequest, row *areaRow) {
				if q.kind == areaRelease {
					row.epoch, row.owner, row.nonce = q.epoch, q.owner, q.known
				}
			}
		}},
		{"the common store loses a number while another region starts", "unique", few, func(m *areaModel) { m.loses = true }},
		{"no mark", "copies", copied, func(m *areaModel) {
			m.decide = func(r *Keeper, s snapshot, do step, number int64, err error) (step, int64, error) {
				if err != nil {
					do, number, err = settled, s.home.number, nil
				}
				return do, number, err
			}
		}},
		{"a mark is copied without compare-and-swap", "copies", copied, func(m *areaModel) {
			m.apply = func(q areaRequest, row *areaRow) {
				if q.kind == areaRenew && q.store == 2 {
					row.nonce, row.until = q.known, min(row.until, q.until)
				}
			}
		}},
		{"the version of a mark is a time", "copies", copied, func(m *areaModel) {
			m.alter = func(q *areaRequest, _ *areaProcess) {
				if q.kind == areaRenew && q.store == 1 {
					q.until++ // the clock of the copy is ahead
				}
			}
		}},
		{"a region's own store does not keep the name", "copies", renamed, func(m *areaModel) {
			m.decide = func(r *Keeper, s snapshot, do step, number int64, err error) (step, int64, error) {
				if err != nil && s.home.name != r.Name {
					r.Name = s.home.name
					return r.next(s)
				}
				return do, number, err
			}
		}},
		{"the common store has the mark first", "refused", strict, func(m *areaModel) {
			m.alter = func(q *areaRequest, _ *areaProcess) {
				if q.kind == areaRenew && q.store != 2 {
					q.store, q.number = 2, 0
				}
			}
		}},
		{"the home is not looked at again", "refused", strict, func(m *areaModel) { m.torn = true }},
		{"a common store that went back is another's", "refused", loses, func(m *areaModel) {
			m.decide = func(r *Keeper, s snapshot, do step, number int64, err error) (step, int64, error) {
				if do == markNumber && s.rows[number].Until < s.home.Until-1 {
					err = r.refused(number, "")
				}
				return do, number, err
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := test.model
			test.mutate(&m)
			areas, _, broken := m.search()
			if !strings.HasPrefix(broken, test.want+": ") {
				t.Fatalf("search() of %d areas = %q; want %s broken", areas, broken, test.want)
			}
			t.Logf("%d areas: %s", areas, broken)
		})
	}
}

// A claim waits while the region marks its number in a store that hangs, and not beyond its context.
func TestAWaitForTheRegionEndsWithItsContext(t *testing.T) {
	r := &Keeper{Region: &Region{Name: "a"}, busy: make(chan struct{}, 1)}
	r.busy <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := r.settle(ctx, false); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("settle() = %d, %v; want 0 and that the context ended", n, err)
	}
}
