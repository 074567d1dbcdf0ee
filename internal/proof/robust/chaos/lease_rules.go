//go:build unix

package chaos

import (
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// Rules say what prevents duplicates in a run, and what the run does to the leases.
type Rules int

const (
	// Fence is the unchanged protocol.
	Fence Rules = iota

	// FenceStolen is Fence with takeovers of rows at any time, from live and healthy holders.
	FenceStolen

	// TTL is a common kind of lease: the row is the holder's until its time is over, IDs follow
	// the clock, and there is no fence. IDs repeat.
	TTL

	// Guard is the protocol with the loss guard, on a store that forgets what it has
	// acknowledged. The guard needs clocks that agree.
	Guard

	// NoGuard is Guard without the loss guard. IDs repeat.
	NoGuard

	// GuardShort is Guard, but a lease begins D after its claim instead of a window and D, so
	// the guard is short by its whole window. IDs repeat.
	GuardShort

	// GuardTwice is Guard on a store that two servers keep at the same time, each without the
	// other's writes, which no promise covers. IDs repeat.
	GuardTwice
)

// promises are what the rules promise and what happens to the store: whether no ID is repeated, and whether the
// store is made to forget its rows.
var promises = [...]struct {
	name            string
	unique, forgets bool
}{
	Fence:       {"fence", true, false},
	FenceStolen: {"fence, rows stolen", true, false},
	TTL:         {"none (TTL)", false, false},
	Guard:       {"fence and loss guard, rows forgotten", true, true},
	NoGuard:     {"fence, rows forgotten", false, true},
	GuardShort:  {"fence and loss guard short by a window", false, true},
	GuardTwice:  {"fence and loss guard, two stores", false, true},
}

func (r Rules) String() string { return promises[r].name }
func (r Rules) unique() bool   { return promises[r].unique }
func (r Rules) forgets() bool  { return promises[r].forgets }

// defaultGuard and guardWindow are the default of Config.LossGuard and the window with it.
const (
	defaultGuard = time.Second / 2
	guardWindow  = 10 * time.Second
)

// lossGuard returns Config.LossGuard of the leases: the default of stores that lose writes, or
// off. It is set explicitly, because other stores may be made to lose writes as well. Under
// GuardShort the store has the guard without the lease's knowledge.
func (r Rules) lossGuard() time.Duration {
	if r == Guard || r == GuardTwice {
		return defaultGuard
	}
	return -1
}

// window returns how much time the leases actually reserve. Few rows would expire in a test of
// seconds with the shortest window that a lease accepts, so the requests get a third of it on
// their way, and the store seems slow to the lease, or its clock late. A store that forgets
// gets the whole window, because the guard's arithmetic depends on it.
func (r Rules) window() time.Duration {
	if r.forgets() {
		return leaseWindow
	}
	return leaseWindow / shortened
}

// jump returns the maximum error of a clock. The guard's condition is that clocks agree within
// its default of half a second.
func (r Rules) jump() time.Duration {
	if r.forgets() {
		return 200 * time.Millisecond
	}
	return 3 * time.Second
}

// stop returns the maximum time for which processes are stopped, long enough that the rows of
// most of them expire meanwhile.
func (r Rules) stop() time.Duration { return leaseWindow/2 + 2*r.window() }

// leaseWindow is the shortest Config.Window. With the loss guard leases take it as 10 s.
const leaseWindow = 3 * time.Second

// configWindow returns Config.Window of a process, which for one in three is twice as long, so
// that windows grow and shrink as processes take each other's rows, as in a rolling deployment
// that changes them. The guard has a single window.
func (r Rules) configWindow(seed uint64) time.Duration {
	if r == GuardShort {
		return guardWindow
	}
	if seed%3 == 0 {
		return 2 * leaseWindow
	}
	return leaseWindow
}

// There are more processes than rows, so that each row that expires finds its next owner at
// once. These are the defaults of [Leases].
const (
	leaseProcesses = 6
	rows           = 3
)

// layout has few numbers in a millisecond. A process uses most of them, so two processes that
// use the same millisecond repeat each other's.
func layout() core.Layout {
	return core.Layout{
		Epoch: epoch.Time(), Unit: time.Millisecond,
		TimeBits: 41, WorkerBits: workerBits, SequenceBits: sequenceBits,
	}
}

const (
	epoch        = leasestore.Millis(1735689600000) // 2025-01-01 UTC
	workerBits   = 3
	sequenceBits = 8
)
