package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"
)

// A Register keeps the rows of spaces, and changes a row only if it is still what its caller
// has seen. [Over] makes a [Store] of it, so that a server needs no more than that: it knows
// no claim and no lease, and has no rule to repeat.
//
// A Register gives up when ctx ends. Its errors never contain a password. It keeps no row in
// memory from one call to the next, and is safe for concurrent use. Package leasetest
// checks all that follows.
type Register interface {
	// Read returns the rows of some workers, which are sorted and each there once, or of all
	// if workers is nil. No row is older than the call: one that was changed before Read
	// began is shown as it was changed. A replica that may be behind cannot answer, and
	// fails.
	//
	// That a row is seen does not say that it is durable. Only Swap says that.
	Read(ctx context.Context, s Space, workers []int64) (View, error)

	// Find returns rows that a claim may take, of which a few will do. Nothing is decided by
	// what it shows or leaves out: what looks free may be held, and the other way round.
	Find(ctx context.Context, s Space, h Hint) (View, error)

	// Make keeps the layout of the namespace, unless it has one, and makes all rows of the
	// space, unless they were ever made: a row that is missing later is not made anew, not
	// even by a call that arrives late. It does so in one step, or in several of which none
	// shows a row before all are there.
	Make(ctx context.Context, s Space) error

	// Swap writes a row if the stored one is exactly from, and if the namespace still has
	// the layout of s.
	//
	// True: the write is done and durable. False: it is not done, and never will be. An
	// error says nothing: the write may be done, or may yet be done at any later time.
	//
	// A call that finds its own write in place, because it was sent twice, may return true
	// if it knows that it has sent it before. Otherwise the other may be a copy of the
	// process, and they must not both go on.
	//
	// A store that loses writes compares what the row holds. A version or revision alone
	// would not do there, since after a loss it comes again with other rows.
	Swap(ctx context.Context, s Space, from Seen, to Row) (bool, error)

	// LosesWrites reports whether the register may forget what it has acknowledged: see
	// Store.
	LosesWrites() bool
}

// A View is what was read of a space at one moment, or, if the register cannot do that, of
// each row at some moment of the call.
type View struct {
	Layout string // of the namespace; empty: it has none
	Made   bool   // the rows of the space were made
	Rows   []Seen // in the order of the workers; a row that is missing or damaged is not among them

	// Damaged is the error for a row that holds what no Register writes. Nil: none was seen.
	Damaged error

	Now Millis // the clock of the register, at some moment of the call
}

// A Seen is a row as it was read. Tag is the register's: the version of a row, say.
type Seen struct {
	Row Row
	Tag any
}

// A Hint says what a claim looks for.
type Hint struct {
	Owner string  // the token of the claim; a row that has it was taken by it before
	Only  []int64 // the worker numbers that will do, sorted, each once; nil: all

	// A row that is held is free if Until is Held or more before the clock of the register,
	// and one that is nobody's if it is at most Released beyond that.
	Held, Released Millis
}

// Free reports whether a claim could take row when the clock shows now, or has taken it.
func (h *Hint) Free(row Row, now Millis) bool {
	switch row.Owner {
	case "":
		return row.Until <= now+h.Released
	case h.Owner:
		return true
	}
	return row.Until+h.Held <= now
}

// Random returns random numbers that are the same for each claim with this token. A
// register that looks at rows in an order made of them meets the row of a claim that has
// come before, unless one ahead of that has become free meanwhile.
func (h *Hint) Random() *rand.Rand { return randomOf(h.Owner) }

func randomOf(token string) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(token)) // it never fails
	return rand.New(rand.NewPCG(sum.Sum64(), 0))
}

// Some returns n of the workers of s that will do, or all if there are no more. They are
// chosen by Random, and sorted.
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

// A RegisterStore is the [Store] that [Over] makes. It is a [Lister] and a [Fencer] too.
type RegisterStore struct {
	register Register
}

var (
	_ Store  = (*RegisterStore)(nil)
	_ Lister = (*RegisterStore)(nil)
	_ Fencer = (*RegisterStore)(nil)
)

// Over returns a Store over a register. Each operation reads a row, applies the function of
// this package that defines it, and swaps the row for the result: two trips. If somebody
// else was faster it begins anew. No trip takes more than half of the time that ctx leaves
// to the operation.
//
// The store's clock is read before the write, and not with it. So a renewal under the loss
// guard may be written after the lease has lapsed, and a claim after its row was used. Lease
// goes by its own clock when the answer has come, which is later than both.
func Over(r Register) *RegisterStore { return &RegisterStore{r} }

// Register returns what s is over.
func (s *RegisterStore) Register() Register { return s.register }

// LosesWrites implements [Store].
func (s *RegisterStore) LosesWrites() bool { return s.register.LosesWrites() }

// Reasons of a lease that is lost, besides those of package lease.
const (
	damaged     Reason = "its row holds what no store has written"
	otherLayout Reason = "its namespace has another layout now"
)

// An operation makes the trips of one operation.
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

// trip calls do with a context that ends before all the time is used up. A second trip needs
// as much as the first.
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

// made reports whether the space has its rows. If not it makes them, and they must be read
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

// find returns where the row of a worker is, or would be.
func (v *View) find(worker int64) (i int, ok bool) {
	return slices.BinarySearchFunc(v.Rows, worker, func(s Seen, worker int64) int {
		return cmp.Compare(s.Row.Worker, worker)
	})
}

// Claim implements [Store]. The first claim in a space makes its rows. It passes over rows
// that are damaged, and names one if no other is free. If the outcome of its write is
// unknown, it tries to find that out.
func (s *RegisterStore) Claim(ctx context.Context, c Claim) (Reply, error) {
	if err := c.Space.Check(); err != nil {
		return Reply{}, err
	}
	// This says nothing of the clocks. But a claim that no row will do for must make none.
	if err := c.Check(c.Now); err != nil {
		return Reply{}, err
	}
	o := claiming{s.begin(ctx, c.Space), &c, c.workers()}
	v, err := o.find()
	for all, lost := false, 0; err == nil; {
		if made, makeErr := o.made(v); makeErr != nil {
			return Reply{}, makeErr
		} else if !made {
			v, err = o.find()
			continue
		}
		row, none := c.Choose(v.rows(), v.Now, c.Random().IntN)
		switch full := errors.Is(none, ErrNoFreeWorker); {
		case none == nil:
			reply, done, err := o.take(v, row)
			if done || err != nil {
				return reply, err
			}
			// Another claim was faster. Each turn of this loop is the success of somebody
			// else, so together they come to an end. The other rows are likely to be free
			// yet, unless there were many such turns.
			if v, err = o.again(v, row.Worker); err != nil {
				return Reply{}, err
			}
			all = false
			lost++
		case full && !all && lost == 0:
			// The error is about all rows, as they are now.
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

// mostLost is how many rows of one view a claim tries.
const mostLost = 4

// A claiming is the operation of a claim.
type claiming struct {
	*operation
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

// look reads rows, and compares the clocks. That of the register was read at some moment
// between two of this process. It is compared with what the claimant's showed at the one of
// these that suits the claim best. So waiting is no difference between clocks: for a
// connection, for an answer, or for rows to be made. The claim goes on with the clock that
// the claimant has read, which is earlier. Under the guard it then reserves less, never more.
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

// again reads one row of v again. It may have the token of the claim, if a proxy has sent
// the swap twice.
func (o *claiming) again(v View, worker int64) (View, error) {
	now, err := o.look(func(ctx context.Context) (View, error) { return o.register.Read(ctx, o.space, []int64{worker}) })
	i, _ := v.find(worker)
	now.Rows = slices.Replace(v.Rows, i, i+1, now.Rows...)
	now.Damaged = cmp.Or(now.Damaged, v.Damaged)
	return now, err
}

// take writes the claim of a row of v, which is free.
func (o *claiming) take(v View, row Row) (_ Reply, done bool, err error) {
	i, _ := v.find(row.Worker)
	to, _ := o.claim.Apply(row, v.Now) // which Choose has found free at the same now
	reply := Reply{Row: to, Before: row.Until, Now: v.Now}
	done, err = o.swap(v.Rows[i], to)
	if err != nil && o.confirm(v.Rows[i], &reply.Row) {
		done, err = true, nil // otherwise the row would be reserved for a window, for nobody
	}
	if !done {
		return Reply{}, false, err
	}
	return reply, true, nil
}

// confirm is called when the outcome of a swap of a claim is unknown. It reports whether the
// row is the claimant's now, and leaves in to what it holds.
//
// The same swap again waits for the first, if a server is still at it. If it is refused, the
// first was done, or somebody else was faster. To read the row tells which, but says too
// little: a COMMIT that was cut off can be seen before the synchronous replica has it. So the
// row is written again. That write comes after the first, and promises the same.
//
// What follows is the same as after an answer to the claim that came late.
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

// Renew implements [Store]. A row that is damaged is lost.
func (s *RegisterStore) Renew(ctx context.Context, r Renewal) (Reply, error) {
	return s.change(ctx, r.Space, r.Worker, r.Nonce, r.Lost, r.Apply)
}

// Release implements [Store]. A row that is damaged is lost.
func (s *RegisterStore) Release(ctx context.Context, r Release) error {
	_, err := s.change(ctx, r.Space, r.Worker, r.Nonce, r.Lost, func(row Row, _ Millis) (Row, error) { return r.Apply(row) })
	return err
}

// change applies an operation to the row of its holder.
//
// A row that has the nonce of the operation already is refused like any other that the
// holder does not know, since a copy of the process may have drawn the same nonce, and they
// must not both go on. But if a swap of this call was refused, it may be that which was
// done, as by a proxy that sends it twice. Then the outcome is unknown.
func (s *RegisterStore) change(ctx context.Context, sp Space, worker int64, nonce string,
	lost func(Reason) *LostError, apply func(Row, Millis) (Row, error)) (Reply, error) {
	if err := sp.Check(); err != nil {
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
		if v.Layout != sp.Layout { // which the swap would refuse again and again
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

// Fence implements [Fencer], row by row. A row that is missing is left out. One that is
// damaged is an error, after the others have been fenced.
func (s *RegisterStore) Fence(ctx context.Context, f Fencing) error {
	if err := f.Space.Check(); err != nil {
		return err
	}
	// Its trips are as many as there are rows, and each may take what is left.
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
	if err := sp.Check(); err != nil {
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
