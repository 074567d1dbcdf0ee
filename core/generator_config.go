package core

import (
	"cmp"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"
)

// Config configures a Generator. Worker is required; every other field has a default.
//
// Of the durations that limit something, RollbackWait, MaxLeaseWait and MaxBehind, zero means
// the default and a negative value means no limit.
type Config struct {
	// Layout gives the bits of the IDs their meaning. All processes that write to one table
	// must have the same.
	//
	// Defaults to Default().
	Layout Layout

	// Datacenter is the value of the datacenter bits, 0..1<<Layout.DatacenterBits-1.
	// DatacenterFromEnv reads it from the environment.
	//
	// Defaults to 0.
	Datacenter int64

	// Worker supplies the number for the worker bits, which no other live process of this
	// datacenter may have. Required.
	Worker Worker

	// RunAhead is how far the time in an ID may be ahead of the clock, at most 10 s, rounded
	// down to whole ticks. It lets a burst take the numbers of the next milliseconds, and
	// callers at the full rate sleep instead of spin. Less than a tick, such as 1 ns, means
	// none, which costs about 15 % of the full rate.
	//
	// A new generator leaves this much time free, because an earlier process with the same
	// worker may have used it. All processes that use one worker number in turn therefore need
	// the same RunAhead. If an earlier generator of this process had a larger one, Continue
	// begins that far ahead of the clock, and the other policies refuse until the clock is
	// there.
	//
	// Defaults to 20 ms. Under Backfill the limit is 128 ticks, and the default is no more than
	// that.
	RunAhead time.Duration

	// Rollback selects what happens when the wall clock has stepped back.
	//
	// Defaults to Continue.
	Rollback Rollback

	// RollbackWait is how long one call may wait for the clock under Wait. A Fill that is taken
	// in pieces may wait that long for each of them. A negative value means until the call's
	// context ends. It must be zero with any other policy.
	//
	// Defaults to 5 ms.
	RollbackWait time.Duration

	// SequenceStart selects where the sequence begins in a new tick. With Zero and a low rate,
	// nearly all IDs are multiples of 1<<Layout.SequenceBits, so choose Random if anything
	// shards by id % n.
	//
	// Defaults to Zero.
	SequenceStart SequenceStart

	// MaxLeaseWait is how long one call may wait for a leased worker number, because all the
	// reserved time is used up or the lease was lost, before it fails with
	// ErrReservationExhausted. A Fill may wait that long for each piece that it takes, but only
	// that long in all for pieces that it then has to drop because of MaxBehind. A negative
	// value means until the call's context ends. It has no effect on a StaticWorker.
	//
	// Defaults to 5 s.
	MaxLeaseWait time.Duration

	// MaxBehind bounds how far the end of an ID's tick may be behind the clock. IDs fall behind
	// when the store of a leased worker number is unreachable and the clock passes the reserved
	// time; calls that reach the bound wait for the lease and fail with
	// ErrReservationExhausted. A negative value means any distance. It has no effect on a
	// StaticWorker.
	//
	// The clock meant here is the generator's own. It follows the wall clock, except in a
	// single step beyond the reserved time, after which either the wall clock is wrong or the
	// machine was suspended: IDs then stay behind the wall clock until the lease is renewed.
	//
	// Defaults to 1 s.
	MaxBehind time.Duration
}

// settings are the parts of a Config that a counter needs, validated and with defaults.
type settings struct {
	ahead        int64    // run-ahead, ns, whole ticks
	rollback     Rollback // never Refuse, which is Wait with a rollbackWait of 0
	rollbackWait time.Duration
	begin        sequenceStart
	leaseWait    time.Duration
	behind       time.Duration // MaxBehind
}

func (c *Config) settings() (settings, error) {
	if c.Rollback < Continue || c.Rollback > Backfill {
		return settings{}, invalid("Config.Rollback", c.Rollback.String(), "Continue, Refuse, Wait or Backfill")
	}
	if c.Rollback != Wait && c.RollbackWait != 0 {
		return settings{}, invalid("Config.RollbackWait", c.RollbackWait.String(), "0 unless Config.Rollback is Wait")
	}
	if c.SequenceStart < Zero || c.SequenceStart > Rotating {
		return settings{}, invalid("Config.SequenceStart", c.SequenceStart.String(), "Zero, Random or Rotating")
	}
	ahead, err := c.runAhead()
	s := settings{
		ahead:        int64(ahead.Truncate(c.Layout.Unit)),
		rollback:     c.Rollback,
		rollbackWait: limit(c.RollbackWait, defaultRollbackWait),
		begin:        sequenceStart{c.SequenceStart, new(atomic.Uint64)},
		leaseWait:    limit(c.MaxLeaseWait, defaultLeaseWait),
		behind:       limit(c.MaxBehind, defaultMaxBehind),
	}
	if c.Rollback == Refuse {
		s.rollback, s.rollbackWait = Wait, 0
	}
	return s, err
}

// limit returns d, or the default for zero; a negative d means no limit.
func limit(d, byDefault time.Duration) time.Duration {
	if d < 0 {
		return ever
	}
	return cmp.Or(d, byDefault)
}

func (c *Config) runAhead() (time.Duration, error) {
	greatest, note := maxRunAhead, ""
	if ring := maxRingAhead * c.Layout.Unit; c.Rollback == Backfill && ring < greatest {
		greatest, note = ring, " (128 ticks) under Backfill"
	}
	if c.RunAhead < 0 || c.RunAhead > greatest {
		return 0, invalid("Config.RunAhead", c.RunAhead.String(), "0 for the default, or up to "+greatest.String()+note+"; less than a tick for none")
	}
	return cmp.Or(c.RunAhead, min(defaultRunAhead, greatest)), nil
}

// The default and the greatest Config.RunAhead. On a machine whose processors are all
// busy, goroutines were seen to oversleep by 20 ms (golang/go#53824), so a shorter
// run-ahead loses rate under load.
const (
	defaultRunAhead = 20 * time.Millisecond
	maxRunAhead     = 10 * time.Second
)

// defaultLeaseWait is the default Config.MaxLeaseWait, long enough to replace a lost lease.
const defaultLeaseWait = 5 * time.Second

// defaultMaxBehind is the default Config.MaxBehind. A reader that polls for
// id > last_seen can afford to wait this long for late rows.
const defaultMaxBehind = time.Second

// A SequenceStart selects the first sequence number of a tick that a Generator enters because
// the clock is there. A tick that it enters because the one before was full begins at zero.
//
// At a rate below one ID per tick, every ID is the first of its tick. If that is always number
// zero, all IDs are multiples of 1<<SequenceBits, and of the shards of a table that is sharded
// by id % 16 only one is filled. At 180 IDs per second this still concerns 98 % of the IDs.
// Choose Random for such a table, or Layout.ShardBits.
type SequenceStart int

const (
	// Zero begins at zero, as Twitter's generator does. It is the default, because most
	// databases shard by ranges or hashes of the key, and because it leaves all numbers of a
	// tick to a burst: from any other beginning a burst reaches the next tick sooner and runs
	// further ahead of the clock.
	Zero SequenceStart = iota
	// Random begins at a random sequence number.
	Random
	// Rotating begins one above the last beginning, and wraps to zero after the greatest
	// sequence number. Goroutines that meet at the start of a tick may skip some.
	Rotating
)

// String returns the name of the constant.
func (s SequenceStart) String() string {
	return constant("SequenceStart", int(s), "Zero", "Random", "Rotating")
}

// constant returns the name of a constant of a type.
func constant(of string, n int, names ...string) string {
	if n < 0 || n >= len(names) {
		return of + "(" + strconv.Itoa(n) + ")"
	}
	return names[n]
}

// A sequenceStart is the state of a SequenceStart.
type sequenceStart struct {
	kind    SequenceStart
	rotated *atomic.Uint64
}

// sequence returns the next beginning, at most mask.
func (s sequenceStart) sequence(mask uint64) uint64 {
	switch s.kind {
	case Random:
		return rand.Uint64() & mask
	case Rotating:
		return s.rotated.Add(1) & mask
	default:
		return 0
	}
}
