package leasetest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/snowkey/snowkey/core/lease"
)

// randomOperations does what holders, old holders and claimants may do. It does so in
// random order through several handles, one at a time. The pure functions say what the
// rows must be after each.
func randomOperations(s *suite) {
	const steps = 250
	s.space.Workers = 4
	s.Logf("Harness.Seed = %d repeats these operations", s.h.Seed)
	m := &model{suite: s, handles: []handle{s.a, s.b, s.open()}}

	// The first claim makes the rows.
	for worker := range s.space.Workers {
		m.rows = append(m.rows, lease.Row{Worker: worker})
	}
	c := s.newClaim()
	_, m.now = s.a.rows(s.space)
	r, err := s.a.claim(c)
	m.claimed(c, r, err)

	for range steps {
		if s.Failed() {
			s.Logf("the operations before:\n%s", m.log)
			return
		}
		if s.h.SetClock != nil && s.rng.IntN(2) == 0 {
			s.advance(s.now() + lease.Millis(s.rng.IntN(60)))
		}
		switch n := s.rng.IntN(100); {
		case n < 35:
			c := m.claim()
			r, err := m.handle().claim(c)
			m.claimed(c, r, err)
		case n < 80:
			l := m.holder()
			r := m.renewal(l)
			reply, err := m.handle().renew(r)
			m.renewed(l, r, reply, err)
		default:
			l := m.holder()
			r := m.release(l)
			m.released(r, m.handle().release(r))
		}
	}
}

// A model is the oracle of the random operations: the rows as they must be.
type model struct {
	*suite
	handles []handle
	rows    []lease.Row
	now     lease.Millis // the store's clock is not before this
	holders []*holder
	log     string
}

func (m *model) handle() handle { return m.handles[m.rng.IntN(len(m.handles))] }

func (m *model) claim() lease.Claim {
	c := m.newClaim()
	c.Window = []lease.Millis{1, 2, 20, minute}[m.rng.IntN(4)]
	c.Guard = []lease.Millis{0, 0, 1, 10}[m.rng.IntN(4)]
	switch m.rng.IntN(4) {
	case 0:
		c.Only = []int64{m.rng.Int64N(4)}
	case 1:
		c.Only = []int64{3, m.rng.Int64N(6), 1}
	}
	switch m.rng.IntN(20) {
	case 0:
		c.Now += 2 * minute
	case 1:
		c.Now -= 2 * minute
	}
	return c
}

// holder returns one of the last holders, most often the newest.
func (m *model) holder() *holder {
	back := min(m.rng.IntN(4), m.rng.IntN(12), len(m.holders)-1)
	return m.holders[len(m.holders)-1-back]
}

func (m *model) renewal(l *holder) lease.Renewal {
	r := m.suite.renewal(l)
	r.Window = []lease.Millis{1, 20, minute, hour}[m.rng.IntN(4)]
	r.Guard = []lease.Millis{0, 0, 1, 10}[m.rng.IntN(4)]
	r.Next += []lease.Millis{-hour, 0, 15, 2 * hour}[m.rng.IntN(4)]
	switch m.rng.IntN(12) {
	case 0:
		r.Now += 2 * minute
	case 1:
		r.Now -= 2 * minute
	case 2:
		r.Until -= minute // a holder whose last replies were lost
	}
	r.Known = m.known(r.Known)
	switch m.rng.IntN(20) {
	case 0:
		r.Epoch += m.rng.Int64N(3) - 1
	case 1:
		r.Worker = (r.Worker + 1) % m.space.Workers
	case 2:
		r.Owner = token()
	}
	return r
}

func (m *model) release(l *holder) lease.Release {
	r := l.giveBack(l.from + lease.Millis(m.rng.IntN(20)))
	r.Known = m.known(r.Known)
	if m.rng.IntN(20) == 0 {
		r.Epoch += m.rng.Int64N(3) - 1
	}
	return r
}

// known returns what a holder knows, or that among other nonces. Less often it returns
// other nonces only.
func (m *model) known(right []string) []string {
	switch m.rng.IntN(10) {
	case 0:
		return []string{token()}
	case 1, 2:
		return []string{token(), right[0], token()}
	}
	return right
}

// compare notes what was done. It compares the stored rows with those of the model.
func (m *model) compare(did string) {
	m.log += did + "\n"
	rows, now := m.a.rows(m.space)
	if !slices.Equal(rows, m.rows) {
		m.Errorf("after %s, Rows = %+v; want %+v", did, rows, m.rows)
	}
	m.now = now - slack
}

// inTime fails unless now is a reading of the store's clock during the last call.
func (m *model) inTime(did string, now lease.Millis) {
	if _, later := m.a.rows(m.space); now < m.now || now > later+slack {
		m.Errorf("%s: Reply.Now = %d; want the store's clock during the call, %d..%d", did, now, m.now, later+slack)
	}
}

func (m *model) claimed(c lease.Claim, r lease.Reply, err error) {
	did := fmt.Sprintf("Claim(%+v) = %+v, error %v", c, r, err)
	defer func() { m.compare(did) }()

	skewed := c.Now > m.suite.now()+minute || c.Now < m.suite.now()-minute
	switch {
	case skewed:
		if !errors.Is(err, lease.ErrClockSkew) {
			m.Errorf("%s; want a *lease.ClockSkewError", did)
		}
	case errors.Is(err, lease.ErrNoFreeWorker):
		full := m.wantFull(did, err, m.would(c))
		earliest := lease.Millis(0)
		for _, row := range m.rows {
			if c.Free(row, m.now) {
				m.Errorf("%s; want a row: %+v is free", did, row)
			}
			if at := row.Until + c.Guard; (c.Only == nil || slices.Contains(c.Only, row.Worker)) && (earliest == 0 || at < earliest) {
				earliest = at
			}
		}
		if !full.Earliest.Equal(earliest.Time()) {
			m.Errorf("%s; want NoFreeWorkerError.Earliest = %v", did, earliest.Time())
		}
	case err != nil:
		m.Errorf("%s; want a row or a *lease.NoFreeWorkerError", did)
	case r.Row.Worker < 0 || r.Row.Worker >= m.space.Workers:
		m.Errorf("%s; want a worker below %d", did, m.space.Workers)
	default:
		m.inTime(did, r.Now)
		before := m.rows[r.Row.Worker]
		want, ok := c.Apply(before, r.Now)
		if !ok {
			m.Errorf("%s; want another row: %+v is not free", did, before)
			return
		}
		if r.Row != want || r.Before != before.Until {
			m.Errorf("%s; want %+v, Before %d", did, want, before.Until)
		}
		m.rows[want.Worker] = want
		m.holders = append(m.holders, won(c, r))
	}
}

// would returns how many rows would do for c.
func (m *model) would(c lease.Claim) int {
	n := 0
	for _, row := range m.rows {
		if c.Only == nil || slices.Contains(c.Only, row.Worker) {
			n++
		}
	}
	return n
}

func (m *model) renewed(l *holder, r lease.Renewal, reply lease.Reply, err error) {
	did := fmt.Sprintf("Renew(%+v) = %+v, error %v", r, reply, err)
	defer func() { m.compare(did) }()

	before := m.rows[r.Worker]
	if err == nil {
		m.inTime(did, reply.Now)
		want, refused := r.Apply(before, reply.Now)
		if refused != nil {
			m.Errorf("%s, of %+v; want error %v", did, before, refused)
			return
		}
		if reply.Row != want || reply.Before != before.Until {
			m.Errorf("%s, of %+v; want %+v, Before %d", did, before, want, before.Until)
		}
		m.rows[r.Worker] = want
		l.confirmed(r, reply)
		return
	}
	// The guard's rule depends on the clock. The row may have lapsed until now.
	_, now := m.a.rows(m.space)
	_, refused := r.Apply(before, now+slack)
	var want *lease.LostError
	if !errors.As(refused, &want) {
		m.Errorf("%s, of %+v; want it renewed", did, before)
		return
	}
	m.wantLost(did, err, want.Worker, want.Epoch, want.Reason)
}

func (m *model) released(r lease.Release, err error) {
	did := fmt.Sprintf("Release(%+v) = error %v", r, err)
	defer func() { m.compare(did) }()

	row, refused := r.Apply(m.rows[r.Worker])
	var want *lease.LostError
	switch {
	case errors.As(refused, &want):
		m.wantLost(did, err, want.Worker, want.Epoch, want.Reason)
	case err != nil:
		m.Errorf("%s, of %+v; want it released", did, m.rows[r.Worker])
	default:
		m.rows[r.Worker] = row
	}
}
