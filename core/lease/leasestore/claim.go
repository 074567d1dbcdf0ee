package leasestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Claim asks for a free row.
type Claim struct {
	Space Space
	Only  []int64 // the worker numbers that will do; nil: all, empty: none

	Owner string // a fresh token, 32 hexadecimal digits
	Nonce string // likewise

	// Holder is a name for people, of at most 64 printable characters of ASCII, which the row
	// carries while it is held.
	Holder string

	Window Millis // how much time to reserve; with Guard, the same for all leases of a namespace
	Now    Millis // the clock of the claimant when it asked
	Skew   Millis // how far the clocks of claimant and store may be apart
	Guard  Millis // D of the loss guard; 0: off

	// Retire takes a row that was never claimed or fenced out of use for good: see
	// lease.Retire. It is never renewed, and Window does not matter.
	Retire bool
}

// Check returns a *ClockSkewError if the store's clock, now, is too far from the claimant's, a
// *NoFreeWorkerError if no worker number of the space suits the claim, and a *core.ValueError if
// Holder is out of range. A store calls it before it writes anything.
func (c *Claim) Check(now Millis) error {
	if !printable(c.Holder, maxHolder) {
		return invalid("Claim.Holder", cut(c.Holder), wantHolder)
	}
	if c.Only != nil && !slices.ContainsFunc(c.Only, c.Space.has) {
		return c.noFreeWorker(nil, now)
	}
	if apart := now - c.Now; apart > c.Skew || apart < -c.Skew {
		return &ClockSkewError{Store: now.Time(), Local: c.Now.Time(), Max: c.Skew.Duration()}
	}
	return nil
}

// Free reports whether row may be claimed when the store's clock shows now. A retired row never
// may, and for Retire only a row that is as it was made.
//
// A row that was released is free at once, although its last ID may be ahead of the clock by the
// skew, and under the guard also by what From adds: no lease issues IDs of that row any more, and
// the next range begins where the last one ended.
func (c *Claim) Free(row Row, now Millis) bool {
	return len(c.eligible([]Row{row})) > 0 && c.over(row, now)
}

// eligible returns the rows whose numbers are in the space and suit the claim. Both lists may
// have 65,536 entries while the store holds a lock, so it makes one pass over each. Only for a
// few rows does it search Only for each of them, because making a set takes as long as some
// hundred searches.
func (c *Claim) eligible(rows []Row) []Row {
	suits := func(worker int64) bool { return slices.Contains(c.Only, worker) }
	if len(rows) > 100 {
		only := make(map[int64]bool, len(c.Only))
		for _, worker := range c.Only {
			only[worker] = true
		}
		suits = func(worker int64) bool { return only[worker] }
	}
	var eligible []Row
	for _, row := range rows {
		if c.Space.has(row.Worker) && (c.Only == nil || suits(row.Worker)) {
			eligible = append(eligible, row)
		}
	}
	return eligible
}

// over reports whether the time reserved in row is over by the store's clock, now.
func (c *Claim) over(row Row, now Millis) bool {
	if c.Retire {
		return row == Row{Worker: row.Worker}
	}
	if row.Owner != "" {
		return row.Until+c.Guard <= now
	}
	return row.Until <= now+c.released()
}

// released is how far ahead of the store's clock the limit of a row may be that was released.
func (c *Claim) released() Millis {
	if c.Guard > 0 {
		return c.Skew + c.Window + c.Guard
	}
	return c.Skew
}

// Choose returns one of the free rows among rows, at random. In a fixed order, all
// claimants would meet at the same row. intN returns a random number below n, as
// [math/rand/v2.IntN]. If none is free Choose returns a *NoFreeWorkerError.
//
// If one of rows has the claim's token, the claim was done before and has reached the
// store again. It must not take a second row. Choose then returns an error that says so.
func (c *Claim) Choose(rows []Row, now Millis, intN func(n int) int) (Row, error) {
	var chosen Row
	free := 0
	for _, row := range c.eligible(rows) {
		if row.Owner != "" && row.Owner == c.Owner {
			return Row{}, fmt.Errorf("lease: this claim was done before, of worker %d: claim with a fresh token", row.Worker)
		}
		if c.over(row, now) {
			if free++; intN(free) == 0 {
				chosen = row
			}
		}
	}
	if free == 0 {
		return Row{}, c.noFreeWorker(rows, now)
	}
	return chosen, nil
}

// noFreeWorker returns the error that says why none of rows is free.
func (c *Claim) noFreeWorker(rows []Row, now Millis) *NoFreeWorkerError {
	e := &NoFreeWorkerError{Namespace: c.Space.Namespace, Datacenter: c.Space.Datacenter}
	var earliest Millis
	for _, row := range c.eligible(rows) {
		if row.Retired() {
			e.Retired++
			continue
		}
		e.Rows++
		at := row.Until + c.Guard
		if at > now+c.Window+MaxAhead+c.Guard {
			e.Ahead = append(e.Ahead, row.Worker)
		}
		if e.Rows == 1 || at < earliest {
			earliest = at
		}
	}
	if e.Rows > 0 && !c.Retire {
		e.Earliest = earliest.Time()
		e.Wait = max(0, earliest-now).Duration()
	}
	return e
}

// Apply returns row as the claim leaves it, or false if the row is not free.
func (c *Claim) Apply(row Row, now Millis) (Row, bool) {
	if !c.Free(row, now) {
		return Row{}, false
	}
	from := max(row.Until, now)
	if c.Guard > 0 {
		from = min(now, c.Now) // never further than a window beyond either clock
	}
	until := max(row.Until, from+c.Window)
	if c.Retire {
		until = Retired + max(now, c.Now)
	}
	next := row.next(c.Nonce, until)
	next.Owner, next.Holder = c.Owner, c.Holder
	return next, true
}

// From returns the first moment that the claim has won, from the store's reply. An
// earlier holder of the row may have used everything before it.
//
// Under the guard it is later than all that an earlier holder can have reserved. That
// holds even if the store has forgotten the reservation. It is then also later than the
// limit that the claim has written. IDs begin after a renewal, a little more than Guard
// later.
func (c *Claim) From(r Reply) Millis {
	if c.Guard > 0 {
		return max(r.Before, max(r.Now, c.Now)+c.Window+c.Guard)
	}
	return max(r.Before, r.Now)
}

// Candidates returns the worker numbers that will do, each once, in an order drawn from the token. For
// 65,536 of them that takes about a millisecond.
func (c *Claim) Candidates() []int64 {
	all := c.workers()
	if all == nil {
		all = make([]int64, c.Space.Workers)
		for i := range all {
			all[i] = int64(i)
		}
	}
	c.random().Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// random returns random numbers that are the same for each claim with this token. A store
// that takes the first free row in their order finds the row of a claim that has reached it
// before, unless one ahead of that has become free meanwhile: see [Claim.Choose].
func (c *Claim) random() *rand.Rand { return randomOf(c.Owner) }

// Claim implements [Store]. The first claim in a space makes its rows. Claim passes over damaged
// rows and names one if no other is free. If the outcome of its write is unknown, it tries to
// determine it.
func (s *RegisterStore) Claim(ctx context.Context, c Claim) (Reply, error) {
	if err := c.Space.Validate(); err != nil {
		return Reply{}, err
	}
	// This does not compare clocks yet, but a claim that can take no row must not make any.
	if err := c.Check(c.Now); err != nil {
		return Reply{}, err
	}
	began := time.Now()
	select {
	case s.claims <- struct{}{}:
		defer func() { <-s.claims }()
	case <-ctx.Done():
		return Reply{}, fmt.Errorf("lease: %d other claims are under way: %w", maxClaims, ctx.Err())
	}
	o := claiming{s.begin(ctx, c.Space), s, &c, c.workers()}
	o.began = began // when the claimant's clock was read
	v, err := o.find()
	for all, lost := false, 0; err == nil; {
		if made, makeErr := o.made(v); makeErr != nil {
			return Reply{}, makeErr
		} else if !made {
			v, err = o.find()
			continue
		}
		row, none := c.Choose(v.rows(), v.Now, c.random().IntN)
		switch full := errors.Is(none, ErrNoFreeWorker); {
		case none == nil:
			reply, done, err := o.take(v, row)
			if done || err != nil {
				return reply, err
			}
			// Another claim was faster. As each turn of this loop is the success of another
			// claim, the loop ends. The other rows are likely to be free still, unless there
			// were many such turns.
			if v, err = o.again(v, row.Worker); err != nil {
				return Reply{}, err
			}
			all = false
			lost++
		case full && !all && lost == 0:
			// The error must be about all rows as they are now.
			all = true
			v, err = o.look(func(ctx context.Context) (View, error) { return o.register.Read(ctx, o.space, o.only) })
		case full && all && v.Damaged != nil:
			return Reply{}, fmt.Errorf("%w; %w", none, v.Damaged)
		case !full || all:
			return Reply{}, none
		}
		if lost == mostLost || lost > 0 && none != nil {
			lost = 0
			v, err = o.find()
		}
	}
	return Reply{}, err
}

// maxClaims is how many claims of one RegisterStore are under way. Unbounded, a thousand claims read
// before the first writes, as where all wait for a few connections, collide on the same rows and
// retry: 2 to 6 times slower (measured).
const maxClaims = 16

// mostLost is how many rows of one view a claim tries before it looks again.
const mostLost = 4

// A claiming is the operation of a claim.
type claiming struct {
	*operation
	store *RegisterStore
	claim *Claim
	only  []int64 // as Hint.Only
}

// workers returns c.Only as Hint.Only is.
func (c *Claim) workers() []int64 {
	if c.Only == nil {
		return nil
	}
	only := slices.DeleteFunc(slices.Clone(c.Only), func(worker int64) bool { return !c.Space.has(worker) })
	slices.Sort(only)
	if only = slices.Compact(only); int64(len(only)) == c.Space.Workers {
		return nil
	}
	return only
}

// look reads rows and compares the clocks. The register's clock was read at some moment of the
// call, and is compared with the claimant's clock at the moment of the call that suits the claim
// best, so that waiting for a connection, for an answer or for rows to be made does not count
// as a difference. The claim itself goes on with the clock that the claimant has read earlier,
// with which it reserves less under the guard, never more.
func (o *claiming) look(read func(ctx context.Context) (View, error)) (v View, err error) {
	asked := time.Now()
	err = o.trip(func(ctx context.Context) error {
		v, err = read(ctx)
		return err
	})
	if err != nil {
		return View{}, err
	}
	c := *o.claim
	earliest := c.Now + Millis(asked.Sub(o.began).Milliseconds())
	latest := c.Now + Millis(time.Since(o.began).Milliseconds()) + 1 // rounded up
	c.Now = min(max(v.Now, earliest), latest)
	return v, c.Check(v.Now)
}

func (o *claiming) find() (View, error) {
	c := o.claim
	h := Hint{Owner: c.Owner, Only: o.only, Held: c.Guard, Released: c.released()}
	return o.look(func(ctx context.Context) (View, error) { return o.register.Find(ctx, o.space, h) })
}

// again reads one row of v anew. The row has the token of the claim if a proxy has sent the
// swap twice.
func (o *claiming) again(v View, worker int64) (View, error) {
	now, err := o.look(func(ctx context.Context) (View, error) { return o.register.Read(ctx, o.space, []int64{worker}) })
	i, _ := v.find(worker)
	now.Rows = slices.Replace(v.Rows, i, i+1, now.Rows...)
	return now, err
}

// take claims a free row of v.
func (o *claiming) take(v View, row Row) (_ Reply, done bool, err error) {
	i, _ := v.find(row.Worker)
	to, _ := o.claim.Apply(row, v.Now) // which Choose has found free at the same now
	reply := Reply{Row: to, Before: row.Until, Now: v.Now}
	from := v.Rows[i]
	if !o.store.noRecords.Load() {
		from.Record = o.claim.Record(row, reply)
	}
	done, err = o.swap(from, to)
	if err != nil && o.confirm(v.Rows[i], &reply.Row) { // without the record, which may be what has failed
		if errors.Is(err, ErrPermanent) {
			o.store.noRecords.Store(true)
		}
		done, err = true, nil // otherwise the row would stay reserved without a holder
	}
	if !done {
		return Reply{}, false, err
	}
	return reply, true, nil
}

// confirm is called when the outcome of a claim's swap is unknown. It reports whether the row
// is the claimant's, and updates to with its content.
//
// It first repeats the swap, which waits for the first one if the server still works on it. If
// that is refused, either the first was done or another process was faster. A read tells which,
// but proves too little, because a COMMIT that was cut off can be visible before the synchronous
// replica has it. The row is therefore written once more: this write comes after the first and
// carries the same promise.
//
// For the claim, the outcome is the same as that of a late answer.
func (o *claiming) confirm(from Seen, to *Row) bool {
	if done, err := o.swap(from, *to); done || err != nil {
		return done
	}
	v, err := o.read([]int64{to.Worker})
	i, found := v.find(to.Worker)
	if err != nil || !found || v.Rows[i].Row != *to {
		return false
	}
	again := *to
	again.Renewals++
	if done, err := o.swap(v.Rows[i], again); !done || err != nil {
		return false
	}
	*to = again
	return true
}
