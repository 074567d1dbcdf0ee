package core

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/snowkey/snowkey/internal/proof/robust/worlds"
	"github.com/snowkey/snowkey/types"
)

// This file is a model checker for generator_term.go and for refusal, which is in
// generator_counter.go. It transcribes the methods, one atomic operation or one clock
// reading per step. It searches every interleaving of those steps with each other and
// with the clocks, in small worlds, to the end.
// What it finds is a shortest schedule.
//
// Model and code have the same names in the same order, to be read side by side.
// TestModelAndTermDoTheSame runs both on the same schedules and compares every word
// after every call. What shows that the search finds what there is to find:
// generator_model_mutants_test.go, where a change of one line breaks each claim.
//
// A lease takes part as two moves, a raise of the limit and the notification
// after it. They may come at any moment, also after the seal. MaxLeaseWait is a
// context that ends.
//
// Not in the model: the policies other than Continue; sequence starts other than
// Zero; compose and fill, which only compute; a Fill that starts over. Nor are the
// bound of a single sleep (a sleep may end at any later moment) and the term that
// follows on a seal. Times in ns do not overflow here. In look the time of a seal
// may be anything, but a seal is not below a limit, so it is never taken for a
// number.

// A word is the state of a model: 8 bits where a term has 64, in the same
// proportions. Numbers are below 1<<7, modelSealed is as sealed.
type word uint8

const modelSealed word = 3 << 6

// maxGoroutines is how many a world has room for.
const maxGoroutines = 3

// A world is one moment of everything. It has the words of the term, the clocks, and
// each goroutine at its place in the code. It also has what the claims remember. It
// is comparable and small, since every world that was seen is kept. Times are
// counted in the smallest unit that matters, a tick or half a tick.
type world struct {
	state  word // of the term
	offset int8 // of the term
	limit  word // of the term

	monotonic int8  // the monotonic clock
	lead      int8  // the wall clock is monotonic + lead
	steps     uint8 // how many of model.steps the wall clock has made
	raised    uint8 // how many moves the lease has made: two for each of model.raises
	rings     uint8 // how many are about to notify

	sequence word // the second word of the generators that have two
	closed   bool // the flag of the mutant that has one

	// For the claims; no step of the code reads these.
	returned uint64 // the numbers that were returned, as bits
	greatest word   // among those of calls that have returned
	highest  int8   // lead of the logical clock that is allowed: see capped
	lowest   int8   // least lead of the wall clock so far: see floored
	sealed   bool   // Seal has returned
	last     word   // with the end of this number

	goroutines [maxGoroutines]goroutine
}

func (w *world) wall() int8 { return w.monotonic + w.lead }

// A goroutine makes the calls of its program, one after the other.
type goroutine struct {
	pc   pc
	call uint8 // index in the program
	back pc    // where resync and await return to

	// The locals of the methods, under their names. resync's now shares its
	// place with that of its callers, who assign its result to theirs.
	last, first, n, want, limit  word
	now, offset, wall, monotonic int8
	synced                       bool
	beyond                       bool // refusal: n >= limit
	asleep                       int8 // wait: the monotonic time when it began
	rung                         bool // await: changed is closed

	// For the claims.
	began int8 // monotonic time of the call's first step
	after word // greatest at that time
	reach word // limit at that time
	taken word // numbers that the call has taken and not returned, nor given up as too far behind
	read  int8 // the logical clock, when the call read it last, if model.behind is set
	high  word // the last number that a Fill has so far
}

// A pc is the step that a goroutine makes next. model.step says which line of
// generator_term.go each one stands for.
type pc uint8

const (
	done pc = iota
	nextOffset
	nextMonotonic
	lookState
	lookLimit
	takeAdd
	settleOffset
	settleMonotonic
	settleLimit
	settleEnded
	settleWait
	reserveOffset
	reserveMonotonic
	reserveState
	reserveLimit
	reserveBeyond
	reserveEnded
	reserveCAS
	reserveWait
	resyncOffset
	resyncWall
	resyncMonotonic
	resyncLimit
	resyncState
	resyncCAS
	resyncReload
	awaitListen
	awaitLimit
	awaitSealed
	awaitChange
	sealSwap
	sealNotify
	sealLimit
	firstRivalStep // the steps from here on are in generator_model_mutants_test.go
)

// stepNames is how a schedule names the steps.
var stepNames = [...]string{
	done:             "done",
	nextOffset:       "next: offset.Load()",
	nextMonotonic:    "next: clock.monotonic()",
	lookState:        "look: last = state.Load()",
	lookLimit:        "look: last < limit.Load()",
	takeAdd:          "take: n := state.Add(1)",
	settleOffset:     "settle: offset.Load()",
	settleMonotonic:  "settle: clock.monotonic()",
	settleLimit:      "settle: refusal(n): limit := limit.Load()",
	settleEnded:      "settle: refusal(n): state.Load()",
	settleWait:       "settle: wait",
	reserveOffset:    "reserve: offset.Load()",
	reserveMonotonic: "reserve: clock.monotonic()",
	reserveState:     "reserve: last := state.Load()",
	reserveLimit:     "reserve: limit := limit.Load()",
	reserveBeyond:    "reserve: refusal(first): limit := limit.Load()",
	reserveEnded:     "reserve: refusal(first): state.Load()",
	reserveCAS:       "reserve: state.CompareAndSwap(last, first+n-1)",
	reserveWait:      "reserve: wait",
	resyncOffset:     "resync: offset := offset.Load()",
	resyncWall:       "resync: wall, ",
	resyncMonotonic:  "resync: monotonic := clock.both()",
	resyncLimit:      "resync: ignores(wall): limit := limit.Load()",
	resyncState:      "resync: last := state.Load()",
	resyncCAS:        "resync: offset.CompareAndSwap(offset, now)",
	resyncReload:     "resync: now = offset.Load()",
	awaitListen:      "await: changed := changes.listen()",
	awaitLimit:       "await: limit.Load() > n",
	awaitSealed:      "await: isSealed()",
	awaitChange:      "await: <-changed",
	sealSwap:         "Seal: last := state.Swap(sealed)",
	sealNotify:       "Seal: changes.notify()",
	sealLimit:        "Seal: min(last, limit.Load()-1)",

	articleClock:    "ts := clock",
	articleAdd:      "n := word.Add(1)",
	articleReset:    "word.CompareAndSwap(n, ts<<bits)",
	twoWordsClock:   "now := clock",
	twoWordsTime:    "last := time.Load()",
	twoWordsAdvance: "time.CompareAndSwap(last, now)",
	twoWordsReset:   "sequence.Store(0)",
	twoWordsAdd:     "n := sequence.Add(1)",
	addFirstAdd:     "n := sequence.Add(1)",
	addFirstClock:   "now := clock",
	addFirstTime:    "time.Load()",
	addFirstAdvance: "time.Store(now)",
	addFirstReset:   "sequence.Store(0)",
	flagSet:         "seal: closed.Store(true)",
	flagLast:        "seal: last := state.Load()",
}

// A call is what a goroutine does next in its program: a Fill of so many, or one
// of the following.
type call uint8

const (
	callNext     call = 101
	callClose    call = 102
	callArticle  call = 103 // these are in generator_model_mutants_test.go
	callTwoWords call = 104
	callAddFirst call = 105
)

// A claim is one of the statements that hold at every moment of every schedule.
type claim uint8

const (
	// unique: no number is taken twice by calls that return.
	unique claim = iota
	// ordered: a call that began after another had returned gets larger numbers,
	// and those of a Fill increase.
	ordered
	// limited: no number at or above the limit, as it then is, is returned.
	limited
	// ended: Seal returns the end of a last number that none, returned before or
	// after, is above.
	ended
	// capped: no number is returned before its tick is within the run-ahead of a
	// bound. The bound is the maximum, over all readings of the wall clock, of
	// (what it showed + the monotonic time since). It does not mention the offset.
	// A step back leaves it where it was: then it bounds the numbers by the time
	// that a clock without the step would show. Readings beyond the limit do not
	// count; a reserved term begins with one of its first number at the ceiling.
	capped
	// floored: no number is of a tick before that in which its call began. The
	// clock is the wall clock less its steps forward so far, and less the time
	// within a torn reading of both clocks. Without steps and torn readings: by the
	// wall clock. A limit that rises above the wall clock is a step forward, from
	// where the term began. And it is not claimed for a call in which the logical
	// clock has come to the limit: then what is left below it is used.
	floored
	// growing: neither the state nor the limit ever decreases.
	growing
	// near: no number is returned that is more than model.behind behind the logical
	// clock, as the call has read it last.
	near
	// frugal: a call that fails while it waits to reserve has taken only what it
	// has given up as too far behind. One that fails later has taken one number.
	// The state is beyond the last number under the ceiling (that of capped), or
	// under the limit, by at most the callers of Next, less one, so that cancelled
	// calls cannot push it on.
	frugal
	// serving: a call waits for the lease only when no number below the limit is
	// left, or those that are left are too far behind.
	serving
	// live: a call that runs alone, while all others are stopped and the clocks go
	// on, finishes or waits for the lease. Every schedule ends. All calls are then
	// finished, unless the world's clock is at its end and the others wait for it,
	// or for the lease. Who waits for the lease has nothing to go on with, or the
	// waiters are about to be notified.
	live
	claims
)

var claimNames = [claims]string{"unique", "ordered", "limited", "ended", "capped", "floored", "growing", "near", "frugal", "serving", "live"}

func (c claim) String() string { return claimNames[c] }

// A model is a small configuration: what runs in it, what the clocks may do, and
// which mistake it has.
type model struct {
	name         string
	unit, ahead  int8 // of a term, in the time of the model
	behind       int8 // likewise, less one; 0: any
	sequenceBits word
	end          word // of the layout; 0: none that is within reach
	programs     [][]call
	mutant       mutant

	wall  int8 // the wall clock at the beginning, when the monotonic clock is at 0
	start word // the state at the beginning; 0: as newTerm has it
	blank bool // the state at the beginning is 0
	// reserved begins the world as newReservedTerm has it, with the numbers in
	// [first, limit).
	reserved     bool
	first, limit word
	// raises are what the limit is raised to, in this order, each at any moment. If
	// they are nil, a load of the limit is no step of its own.
	raises []word

	until int8   // where the monotonic clock stops
	steps []int8 // of the wall clock, in this order, each at any moment
	// cancel lets the context of any call that waits, or is between two parts of
	// a Fill, end at any moment.
	cancel bool
	// torn lets a goroutine be stopped between the two readings of clock.both.
	torn  bool
	alike bool // all programs are the same
	large bool // only with the flag -large
	// aim, if set, is the one claim to look at.
	aim *claim

	mask    word
	broken  string               // the first claim that a step broke, and how
	saw     uint64               // the events of all steps, as bits
	asked   int8                 // what the last wait was asked for
	numbers func(first, n word)  // if set, is told what calls return
	refused func(i int, e event) // if set, is told which calls fail
}

// An event is something that a search must have seen before its silence means
// anything: each step of generator_term.go, and these.
type event uint8

const (
	stateCASFailed event = iota + event(firstRivalStep)
	offsetCASFailed
	logicalClockDropped
	clockIgnored // by resync
	floorIgnored // by reserve
	settledAfterWaiting
	settledAfterARaise
	behindInSettle
	behindInReserve
	reservedAfterARaise
	raisedMeanwhile // between the loads of the limit by reserve and by refusal
	fillSplit
	cancelledInSettle
	cancelledInReserve
	cancelledInFill
	unreservedInSettle
	unreservedInReserve
	sealedInSettle
	sealedInReserve
	exhaustedInSettle
	exhaustedInReserve
	events
)

var eventNames = map[event]string{
	stateCASFailed:      "a failed CompareAndSwap of the state",
	offsetCASFailed:     "a failed CompareAndSwap of the offset",
	logicalClockDropped: "a logical clock that goes back",
	clockIgnored:        "a wall clock beyond the limit",
	floorIgnored:        "a logical clock beyond the limit",
	settledAfterWaiting: "a number beyond the ceiling, returned later",
	settledAfterARaise:  "a number beyond the limit, returned later",
	behindInSettle:      "a number that falls too far behind while it waits",
	behindInReserve:     "a wait for the lease with numbers left that are too far behind",
	reservedAfterARaise: "a reserve that goes on after a raise",
	raisedMeanwhile:     "a raise between two loads of one reserve",
	fillSplit:           "a Fill in parts",
	cancelledInSettle:   "a context that ends in settle",
	cancelledInReserve:  "a context that ends in reserve",
	cancelledInFill:     "a context that ends between the parts of a Fill",
	unreservedInSettle:  "ErrReservationExhausted from settle",
	unreservedInReserve: "ErrReservationExhausted from reserve",
	sealedInSettle:      "errSealed from settle",
	sealedInReserve:     "errSealed from reserve",
	exhaustedInSettle:   "ErrTimeExhausted from settle",
	exhaustedInReserve:  "ErrTimeExhausted from reserve",
}

func (e event) String() string {
	if int(e) < len(stepNames) && e < event(firstRivalStep) {
		return stepNames[e]
	}
	return eventNames[e]
}

func (m *model) see(e event) { m.saw |= 1 << e }

// breaks notes that claim c is broken.
func (m *model) breaks(c claim, format string, args ...any) {
	if m.broken == "" && (m.aim == nil || *m.aim == c) {
		m.broken = c.String() + ": " + fmt.Sprintf(format, args...)
	}
}

// text shows a number as tick.sequence.
func (m *model) text(n word) string {
	if n >= modelSealed {
		return "sealed"
	}
	return fmt.Sprintf("%d.%d", n>>m.sequenceBits, n&m.mask)
}

// begin returns the world in which the schedules begin.
func (m *model) begin() world {
	m.mask = 1<<m.sequenceBits - 1
	if m.end == 0 {
		m.end = 1 << 6 // world.returned has no more bits
	}
	w := world{lead: m.wall, lowest: m.wall}
	if m.reserved { // newReservedTerm
		w.limit = m.limit
		wall := m.wall
		if m.beyond(&w, wall) { // if t.ignores(wall)
			wall = int8(m.startOf(m.first)) // wall = t.start(first)
		}
		w.offset = max(wall, int8(m.startOf(m.first))-m.ahead)
		w.state = max(m.first, 1) - 1
		w.highest, w.lowest = w.offset, min(m.wall, w.offset)
		if m.mutant == beginningObeysClock {
			w.offset = max(m.wall, w.offset)
		}
		if m.mutant == limitWithinATick {
			w.limit--
		}
	} else { // newTerm
		w.offset = m.wall
		w.limit = m.end
		w.state = m.floor(m.wall+m.ahead) | m.mask
		w.highest = w.offset
	}
	if m.start != 0 || m.blank {
		w.state = m.start
	}
	w.greatest = w.state
	for i := range m.programs {
		m.enter(&w, i, 0)
	}
	return w
}

// enter puts goroutine i before its given call.
func (m *model) enter(w *world, i int, c uint8) {
	g := goroutine{call: c}
	if int(c) < len(m.programs[i]) {
		g.began = -1
		switch call := m.programs[i][c]; call {
		case callNext:
			g.pc = nextOffset
		case callClose:
			g.pc = sealSwap
			if m.mutant == closedFlag {
				g.pc = flagSet
			}
		default:
			if g.pc = rivalEntry(call); g.pc == done {
				g.pc, g.want = reserveOffset, word(call) // Fill
			}
		}
	}
	w.goroutines[i] = g
	w.goroutines[i].forget()
}

// startOf is term.start.
func (m *model) startOf(n word) int { return int(n>>m.sequenceBits) * int(m.unit) }

// apply makes one move in w and says whether it was there to be made.
func (m *model) apply(w *world, v move) bool {
	i := v.goroutine()
	switch v.kind() {
	case timePasses:
		if w.monotonic == m.until {
			return false
		}
		w.monotonic++
		return true
	case wallSteps:
		if int(w.steps) == len(m.steps) {
			return false
		}
		w.lead += m.steps[w.steps]
		w.lowest = min(w.lowest, w.lead)
		w.steps++
		return true
	case limitRises:
		return m.extend(w)
	case runs:
		if i >= len(m.programs) || !m.step(w, i) {
			return false
		}
	case contextEnds:
		if !m.cancel || i >= len(m.programs) || !m.giveUp(w, i) {
			return false
		}
	}
	w.goroutines[i].forget()
	return true
}

// extend makes the next move of Reservation.Extend and says whether there was one.
func (m *model) extend(w *world) bool {
	if int(w.raised) == 2*len(m.raises) {
		return false
	}
	before := w.limit
	switch ring := w.raised%2 == 1; {
	case ring != (m.mutant == extendNotifiesFirst): // r.changes.notify()
		m.notify(w)
	default: // r.counter.extend(limit)
		if m.raises[w.raised/2] > w.limit || m.mutant == extendStores {
			w.limit = m.raises[w.raised/2]
		}
		if !ring {
			w.rings++
		}
	}
	if w.limit < before {
		m.breaks(growing, "the limit goes from %s to %s", m.text(before), m.text(w.limit))
	}
	w.raised++
	return true
}

// notify is notifier.notify.
func (m *model) notify(w *world) {
	if w.rings > 0 {
		w.rings--
	}
	for i := range w.goroutines {
		switch w.goroutines[i].pc {
		case awaitLimit, awaitSealed, awaitChange:
			w.goroutines[i].rung = true
		}
	}
}

// floor is numbering.floor.
func (m *model) floor(now int8) word {
	return min(word(max(now, 0)/m.unit), m.end>>m.sequenceBits) << m.sequenceBits
}

// oldest is term.oldest.
func (m *model) oldest(now int8) word {
	if m.behind == 0 {
		return 0
	}
	return m.floor(max(now, 0) - (m.behind - 1))
}

// reads notes that g has read the logical clock.
func (m *model) reads(g *goroutine) {
	if m.behind > 0 {
		g.read = g.now
	}
}

// beyond says whether a clock that shows the given time is to be ignored.
func (m *model) beyond(w *world, now int8) bool {
	return w.limit < m.end && m.floor(now) >= w.limit
}

// step makes one step of goroutine i and says whether it could.
func (m *model) step(w *world, i int) bool {
	g := &w.goroutines[i]
	if g.began < 0 {
		g.began, g.after, g.reach = w.monotonic, w.greatest, w.limit
	}
	before := w.state
	if g.pc < firstRivalStep {
		m.see(event(g.pc))
	}
	switch g.pc {
	case done:
		return false

	// func (t *term) next(ctx context.Context) (types.Snowflake, error)
	case nextOffset: // t.offset.Load() of: now := t.now()
		g.offset = w.offset
		g.pc = nextMonotonic
	case nextMonotonic: // t.clock.monotonic() of the same line
		g.now = g.offset + w.monotonic
		m.reads(g)
		g.pc = lookState

	// func (t *term) look(now int64) (last uint64, ok bool)
	case lookState: // last = t.state.Load()
		g.last = w.state
		into := int(g.now) - m.startOf(g.last) // into := now - t.start(last)
		// return last, into < t.unit && into >= -t.ahead && last&t.mask != t.mask &&
		ok := into < int(m.unit) && into >= -int(m.ahead) && g.last&m.mask != m.mask
		if m.mutant == closedFlag && w.closed {
			ok = false
		}
		if g.pc = lookLimit; ok && m.loads() {
			break
		}
		if ok || m.mutant == nextTakesBeforeWaiting {
			return m.step(w, i)
		}
		g.want, g.pc = 1, reserveOffset // func (t *term) one: n, _, err := t.reserve(ctx, 1, w)
	case lookLimit: // last < t.limit.Load()
		// func (t *term) next: if last, ok := t.look(now); ok { n, ok := t.take(last)
		if g.last < w.limit || m.mutant == lookIgnoresLimit || m.mutant == nextTakesBeforeWaiting {
			g.pc = takeAdd
			break
		}
		g.want, g.pc = 1, reserveOffset // func (t *term) one: n, _, err := t.reserve(ctx, 1, w)

	// func (t *term) take(last uint64) (n uint64, ok bool)
	case takeAdd: // n = t.state.Add(1)
		w.state++
		g.n, g.taken = w.state, 1
		if m.mutant == takeWraps {
			g.n = g.last&^m.mask | g.n&m.mask
		}
		if g.n|m.mask == g.last|m.mask || m.mutant == takeIgnoresTick { // return n, n|t.mask == last|t.mask
			m.returns(w, i, g.n, 1) // func (t *term) next: if ok { return t.compose(n), nil }
			break
		}
		g.pc = settleOffset // return t.settle(ctx, n, w)

	// func (t *term) settle(ctx context.Context, n uint64, w *waited) (types.Snowflake, error)
	case settleOffset: // t.offset.Load() of: now := t.now()
		g.offset = w.offset
		g.pc = settleMonotonic
	case settleMonotonic: // t.clock.monotonic() of the same line
		g.now = g.offset + w.monotonic
		m.reads(g)
		g.pc = settleLimit
	case settleLimit: // err := refusal(t, n, t.end): limit := c.reserved()
		m.refusalLimit(w, g, g.n)
		if g.pc = settleEnded; !m.loads() {
			return m.step(w, i)
		}
	case settleEnded: // the rest of the same line: c.isSealed()
		err := m.refusalState(w, g, g.n)
		if err == errBeyond && m.mutant == settleIgnoresLimit {
			err = nil
		}
		early := m.startOf(g.n) - int(m.ahead) - int(g.now) // early := t.start(n) - t.ahead - now
		switch {
		case err == errBeyond: // case err == errBeyond
			g.back, g.pc = settleLimit, m.await() // err = t.await(ctx, n, w)
		case err != nil: // case err != nil
			m.fails(w, i, err, sealedInSettle, exhaustedInSettle)
		case g.n < m.oldest(g.now) && m.mutant != settleKeepsOld: // case n < t.oldest(now)
			m.see(behindInSettle)
			g.taken, g.want, g.pc = 0, 1, reserveOffset // return t.one(ctx, p): n, _, err := t.reserve(ctx, 1, w)
		case early <= 0: // case early <= 0
			if g.back == settleLimit {
				m.see(settledAfterWaiting)
			}
			m.returns(w, i, g.n, 1) // return t.compose(n), nil
		default: // err = t.wait(ctx, early)
			m.asked = int8(early)
			g.asleep, g.pc = w.monotonic, settleWait
		}
	case settleWait: // wait returns
		if w.monotonic == g.asleep {
			return false
		}
		g.back, g.pc = settleLimit, resyncOffset // now, err = t.accept(ctx, w): resync under Continue
		if m.mutant == settleTrustsOldTime {
			g.pc = settleLimit
		}

	// func (t *term) reserve(ctx context.Context, want uint64, w *waited) (first, n uint64, err error)
	case reserveOffset: // t.offset.Load() of: now := t.now()
		g.offset = w.offset
		g.pc = reserveMonotonic
	case reserveMonotonic: // t.clock.monotonic() of the same line
		g.now = g.offset + w.monotonic
		m.reads(g)
		g.synced, g.pc = false, reserveState // for synced := false; ;
	case reserveState: // last := t.state.Load()
		g.last = w.state
		if g.pc = reserveLimit; !m.loads() {
			return m.step(w, i)
		}
	case reserveLimit: // limit := t.limit.Load()
		g.limit = w.limit
		floor := m.floor(g.now) // floor := t.floor(now)
		// if floor >= limit && limit < t.end
		if floor >= g.limit && (g.limit < m.end || m.mutant == reserveIgnoresEnd) && m.mutant != reserveObeysClock {
			m.see(floorIgnored)
			floor = m.oldest(g.now) // floor = t.oldest(now)
			if m.mutant == reserveFreezes {
				floor = 0
			}
		}
		// if leaves := last&t.mask+want > t.mask; !synced && (leaves || floor > last)
		if leaves := g.last&m.mask+g.want > m.mask; !g.synced && (leaves || floor > g.last) {
			g.back, g.pc = reserveState, resyncOffset // now, err = t.accept(ctx, w): resync; synced = true
			break
		}
		// first = last + 1; if floor > last { first = floor + 0 }
		g.first = max(g.last+1, floor)
		if m.mutant == reserveIgnoresLast {
			g.first = floor
		}
		if m.mutant == reserveIgnoresClock {
			g.first = g.last + 1
		}
		g.pc = reserveBeyond
	case reserveBeyond: // err = refusal(t, first, t.end): limit := c.reserved()
		m.refusalLimit(w, g, g.first)
		if g.pc = reserveEnded; !m.loads() {
			return m.step(w, i)
		}
	case reserveEnded: // the rest of the same line: c.isSealed()
		// ceiling := min(t.floor(now+t.ahead)+t.mask+1, limit)
		ceiling := min(m.floor(g.now+m.ahead)+m.mask+1, g.limit)
		if m.mutant == reserveIgnoresLimit {
			ceiling = m.floor(g.now+m.ahead) + m.mask + 1
		}
		switch err := m.refusalState(w, g, g.first); {
		case err == errBeyond: // case err == errBeyond
			g.n = g.first
			g.back, g.pc = reserveState, m.await() // err = t.await(ctx, first, w)
		case err != nil: // case err != nil
			m.fails(w, i, err, sealedInReserve, exhaustedInReserve)
		case g.first < ceiling: // case first < ceiling
			g.n = min(g.want, ceiling-g.first) // n = min(want, ceiling-first)
			g.pc = reserveCAS
		default: // err = t.wait(ctx, t.start(first)-t.ahead-now)
			m.asked = int8(m.startOf(g.first) - int(m.ahead) - int(g.now))
			g.asleep, g.pc = w.monotonic, reserveWait
			if m.asked <= 0 {
				m.see(raisedMeanwhile)
				g.asleep-- // it does not wait
			}
			if m.mutant == reserveKeepsAPlace {
				w.state, g.taken = w.state+1, 1
			}
		}
	case reserveCAS: // if t.state.CompareAndSwap(last, first+n-1)
		if w.state == g.last || m.mutant == reserveStores {
			w.state = g.first + g.n - 1
			m.returns(w, i, g.first, g.n) // return first, n, nil
			break
		}
		m.see(stateCASFailed)
		g.pc = reserveOffset // now, synced = t.now(), false
	case reserveWait: // wait returns
		if w.monotonic == g.asleep {
			return false
		}
		g.back, g.pc = reserveState, resyncOffset // now, err = t.accept(ctx, w): resync; synced = true

	// func (t *term) resync() int64
	case resyncOffset: // offset := t.offset.Load()
		g.offset = w.offset
		g.pc = resyncWall
	case resyncWall: // wall of: wall, monotonic := t.clock.both()
		g.wall = w.wall()
		g.pc = resyncMonotonic
		if !m.torn {
			return m.step(w, i)
		}
	case resyncMonotonic: // monotonic of the same line
		g.monotonic = w.monotonic
		if g.pc = resyncLimit; !m.loads() {
			return m.step(w, i)
		}
	case resyncLimit: // if t.ignores(wall): limit := t.limit.Load()
		g.now = g.wall - g.monotonic // now := wall - monotonic
		if m.beyond(w, g.wall) {
			if m.mutant != resyncObeysClock {
				m.see(clockIgnored)
				g.now = g.offset
				m.synced(g) // return offset + monotonic
				break
			}
		} else {
			w.highest = max(w.highest, g.now)
		}
		if m.mutant != floorAsIfNeverTorn {
			w.lowest = min(w.lowest, g.now)
		}
		switch {
		case g.now < g.offset: // if now < offset
			g.pc = resyncState
		case g.now != g.offset: // if now != offset &&
			g.pc = resyncCAS
		default:
			m.synced(g) // return now + monotonic
		}
	case resyncState: // last := t.state.Load()
		last := w.state
		if last >= modelSealed { // return offset + monotonic
			g.now = g.offset
			m.synced(g)
			break
		}
		// now = max(now, min(offset, t.start(last+1)-monotonic))
		hold := min(g.offset, int8(m.startOf(last+1))-g.monotonic)
		if m.mutant == offsetRatchets {
			hold = int8(m.startOf(last+1)) - g.monotonic
		}
		g.now = max(g.now, hold)
		if g.now != g.offset { // if now != offset &&
			g.pc = resyncCAS
			break
		}
		m.synced(g) // return now + monotonic
	case resyncCAS: // !t.offset.CompareAndSwap(offset, now)
		if w.offset != g.offset {
			m.see(offsetCASFailed)
			g.pc = resyncReload
			break
		}
		if g.now < g.offset {
			m.see(logicalClockDropped)
		}
		w.offset = g.now
		m.synced(g) // return now + monotonic
	case resyncReload: // now = t.offset.Load()
		g.now = w.offset
		m.synced(g) // return now + monotonic

	// func (t *term) await(ctx context.Context, n uint64, w *waited) error
	case awaitListen: // changed := t.changes.listen()
		g.rung = false
		g.pc = awaitLimit
		if m.mutant == awaitListensLate {
			g.pc = awaitChange
		}
	case awaitLimit: // if t.limit.Load() > n
		if left := w.limit <= g.n && w.state+1 < w.limit; left && m.oldest(g.read) >= w.limit {
			m.see(behindInReserve)
		} else if left {
			m.breaks(serving, "%c waits for the lease to get %s; the state is %s, the limit %s", 'A'+i, m.text(g.n), m.text(w.state), m.text(w.limit))
		}
		switch {
		case w.limit > g.n: // return nil; then: now, err = t.accept(ctx, w): resync
			if g.back == settleLimit {
				m.see(settledAfterARaise)
			} else {
				m.see(reservedAfterARaise)
			}
			if g.pc = resyncOffset; m.mutant == settleTrustsAwait && g.back == settleLimit {
				m.returns(w, i, g.n, 1)
			}
		case m.mutant == awaitIgnoresSeal:
			g.pc = awaitChange
		default:
			g.pc = awaitSealed
		}
	case awaitSealed: // || t.isSealed()
		switch {
		case w.state >= modelSealed: // return nil; then as before
			if g.pc = resyncOffset; m.mutant == settleTrustsAwait && g.back == settleLimit {
				m.returns(w, i, g.n, 1)
			}
		case m.mutant == awaitListensLate:
			g.pc = awaitListen
		default:
			g.pc = awaitChange
		}
	case awaitChange: // if err := w.await(ctx, t.leaseWait, changed); err != nil
		if !g.rung {
			return false
		}
		g.pc = m.await()

	// func (r *Reservation) Seal() (end time.Time)
	case sealSwap: // r.last = r.counter.seal(): return t.state.Swap(sealed)
		g.last = w.state
		w.state = modelSealed
		w.rings++
		if g.pc = sealNotify; m.mutant == sealForgetsToNotify {
			w.rings--
			g.pc = sealLimit
		}
	case sealNotify: // r.changes.notify()
		m.notify(w)
		g.pc = sealLimit
	case sealLimit: // last := min(r.last, r.counter.reserved()-1)
		m.seals(w, i, min(g.last, w.limit-1))

	default:
		if !m.rivalStep(w, i) {
			return false
		}
	}
	if w.state != before {
		if w.state < before {
			m.breaks(growing, "the state goes from %s to %s", m.text(before), m.text(w.state))
		}
		m.checkFrugal(w)
	}
	return true
}

// loads says whether each load of the limit is a step of its own.
func (m *model) loads() bool { return m.raises != nil }

// refusalLimit and refusalState are refusal.
func (m *model) refusalLimit(w *world, g *goroutine, n word) {
	if m.mutant == refusalLoadsStateFirst {
		g.beyond = w.state >= modelSealed
		return
	}
	g.beyond = n >= w.limit // limit := t.limit.Load()
}

func (m *model) refusalState(w *world, g *goroutine, n word) error {
	closed, beyond := w.state >= modelSealed, g.beyond
	switch m.mutant {
	case refusalLoadsStateFirst:
		closed, beyond = g.beyond, n >= w.limit
	case closedFlag:
		closed = w.closed
	}
	switch {
	case closed: // case c.isSealed()
		return errSealed
	case n >= m.end: // case n >= end
		return ErrTimeExhausted
	case beyond: // case n >= limit
		return errBeyond
	}
	return nil
}

// await returns the first step of term.await.
func (m *model) await() pc {
	if m.mutant == awaitListensLate {
		return awaitLimit
	}
	return awaitListen
}

// synced is the return from resync.
func (m *model) synced(g *goroutine) {
	g.now += g.monotonic
	m.reads(g)
	g.synced, g.pc = m.mutant != resyncForever, g.back
}

// returns ends a part of a Fill, or a call, with n numbers from first on.
func (m *model) returns(w *world, i int, first, n word) {
	g := &w.goroutines[i]
	last := first + n - 1
	if last >= 64 {
		panic("the world is too large for its model: number " + m.text(last))
	}
	for k := first; k <= last; k++ {
		if w.returned&(1<<k) != 0 {
			m.breaks(unique, "%s is returned again", m.text(k))
		}
		w.returned |= 1 << k
	}
	if first <= g.after {
		m.breaks(ordered, "%s is returned by a call that began after %s had been returned", m.text(first), m.text(g.after))
	}
	if first <= g.high {
		m.breaks(ordered, "%s follows %s in one slice", m.text(first), m.text(g.high))
	}
	if last >= w.limit {
		m.breaks(limited, "%s is returned; the limit is %s", m.text(last), m.text(w.limit))
	}
	if w.sealed && last > w.last {
		m.breaks(ended, "%s is returned; the term was sealed at %s", m.text(last), m.text(w.last))
	}
	if ceiling := int(w.highest + w.monotonic + m.ahead); m.startOf(last) > ceiling {
		m.breaks(capped, "%s is returned; the ceiling is at %d", m.text(last), ceiling)
	}
	met := g.reach < m.end && m.floor(w.highest+w.monotonic) >= g.reach
	if floor := max(g.began+w.lowest, 0); first>>m.sequenceBits < word(floor/m.unit) && !met {
		m.breaks(floored, "%s is returned by a call that began at %d", m.text(first), floor)
	}
	if oldest := m.oldest(g.read); first < oldest {
		m.breaks(near, "%s is returned; the oldest that may be is %s", m.text(first), m.text(oldest))
	}
	if m.numbers != nil {
		m.numbers(first, n)
	}
	if c := m.programs[i][g.call]; c < callNext && n < g.want {
		m.see(fillSplit)
		g.high, g.want, g.taken = last, g.want-n, 0
		g.pc = reserveOffset
		return
	}
	w.greatest = max(w.greatest, last)
	m.enter(w, i, g.call+1)
}

// fails ends a call with an error of refusal: errSealed or ErrTimeExhausted.
func (m *model) fails(w *world, i int, err error, e, exhausted event) {
	if err == ErrTimeExhausted {
		e = exhausted
	}
	m.see(e)
	m.refuse(w, i, e)
}

// giveUp ends a call with its context's error if it is where it looks at it.
func (m *model) giveUp(w *world, i int) bool {
	var e event
	switch g := &w.goroutines[i]; {
	case g.pc == settleWait:
		e = cancelledInSettle
	case g.pc == reserveWait:
		e = cancelledInReserve
	case g.pc == awaitChange && g.back == settleLimit:
		e = unreservedInSettle
	case g.pc == awaitChange:
		e = unreservedInReserve
	case g.pc == reserveOffset && g.high > 0: // Generator.piece: err = ctx.Err()
		e = cancelledInFill
	default:
		return false
	}
	m.see(e)
	m.refuse(w, i, e)
	return true
}

func (m *model) refuse(w *world, i int, e event) {
	allowed := word(0)
	switch e {
	case cancelledInSettle, unreservedInSettle, sealedInSettle, exhaustedInSettle:
		allowed = 1
	}
	g := &w.goroutines[i]
	if g.taken > allowed {
		m.breaks(frugal, "a call fails with %v and has taken %d numbers", e, g.taken)
	}
	if m.refused != nil {
		m.refused(i, e)
	}
	m.enter(w, i, g.call+1)
}

// seals ends a Close.
func (m *model) seals(w *world, i int, last word) {
	if w.returned>>last > 1 {
		m.breaks(ended, "the term is sealed at %s; a number above it has been returned", m.text(last))
	}
	w.sealed, w.last = true, last
	m.enter(w, i, w.goroutines[i].call+1)
}

func (m *model) checkFrugal(w *world) {
	if w.state >= modelSealed {
		return
	}
	// One takes the last number under the ceiling or the limit, and the others pass
	// the look before that.
	nexts, callers := 0, 0
	for _, program := range m.programs {
		if slices.Contains(program, callNext) {
			nexts++
		}
		if slices.ContainsFunc(program, func(c call) bool { return c != callClose }) {
			callers++
		}
	}
	under := int(max(w.highest+w.monotonic+m.ahead, 0)/m.unit+1)<<m.sequenceBits - 1
	if int(w.state) > min(under, int(w.limit)-1)+min(nexts, callers-1) {
		m.breaks(frugal, "the state is %s; the ceiling is at %d, the limit at %s", m.text(w.state), w.highest+w.monotonic+m.ahead, m.text(w.limit))
	}
}

// forget overwrites what the goroutine will not read again, so that worlds which
// differ in nothing else are one. It writes nonsense: if it is wrong about a
// variable, claims break.
func (g *goroutine) forget() {
	const nonsense = 85
	was := *g
	*g = goroutine{
		pc: was.pc, call: was.call, began: was.began, after: was.after, reach: was.reach, taken: was.taken, high: was.high, read: was.read,
		last: nonsense, first: nonsense, n: nonsense, want: nonsense, limit: nonsense,
		now: nonsense, offset: nonsense, wall: nonsense, monotonic: nonsense,
		asleep: nonsense,
	}
	switch g.pc {
	case done:
		*g = goroutine{call: was.call}
	case nextMonotonic:
		g.offset = was.offset
	case lookState:
		g.now = was.now
	case lookLimit, takeAdd:
		g.last = was.last
	case settleOffset:
		g.n = was.n
	case settleMonotonic:
		g.n, g.offset = was.n, was.offset
	case settleLimit:
		g.n, g.now, g.back = was.n, was.now, was.back
	case settleEnded:
		g.n, g.now, g.back, g.beyond = was.n, was.now, was.back, was.beyond
	case settleWait:
		g.n, g.asleep, g.now = was.n, was.asleep, was.now
	case reserveOffset:
		g.want = was.want
	case reserveMonotonic:
		g.want, g.offset = was.want, was.offset
	case reserveState:
		g.want, g.now, g.synced = was.want, was.now, was.synced
	case reserveLimit:
		g.want, g.now, g.synced, g.last = was.want, was.now, was.synced, was.last
	case reserveBeyond:
		g.want, g.now, g.last, g.first, g.limit = was.want, was.now, was.last, was.first, was.limit
	case reserveEnded:
		g.want, g.now, g.last, g.first, g.limit, g.beyond = was.want, was.now, was.last, was.first, was.limit, was.beyond
	case reserveCAS:
		g.want, g.last, g.first, g.n = was.want, was.last, was.first, was.n
	case reserveWait:
		g.want, g.asleep = was.want, was.asleep
	case resyncOffset, resyncWall, resyncMonotonic, resyncLimit, resyncState, resyncCAS, resyncReload:
		g.back = was.back
		g.keep(was)
		switch g.pc {
		case resyncWall:
			g.offset = was.offset
		case resyncMonotonic:
			g.offset, g.wall = was.offset, was.wall
		case resyncLimit:
			g.offset, g.wall, g.monotonic = was.offset, was.wall, was.monotonic
		case resyncState, resyncCAS:
			g.offset, g.monotonic, g.now = was.offset, was.monotonic, was.now
		case resyncReload:
			g.monotonic = was.monotonic
		}
	case awaitListen, awaitLimit, awaitSealed, awaitChange:
		g.back, g.rung = was.back, was.rung
		g.keep(was)
		g.n = was.n
	case sealLimit, sealNotify:
		g.last = was.last
	default:
		g.last, g.n, g.now = was.last, was.n, was.now
	}
}

// keep keeps what the method that g.back is in reads after resync.
func (g *goroutine) keep(was goroutine) {
	if g.back == settleLimit {
		g.n = was.n
	} else {
		g.want = was.want
	}
}

// A move is what happens next in a schedule.
type move uint8

// The kinds of moves. The first three are of the clocks and the lease, and not of a
// goroutine.
const (
	timePasses  = iota // both clocks go on by one
	wallSteps          // the wall clock makes the next step of model.steps
	limitRises         // the lease makes the next raise of model.raises, or rings
	runs               // a goroutine makes a step
	contextEnds        // and its call fails
	kinds
)

func (v move) kind() int      { return int(v) / maxGoroutines }
func (v move) goroutine() int { return int(v) % maxGoroutines }

// moves are all there may be.
func moves() (all []move) {
	for v := range move(kinds * maxGoroutines) {
		if v.kind() >= runs || v.goroutine() == 0 {
			all = append(all, v)
		}
	}
	return all
}

// A finding is the result of a search.
type finding struct {
	worlds    int
	schedules float64 // how many ways there are through the worlds, from beginning to end
	longest   int     // moves in the longest one
	saw       uint64  // model.saw

	// If a claim is broken:
	broken   string
	schedule []string // a shortest one that breaks it
}

// search goes through all worlds that the model can reach, breadth first, until a
// claim is broken.
func (m model) search() finding {
	begin := m.begin()
	m.order(&begin)
	var (
		seen      = worlds.New(begin)
		parent    = []int32{-1}
		by        = []move{0}
		next      []int32           // the worlds one move after world k are
		nextBegin = []int32{0}      // next[nextBegin[k]:nextBegin[k+1]]
		alone     = map[world]int{} // for finishes
		all       = moves()
	)
	broke := func(k int, v ...move) finding {
		if m.alike {
			// The moves are by other goroutines than those of the ordered
			// worlds. Once more, without order.
			m.alike, m.broken = false, ""
			return m.search()
		}
		path := v
		for ; parent[k] >= 0; k = int(parent[k]) {
			path = append([]move{by[k]}, path...)
		}
		return finding{worlds: seen.Len(), broken: m.broken, schedule: m.tell(path)}
	}
	for k := 0; k < seen.Len(); k++ {
		for _, v := range all {
			w := *seen.At(k)
			if !m.apply(&w, v) {
				continue
			}
			if m.broken != "" {
				return broke(k, v)
			}
			m.order(&w)
			to, added := seen.Add(w)
			if added {
				parent, by = append(parent, int32(k)), append(by, v)
			}
			next = append(next, to)
		}
		nextBegin = append(nextBegin, int32(len(next)))
		m.checkLive(seen.At(k), len(next) == int(nextBegin[k]), alone)
		if m.broken != "" {
			return broke(k)
		}
	}
	f := finding{worlds: seen.Len(), saw: m.saw}
	if f.schedules, f.longest = walk(next, nextBegin); f.longest < 0 {
		f.broken = live.String() + ": a schedule without an end"
	}
	return f
}

// order sorts goroutines with the same program, if the model says that there are
// any. Worlds in which two of them have changed places are one world.
func (m *model) order(w *world) {
	if !m.alike {
		return
	}
	g := w.goroutines[:len(m.programs)]
	slices.SortFunc(g, func(a, b goroutine) int {
		return cmp.Compare(maphash.Comparable(seed, a), maphash.Comparable(seed, b))
	})
}

// seed is of the hashes of goroutines.
var seed = maphash.MakeSeed()

// checkLive checks that each call in w can finish by itself, and if w is an end,
// that it is a proper one.
func (m *model) checkLive(w *world, end bool, alone map[world]int) {
	for i := range m.programs {
		if m.broken != "" {
			return
		}
		g := &w.goroutines[i]
		if g.pc == done {
			continue
		}
		waits := (g.pc == settleWait || g.pc == reserveWait) && w.monotonic == m.until
		if end && !waits && !m.waitsForLease(w, g) {
			m.breaks(live, "%c has no step left, at %s", 'A'+i, stepNames[g.pc])
		}
		if !m.finishes(w, i, alone) {
			m.breaks(live, "%c, at %s, does not finish its call when the others are stopped", 'A'+i, stepNames[g.pc])
		}
	}
}

// waitsForLease says whether g can do nothing but wait until the limit is raised
// or it is notified.
func (m *model) waitsForLease(w *world, g *goroutine) bool {
	return g.pc == awaitChange && !g.rung && (w.rings > 0 || w.limit <= g.n && w.state < modelSealed)
}

// finishes says whether the call of goroutine i ends, or waits for the lease, when
// nothing else happens than that time passes whenever it waits.
func (m *model) finishes(w *world, i int, alone map[world]int) bool {
	solo := *m
	solo.aim = new(claim)
	*solo.aim = claims // none
	solo.until = 100
	v := *w
	v.returned, v.greatest, v.highest, v.lowest, v.steps, v.raised, v.last = 0, 0, 0, 0, 0, 0, 0
	v.goroutines = [maxGoroutines]goroutine{}
	v.goroutines[i] = w.goroutines[i]
	g := &v.goroutines[i]
	g.after, g.reach, g.taken, g.high = 0, 0, 0, min(g.high, 1)
	if g.began >= 0 {
		g.began = 0
	}
	run := len(alone)
	for call := g.call; g.pc != done && g.call == call; {
		v.returned = 0
		if r, known := alone[v]; known {
			return r != run // else it goes in a circle
		}
		alone[v] = run
		if v.monotonic == solo.until {
			return false
		}
		if !solo.apply(&v, move(runs*maxGoroutines+i)) {
			if g.pc == awaitChange {
				return solo.waitsForLease(&v, g)
			}
			v.monotonic++
		}
	}
	return true
}

// walk counts the ways from the first world to those without a next one, and the
// moves of the longest. It returns -1 moves if there is a way in a circle.
func walk(next, nextBegin []int32) (ways float64, longest int) {
	n := len(nextBegin) - 1
	into := make([]int32, n) // the edges to a world that are not walked yet
	for _, to := range next {
		into[to]++
	}
	count, length := make([]float64, n), make([]int32, n)
	count[0] = 1
	walked := 0
	for open := []int32{0}; len(open) > 0; walked++ {
		k := open[len(open)-1]
		open = open[:len(open)-1]
		successors := next[nextBegin[k]:nextBegin[k+1]]
		if len(successors) == 0 {
			ways += count[k]
			longest = max(longest, int(length[k]))
		}
		for _, to := range successors {
			count[to] += count[k]
			length[to] = max(length[to], length[k]+1)
			if into[to]--; into[to] == 0 {
				open = append(open, to)
			}
		}
	}
	if walked < n {
		return 0, -1
	}
	return ways, longest
}

// tell returns a schedule in words, one line per move.
func (m *model) tell(path []move) (lines []string) {
	teller := *m
	teller.broken = ""
	w := teller.begin()
	for k, v := range path {
		before, said := w, ""
		teller.numbers = func(first, n word) {
			said = " RETURN " + m.text(first)
			if n > 1 {
				said += ".." + m.text(first+n-1)
			}
		}
		teller.refused = func(_ int, e event) { said = " RETURN " + e.String() }
		teller.apply(&w, v)
		who := string(rune('A' + v.goroutine()))
		what := stepNames[before.goroutines[v.goroutine()].pc]
		switch v.kind() {
		case timePasses:
			who, what = "-", "time passes"
		case wallSteps:
			who, what = "-", "the wall clock steps"
		case limitRises:
			who, what = "-", "the lease: extend(limit)"
			if before.limit == w.limit {
				what = "the lease: changes.notify()"
			}
		case contextEnds:
			what = "context ends"
		}
		if before.goroutines[v.goroutine()].pc == resyncWall && !m.torn {
			what += stepNames[resyncMonotonic]
		}
		line := fmt.Sprintf("%2d %s %-48s%s", k+1, who, what, said)
		for _, word := range []struct {
			name          string
			before, after any
		}{
			{"state", m.text(before.state), m.text(w.state)},
			{"sequence", before.sequence, w.sequence},
			{"offset", before.offset, w.offset},
			{"limit", m.text(before.limit), m.text(w.limit)},
			{"monotonic", before.monotonic, w.monotonic},
			{"wall", before.wall(), w.wall()},
			{"closed", before.closed, w.closed},
		} {
			if word.before != word.after {
				line += fmt.Sprintf(" %s=%v", word.name, word.after)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func (f finding) String() string {
	return fmt.Sprintf("%s, in %d moves:\n%s", f.broken, len(f.schedule), strings.Join(f.schedule, "\n"))
}

// worldsWithoutMistake are the models of the real generator_term.go.
func worldsWithoutMistake() []model {
	var (
		one   = []call{callNext}
		two   = []call{callNext, callNext}
		three = []call{callNext, callNext, callNext}
	)
	return []model{
		{name: "2 goroutines, 3 Next each, no run-ahead", unit: 1, ahead: 0, sequenceBits: 1,
			programs: [][]call{three, three}, alike: true, wall: 2, until: 3},
		{name: "2 goroutines, 3 Next each, half ticks, after a pause, step back", unit: 2, ahead: 2, sequenceBits: 1,
			programs: [][]call{three, three}, alike: true, wall: 6, until: 2, start: 2, steps: []int8{-3}, large: true},
		{name: "2 goroutines, 3 Next each, run-ahead of 2, after a pause", unit: 1, ahead: 2, sequenceBits: 1,
			programs: [][]call{three, three}, alike: true, wall: 3, until: 2, start: 2, large: true},
		{name: "2 goroutines, 2 Next each, step back, step forward, contexts end", unit: 1, ahead: 1, sequenceBits: 1,
			programs: [][]call{two, two}, alike: true, wall: 3, until: 2, steps: []int8{-2, 3}, cancel: true},
		{name: "2 goroutines, 2 Next each, two steps back", unit: 1, ahead: 1, sequenceBits: 1,
			programs: [][]call{two, two}, alike: true, wall: 4, until: 3, start: 4, steps: []int8{-2, -2}, large: true},
		{name: "2 goroutines, 2 Next each, step to before the epoch", unit: 2, ahead: 2, sequenceBits: 1,
			programs: [][]call{two, two}, alike: true, wall: 1, until: 3, steps: []int8{-3}, cancel: true},
		{name: "2 goroutines, 2 Next each, after a pause, torn readings", unit: 1, ahead: 1, sequenceBits: 1,
			programs: [][]call{two, two}, alike: true, wall: 4, until: 2, start: 2, steps: []int8{-2}, torn: true, large: true},
		{name: "2 goroutines, 2 Next each, half ticks, torn readings", unit: 2, ahead: 2, sequenceBits: 1,
			programs: [][]call{two, two}, alike: true, wall: 3, until: 3, start: 2, torn: true},
		{name: "3 goroutines, 1 Next each, step back, step forward", unit: 1, ahead: 1, sequenceBits: 1,
			programs: [][]call{one, one, one}, alike: true, wall: 3, until: 2, steps: []int8{-2, 3}, large: true},
		{name: "3 goroutines, 2 Next each, after a pause", unit: 1, ahead: 1, sequenceBits: 1,
			programs: [][]call{two, two, two}, alike: true, wall: 3, until: 1, start: 2, large: true},
		{name: "Next and Fill, contexts end", unit: 1, ahead: 1, sequenceBits: 1,
			programs: [][]call{{callNext, 2}, {3, callNext}}, wall: 3, until: 2, start: 2, steps: []int8{-2}, cancel: true},
		{name: "3 goroutines, Next and Fill, no run-ahead", unit: 1, ahead: 0, sequenceBits: 1,
			programs: [][]call{{callNext}, {callNext}, {3}}, wall: 2, until: 2, cancel: true, large: true},
		{name: "end", unit: 1, ahead: 1, sequenceBits: 1, end: 10,
			programs: [][]call{{callNext, callNext}, {callNext, callNext}, {2}}, wall: 3, until: 1, cancel: true, start: 7, large: true},
		{name: "seal", unit: 1, ahead: 1, sequenceBits: 1,
			programs: [][]call{{callNext, callNext}, {3, callNext}, {callClose}}, wall: 2, until: 1, cancel: true, start: 3},
		{name: "limit rises, 2 goroutines, 2 Next each, contexts end", unit: 1, ahead: 1, sequenceBits: 1,
			reserved: true, first: 6, limit: 8, raises: []word{10},
			programs: [][]call{two, two}, alike: true, wall: 3, until: 1, cancel: true},
		{name: "limit rises, Next and Fill, contexts end", unit: 1, ahead: 1, sequenceBits: 1,
			reserved: true, first: 6, limit: 8, raises: []word{6, 10},
			programs: [][]call{two, {3}}, wall: 3, until: 1, cancel: true, large: true},
		{name: "limit rises, 3 goroutines, 1 Next each", unit: 1, ahead: 1, sequenceBits: 1,
			reserved: true, first: 6, limit: 8, start: 6, raises: []word{10},
			programs: [][]call{one, one, one}, alike: true, wall: 3, until: 1, large: true},
		{name: "limit rises twice, the second time above the clock", unit: 1, ahead: 1, sequenceBits: 1,
			reserved: true, first: 4, limit: 6, raises: []word{8, 14},
			programs: [][]call{two, one}, wall: 5, until: 1, large: true},
		{name: "limit rises, half ticks, torn readings", unit: 2, ahead: 2, sequenceBits: 1,
			reserved: true, first: 4, limit: 8, start: 6, raises: []word{10},
			programs: [][]call{two, one}, wall: 6, until: 1, torn: true},
		{name: "limit rises, step beyond it and back", unit: 1, ahead: 1, sequenceBits: 1,
			reserved: true, first: 6, limit: 8, raises: []word{14},
			programs: [][]call{two, {2}}, wall: 3, until: 0, steps: []int8{3, -4}, large: true},
		{name: "limit rises, seal", unit: 1, ahead: 1, sequenceBits: 1,
			reserved: true, first: 6, limit: 8, start: 6, raises: []word{10},
			programs: [][]call{one, {2}, {callClose}}, wall: 3, until: 0, cancel: true},
		{name: "limit rises to the end", unit: 1, ahead: 1, sequenceBits: 1, end: 10,
			reserved: true, first: 6, limit: 8, raises: []word{10},
			programs: [][]call{two, {3}}, wall: 3, until: 1, large: true},
		{name: "reserved ahead of the clock, limit rises", unit: 1, ahead: 1, sequenceBits: 1,
			reserved: true, first: 8, limit: 10, raises: []word{12},
			programs: [][]call{two, {3}}, wall: 2, until: 1, large: true},
		{name: "reserved for nothing, limit rises", unit: 1, ahead: 1, sequenceBits: 1,
			reserved: true, first: 8, limit: 6, raises: []word{10},
			programs: [][]call{two, {3}}, wall: 4, until: 0, cancel: true},
		{name: "limit rises late, Next and Fill", unit: 1, ahead: 1, sequenceBits: 1, behind: 2,
			reserved: true, first: 6, limit: 8, start: 6, raises: []word{14},
			programs: [][]call{two, {2}}, wall: 3, until: 3, cancel: true, large: true},
		{name: "limit rises late, half ticks", unit: 2, ahead: 2, sequenceBits: 1, behind: 1,
			reserved: true, first: 6, limit: 8, start: 6, raises: []word{12},
			programs: [][]call{one, one}, alike: true, wall: 6, until: 4, large: true},
		{name: "limit rises late", unit: 1, ahead: 1, sequenceBits: 1, behind: 1,
			reserved: true, first: 6, limit: 8, start: 6, raises: []word{12},
			programs: [][]call{one, one}, alike: true, wall: 3, until: 3},
		{name: "limit rises late, and not far enough at first", unit: 1, ahead: 1, sequenceBits: 1, behind: 1,
			reserved: true, first: 6, limit: 8, start: 6, raises: []word{10, 16},
			programs: [][]call{one, one}, alike: true, wall: 3, until: 4, large: true},
		{name: "seal, end and step back", unit: 1, ahead: 0, sequenceBits: 1, end: 8,
			programs: [][]call{{callNext, 2}, {callNext, callClose}}, wall: 2, until: 2, steps: []int8{-1}, cancel: true},
	}
}

// The searches fill maps. Collecting garbage more often would take half of their time.
func init() { debug.SetGCPercent(800) }

// Every claim holds in every interleaving. And the silence means something: each
// step and each outcome has occurred.
func TestModelHoldsInEveryInterleaving(t *testing.T) {
	var saw uint64
	worlds := 0
	for _, m := range worldsWithoutMistake() {
		if m.large && !*large {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			f := m.search()
			if f.broken != "" {
				t.Fatalf("search() = %v; want nothing broken", f)
			}
			t.Logf("%d worlds, %.2g schedules of at most %d moves", f.worlds, f.schedules, f.longest)
			saw |= f.saw
			worlds += f.worlds
		})
	}
	t.Logf("%d worlds", worlds)
	for e := event(nextOffset); e < events; e++ {
		if saw&(1<<e) == 0 {
			t.Errorf("search() of all models never saw %q; want every step and outcome", e)
		}
	}
}

// A twin is a term and its model, on the same schedule. Because real goroutines cannot be
// scheduled on demand, it uses the two places at which a test can act between the steps of a
// term: after look, and within clock.both.
type twin struct {
	*testing.T
	scale time.Duration // of one unit of the model's time

	generator *Generator
	term      *term
	step      time.Duration // of the wall clock
	interrupt func()        // called once, within clock.both after the readings
	leaseWait int8          // settings.leaseWait

	model   model
	world   world
	outcome []string // of the model's present call
}

// A callOrder is one call of a twin. Times are in units of the model's.
type callOrder struct {
	call     call
	patience int8 // its context ends after that time; if negative, never
	// raiseAfter, if not zero, is a wait of the call for the lease. After it the limit
	// is raised to raise. If that is the seal, the term is sealed.
	raiseAfter int8
	raise      word
	raiseAt    int8 // when that was, if it was
}

func newTwin(t *testing.T, random *rand.Rand) *twin {
	w := &twin{T: t}
	m := &w.model
	*m = model{
		name: t.Name(), unit: 1 + int8(random.IntN(2)), sequenceBits: 1 + word(random.IntN(2)),
		programs: [][]call{{callNext}, {callNext}, {callClose}}, wall: int8(random.IntN(5)), until: 100, cancel: true,
		end: 1 << (4 + random.IntN(3)), reserved: random.IntN(2) == 0, raises: []word{},
	}
	m.ahead = m.unit * int8(random.IntN(3))
	if m.reserved {
		ticks := m.end >> m.sequenceBits
		first := min(word(random.IntN(7)), ticks-1)
		m.first, m.limit = first<<m.sequenceBits, min(word(max(0, int(first)+random.IntN(5)-1)), ticks)<<m.sequenceBits
	}
	w.leaseWait = int8(1 + random.IntN(5))
	m.behind = int8(random.IntN(5))
	m.numbers = func(first, n word) {
		for k := range n {
			w.outcome = append(w.outcome, fmt.Sprint(first+k))
		}
	}
	m.refused = func(_ int, e event) {
		w.outcome = []string{map[event]string{
			sealedInSettle: "sealed", sealedInReserve: "sealed",
			unreservedInSettle: "unreserved", unreservedInReserve: "unreserved",
			exhaustedInSettle: "exhausted", exhaustedInReserve: "exhausted",
			cancelledInSettle: "cancelled", cancelledInReserve: "cancelled", cancelledInFill: "cancelled",
		}[e]}
	}
	w.scale = time.Millisecond / time.Duration(m.unit)

	l := Layout{
		Epoch: time.Now().Round(0).Add(-time.Duration(m.wall) * w.scale), Unit: time.Millisecond,
		TimeBits: bits.Len8(uint8(m.end)) - 1 - int(m.sequenceBits), SequenceBits: int(m.sequenceBits),
	}
	c := newClock(l.Epoch, movedBy(func() time.Duration {
		step := w.step
		if then := w.interrupt; then != nil {
			w.interrupt = nil
			then()
		}
		return step
	}))
	settings := settings{
		ahead:     int64(m.ahead) * int64(w.scale),
		leaseWait: time.Duration(w.leaseWait) * w.scale,
		behind:    math.MaxInt64,
	}
	if m.behind > 0 {
		settings.behind = time.Duration(m.behind-1) * w.scale
	}
	config := counterConfig{newNumbering(l, 0, 0), c, settings, new(notifier)}
	if m.reserved {
		w.term = newReservedTerm(config, uint64(m.first), uint64(m.first), uint64(m.limit))
	} else {
		w.term = newTerm(config, 0)
	}
	w.generator = &Generator{layout: l}
	w.generator.term.Store(w.term)
	w.world = m.begin()
	w.same("newTerm", nil, nil)
	if !m.reserved && random.IntN(2) == 0 { // after a pause
		m.start, m.blank = word(random.IntN(int(w.world.state))), true
		w.world = m.begin()
		w.term.state.Store(uint64(m.start))
	}
	return w
}

// same compares a call's outcome and all words.
func (w *twin) same(what string, got, modelled []string) {
	w.Helper()
	term := w.term
	state, limit, offset, monotonic := term.state.Load(), term.limit.Load(), term.offset.Load(), term.clock.monotonic()
	wantState := uint64(w.world.state)
	if w.world.state >= modelSealed {
		wantState = sealed + uint64(w.world.state-modelSealed)
	}
	words := state == wantState && limit == uint64(w.world.limit) &&
		offset == int64(w.world.offset)*int64(w.scale) && monotonic == int64(w.world.monotonic)*int64(w.scale)
	if !slices.Equal(got, modelled) || !words {
		w.Fatalf("%s = %v, state %d, limit %d, offset %d, monotonic %d; want the model's %v, %d, %d, %d, %d, the times in units of %d", what,
			got, state, limit, offset, monotonic, modelled, wantState, w.world.limit, w.world.offset, w.world.monotonic, w.scale)
	}
	if w.model.broken != "" {
		w.Fatalf("%s: %s", what, w.model.broken)
	}
}

// real makes a call of the generator, with interrupt between look and what
// follows, if there is one. It ends at the end of a unit of time.
func (w *twin) real(o callOrder, interrupt func()) (outcome []string) {
	ctx := context.Background()
	if o.patience >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(o.patience)*w.scale+1)
		defer cancel()
	}
	if o.raiseAt > 0 {
		at := time.Duration(o.raiseAt-int8(time.Duration(w.term.clock.monotonic())/w.scale)) * w.scale
		defer time.AfterFunc(at, func() { w.raise(o.raise) }).Stop()
	}
	ids := make([]types.Snowflake, 1)
	var err error
	switch term := w.term; {
	case o.call == callClose:
		ids[0] = w.seal()
	case o.call != callNext:
		ids = make([]types.Snowflake, o.call)
		for rest := ids; err == nil && len(rest) > 0; { // Fill, but for starting over
			var n uint64
			n, err = w.generator.piece(ctx, rest, new(waited))
			rest = rest[n:]
		}
	case interrupt == nil:
		ids[0], err = w.generator.Next(ctx)
	default: // term.next
		last, ok := term.look(term.now())
		interrupt()
		if ok {
			ids[0], err = takeAfter(ctx, term, last)
			break
		}
		var n uint64
		n, _, err = term.reserve(ctx, 1, new(waited))
		ids[0] = term.compose(n)
	}
	if rest := time.Duration(w.term.clock.monotonic()) % w.scale; rest > 0 {
		time.Sleep(w.scale - rest)
	}
	return w.tell(ids, err)
}

// seal seals the term, as Generator.Close and Reservation.Seal do.
func (w *twin) seal() (last types.Snowflake) {
	w.generator.closed.Store(true)
	n := w.term.seal()
	w.term.changes.notify()
	return types.Snowflake(min(n, w.term.reserved()-1))
}

// raise raises the limit of the term, as Reservation.Extend does, or seals it.
func (w *twin) raise(limit word) {
	if limit == modelSealed {
		w.seal()
		return
	}
	w.term.extend(uint64(limit))
	w.term.changes.notify()
}

// modelRaise raises the limit of the model, or seals it.
func (w *twin) modelRaise(limit word) {
	v := move(runs*maxGoroutines + 2) // the third goroutine is for that only
	if limit != modelSealed {
		w.model.raises = append(w.model.raises, limit)
		v = move(limitRises * maxGoroutines)
	}
	for w.model.apply(&w.world, v) {
	}
}

func (w *twin) tell(ids []types.Snowflake, err error) (outcome []string) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return []string{"cancelled"}
	case errors.Is(err, ErrReservationExhausted):
		return []string{"unreserved"}
	case errors.Is(err, ErrClosed), errors.Is(err, errSealed):
		return []string{"sealed"}
	case errors.Is(err, ErrTimeExhausted):
		return []string{"exhausted"}
	case err != nil:
		w.Fatalf("an error that is none of the four: %v", err)
	}
	for _, id := range ids {
		outcome = append(outcome, id.String()) // the layout has no worker bits
	}
	return outcome
}

// modelled makes a call of the model by goroutine i. It calls interrupt, if there
// is one, when the step at has been made for the first time, and lookLimit after
// it, if that follows.
func (w *twin) modelled(i int, o *callOrder, at pc, interrupt func()) []string {
	m, g := &w.model, &w.world.goroutines[i]
	m.programs[i][0] = o.call
	m.enter(&w.world, i, 0)
	var outcome []string
	began, waited := w.world.monotonic, int8(0) // waited is that of the real call: waited.lease
	giveUp := func(outcome string) {
		m.giveUp(&w.world, i)
		w.outcome = []string{outcome}
	}
	for g.call == 0 {
		now, ends := w.world.monotonic, int8(127)
		if o.patience >= 0 {
			ends = began + o.patience
		}
		raised := now + o.raiseAfter
		switch awaits := g.pc == awaitChange && !g.rung; {
		case awaits && waited == w.leaseWait:
			giveUp("unreserved")
		case now > ends && (g.pc == settleWait || g.pc == reserveWait || awaits || g.pc == reserveOffset && g.high > 0):
			giveUp("cancelled")
		case awaits && o.raiseAfter > 0 && o.raiseAt == 0 && raised <= ends && waited+o.raiseAfter < w.leaseWait:
			w.world.monotonic, o.raiseAt = raised, raised
			waited += o.raiseAfter
			w.modelRaise(o.raise)
		case awaits && now+w.leaseWait-waited <= ends:
			w.world.monotonic += w.leaseWait - waited
			waited = w.leaseWait
		case awaits, (g.pc == settleWait || g.pc == reserveWait) && now+m.asked > ends:
			w.world.monotonic = ends + 1
			giveUp("cancelled")
		default:
			if (g.pc == settleWait || g.pc == reserveWait) && m.asked > 0 {
				w.world.monotonic += m.asked
			}
			was, had := g.pc, len(w.outcome)
			m.apply(&w.world, move(runs*maxGoroutines+i))
			if len(w.outcome) > had {
				waited = 0 // the next part of a Fill
			}
			if (was == at || was == lookLimit && at == lookState) && g.pc != lookLimit && interrupt != nil {
				outcome, w.outcome = w.outcome, nil
				interrupt()
				interrupt, w.outcome = nil, outcome
			}
		}
	}
	outcome, w.outcome = w.outcome, nil
	if o.call == callClose {
		return []string{fmt.Sprint(w.world.last)}
	}
	return outcome
}

// The model does what term does: the same numbers, errors, waits, offsets, limits
// and states. The random schedules have calls, pauses, steps of the wall clock, and
// raises of the limit between and during calls. A whole call of another goroutine
// may come after look or after the readings of resync. Half of the terms are
// reserved.
func TestModelAndTermDoTheSame(t *testing.T) {
	schedules := uint64(1500)
	if *large {
		schedules = 4000
	}
	var saw uint64
	for seed := range schedules {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			w := newTwin(t, random)
			wallSteps := func() { // by up to 4 units, and not out of what fits a word
				by := int8(random.IntN(9)) - 4
				if at := w.world.wall() + by; at > -10 && at < 26 {
					w.world.lead += by
					w.world.lowest = min(w.world.lowest, w.world.lead)
					w.step += time.Duration(by) * w.scale
				}
			}
			limit := func() word { // some ticks above the present one, or one below it
				tick := int(w.world.limit>>w.model.sequenceBits) + random.IntN(6) - 1
				return min(word(max(0, tick))<<w.model.sequenceBits, w.model.end)
			}
			order := func() *callOrder {
				o := &callOrder{call: callNext, patience: int8(random.IntN(6)) - 3}
				if random.IntN(3) == 0 {
					o.call = call(1 + random.IntN(5))
				}
				if random.IntN(2) == 0 {
					o.raiseAfter, o.raise = int8(1+random.IntN(3)), limit()
					if random.IntN(10) == 0 {
						o.raise = modelSealed
					}
				}
				return o
			}
			for k := 0; k < 40 && w.world.monotonic < 18 && w.world.wall() < 22; k++ {
				o, other := order(), order()
				if random.IntN(20) == 0 && !w.world.sealed {
					other = &callOrder{call: callClose, patience: -1}
				}
				var got, gotOther, want, wantOther []string
				pause, raise := int8(random.IntN(3)), word(0)
				if random.IntN(4) == 0 {
					raise = limit()
				}
				then := func() {
					if w.world.sealed && other.call == callClose {
						other.call = callNext // nobody seals twice
					}
					w.modelRaise(raise)
					wantOther = w.modelled(1, other, done, nil)
					w.world.monotonic += pause
				}
				really := func() {
					w.raise(raise)
					gotOther = w.real(*other, nil)
					time.Sleep(time.Duration(pause) * w.scale)
				}
				what := fmt.Sprintf("seed %d, operation %d: %+v", seed, k, *o)
				// The model's call is first: it says when the limit is raised.
				switch operation := random.IntN(13); operation {
				case 0:
					wallSteps()
				case 1:
					d := int8(1 + random.IntN(3))
					w.world.monotonic += d
					time.Sleep(time.Duration(d) * w.scale)
				case 2, 3, 4: // another call after the readings of the first resync
					if o.call == callNext && random.IntN(2) == 0 {
						o.call = 5 // in parts, and its context may end between them
					}
					what += fmt.Sprintf(", interrupted within resync by %+v, after a raise to %d", *other, raise)
					want = w.modelled(0, o, resyncWall, then)
					w.interrupt = really
					got = w.real(*o, nil)
					w.interrupt = nil
				case 5, 6, 7: // another call after look
					o.call = callNext
					what += fmt.Sprintf(", interrupted after look by %+v, after a raise to %d", *other, raise)
					want = w.modelled(0, o, lookState, then)
					got = w.real(*o, really)
				case 8:
					what += fmt.Sprintf(", after a raise to %d", raise)
					w.modelRaise(raise)
					w.raise(raise)
					fallthrough
				default:
					want = w.modelled(0, o, done, nil)
					got = w.real(*o, nil)
				}
				w.same(what, got, want)
				w.same(what, gotOther, wantOther)
			}
			saw |= w.model.saw
		})
	}
	for e := event(nextOffset); e < events; e++ {
		// Both take a race within reserve: see TestReserveRaced.
		if saw&(1<<e) == 0 && e != stateCASFailed && e != raisedMeanwhile {
			t.Errorf("%d schedules never had %q; want every step and outcome", schedules, e)
		}
	}
}

// The one place in the model at which a twin cannot stop a term is between the
// load and the CompareAndSwap of reserve. A Fill is always a reserve, so several
// goroutines that do nothing else meet there all the time. No number may be in two
// slices, and none below those before it.
func TestReserveRacedTakesNoNumberTwice(t *testing.T) {
	const goroutines, calls = 4, 100_000
	l := Layout{Epoch: time.Now().Add(-time.Hour), Unit: time.Microsecond, TimeBits: 50, SequenceBits: 8}
	g := newTest(t, Config{Layout: l, Worker: StaticWorker(0)}, nil)
	got := make([][]types.Snowflake, goroutines)
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() {
			ids := make([]types.Snowflake, calls)
			last := types.Snowflake(0)
			for k := range ids {
				if err := g.Fill(context.Background(), ids[k:k+1]); err != nil || ids[k] <= last {
					t.Errorf("Fill(1) = %d, %v; want more than %d", ids[k], err, last)
					return
				}
				last = ids[k]
			}
			got[i] = ids
		})
	}
	all.Wait()
	requireDistinct(t, l, got...)
}
