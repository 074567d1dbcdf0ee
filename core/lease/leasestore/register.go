package leasestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// A Register keeps the rows of spaces and changes a row only by compare-and-swap. [FromRegister] makes
// a [Store] of it, which applies the rules of claims and leases, so that the server behind a
// Register needs to know none of them.
//
// A Register gives up when ctx ends, and its errors never contain a password. It keeps no row
// in memory from one call to the next and is safe for concurrent use. Package leasetest tests
// everything that is said here.
type Register interface {
	// Read returns the rows of the given workers, which are sorted and unique, or all rows if
	// workers is nil. It shows every change that was made before the call. A replica that
	// may lag returns an error.
	//
	// A row that was read need not be durable; only the success of a Swap proves that.
	Read(ctx context.Context, s Space, workers []int64) (View, error)

	// Find returns a few rows that a claim may take. They are a hint: a row that looks free may
	// be held, and a free row may be missing.
	Find(ctx context.Context, s Space, h Hint) (View, error)

	// Make stores the layout of the namespace unless it has one, and makes all rows of the
	// space unless they were ever made. A row that is missing later is never made again, not
	// even by a call that arrives late. If Make takes several steps, no row is shown before
	// all are made.
	Make(ctx context.Context, s Space) error

	// Swap writes a row if the stored one equals from and the namespace still has the layout
	// of s.
	//
	// True means that the write is durable, and false that it was not done and never will be.
	// After an error the outcome is unknown: the write may have been done, or may be done at
	// any later time.
	//
	// A call that finds its own write in place may return true only if it knows that it has
	// sent the write twice. Otherwise a copy of the process may have sent the other one, and
	// the two must not both go on.
	//
	// A store that loses writes compares the content of the row. A version or revision is not
	// enough there, because after a loss it can repeat with another content.
	Swap(ctx context.Context, s Space, from Seen, to Row) (bool, error)

	// LosesWrites reports whether the register may forget what it has acknowledged, see
	// [Store].
	LosesWrites() bool
}

// A View is what was read of a space: all of it at one moment, or, if the register cannot do
// that, each row at some moment of the call.
type View struct {
	Layout string // of the namespace; empty if it has none
	Made   bool   // whether the rows of the space were made
	Rows   []Seen // in the order of the workers, without missing and damaged rows

	// Damaged is the error for a row that no Register has written, or nil.
	Damaged error

	Now Millis // the clock of the register, at some moment of the call
}

// A Seen is a row as it was read. Tag is for the register, such as the version of the row.
type Seen struct {
	Row Row
	Tag any

	// Record goes with the Swap of a claim. A register that is a [HistoryRegister] keeps it in the same
	// write, or returns an error, after which [FromRegister] swaps without one. Others ignore it.
	Record string
}

// A Hint says which rows a claim looks for.
type Hint struct {
	Owner string  // the token of the claim; a row that has it was taken by the claim before
	Only  []int64 // the acceptable worker numbers, sorted and unique; nil: all

	// A row with an owner is free once the clock of the register is Held past its Until; one
	// without an owner is free while its Until is at most Released ahead of the clock.
	Held, Released Millis
}

// Free reports whether a claim could take row at the time now, or has taken it.
func (h *Hint) Free(row Row, now Millis) bool {
	switch row.Owner {
	case "":
		return row.Until <= now+h.Released
	case h.Owner:
		return true
	}
	return row.Until+h.Held <= now
}

// Random returns random numbers that depend on the token alone. If a claim is delivered twice,
// a register that visits rows in an order drawn from them meets the row that the claim has taken,
// unless a row before it has become free.
func (h *Hint) Random() *rand.Rand { return randomOf(h.Owner) }

func randomOf(token string) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(token)) // it never fails
	return rand.New(rand.NewPCG(sum.Sum64(), 0))
}

// Some returns n of the acceptable workers of s, drawn by Random and sorted, or all of them if
// there are no more than n.
func (h *Hint) Some(s Space, n int) []int64 {
	at := func(i int) int64 { return int64(i) }
	count := int(s.Workers)
	if h.Only != nil {
		at = func(i int) int64 { return h.Only[i] }
		count = len(h.Only)
	}
	some := make([]int64, 0, n)
	if count <= n {
		for i := range count {
			some = append(some, at(i))
		}
		return some
	}
	// One draw for each: a shuffle of 65,536 takes a millisecond.
	random, drawn := h.Random(), map[int]bool{}
	for i := count - n; i < count; i++ {
		j := random.IntN(i + 1)
		if drawn[j] {
			j = i
		}
		drawn[j] = true
		some = append(some, at(j))
	}
	slices.Sort(some)
	return some
}

// A RegisterStore is the [Store] that [FromRegister] makes. It is a [Lister], a [Fencer] and a [History]
// too.
type RegisterStore struct {
	register  Register
	claims    chan struct{} // has as many elements as claims are under way
	noRecords atomic.Bool   // the register cannot keep records, and will not by itself
}

// maxClaims is how many claims of one RegisterStore are under way. Unbounded, a thousand claims read
// before the first writes, as where all wait for a few connections, collide on the same rows and
// retry: 2 to 6 times slower (measured).
const maxClaims = 16

var (
	_ Store   = (*RegisterStore)(nil)
	_ Lister  = (*RegisterStore)(nil)
	_ Fencer  = (*RegisterStore)(nil)
	_ History = (*RegisterStore)(nil)
)

// FromRegister returns a Store over a register. Each operation reads a row, applies the function of
// this package that defines the operation, and swaps the row for the result. It starts over if
// another process has changed the row. Neither of its two trips takes more than half of the time
// that ctx leaves.
//
// The store's clock is read before the write. A renewal under the loss guard may therefore be
// written after the lease has lapsed, and a claim after its row was used. Both are harmless,
// because Lease goes by its own clock after the answer.
func FromRegister(r Register) *RegisterStore {
	return &RegisterStore{register: r, claims: make(chan struct{}, maxClaims)}
}

// Over is [FromRegister] under its first name.
//
// Deprecated: use FromRegister.
func Over(r Register) *RegisterStore { return FromRegister(r) }

// Register returns what s is over.
func (s *RegisterStore) Register() Register { return s.register }

// LosesWrites implements [Store].
func (s *RegisterStore) LosesWrites() bool { return s.register.LosesWrites() }

// Further reasons for which a lease is lost.
const (
	damaged     Reason = "its row holds what no store has written"
	otherLayout Reason = "its namespace has another layout now"
)

// An operation makes the trips of one call.
type operation struct {
	register Register
	space    Space
	ctx      context.Context
	most     time.Duration // of one trip
	began    time.Time
}

func (s *RegisterStore) begin(ctx context.Context, sp Space) *operation {
	o := &operation{s.register, sp, ctx, 0, time.Now()}
	if deadline, ok := ctx.Deadline(); ok {
		o.most = max(1, time.Until(deadline)/2)
	}
	return o
}

// trip calls do with a context that leaves as much time for a second trip.
func (o *operation) trip(do func(ctx context.Context) error) error {
	if o.most == 0 {
		return do(o.ctx)
	}
	ctx, cancel := context.WithTimeout(o.ctx, o.most)
	defer cancel()
	return do(ctx)
}

func (o *operation) read(workers []int64) (v View, err error) {
	err = o.trip(func(ctx context.Context) error {
		v, err = o.register.Read(ctx, o.space, workers)
		return err
	})
	return v, err
}

func (o *operation) swap(from Seen, to Row) (done bool, err error) {
	err = o.trip(func(ctx context.Context) error {
		done, err = o.register.Swap(ctx, o.space, from, to)
		return err
	})
	return done && err == nil, err
}

// made reports whether the space had its rows. If not, it makes them, and the caller reads
// again.
func (o *operation) made(v View) (bool, error) {
	if v.Layout != o.space.Layout && (v.Layout != "" || v.Made) {
		return false, &LayoutError{Namespace: o.space.Namespace, Stored: v.Layout, Own: o.space.Layout}
	}
	if v.Made {
		return true, nil
	}
	return false, o.register.Make(o.ctx, o.space)
}

func (v *View) rows() []Row {
	rows := make([]Row, len(v.Rows))
	for i, seen := range v.Rows {
		rows[i] = seen.Row
	}
	return rows
}

// find returns the index of a worker's row, or where it would be inserted.
func (v *View) find(worker int64) (i int, ok bool) {
	return slices.BinarySearchFunc(v.Rows, worker, func(s Seen, worker int64) int {
		return cmp.Compare(s.Row.Worker, worker)
	})
}

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
	only := slices.DeleteFunc(slices.Sorted(slices.Values(c.Only)), func(worker int64) bool {
		return worker < 0 || worker >= c.Space.Workers
	})
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
	h := Hint{Owner: c.Owner, Only: o.only, Held: c.Guard, Released: c.Skew}
	if c.Guard > 0 {
		h.Released += c.Window + c.Guard
	}
	return o.look(func(ctx context.Context) (View, error) { return o.register.Find(ctx, o.space, h) })
}

// again reads one row of v anew. The row has the token of the claim if a proxy has sent the
// swap twice.
func (o *claiming) again(v View, worker int64) (View, error) {
	now, err := o.look(func(ctx context.Context) (View, error) { return o.register.Read(ctx, o.space, []int64{worker}) })
	i, _ := v.find(worker)
	now.Rows = slices.Replace(v.Rows, i, i+1, now.Rows...)
	now.Damaged = cmp.Or(now.Damaged, v.Damaged)
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

// Fence implements [Fencer], row by row. It skips missing rows, and returns an error for a damaged
// row after it has fenced the others.
func (s *RegisterStore) Fence(ctx context.Context, f Fencing) error {
	if err := f.Space.Validate(); err != nil {
		return err
	}
	// It makes a trip for each row, and each may take the time that is left.
	o := operation{register: s.register, space: f.Space, ctx: ctx}
	var v View
	for made := false; !made; {
		var err error
		if v, err = o.read(nil); err != nil {
			return err
		}
		if made, err = o.made(v); err != nil {
			return err
		}
	}
	// There may be 65,536 of them.
	rows, errs := make(chan Seen), make(chan error)
	for range fencers {
		go func() {
			var err error
			for seen := range rows {
				if err == nil {
					err = o.fence(&f, seen)
				}
			}
			errs <- err
		}()
	}
	for _, seen := range v.Rows {
		rows <- seen
	}
	close(rows)
	all := v.Damaged
	for range fencers {
		all = errors.Join(all, <-errs)
	}
	return all
}

// fencers is how many rows Fence writes at a time.
const fencers = 16

func (o *operation) fence(f *Fencing, from Seen) error {
	for {
		if from.Row.Retired() {
			return nil // a swap that changes nothing may be refused again and again
		}
		if done, err := o.swap(from, f.Apply(from.Row)); done || err != nil {
			return err
		}
		v, err := o.read([]int64{from.Row.Worker})
		if err != nil {
			return err
		}
		if made, err := o.made(v); !made {
			return err
		}
		i, found := v.find(from.Row.Worker)
		if !found || v.Rows[i].Row.Nonce == f.Nonce { // it is gone, or was done before
			return v.Damaged
		}
		from = v.Rows[i]
	}
}

// Rows implements [Lister].
func (s *RegisterStore) Rows(ctx context.Context, sp Space) ([]Row, Millis, error) {
	if err := sp.Validate(); err != nil {
		return nil, 0, err
	}
	v, err := s.register.Read(ctx, sp, nil)
	if err == nil {
		err = v.Damaged
	}
	if err != nil || len(v.Rows) == 0 {
		return nil, v.Now, err
	}
	return v.rows(), v.Now, nil
}
