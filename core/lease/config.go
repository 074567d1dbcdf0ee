package lease

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
)

// Config says which worker numbers a lease chooses from, and how. Only Namespace has no
// default.
type Config struct {
	// Namespace names a set of IDs in which no two may be equal. Most systems need one,
	// or one per database. It has 1..64 of the characters a-z A-Z 0-9 . _ - and is not
	// "." or "..". Required. Processes with different namespaces know nothing of each
	// other and do repeat each other's IDs. In tests, give each bubble of testing/synctest
	// a namespace of its own: a process remembers the times of its IDs.
	Namespace string

	// Layout is the generator's, which must have the same. The store keeps it with the
	// namespace, and refuses every other. At most 16 WorkerBits: each worker number is a
	// row.
	//
	// Defaults to core.Default().
	Layout core.Layout

	// Datacenter is the generator's, which must have the same.
	//
	// Defaults to 0.
	Datacenter int64

	// Region makes Acquire obtain the datacenter number, which Status.Datacenter then has, in
	// place of Datacenter. [Fence], [Retire] and [Reinstate] refuse it, because they take the
	// number of any region.
	//
	// Defaults to nil: the operator guarantees that no two regions have one number.
	Region *Region

	// Workers restricts the lease to these worker numbers. Set it if others are used
	// without leases. Each is in 0..1<<Layout.WorkerBits-1.
	//
	// Defaults to all.
	Workers []int64

	// Window is how much time is reserved ahead, 3 s to 10 min, in whole milliseconds rounded
	// down, and at least 4 ticks of the layout. The lease writes every quarter of it and survives
	// an absence of the store of at least three quarters. The worker number of a process that
	// crashed is free only after a window, so there must be numbers for all processes and for
	// those that crash within one. Processes of one namespace may have different windows.
	//
	// With the loss guard every lease reserves 10 s, since a claim begins beyond what
	// another may have reserved. A shorter Window is then taken as 10 s, and a longer one
	// is refused.
	//
	// Defaults to 60 s. Defaults to 10 s with 8 worker bits or fewer, whose numbers restarts
	// would otherwise use up within a minute, with the loss guard, or if the store may lose
	// writes.
	Window time.Duration

	// MaxClockSkew is how far the clocks of this process and the store may be apart for a
	// claim. If they are further apart, the claim is refused with a [*ClockSkewError]. No
	// ID is ever repeated because of a clock, but IDs could get far from the time. 1 ms
	// to 1 h. With the loss guard it is at most LossGuard, and at most half of Window
	// less LossGuard and a sixteenth of Window. A greater one is lowered to that.
	//
	// Defaults to 5 s.
	MaxClockSkew time.Duration

	// LossGuard protects against a store that forgets what it has acknowledged: see the
	// package comment, and docs/evidence.md. It is how far apart the clocks of the
	// store and of all processes may ever be. Uniqueness then depends on that condition.
	// 10 ms to a quarter of Window. As 0 is the default, a negative value turns
	// it off, where for AcquireWait it means no limit. IDs begin up to 10 s and
	// LossGuard ahead of the clock.
	//
	// The store keeps with the namespace whether the guard is on. It refuses a process
	// that disagrees with a [*LayoutError]. How long LossGuard is may differ.
	//
	// Defaults to 500 ms if the store says that it LosesWrites, and to off otherwise.
	LossGuard time.Duration

	// AcquireWait is how long Acquire waits if no worker number is free, or if the store
	// cannot be reached yet. Negative: until its ctx ends. An attempt that is under way
	// then may take half of Window longer.
	//
	// Defaults to 0: Acquire does not wait for a number, and tries four times to reach
	// the store.
	AcquireWait time.Duration

	// OnLost is called, if not nil, each time the worker number is lost. The lease claims
	// another by itself. OnLost runs in a goroutine of its own. It may block, and may
	// close the generator.
	OnLost func(*LostError)

	// Holder names the process for people who look at the store, in at most 64 printable
	// characters of ASCII. Nothing depends on it.
	//
	// Defaults to the host name and the process ID, as in "web-3 pid 4711".
	Holder string

	// Logger is where the lease reports what happens to it. A start and an end without a
	// failure are at level Debug.
	//
	// Defaults to slog.Default().
	Logger *slog.Logger

	// Now is the wall clock of the lease and of its generator. For tests.
	//
	// Defaults to the system's.
	Now func() time.Time
}

const (
	maxWorkerBits = 16 // of a Space
	maxHolder     = 64 // of a Claim

	minWindow      = 3 * time.Second
	maxWindow      = 10 * time.Minute
	minWindowTicks = 4

	defaultSkew = 5 * time.Second
	maxSkew     = time.Hour

	defaultGuard = 500 * time.Millisecond
	minGuard     = 10 * time.Millisecond

	// guardWindow is the window with the loss guard. It must never change: a process of
	// another version counts on it.
	guardWindow = 10 * time.Second
)

// resolve returns c with its defaults filled in, and the claim it stands for.
func (c Config) resolve(lossy bool) (Config, leasestore.Claim, error) {
	for _, step := range []func() error{
		c.validateNamespace,
		c.resolveLayout,
		c.resolveRegion,
		c.resolveWorkers,
		func() error { return c.resolveWindow(lossy) },
		c.resolveSkew,
	} {
		if err := step(); err != nil {
			return Config{}, leasestore.Claim{}, err
		}
	}
	c.Holder = cmp.Or(c.Holder, thisProcess())
	if v := (*core.ValueError)(nil); errors.As((&leasestore.Claim{Space: leasestore.Space{Workers: 1}, Holder: c.Holder}).Check(0), &v) {
		return Config{}, leasestore.Claim{}, invalid("Config.Holder", v.Value, v.Want)
	}
	c.Logger = cmp.Or(c.Logger, slog.Default()).With("namespace", c.Namespace)
	if c.Region == nil {
		c.Logger = c.Logger.With("datacenter", c.Datacenter)
	} else {
		c.Logger = c.Logger.With("region", c.Region.Name)
	}
	return c, c.claim(), nil
}

// claim returns the claim of a lease with these resolved settings.
func (c *Config) claim() leasestore.Claim {
	stored := Fingerprint(c.Layout)
	if c.LossGuard > 0 {
		stored += leasestore.GuardMark
	}
	return leasestore.Claim{
		Space: leasestore.Space{
			Namespace:  c.Namespace,
			Datacenter: c.Datacenter,
			Workers:    int64(1) << c.Layout.WorkerBits,
			Layout:     stored,
		},
		Only:   c.Workers,
		Holder: c.Holder,
		Window: leasestore.Millis(c.Window / time.Millisecond),
		Skew:   leasestore.Millis(c.MaxClockSkew / time.Millisecond),
		Guard:  leasestore.Millis(c.LossGuard / time.Millisecond),
	}
}

func (c *Config) validateNamespace() error {
	value := strconv.Quote(c.Namespace)
	v := (*core.ValueError)(nil)
	if errors.As(leasestore.Space{Namespace: c.Namespace, Workers: 1}.Validate(), &v) {
		value = v.Value
	} else if c.Namespace != "." && c.Namespace != ".." { // a store may make it a path
		return nil
	}
	return invalid("Config.Namespace", value, `1..64 of the characters a-z A-Z 0-9 . _ -, not "." or ".."`)
}

func (c *Config) resolveLayout() error {
	c.Layout = cmp.Or(c.Layout, core.Default())
	if v := (*core.ValueError)(nil); errors.As(c.Layout.Validate(), &v) {
		return invalid("Config."+v.Name, v.Value, v.Want)
	}
	if c.Layout.WorkerBits > maxWorkerBits {
		return invalid("Config.Layout.WorkerBits", strconv.Itoa(c.Layout.WorkerBits), fmt.Sprintf("at most %d: each worker number is a row in the store", maxWorkerBits))
	}
	if err := inRange("Config.Datacenter", c.Datacenter, 0, int64(1)<<c.Layout.DatacenterBits-1, ""); err != nil {
		return err
	}
	// A generator would refuse these too, but only after the claim. By then the namespace
	// would keep the layout.
	now := c.now()
	if epoch, end := c.Layout.Epoch, c.Layout.Exhausted(); now.Before(epoch) || !now.Before(end) {
		return invalid("Config.Layout", fmt.Sprintf("for times from %s to %s", epoch.UTC().Format(time.RFC3339Nano), end.Format(time.RFC3339Nano)), "one that has begun and has not ended; the clock shows "+now.UTC().Format(time.RFC3339Nano))
	}
	return nil
}

func (c *Config) resolveWorkers() error {
	if c.Workers != nil && len(c.Workers) == 0 {
		return invalid("Config.Workers", "empty", "at least one worker number, or nil for all")
	}
	for i, w := range c.Workers {
		if err := inRange(fmt.Sprintf("Config.Workers[%d]", i), w, 0, int64(1)<<c.Layout.WorkerBits-1, ""); err != nil {
			return err
		}
	}
	c.Workers = slices.Clone(c.Workers)
	return nil
}

// numbers returns how many worker numbers a resolved Config allows.
func (c *Config) numbers() int {
	if c.Workers == nil {
		return 1 << c.Layout.WorkerBits
	}
	return len(slices.Compact(slices.Sorted(slices.Values(c.Workers))))
}

// resolveWindow resolves the window and the loss guard.
func (c *Config) resolveWindow(lossy bool) error {
	if c.LossGuard == 0 && lossy {
		c.LossGuard = defaultGuard
	}
	c.LossGuard = max(c.LossGuard, 0)
	longest, why := maxWindow, ""
	if c.LossGuard > 0 {
		longest, why = guardWindow, " with the loss guard: a claim must begin beyond what another process may have reserved"
	}
	switch {
	case c.Window != 0:
	case c.LossGuard > 0 || lossy || c.Layout.WorkerBits <= 8:
		c.Window = 10 * time.Second
	default:
		c.Window = time.Minute
	}
	if err := inRange("Config.Window", c.Window, max(minWindow, minWindowTicks*c.Layout.Unit), longest, why); err != nil || c.LossGuard == 0 {
		return err
	}
	c.Window = guardWindow
	return inRange("Config.LossGuard", c.LossGuard, minGuard, guardWindow/renewPart, ", a quarter of the window, or negative for none")
}

func (c *Config) resolveSkew() error {
	c.MaxClockSkew = cmp.Or(c.MaxClockSkew, defaultSkew)
	if err := inRange("Config.MaxClockSkew", c.MaxClockSkew, time.Millisecond, maxSkew, ""); err != nil {
		return err
	}
	if c.LossGuard > 0 {
		// With the clocks further apart than LossGuard, the guard does not hold. The first
		// renewal is due within half a window. If the clocks differ by more than
		// window/2 − guard − window/16, the lapse rule can end the lease before it; the
		// sixteenth covers the round trip.
		c.MaxClockSkew = min(c.MaxClockSkew, c.LossGuard, c.Window/2-c.LossGuard-c.Window/16)
	}
	return nil
}

// now returns the wall clock.
func (c *Config) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// thisProcess returns the names of this host and process as a Holder.
func thisProcess() string {
	name, _ := os.Hostname() // without one a row has less for people, and is as good
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
	pid := fmt.Sprintf("pid %d", os.Getpid())
	return strings.TrimLeft(name[:min(len(name), maxHolder-len(pid)-1)]+" "+pid, " ")
}

// Fingerprint returns the form in which a store keeps a layout, without [leasestore.GuardMark]. Two layouts have the same
// if and only if their IDs mean the same. ShardBits are left out: one holder owns all IDs of its
// range whatever their shard. People read it in errors.
//
// Since a [leasestore.Space] takes ASCII only, which every column and key can hold, a unit below
// 1 ms is written with "us" in place of the "µs" of Duration.String; time.ParseDuration reads both.
func Fingerprint(l core.Layout) string {
	return fmt.Sprintf("epoch %s, unit %s, bits %d/%d/%d/%d",
		l.Epoch.UTC().Format(time.RFC3339Nano), strings.Replace(l.Unit.String(), "µs", "us", 1),
		l.TimeBits, l.DatacenterBits, l.WorkerBits, l.SequenceBits)
}
