// Package leasestore defines what a store of leases must do, for authors of stores; package lease
// is for their users. A store either implements [Register], rows that change only by
// compare-and-swap, from which [FromRegister] makes a [Store], or implements Store itself. Package
// leasetest certifies both.
//
// This package is experimental.
package leasestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Store keeps the rows of the leases, one per worker number. For a server that can compare and
// swap a row, implement [Register] instead, which [FromRegister] turns into a Store.
//
// [Claim.Choose] and [Claim.Apply], [Renewal.Apply] and [Release.Apply] define what the three
// operations do to a row. A Store calls them, or does exactly the same. It must guarantee the
// following, which package leasetest checks:
//
//   - Each operation is atomic: it reads a row, applies the operation, and writes the result only
//     if the row is still what was read.
//   - What an operation has written when it returns nil survives a crash of the store, unless
//     LosesWrites says otherwise.
//   - [*NoFreeWorkerError], [*LostError], [*LayoutError] and [*ClockSkewError] mean that nothing was
//     done and nothing will be. After any other error the operation may have been done, or may
//     yet be done at any later time; a Store whose reply is lost returns such an error.
//   - Nothing else changes rows, and rows are never deleted. The rows of a space are made all at
//     once, before its first claim, and never again: what a missing row had reserved is unknown.
//   - It keeps no row in memory between calls, and is safe for concurrent use.
//   - Each operation first returns the error of [Space.Validate], before any I/O.
//   - A first claim that is refused makes neither rows nor layout. The claim that makes a space
//     decides its number of rows.
//   - A request that reaches the store twice writes once. The second is refused, or its outcome
//     is unknown, because it may come from a copy of the process that has drawn the same nonce,
//     and the two must not both go on. Only a Store that sent it twice within one call may answer
//     the second as the first.
//
// A Store returns when ctx ends. Its errors never contain a password.
type Store interface {
	// Claim takes a free row for its caller.
	Claim(ctx context.Context, c Claim) (Reply, error)

	// Renew raises the reserved limit of the caller's row.
	Renew(ctx context.Context, r Renewal) (Reply, error)

	// Release gives the caller's row back.
	Release(ctx context.Context, r Release) error

	// LosesWrites reports whether the store may forget what it has acknowledged, as
	// Redis does. The loss guard is then on unless lease.Config.LossGuard turns it off. The
	// answer does no I/O and does not change.
	//
	// It is part of the interface because uniqueness rests on it. A wrapper that embeds a
	// Store has it too; a type assertion would not find it there.
	LosesWrites() bool
}

// A Store may have further methods. Those of this module have all that apply. Nothing
// rests on them: without one, the call that needs it fails.
type (
	// A Lister shows the rows of a space, in the order of the workers, and the store's
	// clock. It is for operators and for tests. It makes no rows.
	Lister interface {
		Rows(ctx context.Context, s Space) (rows []Row, now Millis, err error)
	}

	// A Catalog lists the spaces that were made, in any order, each with its number of rows and
	// its stored layout. It is for operators, who need not know them, and makes nothing.
	Catalog interface {
		Spaces(ctx context.Context) ([]Space, error)
	}

	// A Fencer ends all leases of a space and raises their limits: see lease.Fence. It makes
	// the rows if there are none. Each row is changed atomically, as by the other
	// operations. After an error some may have been changed and others not.
	Fencer interface {
		Fence(ctx context.Context, f Fencing) error
	}
)

// A Millis is a moment in Unix time, or a length of time, in milliseconds. Stores keep
// time in this unit.
type Millis int64

// MillisOf returns the millisecond in which t is.
func MillisOf(t time.Time) Millis { return Millis(t.UnixMilli()) }

// Time returns the moment m as a time.Time in UTC.
func (m Millis) Time() time.Time { return time.UnixMilli(int64(m)).UTC() }

// Duration returns the length of time m.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// A Space is a set of rows: the worker numbers of one datacenter in one namespace.
// IDs are unique within a namespace.
type Space struct {
	Namespace  string // 1..64 of a-z A-Z 0-9 . _ -
	Datacenter int64  // 0 or more
	Workers    int64  // the rows are 0..Workers-1; 1..65536

	// Layout is what all leases of a namespace must agree on: epoch, unit and widths of the
	// layout, and whether the loss guard is on, in at most 255 printable characters of ASCII.
	// The store keeps the one of the namespace's first claim and refuses every other with a
	// *LayoutError.
	Layout string
}

const (
	maxWorkers = 1 << 16
	maxLayout  = 255
)

// Validate returns a *core.ValueError if s is not a space. A Store calls it first in every
// operation and may rely on it: a namespace needs no quoting in a key, a path or a statement,
// although "." and ".." are namespaces too; there are few enough rows to make them all at once;
// and a column of 255 characters holds the layout.
func (s Space) Validate() error {
	switch {
	case !validNamespace.MatchString(s.Namespace):
		return invalid("Space.Namespace", cut(s.Namespace), wantNamespace)
	case s.Datacenter < 0:
		return invalid("Space.Datacenter", strconv.FormatInt(s.Datacenter, 10), "0 or more")
	case s.Workers < 1 || s.Workers > maxWorkers:
		return invalid("Space.Workers", strconv.FormatInt(s.Workers, 10), fmt.Sprintf("1..%d", maxWorkers))
	case !printable(s.Layout, maxLayout):
		return invalid("Space.Layout", cut(s.Layout), fmt.Sprintf("at most %d printable characters of ASCII", maxLayout))
	}
	return nil
}

// printable reports whether s has at most most characters, all printable ASCII.
func printable(s string, most int) bool {
	return len(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

const (
	maxHolder  = 64
	wantHolder = "at most 64 printable characters of ASCII"
)

// validNamespace is the form of a namespace, and wantNamespace says it in words.
var validNamespace = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,64}$`)

const wantNamespace = "1..64 of the characters a-z A-Z 0-9 . _ -"

// A Row is what a store keeps of one worker number. All fields but Worker are zero until the row
// is claimed for the first time.
type Row struct {
	Worker   int64
	Epoch    int64  // fencing number: grows by one with each claim, release and fencing
	Owner    string // the token of the lease that holds it; empty: free
	Nonce    string // of the last write
	Until    Millis // reserved_until: no ID of this worker has this time or a later one
	Renewals int64  // grows with each write, so that a write always changes the row
	Holder   string // the name of the process that holds it, for people: Claim.Holder
}

// Retired is the least Until of a retired row, which no claim takes: Until is Retired plus the
// moment of the retirement. It is in the year 37648, so that a version of this module that knows
// no retired rows does not take one either, and numbers that servers keep as doubles hold it. A
// claim with Retired as its Window takes a row until that is released, whatever the time is.
const Retired = Millis(1) << 50

// Retired reports whether a [Claim] with Retire has taken the row for good.
func (r *Row) Retired() bool { return r.Until >= Retired }

// Written returns when the lease or the region that holds the row has claimed or renewed it last, by the
// clock of its process, and false if nobody holds it or if the nonce does not say, such as that of an
// earlier version.
func (r *Row) Written() (at time.Time, ok bool) {
	if r.Owner == "" || len(r.Nonce) != 32 {
		return at, false
	}
	ns, err := strconv.ParseInt(r.Nonce[:16], 16, 64)
	at = time.Unix(0, ns)
	longest := MaxAhead.Duration() + longestWindow
	if r.Retired() { // Until says when the row was taken, and nearly nothing of later marks
		return at, err == nil && at.Sub((r.Until-Retired).Time()) > -longest
	}
	// A token that begins at random is hardly ever of such a time.
	return at, err == nil && at.Sub(r.Until.Time()).Abs() < longest
}

// longestWindow is the longest window of a lease.
const longestWindow = 10 * time.Minute

// A Reply is a store's answer to a claim or a renewal that it has done.
type Reply struct {
	Row    Row    // as written
	Before Millis // Until as it was found
	Now    Millis // the store's clock
}

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
	inSpace := func(worker int64) bool { return worker >= 0 && worker < c.Space.Workers }
	if c.Only != nil && !slices.ContainsFunc(c.Only, inSpace) {
		return c.noFreeWorker(nil, now)
	}
	if apart := now - c.Now; apart > c.Skew || apart < -c.Skew {
		return &ClockSkewError{Store: now.Time(), Local: c.Now.Time(), Max: c.Skew.Duration()}
	}
	return nil
}

// random returns random numbers that are the same for each claim with this token. A store
// that takes the first free row in their order finds the row of a claim that has reached it
// before, unless one ahead of that has become free meanwhile: see [Claim.Choose].
func (c *Claim) random() *rand.Rand { return randomOf(c.Owner) }

// Candidates returns the worker numbers that will do, each once, in an order drawn from the token. For
// 65,536 of them that takes about a millisecond.
func (c *Claim) Candidates() []int64 {
	var all []int64
	if c.Only == nil {
		all = make([]int64, c.Space.Workers)
		for i := range all {
			all[i] = int64(i)
		}
	} else {
		all = slices.DeleteFunc(slices.Sorted(slices.Values(c.Only)), func(worker int64) bool {
			return worker < 0 || worker >= c.Space.Workers
		})
		all = slices.Compact(all)
	}
	c.random().Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
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
		if 0 <= row.Worker && row.Worker < c.Space.Workers && (c.Only == nil || suits(row.Worker)) {
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
	ahead := c.Skew
	if c.Guard > 0 {
		ahead += c.Window + c.Guard
	}
	return row.Until <= now+ahead
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
	return Row{
		Worker:   row.Worker,
		Epoch:    row.Epoch + 1,
		Owner:    c.Owner,
		Nonce:    c.Nonce,
		Until:    until,
		Renewals: row.Renewals + 1,
		Holder:   c.Holder,
	}, true
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

// MaxAhead is how far a reserved limit may be beyond the clock and the window.
const MaxAhead = Millis(time.Hour / time.Millisecond)

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
	return Row{
		Worker:   row.Worker,
		Epoch:    row.Epoch + 1,
		Nonce:    r.Nonce,
		Until:    r.End,
		Renewals: row.Renewals + 1,
	}, nil
}

// Lost returns the error of a release that the store has refused.
func (r *Release) Lost(reason Reason) *LostError {
	return &LostError{Worker: r.Worker, Epoch: r.Epoch, Reason: reason}
}

// A Fencing asks to end all leases of a space and to raise the limits of its rows.
type Fencing struct {
	Space Space
	Nonce string // a fresh token, 32 hexadecimal digits
	Until Millis
}

// Apply returns row as the fencing leaves it: given back, with a limit of at least Until. A
// retired row is unchanged.
//
// The limit alone would not do. After a restore, an earlier holder may find its token in
// the row. Its renewal would raise its limit beyond Until. Its next IDs would have times
// before Until, which the lost writes may have given to others. The new epoch refuses the
// holder, and it claims anew.
func (f *Fencing) Apply(row Row) Row {
	if row.Retired() {
		return row
	}
	return Row{
		Worker:   row.Worker,
		Epoch:    row.Epoch + 1,
		Nonce:    f.Nonce,
		Until:    max(row.Until, f.Until),
		Renewals: row.Renewals + 1,
	}
}

// cut returns s quoted, and short enough for an error message.
func cut(s string) string {
	if most := 64; len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return strconv.Quote(s)
}
