package leasetest

import (
	"testing"
	"time"

	"github.com/snowkey/snowkey/core/lease"
)

// A Store is what the suite certifies. The suite sees rows through Rows only: it
// must show each write that was acknowledged before the call, through whichever
// handle that was, and no rows and no error for a space in which nobody has
// claimed yet.
type Store interface {
	lease.Store
	lease.Lister
}

// A Harness is one store under test and what can be done to it. Open is needed;
// without one of the others, the subtests that need it are skipped and say so.
type Harness struct {
	// Open returns a further handle on the store, as independent of the others as
	// that of another process: with its own connections, and nothing shared in
	// memory. It closes it by t.Cleanup.
	Open func(t *testing.T) Store

	// Namespace begins the name of every namespace that the suite uses in this
	// store, so that rows can be told from those of others and be cleared away. At
	// most 40 bytes of those that a namespace may have. Empty: the suite takes what
	// names it likes, "." and ".." among them.
	Namespace string

	// SetUntil writes Until of a row by hand, and nothing else.
	SetUntil func(t *testing.T, s lease.Space, worker int64, until lease.Millis)

	// Delete deletes a row by hand, and leaves whatever says that the space was made.
	Delete func(t *testing.T, s lease.Space, worker int64)

	// SetClock sets the store's clock, which then stands or goes on from there.
	// With it the suite does not sleep.
	SetClock func(t *testing.T, now time.Time)

	// Restart stops the store and starts it again, as after a crash. What was
	// acknowledged must survive; a store that does not promise that leaves it nil.
	// Handles opened before are not used any more.
	Restart func(t *testing.T)

	// Stall makes all operations on the store hang, those of handles already open
	// too, until resume is called.
	Stall func(t *testing.T) (resume func())

	// LosesReplies returns a handle whose operations are done, but whose caller
	// never gets the replies.
	LosesReplies func(t *testing.T) Store

	// Unreachable returns a handle by which the store cannot be reached: of a wrong
	// port, or a wrong password.
	Unreachable func(t *testing.T) Store

	// Secret is a part of the password by which the handles reach the store. No
	// error may contain it.
	Secret string

	// Seed fixes the choices of the random subtests. 0: a different one each time,
	// which the log names.
	Seed uint64
}

// Run certifies a store: each claim about it is a subtest of t, which calls open
// for a fresh, empty store. A store on a server may take the same place each
// time, as long as its Namespace is a new one.
//
// The suite sleeps for less than a second in all, unless operations are slow.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, claim := range claims {
		t.Run(claim.name, func(t *testing.T) { claim.check(newSuite(t, open(t))) })
	}
}
