package core

import (
	"fmt"
	"strings"
	"testing"
)

// A mutant is one mistake in the model's transcription of generator_term.go. A line is left
// out, or a simpler one stands there that looks as if it would do. The search must
// find each of them, or its silence about generator_term.go means nothing.
type mutant uint8

const (
	_ mutant = iota // none: the model is faithful
	// take returns compose(last's tick, n's sequence): a carry is cut off.
	takeWraps
	// look leaves out last < t.limit.
	lookIgnoresLimit
	// take leaves out the comparison of the ticks, and so settle.
	takeIgnoresTick
	// next takes a number and then waits for it, where it should reserve.
	nextTakesBeforeWaiting
	// settle does not read the clocks again after it has waited.
	settleTrustsOldTime
	// settle returns a number that has fallen too far behind.
	settleKeepsOld
	// reserve ignores a floor at the limit, however far it is behind.
	reserveFreezes
	// settle returns a number beyond the limit that is under the ceiling.
	settleIgnoresLimit
	// settle returns its number when await does.
	settleTrustsAwait
	// reserve: first = tick<<bits, without max(last+1, …).
	reserveIgnoresLast
	// reserve: first = last+1, without max(…, tick<<bits).
	reserveIgnoresClock
	// reserve: the ceiling is not bounded by the limit.
	reserveIgnoresLimit
	// reserve: a floor at the limit is obeyed.
	reserveObeysClock
	// reserve: a floor at the end of the layout is ignored, as one at the limit is.
	reserveIgnoresEnd
	// reserve takes a number before it waits, to keep its place.
	reserveKeepsAPlace
	// reserve: state.Store where CompareAndSwap should be.
	reserveStores
	// resync: the offset is raised to the last number.
	offsetRatchets
	// resync returns to reserve with synced unset.
	resyncForever
	// resync obeys a clock beyond the limit.
	resyncObeysClock
	// newReservedTerm obeys a clock beyond the limit.
	beginningObeysClock
	// newReservedTerm is given a limit that is not the first number of a tick.
	limitWithinATick
	// refusal loads the limit after the state, not before it: the two steps change
	// places.
	refusalLoadsStateFirst
	// await does not look at the seal.
	awaitIgnoresSeal
	// await listens after it has looked.
	awaitListensLate
	// Extend notifies before it raises the limit.
	extendNotifiesFirst
	// extend stores the limit, be it lower.
	extendStores
	// Seal does not notify.
	sealForgetsToNotify
	// seal sets a flag, which look and refusal read, and reads the last number. The
	// word stays a number.
	closedFlag
	// Not a mistake of the code: floored is claimed for torn readings too.
	floorAsIfNeverTorn
)

// The steps of code that is not ours.
const (
	articleClock = iota + firstRivalStep
	articleAdd
	articleReset
	twoWordsClock
	twoWordsTime
	twoWordsAdvance
	twoWordsReset
	twoWordsAdd
	addFirstAdd
	addFirstClock
	addFirstTime
	addFirstAdvance
	addFirstReset
	flagSet
	flagLast
)

// rivalEntry returns the first step of a call of another generator, or done.
func rivalEntry(c call) pc {
	switch c {
	case callArticle:
		return articleClock
	case callTwoWords:
		return twoWordsClock
	case callAddFirst:
		return addFirstAdd
	}
	return done
}

// rivalStep is model.step for the steps of this file. In the two-word generators
// world.state is the word of the time.
func (m *model) rivalStep(w *world, i int) bool {
	g := &w.goroutines[i]
	switch g.pc {
	// One packed word. A number of another tick than that of the clock resets it
	// to the clock, at sequence 0, unless others have changed it meanwhile.
	case articleClock:
		g.now = w.wall() / m.unit
		g.pc = articleAdd
	case articleAdd:
		w.state++
		g.n = w.state
		if g.n>>m.sequenceBits == word(g.now) {
			m.returns(w, i, g.n, 1)
			break
		}
		g.pc = articleReset
	case articleReset:
		if w.state != g.n {
			g.pc = articleClock
			break
		}
		w.state = word(g.now) << m.sequenceBits
		m.returns(w, i, w.state, 1)

	// Two words. Whoever advances the time resets the sequence.
	case twoWordsClock:
		g.now = w.wall() / m.unit
		g.pc = twoWordsTime
	case twoWordsTime:
		g.last = w.state
		g.pc = twoWordsAdd
		if word(g.now) > g.last {
			g.pc = twoWordsAdvance
		}
	case twoWordsAdvance:
		g.pc = twoWordsAdd
		if w.state == g.last {
			w.state = word(g.now)
			g.pc = twoWordsReset
		}
	case twoWordsReset:
		w.sequence = 0
		g.pc = twoWordsAdd
	case twoWordsAdd:
		w.sequence++
		m.returns(w, i, word(g.now)<<m.sequenceBits|w.sequence&m.mask, 1)

	// Two words, with the stores after the Add.
	case addFirstAdd:
		w.sequence++
		g.n = w.sequence
		g.pc = addFirstClock
	case addFirstClock:
		g.now = w.wall() / m.unit
		g.pc = addFirstTime
	case addFirstTime:
		if word(g.now) <= w.state {
			m.returns(w, i, word(g.now)<<m.sequenceBits|g.n&m.mask, 1)
			break
		}
		g.pc = addFirstAdvance
	case addFirstAdvance:
		w.state = word(g.now)
		g.pc = addFirstReset
	case addFirstReset:
		w.sequence = 0
		m.returns(w, i, word(g.now)<<m.sequenceBits, 1)

	// seal with a flag.
	case flagSet:
		w.closed = true
		g.pc = flagLast
	case flagLast:
		m.seals(w, i, w.state)
	default:
		return false
	}
	return true
}

// mustBreak searches for a schedule that breaks claim c, and expects the shortest
// to have so many moves.
func mustBreak(t *testing.T, m model, c claim, moves int) {
	t.Helper()
	m.aim = &c
	f := m.search()
	if !strings.HasPrefix(f.broken, c.String()+": ") || len(f.schedule) != moves {
		t.Errorf("search(%s) = %v\nwant %v broken, in %d moves", m.name, f, c, moves)
		return
	}
	t.Logf("%d worlds searched: %v", f.worlds, f)
}

// The well-known generator that adds and then resets repeats a number after ten
// moves, by a caller that was delayed between its clock and its Add. Its other
// two mistakes need one caller only.
func TestModelFindsTheRepeatsOfAddThenReset(t *testing.T) {
	calls := []call{callArticle, callArticle, callArticle, callArticle}
	m := model{name: "add, then reset", unit: 1, sequenceBits: 2, blank: true, wall: 1, until: 1}

	m.programs = [][]call{calls[:2], calls[:2]}
	mustBreak(t, m, unique, 10)

	// The schedule of that length in which the delayed caller itself repeats.
	a, b, clock := move(runs*maxGoroutines), move(runs*maxGoroutines+1), move(timePasses)
	replay := m
	w := replay.begin()
	for k, v := range []move{a, a, a, a, clock, b, b, b, a, a} {
		if !replay.apply(&w, v) || strings.HasPrefix(replay.broken, unique.String()) != (k == 9) {
			t.Fatalf("move %d breaks %q; want a repeat with the 10th", k+1, replay.broken)
		}
	}

	overflow := m
	overflow.programs, overflow.sequenceBits, overflow.until = [][]call{calls}, 1, 0
	mustBreak(t, overflow, unique, 8)

	back := m
	back.programs, back.steps = [][]call{calls}, []int8{-1}
	mustBreak(t, back, unique, 11)
}

// Between the store of the time and the store of the sequence there is always
// room for another's Add.
func TestModelFindsTheRepeatsOfTwoWords(t *testing.T) {
	m := model{unit: 1, sequenceBits: 2, blank: true, wall: 1, until: 1}

	m.name, m.programs = "two words", [][]call{{callTwoWords}, {callTwoWords}}
	mustBreak(t, m, unique, 8)

	m.name, m.programs = "two words, add first", [][]call{{callAddFirst}, {callAddFirst}}
	mustBreak(t, m, unique, 10)
}

// One line less, and there is a schedule that breaks what the line is for. The
// same world without the mistake breaks nothing.
func TestModelFindsEveryMutant(t *testing.T) {
	next := func(n int) (calls []call) {
		for range n {
			calls = append(calls, callNext)
		}
		return calls
	}
	// Wherever they start, the clock is in tick 3 and the ceiling is tick 4. After
	// a pause the state is below the clock, and the first number is there at once.
	pause := model{unit: 1, ahead: 1, sequenceBits: 1, programs: [][]call{next(2), next(2)}, wall: 3, until: 1, start: 2}
	pauseOfOne := pause
	pauseOfOne.programs = [][]call{next(4)}
	closing := pause
	closing.programs = [][]call{next(2), {callClose}}
	// One number is left under the ceiling,
	burst := pause
	burst.start = 8
	cancelling := burst
	cancelling.programs, cancelling.cancel = [][]call{next(4)}, true
	// or none, as at the beginning of a term.
	back := pauseOfOne
	back.start, back.steps = 9, []int8{-2}
	waiting := back
	waiting.programs, waiting.cancel = [][]call{next(1), next(1)}, true
	// The last two numbers are left of all.
	end := pause
	end.start, end.end = 7, 10
	fill := end
	fill.ahead, fill.programs = 2, [][]call{{3}}
	past := end
	past.start, past.wall = 6, 6
	// Tick 3 is reserved, and then tick 4. One number is left in tick 3,
	lease := pause
	lease.start, lease.reserved, lease.first, lease.limit, lease.raises = 6, true, 6, 8, []word{10}
	lease.programs, lease.until = [][]call{next(2), next(1)}, 0
	late := lease
	late.ahead, late.raises = 0, []word{12}
	leaseFill := lease
	leaseFill.start, leaseFill.programs = 0, [][]call{{3}}
	lowering := lease
	lowering.raises = []word{10, 8}
	// or none, and one waits for more.
	used := lease
	used.programs, used.start = [][]call{next(1), {callClose}}, 7
	wanting := lease
	wanting.programs, wanting.start, wanting.cancel = [][]call{next(2)}, 7, true
	// Two take the last number, and one of them gets the first of tick 4.
	race := lease
	race.programs = [][]call{next(1), next(1), {callClose}}
	// And the lease is renewed late.
	lateRace := race
	lateRace.programs, lateRace.alike, lateRace.until, lateRace.behind, lateRace.raises = race.programs[:2], true, 3, 2, []word{14}
	lateNext := lease
	lateNext.programs, lateNext.until, lateNext.behind, lateNext.raises = [][]call{next(1)}, 3, 2, nil
	// The clock comes, or steps, or is from the beginning, beyond the limit.
	beyond := lease
	beyond.wall, beyond.until, beyond.programs = 5, 1, [][]call{next(1)}
	far := leaseFill
	far.limit, far.raises, far.programs, far.steps = 12, nil, [][]call{{6}}, []int8{4}
	farFromTheBeginning := far
	farFromTheBeginning.wall, farFromTheBeginning.steps = 7, nil

	sound := map[string]bool{} // worlds that were searched without their mistake
	for _, c := range []struct {
		name   string
		world  model
		mutant mutant
		breaks claim
		moves  int
	}{
		{"a reserve that stores", pause, reserveStores, unique, 22},
		{"a reserve that stores, and lowers the state", pause, reserveStores, growing, 23},
		{"a reserve that lowers the state to the clock", pauseOfOne, reserveIgnoresLast, unique, 26},
		{"a reserve that lowers the state to the clock: growth", pauseOfOne, reserveIgnoresLast, growing, 26},
		{"a reserve that lowers the state to the clock: order", pauseOfOne, reserveIgnoresLast, ordered, 26},
		{"a take that cuts off the carry", pause, takeWraps, unique, 19},
		{"a look that does not look at the limit", end, lookIgnoresLimit, limited, 24},
		{"a reserve that does not look at the limit", fill, reserveIgnoresLimit, limited, 8},
		{"a seal beside the word", closing, closedFlag, ended, 13},
		{"a take that does not look at the ceiling", burst, takeIgnoresTick, capped, 8},
		{"an offset raised to the last number", back, offsetRatchets, capped, 14},
		{"a reserve that does not look at the clock", pauseOfOne, reserveIgnoresClock, floored, 11},
		{"a next that takes before it waits", cancelling, nextTakesBeforeWaiting, frugal, 8},
		{"a reserve that keeps a place while it waits", waiting, reserveKeepsAPlace, frugal, 11},
		{"a settle that does not read the clock again", burst, settleTrustsOldTime, live, 7},
		{"a reserve that re-reads the wall clock for ever", pauseOfOne, resyncForever, live, 0},
		{"a reserve that goes on after the end", past, reserveIgnoresEnd, floored, 8},

		{"a look that does not look at the limit of a lease", lease, lookIgnoresLimit, limited, 15},
		{"a take that does not compare the tick", lease, takeIgnoresTick, limited, 10},
		{"a settle that does not look at the limit", lease, settleIgnoresLimit, limited, 14},
		{"a reserve that does not look at the limit of a lease", leaseFill, reserveIgnoresLimit, limited, 12},
		{"a limit that is not the first number of a tick", lease, limitWithinATick, limited, 5},
		{"a next that takes before it waits for a lease", wanting, nextTakesBeforeWaiting, frugal, 4},
		{"an extend that stores", lowering, extendStores, growing, 3},
		{"a settle that trusts a raise", late, settleTrustsAwait, capped, 17},
		{"a settle that trusts a seal", race, settleTrustsAwait, ended, 20},
		{"a settle that returns a number however far it is behind", lateRace, settleKeepsOld, near, 18},
		{"a reserve that uses up what is left", lateNext, reserveFreezes, near, 10},
		{"a refusal that looks at the seal first", race, refusalLoadsStateFirst, ended, 18},
		{"a clock beyond the limit that is obeyed by reserve", beyond, reserveObeysClock, serving, 17},
		{"a clock beyond the limit that is obeyed by resync", far, resyncObeysClock, capped, 10},
		{"a clock beyond the limit that is obeyed at the beginning", farFromTheBeginning, beginningObeysClock, capped, 8},
		{"an await that does not look at the seal", used, awaitIgnoresSeal, live, 16},
		{"an await that listens after it has looked", used, awaitListensLate, live, 17},
		{"an extend that notifies before the raise", used, extendNotifiesFirst, live, 18},
		{"a seal that does not notify", used, sealForgetsToNotify, live, 18},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.world
			if world := fmt.Sprintf("%+v", m); !sound[world] {
				if f := m.search(); f.broken != "" {
					t.Errorf("search(the world of %s, without it) = %v; want nothing broken", c.name, f)
				}
				sound[world] = true
			}
			m.name, m.mutant = c.name, c.mutant
			mustBreak(t, m, c.breaks, c.moves)
		})
	}
}

// clock.both reads one clock after the other. A goroutine that is stopped between
// them sets the logical clock low, by the time of the stop. Until the next resync,
// numbers may be of a tick that ended before their call began. That is why floored
// makes an allowance for it. See the comment of term.resync.
func TestModelATornReadingLowersTheFloorByTheTear(t *testing.T) {
	m := model{name: "torn reading", unit: 1, ahead: 1, sequenceBits: 1, programs: [][]call{{callNext, callNext}},
		wall: 3, until: 1, start: 2, torn: true}
	if f := m.search(); f.broken != "" {
		t.Errorf("search(%s) = %v; want nothing broken", m.name, f)
	}
	m.mutant = floorAsIfNeverTorn
	mustBreak(t, m, floored, 19)
}
