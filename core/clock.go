package core

import "time"

// A clock reads the machine's two clocks: the wall clock, which shows the time of day and may
// step either way, and the monotonic clock, which measures elapsed time.
type clock struct {
	epoch time.Time        // wall times are counted from here
	start time.Time        // monotonic times are counted from here
	now   func() time.Time // if set, shows the wall clock's time instead: see Worker
}

func newClock(epoch time.Time, now func() time.Time) clock {
	return clock{epoch: epoch, start: time.Now(), now: now}
}

// monotonic returns nanoseconds since start. Next calls it, and time.Since reads one clock
// where time.Now reads two, which takes twice as long.
func (c *clock) monotonic() int64 { return int64(time.Since(c.start)) }

// both returns nanoseconds of wall time since the epoch together with the
// monotonic nanoseconds since start of the same moment.
func (c *clock) both() (wall, monotonic int64) {
	now := time.Now()
	// epoch has no monotonic reading, so this Sub compares wall times.
	wall, monotonic = int64(now.Sub(c.epoch)), int64(now.Sub(c.start))
	if c.now != nil {
		wall = int64(c.now().Sub(c.epoch))
	}
	return wall, monotonic
}
