package leasestore

import (
	"cmp"
	"context"
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
