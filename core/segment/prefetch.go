package segment

import (
	"math"
	"time"
)

// A prefetcher decides when to fetch a range before a caller waits for it.
type prefetcher interface {
	// see reports how many numbers callers have taken since the start.
	see(now time.Time, taken int64)
	// fetched reports a range that was fetched.
	fetched(now time.Time, took time.Duration, count int64)
	// want returns how many numbers to fetch now. held numbers are left in all ranges, and step is
	// the least count.
	want(l *link, held, step int64) int64
	// more returns how many numbers may be taken before want is called again.
	more(l *link, held int64) int64
	// again returns the time after which want is called again in any case; 0: never.
	again() time.Duration
}

// none does not prefetch.
type none struct{}

func (none) see(time.Time, int64)                    {}
func (none) fetched(time.Time, time.Duration, int64) {}
func (none) want(*link, int64, int64) int64          { return 0 }
func (none) more(*link, int64) int64                 { return math.MaxInt64 }
func (none) again() time.Duration                    { return 0 }

const (
	rateWindow = 100 * time.Millisecond
	peakHalves = 15 * time.Minute
)

// byRate is the rule ByRate.
type byRate struct {
	hold float64 // seconds
	rate peak    // numbers per second
	slow peak    // seconds of a fetch

	since time.Time // beginning of the current window of the rate
	taken int64     // numbers taken by then
	idle  bool      // nothing was taken in the last window
}

func (b *byRate) see(now time.Time, taken int64) {
	n, d := float64(taken-b.taken), now.Sub(b.since)
	if b.since.IsZero() {
		d = 0
	}
	// A window that has not ended yet has at least this rate.
	b.rate.add(now, n/max(d, rateWindow).Seconds())
	b.idle = n == 0 && d >= rateWindow
	if d >= rateWindow || b.since.IsZero() {
		b.since, b.taken = now, taken
	}
}

func (b *byRate) fetched(now time.Time, took time.Duration, _ int64) {
	b.slow.add(now, took.Seconds())
}

// least returns the number of held numbers below which a range is fetched.
func (b *byRate) least() float64 {
	lasts := min(max(b.hold/2, 4*b.slow.value), b.hold)
	return b.rate.value * lasts
}

func (b *byRate) want(_ *link, held, step int64) int64 {
	if float64(held) >= b.least() {
		return 0
	}
	return max(step, int64(min(b.rate.value*b.hold, math.MaxInt32))-held, 1)
}

// more returns 0 when no number was taken, so that the next caller begins a window.
func (b *byRate) more(_ *link, held int64) int64 {
	if b.idle {
		return 0
	}
	return max(0, held-int64(b.least()))
}

func (b *byRate) again() time.Duration {
	if b.idle {
		return 0
	}
	return rateWindow
}

// A peak is the greatest of the values that were added, halved every 15 minutes.
type peak struct {
	value float64
	at    time.Time
}

func (p *peak) add(now time.Time, value float64) {
	for p.value > 0 && now.Sub(p.at) >= peakHalves {
		p.value /= 2
		p.at = p.at.Add(peakHalves)
		if p.value < 1e-9 {
			p.value = 0
		}
	}
	if value >= p.value {
		p.value, p.at = value, now
	}
}

// leaf is the rule Leaf, which follows updateSegmentFromDb of Meituan's Leaf.
type leaf struct {
	most    int64
	now     time.Time
	fetches int
	count   int64     // of the last fetch
	last    time.Time // time of the last fetch; zero before the second one
}

func (l *leaf) see(now time.Time, _ int64) { l.now = now }

func (l *leaf) fetched(now time.Time, _ time.Duration, count int64) {
	l.fetches++
	l.count = count
	if l.fetches > 1 {
		l.last = now
	}
}

// want is called with the link that callers take numbers from.
func (l *leaf) want(at *link, _, step int64) int64 {
	if l.fetches == 0 || l.more(at, 0) > 0 {
		return 0
	}
	switch lasted := l.now.Sub(l.last); {
	case l.last.IsZero():
		return step
	case lasted < 15*time.Minute && l.count*2 <= l.most:
		return l.count * 2
	case lasted >= 30*time.Minute && l.count/2 >= step:
		return l.count / 2
	}
	return l.count
}

func (l *leaf) more(at *link, _ int64) int64 {
	if at.next.Load() != nil {
		return math.MaxInt64
	}
	return max(0, at.size/10-at.taken.Load())
}

func (l *leaf) again() time.Duration { return 0 }
