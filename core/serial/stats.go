package serial

// Stats is the state of a Counter at one moment.
type Stats struct {
	Series   string
	Period   string // the latest one whose numbers it has taken
	Held     int64  // numbers of all periods that are taken and not returned; a crash loses them
	Max      int64  // greatest number of Period that was taken; 0: none
	Last     int64  // greatest number that a period can have
	Fetches  uint64 // blocks that the store gave
	Failures uint64 // requests that it refused, or whose outcome is unknown
}

// Stats returns the present state without asking the store.
func (c *Counter) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Series, s.Period, s.Max = c.series.Name, c.blocks[0].period, c.blocks[0].last
	_, s.Last = c.series.Bounds()
	for _, b := range c.blocks {
		if b.last > 0 {
			s.Held += b.last - b.next + 1
		}
	}
	return s
}

// note counts a request.
func (c *Counter) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.stats.Failures++
	} else {
		c.stats.Fetches++
	}
}
