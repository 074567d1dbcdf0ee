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
	"regexp"
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

// has reports whether s has a row of worker.
func (s Space) has(worker int64) bool { return 0 <= worker && worker < s.Workers }

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

// next returns the row of the next epoch, without an owner.
func (r *Row) next(nonce string, until Millis) Row {
	return Row{Worker: r.Worker, Epoch: r.Epoch + 1, Nonce: nonce, Until: until, Renewals: r.Renewals + 1}
}

// Retired is the least Until of a retired row, which no claim takes: Until is Retired plus the
// moment of the retirement. It is in the year 37648, so that a version of this module that knows
// no retired rows does not take one either, and numbers that servers keep as doubles hold it. A
// claim with Retired as its Window takes a row until that is released, whatever the time is.
const Retired = Millis(1) << 50

// Retired reports whether a [Claim] with Retire has taken the row for good.
func (r *Row) Retired() bool { return r.Until >= Retired }

// RelayoutEpochs is more than the claims that a worker number ever sees. A row with this Epoch or a
// greater one had another layout before.
const RelayoutEpochs = 1_000_000_000

// Written returns when the lease or the region that holds the row has claimed or renewed it last, by the
// clock of its process, and false if the row is free or its nonce, such as one of an earlier
// version, does not say.
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

// cut returns s quoted, and short enough for an error message.
func cut(s string) string {
	if most := 64; len(s) > most {
		return fmt.Sprintf("%q… (%d bytes)", s[:most], len(s))
	}
	return strconv.Quote(s)
}
