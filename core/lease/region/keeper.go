package region

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/internal/base/wait"
)

const (
	// every is how often on average a process looks at its home. If it has the mark of last time it
	// gets another, so that one process of the region marks it in each such time, however many
	// there are.
	every = time.Minute

	// confirmWait is how long the common store has for an answer if the home has its number, and
	// settleWait how long all takes otherwise.
	confirmWait = 5 * time.Second
	settleWait  = 20 * time.Second
)

// A Config is what a Keeper gets from its lease.
type Config struct {
	Region *Region           // valid
	Own    leasestore.Store  // of the region
	Leases leasestore.Space  // of the region, but for the Datacenter
	Skew   leasestore.Millis // how far the clocks of processes and stores may be apart

	Layout  string // as a store keeps it, without marks
	Numbers int64  // which the layout has, of datacenters

	Now    func() time.Time
	Logger *slog.Logger
	Token  func() string  // a fresh one, 32 hexadecimal digits
	Random func() float64 // in [0, 1), for Keep alone
}

// A Keeper obtains and keeps the number of a lease's region. Package lease makes it. It is safe for
// concurrent use, but for Keep, which one goroutine calls.
type Keeper struct {
	*Region
	config  Config
	home    leasestore.Space
	numbers leasestore.Space

	refusal atomic.Pointer[Error] // nil: none

	busy    chan struct{}    // full while a process settles, once at a time; no Mutex, as waits end with their context
	leases  leasestore.Space // with the datacenter once joined
	joined  bool
	mark    string // of the home when it was settled last
	failing bool   // the last time
}

// New returns a Keeper, or an error for a store that cannot be a region's.
func New(c Config) (*Keeper, error) {
	_, lists := c.Own.(leasestore.Lister)
	_, fences := c.Own.(leasestore.Fencer)
	switch {
	case !lists || !fences:
		return nil, invalid("store", fmt.Sprintf("a %T", c.Own), "a store with the methods Rows and Fence, for Config.Region")
	case c.Own.LosesWrites():
		return nil, invalid("store", fmt.Sprintf("a %T", c.Own), "a store that does not lose writes, for Config.Region: it would forget the number")
	}
	layout := c.Layout + leasestore.RegionsMark
	return &Keeper{
		Region:  c.Region,
		config:  c,
		home:    leasestore.Space{Namespace: c.Leases.Namespace + homeSuffix, Workers: 1, Layout: layout},
		numbers: leasestore.Space{Namespace: c.Leases.Namespace + regionsSuffix, Workers: c.Numbers, Layout: layout},
		busy:    make(chan struct{}, 1),
		leases:  c.Leases,
	}, nil
}

// Join returns the datacenter number of the region, which it obtains if there is none. It comes
// before each claim of a lease.
func (r *Keeper) Join(ctx context.Context) (int64, error) {
	number, err := r.settle(ctx, false)
	r.note(err)
	return number, err
}

// Refused reports whether the region may not use its number any more.
func (r *Keeper) Refused() bool { return r.refusal.Load() != nil }

// Keep looks after the number until ctx ends.
func (r *Keeper) Keep(ctx context.Context) {
	for wait.Sleep(ctx, every/2+time.Duration(r.config.Random()*float64(every))) == nil {
		if _, err := r.settle(ctx, true); r.note(err) {
			r.config.Logger.Error("lease: the region is refused", "error", err)
		}
	}
}

// note keeps a refusal until the region has its number again, and reports whether it is the first.
// Any other error leaves open whether the region still has it.
func (r *Keeper) note(err error) (first bool) {
	var refusal *Error
	if !errors.As(err, &refusal) && err != nil {
		return false
	}
	before := r.refusal.Swap(refusal)
	return before == nil && refusal != nil
}

// settle takes steps until the region has its number, and returns it. To keep it, it marks a home
// that still has the mark of last time.
func (r *Keeper) settle(ctx context.Context, keep bool) (int64, error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return 0, r.failure(ctx.Err())
	}
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	var last snapshot
	var failed error // the last step
	for {
		s, err := r.look(ctx)
		if err != nil {
			return 0, r.failed(err)
		}
		do, number, err := r.next(s)
		switch {
		case err != nil:
			return 0, err
		case failed != nil && s.home == last.home && slices.Equal(s.rows, last.rows):
			return 0, r.failed(failed) // as it would again
		case do == settled && keep && s.away == nil && s.home.Nonce == r.mark:
			do = markHome
		case do == settled:
			r.settled(s)
			return number, nil
		}
		last, failed = s, r.do(ctx, do, number, s)
	}
}

// A snapshot is what was there at one moment.
type snapshot struct {
	home reservation
	rows []leasestore.Row  // of the numbers
	now  leasestore.Millis // the clock of the common store
	away error             // why there are no rows, although the home has its number; nil: there are
}

// look reads the rows of the numbers between two looks at the home. Every write changes the nonce,
// so if the home has not changed, both are of one moment.
func (r *Keeper) look(ctx context.Context) (s snapshot, err error) {
	for before := false; ; before = true {
		homes, _, err := r.config.Own.(leasestore.Lister).Rows(ctx, r.home)
		if err != nil {
			return s, err
		}
		row := leasestore.Row{}
		if len(homes) > 0 { // otherwise there is none yet
			row = homes[0]
		}
		if before && row == s.home.Row {
			return s, nil
		}
		if s.home, err = reservationOf(row, r.numbers.Workers); err != nil {
			return s, err
		}
		has := !s.home.pending()
		if s.rows, s.now, err = r.read(ctx, has); err != nil && (!has || errors.Is(err, leasestore.ErrLayout)) {
			return s, err
		}
		s.away = err
	}
}

// read returns the rows of the numbers, those that were not made yet too. It does not wait long
// if the region has a number.
func (r *Keeper) read(ctx context.Context, has bool) ([]leasestore.Row, leasestore.Millis, error) {
	if has {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, confirmWait)
		defer cancel()
	}
	made, now, err := r.Store.(leasestore.Lister).Rows(ctx, r.numbers)
	rows := make([]leasestore.Row, r.numbers.Workers)
	for i := range rows {
		rows[i].Worker = int64(i)
	}
	for _, row := range made {
		if row.Worker >= r.numbers.Workers {
			return nil, 0, &leasestore.LayoutError{Namespace: r.numbers.Namespace, Stored: fmt.Sprintf("the datacenter number %d", row.Worker), Own: r.numbers.Layout}
		}
		rows[row.Worker] = row
	}
	return rows, now, err
}

// next decides what comes next.
func (r *Keeper) next(s snapshot) (do step, number int64, err error) {
	h := &s.home
	switch {
	case r.joined && (h.pending() || h.number != r.leases.Datacenter):
		return 0, 0, r.refused(r.leases.Datacenter, "the home of its own store was freed while this process ran; restart the process")
	case s.away != nil:
		if refusal := r.refusal.Load(); refusal != nil { // only the common store can take it back
			return 0, 0, refusal
		}
		return settled, h.number, r.matches(*h)
	}
	return r.decide(*h, s.rows, func(row leasestore.Row) bool { return row.Owner == "" && row.Until <= s.now+r.config.Skew })
}

// do takes a step. What has changed since s makes the store refuse it.
func (r *Keeper) do(ctx context.Context, do step, number int64, s snapshot) (err error) {
	h, row := &s.home, leasestore.Row{}
	if s.rows != nil {
		row = s.rows[number]
	}
	now := leasestore.MillisOf(r.config.Now())
	switch do {
	case reserve:
		t := r.config.Token()
		_, err = r.config.Own.Claim(ctx, leasestore.Claim{
			Space: r.home, Owner: t, Nonce: t, Holder: (&reservation{number: number, name: r.Name}).holder(),
			Window: leasestore.Retired, Now: now,
			Skew: leasestore.Retired / 2, // free means released, whatever the time is
		})
	case take:
		_, err = r.Store.Claim(ctx, leasestore.Claim{
			Space: r.numbers, Only: []int64{number}, Owner: h.Owner, Nonce: h.Nonce, Holder: r.Name,
			Window: leasestore.Retired, Now: now, Skew: r.config.Skew,
		})
	case markHome:
		if h.pending() && row.Epoch > 1 {
			// Another region had the number. All its IDs are before the moment at which that was
			// freed, and the claim has raised Until from there.
			leases := r.leases
			leases.Datacenter = number
			err = r.config.Own.(leasestore.Fencer).Fence(ctx, leasestore.Fencing{Space: leases, Nonce: r.config.Token(), Until: row.Until - leasestore.Retired})
			if err != nil {
				return err
			}
		}
		_, err = r.config.Own.Renew(ctx, renewal(r.home, h.Row, r.config.Token(), max(h.Until, row.Until)+1))
	case markNumber:
		_, err = r.Store.Renew(ctx, renewal(r.numbers, row, h.Nonce, h.Until))
	case release:
		err = r.config.Own.Release(ctx, leasestore.Release{Space: r.home, Epoch: h.Epoch, Owner: h.Owner, Known: []string{h.Nonce}, Nonce: r.config.Token()})
	}
	return err
}

// renewal returns one that gives a row a mark and its version.
func renewal(s leasestore.Space, row leasestore.Row, mark string, version leasestore.Millis) leasestore.Renewal {
	return leasestore.Renewal{
		Space: s, Worker: row.Worker, Epoch: row.Epoch, Owner: row.Owner, Known: []string{row.Nonce}, Nonce: mark, Until: version,
	}
}

// settled keeps what was seen, and reports a common store that is away, or no longer.
func (r *Keeper) settled(s snapshot) {
	if !r.joined {
		r.config.Logger = r.config.Logger.With("datacenter", s.home.number)
	}
	r.joined, r.leases.Datacenter, r.mark = true, s.home.number, s.home.Nonce
	if s.away != nil {
		_ = r.failed(s.away)
	} else if r.failing {
		r.failing = false
		r.config.Logger.Info("lease: the datacenter number of the region is confirmed again")
	}
}

// failed reports a failure unless the last time was one too, and returns it with the region's name.
func (r *Keeper) failed(err error) error {
	if !r.failing && r.joined {
		r.config.Logger.Warn("lease: the datacenter number of the region is not confirmed; the region goes on with it", "error", err)
		r.failing = true
	}
	return r.failure(err)
}
