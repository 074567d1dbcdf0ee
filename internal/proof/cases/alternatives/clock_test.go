package alternatives

import "testing"

// An answer is what a generator does when its clock has stepped back. Times are
// milliseconds. next returns the number ms·4 + sequence, or false: an error.
type answer interface{ next(now int64) (int64, bool) }

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

// forward ignores the wall clock after the start, and goes on by itself.
type forward struct{ word int64 }

func (f *forward) next(now int64) (int64, bool) {
	if f.word == 0 {
		f.word = now * perMillisecond
	}
	f.word++
	return f.word - 1, true
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

// restart is a reading at which a new process goes on with the answer.
const restart = -1

func TestWhatBreaksEachAnswerToAClockThatStepsBack(t *testing.T) {
	refuses := func() answer { return new(refuse) }
	goesOn := func() answer { return new(forward) }
	ring := func() answer { return new(ring256) }
	lowering := func() answer { return &ring256{lowers: true} }
	wrapping := func() answer { return &ring256{wraps: true} }
	const hour = 3_600_000
	leap, run := []int64{10_000}, make([]int64, 0, 1000*perMillisecond)
	for ms := int64(9_000); ms < 10_000; ms++ {
		leap = append(leap, ms)
	}
	for range cap(run) { // 1,000 logical milliseconds in 10 of the clock
		run = append(run, 10)
	}
	for _, c := range []struct {
		name     string
		new      func() answer
		readings []int64
		failed   int
		twice    bool
	}{
		{"refusing is an outage as long as the step", refuses, leap, 1000, false},
		{"one number under a clock that is an hour fast makes an hour of errors", refuses, []int64{hour, 0, 1, hour / 2, hour - 1}, 4, false},
		{"refusing forgets with the process", refuses, []int64{10, restart, 10}, 0, true},
		{"a logical clock is forgotten by a restart", goesOn, append(run, restart, 20), 0, true},
		{"above a time that was reserved in advance, nothing is repeated", goesOn, append(run, restart, 10+1000), 0, false},
		{"a ring that goes back with the clock enters a millisecond twice", lowering, []int64{1001, 1000, 1001}, 0, true},
		{"the last millisecond never decreases", ring, []int64{1001, 1000, 1001}, 0, false},
		{"a ring that counts on in a full millisecond repeats", wrapping, []int64{1000, 1000, 1000, 1000, 1001, 1000}, 0, true},
		{"a full millisecond is an error", ring, []int64{1000, 1000, 1000, 1000, 1001, 1000}, 1, false},
		{"a ring forgets after 256 milliseconds", ring, []int64{1000, 1256, 1000}, 1, false},
		{"a ring is forgotten by a restart", ring, []int64{1000, restart, 1000}, 0, true},
	} {
		a, seen, failed, twice := c.new(), map[int64]bool{}, 0, false
		for _, now := range c.readings {
			if now == restart {
				a = c.new()
				continue
			}
			id, ok := a.next(now)
			if !ok {
				failed++
				continue
			}
			twice = twice || seen[id]
			seen[id] = true
		}
		if failed != c.failed || twice != c.twice {
			t.Errorf("%s: %d calls fail, repeats: %v; want %d, %v", c.name, failed, twice, c.failed, c.twice)
		}
	}
}
