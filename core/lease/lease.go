package lease

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/snowkey/snowkey/core"
	"github.com/snowkey/snowkey/core/lease/leasestore"
	"github.com/snowkey/snowkey/core/lease/region"
	"github.com/snowkey/snowkey/internal/base/wait"
)

// A Lease is a worker number that no other lease of its namespace and datacenter uses for
// the same time. It is the [core.Worker] of one generator. It keeps the number in the
// background, and gets another when that is lost. Acquire makes it; the zero value is of
// no use. It is safe for concurrent use, and must not be copied.
//
// Close the generator, which closes its lease. Call Lease.Close only if no generator was
// made with the lease, as when core.New has failed.
type Lease struct {
	store  Store
	config Config
	region *region.Keeper // nil: none
	begin  time.Time      // monotonic time is counted from here

	protocol *protocol     // belongs to Acquire, then to run, then to Close
	logged   logged        // belongs with it
	stop     func()        // ends run
	stopped  chan struct{} // closed when it has ended

	closed   chan struct{} // closed when closeErr is set
	closeErr error

	mu      sync.Mutex // guards what follows; never held during a call of the store
	closing bool
	owned   io.Closer         // see Own; nil: none
	binding *core.Binding     // nil: no generator yet
	term    *core.Reservation // the generator's, nil: none
	from    leasestore.Millis // of the row, if held
	renewed time.Duration     // Status.Renewed, by the monotonic clock
	status  Status
}

var _ core.Worker = (*Lease)(nil)

// firstAttempts is how often Acquire tries at least before it returns a temporary error,
// such as a broken connection.
const firstAttempts = 4

// Acquire claims a worker number from store and keeps it until Close. Put the lease into
// core.Config.Worker. Acquire uses ctx no longer once it has returned.
//
// Errors:
//
//   - A [*NoFreeWorkerError] if none is free, after Config.AcquireWait.
//   - The store's error, or a [*ClockSkewError], if the store cannot be reached or the
//     clocks are too far apart. Acquire then tries a few times, and until
//     Config.AcquireWait is over.
//   - An error that matches [ErrPermanent], at once. It is a [*LayoutError] for a
//     namespace that belongs to another layout, and a [*core.ValueError] for a setting out of
//     range. A store marks others with [leasestore.Permanent], such as missing tables.
//   - A [*RegionError], which matches too, if Config.Region may not have a datacenter number.
//   - If ctx ends, one that matches ctx.Err() and the last error of the store.
func Acquire(ctx context.Context, store Store, config Config) (*Lease, error) {
	if store == nil {
		return nil, invalid("store", "nil", "a Store")
	}
	lossy := store.LosesWrites()
	config, settings, err := config.resolve(lossy)
	if err != nil {
		return nil, err
	}
	token, random := luck()
	l := &Lease{
		store:    store,
		config:   config,
		begin:    time.Now(),
		protocol: newProtocol(settings, token, random),
		stopped:  make(chan struct{}),
		closed:   make(chan struct{}),
		status: Status{
			Namespace: config.Namespace, Datacenter: config.Datacenter,
			Workers: int64(config.numbers()), Window: settings.Window.Duration(),
		},
	}
	if err := l.withRegion(); err != nil {
		return nil, err
	}
	if lossy && config.LossGuard == 0 {
		config.Logger.Warn("lease: the loss guard is off, and the store may forget what it has acknowledged: IDs may then repeat")
	}
	if err := l.acquire(ctx); err != nil {
		return nil, failed("no worker number claimed", err)
	}
	running, stop := context.WithCancel(context.Background())
	l.stop = stop
	go l.run(running)
	return l, nil
}

// luck returns what draws the tokens and the random moments of one goroutine. Tests replace it, so
// that a seed plays them again.
var luck = func() (func() string, func() float64) { return token, rand.Float64 }

// token returns 32 hexadecimal digits that no other call returns.
func token() string {
	var random [16]byte
	_, _ = crand.Read(random[:]) // it never fails
	now := time.Now()
	return mix(random, now.UnixNano(), int64(now.Sub(started)))
}

// started is a moment from which monotonic time is counted.
var started = time.Now()

// mix returns the token of random bits that were drawn at a moment of both clocks, in ns. It begins with
// that of the wall clock, for [leasestore.Row.Written].
//
// Copies of a process have one state of the random numbers, the operating system's
// included, if a virtual machine was copied. They then draw the same bits for a while. What
// they do not share is the nanosecond at which they do so: where the bits are the same, the
// tokens differ if only one of the clocks does. The tokens of others differ in 64 random bits, which the
// exclusive or with a number that is not random leaves as random as they were.
func mix(random [16]byte, wall, monotonic int64) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(wall))
	binary.BigEndian.PutUint64(b[8:], binary.BigEndian.Uint64(random[:8])^binary.BigEndian.Uint64(random[8:])^uint64(monotonic))
	return hex.EncodeToString(b[:])
}

// acquire makes the first claim.
func (l *Lease) acquire(ctx context.Context) error {
	var last error
	failures := 0 // since the store last answered
	for {
		if err := ctx.Err(); err != nil {
			if last == nil {
				return err
			}
			if errors.Is(last, err) {
				return last // which may say what ctx has waited for
			}
			return fmt.Errorf("%w; before that: %w", err, last)
		}
		a := l.next()
		if a.wait > 0 {
			_ = wait.Sleep(ctx, a.wait) // the loop looks at ctx
			continue
		}
		o := l.request(ctx, a)
		if o.failed == nil {
			return l.apply(o)
		}
		last = o.failed
		if errors.Is(last, ErrPermanent) {
			return last
		}
		answered := errors.Is(last, ErrNoFreeWorker)
		if failures++; answered {
			failures = 0
		}
		if wait := l.config.AcquireWait; wait >= 0 && (answered || failures >= firstAttempts) {
			if l.monotonic() >= wait {
				return last
			}
			l.protocol.dueBy(wait)
		}
		_ = l.apply(o) // the failure: nothing to refuse
	}
}

// run keeps the row until ctx ends. Acquire starts it, Close ends it.
func (l *Lease) run(ctx context.Context) {
	defer close(l.stopped)
	defer l.keepRegion(ctx)()
	for ctx.Err() == nil {
		a := l.next()
		l.warnIfLow() // here, because a store that hangs may leave no time to wait between two requests
		switch {
		case a.lost != nil:
			_ = l.apply(outcome{seal: true, lost: a.lost}) // nothing to refuse
		case a.wait > 0:
			_ = wait.Sleep(ctx, a.wait) // the loop looks at ctx
		default:
			o := l.request(ctx, a)
			if o.failed != nil && ctx.Err() != nil {
				return // it is Close that has ended the request
			}
			if err := l.apply(o); err != nil {
				l.refuse(ctx, o, err)
			}
		}
	}
}

// next asks the protocol what to do now.
func (l *Lease) next() action {
	l.mu.Lock()
	var id leasestore.Millis
	if l.term != nil {
		id = leasestore.MillisOf(l.term.Next())
	}
	l.mu.Unlock()
	return l.protocol.next(leasestore.MillisOf(l.config.now()), l.monotonic(), id)
}

// request sends the request of a and returns what follows from the answer.
func (l *Lease) request(ctx context.Context, a action) outcome {
	var reply leasestore.Reply
	err := l.checkRegion(ctx, a)
	ctx, cancel := context.WithTimeout(ctx, l.protocol.answerTimeout())
	defer cancel()
	switch {
	case err != nil:
	case a.claim != nil:
		reply, err = l.store.Claim(ctx, *a.claim)
	default:
		reply, err = l.store.Renew(ctx, *a.renewal)
	}
	return l.protocol.done(reply, err, leasestore.MillisOf(l.config.now()), l.monotonic())
}

// apply does what follows from an answer: it updates the generator and the status, and writes to
// the log. If the generator refuses the worker number, apply returns why.
func (l *Lease) apply(o outcome) error {
	l.mu.Lock()
	err := l.updateGenerator(o)
	l.updateStatus(o)
	l.mu.Unlock()
	l.log(o)
	if errors.Is(err, core.ErrClosed) { // it is about to call Close
		return nil
	}
	return err
}

// refuse gives back a row whose worker number the generator has refused. Another
// generator of this process has that number. The lease then claims again, but not at
// once. It most likely gets another number.
func (l *Lease) refuse(ctx context.Context, o outcome, reason error) {
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		return // Close gives it back
	}
	end := l.seal()
	l.status.Held, l.status.Err = false, reason
	l.mu.Unlock()
	r, _ := l.protocol.release(end)
	// Close, which ends ctx, has nothing left to give back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.protocol.deadline())
	defer cancel()
	err := l.store.Release(ctx, r)
	l.protocol.failures = o.recovered // the claim was no success after all
	l.protocol.claimFailed(reason, l.monotonic())
	l.config.Logger.Error("lease: another generator of this process has the worker number; gave it back, claiming another",
		"worker", r.Worker, "epoch", r.Epoch, "reason", reason, "error", err)
}

// updateGenerator installs, extends or ends the generator's term. It requires mu.
func (l *Lease) updateGenerator(o outcome) error {
	switch {
	case o.install:
		l.term, l.from = nil, o.from
		if l.binding == nil || l.closing {
			return nil
		}
		return l.reserve(l.binding, o.worker, o.from, o.until)
	case o.extend && l.term != nil && !l.closing:
		return l.term.Extend(o.until.Time())
	case o.seal:
		l.seal()
	}
	return nil
}

// seal ends the term, and returns its end, 0 if there is none. It requires mu.
func (l *Lease) seal() (end leasestore.Millis) {
	if l.term != nil {
		end = leasestore.MillisOf(l.term.Seal())
		l.term = nil
	}
	return end
}

// reserve installs a term in the generator of b. It requires mu.
func (l *Lease) reserve(b *core.Binding, worker int64, from, until leasestore.Millis) (err error) {
	l.term, err = b.Reserve(worker, from.Time(), until.Time())
	return err
}

// Bind installs the worker number in the generator of b. core.New calls it. One lease
// serves one generator, which must have the lease's layout and datacenter. Otherwise the
// IDs of two processes would not be kept apart.
func (l *Lease) Bind(b *core.Binding) error {
	if got, own := Fingerprint(b.Layout()), Fingerprint(l.config.Layout); got != own {
		return invalid("core.Config.Layout", got, own+", as Config.Layout of the lease")
	}
	if got, own := b.Datacenter(), l.config.Datacenter; got != own {
		return invalid("core.Config.Datacenter", fmt.Sprint(got), fmt.Sprintf("%d, as Config.Datacenter of the lease", own))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closing:
		return ErrClosed
	case l.binding != nil:
		return ErrBound
	}
	if l.status.Held {
		if err := l.reserve(b, l.status.Worker, l.from, leasestore.MillisOf(l.status.Limit)); err != nil {
			return err
		}
	}
	l.binding = b
	return nil
}

// Namespace returns Config.Namespace. It implements [core.Worker].
func (l *Lease) Namespace() string { return l.config.Namespace }

// WallClock returns Config.Now: the generator reads the same clock. It implements
// [core.Worker].
func (l *Lease) WallClock() func() time.Time { return l.config.Now }

// monotonic returns how much time has passed since the lease was made.
func (l *Lease) monotonic() time.Duration { return time.Since(l.begin) }
