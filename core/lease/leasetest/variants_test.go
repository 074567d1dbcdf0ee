package leasetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/leasetest"
)

// A variant is a store with one mistake. A method that is nil is correct.
type variant struct {
	claim   func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error)
	renew   func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error)
	release func(v broken, ctx context.Context, r leasestore.Release) error
	rows    func(v broken, ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error)
	fence   func(v broken, ctx context.Context, f leasestore.Fencing) error
	spaces  func(spaces []leasestore.Space) []leasestore.Space
	holders func(all []leasestore.Holder) []leasestore.Holder
	harness func(w *world, h *leasetest.Harness)

	caught []string // the subtests that were written for it, and must fail
}

// broken is a handle on a store of that variant.
type broken struct {
	handle
	variant
	*memory
}

// memory is the state that a handle keeps although it must not.
type memory struct {
	mu  sync.Mutex
	rng *rand.Rand
	row map[int64]leasestore.Row
}

func (v broken) Claim(ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
	if v.claim == nil {
		return v.handle.Claim(ctx, c)
	}
	return v.claim(v, ctx, c)
}

func (v broken) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	if v.renew == nil {
		return v.handle.Renew(ctx, r)
	}
	return v.renew(v, ctx, r)
}

func (v broken) Release(ctx context.Context, r leasestore.Release) error {
	if v.release == nil {
		return v.handle.Release(ctx, r)
	}
	return v.release(v, ctx, r)
}

func (v broken) Rows(ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
	if v.rows == nil {
		return v.handle.Rows(ctx, s)
	}
	return v.rows(v, ctx, s)
}

func (v broken) Spaces(ctx context.Context) ([]leasestore.Space, error) {
	spaces, err := v.handle.Spaces(ctx)
	if v.spaces != nil {
		spaces = v.spaces(spaces)
	}
	return spaces, err
}

func (v broken) Fence(ctx context.Context, f leasestore.Fencing) error {
	if v.fence == nil {
		return v.handle.Fence(ctx, f)
	}
	return v.fence(v, ctx, f)
}

func (v broken) History(ctx context.Context, s leasestore.Space, worker int64) ([]leasestore.Holder, error) {
	all, err := v.handle.History(ctx, s, worker)
	if v.holders != nil {
		all = v.holders(all)
	}
	return all, err
}

func (v broken) mem() *leasetest.Memory { return v.w.mem.Load() }

// stored returns the row of a worker.
func (v broken) stored(s leasestore.Space, worker int64) (leasestore.Row, bool) {
	rows, _, _ := v.mem().Rows(context.Background(), s)
	i := slices.IndexFunc(rows, func(r leasestore.Row) bool { return r.Worker == worker })
	if i < 0 {
		return leasestore.Row{}, false
	}
	return rows[i], true
}

func (v broken) millis() leasestore.Millis { return leasestore.MillisOf(v.w.now()) }

// renewAs renews with apply in place of the correct Apply.
func (v broken) renewAs(ctx context.Context, r leasestore.Renewal, apply func(row leasestore.Row, now leasestore.Millis) (leasestore.Row, error)) (leasestore.Reply, error) {
	before, ok := v.stored(r.Space, r.Worker)
	if !ok || ctx.Err() != nil {
		return v.handle.Renew(ctx, r)
	}
	now := v.millis()
	row, err := apply(before, now)
	if err != nil {
		return leasestore.Reply{}, err
	}
	v.mem().Set(r.Space, row)
	return leasestore.Reply{Row: row, Before: before.Until, Now: now}, nil
}

// fenceAs fences with apply in place of the correct Apply.
func (v broken) fenceAs(f leasestore.Fencing, apply func(row leasestore.Row) leasestore.Row) error {
	rows, _, _ := v.mem().Rows(context.Background(), f.Space)
	if len(rows) == 0 {
		return v.mem().Fence(context.Background(), f)
	}
	for _, row := range rows {
		v.mem().Set(f.Space, apply(row))
	}
	return nil
}

// after edits the row that a claim or renewal has written, and returns it.
func (v broken) after(s leasestore.Space, r leasestore.Reply, err error, edit func(row *leasestore.Row)) (leasestore.Reply, error) {
	if err == nil {
		edit(&r.Row)
		v.mem().Set(s, r.Row)
	}
	return r, err
}

var variants = map[string]variant{
	"right": {},

	"claims a second row for a claim that comes twice": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			owner := c.Owner
			c.Owner = fmt.Sprintf("%032x", rand.Uint64())
			r, err := v.handle.Claim(ctx, c)
			return v.after(c.Space, r, err, func(row *leasestore.Row) { row.Owner = owner })
		},
		caught: []string{"ClaimDeliveredTwiceHoldsOneRow"},
	},

	"takes the claim of a copy for the first": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			r, err := v.handle.Claim(ctx, c)
			if rows, now, _ := v.mem().Rows(ctx, c.Space); err != nil {
				for _, row := range rows {
					if row.Owner == c.Owner && row.Nonce == c.Nonce {
						return leasestore.Reply{Row: row, Now: now}, nil
					}
				}
			}
			return r, err
		},
		caught: []string{"ClaimDeliveredTwiceHoldsOneRow", "OneOfIdenticalRequestsWins"},
	},
	"takes the renewal of a copy for the first": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			if row, ok := v.stored(r.Space, r.Worker); err != nil && ok && row.Nonce == r.Nonce {
				return leasestore.Reply{Row: row, Now: leasestore.MillisOf(v.w.now())}, nil
			}
			return reply, err
		},
		caught: []string{"RequestDeliveredTwiceIsDoneOnce", "OneOfIdenticalRequestsWins"},
	},
	"takes the release of a copy for the first": {
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			err := v.handle.Release(ctx, r)
			if row, ok := v.stored(r.Space, r.Worker); err != nil && ok && row.Nonce == r.Nonce {
				return nil
			}
			return err
		},
		caught: []string{"RequestDeliveredTwiceIsDoneOnce"},
	},

	// -- the history
	"keeps the last holder alone": {
		holders: func(all []leasestore.Holder) []leasestore.Holder { return all[max(0, len(all)-1):] },
		caught:  []string{"HoldersAreKept", "OneOfSimultaneousClaimsIsRecorded"},
	},
	"keeps 99": {
		holders: func(all []leasestore.Holder) []leasestore.Holder { return all[max(0, len(all)-99):] },
		caught:  []string{"TheLastHundredHoldersAreKept"},
	},
	"knows claims with a record alone": {
		holders: func(all []leasestore.Holder) []leasestore.Holder {
			return slices.DeleteFunc(all, func(h leasestore.Holder) bool { return h.Epoch == 0 })
		},
		caught: []string{"TheLastHundredHoldersAreKept", "FencedTimeIsOfSomebody", "ClaimsOfAnOlderVersionAreSeen"},
	},
	"lets a retirement begin when it was asked for": {
		holders: func(all []leasestore.Holder) []leasestore.Holder {
			for i := range all {
				all[i].From = max(all[i].From, 1)
			}
			return all
		},
		caught: []string{"RetirementIsRecorded"},
	},

	// -- holders and fences
	"forgets the holder at a renewal": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			return v.renewAs(ctx, r, func(row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				row.Holder = ""
				return r.Apply(row, now)
			})
		},
		caught: []string{"HoldersAreListed", "RandomOperationsDoWhatThePureFunctionsSay"},
	},
	"lists one space of a namespace": {
		spaces: func(spaces []leasestore.Space) []leasestore.Space {
			return slices.CompactFunc(spaces, func(a, b leasestore.Space) bool { return a.Namespace == b.Namespace })
		},
		caught: []string{"SpacesAreListed"},
	},
	"lists spaces without the layout": {
		spaces: func(spaces []leasestore.Space) []leasestore.Space {
			for i := range spaces {
				spaces[i].Layout = ""
			}
			return spaces
		},
		caught: []string{"SpacesAreListed"},
	},
	"fences by raising limits only": {
		fence: func(v broken, _ context.Context, f leasestore.Fencing) error {
			return v.fenceAs(f, func(row leasestore.Row) leasestore.Row {
				row.Until = max(row.Until, f.Until)
				return row
			})
		},
		caught: []string{"FenceRaisesEveryRow", "FenceEndsLeases"},
	},
	"fences by setting limits": {
		fence: func(v broken, _ context.Context, f leasestore.Fencing) error {
			return v.fenceAs(f, func(row leasestore.Row) leasestore.Row {
				row.Until = 0
				return f.Apply(row)
			})
		},
		caught: []string{"FenceRaisesEveryRow"},
	},
	"fences rows that are not held only": {
		fence: func(v broken, _ context.Context, f leasestore.Fencing) error {
			return v.fenceAs(f, func(row leasestore.Row) leasestore.Row {
				if row.Owner != "" {
					return row
				}
				return f.Apply(row)
			})
		},
		caught: []string{"FenceRaisesEveryRow", "FenceEndsLeases"},
	},
	"fences no space that is new": {
		fence: func(v broken, ctx context.Context, f leasestore.Fencing) error {
			if rows, _, _ := v.mem().Rows(ctx, f.Space); len(rows) == 0 {
				return nil
			}
			return v.handle.Fence(ctx, f)
		},
		caught: []string{"FenceMakesTheRows"},
	},
	"fences whatever the layout": {
		fence:  func(v broken, _ context.Context, f leasestore.Fencing) error { return v.fenceAs(f, f.Apply) },
		caught: []string{"FenceIsRefused"},
	},

	// -- compare and set
	"renews without compare-and-set": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			return v.renewAs(ctx, r, func(row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				r.Epoch, r.Owner, r.Known = row.Epoch, row.Owner, []string{row.Nonce}
				return r.Apply(row, now)
			})
		},
		caught: []string{"RenewalByAnotherIsRefused", "StaleHolderHasNoEffect", "OneOfSimultaneousRenewalsWins", "RandomOperationsDoWhatThePureFunctionsSay", "ConcurrentOperationsAreLinearizable"},
	},
	"renews whoever knows the owner": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			return v.renewAs(ctx, r, func(row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				r.Known = []string{row.Nonce}
				return r.Apply(row, now)
			})
		},
		caught: []string{"RenewalByAnotherIsRefused", "OneOfSimultaneousRenewalsWins", "RandomOperationsDoWhatThePureFunctionsSay"},
	},
	"renews whoever knows the epoch": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			return v.renewAs(ctx, r, func(row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				r.Owner = row.Owner
				return r.Apply(row, now)
			})
		},
		caught: []string{"RenewalByAnotherIsRefused"},
	},
	"reads and writes a renewal apart": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			return v.renewAs(ctx, r, func(row leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
				time.Sleep(time.Millisecond) // for another to come between
				return r.Apply(row, now)
			})
		},
		caught: []string{"OneOfSimultaneousRenewalsWins"},
	},
	"reads and writes a claim apart": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			rows, now, err := v.handle.Rows(ctx, c.Space)
			if err != nil || len(rows) == 0 || c.Check(now) != nil {
				return v.handle.Claim(ctx, c)
			}
			before, err := c.Choose(rows, now, rand.IntN)
			if err != nil {
				return leasestore.Reply{}, err
			}
			time.Sleep(time.Millisecond) // for another to come between
			row, _ := c.Apply(before, now)
			v.mem().Set(c.Space, row)
			return leasestore.Reply{Row: row, Before: before.Until, Now: now}, nil
		},
		caught: []string{"OneOfSimultaneousClaimsWins"},
	},
	"takes nonces without case": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			for i, n := range r.Known {
				r.Known[i] = strings.ToLower(n)
			}
			return v.handle.Renew(ctx, r)
		},
		caught: []string{"RenewalByAnotherIsRefused"},
	},
	"knows the last nonce only": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			r.Known = r.Known[max(0, len(r.Known)-1):]
			return v.handle.Renew(ctx, r)
		},
		caught: []string{"RenewalRaisesTheLimit", "RandomOperationsDoWhatThePureFunctionsSay"},
	},
	"renews from memory": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			r, err := v.handle.Claim(ctx, c)
			v.mu.Lock()
			defer v.mu.Unlock()
			v.row[r.Row.Worker] = r.Row
			return r, err
		},
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			v.mu.Lock()
			defer v.mu.Unlock()
			if row, ok := v.row[r.Worker]; ok && row.Owner == r.Owner {
				return v.renewAs(ctx, r, func(_ leasestore.Row, now leasestore.Millis) (leasestore.Row, error) {
					row, err := r.Apply(row, now)
					if err == nil {
						v.row[r.Worker] = row
					}
					return row, err
				})
			}
			return v.handle.Renew(ctx, r)
		},
		caught: []string{"StaleHolderHasNoEffect", "RandomOperationsDoWhatThePureFunctionsSay"},
	},

	// -- limits
	"lowers Until on renewal": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			return v.after(r.Space, reply, err, func(row *leasestore.Row) { row.Until = reply.Now + r.Window })
		},
		caught: []string{"RenewalNeverLowersTheLimit", "RandomOperationsDoWhatThePureFunctionsSay", "LoweredLimitIsShownAndRaised"},
	},
	"believes a lowered Until": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			r.Until = min(r.Until, 0)
			return v.handle.Renew(ctx, r)
		},
		caught: []string{"LoweredLimitIsShownAndRaised"},
	},
	"shows the new limit as Before": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			reply.Before = reply.Row.Until
			return reply, err
		},
		caught: []string{"RenewalRaisesTheLimit", "LoweredLimitIsShownAndRaised"},
	},
	"refuses an unchanged renewal": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			before, _ := v.stored(r.Space, r.Worker)
			reply, err := v.handle.Renew(ctx, r)
			if err == nil && reply.Row.Until == before.Until {
				return leasestore.Reply{}, r.Lost(leasestore.TakenOver)
			}
			return reply, err
		},
		caught: []string{"UnchangedRenewalSucceeds"},
	},
	"does not count renewals": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			return v.after(r.Space, reply, err, func(row *leasestore.Row) { row.Renewals-- })
		},
		caught: []string{"UnchangedRenewalSucceeds", "RenewalRaisesTheLimit"},
	},
	"renews a lapsed row": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			r.Guard = 0
			return v.handle.Renew(ctx, r)
		},
		caught: []string{"LapsedRenewalIsRefused"},
	},
	"takes over a guarded row": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			c.Guard = 0
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"GuardDelaysTakeover", "RandomOperationsDoWhatThePureFunctionsSay"},
	},
	"follows a clock that is wrong": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			r.Skew = 24 * 60 * 60_000
			return v.handle.Renew(ctx, r)
		},
		caught: []string{"RenewalRaisesTheLimit"},
	},
	"keeps time in seconds": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			r, err := v.handle.Claim(ctx, c)
			return v.after(c.Space, r, err, func(row *leasestore.Row) { row.Until = row.Until / 1000 * 1000 })
		},
		caught: []string{"FirstClaimMakesTheRows", "ClaimTakesOverAnExpiredRow"},
	},

	// -- claims
	"chooses in a fixed order": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			rows, now, err := v.handle.Rows(ctx, c.Space)
			if row, none := c.Choose(rows, now, func(int) int { return 0 }); err == nil && none == nil {
				c.Only = []int64{row.Worker}
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"ClaimsChooseAtRandom"},
	},
	"chooses with a fixed seed": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			rows, now, err := v.handle.Rows(ctx, c.Space)
			v.mu.Lock()
			defer v.mu.Unlock()
			if row, none := c.Choose(rows, now, v.rng.IntN); err == nil && none == nil {
				c.Only = []int64{row.Worker}
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"ClaimsChooseAtRandom"},
	},
	"ignores Only": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			c.Only = nil
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"ClaimTakesOnlyWhatItMay", "LargeSpaceWorks", "RandomOperationsDoWhatThePureFunctionsSay"},
	},
	"takes an empty Only for nil": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			if len(c.Only) == 0 {
				c.Only = nil
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"ClaimTakesOnlyWhatItMay"},
	},
	"writes despite skew": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			c.Now = v.millis()
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"ClaimIsRefusedWhenClocksAreApart"},
	},
	"makes the space before it looks at the clock": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			if c.Check(v.millis()) != nil {
				right := c
				right.Now, right.Only = v.millis(), nil
				if r, err := v.handle.Claim(ctx, right); err == nil {
					_ = v.handle.Release(ctx, leasestore.Release{
						Space: c.Space, Worker: r.Row.Worker, Epoch: r.Row.Epoch, Owner: r.Row.Owner,
						Known: []string{r.Row.Nonce}, Nonce: r.Row.Nonce, End: r.Before,
					})
				}
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"ClaimIsRefusedWhenClocksAreApart"},
	},
	"keeps the epoch of a claim": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			r, err := v.handle.Claim(ctx, c)
			return v.after(c.Space, r, err, func(row *leasestore.Row) { row.Epoch = max(1, row.Epoch-1) })
		},
		caught: []string{"ClaimTakesOverAnExpiredRow"},
	},
	"names no earliest time": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			r, err := v.handle.Claim(ctx, c)
			if errors.Is(err, leasestore.ErrNoFreeWorker) {
				err = leasestore.ErrNoFreeWorker
			}
			return r, err
		},
		caught: []string{"NoFreeWorkerErrorNamesTheEarliest"},
	},
	"counts all rows, not those of Only": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			r, err := v.handle.Claim(ctx, c)
			if errors.Is(err, leasestore.ErrNoFreeWorker) {
				c.Only = nil
				if _, all := v.handle.Claim(ctx, c); all != nil {
					err = all
				}
			}
			return r, err
		},
		caught: []string{"NoFreeWorkerErrorNamesTheEarliest", "ClaimTakesOnlyWhatItMay"},
	},

	// -- retired rows
	"takes a retirement for a claim": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			c.Retire = false
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"RetiredRowIsNeverClaimed", "UsedRowIsNotRetired", "RandomOperationsDoWhatThePureFunctionsSay"},
	},
	"retires a used row": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			retire := c.Retire
			c.Retire = false
			r, err := v.handle.Claim(ctx, c)
			if !retire {
				return r, err
			}
			return v.after(c.Space, r, err, func(row *leasestore.Row) { row.Until = leasestore.Retired + max(r.Now, c.Now) })
		},
		caught: []string{"UsedRowIsNotRetired"},
	},
	"claims a retired row": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			rows, _, _ := v.handle.Rows(ctx, c.Space)
			for _, row := range rows {
				if row.Retired() && !c.Retire && ctx.Err() == nil {
					row.Owner, row.Until = "", row.Until-leasestore.Retired
					v.mem().Set(c.Space, row)
				}
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"RetiredRowIsNeverClaimed"},
	},
	"fences retired rows too": {
		fence: func(v broken, _ context.Context, f leasestore.Fencing) error {
			return v.fenceAs(f, func(row leasestore.Row) leasestore.Row {
				until := row.Until
				row.Until = 0
				row = f.Apply(row)
				row.Until = max(until, f.Until)
				return row
			})
		},
		caught: []string{"RetiredRowIsNeverClaimed"},
	},
	"never gives a retired row back": {
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			if row, ok := v.stored(r.Space, r.Worker); ok && row.Retired() {
				return r.Lost(leasestore.TakenOver)
			}
			return v.handle.Release(ctx, r)
		},
		caught: []string{"RetirementIsUndone"},
	},

	// -- rows that are claimed for good
	"renews no row further than an hour ahead": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			return v.after(r.Space, reply, err, func(row *leasestore.Row) { row.Until = min(row.Until, reply.Now+leasestore.MaxAhead+r.Window) })
		},
		caught: []string{"ClaimForGoodLasts"},
	},
	"drops the holder of a row that is renewed": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			return v.after(r.Space, reply, err, func(row *leasestore.Row) { row.Holder = "" })
		},
		caught: []string{"ClaimForGoodLasts"},
	},

	// -- releases
	"deletes rows on release": {
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			err := v.handle.Release(ctx, r)
			if err == nil {
				v.mem().Delete(r.Space, r.Worker)
			}
			return err
		},
		caught: []string{"ReleaseFreesTheRowAtOnce", "RandomOperationsDoWhatThePureFunctionsSay"},
	},
	"keeps the limit on release": {
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			row, _ := v.stored(r.Space, r.Worker)
			r.End = max(r.End, row.Until)
			return v.handle.Release(ctx, r)
		},
		caught: []string{"ReleaseFreesTheRowAtOnce"},
	},
	"releases for anybody": {
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			if row, ok := v.stored(r.Space, r.Worker); ok && ctx.Err() == nil {
				r.Epoch, r.Owner, r.Known = row.Epoch, row.Owner, []string{row.Nonce}
			}
			return v.handle.Release(ctx, r)
		},
		caught: []string{"ReleaseByAnotherIsRefused", "StaleHolderHasNoEffect", "RequestDeliveredTwiceIsDoneOnce"},
	},
	"keeps the epoch on release": {
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			err := v.handle.Release(ctx, r)
			if row, ok := v.stored(r.Space, r.Worker); ok && err == nil {
				row.Epoch--
				v.mem().Set(r.Space, row)
			}
			return err
		},
		caught: []string{"ReleaseFreesTheRowAtOnce", "RandomOperationsDoWhatThePureFunctionsSay"},
	},
	"lets a released row wait": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			rows, now, _ := v.handle.Rows(ctx, c.Space)
			for _, row := range rows {
				if row.Owner == "" && row.Until > now {
					row.Owner = "nobody"
					v.mem().Set(c.Space, row)
				}
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"ReleaseFreesTheRowAtOnce"},
	},

	// -- answers
	"answers success on unknown": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			if errors.Is(err, leasestore.ErrLost) {
				err = nil
			}
			return reply, err
		},
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			if err := v.handle.Release(ctx, r); !errors.Is(err, leasestore.ErrLost) {
				return err
			}
			return nil
		},
		caught: []string{"RenewalByAnotherIsRefused", "ReleaseByAnotherIsRefused", "StaleHolderHasNoEffect", "LapsedRenewalIsRefused", "DeletedRowStaysGone"},
	},
	"gives every loss one reason": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			if errors.Is(err, leasestore.ErrLost) {
				err = r.Lost(leasestore.TakenOver)
			}
			return reply, err
		},
		caught: []string{"RenewalByAnotherIsRefused", "LapsedRenewalIsRefused", "DeletedRowStaysGone"},
	},
	"takes no reply for a refusal": {
		harness: func(_ *world, h *leasetest.Harness) {
			lossy := h.LosesReplies
			h.LosesReplies = func(t *testing.T) leasetest.Store { return refuses{lossy(t)} }
		},
		caught: []string{"LostReplyIsUnknown"},
	},
	"takes no reply for success": {
		harness: func(_ *world, h *leasetest.Harness) {
			lossy := h.LosesReplies
			h.LosesReplies = func(t *testing.T) leasetest.Store { return succeeds{lossy(t)} }
		},
		caught: []string{"LostReplyIsUnknown"},
	},
	"answers success when the context ends": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			reply, err := v.handle.Renew(ctx, r)
			if ctx.Err() != nil {
				err = nil
			}
			return reply, err
		},
		caught: []string{"DoneContextWritesNothing", "EndingContextEndsTheCall"},
	},
	"ignores a context that is done": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			if ctx.Err() != nil {
				ctx = context.WithoutCancel(ctx)
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"DoneContextWritesNothing"},
	},
	"shows its password": {
		harness: func(_ *world, h *leasetest.Harness) {
			h.Unreachable = func(*testing.T) leasetest.Store { return talks{nowhere{}} }
		},
		caught: []string{"UnreachableStoreKeepsItsSecret"},
	},

	// -- rows and spaces
	"makes missing rows anew": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			if rows, now, err := v.handle.Rows(ctx, c.Space); err == nil && c.Check(now) == nil && len(rows) > 0 {
				for worker := range c.Space.Workers {
					if !slices.ContainsFunc(rows, func(r leasestore.Row) bool { return r.Worker == worker }) {
						v.mem().Set(c.Space, leasestore.Row{Worker: worker})
					}
				}
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"DeletedRowStaysGone"},
	},
	"makes a row when it is asked for": {
		rows: func(v broken, ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
			rows, now, err := v.handle.Rows(ctx, s)
			return slices.DeleteFunc(rows, func(r leasestore.Row) bool { return r.Epoch == 0 }), now, err
		},
		caught: []string{"FirstClaimMakesTheRows", "LargeSpaceWorks"},
	},
	"makes rows to show them": {
		rows: func(v broken, ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
			if rows, now, err := v.handle.Rows(ctx, s); err != nil || len(rows) > 0 {
				return rows, now, err
			}
			v.mem().Set(s, leasestore.Row{})
			return v.handle.Rows(ctx, s)
		},
		caught: []string{"RowsMakesNone"},
	},
	"makes the space twice": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			rows, _, _ := v.handle.Rows(ctx, c.Space)
			time.Sleep(time.Millisecond) // for another to come between
			if len(rows) == 0 {
				if now := v.millis(); ctx.Err() == nil && c.Check(now) == nil {
					v.mem().Restore(leasetest.Snapshot{})
				}
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"SimultaneousFirstClaimsGetDistinctRowsOfOneSpace"},
	},
	"forgets the fingerprint": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			c.Space.Layout = ""
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"NamespaceKeepsItsLayout"},
	},
	"keeps a fingerprint per datacenter": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			c.Space = perDatacenter(c.Space)
			return v.handle.Claim(ctx, c)
		},
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			r.Space = perDatacenter(r.Space)
			return v.handle.Renew(ctx, r)
		},
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			r.Space = perDatacenter(r.Space)
			return v.handle.Release(ctx, r)
		},
		rows: func(v broken, ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
			return v.handle.Rows(ctx, perDatacenter(s))
		},
		caught: []string{"NamespaceKeepsItsLayout"},
	},
	"has no free row in what is no space": {
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			if c.Space.Validate() != nil {
				return leasestore.Reply{}, &leasestore.NoFreeWorkerError{Namespace: c.Space.Namespace}
			}
			return v.handle.Claim(ctx, c)
		},
		caught: []string{"WhatIsNoSpaceIsRefused"},
	},
	"finds a row lost in what is no space": {
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			if r.Space.Validate() != nil {
				return leasestore.Reply{}, r.Lost(leasestore.Gone)
			}
			return v.handle.Renew(ctx, r)
		},
		caught: []string{"WhatIsNoSpaceIsRefused"},
	},
	"finds a released row lost in what is no space": {
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			if r.Space.Validate() != nil {
				return r.Lost(leasestore.Gone)
			}
			return v.handle.Release(ctx, r)
		},
		caught: []string{"WhatIsNoSpaceIsRefused"},
	},
	"lists no rows in what is no space": {
		rows: func(v broken, ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
			if s.Validate() != nil {
				return nil, 0, nil
			}
			return v.handle.Rows(ctx, s)
		},
		caught: []string{"WhatIsNoSpaceIsRefused"},
	},
	"takes namespaces without case": named(strings.ToLower, "SpacesDoNotSeeEachOther"),
	"takes _ in namespaces for any": named(func(n string) string { return strings.ReplaceAll(n, "_", ".") }, "SpacesDoNotSeeEachOther"),
	"cuts namespaces at 63 bytes":   named(func(n string) string { return n[:min(len(n), 63)] }, "SpacesDoNotSeeEachOther"),
	"joins namespace and datacenter": spaced(func(s leasestore.Space) leasestore.Space {
		s.Namespace, s.Datacenter = fmt.Sprint(s.Namespace, s.Datacenter), 0
		return s
	}, "SpacesDoNotSeeEachOther"),
	"forgets on restart": {
		harness: func(w *world, h *leasetest.Harness) {
			h.Restart = func(*testing.T) { w.mem.Store(leasetest.NewMemory(w.now)) }
		},
		caught: []string{"RowsSurviveARestart"},
	},
}

func perDatacenter(s leasestore.Space) leasestore.Space {
	s.Namespace = fmt.Sprintf("%s.%d", s.Namespace, s.Datacenter)
	return s
}

func named(name func(string) string, caught string) variant {
	return spaced(func(s leasestore.Space) leasestore.Space {
		s.Namespace = name(s.Namespace)
		return s
	}, caught)
}

// spaced is a store that confuses some spaces with others.
func spaced(as func(leasestore.Space) leasestore.Space, caught string) variant {
	return variant{
		claim: func(v broken, ctx context.Context, c leasestore.Claim) (leasestore.Reply, error) {
			c.Space = as(c.Space)
			return v.handle.Claim(ctx, c)
		},
		renew: func(v broken, ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
			r.Space = as(r.Space)
			return v.handle.Renew(ctx, r)
		},
		release: func(v broken, ctx context.Context, r leasestore.Release) error {
			r.Space = as(r.Space)
			return v.handle.Release(ctx, r)
		},
		rows: func(v broken, ctx context.Context, s leasestore.Space) ([]leasestore.Row, leasestore.Millis, error) {
			return v.handle.Rows(ctx, as(s))
		},
		caught: []string{caught},
	}
}

// refuses reports every unknown outcome as a loss.
type refuses struct{ leasetest.Store }

func (s refuses) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	reply, err := s.Store.Renew(ctx, r)
	if err != nil {
		err = r.Lost(leasestore.TakenOver)
	}
	return reply, err
}

// succeeds reports every unknown outcome as a success.
type succeeds struct{ leasetest.Store }

func (s succeeds) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	reply, _ := s.Store.Renew(ctx, r)
	return reply, nil
}

// talks includes the password in its errors.
type talks struct{ leasetest.Store }

func (s talks) Renew(ctx context.Context, r leasestore.Renewal) (leasestore.Reply, error) {
	reply, err := s.Store.Renew(ctx, r)
	return reply, fmt.Errorf("dial user:%s@host: %w", secret, err)
}

// variantsEnv holds what a child process of the test below runs: claims by variant, as JSON.
const variantsEnv = "LEASETEST_VARIANTS"

// names are the variants in the order of their numbers.
var names = slices.Sorted(maps.Keys(variants))

// TestVariant is run by the child processes of the test below. Its subtests are named for the
// numbers of variants and for claims.
func TestVariant(t *testing.T) {
	if os.Getenv(variantsEnv) == "" {
		t.Skip("for child processes of another test only")
	}
	var wanted map[string][]string
	if err := json.Unmarshal([]byte(os.Getenv(variantsEnv)), &wanted); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(wanted)), func(name string) bool { return len(variants[name].caught) == 0 }) {
		leasetest.SetCallTimeout(3 * time.Second) // some wrong ones would make it wait forever
	}
	for i, name := range names {
		claims, ok := wanted[name]
		if !ok {
			continue
		}
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			v := variants[name]
			leasetest.RunOnly(t, claims, func(*testing.T) leasetest.Harness {
				w := newWorld()
				h := w.harness(func(w *world, _ leasetest.Store) leasetest.Store {
					return broken{handle{w}, v, &memory{rng: rand.New(rand.NewPCG(1, 2)), row: map[int64]leasestore.Row{}}}
				})
				if v.harness != nil {
					v.harness(w, &h)
				}
				return h
			})
		})
	}
}

var failed = regexp.MustCompile(`(?m)^ +--- FAIL: TestVariant/(\d+)/(\w+)`)

// runVariants runs claims of variants in another process, because a test cannot fail without
// failing its parents, and in one for all, because to start one takes longer than the suite. It
// returns those that fail.
func runVariants(t *testing.T, wanted map[string][]string) (claims map[string][]string, out []byte, err error) {
	t.Helper()
	text, err := json.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVariant$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), variantsEnv+"="+string(text))
	out, err = cmd.CombinedOutput()
	claims = map[string][]string{}
	for _, m := range failed.FindAllSubmatch(out, -1) {
		i, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		claims[names[i]] = append(claims[names[i]], string(m[2]))
	}
	return claims, out, err
}

func TestSuitePassesRightStores(t *testing.T) {
	wanted := map[string][]string{}
	for name, v := range variants {
		if len(v.caught) == 0 {
			wanted[name] = nil // all
		}
	}
	if got, out, err := runVariants(t, wanted); err != nil || len(wanted) == 0 {
		t.Errorf("suite on the right stores %q fails %q, %v; want nothing to fail\n%s", slices.Sorted(maps.Keys(wanted)), got, err, out)
	}
}

// Some variants are wrong only if one call comes between two steps of another, which a machine that
// stalls at the wrong moment prevents, so they get several runs.
func TestSuiteCatchesBrokenStores(t *testing.T) {
	missed := map[string][]string{} // the claims that have not failed; others would tell nothing
	for name, v := range variants {
		if len(v.caught) > 0 {
			missed[name] = v.caught
		}
	}
	var out []byte
	for range 5 {
		var got map[string][]string
		got, out, _ = runVariants(t, missed) // it fails
		for name, claims := range missed {
			missed[name] = slices.DeleteFunc(slices.Clone(claims), func(c string) bool { return slices.Contains(got[name], c) })
			if len(missed[name]) == 0 {
				delete(missed, name)
			}
		}
		if len(missed) == 0 {
			return
		}
	}
	for name, claims := range missed {
		t.Errorf("suite on a store that %s passes %q in five runs; want each to fail", name, claims)
	}
	t.Logf("the last run:\n%s", out)
}
