package leasestore

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Renewal asks to raise the limit of a lease's row.
type Renewal struct {
	Space Space

	Worker int64
	Epoch  int64
	Owner  string

	// Known are the nonces that the row may have: the last confirmed one first, and then those
	// of later writes whose outcome is unknown. A copy of the process that was made while it ran
	// loses the row, because it does not know the nonce of the original's next write.
	Known []string
	Nonce string // a fresh one

	Next   Millis // no ID to come has a time before this
	Until  Millis // the last confirmed limit
	Window Millis
	Now    Millis // the clock of the holder when it asked
	Skew   Millis
	Guard  Millis
}

// Apply returns row as the renewal leaves it, or a *LostError if the row is no longer the
// holder's or if the guard forbids the renewal.
//
// The limit is never lowered, even if the stored one was.
func (r *Renewal) Apply(row Row, now Millis) (Row, error) {
	switch {
	case row.Epoch != r.Epoch || row.Owner != r.Owner:
		return Row{}, r.Lost(TakenOver)
	case !slices.Contains(r.Known, row.Nonce):
		return Row{}, r.Lost(Copied)
	case r.Guard > 0 && max(now, r.Now) > r.Until-r.Guard:
		return Row{}, r.Lost(Lapsed)
	}
	row.Until = max(row.Until, r.Until, r.limit(now))
	row.Nonce = r.Nonce
	row.Renewals++
	return row, nil
}

// limit returns the limit to ask for.
func (r *Renewal) limit(now Millis) Millis {
	clock := r.Clock(now)
	if r.Guard > 0 {
		return clock + r.Window
	}
	return min(max(clock, r.Next), clock+MaxAhead) + r.Window
}

// MaxAhead is how far a reserved limit may be beyond the clock and the window.
const MaxAhead = Millis(time.Hour / time.Millisecond)

// Clock returns which of the two clocks counts.
func (r *Renewal) Clock(now Millis) Millis {
	if r.Guard > 0 {
		return min(now, r.Now)
	}
	if apart := now - r.Now; apart <= r.Skew && apart >= -r.Skew {
		// Both are good. The later one counts. Otherwise a holder whose clock is ahead by
		// more than a window would always be at its limit.
		return max(now, r.Now)
	}
	// One of them has stepped. The row must not follow a year ahead: nothing takes it
	// back from there. Nor may it move away from the other holders' time. The clock that
	// is nearer to the time of the last renewal is likely to be right.
	if at := r.Until - r.Window; distance(r.Now, at) < distance(now, at) {
		return r.Now
	}
	return now
}

func distance(a, b Millis) Millis { return max(a-b, b-a) }

// Lost returns the error of a renewal that the store has refused.
func (r *Renewal) Lost(reason Reason) *LostError {
	return &LostError{Worker: r.Worker, Epoch: r.Epoch, Reason: reason}
}

// A Release gives a row back.
type Release struct {
	Space Space

	Worker int64
	Epoch  int64
	Owner  string
	Known  []string // as in a Renewal
	Nonce  string

	// End is what the limit goes back to. Every ID of the lease has a time before it. It
	// is never before From, the first moment that the claim has won: what lies before
	// that may be an earlier holder's.
	End Millis
}

// Apply returns row as the release leaves it, or a *LostError if the row is no longer the
// holder's. This is the one write that may lower the limit.
func (r *Release) Apply(row Row) (Row, error) {
	switch {
	case row.Epoch != r.Epoch || row.Owner != r.Owner:
		return Row{}, r.Lost(TakenOver)
	case !slices.Contains(r.Known, row.Nonce):
		return Row{}, r.Lost(Copied)
	}
	return row.next(r.Nonce, r.End), nil
}

// Lost returns the error of a release that the store has refused.
func (r *Release) Lost(reason Reason) *LostError {
	return &LostError{Worker: r.Worker, Epoch: r.Epoch, Reason: reason}
}

// Renew implements [Store]. A damaged row is lost.
func (s *RegisterStore) Renew(ctx context.Context, r Renewal) (Reply, error) {
	return s.change(ctx, r.Space, r.Worker, r.Nonce, r.Lost, r.Apply)
}

// Release implements [Store]. A damaged row is lost.
func (s *RegisterStore) Release(ctx context.Context, r Release) error {
	_, err := s.change(ctx, r.Space, r.Worker, r.Nonce, r.Lost, func(row Row, _ Millis) (Row, error) { return r.Apply(row) })
	return err
}

// change applies an operation to the row of its holder.
//
// A row that already has the nonce of the operation is refused like any row with a nonce that
// the holder does not know: a copy of the process may have drawn the same nonce, and the two must
// not both go on. If, however, a swap of this call was refused before, a proxy may have sent it
// twice and the first was done, so that the outcome is unknown.
func (s *RegisterStore) change(ctx context.Context, sp Space, worker int64, nonce string,
	lost func(Reason) *LostError, apply func(Row, Millis) (Row, error)) (Reply, error) {
	if err := sp.Validate(); err != nil {
		return Reply{}, err
	}
	o := s.begin(ctx, sp)
	for sent := false; ; sent = true {
		v, err := o.read([]int64{worker})
		if err != nil {
			return Reply{}, err
		}
		i, found := v.find(worker)
		switch {
		case !found && v.Damaged != nil:
			return Reply{}, fmt.Errorf("%w: %w", lost(damaged), v.Damaged)
		case !found:
			return Reply{}, lost(Gone)
		case sent && v.Rows[i].Row.Nonce == nonce:
			return Reply{}, fmt.Errorf("lease: the row of worker %d has the nonce of this request: it was done, by this process or by a copy of it", worker)
		}
		from := v.Rows[i]
		to, err := apply(from.Row, v.Now)
		if err != nil {
			return Reply{}, err
		}
		if v.Layout != sp.Layout { // the swap would refuse it every time
			return Reply{}, lost(otherLayout)
		}
		done, err := o.swap(from, to)
		if err != nil {
			return Reply{}, err
		}
		if done {
			return Reply{Row: to, Before: from.Row.Until, Now: v.Now}, nil
		}
	}
}

// Further reasons for which a lease is lost.
const (
	damaged     Reason = "its row holds what no store has written"
	otherLayout Reason = "its namespace has another layout now"
)
