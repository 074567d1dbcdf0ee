package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// A scenario is a fault that must do no harm, played in a simulation. The missing numbers
// are tested on the stores themselves.
type scenario struct {
	name  string
	world func(x *setting) // nil: the usual one
	play  func(s *simulation)
}

// usual is the world of a scenario unless it says otherwise. A number is worth a
// quarter of a millisecond.
func usual() setting {
	return setting{layout: newLayout(time.Millisecond, 2, 2), window: 1600, skew: 400, faithful: true}
}

// guarding turns the loss guard on.
func guarding(x *setting) { x.guard, x.skew, x.faithful = 200, 200, false }

// single leaves one worker to choose from. greedy lets a burst take all that is reserved.
func single(x *setting) { x.only = []int64{2} }
func greedy(x *setting) { x.runAhead = 10 * time.Second }

// late lets a process return IDs of times that are long over.
func late(x *setting) { x.maxBehind = -1 }

func both(a, b func(*setting)) func(*setting) { return func(x *setting) { a(x); b(x) } }

// What the scenarios are made of.

// fatalf ends a scenario.
func (s *simulation) fatalf(format string, args ...any) {
	s.violate(refused, format, args...)
	s.t.Fatalf("%s\n%s", s.violated(), s.tail())
}

// begin starts a process on a host of its own, and waits until it has IDs.
func (s *simulation) begin() *process {
	s.t.Helper()
	p := s.addHost().start()
	s.working(p, 2*s.part(1))
	return p
}

// working waits, for d at most, until p has an ID.
func (s *simulation) working(p *process, d time.Duration) {
	s.t.Helper()
	for end := s.elapsed() + d; p.take(1) == 0; s.run(time.Millisecond) {
		if s.elapsed() > end {
			s.fatalf("process %d has no ID after %v: %v, %v", p.id, d, p.err, p.lease.Status().Err)
		}
	}
}

// keepsWorking runs for d, and wants IDs from all of ps all the time.
func (s *simulation) keepsWorking(d time.Duration, ps ...*process) {
	s.t.Helper()
	for end := s.elapsed() + d; s.elapsed() < end; s.run(s.part(40)) {
		for _, p := range ps {
			if p.take(3) != 3 {
				s.fatalf("process %d has no ID: %v", p.id, p.err)
			}
		}
	}
}

// exhausts takes all IDs that p has, and wants it to be out of them.
func (s *simulation) exhausts(p *process) {
	s.t.Helper()
	if p.take(1 << 20); !errors.Is(p.err, core.ErrReservationExhausted) {
		s.fatalf("process %d after all its IDs: %v; want %v", p.id, p.err, core.ErrReservationExhausted)
	}
}

// row returns the row that p has, or had.
func (p *process) row() leasestore.Row {
	row := p.s.store.find(p.worker())
	if row == nil {
		return leasestore.Row{}
	}
	return *row
}

func (p *process) worker() int64            { return p.lease.protocol.row.Worker }
func (p *process) limit() leasestore.Millis { return p.lease.protocol.limit }

// lastEnd returns the end of the last ID.
func (p *process) lastEnd() leasestore.Millis { _, end := p.s.where(p.last); return end }

// claimError returns why p has no row.
func (p *process) claimError() error { return p.lease.Status().Err }

// wantLost wants p to have lost n rows, the last for reason.
func (s *simulation) wantLost(p *process, n int, reason leasestore.Reason) {
	s.t.Helper()
	if len(p.losses) != n || n > 0 && p.losses[n-1].Reason != reason {
		s.fatalf("process %d has lost rows %v; want %d, the last because %q", p.id, p.losses, n, reason)
	}
}

// wantNoFree requires p's claims to fail because none of that many rows is free. The error must
// name when the first will be, which is known only while no holder renews.
func (s *simulation) wantNoFree(p *process, rows int, known bool) {
	s.t.Helper()
	var full *NoFreeWorkerError
	if err := p.claimError(); !errors.As(err, &full) || full.Rows != rows {
		s.fatalf("process %d: %v; want a NoFreeWorkerError of %d rows", p.id, err, rows)
	}
	earliest := s.store.rows[0].Until
	if s.only != nil {
		earliest = s.store.find(s.only[0]).Until
	} else {
		for _, row := range s.store.rows {
			earliest = min(earliest, row.Until)
		}
	}
	if known && full.Earliest != earliest.Time() || !known && full.Earliest.Before(s.store.clock.now().Add(-s.part(4))) || !strings.Contains(full.Error(), full.Earliest.Format(time.RFC3339Nano)) {
		s.fatalf("process %d: %v; want the earliest free at %v", p.id, full, earliest.Time())
	}
}

// wantFrom wants p's lease to begin at from or later.
func (s *simulation) wantFrom(p *process, from leasestore.Millis) {
	s.t.Helper()
	if got := p.lease.protocol.from; !p.lease.protocol.held || got < from || p.lastEnd() <= from {
		s.fatalf("process %d begins at %v, with an ID that ends at %v; want %v or later", p.id, got.Time(), p.lastEnd().Time(), from.Time())
	}
}

// lose has two holders, lets the store lose writes, and starts three more processes. To
// the store all rows seem free, so somebody claims a row that is held.
func (s *simulation) lose(loss func(replica memory)) {
	a, b := s.begin(), s.begin()
	replica := s.store.state()
	s.keepsWorking(2*s.part(1), a, b)
	a.take(1 << 20)
	loss(replica)
	c, d, e := s.addHost().start(), s.addHost().start(), s.addHost().start()
	for end := s.elapsed() + 8*s.part(1); s.elapsed() < end; s.run(s.part(50)) {
		for _, p := range s.processes {
			p.take(40)
		}
	}
	if s.counts[losses] == 0 {
		s.fatalf("no process has lost its row; want some")
	}
	working := 0
	for _, p := range []*process{a, b, c, d, e} {
		if p.lease.Status().Held {
			working++
		}
	}
	if working < 4 {
		s.fatalf("%d processes have rows; want one for each of the 4", working)
	}
}

var scenarios = []scenario{
	{name: "1 step back of 1ms, 1s, 1h", play: func(s *simulation) {
		p := s.begin()
		for _, back := range []time.Duration{time.Millisecond, time.Second, time.Hour} {
			p.clock.set(p.clock.offset-back, 0)
			s.keepsWorking(3*s.part(1), p)
		}
		s.wantLost(p, 0, "")
	}},
	{name: "2 step forward of a year, and back", play: func(s *simulation) {
		p := s.begin()
		p.clock.set(365*24*time.Hour, 0)
		s.keepsWorking(3*s.part(1), p)
		p.clock.set(0, 0)
		s.keepsWorking(5*s.part(1), p)
		if far := leasestore.MillisOf(p.clock.now()) + 2*s.window; p.lastEnd() > far || p.row().Until > far {
			s.fatalf("an ID of %v, and row %+v; want nothing beyond %v", p.lastEnd().Time(), p.row(), far.Time())
		}
	}},
	{name: "3 leap second", play: func(s *simulation) {
		p := s.begin()
		s.keepsWorking(s.part(2), p)
		p.clock.set(-time.Second, 0)
		s.store.clock.set(-time.Second, 0)
		s.keepsWorking(4*s.part(1), p)
		s.wantLost(p, 0, "")
	}},
	{name: "4 slew of 500 ppm", play: func(s *simulation) {
		a, b := s.begin(), s.begin()
		a.clock.set(0, 500)
		b.clock.set(0, -500)
		s.keepsWorking(40*s.part(1), a, b)
		s.wantLost(a, 0, "")
		s.wantLost(b, 0, "")
	}},
	{name: "5 sequence full", world: greedy, play: func(s *simulation) {
		p := s.begin()
		n := p.take(1 << 20)
		if last := p.lastEnd(); last != p.limit() || n < 4*int(s.window)/2 {
			s.fatalf("%d IDs, the last ending at %v; want all up to %v", n, last.Time(), p.limit().Time())
		}
		s.exhausts(p)
		s.run(s.part(2))
		s.working(p, 0)
	}},
	{name: "6 clock before the epoch", play: func(s *simulation) {
		h := s.addHost()
		h.clock.set(-12*365*24*time.Hour, 0)
		s.store.clock.set(-12*365*24*time.Hour, 0)
		p := h.start()
		s.run(s.part(4))
		var value *core.ValueError
		if !errors.As(p.made, &value) || value.Name != "Layout.Epoch" {
			s.fatalf("New() = %v; want an error that names Layout.Epoch", p.made)
		}
	}},
	{name: "7 end of the time bits", world: func(x *setting) {
		x.layout.TimeBits = 14
		x.layout.Epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-10 * time.Second)
	}, play: func(s *simulation) {
		p := s.begin()
		end := leasestore.MillisOf(s.layout.Exhausted())
		for p.take(5) == 5 {
			s.run(s.part(50))
		}
		if !errors.Is(p.err, core.ErrTimeExhausted) || p.lastEnd() < end-40 {
			s.fatalf("after %v: %v; want %v at %v", p.lastEnd().Time(), p.err, core.ErrTimeExhausted, end.Time())
		}
		s.run(3 * s.part(1))
		if p.take(1) != 0 || !errors.Is(p.err, core.ErrTimeExhausted) {
			s.fatalf("later: ID %d, %v; want %v", p.last, p.err, core.ErrTimeExhausted)
		}
	}},
	{name: "9 close racing Next", world: both(single, greedy), play: func(s *simulation) {
		p := s.begin()
		p.take(100)
		p.close()
		if p.gen.Close(s.t.Context()); p.captured.End < p.lastEnd() {
			s.fatalf("given back up to %v after an ID that ends at %v", p.captured.End.Time(), p.lastEnd().Time())
		}
		if _, err := p.gen.Next(s.t.Context()); !errors.Is(err, core.ErrClosed) {
			s.fatalf("Next() = %v; want %v", err, core.ErrClosed)
		}
		s.wantFrom(s.begin(), p.lastEnd())
	}},
	{name: "10 lease switch racing Next", world: greedy, play: func(s *simulation) {
		p := s.begin()
		for range 6 {
			p.take(100)
			s.store.remove(p.worker())
			for end := s.elapsed() + s.part(2); s.elapsed() < end; s.run(time.Millisecond) {
				p.take(1)
			}
			s.wantLost(p, 4-len(s.store.rows), leasestore.Gone)
			if len(s.store.rows) == 0 {
				return
			}
			s.working(p, s.part(1))
		}
		s.fatalf("there are rows left: %v", s.store.rows)
	}},
	{name: "11 suspend and resume", world: single, play: func(s *simulation) {
		p := s.begin()
		limit := p.limit()
		p.suspend(5 * s.part(1))
		s.run(5 * s.part(1))
		p.take(40) // of the old limit
		if p.limit() != limit || p.lastEnd() > limit {
			s.fatalf("on waking: limit %v, an ID that ends at %v; want the limit before, %v", p.limit().Time(), p.lastEnd().Time(), limit.Time())
		}
		s.run(s.part(8))
		s.keepsWorking(s.part(1), p)
		s.wantLost(p, 0, "")

		p.suspend(5 * s.part(1))
		s.run(4 * s.part(1))
		q := s.begin()
		s.run(s.part(1))
		s.run(s.part(8))
		s.wantLost(p, 1, leasestore.TakenOver)
		s.keepsWorking(s.part(1), q)
	}},
	{name: "12 batch over the limit", world: greedy, play: func(s *simulation) {
		p := s.begin()
		if ids := p.fill(100); len(ids) != 100 {
			s.fatalf("Fill(100) = %v", p.err)
		}
		if p.fill(4 * int(s.window) * 2); p.err == nil {
			s.fatalf("Fill() of more than is reserved = nil; want an error")
		}
		s.run(s.part(2))
		s.working(p, 0)
	}},

	{name: "13 SIGSTOP past expiry, takeover, SIGCONT", world: both(single, late), play: func(s *simulation) {
		a := s.begin()
		a.pause()
		s.run(2 * s.part(1))
		b := s.begin()
		s.keepsWorking(s.part(2), b)
		a.link.late = s.part(16)
		a.resume()
		if a.take(20) != 20 || b.take(20) != 20 { // with one worker number
			s.fatalf("no IDs: %v, %v", a.err, b.err)
		}
		s.keepsWorking(s.part(8), b)
		s.wantLost(a, 1, leasestore.TakenOver)
		if a.take(1) != 0 {
			s.fatalf("ID %d after the loss", a.last)
		}
	}},
	{name: "14 kill -9", world: single, play: func(s *simulation) {
		a := s.begin()
		s.keepsWorking(s.part(1), a)
		r := a.row().Until
		a.crash()
		b := s.addHost().start()
		s.run(s.part(4))
		s.wantNoFree(b, 1, true)
		s.working(b, s.part(1))
		s.wantFrom(b, r)
	}},
	{name: "15 crash after the first ID", world: single, play: func(s *simulation) {
		a := s.begin()
		r := a.row().Until
		a.crash()
		b := a.host.start()
		s.working(b, 2*s.part(1))
		s.wantFrom(b, r)
	}},
	{name: "16 restart in the same millisecond", world: single, play: func(s *simulation) {
		a := s.begin()
		a.take(10)
		a.close()
		b := a.host.start()
		s.until(0, func() bool { return b.gen != nil })
		b.take(10)
		s.wantFrom(b, a.lastEnd())

		r := b.row().Until
		b.crash()
		c := b.host.start()
		s.working(c, 2*s.part(1))
		s.wantFrom(c, r)
	}},
	{name: "17 crash loop", world: func(x *setting) { x.window = 16_000 }, play: func(s *simulation) {
		h := s.addHost()
		for range 4 {
			p := h.start()
			s.run(100 * time.Millisecond)
			if p.take(1) != 1 {
				s.fatalf("no ID: %v", p.err)
			}
			s.run(time.Second)
			p.crash()
		}
		p := h.start()
		s.run(s.part(100))
		s.wantNoFree(p, 4, true)
		s.working(p, s.part(1))
	}},
	{name: "18 all rows held", play: func(s *simulation) {
		all := []*process{s.begin(), s.begin(), s.begin(), s.begin()}
		p := s.addHost().start()
		s.keepsWorking(4*s.part(1), all...)
		s.wantNoFree(p, 4, false)
		all[1].close()
		s.working(p, s.part(4))
	}},
	{name: "19 reply to a renewal lost", play: func(s *simulation) {
		p := s.begin()
		limit := p.limit()
		p.link.deaf, p.link.writes = true, true
		s.keepsWorking(s.part(2), p)
		if p.limit() != limit || p.row().Until <= limit {
			s.fatalf("limit %v and row %+v; want the limit before, %d, and the row ahead", p.limit(), p.row(), limit)
		}
		p.link.deaf = false
		s.keepsWorking(2*s.part(1), p)
		s.wantLost(p, 0, "")
		if p.limit() <= limit+s.window {
			s.fatalf("limit %v; want it raised", p.limit())
		}
	}},
	{name: "20 zombie renewal after a takeover", world: single, play: func(s *simulation) {
		a := s.begin()
		a.link.late, a.link.writes = 3*s.part(1), true
		s.until(s.part(2), func() bool { return a.flight != nil && a.flight.renewal != nil })
		zombie := a.flight
		s.run(s.part(8)) // it has read the row
		a.crash()
		b := s.addHost().start()
		s.working(b, 2*s.part(1))
		before := b.row()
		s.until(3*s.part(1), func() bool { return zombie.swaps > 0 })
		if row := b.row(); row.Epoch != before.Epoch || row.Owner != before.Owner {
			s.fatalf("row %+v; want it of %+v", row, before)
		}
		s.keepsWorking(2*s.part(1), b)
		s.wantLost(b, 0, "")
	}},
	{name: "21 zombie claim", world: func(x *setting) { x.skew = x.window }, play: func(s *simulation) {
		h := s.addHost()
		h.link.late, h.link.writes = s.part(2), true
		p := h.start()
		s.run(s.part(8)) // it has read the rows
		h.link.late, h.link.cut = 0, true
		s.run(s.part(2)) // it cannot look for what it has written
		h.link.cut = false
		s.working(p, s.part(1))
		s.keepsWorking(s.part(2), p)
		burnt := 0
		for _, row := range s.store.rows {
			if row.Owner != "" && row.Worker != p.worker() {
				burnt++
				if row.Until > leasestore.MillisOf(s.store.clock.now())+s.window {
					s.fatalf("row %+v is burnt for longer than a window", row)
				}
			}
		}
		if burnt != 1 {
			s.fatalf("%d rows are burnt; want 1", burnt)
		}
		s.keepsWorking(s.part(1), p)
		all := []*process{p, s.begin(), s.begin(), s.begin()}
		s.keepsWorking(s.part(1), all...)
	}},
	{name: "22 zombie release after a re-claim", world: single, play: func(s *simulation) {
		a := s.begin()
		a.link.late = 3 * s.part(1)
		a.close()
		b := s.addHost().start()
		s.working(b, 2*s.part(1))
		s.keepsWorking(3*s.part(1), b)
		if s.counts[releases] != 0 || b.row().Owner != b.lease.protocol.row.Owner {
			s.fatalf("%d releases done, row %+v; want none, and the row of %+v", s.counts[releases], b.row(), b.lease.protocol.row)
		}
		s.wantLost(b, 0, "")
	}},
	{name: "23 store down for less than three quarters of a window", play: func(s *simulation) {
		p := s.begin()
		for _, refuses := range []bool{false, true} {
			s.until(s.part(2), func() bool { return p.flight != nil })
			s.store.down, s.store.refuses = true, refuses // before the answer
			s.keepsWorking(s.part(1)*74/100-s.part(8), p)
			s.store.down = false
			s.keepsWorking(2*s.part(1), p)
		}
		s.wantLost(p, 0, "")
	}},
	{name: "24 store down for longer than a window", play: func(s *simulation) {
		p := s.begin()
		for _, refuses := range []bool{false, true} {
			s.store.down, s.store.refuses = true, refuses
			for end := p.limit() + 1000; p.take(1) == 1; s.run(s.part(40)) {
				if now := leasestore.MillisOf(p.clock.now()); now > end || p.lastEnd() < now-1000 {
					s.fatalf("an ID of %v; want none more than 1s behind, and none 1s after %v", p.lastEnd().Time(), p.limit().Time())
				}
			}
			for range 5 {
				if p.take(1) != 0 || !errors.Is(p.err, core.ErrReservationExhausted) || leasestore.MillisOf(p.clock.now()) < p.limit() {
					s.fatalf("ID %d, %v; want %v after %v", p.last, p.err, core.ErrReservationExhausted, p.limit().Time())
				}
				s.run(s.part(1))
			}
			s.store.down = false
			s.run(s.part(2))
			s.keepsWorking(2*s.part(1), p)
		}
		s.wantLost(p, 0, "")
	}},
	{name: "25 slow store", play: func(s *simulation) {
		p, q := s.begin(), s.begin()
		worker := p.worker()
		p.link.late = s.part(3) // no answer comes in time
		s.keepsWorking(s.part(2), p, q)
		s.run(s.part(1))
		s.exhausts(p)
		if s.wantLost(p, 0, ""); p.worker() != worker {
			s.fatalf("worker %d; want %d still", p.worker(), worker)
		}
		p.link.late = s.part(5)
		s.run(s.part(1))
		s.keepsWorking(2*s.part(1), p, q)
		s.wantLost(p, 0, "")
	}},
	{name: "26 partition of one side", play: func(s *simulation) {
		a, b := s.begin(), s.begin()
		a.link.cut = true
		s.keepsWorking(s.part(2), a, b)
		s.keepsWorking(2*s.part(1), b)
		s.exhausts(a)
		a.link.cut = false
		s.run(s.part(2))
		s.keepsWorking(2*s.part(1), a, b)
		s.wantLost(b, 0, "")
	}},
	{name: "27 clean shutdown", world: single, play: func(s *simulation) {
		a := s.begin()
		s.keepsWorking(s.part(1), a)
		a.close()
		s.run(time.Millisecond)
		b := s.addHost().start()
		s.run(time.Millisecond)
		s.working(b, 0)
		s.wantFrom(b, a.lastEnd())
	}},
	{name: "28 rolling deploy that doubles", play: func(s *simulation) {
		old := []*process{s.begin(), s.begin()}
		for range 10 {
			fresh := []*process{s.begin(), s.begin()}
			s.keepsWorking(s.part(2), append(fresh, old...)...)
			for i, p := range old {
				if p.row().Owner != p.lease.protocol.row.Owner {
					s.fatalf("process %d has lost its row to %+v", p.id, p.row())
				}
				if i == 0 {
					p.close()
				} else {
					p.crash()
				}
			}
			s.run(s.part(1) + s.part(4))
			old = fresh
		}
	}},
	{name: "29 clock of the store an hour ahead or behind", play: func(s *simulation) {
		for _, by := range []time.Duration{time.Hour, -time.Hour} {
			p := s.begin()
			s.store.clock.set(by, 0)
			before := fmt.Sprint(p.row())
			q := s.addHost().start()
			s.run(s.part(16))
			if err := q.claimError(); !errors.Is(err, ErrClockSkew) || q.lease.Status().Held {
				s.fatalf("a claim with the store's clock off by %v: %v; want %v", by, err, ErrClockSkew)
			}
			if row := fmt.Sprint(p.row()); row != before {
				s.fatalf("row %v; want %v", row, before)
			}
			s.store.clock.set(0, 0)
			s.working(q, s.part(4))
		}
	}},
	{name: "30 step of the store's clock while a row is held", play: func(s *simulation) {
		const year = 365 * 24 * time.Hour
		p := s.begin()
		for _, by := range []time.Duration{time.Hour, -time.Hour, year, -year, 0} {
			s.store.clock.set(by, 0)
			s.keepsWorking(5*s.part(1), p)
			if row := p.row(); row.Until > leasestore.MillisOf(p.clock.now())+2*s.window {
				s.fatalf("row %+v, pushed after the clock of the store", row)
			}
		}
		s.wantLost(p, 0, "")
	}},
	{name: "31 a hundred first starts at once", world: func(x *setting) { x.layout = newLayout(time.Millisecond, 7, 2) }, play: func(s *simulation) {
		for range 100 {
			s.addHost().start()
		}
		s.run(s.part(100))
		seen := map[int64]bool{}
		for _, p := range s.processes {
			if p.take(1) != 1 || seen[p.worker()] {
				s.fatalf("process %d has worker %d, which another has, or no ID: %v", p.id, p.worker(), p.err)
			}
			seen[p.worker()] = true
		}
		s.keepsWorking(s.part(1), s.processes...)
	}},
	{name: "32 StatefulSet pod deleted by force, both alive", play: func(s *simulation) {
		a := s.addHost().startOnly([]int64{3})
		s.working(a, s.part(8))
		a.link.cut = true // its node is gone, it is said
		b := s.addHost().startOnly([]int64{3})
		s.keepsWorking(s.part(2), a)
		s.working(b, s.part(1))
		if a.worker() != 3 || b.worker() != 3 {
			s.fatalf("workers %d and %d; want 3", a.worker(), b.worker())
		}
		a.take(1 << 20)
		s.keepsWorking(s.part(1), b)
		a.link.cut = false
		s.keepsWorking(s.part(2), b)
		s.wantLost(a, 1, leasestore.TakenOver)
		s.wantLost(b, 0, "")
	}},
	{name: "33 memory clone", world: single, play: func(s *simulation) {
		a := s.begin()
		s.run(s.part(8))
		limit := a.row().Until
		b := a.clone()
		for end := s.elapsed() + 4*s.part(1); s.elapsed() < end; s.run(s.part(40)) {
			a.take(40)
			b.take(40)
		}
		if a.family.until != limit || s.counts[copied] == 0 || s.counts[copied] > 4*int(s.window) {
			s.fatalf("%d IDs are repeated, up to %d; want some, and none beyond %d", s.counts[copied], a.family.until, limit)
		}
		if n := len(a.losses) + len(b.losses); n != 1 || s.counts[losses] != 1 || a.lease.Status().Held == b.lease.Status().Held {
			s.fatalf("losses %v and %v; want one of the two to stop", a.losses, b.losses)
		}
		for _, lost := range append(a.losses, b.losses...) {
			if lost.Reason != leasestore.Copied {
				s.fatalf("lost because %q; want %q", lost.Reason, leasestore.Copied)
			}
		}
	}},

	{name: "34 FLUSHALL", world: both(guarding, greedy), play: func(s *simulation) {
		s.lose(func(memory) { s.store.wipe() })
	}},
	{name: "35 Redis restarted with the end of its log lost", world: both(guarding, greedy), play: func(s *simulation) {
		s.lose(func(memory) { s.store.forget(len(s.store.history) - 1) })
	}},
	{name: "36 failover to a replica that lags", world: both(guarding, greedy), play: func(s *simulation) {
		// The replica knows only a. While a is stopped, b takes over. Then the replica
		// takes over, and a goes on.
		s.only = []int64{0}
		a := s.begin()
		replica := s.store.state()
		a.pause()
		b := s.addHost().start()
		s.working(b, 4*s.part(1))
		b.take(1 << 20)
		s.store.become(replica)
		a.resume()
		for end := s.elapsed() + 6*s.part(1); s.elapsed() < end; s.run(s.part(50)) {
			a.take(100)
			b.take(100)
		}
		s.wantLost(a, 1, leasestore.Lapsed)
	}},
	{name: "37 row deleted or lowered by hand while held", world: greedy, play: func(s *simulation) {
		s.faithful = false
		p := s.begin()
		limit := p.limit()
		s.store.lower(p.worker(), limit-s.window/2)
		p.take(100)
		if s.run(s.part(2)); p.lowered == 0 || p.limit() < limit || p.row().Until < limit {
			s.fatalf("limit %d, row %+v, %d reported; want it set right, no limit below %d, and a report", p.limit(), p.row(), p.lowered, limit)
		}
		s.keepsWorking(s.part(1), p)
		s.store.remove(p.worker())
		s.run(s.part(2))
		s.wantLost(p, 1, leasestore.Gone)
		s.working(p, s.part(4))
	}},
	{name: "38 restored from a backup of an hour ago", world: both(guarding, greedy), play: func(s *simulation) {
		for range 3 {
			s.begin().crash()
		}
		s.run(2 * s.part(1))
		backup := s.store.state()
		s.run(time.Hour)
		s.lose(func(memory) { s.store.become(backup) })
	}},

	{name: "45 layout differs from the stored one", play: func(s *simulation) {
		s.begin()
		s.layout.Epoch = s.layout.Epoch.AddDate(1, 0, 0)
		p := s.addHost().start()
		s.run(s.part(2))
		var layout *LayoutError
		if err := p.claimError(); !errors.As(err, &layout) || p.gen != nil ||
			!strings.Contains(err.Error(), "1990-01-01") || !strings.Contains(err.Error(), "1991-01-01") {
			s.fatalf("a claim with another epoch: %v; want a LayoutError that shows both", err)
		}
	}},
	{name: "49 upgrade from another generator", world: greedy, play: func(s *simulation) {
		// The IDs of before are ahead of the clock. R of each row is set past them.
		newest, err := s.layout.Compose(core.Parts{Time: s.began.Add(3 * time.Second), Worker: 2, Sequence: 3})
		if err != nil {
			s.fatalf("Compose() = %v", err)
		}
		for worker := range int64(4) {
			for tick := range 3000 {
				for sequence := range int64(4) {
					id, _ := s.layout.Compose(core.Parts{Time: s.began.Add(time.Duration(tick) * time.Millisecond), Worker: worker, Sequence: sequence})
					s.ids[id] = issue{process: &process{id: -1}}
				}
			}
		}
		s.ids[newest] = issue{process: &process{id: -1}}
		s.store.create(s.space())
		for i := range s.store.rows {
			_, end := s.where(newest)
			s.store.rows[i].Until = end
			s.store.high[i] = end
		}
		s.skew = 5000
		for range 4 {
			if p := s.begin(); p.last <= newest {
				s.fatalf("ID %d; want it after %d", p.last, newest)
			}
		}
	}},
	{name: "50 step back of two hours of the one clock of store and process", world: greedy, play: func(s *simulation) {
		p := s.begin()
		step := func(by time.Duration) {
			s.store.clock.set(by, 0)
			for _, h := range s.hosts {
				h.clock.set(by, 0)
			}
		}
		step(-time.Hour + time.Minute)
		s.keepsWorking(5*s.part(1), p)
		if st := p.lease.Status(); st.Err != nil || p.lease.Check(context.Background()) != nil {
			s.fatalf("less than an hour back: %+v, %v; want it well", st, p.lease.Check(context.Background()))
		}
		step(-2 * time.Hour)
		s.run(2 * s.part(1))
		s.exhausts(p)
		s.run(2 * s.part(1))
		s.exhausts(p)
		if st := p.lease.Status(); !st.Held || !errors.Is(st.Err, ErrAhead) || st.Failures == 0 || !errors.Is(p.lease.Check(context.Background()), ErrAhead) {
			s.fatalf("two hours back: %+v, %v; want a held lease that tells", st, p.lease.Check(context.Background()))
		}
		h := s.addHost()
		h.clock = p.clock
		q := h.start() // another number is good, with the time that the clock shows
		s.working(q, s.part(4))
		s.keepsWorking(s.part(1), q)
		step(0)
		s.run(s.part(2))
		s.keepsWorking(2*s.part(1), p, q)
		s.wantLost(p, 0, "")
	}},
}

func TestNoScenarioBreaksThePromise(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			x := usual()
			if sc.world != nil {
				sc.world(&x)
			}
			simulate(t, 1, x, true, func(s *simulation) {
				if sc.play(s); s.violated() != "" {
					t.Errorf("%s\n%s", s.violated(), s.tail())
				}
			})
		})
	}
}
