package alternatives

import "testing"

// An answer is what a generator does when its clock has stepped back. Times are
// milliseconds. next returns the number ms·4 + sequence, or false: an error.
type answer interface{ next(now int64) (int64, bool) }

// playClock makes a call for each reading. It returns how many failed, and the first number
// that came twice, or -1.
func playClock(a answer, readings ...int64) (failed int, twice int64) {
	seen := map[int64]bool{}
	twice = -1
	for _, now := range readings {
		id, ok := a.next(now)
		if !ok {
			failed++
			continue
		}
		if seen[id] && twice < 0 {
			twice = id
		}
		seen[id] = true
	}
	return failed, twice
}

const perMillisecond = 4

// refuse returns an error while the clock is behind.
type refuse struct{ last, sequence int64 }

func (r *refuse) next(now int64) (int64, bool) {
	switch {
	case now < r.last, now == r.last && r.sequence == perMillisecond-1:
		return 0, false
	case now == r.last:
		r.sequence++
	default:
		r.last, r.sequence = now, 0
	}
	return r.last*perMillisecond + r.sequence, true
}

func TestRefusingIsAnOutageAsLongAsTheStep(t *testing.T) {
	readings := []int64{10_000}
	for ms := int64(9_000); ms < 10_000; ms++ { // a step back of one second, a leap second
		readings = append(readings, ms)
	}
	if failed, twice := playClock(new(refuse), readings...); failed != 1000 || twice >= 0 {
		t.Errorf("%d calls fail and %d is returned twice; want 1,000 and none", failed, twice)
	}
	// One ID under a clock that is an hour fast, and the hour after has errors.
	const hour = 3_600_000
	if failed, _ := playClock(new(refuse), hour, 0, 1, hour/2, hour-1); failed != 4 {
		t.Errorf("%d of 4 calls fail; want all", failed)
	}
	// It forgets with the process.
	restarted := new(refuse)
	before, _ := new(refuse).next(10)
	if after, _ := restarted.next(10); after != before {
		t.Errorf("after a restart the number is %d; want %d again", after, before)
	}
}

// waitTwice is Leaf's: up to 5 ms behind it waits for twice as long, looks once more, and
// gives up. wait returns the clock after a sleep.
func waitTwice(last, now int64, wait func(ms int64) int64) bool {
	if behind := last - now; behind > 0 {
		if behind > 5 {
			return false
		}
		now = wait(2 * behind)
	}
	return now >= last
}

func TestWaitingTwiceTheStepFailsOnASecondStep(t *testing.T) {
	if !waitTwice(100, 97, func(ms int64) int64 { return 97 + ms }) {
		t.Error("a step of 3 ms is an error; want a wait of 6 ms")
	}
	if waitTwice(100, 97, func(ms int64) int64 { return 97 + ms - 50 }) {
		t.Error("a second step during the wait goes unnoticed; want an error")
	}
	if waitTwice(1000, 0, func(int64) int64 { t.Error("it waits"); return 0 }) {
		t.Error("a leap second is waited for; want an error")
	}
}

// forward ignores the wall clock after the start, and goes on by itself.
type forward struct{ word int64 }

func (f *forward) next(now int64) (int64, bool) {
	if f.word == 0 {
		f.word = now * perMillisecond
	}
	f.word++
	return f.word - 1, true
}

func TestALogicalClockIsForgottenByARestart(t *testing.T) {
	seen := map[int64]bool{}
	f := new(forward)
	for range 1000 * perMillisecond { // 1,000 logical milliseconds in 10 of the clock
		id, _ := f.next(10)
		seen[id] = true
	}
	restarted := new(forward)
	if id, _ := restarted.next(20); !seen[id] {
		t.Errorf("after a restart 10 ms later the first number is %d; want one that was returned", id)
	}
	// A time reserved in advance, which a store keeps: the next process begins there.
	const reserved = 10 + 1000
	restarted = new(forward)
	if id, _ := restarted.next(max(20, reserved)); seen[id] {
		t.Errorf("above the reserved time %d is returned twice", id)
	}
}

// ring256 has the last sequence number of each of the last 256 milliseconds.
type ring256 struct {
	times, sequences [256]int64
	last             int64
	lowers, wraps    bool // the two mistakes
}

func (r *ring256) next(now int64) (int64, bool) {
	slot := now % 256
	switch {
	case now > r.last || r.times[slot] < now && !r.lowers:
		r.sequences[slot] = 0
	case r.times[slot] > now && !r.lowers:
		return 0, false // forgotten
	case r.sequences[slot] == perMillisecond-1 && !r.wraps:
		return 0, false
	default:
		r.sequences[slot] = (r.sequences[slot] + 1) % perMillisecond
	}
	r.times[slot] = now
	if now > r.last || r.lowers {
		r.last = now
	}
	return now*perMillisecond + r.sequences[slot], true
}

// The first mistake sets the last millisecond back to the clock. Then the clock enters a
// millisecond anew that it has been in.
func TestARingThatGoesBackWithTheClockEntersAMillisecondTwice(t *testing.T) {
	schedule := []int64{1001, 1000, 1001}
	if _, twice := playClock(&ring256{lowers: true}, schedule...); twice != 1001*perMillisecond {
		t.Errorf("%d is returned twice; want the first number of 1001", twice)
	}
	if failed, twice := playClock(new(ring256), schedule...); twice >= 0 || failed > 0 {
		t.Errorf("the repaired ring returns %d twice, and %d calls fail; want none", twice, failed)
	}
}

// The second counts on in a millisecond that is full.
func TestARingThatCountsOnInAFullMillisecondRepeats(t *testing.T) {
	schedule := []int64{1000, 1000, 1000, 1000, 1001, 1000}
	if _, twice := playClock(&ring256{wraps: true}, schedule...); twice != 1000*perMillisecond {
		t.Errorf("%d is returned twice; want the first number of 1000", twice)
	}
	if failed, twice := playClock(new(ring256), schedule...); twice >= 0 || failed != 1 {
		t.Errorf("the repaired ring returns %d twice, and %d calls fail; want none and 1", twice, failed)
	}
}

// 256 slots are 256 ms. Of the time before nothing is known.
func TestARingForgetsAfter256Milliseconds(t *testing.T) {
	if failed, _ := playClock(new(ring256), 1000, 1256, 1000); failed != 1 {
		t.Errorf("%d calls fail; want 1: the slot has a later millisecond", failed)
	}
	var keeps ring256
	keeps.next(1000)
	var restarted ring256
	before, _ := keeps.next(1000)
	restarted.next(1000)
	if after, _ := restarted.next(1000); after != before {
		t.Errorf("after a restart it returns %d; want %d again", after, before)
	}
}
