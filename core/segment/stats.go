package segment

import "errors"

// Stats is the state of an Allocator at one moment.
type Stats struct {
	Tag      string
	Held     int64 // numbers that are fetched and not returned; a crash loses them
	Max      int64 // greatest number that was fetched; 0: none
	Last     int64 // Config.Last, the greatest number that there can be
	Left     int64 // numbers from Max to Config.Last, with the present stride
	Low      bool  // less than a tenth is left of the numbers up to Config.Last
	Fetches  uint64
	Failures uint64
	Err      error // of the last fetch; nil: it brought a range

	Databases []Database // the databases of [Spread], in its order; nil for a single store
}

// Stats returns the present state without waiting for a fetch.
func (a *Allocator) Stats() Stats {
	databases := a.databases()
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.now()
	s.Databases = databases
	return s
}

// databases returns the state of the store's databases, if it has several.
func (a *Allocator) databases() []Database {
	if several, ok := a.store.(Several); ok {
		return several.Databases(a.config.Tag)
	}
	return nil
}

// now is Stats for a caller that holds mu.
func (a *Allocator) now() Stats {
	s := a.stats
	for l := a.cur.Load(); l != nil; l = l.next.Load() {
		s.Held += l.left()
	}
	s.Last, s.Left = a.config.Last, a.config.Last
	if t := a.tail; t.size > 0 {
		s.Max = int64(t.number(t.size))
		s.Left = (a.config.Last - s.Max) / t.stride
	}
	if errors.Is(a.final, ErrExhausted) {
		s.Left = 0
	}
	s.Low = s.Left == 0 || a.config.Last-s.Max < a.config.Last/10
	return s
}

// noteDatabases logs the databases that have failed or recovered since the last fetch. Only the
// fetcher calls it.
func (f *fetcher) noteDatabases() {
	databases := f.a.databases()
	log := f.a.config.Logger.With("tag", f.a.config.Tag)
	for i, d := range databases {
		away := i < len(f.databases) && f.databases[i].Err != nil
		switch {
		case d.Err != nil && !away:
			log.Warn("segment: a database of several gives no ranges", "database", i+1, "of", len(databases), "error", d.Err)
		case d.Err == nil && away:
			log.Info("segment: a database of several gives ranges again", "database", i+1, "of", len(databases))
		}
	}
	f.databases = databases
}

// note counts a fetch and logs what operators need to know. The caller holds mu.
func (a *Allocator) note(l *link, err error) Refill {
	log := a.config.Logger.With("tag", a.config.Tag)
	r := Refill{Tag: a.config.Tag, Err: err}
	if l != nil {
		a.stats.Fetches++
		r.Count = l.size
	} else {
		a.stats.Failures++
	}
	switch before := a.stats.Err; {
	case err != nil && before == nil && l == nil: // the first of several
		log.Warn("segment: no range from the store", "error", err)
	case err == nil && before != nil:
		log.Info("segment: the store gives ranges again")
	}
	a.stats.Err = err
	now := a.now()
	if now.Low && !a.low {
		a.low = true
		log.Warn("segment: less than a tenth of the numbers is left", "left", now.Left, "last", a.config.Last)
	}
	r.Held = now.Held
	return r
}
